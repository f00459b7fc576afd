/* Three ways: a plan that was saved and loaded; a call between calls of another plan; a plan from
 * the cache, next to the most similar plan. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exec_ways.h"
#include "fattn/cache.h"
#include "fattn/device.h"
#include "fattn/score_mod.h"
#include "numbers/fill/mod.h"

void facts_exec_saved(facts_runs *r)
{
    fattn_context *context = r->worker->context;
    fattn_plan *loaded = NULL, *compiled = *r->plan;
    char *bytes = NULL;
    size_t count = 0;
    if (facts_runs_check(r, fattn_plan_save(compiled, &bytes, &count), "saving the plan") &&
        facts_runs_check(r, fattn_plan_load(&loaded, context, &r->problem->ask, bytes, count),
                         "loading the plan")) {
        facts_call call = r->call;
        call.plan = loaded;
        if (fattn_plan_workspace_bytes(loaded) != r->memory->workspace_bytes)
            facts_runs_find(
                r, FACTS_VERDICT_WRONG,
                "the plan that was loaded needs %zu bytes of workspace, the one that was saved %zu",
                fattn_plan_workspace_bytes(loaded), r->memory->workspace_bytes);
        for (int32_t i = 0; i < facts_exec_repeats(r) && !facts_runs_over(r); i++)
            if (facts_runs_once(r, &call, FACTS_PATTERN_B))
                facts_runs_compare(r, "the plan that was compiled and the one that was loaded");
    }
    fattn_plan_destroy(loaded);
    fattn_free(bytes);
}

/* ---- another plan's calls between
 * ------------------------------------------------------------------------------------------- */

typedef struct neighbour {
    facts_problem problem;
    facts_memory memory;
    fattn_plan *plan;
    facts_call call;
} neighbour;

static bool open_neighbour(facts_runs *r, neighbour *n)
{
    char name[120];
    facts_error error = { 0 };
    facts_case c;
    facts_error where;
    const char *type = r->problem->ask.dtype == FATTN_F16   ? "f16"
                       : r->problem->ask.dtype == FATTN_F32 ? "f32"
                                                            : "bf16";
    snprintf(name, sizeof name, "pass=fwd dtype=%s b=1 h=2 s=192 d=64 want=stats", type);
    if (!facts_case_parse(&c, name, &where) ||
        facts_problem_resolve(&n->problem, &c, &where) != FACTS_RESOLVED) {
        r->out->status = FATTN_INTERNAL;
        snprintf(r->out->text, sizeof r->out->text, "the call between: %.200s", where.text);
        return false;
    }
    if (!facts_runs_check(r,
                          facts_plan_get(&n->plan, r->worker->plans, r->worker->context,
                                         &n->problem.ask, NULL, NULL),
                          "the call between"))
        return false;
    fattn_status status = facts_memory_create(&n->memory, r->worker, &n->problem, false, &error);
    if (status == FATTN_OK)
        status = facts_memory_fill(&n->memory, &error);
    if (status != FATTN_OK) {
        r->out->status = status;
        snprintf(r->out->text, sizeof r->out->text, "the call between: %.250s", error.text);
        return false;
    }
    if (!facts_runs_check(r,
                          facts_memory_workspace(&n->memory, fattn_plan_workspace_bytes(n->plan)),
                          "the call between"))
        return false;
    n->call = (facts_call){ .plan = n->plan, .tensors = facts_memory_tensors(&n->memory) };
    if (r->memory->workspace_bytes >= n->memory.workspace_bytes &&
        r->memory->workspace_bytes > 0) { /* one workspace for all on a stream */
        n->call.tensors.workspace = r->call.tensors.workspace;
        n->call.tensors.workspace_bytes = r->memory->workspace_bytes;
    }
    return true;
}

static void close_neighbour(facts_runs *r, neighbour *n)
{
    if (n->memory.problem)
        facts_memory_destroy(&n->memory);
    if (!r->worker->lost)
        fattn_plan_destroy(n->plan);
}

static bool fetch_neighbour(facts_runs *r, neighbour *n, facts_pattern pattern)
{
    int64_t overrun[FACTS_PLACES];
    return facts_runs_check(r, facts_memory_fetch(&n->memory, pattern, overrun),
                            "the call between");
}

/* The other plan alone, over poison A: its calls between must give the same answer. */
static bool run_neighbour(facts_runs *r, neighbour *n)
{
    return facts_runs_check(r, facts_memory_arm(&n->memory, FACTS_PATTERN_A, 0), NULL) &&
           facts_runs_check(r, facts_call_launch(&n->call, r->worker->stream),
                            "the call between") &&
           facts_runs_check(r, fattn_stream_synchronize(r->worker->context, r->worker->stream),
                            "the call between") &&
           fetch_neighbour(r, n, FACTS_PATTERN_A);
}

static void compare_neighbour(facts_runs *r, neighbour *n)
{
    static const facts_tensor_id outputs[] = { FACTS_TENSOR_O, FACTS_TENSOR_STATS };
    if (!fetch_neighbour(r, n, FACTS_PATTERN_B))
        return;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        int64_t at[4];
        if (facts_judge_repeat(&n->problem.tensor[outputs[i]],
                               facts_memory_storage(&n->memory, outputs[i], FACTS_PATTERN_A),
                               facts_memory_storage(&n->memory, outputs[i], FACTS_PATTERN_B), NULL,
                               at))
            facts_runs_find(r, FACTS_VERDICT_NONDETERMINISTIC,
                            "the call of the other plan: its %s differs when it runs between calls "
                            "of this case",
                            facts_tensor_word(outputs[i]));
    }
}

/* ---- from the cache
 * --------------------------------------------------------------------------------------------------------------
 */

/* A problem that differs from the case in one number: of the score modification, or the scale.
 * Destroy *mod with fattn_score_mod_destroy. */
static fattn_status near(fattn_problem *out, fattn_score_mod **mod, const facts_problem *p)
{
    facts_problem other = *p;
    *mod = NULL;
    *out = p->ask;
    if (p->mod != FACTS_MOD_NONE && p->mod_parameter[0] > 0 && isfinite(p->mod_parameter[0])) {
        other.mod_parameter[0] = 2 * p->mod_parameter[0];
        fattn_status status = facts_mod_create(mod, &other);
        out->score_mod = *mod;
        return status;
    }
    out->has_attn_scale = 1;
    out->attn_scale = 2 * p->ask.attn_scale;
    return FATTN_OK;
}

/* A cache that confused the two plans would give the other one's answer. */
static void run_cached(facts_runs *r)
{
    fattn_problem other;
    fattn_score_mod *mod;
    fattn_plan *kin = NULL, *cached = NULL;
    if (facts_runs_check(r, near(&other, &mod, r->problem), "the plan beside it") &&
        facts_runs_check(r, fattn_plan_get(&kin, r->worker->context, &other, NULL),
                         "the plan beside it") &&
        facts_runs_check(r, fattn_plan_get(&cached, r->worker->context, &r->problem->ask, NULL),
                         "its plan out of the cache")) {
        facts_call call = r->call;
        call.plan = cached;
        if (fattn_plan_workspace_bytes(cached) > r->memory->workspace_bytes)
            facts_runs_find(
                r, FACTS_VERDICT_NONDETERMINISTIC,
                "the plan from the cache needs %zu bytes of workspace, the plan of the case %zu",
                fattn_plan_workspace_bytes(cached), r->memory->workspace_bytes);
        else if (facts_runs_once(r, &call, FACTS_PATTERN_B))
            facts_runs_compare(r, "its own plan and the one out of the cache");
    }
    fattn_plan_destroy(cached);
    fattn_plan_destroy(kin);
    fattn_score_mod_destroy(mod);
}

void facts_exec_interleave(facts_runs *r)
{
    neighbour n = { .plan = NULL };
    bool good = open_neighbour(r, &n) && run_neighbour(r, &n);
    for (int32_t i = 0; good && i < facts_exec_repeats(r) && !facts_runs_over(r); i++) {
        facts_call *const order[3] = { &n.call, &r->call, &n.call };
        good = facts_runs_arm(r, FACTS_PATTERN_B) &&
               facts_runs_check(r, facts_memory_arm(&n.memory, FACTS_PATTERN_B, 0), NULL);
        for (size_t step = 0; good && step < 3; step++)
            good = facts_runs_check(r, facts_call_launch(order[step], r->worker->stream), NULL);
        good = good &&
               facts_runs_check(r, fattn_stream_synchronize(r->worker->context, r->worker->stream),
                                NULL) &&
               facts_runs_fetch(r, FACTS_PATTERN_B);
        if (good)
            facts_runs_compare(r, "a run alone and one between another plan's calls");
        if (good)
            compare_neighbour(r, &n);
    }
    close_neighbour(r, &n);
    if (good && !facts_runs_over(r) && r->problem->engine == FACTS_ENGINE_AUTO)
        run_cached(r);
}
