#include "both_oracles.h"

#include <math.h>
#include <stdio.h>

#include "judging.h"
#include "numbers/fill/seen.h"
#include "worker/memory/expected_transfer.h"

#define AGREEMENT 1e-12
/* For sigma and the bound. Flushing depends on a threshold: one weight at the threshold changes
 * them by more than rounding does. */
#define AGREEMENT_OF_ERRORS 1e-6

typedef struct comparison {
    facts_reference *there, here;
    facts_error *error;
} comparison;

/* The largest difference, relative to the largest number. NaN and infinities must be equal. */
static double difference(const double *there, const double *here, int64_t count)
{
    double largest = 0, apart = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(there[i]) && isfinite(here[i])) {
            largest = fmax(largest, fabs(there[i]));
            apart = fmax(apart, fabs(there[i] - here[i]));
        } else if (!(there[i] == here[i] || (isnan(there[i]) && isnan(here[i])))) {
            return INFINITY;
        }
    }
    return apart == 0 ? 0 : apart / largest;
}

static bool same_array(comparison *c, facts_tensor_id id, const char *what, const double *there,
                       const double *here, double most)
{
    const int64_t *dim = c->there->memory.problem->tensor[id].dim;
    if (!there || !here)
        return there == here;
    double apart = difference(there, here, dim[0] * dim[1] * dim[2] * dim[3]);
    if (apart <= most)
        return true;
    return facts_fail(c->error, "the oracles disagree: %s.%s by %.3g of the largest",
                      facts_tensor_word(id), what, apart);
}

static bool same_expects(comparison *c, facts_tensor_id id)
{
    facts_answer there;
    const facts_answer *here = &c->here.expectation.answer[id];
    if (!facts_expected_on_host(&there, c->there, id))
        return facts_fail(c->error, "the oracles could not be compared: no memory");
    bool same = same_array(c, id, "want", there.want, here->want, AGREEMENT) &&
                same_array(c, id, "sigma", there.sigma, here->sigma, AGREEMENT_OF_ERRORS) &&
                same_array(c, id, "bound", there.bound, here->bound, AGREEMENT_OF_ERRORS);
    facts_expected_release(&there, c->there, id);
    return same;
}

static bool same_verdict(comparison *c, facts_tensor_id id)
{
    const void *storage = facts_memory_storage(&c->there->memory, id, FACTS_PATTERN_A);
    facts_rule rule = facts_expectation_rule(&c->here.expectation, id, FACTS_PATTERN_A);
    facts_judgement there;
    if (!storage || facts_judging_of(&there, c->there, id, FACTS_PATTERN_A) != FATTN_OK)
        return facts_fail(c->error, "the oracles could not be compared: no memory");
    const facts_tensor tensor = facts_tensor_seen(c->there->memory.problem, id);
    facts_judgement here = facts_judge_tensor(&tensor, storage, &rule);
    if (facts_judgement_verdict(&here) == facts_judgement_verdict(&there))
        return true;
    return facts_fail(c->error, "the oracles disagree: %s is %s for the GPU's and %s for the C one",
                      facts_tensor_word(id), facts_verdict_name(facts_judgement_verdict(&there)),
                      facts_verdict_name(facts_judgement_verdict(&here)));
}

/* A backward reads the same O and Stats, bit for bit, as the other reference did. */
static bool same_inputs(comparison *c)
{
    facts_memory *from = &c->there->memory, *to = &c->here.memory;
    for (facts_tensor_id id = FACTS_TENSOR_O; id <= FACTS_TENSOR_STATS; id++) {
        const facts_tensor *t = &from->problem->tensor[id];
        const void *bytes = facts_memory_storage(from, id, FACTS_PATTERN_A);
        if (!bytes)
            return false;
        for (int64_t i = 0; i < t->elements; i++)
            facts_store(t->dtype, facts_memory_storage(to, id, FACTS_PATTERN_A), i,
                        facts_load(t->dtype, bytes, i));
    }
    return facts_reference_renew(&c->here) == 0;
}

bool facts_both_agree(const facts_trial *trial, facts_reference *reference, facts_error *error)
{
    const facts_problem *p = reference->memory.problem;
    comparison c = { .there = reference, .error = error };
    facts_error why = { 0 };
    const facts_making making = { .worker = reference->memory.worker,
                                  .problem = p,
                                  .like = reference };
    bool agree = facts_trial_prepare(&c.here, &making, NULL, &why) == FATTN_OK &&
                 (p->ask.pass == FATTN_FORWARD || same_inputs(&c));
    if (!agree)
        facts_fail(error, "the oracles could not be compared: %.200s",
                   why.text[0] ? why.text : "no memory");
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT && agree; id++)
        if (trial->judged[id] && facts_tensor_is_output(p, id) &&
            c.here.expectation.answer[id].want)
            agree = same_expects(&c, id) && same_verdict(&c, id);
    facts_reference_destroy(&c.here);
    return agree;
}
