#include "judging.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "numbers/check/judge_keep.h"
#include "numbers/dtype.h"
#include "numbers/expect/expect_whole.h"
#include "numbers/fill/places.h"
#include "numbers/fill/recipe.h"
#include "numbers/fill/score_inputs.h"
#include "worker/gpu/worker_gpu.h"

static const facts_judging_side *side_of(const facts_reference *t)
{
    return t->memory.gpu ? &facts_judging_gpu : &facts_judging_host;
}

fattn_status facts_judging_of(facts_judgement *out, facts_reference *t, facts_tensor_id id,
                              facts_pattern pattern)
{
    *out = (facts_judgement){ .no_memory = true };
    return side_of(t)->one(out, t, id, pattern);
}

fattn_status facts_judging_all(facts_judgement out[FACTS_TENSOR_COUNT],
                               uint64_t bits[FACTS_TENSOR_COUNT], facts_reference *t)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        out[id] = (facts_judgement){ .no_memory = facts_tensor_is_output(t->memory.problem, id) };
        bits[id] = 0;
    }
    const fattn_status status = side_of(t)->all(out, bits, t);
    t->weighed = t->weighed || status == FATTN_OK;
    return status;
}

fattn_status facts_judging_repeat(facts_rerun *out, facts_reference *t)
{
    memset(out->different, 0, sizeof out->different);
    return side_of(t)->repeat(out, t);
}

fattn_status facts_judging_close(int64_t *out, facts_reference *t, facts_tensor_id id, double share,
                                 int64_t at[4])
{
    *out = 0;
    return side_of(t)->differ(out, t, id, &share, at);
}

/* ---- arrays
 * -------------------------------------------------------------------------------------------------------------------
 */

/* If the tensor is stored, its largest element must also be amax. */
static fattn_status judge_amax(facts_judgement *out, facts_reference *t, facts_array_id id,
                               facts_pattern pattern)
{
    const facts_tensor_id of = facts_amax_of(id);
    const double *expects = t->expectation.array[id];
    facts_amax rule = {
        .want = expects[0], .least = expects[1], .most = expects[2], .stored = NAN
    };
    uint32_t code;
    if (of != FACTS_TENSOR_COUNT && t->memory.problem->tensor[of].present) {
        const facts_tensor tensor = facts_tensor_seen(t->memory.problem, of);
        const void *storage = facts_memory_storage(&t->memory, of, pattern);
        if (!storage)
            return FATTN_NO_MEMORY;
        rule.u = facts_dtype_roundoff(tensor.dtype);
        rule.half = facts_decode(tensor.dtype, 1) / 2 * t->expectation.unit[of];
        rule.stored = facts_judge_largest(&tensor, storage, t->expectation.expects[of],
                                          t->expectation.unit[of], &rule.saturated);
    }
    memcpy(&code, facts_memory_array(&t->memory, id, pattern), sizeof code);
    *out = facts_judge_amax(&rule, code, pattern);
    return FATTN_OK;
}

fattn_status facts_judging_array(facts_judgement *out, facts_reference *t, facts_array_id id,
                                 facts_pattern pattern)
{
    const int64_t count = t->memory.problem->array[id].count;
    const facts_tensor numbers = { .present = true,
                                   .dtype = FATTN_F32,
                                   .dim = { 1, count, 1, 1 },
                                   .stride = { count, 1, 1, 1 },
                                   .elements = count };
    *out = (facts_judgement){ .no_memory = true };
    if (!t->expectation.array[id])
        return FATTN_NO_MEMORY;
    if (id != FACTS_ARRAY_DSINK)
        return judge_amax(out, t, id, pattern);
    const facts_rule rule = { .expected = { .want = t->expectation.array[id],
                                            .bound = t->expectation.array[id] + count },
                              .pattern = pattern };
    *out = facts_judge_tensor(&numbers, facts_memory_array(&t->memory, id, pattern), &rule);
    return FATTN_OK;
}

/* C code compares the answers: they are in host memory, or have been copied there. */

fattn_status facts_judging_rule(facts_rule *out, facts_reference *t, facts_tensor_id id,
                                facts_pattern pattern)
{
    const facts_problem *p = t->memory.problem;
    if ((id == FACTS_TENSOR_MAX || id == FACTS_TENSOR_SUM_EXP) &&
        p->tensor[FACTS_TENSOR_MAX].present) {
        const void *max = facts_memory_storage(&t->memory, FACTS_TENSOR_MAX, pattern);
        if (!max)
            return FATTN_NO_MEMORY;
        facts_expect_pair(&t->expectation, p, max);
    }
    *out = facts_expectation_rule(&t->expectation, id, pattern);
    return FATTN_OK;
}

bool facts_judging_can_detect(const facts_problem *p, facts_tensor_id id)
{
    const bool of_scores =
        id == FACTS_TENSOR_DQ || id == FACTS_TENSOR_DK || id == FACTS_TENSOR_DBIAS;
    return facts_tensor_is_output(p, id) && facts_fill_is_dense(p->fill) &&
           (!of_scores || facts_oracle_two_keys(p));
}

void facts_judging_weigh(facts_reference *t, facts_tensor_id id)
{
    const facts_rule rule = facts_expectation_rule(&t->expectation, id, FACTS_PATTERN_A);
    const facts_tensor tensor = facts_tensor_seen(t->memory.problem, id);
    t->untrusted[id] = rule.expected.want && !facts_judge_trusts(&tensor, &rule);
}

static fattn_status one(facts_judgement *out, facts_reference *t, facts_tensor_id id,
                        facts_pattern pattern)
{
    const facts_problem *p = t->memory.problem;
    const facts_tensor tensor = facts_tensor_seen(p, id);
    const void *storage = facts_memory_storage(&t->memory, id, pattern);
    facts_rule rule;
    TRY(facts_judging_rule(&rule, t, id, pattern));
    if (!storage)
        return FATTN_NO_MEMORY;
    *out = id == FACTS_TENSOR_RNG_DUMP ? facts_judge_keep(p, storage, t->keep.here, pattern)
                                       : facts_judge_tensor(&tensor, storage, &rule);
    return FATTN_OK;
}

static fattn_status all(facts_judgement out[FACTS_TENSOR_COUNT], uint64_t bits[FACTS_TENSOR_COUNT],
                        facts_reference *t)
{
    const facts_problem *p = t->memory.problem;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT && !t->weighed; id++)
        if (facts_judging_can_detect(p, id))
            facts_judging_weigh(t, id);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!facts_tensor_is_output(p, id))
            continue;
        const facts_tensor tensor = facts_tensor_seen(p, id);
        TRY(one(&out[id], t, id, FACTS_PATTERN_A));
        bits[id] = facts_judge_bits(&tensor, facts_memory_storage(&t->memory, id, FACTS_PATTERN_A));
    }
    return FATTN_OK;
}

static fattn_status differ(int64_t *out, facts_reference *t, facts_tensor_id id,
                           const double *share, int64_t at[4])
{
    const facts_tensor tensor = facts_tensor_seen(t->memory.problem, id);
    const facts_answer *answer = &t->expectation.answer[id];
    const void *a = facts_memory_storage(&t->memory, id, FACTS_PATTERN_A),
               *b = facts_memory_storage(&t->memory, id, FACTS_PATTERN_B);
    if (!a || !b)
        return FATTN_NO_MEMORY;
    const facts_slack slack = { answer->bound, share ? *share : 0, answer->parts };
    *out = share ? facts_judge_repeat_close(&tensor, a, b, t->expectation.expects[id], &slack, at)
                 : facts_judge_repeat(&tensor, a, b, t->expectation.expects[id], at);
    return FATTN_OK;
}

static fattn_status repeat(facts_rerun *out, facts_reference *t)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (out->asked[id])
            TRY(differ(&out->different[id], t, id, NULL, out->at[id]));
    return FATTN_OK;
}

const facts_judging_side facts_judging_host = { one, all, differ, repeat };
