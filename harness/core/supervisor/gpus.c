/* The GPU of a target's next worker, and the number of workers for which a GPU has room. */
#include <stdlib.h>
#include <string.h>

#include "supervision.h"

/* The part of the free memory, as the first worker reports it, for each worker of a GPU. A worker's
 * context takes half a GiB, and the memory that it keeps for the next case takes one GiB. A case
 * without enough memory waits until it has the GPU alone. */
#define BYTES_EACH 4e9
#define MOST_WORKERS 64
/* The number of workers that start on a GPU, and of those that start with each compiled plan. If
 * every plan is loaded from disk, all workers wait for the GPU, and each further context only costs
 * time: 2,336 cases of peers-fe took 19 s with 16 workers and 14 s with 4. */
#define WORKERS_AT_ONCE 4
/* Other processes may take all memory of a GPU for a while: eight pauses of a quarter of a second
 * to half a minute. */
#define FIRST_PAUSE_NS UINT64_C(250000000)
#define MOST_PAUSES 8

void facts_gpus_prepare(facts_supervision *run)
{
    for (size_t i = 0; i < run->order->target_count; i++) {
        const facts_target *target = &run->order->targets[i];
        const int end = target->kind == FACTS_TARGET_GPU ? target->ordinal + target->gpus : 0;
        run->gpu_count = end > run->gpu_count ? end : run->gpu_count;
    }
    run->gpus = calloc((size_t)run->gpu_count + 1, sizeof *run->gpus);
}

/* Compiling and the reference are work of the CPU, so several workers finish sooner. exec_us then
 * contains more than the launch; with --jobs 1 it does not. */
static bool has_room(const facts_supervision *run, const facts_target_state *state,
                     const facts_gpu *gpu)
{
    if (gpu->full_until)
        return false;
    if (run->order->another_round)
        return true; /* one worker of each target: they take turns */
    const int some =
        gpu->compiled < MOST_WORKERS ? WORKERS_AT_ONCE * (1 + gpu->compiled) : MOST_WORKERS;
    const int most = run->order->jobs > 0                  ? run->order->jobs
                     : gpu->workers && gpu->workers < some ? gpu->workers
                                                           : some;
    return gpu->live == 0 ||
           (gpu->live < most && !gpu->no_room && !gpu->alone && state->todo > state->crowded);
}

bool facts_gpu_choose(const facts_supervision *run, const facts_target_state *state, int *gpu)
{
    const facts_target *target = state->target;
    *gpu = FACTS_NO_GPU;
    if (run->order->another_round && state->live)
        return false;
    if (target->kind != FACTS_TARGET_GPU)
        return true;
    for (int i = target->ordinal; i < target->ordinal + target->gpus; i++)
        if (has_room(run, state, &run->gpus[i]) &&
            (*gpu == FACTS_NO_GPU || run->gpus[i].live < run->gpus[*gpu].live))
            *gpu = i;
    return *gpu != FACTS_NO_GPU;
}

void facts_gpu_enter(facts_slot *slot)
{
    if (slot->gpu == FACTS_NO_GPU)
        return;
    slot->run->gpus[slot->gpu].live++;
    slot->run->gpus[slot->gpu].alone = slot->alone;
}

void facts_gpus_leave(const facts_slot *slot)
{
    if (slot->gpu == FACTS_NO_GPU)
        return;
    facts_gpu *gpu = &slot->run->gpus[slot->gpu];
    gpu->live--;
    gpu->alone = false;
    for (facts_slot *other = slot->run->slots; other; other = other->next)
        other->had_company |= other->gpu == slot->gpu;
    if (slot->phase != FACTS_PHASE_FAILED)
        gpu->no_room = false;
}

int facts_gpu_live(const facts_slot *slot)
{
    return slot->gpu == FACTS_NO_GPU ? 0 : slot->run->gpus[slot->gpu].live;
}

bool facts_gpu_wait_for_room(const facts_slot *slot)
{
    facts_target_state *state = &slot->run->targets[slot->target];
    if (!state->ready || state->starts_without_room == MOST_PAUSES)
        return false;
    slot->run->gpus[slot->gpu].full_until =
        uv_hrtime() + (FIRST_PAUSE_NS << state->starts_without_room++);
    return true;
}

bool facts_gpus_wait(facts_supervision *run)
{
    bool any = false;
    for (int i = 0; i < run->gpu_count; i++) {
        facts_gpu *gpu = &run->gpus[i];
        if (run->stopping || uv_hrtime() >= gpu->full_until)
            gpu->full_until = 0;
        any = any || gpu->full_until;
    }
    return any;
}

void facts_gpu_is_ready(const facts_slot *slot, int64_t bytes_free)
{
    if (slot->gpu == FACTS_NO_GPU)
        return;
    facts_gpu *gpu = &slot->run->gpus[slot->gpu];
    const double workers = (double)bytes_free / BYTES_EACH;
    gpu->ready = true;
    gpu->no_room = false;
    if (bytes_free > 0 && !gpu->workers)
        gpu->workers = workers < 1 ? 1 : workers > MOST_WORKERS ? MOST_WORKERS : (int)workers;
}

bool facts_gpu_compiled(const facts_slot *slot)
{
    if (slot->gpu == FACTS_NO_GPU || slot->run->gpus[slot->gpu].compiled == MOST_WORKERS)
        return false;
    slot->run->gpus[slot->gpu].compiled++;
    return true;
}

bool facts_gpus_are_proved(const facts_slot *slot)
{
    const facts_supervision *run = slot->run;
    if (run->targets[slot->target].target->gpus < 2 || run->targets[slot->target].answers)
        return true;
    for (const facts_slot *other = run->slots; other; other = other->next)
        if (other->target == slot->target && other->phase == FACTS_PHASE_STARTING &&
            !run->gpus[other->gpu].ready)
            return false;
    return true;
}

/* The queue that a worker takes its next case from. A case of another queue needs a new worker. */

/* The assumed times of a start and of an answer, until the first were measured. */
#define GUESS_START_MS 500.0
#define GUESS_DECIDE_MS 2.0
#define GUESS_RUN_MS 200.0

uint8_t facts_queue_of(facts_supervision *run, const facts_case *c)
{
    const char *needs = facts_case_process(c);
    for (int i = 0; i < run->queue_count; i++)
        if (strcmp(run->environments[i], needs) == 0)
            return (uint8_t)i;
    if (run->queue_count == FACTS_QUEUES || strlen(needs) >= sizeof run->environments[0])
        return FACTS_QUEUES - 1;
    strcpy(run->environments[run->queue_count], needs);
    return (uint8_t)run->queue_count++;
}

static size_t todo(const facts_queue *queue, bool alone)
{
    return alone ? queue->todo : queue->todo - queue->crowded;
}

/* Does the queue still have work when one more worker has started? A queue without a worker needs
 * one. If work is added as answers come, any work is worth a start. */
static bool is_worth_a_start(const facts_supervision *run, const facts_target_state *state,
                             const facts_queue *queue, bool alone)
{
    const double guess = run->order->task == FACTS_TASK_DECIDE ? GUESS_DECIDE_MS : GUESS_RUN_MS;
    const double each = state->answers ? state->busy_ms / (double)state->answers : guess;
    const double start = state->ready ? state->start_ms : GUESS_START_MS;
    return queue->workers == 0 || run->order->more ||
           (double)todo(queue, alone) * each > start * (queue->workers + 1);
}

int facts_queue_next(const facts_supervision *run, const facts_target_state *state, bool alone,
                     const bool *tried)
{
    int best = -1;
    double most = 0;
    for (int i = 0; i < FACTS_QUEUES; i++) {
        const facts_queue *queue = &state->queues[i];
        const double each = (double)todo(queue, alone) / (queue->workers + 1);
        if (!(tried && tried[i]) && each > most && is_worth_a_start(run, state, queue, alone)) {
            most = each;
            best = i;
        }
    }
    return best;
}

/* If a worker left its queue only when this is empty, all workers would start again at the same
 * time, at the end. */
int facts_queue_first(const facts_target_state *state, int own)
{
    const facts_queue *queues = state->queues;
    int best = own;
    if (queues[own].workers < 2)
        return own;
    size_t most = todo(&queues[own], false) / (size_t)queues[own].workers;
    for (int i = 0; i < FACTS_QUEUES; i++)
        if (queues[i].workers == 0 && todo(&queues[i], false) > most) {
            most = todo(&queues[i], false);
            best = i;
        }
    return best;
}
