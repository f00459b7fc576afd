#include "trial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../numbers/dtype.h"

/* What one run wrote. */
typedef struct answers {
    unsigned char *bytes[FACTS_SLOT_COUNT];  /* with guards */
    unsigned char *judged[FACTS_SLOT_COUNT]; /* element 0 of the tensor that is judged */
    unsigned char *gathered[FACTS_SLOT_COUNT];
    unsigned char *workspace;
} answers;

static void free_answers(answers *a)
{
    for (int id = 0; id < FACTS_SLOT_COUNT; id++) {
        free(a->bytes[id]);
        free(a->gathered[id]);
    }
    free(a->workspace);
}

/* Sequences that lie one after another, as the dense rows that the judge reads. Poison stays poison. */
static unsigned char *gather(const facts_due_answer *out, const unsigned char *storage, facts_pattern pattern)
{
    const facts_tensor *t = &out->tensor;
    size_t bytes = facts_dtype_bytes(t->dtype);
    unsigned char *to = malloc((size_t)t->elements * bytes + 1);
    for (int64_t n = 0; to && n < t->elements; n++)
        facts_store(t->dtype, to, n, facts_pattern_code(t->dtype, pattern, n));
    for (int64_t n = 0; to && n < t->elements; n++) {
        int64_t d = n % t->dim[3], s = n / t->stride[2] % t->dim[2], h = n / t->stride[1] % t->dim[1], b = n / t->stride[0];
        if (out->due[b * t->dim[2] + s] != FACTS_DUE_VALUE)
            continue;
        int64_t from = out->slot.first[b] + h * out->slot.stride[1] + s * out->slot.stride[2] + d;
        uint32_t code = facts_load(t->dtype, storage, from);
        if (code != facts_pattern_code(t->dtype, pattern, from))
            facts_store(t->dtype, to, n, code);
    }
    return to;
}

/* Every output and the workspace are poisoned before the run. */
static bool launch(answers *a, const facts_scene *x, const facts_kernel *kernel, facts_pattern pattern)
{
    facts_launch launch = facts_scene_launch(x);
    size_t room = x->backward ? facts_emulation_workspace(&x->asked) : 0;
    *a = (answers){ .workspace = malloc(room + 1) };
    bool ok = a->workspace != NULL;
    for (int id = 0; ok && id < FACTS_SLOT_COUNT; id++) {
        const facts_due_answer *out = &x->out[id];
        if (!out->present)
            continue;
        a->bytes[id] = malloc(out->image.bytes + 1);
        ok = a->bytes[id] != NULL;
        if (!ok)
            break;
        facts_image_poison(&out->image, pattern, a->bytes[id]);
        unsigned char *storage = facts_image_storage(&out->image, a->bytes[id]);
        launch.out[id].data = storage + out->tensor.first * (int64_t)facts_dtype_bytes(out->tensor.dtype);
        a->judged[id] = storage;
    }
    if (ok)
        memset(a->workspace, facts_pattern_byte(pattern), room);
    launch.workspace = a->workspace;
    ok = ok && (x->backward ? facts_emulate_backward(kernel, &launch) : facts_emulate_forward(kernel, &launch));
    for (int id = 0; ok && id < FACTS_SLOT_COUNT; id++)
        if (x->out[id].present && x->out[id].slot.first) {
            a->judged[id] = a->gathered[id] = gather(&x->out[id], a->judged[id], pattern);
            ok = a->judged[id] != NULL;
        }
    return ok;
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
    facts_answer *to_max = &out->e.answer[FACTS_TENSOR_MAX], *to_sum = &out->e.answer[FACTS_TENSOR_SUM_EXP];
    const facts_answer *from_max = &x->out[FACTS_SLOT_MAX].answer, *from_sum = &x->out[FACTS_SLOT_SUM_EXP].answer;
    if (!copy(&out->e.true_max, x->true_max, n) || !copy(&to_max->want, from_max->want, n) ||
        !copy(&to_max->bound, from_max->bound, n) || !copy(&to_sum->want, from_sum->want, n) ||
        !copy(&to_sum->bound, from_sum->bound, n))
        return false;
    out->problem = x->problem;
    out->problem.tensor[FACTS_TENSOR_MAX] = *t;
    facts_expect_pair(&out->e, &out->problem, max);
    return true;
}

static facts_judgement judge(const facts_scene *x, facts_slot_id id, const answers *a, const pair *p, facts_pattern pattern)
{
    const facts_due_answer *out = &x->out[id];
    const facts_answer *answer = &out->answer;
    if (x->true_max && id == FACTS_SLOT_MAX)
        answer = &p->e.answer[FACTS_TENSOR_MAX];
    if (x->true_max && id == FACTS_SLOT_SUM_EXP)
        answer = &p->e.answer[FACTS_TENSOR_SUM_EXP];
    facts_rule rule = { .expected = { answer->want, answer->sigma, answer->bound, answer->nu, answer->neff },
                        .due = out->due,
                        .pattern = pattern,
                        .dense = x->dense,
                        .calibrated = true,
                        .gain = x->gain,
                        .unit = out->unit };
    facts_judgement j = facts_judge_tensor(&out->tensor, a->judged[id], &rule);
    if (id >= FACTS_SLOT_AMAX_S && j.gate == FACTS_GATE_TL)
        j.gate = FACTS_GATE_AMAX;
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

static bool judge_all(facts_trial *out, const facts_scene *x, const answers *a, facts_pattern pattern)
{
    pair p;
    bool ok = pair_create(&p, x, a->judged[FACTS_SLOT_MAX]);
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

int facts_trial_run(facts_trial *out, const facts_scene *x, const facts_kernel *kernel, facts_pattern pattern)
{
    answers a;
    bool ok = launch(&a, x, kernel, pattern) && judge_all(out, x, &a, pattern);
    free_answers(&a);
    return ok ? 0 : ENOMEM;
}

/* The same kernel over both poisons must write the same bits. */
static void compare(facts_trial *out, const facts_scene *x, const answers *a, const answers *b)
{
    for (facts_slot_id id = 0; id < FACTS_SLOT_COUNT; id++) {
        if (!x->out[id].present || facts_judge_repeat(&x->out[id].tensor, a->judged[id], b->judged[id], x->out[id].due, NULL) == 0)
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
    answers a, b = { 0 };
    facts_trial second;
    bool ok = launch(&a, x, kernel, FACTS_PATTERN_A) && judge_all(out, x, &a, FACTS_PATTERN_A);
    if (ok && out->verdict == FACTS_VERDICT_PASS) {
        ok = launch(&b, x, kernel, FACTS_PATTERN_B) && judge_all(&second, x, &b, FACTS_PATTERN_B);
        if (ok && second.verdict != FACTS_VERDICT_PASS)
            *out = second;
        else if (ok)
            compare(out, x, &a, &b);
    }
    free_answers(&a);
    free_answers(&b);
    return ok ? 0 : ENOMEM;
}
