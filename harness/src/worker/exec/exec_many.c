/* Several calls of one plan at once: in threads, and on two streams in turn. Each has outputs,
 * workspace and stream of its own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "exec_ways.h"
#include "fattn/device.h"

#define CALLS_IN_TURN 3 /* on each stream */

/* Locked until every thread is ready; then they start, or end if one is missing. */
typedef struct gate {
    pthread_mutex_t lock;
    bool open;
} gate;

typedef struct lane {
    facts_set set;
    facts_call call;
    struct CUstream_st *stream;
    fattn_context *context;
    gate *start;
    fattn_status status;
    char text[300];
} lane;

static bool open_lane(facts_runs *r, lane *l)
{
    l->context = r->worker->context;
    bool good = facts_runs_check(r, facts_memory_add(&l->set, r->memory, false), NULL);
    if (good && r->worker->device == FACTS_DEVICE_GPU)
        good = facts_runs_check(r, fattn_stream_create(&l->stream, l->context), NULL);
    if (!good)
        return false;
    facts_memory_use(r->memory, &l->set);
    l->call = facts_call_now(r);
    good = facts_runs_arm(r, FACTS_PATTERN_B);
    if (good && r->memory->gpu) /* its stream does not wait for the worker's */
        good = facts_runs_check(r, facts_gpu_wait(r->memory->gpu), NULL);
    facts_memory_use(r->memory, NULL);
    return good;
}

static void close_lane(facts_runs *r, lane *l)
{
    if (l->stream && !r->worker->lost)
        fattn_stream_destroy(l->context, l->stream);
    facts_memory_drop(&l->set, r->memory);
}

static void compare_lane(facts_runs *r, lane *l, const char *how)
{
    facts_memory_use(r->memory, &l->set);
    if (facts_runs_fetch(r, FACTS_PATTERN_B))
        facts_runs_compare(r, how);
    facts_memory_use(r->memory, NULL);
}

/* ---- two streams
 * ------------------------------------------------------------------------------------------------------------
 */

void facts_exec_streams(facts_runs *r)
{
    lane lanes[2] = { { .status = FATTN_OK } };
    bool good = true;
    for (int i = 0; i < 2 && good; i++)
        good = open_lane(r, &lanes[i]);
    for (int i = 0; i < 2 * CALLS_IN_TURN && good; i++)
        good =
            facts_runs_check(r, facts_call_launch(&lanes[i % 2].call, lanes[i % 2].stream), NULL);
    for (int i = 0; i < 2 && good; i++)
        good = facts_runs_check(r, fattn_stream_synchronize(r->worker->context, lanes[i].stream),
                                NULL);
    for (int i = 0; i < 2 && good && !facts_runs_over(r); i++)
        compare_lane(r, &lanes[i], "a run alone and a run beside another stream");
    for (int i = 0; i < 2; i++)
        close_lane(r, &lanes[i]);
}

/* ---- threads
 * ----------------------------------------------------------------------------------------------------------------
 */

static void *run_lane(void *argument)
{
    lane *l = argument;
    pthread_mutex_lock(&l->start->lock);
    bool open = l->start->open;
    pthread_mutex_unlock(&l->start->lock);
    if (!open)
        return NULL;
    l->status = facts_call_launch(&l->call, l->stream);
    if (l->status == FATTN_OK)
        l->status = fattn_stream_synchronize(l->context, l->stream);
    if (l->status != FATTN_OK)
        snprintf(l->text, sizeof l->text, "%.290s", fattn_last_error()); /* this thread's */
    return NULL;
}

/* Starts all threads at one moment and waits for each. False: a thread could not be created, and
 * none ran. */
static bool run_together(lane *lanes, int32_t count)
{
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    gate start = { .lock = PTHREAD_MUTEX_INITIALIZER };
    int32_t made = 0;
    if (!threads)
        return false;
    pthread_mutex_lock(&start.lock);
    for (; made < count; made++) {
        lanes[made].start = &start;
        if (pthread_create(&threads[made], NULL, run_lane, &lanes[made]) != 0)
            break;
    }
    start.open = made == count;
    pthread_mutex_unlock(&start.lock);
    for (int32_t i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return made == count;
}

static void judge_lanes(facts_runs *r, lane *lanes, int32_t count)
{
    for (int32_t i = 0; i < count && !facts_runs_over(r); i++) {
        if (lanes[i].status == FATTN_OK) {
            compare_lane(r, &lanes[i], "a run alone and a run beside other threads");
            continue;
        }
        r->out->status = lanes[i].status;
        snprintf(r->out->text, sizeof r->out->text, "thread %d of %d: %s", i + 1, count,
                 lanes[i].text);
        r->worker->lost = lanes[i].status == FATTN_DEVICE_FAULT;
    }
}

void facts_exec_threads(facts_runs *r)
{
    int32_t count = r->problem->threads;
    lane *lanes = calloc((size_t)count, sizeof *lanes);
    bool good = lanes != NULL;
    for (int32_t i = 0; good && i < count; i++)
        good = open_lane(r, &lanes[i]);
    if (good && run_together(lanes, count)) {
        judge_lanes(r, lanes, count);
    } else if (r->out->status == FATTN_OK) {
        r->out->status = FATTN_NO_MEMORY;
        snprintf(r->out->text, sizeof r->out->text,
                 "threads: the system does not start as many threads");
    }
    for (int32_t i = 0; lanes && i < count; i++)
        close_lane(r, &lanes[i]);
    free(lanes);
}
