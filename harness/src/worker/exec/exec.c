#include "exec.h"

#include <stdio.h>
#include <string.h>

#include "exec_ways.h"

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
        [FACTS_EXEC_GRAPH] = facts_exec_graph,
        [FACTS_EXEC_GRAPH_UPDATE] = facts_exec_graph,
        [FACTS_EXEC_GRAPH_NATIVE] = facts_exec_graph,
        [FACTS_EXEC_OVERRIDE_SHAPE] = facts_exec_overridden,
    };
    bool graph = ways[r->problem->exec] == facts_exec_graph;
    r->otherwise = graph ? FACTS_VERDICT_GRAPH_MISMATCH : FACTS_VERDICT_NONDETERMINISTIC;
    if (ways[r->problem->exec])
        ways[r->problem->exec](r);
    blame(r);
}
