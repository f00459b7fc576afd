#include "runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fattn/device.h"
#include "fattn/graph.h"

#define OVERRIDES_SHAPES 92100

/* The reason why a plan of this problem cannot run other shapes; NULL: it can. */
static const char *keeps_its_shape(const facts_problem *p, fattn_backend backend,
                                   const facts_worker *worker)
{
    if (backend != FATTN_BACKEND_CUDNN)
        return "exec: only cuDNN's plans take other shapes";
    if (p->ask.pass == FATTN_BACKWARD)
        return "exec: only a forward takes other shapes";
    if (worker->info.cudnn_version < OVERRIDES_SHAPES)
        return "exec: below cuDNN 9.21 plans take no other shapes";
    return p->ask.impl == FATTN_IMPL_COMPOSITE ? "exec: the composite graph takes no other shapes"
                                               : NULL;
}

const char *facts_exec_refuses(const facts_problem *p, fattn_backend backend,
                               const facts_worker *worker)
{
    if (p->memory_mib >= 0 && backend == FATTN_BACKEND_CPU && !worker->gpu)
        return "memory: the cpu has no memory of a GPU";
    bool graph = p->exec == FACTS_EXEC_GRAPH || p->exec == FACTS_EXEC_GRAPH_UPDATE ||
                 p->exec == FACTS_EXEC_GRAPH_NATIVE;
    if (graph && backend == FATTN_BACKEND_CPU && !worker->has_graphs)
        return "exec: the cpu has no CUDA graphs";
    if (p->exec == FACTS_EXEC_GRAPH_NATIVE && backend != FATTN_BACKEND_CUDNN)
        return "exec: only cuDNN has native graphs";
    return p->exec == FACTS_EXEC_OVERRIDE_SHAPE ? keeps_its_shape(p, backend, worker) : NULL;
}

/* A case whose buffers are larger than this does not get them twice. */
#define MOVED_MOST ((size_t)256 << 20)

static bool fits_twice(const facts_memory *m)
{
    size_t bytes = m->workspace_bytes;
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        bytes += m->block[id].tensors ? m->block[id].image.bytes : 0;
    return bytes <= MOVED_MOST;
}

/* Has every buffer at another address, while the old buffers hold poison: a plan that keeps an
 * address of its first call reads NaN, or leaves its output unwritten. Without memory for it, the
 * buffers stay where they are. */
static bool run_moved(facts_runs *r, const char *how)
{
    facts_set other = { 0 };
    facts_call call = r->call;
    const fattn_status status =
        fits_twice(r->memory) ? facts_memory_add(&other, r->memory) : FATTN_NO_MEMORY;
    bool good = status == FATTN_NO_MEMORY || facts_runs_check(r, status, NULL);
    if (status == FATTN_OK && (good = facts_runs_check(r, facts_memory_spoil(r->memory), NULL))) {
        facts_memory_use(r->memory, &other);
        call = facts_call_now(r);
    }
    good = good && facts_runs_once(r, &call, FACTS_PATTERN_B);
    if (good)
        facts_runs_compare(r, how);
    facts_memory_drop(&other, r->memory);
    return good;
}

static bool run_again(facts_runs *r, const char *how)
{
    const bool good = facts_runs_once(r, &r->call, FACTS_PATTERN_B);
    if (good)
        facts_runs_compare(r, how);
    return good;
}

static void run_eager(facts_runs *r)
{
    const int32_t times = facts_runs_repeats(r);
    char how[80];
    for (int32_t i = 0; i < times && !facts_runs_over(r); i++) {
        snprintf(how, sizeof how, "two runs over different memory, run 1 and run %d of %d", i + 2,
                 times + 1);
        if (!(i == 0 ? run_moved(r, how) : run_again(r, how)))
            return;
    }
}

/* ---- exec=graph, graph_update, graph_native
 * -----
 */

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

static void run_graph(facts_runs *r)
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

/* ---- exec=override_shape: a plan for one batch entry, some rows and some keys more than the case, and
 * dense strides
 * -----
 */

#define MORE 128 /* rows and keys; a multiple of every tile */

static fattn_problem larger(const fattn_problem *ask)
{
    fattn_problem out = *ask;
    int64_t *const strides[] = { out.q_strides, out.k_strides,     out.v_strides,
                                 out.o_strides, out.stats_strides, out.bias_strides };
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        memset(strides[i], 0, 4 * sizeof *strides[i]);
    out.impl = FATTN_IMPL_UNIFIED;
    out.batch++;
    out.seq_q += MORE;
    out.seq_kv += MORE;
    if (out.has_bias) {
        out.bias_dim[0] += out.bias_dim[0] > 1;
        out.bias_dim[2] += out.bias_dim[2] > 1 ? MORE : 0;
        out.bias_dim[3] += out.bias_dim[3] > 1 ? MORE : 0;
    }
    return out;
}

static bool run_as(facts_runs *r, const fattn_plan *plan, const fattn_problem *as)
{
    if (fattn_plan_workspace_bytes(plan) > r->memory->workspace_bytes &&
        !facts_runs_check(r, facts_memory_workspace(r->memory, fattn_plan_workspace_bytes(plan)),
                          NULL))
        return false;
    r->call = facts_call_now(r);
    facts_call call = r->call;
    call.plan = plan;
    call.as = as;
    return facts_runs_once(r, &call, FACTS_PATTERN_B);
}

static void run_overridden(facts_runs *r)
{
    const fattn_problem wide = larger(&r->problem->ask);
    fattn_problem as = r->problem->ask;
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    fattn_plan *plan = NULL;
    as.impl = FATTN_IMPL_UNIFIED;
    options.override_shapes = 1;
    options.engine = r->problem->engine >= 0 ? r->problem->engine : FATTN_ENGINE_AUTO;
    options.knobs = r->problem->knob_count > 0 ? r->problem->knob : NULL;
    options.knob_count = r->problem->knob_count;
    if (facts_runs_check(r, fattn_plan_create(&plan, r->worker->context, &wide, &options),
                         "a plan of a larger shape")) {
        r->out->ran = *fattn_plan_engine(plan);
        r->out->ran_other = true;
        if (run_as(r, plan, &as))
            facts_runs_judge_all(r, "by a plan of a larger shape");
    }
    if (!r->worker->lost)
        fattn_plan_destroy(plan);
}

/* ---- all ways
 * -----
 */

/* Other bits can come from the engine itself: then two plain runs differ as well, and the way of
 * calling is not the cause. */
static void blame(facts_runs *r)
{
    char text[sizeof r->out->text];
    if (r->out->status != FATTN_OK || r->out->verdict != FACTS_VERDICT_GRAPH_MISMATCH)
        return;
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (r->second[id] == FACTS_VERDICT_GRAPH_MISMATCH) /* not other bits: a wrong answer */
            return;
    memcpy(text, r->out->text, sizeof text);
    r->out->verdict = FACTS_VERDICT_PASS;
    r->out->text[0] = '\0';
    r->otherwise = FACTS_VERDICT_NONDETERMINISTIC;
    if (facts_runs_once(r, &r->call, FACTS_PATTERN_B))
        facts_runs_compare(r, "two plain runs");
    if (facts_runs_over(r))
        return;
    r->out->verdict = FACTS_VERDICT_GRAPH_MISMATCH;
    memcpy(r->out->text, text, sizeof text);
}

void facts_exec_run(facts_runs *r)
{
    static void (*const ways[FACTS_EXEC_COUNT])(facts_runs *) = {
        [FACTS_EXEC_EAGER] = run_eager,
        [FACTS_EXEC_GRAPH] = run_graph,
        [FACTS_EXEC_GRAPH_UPDATE] = run_graph,
        [FACTS_EXEC_GRAPH_NATIVE] = run_graph,
        [FACTS_EXEC_OVERRIDE_SHAPE] = run_overridden,
    };
    bool graph = ways[r->problem->exec] == run_graph;
    r->otherwise = graph ? FACTS_VERDICT_GRAPH_MISMATCH : FACTS_VERDICT_NONDETERMINISTIC;
    if (ways[r->problem->exec])
        ways[r->problem->exec](r);
    blame(r);
}
