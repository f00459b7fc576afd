/* Whole cases with everything on an emulated GPU: the cpu backend answers, kernels fill, poison, compare and judge. What comes out must be what
 * comes out where everything is here. */
#include "emulated.h"

#include "numbers.h"
#include "worker/trial.h"

static void no_stage(void *owner, const char *word)
{
    (void)owner;
    (void)word;
}

typedef struct outcome {
    facts_trial trial;
    const char *oracle;
} outcome;

static outcome run_on(facts_worker *worker, const facts_problem *problem)
{
    outcome out;
    facts_truth truth;
    fattn_plan *plan = NULL;
    char error[256] = "";
    facts_trial_options options = { .stage = no_stage };
    cr_assert_eq(fattn_plan_create(&plan, worker->context, &problem->ask, NULL), FATTN_OK, "%s", fattn_last_error());
    cr_assert_eq(facts_truth_create(&truth, worker, problem, error), FATTN_OK, "%s", error);
    facts_trial_run(&out.trial, &truth, &plan, &options);
    out.oracle = facts_truth_oracle(&truth);
    fattn_plan_destroy(plan);
    facts_truth_destroy(&truth);
    return out;
}

static void same_outcome(const char *text, const facts_problem *p, const outcome *here, const outcome *there)
{
    const facts_trial *a = &here->trial, *b = &there->trial;
    cr_expect(a->status == b->status && a->verdict == b->verdict, "%s: %s %s, %s", text, facts_verdict_words[b->verdict], b->text, a->text);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_judgement *x = &a->judgement[id], *y = &b->judgement[id];
        if (!facts_tensor_is_output(p, id))
            continue;
        cr_expect(a->judged[id] && b->judged[id], "%s: %s", text, facts_tensor_word(id));
        cr_expect_eq(a->bits[id], b->bits[id], "%s: %s", text, facts_tensor_word(id));
        cr_expect_float_eq(x->ratio, y->ratio, 1e-9, "%s: %s: %g, %g", text, facts_tensor_word(id), x->ratio, y->ratio);
        cr_expect(x->gate == y->gate && x->checked == y->checked && x->wrong == y->wrong && x->overrun == y->overrun, "%s: %s", text,
                  facts_tensor_word(id));
        cr_expect(memcmp(x->worst, y->worst, sizeof x->worst) == 0, "%s: %s", text, facts_tensor_word(id));
    }
}

/* `oracle`: who must have computed what is due. */
static void compare_case(facts_gpu *gpu, fattn_context *context, const char *text, const char *oracle)
{
    static facts_problem p;
    facts_case c;
    facts_error error = { 0 };
    facts_worker worker = { .context = context, .device = FACTS_DEVICE_CPU };
    cr_assert(facts_case_parse(&c, text, &error), "%s: %s", text, error.text);
    cr_assert_eq(facts_problem_resolve(&p, &c, &error), FACTS_RESOLVED, "%s: %s", text, error.text);
    outcome here = run_on(&worker, &p);
    worker.gpu = gpu;
    outcome there = run_on(&worker, &p);
    cr_expect_str_eq(here.oracle, "cpu");
    cr_expect_str_eq(there.oracle, oracle, "%s", text);
    same_outcome(text, &p, &here, &there);
}

Test(emulated, forwards_end_as_they_do_here)
{
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    compare_case(gpu, context, "pass=fwd dtype=bf16 b=2 h=4/2 s=24/40 d=16", "gpu");
    compare_case(gpu, context, "pass=fwd dtype=f16 b=2 h=2 s=24/40 d=16 mask=causal layout=sbhd want=max+sum_exp", "gpu");
    compare_case(gpu, context, "pass=fwd dtype=bf16 b=3 h=2 s=20 d=16 lens=7+20+1 poison=nan stride=gap:o.s.8", "gpu");
    compare_case(gpu, context, "pass=fwd dtype=f32 b=1 h=2 s=33 d=8 bias=1hss fill=needle", "gpu");
    compare_case(gpu, context, "pass=fwd dtype=bf16 b=2 h=2 s=24 d=16 exec=interleave repeat=3 threads=2", "gpu");
    close_emulated(gpu, context);
}

Test(emulated, backwards_too)
{
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    for (int seed = 1; seed <= 6; seed++) { /* some read their own forward's O and Stats */
        char text[200];
        snprintf(text, sizeof text, "pass=bwd dtype=bf16 b=2 h=4/2 s=20/28 d=16 seed=%d", seed);
        compare_case(gpu, context, text, "gpu");
    }
    compare_case(gpu, context, "pass=bwd dtype=f16 b=2 h=2 s=20 d=16 mask=causal bias=1hss dbias=1 deterministic=1", "gpu");
    compare_case(gpu, context, "pass=bwd dtype=bf16 b=3 h=2 s=20 d=16 lens=7+20+1 poison=inf", "gpu");
    close_emulated(gpu, context);
}

Test(emulated, what_the_oracle_there_lacks_is_computed_here)
{
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    compare_case(gpu, context, "pass=fwd dtype=bf16 b=2 h=2 s=24 d=16 mod=softcap:5", "cpu");
    compare_case(gpu, context, "pass=bwd dtype=bf16 b=2 h=2 s=24 d=16 stride=broadcast:k.b;sum:dk.b", "cpu");
    close_emulated(gpu, context);
}

/* What lies in memory reaches those who look at it here, and what they write reaches the run. */
Test(emulated, storages_are_fetched_and_pushed)
{
    static facts_problem p;
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    facts_worker worker = { .context = context, .device = FACTS_DEVICE_CPU, .gpu = gpu };
    facts_case c;
    facts_error where = { 0 };
    facts_memory there, here;
    char error[256];
    cr_assert(facts_case_parse(&c, "pass=fwd dtype=bf16 b=2 h=2 s=24 d=16 stride=gap:q.s.8", &where));
    cr_assert_eq(facts_problem_resolve(&p, &c, &where), FACTS_RESOLVED);
    cr_assert_eq(facts_memory_create(&there, &worker, &p, false, error), FATTN_OK);
    cr_assert_eq(facts_memory_create(&here, &worker, &p, true, error), FATTN_OK);
    size_t bytes = (size_t)p.tensor[FACTS_TENSOR_Q].elements * 2;
    unsigned char *q = facts_memory_storage(&there, FACTS_TENSOR_Q, FACTS_PATTERN_A);
    cr_expect(memcmp(q, facts_memory_storage(&here, FACTS_TENSOR_Q, FACTS_PATTERN_A), bytes) == 0, "gaps included");
    q[6] ^= 1;
    cr_expect_eq(facts_memory_push(&there), FATTN_OK);
    cr_expect_eq(facts_memory_workspace(&there, 64), FATTN_OK);
    cr_expect_eq(facts_memory_arm(&there, FACTS_PATTERN_B, 0), FATTN_OK);
    unsigned char *device = facts_image_storage(&there.block[FACTS_TENSOR_Q].image, there.set->device[FACTS_TENSOR_Q]);
    cr_expect(memcmp(device, q, bytes) == 0);
    int64_t overrun[FACTS_TENSOR_COUNT + 1];
    device[7] ^= 1;                                              /* an input */
    ((unsigned char *)there.set->device[FACTS_TENSOR_O])[3] ^= 1; /* a guard */
    ((unsigned char *)there.set->workspace)[64] ^= 1;
    cr_expect_eq(facts_memory_fetch(&there, FACTS_PATTERN_B, overrun), FATTN_OK);
    cr_expect(overrun[FACTS_TENSOR_Q] == 1 && overrun[FACTS_TENSOR_O] == 1 && overrun[FACTS_TENSOR_COUNT] == 1 && overrun[FACTS_TENSOR_K] == 0);
    facts_memory_destroy(&there);
    facts_memory_destroy(&here);
    close_emulated(gpu, context);
}
