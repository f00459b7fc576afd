#include <inttypes.h>
#include <stdio.h>

#include "exec_ways.h"
#include "fattn/device.h"
#include "fattn/graph.h"

/* A failure to record is not the fault of the problem: the same call has just run. */
static bool check_recorded(facts_runs *r, fattn_status status, const char *what)
{
    if (status != FATTN_BAD_PROBLEM)
        return facts_runs_check(r, status, what);
    facts_runs_find(r, FACTS_VERDICT_EXEC_FAIL, "%s: %.300s", what, fattn_last_error());
    return false;
}

/* While the graph is recorded, memory has nothing of the case: no lengths, scales, data or
 * intermediate results. */
static bool mislead(facts_runs *r)
{
    return facts_runs_check(r, facts_seam_mislead(r->memory), NULL);
}

static fattn_graph *capture(facts_runs *r, const facts_call *call)
{
    fattn_context *context = r->worker->context;
    fattn_graph *graph = NULL;
    facts_call launched = *call;
    if (!mislead(r) ||
        !check_recorded(r, fattn_capture_begin(context, r->worker->stream), "capture"))
        return NULL;
    bool good = check_recorded(r, facts_call_launch(&launched, r->worker->stream), "capture");
    fattn_status status = fattn_capture_end(&graph, context, r->worker->stream);
    if (good)
        good = check_recorded(r, status, "capture");
    if (good && fattn_graph_node_count(graph) == 0)
        facts_runs_find(r, FACTS_VERDICT_GRAPH_MISMATCH, "capture: nothing was recorded");
    if (!facts_runs_over(r))
        return graph;
    fattn_graph_destroy(graph);
    return NULL;
}

static fattn_graph *record(facts_runs *r, const facts_call *call)
{
    fattn_graph *graph = NULL;
    if (r->problem->exec != FACTS_EXEC_GRAPH_NATIVE)
        return capture(r, call);
    if (mislead(r))
        check_recorded(r, fattn_graph_native(&graph, call->plan, &call->tensors), "native graph");
    return graph;
}

static bool launch(facts_runs *r, const fattn_graph *graph)
{
    return facts_runs_check(r, facts_seam_replay(r->memory, graph), "replay");
}

static void replay(facts_runs *r, const fattn_graph *graph, const char *how)
{
    if (facts_runs_arm(r, FACTS_PATTERN_B) && launch(r, graph) &&
        facts_runs_fetch(r, FACTS_PATTERN_B))
        facts_runs_compare(r, how);
}

static fattn_status launch_graph(void *argument, struct CUstream_st *stream)
{
    return fattn_graph_launch(argument, stream);
}

/* Updates the graph with the addresses of the current set. False: the update failed, or the trial
 * is over. */
static bool update(facts_runs *r, fattn_graph *graph)
{
    facts_call call = facts_call_now(r);
    if (r->problem->exec == FACTS_EXEC_GRAPH_NATIVE) {
        if (!mislead(r))
            return false;
        const fattn_status status = fattn_graph_native_update(graph, call.plan, &call.tensors);
        if (status != FATTN_UNSUPPORTED)
            return check_recorded(r, status, "update");
        snprintf(r->out->text, sizeof r->out->text, "replayed, but not updated: %.300s",
                 fattn_last_error());
        return false;
    }
    fattn_graph *newer = capture(r, &call);
    return newer && check_recorded(r, fattn_graph_capture_update(graph, newer), "update");
}

/* All old buffers contain NaN patterns while the graph runs on the new ones. This detects every
 * read of an old input and every write to an old output. */
static void move(facts_runs *r, fattn_graph *graph)
{
    facts_set other;
    int64_t changed = 0;
    if (facts_runs_check(r, facts_memory_add(&other, r->memory), NULL) &&
        facts_runs_check(r, facts_memory_spoil(r->memory), NULL)) {
        facts_memory_use(r->memory, &other);
        if (update(r, graph))
            replay(r, graph, "a plain run and a replay with other addresses");
        facts_memory_use(r->memory, NULL);
        if (r->out->status == FATTN_OK &&
            facts_runs_check(r, facts_memory_untouched(r->memory, &changed), NULL) && changed)
            facts_runs_find(r, FACTS_VERDICT_GRAPH_MISMATCH,
                            "a replay with other addresses wrote %" PRId64 " bytes at the old ones",
                            changed);
    }
    facts_memory_drop(&other, r->memory);
}

/* A plain run with this seed; the graph must give the same answer. */
static bool run_seeded(facts_runs *r, int64_t seed)
{
    facts_error error = { 0 };
    fattn_status status = facts_reference_reseed(r->reference, seed, &error);
    if (status != FATTN_OK) {
        r->out->status = status;
        snprintf(r->out->text, sizeof r->out->text, "%.250s", error.text);
        return false;
    }
    if (!facts_runs_once(r, &r->call, FACTS_PATTERN_A))
        return false;
    return facts_runs_has_reference(r, facts_reference_renew(r->reference));
}

/* Seed and offset are read at each replay, not when the graph is recorded. */
static void reseed(facts_runs *r, const fattn_graph *graph)
{
    const int64_t seed = (int64_t)r->problem->rng_seed;
    if (r->problem->ask.dropout == 0)
        return;
    if (run_seeded(r, seed + 1000003))
        replay(r, graph, "a plain run and a replay with another seed");
    if (r->out->status == FATTN_OK)
        run_seeded(r, seed);
}

void facts_exec_graph(facts_runs *r)
{
    fattn_graph *graph = record(r, &r->call);
    if (!graph)
        return;
    const int32_t times = facts_runs_repeats(r) > 2 ? facts_runs_repeats(r) : 2;
    char how[80];
    for (int32_t i = 0; i < times && !facts_runs_over(r); i++) {
        snprintf(how, sizeof how, "a plain run and a replay of the graph, %d of %d", i + 1, times);
        replay(r, graph, how);
    }
    if (!facts_runs_over(r))
        facts_runs_time(r, launch_graph, graph);
    if (!facts_runs_over(r))
        reseed(r, graph);
    if (!facts_runs_over(r) && (r->problem->exec == FACTS_EXEC_GRAPH_UPDATE ||
                                r->problem->exec == FACTS_EXEC_GRAPH_NATIVE))
        move(r, graph);
    if (!r->worker->lost)
        fattn_graph_destroy(graph);
}
