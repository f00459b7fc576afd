/* Kernels compare the answers. Questions about several tensors, and about lies in their place,
 * share one wait. */
#include <stdlib.h>
#include <string.h>

#include "judging.h"
#include "numbers/fill/places.h"
#include "worker/gpu/worker_gpu.h"
#include "worker/memory/case_reference.h"

#define A FACTS_PATTERN_A

_Static_assert(sizeof(facts_row_expects) == sizeof(int32_t),
               "kernels read facts_row_expects as int32_t");

static const int32_t *expects_of(const facts_reference *t, facts_tensor_id id)
{
    return (const int32_t *)t->expectation.expects[id];
}

static facts_part whole_of(const facts_tensor *tensor, const facts_rule *rule)
{
    return (facts_part){ .batches = tensor->dim[0],
                         .heads = tensor->dim[1],
                         .want = rule->expected.want,
                         .sigma = rule->expected.sigma,
                         .bound = rule->expected.bound };
}

/* A question, and the memory of its pointers. */
typedef struct question {
    facts_tensor_id id;
    bool whole; /* of all heads */
    facts_tensor there;
    facts_rule rule;
    facts_judged_slice *slices;
    facts_expected_copies copies;
} question;

/* Questions that one wait answers. */
typedef struct batch {
    facts_reference *reference;
    size_t count;
    question of[FACTS_TENSOR_COUNT * (1 + 2)]; /* an answer, two lies about it */
    facts_asked asked[FACTS_TENSOR_COUNT * (1 + 2)];
} batch;

/* A lie about an answer has the same tolerance. */
static facts_limits limits_of(const batch *b, facts_tensor_id id, const facts_tensor *here,
                              const facts_rule *rule)
{
    for (size_t n = 0; n < b->count; n++)
        if (b->of[n].id == id)
            return b->asked[n].limits;
    return facts_judge_limits(here, rule);
}

/* Compares the answer over rule->pattern, or `lie` in its place. `part`: a part of the tensor's
 * expected values; NULL: all of it. */
static fattn_status ask(batch *b, facts_tensor_id id, const facts_rule *rule, facts_lie lie,
                        const facts_part *part)
{
    facts_reference *t = b->reference;
    question *q = &b->of[b->count];
    facts_asked *a = &b->asked[b->count];
    const facts_tensor here = facts_tensor_seen(t->memory.problem, id);
    *q = (question){
        .id = id, .whole = !part, .there = facts_memory_seen(&t->memory, id), .rule = *rule
    };
    *a = (facts_asked){ .tensor = &q->there,
                        .storage = lie == FACTS_LIE_COUNT
                                       ? facts_memory_address(&t->memory, id, rule->pattern)
                                       : NULL,
                        .lie = lie,
                        .limits = limits_of(b, id, &here, rule),
                        .expects = expects_of(t, id),
                        .part = part ? *part : whole_of(&here, rule),
                        .weights = part ? (facts_judged_rows){ .channels = here.dim[3] }
                                        : facts_judge_weights(&here, rule) };
    b->count++;
    if (!t->expectation.answer[id].at)
        TRY(facts_expected_upload(&q->copies, t->memory.gpu, &a->part,
                                  (size_t)facts_elements(here.dim)));
    q->slices = malloc((size_t)(a->part.batches * a->part.heads + 1) * sizeof *q->slices);
    a->out = q->slices;
    return q->slices ? FATTN_OK : FATTN_NO_MEMORY;
}

static fattn_status answer(batch *b)
{
    return b->count > 0 ? facts_gpu_slices(b->reference->memory.gpu, b->asked, b->count) : FATTN_OK;
}

static void leave(batch *b)
{
    for (size_t n = 0; b && n < b->count; n++) {
        facts_expected_free(&b->of[n].copies, b->reference->memory.gpu);
        free(b->of[n].slices);
    }
    free(b);
}

static facts_judgement judgement_of(const question *q, const facts_problem *p)
{
    const facts_tensor here = facts_tensor_seen(p, q->id);
    return facts_judge_slices(&here, &q->rule, q->slices);
}

static batch *begin(facts_reference *t)
{
    batch *b = malloc(sizeof *b);
    if (b) {
        b->reference = t;
        b->count = 0;
    }
    return b;
}

/* One question alone; storage NULL: a lie. */
static fattn_status judge_there(facts_judgement *out, facts_reference *t, facts_tensor_id id,
                                const facts_rule *rule, facts_lie lie)
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

/* ---- can the data detect an error?
 * --------------------------------------------------------------------------------------------
 */

/* The number of elements whose lies take no longer over all heads than over the first: one for each
 * thread that a large GPU runs at once. */
#define FEW_ELEMENTS (1 << 16)

/* Single elements of the first head are enough to catch most lies. A tensor with a single row has
 * no next row. */
static fattn_status ask_first(batch *b, facts_tensor_id id)
{
    const facts_rule rule = facts_expectation_rule(&b->reference->expectation, id, A);
    const facts_tensor here = facts_tensor_seen(b->reference->memory.problem, id);
    const bool few = facts_elements(here.dim) <= FEW_ELEMENTS;
    facts_part first = whole_of(&here, &rule);
    first.batches = first.heads = 1;
    TRY(ask(b, id, &rule, FACTS_LIE_ZERO, few ? NULL : &first));
    return ask(b, id, &rule, here.dim[2] > 1 ? FACTS_LIE_ROW : FACTS_LIE_CHANNEL,
               few ? NULL : &first);
}

static bool is_caught(const question *q)
{
    const facts_judged_sums *sums = &q->slices[0].sums;
    return sums->checked > 0 && sums->wrong + sums->not_finite + sums->unwritten > 0;
}

/* The other lies need the elements of all heads, or the sums over rows. */
static fattn_status end_over_all(facts_lie_end *out, facts_reference *t, facts_tensor_id id,
                                 facts_lie lie)
{
    const facts_rule rule = facts_expectation_rule(&t->expectation, id, A);
    facts_judgement found;
    TRY(judge_there(&found, t, id, &rule, lie));
    *out = facts_judge_lie(&found);
    return FATTN_OK;
}

/* The result of the lie of question n. */
static fattn_status end_of(facts_lie_end *out, const batch *b, size_t n)
{
    const question *q = &b->of[n];
    *out = FACTS_LIE_CAUGHT;
    if (q->whole) {
        const facts_judgement found = judgement_of(q, b->reference->memory.problem);
        *out = facts_judge_lie(&found);
    } else if (!is_caught(q)) {
        return end_over_all(out, b->reference, q->id, b->asked[n].lie);
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
        TRY(end_over_all(&rolled, b->reference, id, FACTS_LIE_CHANNEL));
    b->reference->untrusted[id] = zero == FACTS_LIE_PASSES || rolled == FACTS_LIE_PASSES;
    return FATTN_OK;
}

/* ---- all answers at once
 * ------------------------------------------------------------------------------------------------------
 */

static fattn_status bits_of(uint64_t *out, facts_reference *t, facts_tensor_id id)
{
    const facts_tensor tensor = facts_memory_seen(&t->memory, id);
    return facts_gpu_bits(t->memory.gpu, &tensor, facts_memory_address(&t->memory, id, A), out);
}

static fattn_status judge_or_ask(facts_judgement *out, uint64_t *bits, batch *b, facts_tensor_id id)
{
    facts_rule rule;
    TRY(facts_judging_rule(&rule, b->reference, id, A));
    if (rule.expected.want)
        return ask(b, id, &rule, FACTS_LIE_COUNT, NULL);
    TRY(facts_judging_host.one(out, b->reference, id, A));
    return bits_of(bits, b->reference, id);
}

static fattn_status ask_all(facts_judgement out[FACTS_TENSOR_COUNT],
                            uint64_t bits[FACTS_TENSOR_COUNT], batch *b)
{
    facts_reference *t = b->reference;
    const facts_problem *p = t->memory.problem;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT && !t->weighed; id++) {
        if (facts_judging_can_detect(p, id) && t->expectation.answer[id].want &&
            t->expectation.answer[id].at)
            TRY(ask_first(b, id));
        else if (facts_judging_can_detect(p, id))
            facts_judging_weigh(t, id);
    }
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(p, id))
            TRY(judge_or_ask(&out[id], &bits[id], b, id));
    return FATTN_OK;
}

static fattn_status conclude(facts_judgement out[FACTS_TENSOR_COUNT],
                             uint64_t bits[FACTS_TENSOR_COUNT], const batch *b)
{
    facts_reference *t = b->reference;
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
    return FATTN_OK;
}

/* ---- the side
 * -----------------------------------------------------------------------------------------------------------------
 */

static fattn_status one(facts_judgement *out, facts_reference *t, facts_tensor_id id,
                        facts_pattern pattern)
{
    facts_rule rule;
    TRY(facts_judging_rule(&rule, t, id, pattern));
    return rule.expected.want ? judge_there(out, t, id, &rule, FACTS_LIE_COUNT)
                              : facts_judging_host.one(out, t, id, pattern);
}

static fattn_status all(facts_judgement out[FACTS_TENSOR_COUNT], uint64_t bits[FACTS_TENSOR_COUNT],
                        facts_reference *t)
{
    batch *b = begin(t);
    fattn_status status = b ? ask_all(out, bits, b) : FATTN_NO_MEMORY;
    if (status == FATTN_OK)
        status = answer(b);
    if (status == FATTN_OK)
        status = conclude(out, bits, b);
    leave(b);
    return status;
}

/* Without `share`: in any bit. `tensor` is written. */
static facts_two_runs both_runs(facts_reference *t, facts_tensor_id id, const double *share,
                                facts_tensor *tensor)
{
    facts_memory *m = &t->memory;
    *tensor = facts_memory_seen(m, id);
    return (facts_two_runs){ .tensor = tensor,
                             .a = facts_memory_address(m, id, A),
                             .b = facts_memory_address(m, id, FACTS_PATTERN_B),
                             .expects = expects_of(t, id),
                             .slack = share ? t->expectation.answer[id].bound : NULL,
                             .share = share ? *share : 0 };
}

static fattn_status differ(int64_t *out, facts_reference *t, facts_tensor_id id,
                           const double *share, int64_t at[4])
{
    if (share && !t->expectation.answer[id].at)
        return facts_judging_host.differ(out, t, id, share, at);
    facts_tensor tensor;
    facts_two_runs both = both_runs(t, id, share, &tensor);
    TRY(facts_gpu_repeat(t->memory.gpu, &both, 1));
    *out = both.different;
    memcpy(at, both.first, sizeof both.first);
    return FATTN_OK;
}

static fattn_status repeat(facts_rerun *out, facts_reference *t)
{
    facts_tensor tensor[FACTS_TENSOR_COUNT];
    facts_two_runs both[FACTS_TENSOR_COUNT];
    size_t count = 0;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (out->asked[id]) {
            both[count] = both_runs(t, id, NULL, &tensor[count]);
            count++;
        }
    TRY(facts_gpu_repeat(t->memory.gpu, both, count));
    const facts_two_runs *next = both;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (out->asked[id]) {
            out->different[id] = next->different;
            memcpy(out->at[id], next->first, sizeof next->first);
            next++;
        }
    return FATTN_OK;
}

const facts_judging_side facts_judging_gpu = { one, all, differ, repeat };
