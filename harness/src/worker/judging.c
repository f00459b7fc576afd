#include "judging.h"

#include <math.h>
#include <string.h>

#include "../numbers/arrays.h"
#include "../numbers/expect_arrays.h"
#include "../numbers/judge_keep.h"
#include "../numbers/seen.h"
#include "slabs.h"
#include "try.h"

#define A FACTS_PATTERN_A
#define B FACTS_PATTERN_B

_Static_assert(sizeof(facts_due) == sizeof(int32_t), "kernels read facts_due as int32_t");

static const int32_t *due_of(const facts_truth *t, facts_tensor_id id)
{
    return (const int32_t *)t->expectation.due[id];
}

/* ---- against what is due ------------------------------------------------------------------------------------------------------
 */

static facts_part whole_of(const facts_tensor *tensor, const facts_rule *rule)
{
    return (facts_part){ .batches = tensor->dim[0],
                         .heads = tensor->dim[1],
                         .want = rule->expected.want,
                         .sigma = rule->expected.sigma,
                         .bound = rule->expected.bound };
}

/* The rows of a tensor whose answer is on the GPU, until the next such question. */
static fattn_status rows_there(facts_judged_row **out, facts_truth *t, facts_tensor_id id, const facts_rule *rule,
                               const void *storage, facts_lie lie)
{
    const facts_tensor here = facts_tensor_seen(t->memory.problem, id), there = facts_memory_seen(&t->memory, id);
    const facts_part all = whole_of(&here, rule);
    const facts_bar bar = facts_judge_bar(&here, rule);
    *out = facts_gpu_rows(t->memory.gpu, (size_t)(here.dim[0] * here.dim[1] * here.dim[2]));
    if (!*out)
        return FATTN_NO_MEMORY;
    return facts_gpu_judge(t->memory.gpu, &there, storage, &bar, due_of(t, id), &all, lie, *out);
}

static fattn_status judge_there(facts_judgement *out, facts_truth *t, facts_tensor_id id, const facts_rule *rule)
{
    facts_judged_row *rows;
    fattn_status status = rows_there(&rows, t, id, rule, facts_memory_address(&t->memory, id, rule->pattern), FACTS_LIE_COUNT);
    const facts_tensor tensor = facts_tensor_seen(t->memory.problem, id);
    if (status == FATTN_OK)
        *out = facts_judge_rows(&tensor, rule, rows);
    return status;
}

fattn_status facts_judging_of(facts_judgement *out, facts_truth *t, facts_tensor_id id, facts_pattern pattern)
{
    const facts_problem *p = t->memory.problem;
    *out = (facts_judgement){ .no_memory = true };
    if (t->slabs)
        return facts_slabs_judge(out, t, id, pattern);
    if ((id == FACTS_TENSOR_MAX || id == FACTS_TENSOR_SUM_EXP) && p->tensor[FACTS_TENSOR_MAX].present) {
        const void *max = facts_memory_storage(&t->memory, FACTS_TENSOR_MAX, pattern);
        if (!max)
            return FATTN_NO_MEMORY;
        facts_expect_pair(&t->expectation, p, max);
    }
    facts_rule rule = facts_expectation_rule(&t->expectation, id, pattern);
    if (t->expectation.answer[id].at)
        return judge_there(out, t, id, &rule);
    const void *storage = facts_memory_storage(&t->memory, id, pattern);
    if (!storage)
        return FATTN_NO_MEMORY;
    const facts_tensor tensor = facts_tensor_seen(p, id);
    *out = id == FACTS_TENSOR_RNG_DUMP ? facts_judge_keep(p, storage, t->keep.here, pattern) : facts_judge_tensor(&tensor, storage, &rule);
    return FATTN_OK;
}

/* Is a lie about this part caught by a single element? */
static fattn_status lie_there(bool *moved, bool *caught, facts_truth *t, facts_tensor_id id, const facts_bar *bar, const facts_part *part,
                              facts_lie lie)
{
    const facts_tensor there = facts_memory_seen(&t->memory, id);
    int64_t moves = 0, refused = 0;
    fattn_status status = facts_gpu_lie(t->memory.gpu, &there, bar, due_of(t, id), part, lie, &moves, &refused);
    *moved = moves > 0;
    *caught = moves > 0 && refused > 0;
    return status;
}

/* Most lies are caught by single elements, of the first head already; the others by what their rows say together. */
static fattn_status tell_there(facts_lie_end *out, facts_truth *t, facts_tensor_id id, const facts_rule *rule, facts_lie lie)
{
    const facts_tensor tensor = facts_tensor_seen(t->memory.problem, id);
    const facts_part all = whole_of(&tensor, rule);
    const facts_bar bar = facts_judge_bar(&tensor, rule);
    facts_part first = all;
    facts_judged_row *rows;
    bool moved, caught;
    first.batches = first.heads = 1;
    *out = FACTS_LIE_CAUGHT;
    TRY(lie_there(&moved, &caught, t, id, &bar, &first, lie));
    if (!caught)
        TRY(lie_there(&moved, &caught, t, id, &bar, &all, lie));
    if (!moved)
        *out = FACTS_LIE_SAME;
    if (!moved || caught)
        return FATTN_OK;
    fattn_status status = rows_there(&rows, t, id, rule, NULL, lie);
    if (status == FATTN_OK)
        *out = facts_judge_lie(&tensor, rule, rows);
    return status;
}

fattn_status facts_judging_trusts(bool *out, facts_truth *t, facts_tensor_id id)
{
    facts_rule rule = facts_expectation_rule(&t->expectation, id, A);
    const facts_tensor tensor = facts_tensor_seen(t->memory.problem, id);
    *out = true;
    if (!rule.expected.want) /* no number is due of it */
        return FATTN_OK;
    if (!t->expectation.answer[id].at) {
        *out = facts_judge_trusts(&tensor, &rule);
        return FATTN_OK;
    }
    facts_lie_end zero = FACTS_LIE_SAME, rolled = FACTS_LIE_SAME;
    fattn_status status = tell_there(&zero, t, id, &rule, FACTS_LIE_ZERO);
    if (status == FATTN_OK)
        status = tell_there(&rolled, t, id, &rule, FACTS_LIE_ROW);
    if (status == FATTN_OK && rolled == FACTS_LIE_SAME)
        status = tell_there(&rolled, t, id, &rule, FACTS_LIE_CHANNEL);
    *out = zero != FACTS_LIE_PASSES && rolled != FACTS_LIE_PASSES;
    return status;
}

/* ---- against each other -------------------------------------------------------------------------------------------------------
 */

fattn_status facts_judging_repeat(int64_t *out, facts_truth *t, facts_tensor_id id, int64_t at[4])
{
    facts_memory *m = &t->memory;
    const facts_tensor tensor = facts_memory_seen(m, id);
    *out = 0;
    if (id == FACTS_TENSOR_RNG_DUMP) /* judged, not compared: where no key may be read it is nobody's */
        return FATTN_OK;
    if (m->gpu)
        return facts_gpu_repeat(m->gpu, &tensor, facts_memory_address(m, id, A), facts_memory_address(m, id, B), due_of(t, id), NULL,
                                0, out, at);
    *out = facts_judge_repeat(&tensor, facts_memory_storage(m, id, A), facts_memory_storage(m, id, B),
                              (const facts_due *)due_of(t, id), at);
    return FATTN_OK;
}

fattn_status facts_judging_close(int64_t *out, facts_truth *t, facts_tensor_id id, double share, int64_t at[4])
{
    facts_memory *m = &t->memory;
    const facts_tensor tensor = facts_memory_seen(m, id);
    const facts_answer *answer = &t->expectation.answer[id];
    *out = 0;
    if (t->slabs) /* their bounds are gone: both were judged */
        return FATTN_OK;
    if (answer->at)
        return facts_gpu_repeat(m->gpu, &tensor, facts_memory_address(m, id, A), facts_memory_address(m, id, B), due_of(t, id),
                                answer->bound, share, out, at);
    const void *a = facts_memory_storage(m, id, A), *b = facts_memory_storage(m, id, B);
    const facts_slack slack = { answer->bound, share, answer->parts };
    if (!a || !b)
        return FATTN_NO_MEMORY;
    const facts_tensor here = facts_tensor_seen(m->problem, id);
    *out = facts_judge_repeat_close(&here, a, b, (const facts_due *)due_of(t, id), &slack, at);
    return FATTN_OK;
}

fattn_status facts_judging_bits(uint64_t *out, facts_truth *t, facts_tensor_id id)
{
    facts_memory *m = &t->memory;
    const facts_tensor tensor = facts_memory_seen(m, id);
    if (m->gpu)
        return facts_gpu_bits(m->gpu, &tensor, facts_memory_address(m, id, A), out);
    *out = facts_judge_bits(&tensor, facts_memory_storage(m, id, A));
    return FATTN_OK;
}

/* ---- arrays -------------------------------------------------------------------------------------------------------------------
 */

static double roundoff_of(int32_t dtype)
{
    return ldexp(0.5, -facts_format_of(dtype).fraction_bits);
}

/* Of a tensor that is stored, amax is the largest of what lies there, too. */
static fattn_status judge_amax(facts_judgement *out, facts_truth *t, facts_array_id id, facts_pattern pattern)
{
    const facts_tensor_id of = facts_amax_of(id);
    const double *due = t->expectation.array[id];
    facts_amax rule = { .want = due[0], .least = due[1], .most = due[2], .stored = NAN };
    uint32_t code;
    if (of != FACTS_TENSOR_COUNT && t->memory.problem->tensor[of].present) {
        const facts_tensor tensor = facts_tensor_seen(t->memory.problem, of);
        const void *storage = facts_memory_storage(&t->memory, of, pattern);
        if (!storage)
            return FATTN_NO_MEMORY;
        rule.u = roundoff_of(tensor.dtype);
        rule.stored = facts_judge_largest(&tensor, storage, t->expectation.due[of], t->expectation.unit[of], &rule.saturated);
    }
    memcpy(&code, facts_memory_array(&t->memory, id, pattern), sizeof code);
    *out = facts_judge_amax(&rule, code, pattern);
    return FATTN_OK;
}

fattn_status facts_judging_array(facts_judgement *out, facts_truth *t, facts_array_id id, facts_pattern pattern)
{
    const int64_t count = t->memory.problem->array[id].count;
    const facts_tensor numbers = { .present = true, .dtype = FATTN_F32, .dim = { 1, count, 1, 1 }, .stride = { count, 1, 1, 1 }, .elements = count };
    *out = (facts_judgement){ .no_memory = true };
    if (!t->expectation.array[id])
        return FATTN_NO_MEMORY;
    if (id != FACTS_ARRAY_DSINK)
        return judge_amax(out, t, id, pattern);
    const facts_rule rule = { .expected = { .want = t->expectation.array[id], .bound = t->expectation.array[id] + count }, .pattern = pattern };
    *out = facts_judge_tensor(&numbers, facts_memory_array(&t->memory, id, pattern), &rule);
    return FATTN_OK;
}
