/* One case twice, judged here and judged on a GPU: what comes out must be the same. */
#ifndef FACTS_TEST_OUTCOMES_H
#define FACTS_TEST_OUTCOMES_H

#include <criterion/criterion.h>

#include "../case/asked_problem.h"
#include "../numbers/numbers.h"
#include "fattn/score_mod.h"
#include "numbers/fill/score_inputs.h"
#include "worker/exec/trial.h"
#include "worker/memory/case_reference.h"

static inline void no_stage(void *owner, const char *word)
{
    (void)owner;
    (void)word;
}

typedef struct outcome {
    facts_trial trial;
    facts_reference reference;
    const char *oracle;
} outcome;

static inline outcome run_on(facts_worker *worker, const facts_problem *asked)
{
    outcome out = { .oracle = NULL };
    fattn_plan *plan = NULL;
    fattn_score_mod *mod = NULL;
    facts_problem problem = *asked;
    facts_trial_options options = { .worker = worker, .problem = &problem, .stage = no_stage };
    cr_assert_eq(facts_mod_create(&mod, &problem), FATTN_OK, "%s", fattn_last_error());
    problem.ask.score_mod = mod;
    cr_assert_eq(fattn_plan_create(&plan, worker->context, &problem.ask, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    facts_trial_run(&out.trial, &out.reference, plan, &options);
    out.oracle = facts_reference_oracle(&out.reference);
    cr_assert(out.trial.prepared, "%s", out.trial.text);
    cr_expect(!out.trial.facts_failed, "%s", out.trial.text);
    fattn_plan_destroy(plan);
    fattn_score_mod_destroy(mod);
    return out;
}

/* How far a GPU's sigmas and bounds, which may lie above the C ones (docs/numerics.md, section 2),
 * move a ratio; then another element, or another gate, may be the worst. 0: they are the C ones. */
#ifndef RATIOS_APART
#define RATIOS_APART 0.0
#endif

static inline void same_outcome(const char *text, const facts_problem *p, const outcome *here,
                                const outcome *there)
{
    const facts_trial *a = &here->trial, *b = &there->trial;
    cr_expect(a->status == b->status && a->verdict == b->verdict, "%s: %s %s, %s", text,
              facts_verdict_name(b->verdict), b->text, a->text);
    const facts_held *left = &a->check.held, *right = &b->check.held;
    cr_expect_eq(a->check.runs, b->check.runs, "%s: %d runs, %d: %s", text, a->check.runs,
                 b->check.runs, b->text);
    cr_expect(left->compared == right->compared && left->wrong == right->wrong, "%s", text);
    cr_expect_float_eq(left->ratio, right->ratio, 1e-9 + RATIOS_APART * fabs(left->ratio),
                       "%s: %g, %g", text, left->ratio, right->ratio);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_judgement *x = &a->judgement[id], *y = &b->judgement[id];
        if (!facts_tensor_is_output(p, id))
            continue;
        cr_expect(a->judged[id] && b->judged[id], "%s: %s", text, facts_tensor_word(id));
        cr_expect_eq(a->bits[id], b->bits[id], "%s: %s", text, facts_tensor_word(id));
        cr_expect_float_eq(x->ratio, y->ratio, 1e-9 + RATIOS_APART * fabs(x->ratio),
                           "%s: %s: %g, %g", text, facts_tensor_word(id), x->ratio, y->ratio);
        cr_expect(x->checked == y->checked && x->wrong == y->wrong && x->overrun == y->overrun,
                  "%s: %s", text, facts_tensor_word(id));
        if (RATIOS_APART > 0.0)
            continue;
        cr_expect(x->gate == y->gate, "%s: %s", text, facts_tensor_word(id));
        cr_expect(memcmp(x->worst, y->worst, sizeof x->worst) == 0, "%s: %s", text,
                  facts_tensor_word(id));
    }
}

/* The largest difference must be within `most` of the largest number; NaN and infinities are equal. */
static inline void same_numbers(const char *text, const char *tensor, const double *a,
                                const double *b, int64_t count, double most)
{
    double largest = 0, apart = 0;
    cr_assert_eq(a != NULL, b != NULL, "%s: %s", text, tensor);
    for (int64_t i = 0; a && i < count; i++) {
        const bool finite = isfinite(a[i]) && isfinite(b[i]);
        cr_assert(finite || a[i] == b[i] || (isnan(a[i]) && isnan(b[i])), "%s: %s", text, tensor);
        largest = fmax(largest, finite ? fabs(a[i]) : 0);
        apart = fmax(apart, finite ? fabs(a[i] - b[i]) : 0);
    }
    cr_expect(apart <= most * largest, "%s: %s: apart by %g of %g", text, tensor, apart, largest);
}

/* Whether weights are flushed depends on a threshold: sigma and the bound move by more than rounding. */
static inline void same_expects(const char *text, const facts_problem *p,
                                const facts_reference *here, const facts_reference *there)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const int64_t *dim = p->tensor[id].dim, count = dim[0] * dim[1] * dim[2] * dim[3];
        const char *word = facts_tensor_word(id);
        facts_answer a, b;
        if (!facts_tensor_is_output(p, id) || !facts_expected_on_host(&a, here, id))
            continue;
        cr_assert(facts_expected_on_host(&b, there, id), "%s: %s", text, word);
        same_numbers(text, word, a.want, b.want, count, 1e-12);
        same_numbers(text, word, a.sigma, b.sigma, count, 1e-6);
        same_numbers(text, word, a.bound, b.bound, count, 1e-6);
        facts_expected_release(&a, here, id);
        facts_expected_release(&b, there, id);
    }
}

/* `oracle`: who must have computed what is due. */
static inline void compare_case(facts_worker base, facts_gpu *gpu, const char *text,
                                const char *oracle)
{
    const facts_problem p = problem_asked(text);
    facts_worker worker = base;
    outcome here = run_on(&worker, &p);
    worker.gpu = gpu;
    outcome there = run_on(&worker, &p);
    cr_expect_str_eq(here.oracle, "cpu");
    cr_expect_str_eq(there.oracle, oracle, "%s", text);
    same_outcome(text, &p, &here, &there);
    same_expects(text, &p, &here.reference, &there.reference);
    facts_reference_destroy(&here.reference);
    facts_reference_destroy(&there.reference);
}

#endif
