/* How a call is made, through the real worker on the cpu; and the problem of the forward that goes
 * before a captured backward. */
#include "../case/asked_problem.h"
#include "asking.h"
#include "fattn/device.h"
#include "fattn/policy.h"
#include "language/case.h"
#include "numbers/fill/recipe.h"
#include "problem/case_problem.h"
#include "worker/exec/runs.h"
#include "worker/memory/case_memory.h"
#include "worker/memory/own_forward.h"
#include "worker/target/loaded_target.h"

#define SMALL "dtype=bf16 b=2 h=4/2 s=40/56 d=32 "

Test(exec, one_backward_in_five_reads_its_own_forward)
{
    int own = 0;
    char name[200], other[200];
    for (int seed = 1; seed <= 400; seed++) {
        snprintf(name, sizeof name, "pass=bwd " SMALL "seed=%d", seed);
        snprintf(other, sizeof other, "pass=bwd " SMALL "engine=3 seed=%d", seed);
        facts_problem p = problem_asked(name), q = problem_asked(other);
        cr_expect_eq(p.own_forward, q.own_forward, "every engine of a case reads the same");
        if (own == 0 && p.own_forward) {
            json_t *rows = check_rows(&(asked){ name, "pass" }, 1);
            cr_expect_str_eq(text_at(json_array_get(rows, 0), "inputs_from"), "forward");
            json_decref(rows);
        }
        own += p.own_forward;
    }
    cr_expect(own > 50 && own < 110, "%d of 400", own);
    cr_expect_not(problem_asked("pass=fwd " SMALL).own_forward);
}

Test(exec, repeats_bias_modifications_and_policies_reach_the_call)
{
    static const asked cases[] = {
        { "pass=fwd " SMALL "policy=cudnn", "pass" },
        { "pass=fwd " SMALL "policy=math", "pass" },
        { "pass=fwd " SMALL "policy=any", "pass" },
        { "pass=fwd " SMALL "repeat=20 want=stats lens=40+17/33+56", "pass" },
        { "pass=bwd " SMALL "repeat=8 deterministic=1", "pass" },
        { "pass=fwd " SMALL "bias=1hss", "pass" },
        { "pass=bwd " SMALL "bias=b1ss dbias=1", "pass" },
        { "pass=bwd " SMALL "mod=relpos", "pass" },
        { "pass=bwd " SMALL "mod=document:3", "pass" },
        { "pass=fwd " SMALL "exec=graph", "unsupported", NULL, "unsupported", "CUDA graphs" },
        { "pass=bwd " SMALL "exec=graph_update", "unsupported", NULL, "unsupported",
          "CUDA graphs" },
        { "pass=fwd " SMALL "exec=graph_native", "unsupported", NULL, "unsupported", "graphs" },
        { "pass=fwd " SMALL "exec=override_shape", "unsupported", NULL, "unsupported",
          "other shapes" },
    };
    json_t *rows = check_rows(cases, sizeof cases / sizeof *cases);
    for (size_t i = 0; i < 3; i++)
        cr_expect_str_eq(text_at(json_array_get(rows, i), "backend"), "cpu", "whatever the policy");
    json_decref(rows);
}

Test(exec, the_forward_of_a_backward_is_a_problem_of_its_own)
{
    facts_problem p = problem_asked("pass=bwd " SMALL
                                    "mask=causal_br bias=1hss dbias=1 deterministic=1 exec=graph");
    fattn_problem forward = facts_own_forward(&p.ask), out;
    cr_assert_eq(fattn_problem_resolve(&forward, &out), FATTN_OK, "%s", fattn_last_error());
    cr_expect(out.pass == FATTN_FORWARD && out.outputs == FATTN_WANT_STATS && !out.deterministic &&
              !out.dbias);
    cr_expect_eq(memcmp(out.o_strides, p.ask.o_strides, sizeof out.o_strides), 0);
    cr_expect_eq(memcmp(out.stats_strides, p.ask.stats_strides, sizeof out.stats_strides), 0);
    cr_expect(facts_has_own_forward(&p));
    p.check = FACTS_CHECK_IDENTITIES;
    cr_expect_not(facts_has_own_forward(&p),
                  "the check's runs read the reference's O and Stats, and must give the same bits");
    p.check = FACTS_CHECK_NONE;
    p.exec = FACTS_EXEC_EAGER;
    cr_expect_not(facts_has_own_forward(&p));
}

/* 0 as a set of ragged tensors means all of them. */
Test(exec, the_forward_of_ragged_gradients_is_dense)
{
    facts_problem p = problem_asked("pass=bwd " SMALL "dqkv=thd padding=random");
    fattn_problem forward = facts_own_forward(&p.ask), out;
    cr_assert_eq(p.ask.ragged, FATTN_RAGGED_DQ | FATTN_RAGGED_DK | FATTN_RAGGED_DV);
    cr_assert_eq(fattn_problem_resolve(&forward, &out), FATTN_OK, "%s", fattn_last_error());
    cr_expect_eq(out.ragged, 0);
}

Test(exec, a_policy_names_who_may_answer)
{
    facts_worker gpu = { .device = FACTS_DEVICE_GPU }, cpu = { .device = FACTS_DEVICE_CPU };
    cr_expect(facts_policy_allows(&gpu, FACTS_POLICY_CUDNN, FATTN_BACKEND_CUDNN));
    cr_expect_not(facts_policy_allows(&gpu, FACTS_POLICY_CUDNN, FATTN_BACKEND_MATH));
    cr_expect_not(facts_policy_allows(&gpu, FACTS_POLICY_MATH, FATTN_BACKEND_CUDNN));
    cr_expect(facts_policy_allows(&gpu, FACTS_POLICY_ANY, FATTN_BACKEND_MATH));
    cr_expect(facts_policy_allows(&cpu, FACTS_POLICY_MATH, FATTN_BACKEND_CPU));
}

Test(exec, a_policy_holds_until_it_ends)
{
    facts_worker gpu = { .device = FACTS_DEVICE_GPU };
    facts_error error = { 0 };
    int depth;
    cr_assert_eq(facts_policy_begin(&depth, &gpu, FACTS_POLICY_ANY, &error), FATTN_OK, "%s",
                 error.text);
    cr_expect_eq(fattn_policy_depth(), 1);
    facts_policy_end(depth);
    cr_expect_eq(fattn_policy_depth(), 0);
}

Test(exec, derived_layouts_are_checked_where_a_stride_is_0)
{
    static const char *const names[] = {
        "pass=fwd " SMALL, "pass=fwd " SMALL "stride=broadcast:q.b",
        "pass=fwd " SMALL "stride=broadcast:q.s",
        "pass=bwd " SMALL "stride=broadcast:q.h+k.s+v.b layout=sbhd",
        "pass=fwd dtype=f16 b=1 h=1 s=1/40 d=64 stride=broadcast:k.h+v.s"
    };
    facts_error why = { 0 };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        facts_problem p = problem_asked(names[i]);
        cr_expect(facts_layouts_hold(&p, &why), "%s: %s", names[i], why.text);
    }
}

/* Lengths and offsets of single queries that are packed can be nothing else. */
static bool is_fixed(const facts_problem *p, facts_array_id id)
{
    const bool of_queries = id == FACTS_ARRAY_Q_OFFSETS || id == FACTS_ARRAY_O_OFFSETS ||
                            id == FACTS_ARRAY_STATS_OFFSETS || id == FACTS_ARRAY_SEQ_LEN_Q;
    return of_queries && p->ask.seq_q == 1;
}

static void expect_other_contents(fattn_context *context, const char *text)
{
    static facts_problem p;
    facts_worker worker = { .context = context, .device = FACTS_DEVICE_CPU };
    facts_memory memory;
    facts_error error = { 0 };
    fattn_plan *plan = NULL;
    p = problem_asked(text);
    cr_assert_eq(facts_memory_create(&memory, &worker, &p, true, &error), FATTN_OK, "%s: %s", text,
                 error.text);
    cr_assert_eq(fattn_plan_create(&plan, context, &p.ask, NULL), FATTN_OK, "%s: %s", text,
                 fattn_last_error());
    cr_assert_eq(facts_memory_workspace(&memory, fattn_plan_workspace_bytes(plan)), FATTN_OK);
    cr_assert_eq(facts_memory_mislead(&memory), FATTN_OK);
    const fattn_tensors tensors = facts_memory_tensors(&memory);
    cr_expect_eq(fattn_call_check(plan, &tensors, NULL, NULL), FATTN_OK, "%s: %s", text,
                 fattn_last_error());
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        const size_t bytes = facts_array_bytes(&p.array[id]);
        if (bytes == 0 || p.array[id].output)
            continue;
        const bool same =
            memcmp(memory.array[id], facts_memory_array_address(&memory, id), bytes) == 0;
        cr_expect_eq(same, is_fixed(&p, id), "%s: %s", text, facts_array_words[id]);
    }
    facts_memory_destroy(&memory);
    fattn_plan_destroy(plan);
}

Test(exec, while_a_graph_is_recorded_the_arrays_hold_another_legal_call)
{
    static const char *const cases[] = {
        "pass=fwd " SMALL "padding=random",
        "pass=bwd b=4 h=2 s=40 d=32 lens=1+40+0+2/1+40+0+1",
        "pass=fwd " SMALL "padding=full cu=both",
        "pass=fwd " SMALL "padding=one lens_shape=bcast",
        "pass=bwd b=4 h=2 s=40 d=32 layout=thd lens=7+-1+40+1/9+-1+33+2 slots=+3",
        "pass=bwd " SMALL "layout=thd padding=random offsets=i64 rmult=tokens",
        "pass=fwd b=3 h=2 s=1/40 d=32 q=thd o=thd padding=random",
        "pass=fwd b=3 h=4/2 s=24/96 d=32 padding=random paged=16",
        "pass=fwd b=3 h=4/2 s=24/96 d=32 padding=random paged=16 table=packed",
        "pass=fwd b=3 h=4/2 s=24/96 d=32 padding=random paged=v:32 table=shared",
        "pass=fwd " SMALL "scale=tensor softmax=sink alibi=1",
        "pass=bwd " SMALL "softmax=off_by_one dropout=0.1 rng_dtype=i32",
        "pass=bwd " SMALL "dropout=0.1 dropout_mask=1",
        "pass=fwd b=1 h=2 s=100/280 d=32 blockmask=random rope=1",
        "pass=bwd dtype=e4m3 b=2 h=2 s=64 d=32 scales=pow2",
        "pass=bwd dtype=e5m2 b=2 h=2 s=64 d=32 scales=odd",
        "pass=bwd dtype=mxe4m3 b=2 h=2 s=128 d=64",
    };
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *context;
    options.device_kind = FATTN_DEVICE_CPU;
    cr_assert_eq(fattn_context_create(&context, &options), FATTN_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_other_contents(context, cases[i]);
    fattn_context_destroy(context);
}

/* The forward that shows what a backward drops has Stats of f32, as no forward writes others. */
Test(exec, dropout_of_a_backward_with_16_bit_stats_is_shown_by_its_forward)
{
    static facts_problem kept;
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    facts_worker worker = { .device = FACTS_DEVICE_CPU };
    fattn_plan *plan = NULL;
    options.device_kind = FATTN_DEVICE_CPU;
    cr_assert_eq(fattn_context_create(&worker.context, &options), FATTN_OK);
    const facts_problem p = problem_asked("pass=bwd " SMALL "dropout=0.1 stats_dtype=bf16");
    cr_assert_eq(facts_kept_plan(&plan, &kept, &worker, &p, FATTN_BACKEND_CPU, true), FATTN_OK,
                 "%s", fattn_last_error());
    cr_expect(kept.ask.pass == FATTN_FORWARD && kept.tensor[FACTS_TENSOR_STATS].dtype == FATTN_F32);
    fattn_plan_destroy(plan);
    /* Each backend has its own random bits: no other may show them, whatever the policy allows. */
    const facts_problem drops = problem_asked("pass=fwd " SMALL "dropout=0.1");
    cr_expect_neq(facts_kept_plan(&plan, &kept, &worker, &drops, FATTN_BACKEND_MATH, true),
                  FATTN_OK);
    fattn_context_destroy(worker.context);
}
