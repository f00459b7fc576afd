#include "emulated_trial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "flash/flash_cast.h"
#include "numbers/dtype.h"
#include "numbers/expect/expect_copies.h"
#include "scene_parts.h"

void facts_answers_destroy(facts_answers *a)
{
    for (int id = 0; id < FACTS_SLOT_COUNT; id++)
        free(a->bytes[id]);
    free(a->workspace);
}

/* Every output and the workspace are poisoned before the run. */
bool facts_answers_create(facts_answers *a, const facts_scene *x, const facts_kernel *kernel,
                          facts_pattern pattern)
{
    facts_launch launch = facts_scene_launch(x);
    size_t room = x->backward ? facts_emulation_workspace(&x->asked) : 0;
    *a = (facts_answers){ .workspace = malloc(room + 1) };
    bool ok = a->workspace != NULL;
    for (int id = 0; ok && id < FACTS_SLOT_COUNT; id++) {
        const facts_expected_answer *out = &x->out[id];
        if (!out->present)
            continue;
        a->bytes[id] = malloc(out->image.bytes + 1);
        ok = a->bytes[id] != NULL;
        if (!ok)
            break;
        facts_image_poison(&out->image, pattern, a->bytes[id]);
        a->storage[id] = facts_image_storage(&out->image, a->bytes[id]);
        if (id >= FACTS_SLOT_AMAX_S)
            facts_store(FATTN_F32, a->storage[id], 0, facts_pattern_scalar(pattern));
        launch.out[id].data =
            a->storage[id] + out->tensor.first * (int64_t)facts_dtype_bytes(out->tensor.dtype);
    }
    if (ok)
        memset(a->workspace, facts_pattern_byte(pattern), room);
    launch.workspace = a->workspace;
    return ok && (x->backward ? facts_emulate_backward(kernel, &launch)
                              : facts_emulate_forward(kernel, &launch));
}

/* A lazy kernel's Max may lie below the true one: Max and Sum_exp are judged together. */
typedef struct pair {
    facts_expectation e;
    facts_problem problem;
} pair;

static bool copy(double **out, const double *from, size_t n)
{
    *out = malloc((n + 1) * sizeof **out);
    if (*out)
        memcpy(*out, from, n * sizeof **out);
    return *out != NULL;
}

static bool pair_create(pair *out, const facts_scene *x, const unsigned char *max)
{
    *out = (pair){ 0 };
    if (!x->true_max)
        return true;
    const facts_tensor *t = &x->out[FACTS_SLOT_MAX].tensor;
    size_t n = (size_t)(t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3]);
    facts_answer *to_max = &out->e.answer[FACTS_TENSOR_MAX],
                 *to_sum = &out->e.answer[FACTS_TENSOR_SUM_EXP];
    const facts_answer *from_max = &x->out[FACTS_SLOT_MAX].answer,
                       *from_sum = &x->out[FACTS_SLOT_SUM_EXP].answer;
    if (!copy(&out->e.true_max, x->true_max, n) || !copy(&to_max->want, from_max->want, n) ||
        !copy(&to_max->bound, from_max->bound, n) || !copy(&to_sum->want, from_sum->want, n) ||
        !copy(&to_sum->bound, from_sum->bound, n))
        return false;
    out->e.lazy = M_LN2 * x->rounding.thr;
    out->problem = x->problem;
    out->problem.tensor[FACTS_TENSOR_MAX] = *t;
    facts_expect_pair(&out->e, &out->problem, max);
    return true;
}

/* Amax of what was stored is held to what was stored, too. */
static facts_judgement judge_amax(const facts_scene *x, facts_slot_id id, const facts_answers *a,
                                  facts_pattern pattern)
{
    static const facts_slot_id of[] = { [FACTS_SLOT_AMAX_O] = FACTS_SLOT_O,
                                        [FACTS_SLOT_AMAX_DQ] = FACTS_SLOT_DQ,
                                        [FACTS_SLOT_AMAX_DK] = FACTS_SLOT_DK,
                                        [FACTS_SLOT_AMAX_DV] = FACTS_SLOT_DV };
    const double *amax = x->amax[id];
    facts_amax rule = { .want = amax[0], .least = amax[1], .most = amax[2], .stored = NAN };
    rule.u = ldexp(0.5, -facts_grid_of(x->type).fraction_bits);
    if (id != FACTS_SLOT_AMAX_S && id != FACTS_SLOT_AMAX_DP && !x->out[of[id]].slot.first) {
        const facts_expected_answer *out = &x->out[of[id]];
        rule.half = facts_decode(out->tensor.dtype, 1) / 2 * out->unit;
        rule.stored = facts_judge_largest(&out->tensor, a->storage[of[id]], out->expects, out->unit,
                                          &rule.saturated);
    }
    return facts_judge_amax(&rule, facts_load(FATTN_F32, a->storage[id], 0), pattern);
}

static bool is_coherent(const facts_scene *x, facts_slot_id id)
{
    return x->rounding.coherent & (id == FACTS_SLOT_DQ   ? FREF_GRADIENT_Q
                                   : id == FACTS_SLOT_DK ? FREF_GRADIENT_K
                                   : id == FACTS_SLOT_DV ? FREF_GRADIENT_V
                                                         : 0U);
}

static facts_judgement judge(const facts_scene *x, facts_slot_id id, const facts_answers *a,
                             const pair *p, facts_pattern pattern)
{
    const facts_expected_answer *out = &x->out[id];
    const facts_answer *answer = &out->answer;
    if (x->true_max && id == FACTS_SLOT_MAX)
        answer = &p->e.answer[FACTS_TENSOR_MAX];
    if (x->true_max && id == FACTS_SLOT_SUM_EXP)
        answer = &p->e.answer[FACTS_TENSOR_SUM_EXP];
    facts_rule rule = {
        .expected = { answer->want, answer->sigma, answer->bound, answer->nu, answer->neff },
        .expects = out->expects,
        .pattern = pattern,
        .dense = x->dense,
        .coherent = is_coherent(x, id),
        .calibrated = true,
        .means = !x->has_means
                     ? 0
                     : x->asked.batch * (x->backward ? x->asked.heads_q : x->asked.heads_v),
        .shared = x->has_means ? facts_shared_cast(facts_dtype_of_type[x->out_type]) : 0.0,
        .gain = x->gain.all,
        .by_row = x->gain.by_row,
        .unit = out->unit
    };
    facts_tensor tensor = out->tensor;
    int64_t start[FACTS_MAX_BATCH_LENS];
    for (int64_t b = 0; out->slot.first && b < tensor.dim[0]; b++)
        start[b] = out->slot.first[b] / tensor.stride[2];
    tensor.start = out->slot.first ? start : NULL;
    facts_judgement j = id >= FACTS_SLOT_AMAX_S
                            ? judge_amax(x, id, a, pattern)
                            : facts_judge_tensor(&tensor, a->storage[id], &rule);
    facts_judgement_overrun(&j, facts_image_overrun(&out->image, pattern, a->bytes[id]));
    return j;
}

static void join(facts_trial *out, facts_slot_id id, const facts_judgement *j)
{
    facts_verdict verdict = facts_judgement_verdict(j);
    out->judgement[id] = *j;
    out->verdict = facts_verdict_worse(out->verdict, verdict);
    double ratio = verdict == FACTS_VERDICT_PASS ? fmin(j->ratio, 1.0) : j->ratio;
    if (ratio > out->ratio || out->gate == FACTS_GATE_NONE) {
        out->ratio = ratio;
        out->gate = j->gate;
        out->slot = id;
    }
}

bool facts_answers_judge(facts_trial *out, const facts_scene *x, const facts_answers *a,
                         facts_pattern pattern)
{
    pair p;
    bool ok = pair_create(&p, x, a->storage[FACTS_SLOT_MAX]);
    *out = (facts_trial){ .verdict = FACTS_VERDICT_PASS };
    for (facts_slot_id id = 0; ok && id < FACTS_SLOT_COUNT; id++) {
        if (!x->out[id].present)
            continue;
        facts_judgement j = judge(x, id, a, &p, pattern);
        ok = !j.no_memory;
        join(out, id, &j);
    }
    facts_expectation_destroy(&p.e);
    return ok;
}

int facts_trial_run_over(facts_trial *out, const facts_scene *x, const facts_kernel *kernel,
                         facts_pattern pattern)
{
    facts_answers a;
    bool ok =
        facts_answers_create(&a, x, kernel, pattern) && facts_answers_judge(out, x, &a, pattern);
    facts_answers_destroy(&a);
    return ok ? 0 : ENOMEM;
}

/* The same kernel over both poisons must write the same bits. */
static void compare(facts_trial *out, const facts_scene *x, const facts_answers *a,
                    const facts_answers *b)
{
    for (facts_slot_id id = 0; id < FACTS_SLOT_COUNT; id++) {
        if (!x->out[id].present || x->out[id].slot.first ||
            facts_judge_repeat(&x->out[id].tensor, a->storage[id], b->storage[id],
                               x->out[id].expects, NULL) == 0)
            continue;
        facts_judgement j = out->judgement[id];
        j.gate = FACTS_GATE_POISON;
        j.ratio = INFINITY;
        j.wrong++;
        join(out, id, &j);
    }
}

int facts_trial_run_both(facts_trial *out, const facts_scene *x, const facts_kernel *kernel)
{
    facts_answers a, b = { 0 };
    facts_trial second;
    bool ok = facts_answers_create(&a, x, kernel, FACTS_PATTERN_A) &&
              facts_answers_judge(out, x, &a, FACTS_PATTERN_A);
    if (ok && out->verdict == FACTS_VERDICT_PASS) {
        ok = facts_answers_create(&b, x, kernel, FACTS_PATTERN_B) &&
             facts_answers_judge(&second, x, &b, FACTS_PATTERN_B);
        if (ok && second.verdict != FACTS_VERDICT_PASS)
            *out = second;
        else if (ok)
            compare(out, x, &a, &b);
    }
    facts_answers_destroy(&a);
    facts_answers_destroy(&b);
    return ok ? 0 : ENOMEM;
}
