/* Evaluates a program for a row of keys in fp32: one loop for each node over a block of keys, which
 * the compiler vectorises. */
#include <math.h>
#include <string.h>

#include "cpu_scores.h"
#include "kernels/cpu_number.h"
#include "liars/lies.h"
#include "score_mod/recording.h"

enum { BLOCK = 64 };

/* The inputs of one block of one row. */
typedef struct block {
    const fattn_score_mod *mod;
    const float *scores, *gradients; /* of this block */
    const void *const *tensors;
    int64_t at[4];
    int count;
} block;

static void load_tensor(const block *k, const fattn_mod_tensor *t, const void *data, float *out)
{
    const int64_t offset = fattn__mod_offset(t, k->at), step = t->dim[3] == 1 ? 0 : t->strides[3];
    if (step == 1 && t->dtype == FATTN_F32) {
        memcpy(out, (const float *)data + offset, (size_t)k->count * sizeof *out);
        return;
    }
    if (step == 0) {
        const float x = fattn__number_load(data, t->dtype, offset);
        for (int i = 0; i < k->count; i++)
            out[i] = x;
        return;
    }
    for (int i = 0; i < k->count; i++)
        out[i] = fattn__number_load(data, t->dtype, offset + i * step);
}

static void leaf(const block *k, const fattn__mod_node *n, float *out)
{
    const int count = k->count;
    switch (n->op) {
    case FATTN__MOD_SCORE:
        memcpy(out, k->scores, (size_t)count * sizeof *out);
        break;
    case FATTN__MOD_GRADIENT:
        memcpy(out, k->gradients, (size_t)count * sizeof *out);
        break;
    case FATTN__MOD_INDEX:
        for (int i = 0; i < count; i++)
            out[i] = (float)(k->at[n->a] + (n->a == FATTN_MOD_KEY ? i : 0));
        break;
    case FATTN__MOD_TENSOR:
        load_tensor(k, &k->mod->tensors[n->a], k->tensors[n->a], out);
        break;
    default:
        for (int i = 0; i < count; i++)
            out[i] = n->constant;
    }
}

#define EACH(expression)                                                                           \
    for (int i = 0; i < count; i++) {                                                              \
        const float x = a[i];                                                                      \
        out[i] = (expression);                                                                     \
    }                                                                                              \
    break

/* exp(x), or exp(-x), for whole registers: values past `count` in a block are undefined. */
static void exponential(int count, float sign, const float *a, float *out)
{
    for (int i = 0; i < count; i++)
        out[i] = sign * a[i];
    for (int i = count; i % 16 != 0; i++)
        out[i] = 0;
    fattn__cpu_kernels()->exponential(out, (count + 15) / 16 * 16, 0);
}

static void hyperbolic_tangent(int count, const float *a, float *out)
{
    memcpy(out, a, (size_t)count * sizeof *out);
    for (int i = count; i % 16 != 0; i++)
        out[i] = 0;
    fattn__cpu_kernels()->hyperbolic_tangent(out, out, (count + 15) / 16 * 16);
}

static void unary(int op, int count, const float *restrict a, float *restrict out)
{
    switch (op) {
    case FATTN_MOD_NEG:
        EACH(-x);
    case FATTN_MOD_ABS:
        EACH(fabsf(x));
    case FATTN_MOD_EXP:
        exponential(count, 1, a, out);
        break;
    case FATTN_MOD_LOG:
        EACH(logf(x));
    case FATTN_MOD_TANH:
        hyperbolic_tangent(count, a, out);
        for (int i = 0; FATTN__LIE(TANH_SAT) && i < count; i++)
            out[i] = fabsf(a[i]) > 2.0f ? copysignf(1.0f, a[i]) : out[i];
        break;
    case FATTN_MOD_SIGMOID:
        exponential(count, -1, a, out);
        for (int i = 0; i < count; i++)
            out[i] = 1.0f / (1.0f + out[i]); /* NOLINT: exponential() wrote it */
        break;
    case FATTN_MOD_ERF:
        EACH(erff(x));
    case FATTN_MOD_SIN:
        EACH(sinf(x));
    case FATTN_MOD_COS:
        EACH(cosf(x));
    case FATTN_MOD_TAN:
        EACH(tanf(x));
    case FATTN_MOD_SQRT:
        EACH(sqrtf(x));
    case FATTN_MOD_RSQRT:
        EACH(1.0f / sqrtf(x));
    case FATTN_MOD_RECIPROCAL:
        EACH(1.0f / x);
    case FATTN_MOD_RELU:
        EACH(x > 0.0f ? x : 0.0f);
    case FATTN_MOD_SOFTPLUS:
        EACH((x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x))));
    case FATTN_MOD_CEIL:
        EACH(ceilf(x));
    case FATTN_MOD_FLOOR:
        EACH(floorf(x));
    default:
        EACH(x == 0.0f ? 1.0f : 0.0f);
    }
}
#undef EACH

#define EACH(expression)                                                                           \
    for (int i = 0; i < count; i++) {                                                              \
        const float x = a[i], y = b[i];                                                            \
        out[i] = (expression);                                                                     \
    }                                                                                              \
    break
#define WHERE(condition) EACH((condition) ? 1.0f : 0.0f)

static void binary(int op, int count, const float *restrict a, const float *restrict b,
                   float *restrict out)
{
    switch (op) {
    case FATTN_MOD_ADD:
        EACH(x + y);
    case FATTN_MOD_SUB:
        EACH(x - y);
    case FATTN_MOD_MUL:
        EACH(x * y);
    case FATTN_MOD_DIV:
        EACH(x / y);
    case FATTN_MOD_MAX:
        EACH(x > y || y != y ? x : y);
    case FATTN_MOD_MIN:
        EACH(x < y || y != y ? x : y);
    case FATTN_MOD_POW:
        EACH(powf(x, y));
    case FATTN_MOD_MOD:
        EACH(fmodf(x, y));
    case FATTN_MOD_EQ:
        WHERE(x == y);
    case FATTN_MOD_NE:
        WHERE(x != y);
    case FATTN_MOD_LT:
        WHERE(x < y);
    case FATTN_MOD_LE:
        WHERE(x <= y);
    case FATTN_MOD_GT:
        WHERE(x > y);
    case FATTN_MOD_GE:
        WHERE(x >= y);
    case FATTN_MOD_AND:
        EACH(x * y);
    default: /* or */
        EACH(x > y ? x : y);
    }
}
#undef WHERE
#undef EACH

static void operation(const fattn__mod_node *n, int count, float (*value)[BLOCK], float *out)
{
    const int inputs = fattn__mod_inputs(n->op);
    if (inputs == 1) {
        unary(n->op, count, value[n->a], out);
    } else if (inputs == 2) {
        binary(n->op, count, value[n->a], value[n->b], out);
    } else {
        const float *condition = value[n->a], *x = value[n->b], *y = value[n->c];
        for (int i = 0; i < count; i++)
            out[i] = condition[i] != 0.0f ? x[i] : y[i];
    }
}

/* Marks the nodes that the outputs need; returns one past the last of them. */
static int mark(const fattn__mod_program *program, const int32_t *places, int place_count,
                bool *needed)
{
    int end = 0;
    memset(needed, 0, FATTN__MOD_MAX_NODES * sizeof *needed);
    for (int i = 0; i < place_count; i++) {
        needed[places[i]] = true;
        end = places[i] + 1 > end ? places[i] + 1 : end;
    }
    for (int i = end - 1; i >= 0; i--) {
        const int inputs = fattn__mod_inputs(program->at[i].op),
                  at[3] = { program->at[i].a, program->at[i].b, program->at[i].c };
        for (int k = 0; needed[i] && k < inputs; k++)
            needed[at[k]] = true;
    }
    return end;
}

void fattn__score_mod_row(const fattn_score_mod *mod, const fattn__mod_program *program,
                          const int64_t at[4], int64_t count, const float *scores,
                          const float *gradients, const void *const *tensors, const int32_t *places,
                          int place_count, float *out)
{
    float value[FATTN__MOD_MAX_NODES][BLOCK];
    bool needed[FATTN__MOD_MAX_NODES];
    const int end = mark(program, places, place_count, needed);
    for (int64_t from = 0; from < count; from += BLOCK) {
        const block k = { .mod = mod,
                          .scores = scores != NULL ? scores + from : NULL,
                          .gradients = gradients != NULL ? gradients + from : NULL,
                          .tensors = tensors,
                          .at = { at[0], at[1], at[2], at[3] + from },
                          .count = (int)(count - from < BLOCK ? count - from : BLOCK) };
        for (int i = 0; i < end; i++) {
            const fattn__mod_node *n = &program->at[i];
            if (!needed[i] || (from > 0 && n->op == FATTN__MOD_CONSTANT))
                continue;
            if (fattn__mod_inputs(n->op) == 0)
                leaf(&k, n, value[i]);
            else
                operation(n, k.count, value, value[i]);
        }
        for (int i = 0; i < place_count; i++)
            memcpy(out + i * count + from, value[places[i]], (size_t)k.count * sizeof *out);
    }
}
