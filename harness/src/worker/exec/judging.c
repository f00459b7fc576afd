#include "judging.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/check/judge_keep.h"
#include "numbers/dtype.h"
#include "numbers/expect/expect_arrays.h"
#include "numbers/fill/oracle_view.h"
#include "numbers/fill/recipe.h"
#include "numbers/fill/seen.h"
#include "worker/gpu/try.h"
#include "worker/memory/slabs.h"

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

/* A question, and what its pointers point to. */
typedef struct question {
    facts_tensor_id id;
    bool whole; /* of all heads */
    facts_tensor there;
    facts_rule rule;
    facts_judged_slice *slices;
    lent lent;
} question;

/* Questions that one wait answers. */
typedef struct batch {
    facts_truth *truth;
    size_t count;
    question of[FACTS_TENSOR_COUNT * (1 + 2)]; /* an answer, two lies about it */
    facts_asked asked[FACTS_TENSOR_COUNT * (1 + 2)];
} batch;

/* Lies about an answer have its bar. */
static facts_bar bar_of(const batch *b, facts_tensor_id id, const facts_tensor *here, const facts_rule *rule)
{
    for (size_t n = 0; n < b->count; n++)
        if (b->of[n].id == id)
            return b->asked[n].bar;
    return facts_judge_bar(here, rule);
}

/* About the answer over rule->pattern; with `lie` about that. `part`: of the tensor as it is due; NULL: all of it. */
static fattn_status ask(batch *b, facts_tensor_id id, const facts_rule *rule, facts_lie lie, const facts_part *part)
{
    facts_truth *t = b->truth;
    question *q = &b->of[b->count];
    facts_asked *a = &b->asked[b->count];
    const facts_tensor here = facts_tensor_seen(t->memory.problem, id);
    *q = (question){ .id = id, .whole = !part, .there = facts_memory_seen(&t->memory, id), .rule = *rule };
    *a = (facts_asked){ .tensor = &q->there,
                        .storage = lie == FACTS_LIE_COUNT ? facts_memory_address(&t->memory, id, rule->pattern) : NULL,
                        .lie = lie,
                        .bar = bar_of(b, id, &here, rule),
                        .due = due_of(t, id),
                        .part = part ? *part : whole_of(&here, rule),
                        .weights = part ? (facts_judged_rows){ .channels = here.dim[3] } : facts_judge_weights(&here, rule) };
    b->count++;
    if (!t->expectation.answer[id].at)
        TRY(lend(&q->lent, t->memory.gpu, &a->part, &here));
    q->slices = malloc((size_t)(a->part.batches * a->part.heads + 1) * sizeof *q->slices);
    a->out = q->slices;
    return q->slices ? FATTN_OK : FATTN_NO_MEMORY;
}

static fattn_status answer(batch *b)
{
    return b->count > 0 ? facts_gpu_slices(b->truth->memory.gpu, b->asked, b->count) : FATTN_OK;
}

static void leave(batch *b)
{
    for (size_t n = 0; b && n < b->count; n++) {
        facts_gpu_free(b->truth->memory.gpu, b->of[n].lent.want);
        facts_gpu_free(b->truth->memory.gpu, b->of[n].lent.bound);
        free(b->of[n].slices);
    }
    free(b);
}

static facts_judgement judgement_of(const question *q, const facts_problem *p)
{
    const facts_tensor here = facts_tensor_seen(p, q->id);
    return facts_judge_slices(&here, &q->rule, q->slices);
}

static batch *begin(facts_truth *t)
{
    batch *b = malloc(sizeof *b);
    if (b) {
        b->truth = t;
        b->count = 0;
    }
    return b;
}

/* One question alone; storage NULL: a lie. */
static fattn_status judge_there(facts_judgement *out, facts_truth *t, facts_tensor_id id, const facts_rule *rule, facts_lie lie)
{
    batch *b = begin(t);
    fattn_status status = b ? ask(b, id, rule, lie, NULL) : FATTN_NO_MEMORY;
    if (status == FATTN_OK)
        status = answer(b);
    if (status == FATTN_OK)
        *out = judgement_of(&b->of[0], t->memory.problem);
    leave(b);
    return status;
}

/* What is due of Max and Sum_exp where both are wanted, and the rule. */
static fattn_status rule_of(facts_rule *out, facts_truth *t, facts_tensor_id id, facts_pattern pattern)
{
    const facts_problem *p = t->memory.problem;
    if ((id == FACTS_TENSOR_MAX || id == FACTS_TENSOR_SUM_EXP) && p->tensor[FACTS_TENSOR_MAX].present) {
        const void *max = facts_memory_storage(&t->memory, FACTS_TENSOR_MAX, pattern);
        if (!max)
            return FATTN_NO_MEMORY;
        facts_expect_pair(&t->expectation, p, max);
    }
    *out = facts_expectation_rule(&t->expectation, id, pattern);
    return FATTN_OK;
}

static fattn_status judge_here(facts_judgement *out, facts_truth *t, facts_tensor_id id, const facts_rule *rule)
{
    const facts_problem *p = t->memory.problem;
    const void *storage = facts_memory_storage(&t->memory, id, rule->pattern);
    if (!storage)
        return FATTN_NO_MEMORY;
    const facts_tensor tensor = facts_tensor_seen(p, id);
    *out = id == FACTS_TENSOR_RNG_DUMP ? facts_judge_keep(p, storage, t->keep.here, rule->pattern)
                                       : facts_judge_tensor(&tensor, storage, rule);
    return FATTN_OK;
}

fattn_status facts_judging_of(facts_judgement *out, facts_truth *t, facts_tensor_id id, facts_pattern pattern)
{
    facts_rule rule;
    *out = (facts_judgement){ .no_memory = true };
    if (t->slabs)
        return facts_slabs_judge(out, t, id, pattern);
    TRY(rule_of(&rule, t, id, pattern));
    return t->memory.gpu && rule.expected.want ? judge_there(out, t, id, &rule, FACTS_LIE_COUNT) : judge_here(out, t, id, &rule);
}

/* ---- can the data tell? -------------------------------------------------------------------------------------------------------
 */

/* Of whom it is asked: dense data, and no answer that is zero whatever was computed. */
static bool can_be_told(const facts_problem *p, facts_tensor_id id)
{
    const bool of_scores = id == FACTS_TENSOR_DQ || id == FACTS_TENSOR_DK || id == FACTS_TENSOR_DBIAS;
    return facts_tensor_is_output(p, id) && facts_fill_is_dense(p->fill) && (!of_scores || facts_oracle_two_keys(p));
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

/* Elements whose lies take no longer over all heads than over the first: one each for the threads that a large GPU runs at once. */
#define FEW_ELEMENTS (1 << 16)

/* Most lies are caught by single elements, of the first head already. The next row of a single one is itself. */
static fattn_status tell_first(batch *b, facts_tensor_id id)
{
    const facts_rule rule = facts_expectation_rule(&b->truth->expectation, id, A);
    const facts_tensor here = facts_tensor_seen(b->truth->memory.problem, id);
    const bool few = here.dim[0] * here.dim[1] * here.dim[2] * here.dim[3] <= FEW_ELEMENTS;
    facts_part first = whole_of(&here, &rule);
    first.batches = first.heads = 1;
    TRY(ask(b, id, &rule, FACTS_LIE_ZERO, few ? NULL : &first));
    return ask(b, id, &rule, here.dim[2] > 1 ? FACTS_LIE_ROW : FACTS_LIE_CHANNEL, few ? NULL : &first);
}

static bool is_caught(const question *q)
{
    const facts_judged_sums *sums = &q->slices[0].sums;
    return sums->checked > 0 && sums->wrong + sums->not_finite + sums->unwritten > 0;
}

/* The others by those of all heads, or by what the rows say together. */
static fattn_status tell_all(facts_lie_end *out, facts_truth *t, facts_tensor_id id, facts_lie lie)
{
    const facts_rule rule = facts_expectation_rule(&t->expectation, id, A);
    facts_judgement found;
    TRY(judge_there(&found, t, id, &rule, lie));
    *out = facts_judge_lie(&found);
    return FATTN_OK;
}

/* What became of the lie that question n is about. */
static fattn_status end_of(facts_lie_end *out, const batch *b, size_t n)
{
    const question *q = &b->of[n];
    *out = FACTS_LIE_CAUGHT;
    if (q->whole) {
        const facts_judgement found = judgement_of(q, b->truth->memory.problem);
        *out = facts_judge_lie(&found);
    } else if (!is_caught(q)) {
        return tell_all(out, b->truth, q->id, b->asked[n].lie);
    }
    return FATTN_OK;
}

/* Question n is about zeros in place of an answer, the next about a neighbour's values. */
static fattn_status weigh_trust(const batch *b, size_t n)
{
    const facts_tensor_id id = b->of[n].id;
    facts_lie_end zero, rolled;
    TRY(end_of(&zero, b, n));
    TRY(end_of(&rolled, b, n + 1));
    if (rolled == FACTS_LIE_SAME && b->asked[n + 1].lie == FACTS_LIE_ROW)
        TRY(tell_all(&rolled, b->truth, id, FACTS_LIE_CHANNEL));
    b->truth->untrusted[id] = zero == FACTS_LIE_PASSES || rolled == FACTS_LIE_PASSES;
    return FATTN_OK;
}

/* ---- all answers at once ------------------------------------------------------------------------------------------------------
 */

static fattn_status judge_or_ask(facts_judgement *out, uint64_t *bits, batch *b, facts_tensor_id id)
{
    facts_truth *t = b->truth;
    facts_rule rule;
    TRY(rule_of(&rule, t, id, A));
    if (t->memory.gpu && rule.expected.want)
        return ask(b, id, &rule, FACTS_LIE_COUNT, NULL);
    TRY(judge_here(out, t, id, &rule));
    return facts_judging_bits(bits, t, id);
}

static fattn_status ask_all(facts_judgement out[FACTS_TENSOR_COUNT], uint64_t bits[FACTS_TENSOR_COUNT], batch *b)
{
    facts_truth *t = b->truth;
    const facts_problem *p = t->memory.problem;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT && !t->weighed; id++) {
        if (can_be_told(p, id) && is_there(t, id))
            TRY(tell_first(b, id));
        else if (can_be_told(p, id))
            t->untrusted[id] = !trusts_here(t, id);
    }
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(p, id))
            TRY(judge_or_ask(&out[id], &bits[id], b, id));
    return FATTN_OK;
}

static fattn_status conclude(facts_judgement out[FACTS_TENSOR_COUNT], uint64_t bits[FACTS_TENSOR_COUNT], const batch *b)
{
    facts_truth *t = b->truth;
    for (size_t n = 0; n < b->count; n++) {
        const question *q = &b->of[n];
        if (b->asked[n].lie == FACTS_LIE_COUNT) {
            const int64_t slices = q->there.dim[0] * q->there.dim[1];
            out[q->id] = judgement_of(q, t->memory.problem);
            for (int64_t i = 0; i < slices; i++)
                bits[q->id] += q->slices[i].sums.bits;
        } else if (b->asked[n].lie == FACTS_LIE_ZERO) {
            TRY(weigh_trust(b, n));
        }
    }
    t->weighed = true;
    return FATTN_OK;
}

static fattn_status judge_slabs(facts_judgement out[FACTS_TENSOR_COUNT], uint64_t bits[FACTS_TENSOR_COUNT], facts_truth *t)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(t->memory.problem, id)) {
            TRY(facts_slabs_judge(&out[id], t, id, A));
            TRY(facts_judging_bits(&bits[id], t, id));
        }
    return FATTN_OK;
}

fattn_status facts_judging_all(facts_judgement out[FACTS_TENSOR_COUNT], uint64_t bits[FACTS_TENSOR_COUNT], facts_truth *t)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        out[id] = (facts_judgement){ .no_memory = facts_tensor_is_output(t->memory.problem, (facts_tensor_id)id) };
        bits[id] = 0;
    }
    if (t->slabs)
        return judge_slabs(out, bits, t);
    batch *b = begin(t);
    fattn_status status = b ? ask_all(out, bits, b) : FATTN_NO_MEMORY;
    if (status == FATTN_OK)
        status = answer(b);
    if (status == FATTN_OK)
        status = conclude(out, bits, b);
    leave(b);
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
        return facts_gpu_repeat(m->gpu, &tensor, facts_memory_address(m, id, A), facts_memory_address(m, id, B), due_of(t, id),
                                NULL, 0, out, at);
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
        rule.half = facts_decode(tensor.dtype, 1) / 2 * t->expectation.unit[of];
        rule.stored = facts_judge_largest(&tensor, storage, t->expectation.due[of], t->expectation.unit[of], &rule.saturated);
    }
    memcpy(&code, facts_memory_array(&t->memory, id, pattern), sizeof code);
    *out = facts_judge_amax(&rule, code, pattern);
    return FATTN_OK;
}

fattn_status facts_judging_array(facts_judgement *out, facts_truth *t, facts_array_id id, facts_pattern pattern)
{
    const int64_t count = t->memory.problem->array[id].count;
    const facts_tensor numbers = {
        .present = true, .dtype = FATTN_F32, .dim = { 1, count, 1, 1 }, .stride = { count, 1, 1, 1 }, .elements = count
    };
    *out = (facts_judgement){ .no_memory = true };
    if (!t->expectation.array[id])
        return FATTN_NO_MEMORY;
    if (id != FACTS_ARRAY_DSINK)
        return judge_amax(out, t, id, pattern);
    const facts_rule rule = { .expected = { .want = t->expectation.array[id], .bound = t->expectation.array[id] + count },
                              .pattern = pattern };
    *out = facts_judge_tensor(&numbers, facts_memory_array(&t->memory, id, pattern), &rule);
    return FATTN_OK;
}
