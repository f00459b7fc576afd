/* Random recordings of a score_mod, and what they compute: the test's own evaluators. */
#ifndef FATTN_TEST_RECIPES_H
#define FATTN_TEST_RECIPES_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fattn/fattn.h>
#include <fattn/score_mod.h>

#include "score_mod/mod_program.h"

enum { TENSORS = 3, MOST = 14 };

/* A random recording, as a callback sees it. */
typedef struct step {
    int op, a, b, c; /* FATTN__MOD_ kinds for leaves */
    double constant;
} step;

typedef struct recipe {
    int count;
    step at[MOST + 12];
    bool masked; /* in the end select(key < 0, result, -inf) */
} recipe;

static uint64_t state;

static inline unsigned pick(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) % n);
}

static inline double real(double size)
{
    return ((double)pick(1 << 24) * 0x1p-23 - 1) * size;
}

static const int64_t dims[TENSORS][4] = { { 1, 1, 1, 8 }, { 1, 4, 1, 1 }, { 2, 1, 8, 1 } };
static const char *const names[TENSORS] = { "x", "y", "z" };

static inline recipe random_recipe(void)
{
    static const int words[] = {
#define AS_VALUE(symbol, value, word, inputs) value,
        FATTN_MOD_OP_LIST(AS_VALUE)
#undef AS_VALUE
    };
    static const double nice[] = { 0, 1, -1, 2, 0.5, 3, INFINITY, -INFINITY, 1e30 };
    recipe r = { .count = 0 };
    r.at[r.count++] = (step){ .op = FATTN__MOD_SCORE };
    for (int i = 0; i < 4; i++)
        r.at[r.count++] = (step){ .op = FATTN__MOD_INDEX, .a = i };
    for (int i = 0; i < TENSORS; i++)
        r.at[r.count++] = (step){ .op = FATTN__MOD_TENSOR, .a = i };
    for (int i = 0; i < 3; i++)
        r.at[r.count++] = (step){ .op = FATTN__MOD_CONSTANT,
                                  .constant = i == 0 ? nice[pick(9)] : (double)(float)real(2) };
    const int steps = 2 + (int)pick(MOST - 2);
    for (int i = 0; i < steps; i++) {
        step s = { .op = words[pick(sizeof words / sizeof *words)] };
        const unsigned recent = (unsigned)(r.count > 15 ? 6 : r.count);
        s.a = pick(3) ? r.count - 1 - (int)pick(recent) : (int)pick((unsigned)r.count);
        s.b = (int)pick((unsigned)r.count), s.c = (int)pick((unsigned)r.count);
        if (i == 0)
            s.a = 0; /* the score */
        if (i > 0 && pick(2))
            s.b = r.count - 1;
        r.at[r.count++] = s;
    }
    return r;
}

static inline int inputs_of(int op)
{
#define AS_CASE(symbol, value, word, inputs)                                                       \
    case value:                                                                                    \
        return inputs;
    switch (op) {
        FATTN_MOD_OP_LIST(AS_CASE)
    default:
        return 0;
    }
#undef AS_CASE
}

static inline fattn_value record(fattn_recorder *r, fattn_value score, void *user)
{
    const recipe *from = user;
    fattn_value values[MOST + 12];
    for (int i = 0; i < from->count; i++) {
        const step *s = &from->at[i];
        if (s->op == FATTN__MOD_SCORE)
            values[i] = score;
        else if (s->op == FATTN__MOD_INDEX)
            values[i] = fattn_record_index(r, (fattn_mod_axis)s->a);
        else if (s->op == FATTN__MOD_TENSOR)
            values[i] = fattn_record_tensor(r, names[s->a], FATTN_F32, dims[s->a], NULL);
        else if (s->op == FATTN__MOD_CONSTANT)
            values[i] = fattn_record_constant(r, s->constant);
        else
            values[i] = fattn_record(r, (fattn_mod_op)s->op, values[s->a],
                                     inputs_of(s->op) > 1 ? values[s->b] : 0,
                                     inputs_of(s->op) > 2 ? values[s->c] : 0);
    }
    fattn_value result = values[from->count - 1];
    if (from->masked) {
        const fattn_value hidden = fattn_record(
            r, FATTN_MOD_LT, fattn_record_index(r, FATTN_MOD_KEY), fattn_record_constant(r, 0), 0);
        result =
            fattn_record(r, FATTN_MOD_SELECT, hidden, result, fattn_record_constant(r, -INFINITY));
    }
    return result;
}

/* ---- the test's own evaluators
 * ---------------------------------------------------------------------------------------------------
 */

typedef struct place {
    double score, gradient, tensors[TENSORS]; /* the element that this place reads */
    int64_t at[4];
} place;

/* X(operation, its value of a, b and c) */
/* clang-format off */
#define VALUE_LIST(X) \
    X(NEG, -a) X(ABS, fabs(a)) X(EXP, exp(a)) X(LOG, log(a)) X(TANH, tanh(a)) \
    X(SIGMOID, 0.5 + 0.5 * tanh(a / 2)) X(ERF, erf(a)) X(SIN, sin(a)) X(COS, cos(a)) \
    X(TAN, tan(a)) X(SQRT, sqrt(a)) X(RSQRT, 1 / sqrt(a)) X(RECIPROCAL, 1 / a) \
    X(RELU, fmax(a, 0)) X(SOFTPLUS, a > 30 ? a : log(1 + exp(a))) X(CEIL, ceil(a)) \
    X(FLOOR, floor(a)) X(ADD, a + b) X(SUB, a - b) X(MUL, a * b) X(DIV, a / b) \
    X(MAX, fmax(a, b)) X(MIN, fmin(a, b)) X(POW, pow(a, b)) X(MOD, fmod(a, b)) X(EQ, a == b) \
    X(NE, a != b) X(LT, a < b) X(LE, a <= b) X(GT, a > b) X(GE, a >= b) X(AND, a != 0 && b != 0) \
    X(OR, a != 0 || b != 0) X(NOT, a == 0) X(SELECT, a != 0 ? b : c)
/* clang-format on */

static inline double apply(int op, double a, double b, double c)
{
#define AS_CASE(symbol, value)                                                                     \
    case FATTN_MOD_##symbol:                                                                       \
        return value;
    switch (op) {
        VALUE_LIST(AS_CASE)
    default:
        return NAN;
    }
#undef AS_CASE
}

/* The recording as it was said. What constants alone make is rounded to fp32, as score_mod.h says.
 * *odd: constants alone made a NaN. */
static inline double said(const recipe *r, const place *p, bool *odd)
{
    double v[MOST + 12] = { 0 };
    bool fixed[MOST + 12];
    *odd = false;
    for (int i = 0; i < r->count; i++) {
        const step *s = &r->at[i];
        const int n = inputs_of(s->op);
        fixed[i] = s->op == FATTN__MOD_CONSTANT ||
                   (n > 0 && fixed[s->a] && (n < 2 || fixed[s->b]) && (n < 3 || fixed[s->c]));
        v[i] = s->op == FATTN__MOD_SCORE    ? p->score
               : s->op == FATTN__MOD_INDEX  ? (double)p->at[s->a]
               : s->op == FATTN__MOD_TENSOR ? p->tensors[s->a]
               : n == 0                     ? s->constant
                                            : apply(s->op, v[s->a], v[s->b], v[s->c]);
        if (fixed[i])
            v[i] = (double)(float)v[i];
        *odd = *odd || (fixed[i] && isnan(v[i]));
    }
    return v[r->count - 1];
}

static bool outside; /* some step of the last evaluation overflowed or has no value */

static inline double computed(const fattn__mod_program *program, int result, const place *p)
{
    static double v[FATTN__MOD_MAX_NODES];
    outside = false;
    for (int i = 0; i < program->count; i++) {
        const fattn__mod_node *s = &program->at[i];
        v[i] = s->op == FATTN__MOD_SCORE      ? p->score
               : s->op == FATTN__MOD_GRADIENT ? p->gradient
               : s->op == FATTN__MOD_INDEX    ? (double)p->at[s->a]
               : s->op == FATTN__MOD_TENSOR   ? p->tensors[s->a]
               : s->op == FATTN__MOD_CONSTANT ? (double)s->constant
                                              : apply(s->op, v[s->a], v[s->b], v[s->c]);
        outside = outside || (inputs_of(s->op) > 0 && !isfinite(v[i]));
        outside = outside ||
                  (s->op == FATTN_MOD_MOD && fabs(v[s->a]) > 1e3 * fabs(v[s->b])); /* all jumps */
        outside = outside || ((s->op == FATTN_MOD_SQRT || s->op == FATTN_MOD_POW) &&
                              (v[s->a] == 0 || isinf(v[s->b]))); /* infinitely steep */
    }
    return v[result];
}

static inline place random_place(void)
{
    place p = { .score = real(pick(4) ? 2 : 40), .gradient = real(2) + 0.1 };
    for (int i = 0; i < TENSORS; i++)
        p.tensors[i] = (double)(float)real(2);
    p.at[0] = pick(2), p.at[1] = pick(4), p.at[2] = pick(8), p.at[3] = pick(8);
    return p;
}

static inline fattn_score_mod *recorded(recipe *r)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_create(&mod, record, NULL, r), FATTN_OK, "%s", fattn_last_error());
    return mod;
}

static inline char *text_of(const fattn_score_mod *mod)
{
    static char text[16384];
    fattn_score_mod_text(mod, text, sizeof text);
    return text;
}

static inline bool close_to(double x, double y, double tolerance)
{
    return x == y || fabs(x - y) <= tolerance * (1 + fabs(x) + fabs(y));
}

/* d(value)/d(*by), by central differences; false: they do not settle here (a kink, a jump, or too
 * steep). */
static inline bool slope_at(const fattn__mod_program *program, place *p, double *by, double *slope)
{
    const double x = *by;
    double by_step[3];
    if (!(fabs(computed(program, program->result, p)) < 1e4) ||
        outside) /* too large: too few digits are left for a difference */
        return false;
    for (int i = 0; i < 3; i++) {
        const double h = 1e-4 / (1 << i);
        *by = x + h;
        const double up = computed(program, program->result, p);
        *by = x - h;
        by_step[i] = (up - computed(program, program->result, p)) / (2 * h);
    }
    *by = x;
    *slope = (4 * by_step[1] - by_step[0]) / 3;
    const double finer = (4 * by_step[2] - by_step[1]) / 3;
    return isfinite(*slope) && isfinite(finer) && fabs(*slope) < 1e5 &&
           close_to(*slope, finer, 1e-7);
}

#endif
