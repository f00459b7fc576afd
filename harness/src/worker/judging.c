#include "judging.h"

#include <math.h>
#include <stdlib.h>
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

/* Statistics are due here: on the device while they are judged. */
typedef struct lent {
    void *want, *bound;
} lent;

static fattn_status lend(lent *out, facts_gpu *gpu, facts_part *part, const facts_tensor *tensor)
{
    const size_t bytes = (size_t)(tensor->dim[0] * tensor->dim[1] * tensor->dim[2] * tensor->dim[3]) * sizeof(double);
    TRY(facts_gpu_make(gpu, &out->want, bytes));
    TRY(facts_gpu_make(gpu, &out->bound, bytes));
    TRY(facts_gpu_send(gpu, out->want, part->want, bytes));
    TRY(facts_gpu_send(gpu, out->bound, part->bound, bytes));
    part->want = out->want;
    part->bound = out->bound;
    return FATTN_OK;
}

/* A tensor whose answer is on the GPU; storage NULL: a lie about it. */
static fattn_status judge_there(facts_judgement *out, facts_truth *t, facts_tensor_id id, const facts_rule *rule, const void *storage,
                                facts_lie lie)
{
    facts_gpu *gpu = t->memory.gpu;
    const facts_tensor here = facts_tensor_seen(t->memory.problem, id), there = facts_memory_seen(&t->memory, id);
    const facts_bar bar = facts_judge_bar(&here, rule);
    const facts_judged_rows weights = facts_judge_weights(&here, rule);
    facts_part all = whole_of(&here, rule);
    facts_judged_slice *slices = malloc((size_t)(here.dim[0] * here.dim[1] + 1) * sizeof *slices);
    lent there_too = { NULL, NULL };
    fattn_status status = slices ? FATTN_OK : FATTN_NO_MEMORY;
    if (status == FATTN_OK && !t->expectation.answer[id].at)
        status = lend(&there_too, gpu, &all, &here);
    if (status == FATTN_OK)
        status = facts_gpu_slices(gpu, &there, storage, &bar, due_of(t, id), &all, &weights, lie, slices);
    if (status == FATTN_OK)
        *out = facts_judge_slices(&here, rule, slices);
    facts_gpu_free(gpu, there_too.want);
    facts_gpu_free(gpu, there_too.bound);
    free(slices);
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
    if (t->memory.gpu && rule.expected.want)
        return judge_there(out, t, id, &rule, facts_memory_address(&t->memory, id, pattern), FACTS_LIE_COUNT);
    const void *storage = facts_memory_storage(&t->memory, id, pattern);
    if (!storage)
        return FATTN_NO_MEMORY;
    const facts_tensor tensor = facts_tensor_seen(p, id);
    *out = id == FACTS_TENSOR_RNG_DUMP ? facts_judge_keep(p, storage, t->keep.here, pattern) : facts_judge_tensor(&tensor, storage, &rule);
    return FATTN_OK;
}

/* Most lies are caught by single elements, of the first head already. */
static fattn_status tell_first(facts_truth *t, facts_tensor_id id, size_t place)
{
    const facts_rule rule = facts_expectation_rule(&t->expectation, id, A);
    const facts_tensor here = facts_tensor_seen(t->memory.problem, id), there = facts_memory_seen(&t->memory, id);
    const facts_bar bar = facts_judge_bar(&here, &rule);
    facts_part first = whole_of(&here, &rule);
    first.batches = first.heads = 1;
    TRY(facts_gpu_lie(t->memory.gpu, &there, &bar, due_of(t, id), &first, FACTS_LIE_ZERO, place));
    return facts_gpu_lie(t->memory.gpu, &there, &bar, due_of(t, id), &first, FACTS_LIE_ROW, place + 1);
}

/* The others by those of all heads, or by what the rows say together. */
static fattn_status tell_there(facts_lie_end *out, facts_truth *t, facts_tensor_id id, facts_lie lie, const facts_told *first)
{
    facts_gpu *gpu = t->memory.gpu;
    const facts_rule rule = facts_expectation_rule(&t->expectation, id, A);
    const facts_tensor here = facts_tensor_seen(t->memory.problem, id), there = facts_memory_seen(&t->memory, id);
    const facts_bar bar = facts_judge_bar(&here, &rule);
    const facts_part all = whole_of(&here, &rule);
    facts_judgement found;
    facts_told told;
    *out = FACTS_LIE_CAUGHT;
    if (first && first->moved && first->refused)
        return FATTN_OK;
    TRY(facts_gpu_lies_begin(gpu));
    TRY(facts_gpu_lie(gpu, &there, &bar, due_of(t, id), &all, lie, 0));
    TRY(facts_gpu_lies_end(gpu, &told, 1));
    if (!told.moved)
        *out = FACTS_LIE_SAME;
    if (!told.moved || told.refused)
        return FATTN_OK;
    TRY(judge_there(&found, t, id, &rule, NULL, lie));
    *out = facts_judge_lie(&found);
    return FATTN_OK;
}

static fattn_status trusts_there(bool *out, facts_truth *t, facts_tensor_id id, const facts_told *first)
{
    facts_lie_end zero = FACTS_LIE_SAME, rolled = FACTS_LIE_SAME;
    TRY(tell_there(&zero, t, id, FACTS_LIE_ZERO, &first[0]));
    TRY(tell_there(&rolled, t, id, FACTS_LIE_ROW, &first[1]));
    if (rolled == FACTS_LIE_SAME)
        TRY(tell_there(&rolled, t, id, FACTS_LIE_CHANNEL, NULL));
    *out = zero != FACTS_LIE_PASSES && rolled != FACTS_LIE_PASSES;
    return FATTN_OK;
}

static bool is_there(const facts_truth *t, facts_tensor_id id)
{
    return t->expectation.answer[id].want && t->expectation.answer[id].at;
}

/* A number is due of it. */
static bool trusts_here(facts_truth *t, facts_tensor_id id)
{
    const facts_rule rule = facts_expectation_rule(&t->expectation, id, A);
    const facts_tensor tensor = facts_tensor_seen(t->memory.problem, id);
    return !rule.expected.want || facts_judge_trusts(&tensor, &rule);
}

_Static_assert(2 * FACTS_TENSOR_COUNT <= FACTS_GPU_LIES, "two lies about each tensor");

fattn_status facts_judging_trusts(bool out[FACTS_TENSOR_COUNT], facts_truth *t, const bool asked[FACTS_TENSOR_COUNT])
{
    facts_told first[FACTS_GPU_LIES];
    size_t count = 0;
    if (t->memory.gpu)
        TRY(facts_gpu_lies_begin(t->memory.gpu));
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (asked[id] && is_there(t, id)) {
            TRY(tell_first(t, id, count));
            count += 2;
        }
    if (count > 0)
        TRY(facts_gpu_lies_end(t->memory.gpu, first, count));
    count = 0;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (asked[id] && is_there(t, id)) {
            TRY(trusts_there(&out[id], t, id, &first[count]));
            count += 2;
        } else if (asked[id]) {
            out[id] = trusts_here(t, id);
        }
    }
    return FATTN_OK;
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
