/* The queue that a worker takes its next case from. A case of another queue needs a new worker. */
#include <string.h>

#include "supervision.h"

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
