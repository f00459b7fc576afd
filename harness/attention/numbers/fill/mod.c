#include "mod.h"

#include <math.h>

#include "fattn/score_mod.h"
#include "numbers/dtype.h"
#include "places.h"

#define NO_BOUND (INT64_C(1) << 24) /* above every index that fp32 can distinguish */

static int64_t count_of(double parameter)
{
    return isinf(parameter) ? NO_BOUND : (int64_t)parameter;
}

fattn_status facts_mod_create(fattn_score_mod **out, const facts_problem *problem)
{
    const fattn_problem *ask = &problem->ask;
    const double *parameter = problem->mod_parameter;
    const facts_tensor *a = &problem->tensor[FACTS_TENSOR_MOD_A];
    *out = NULL;
    switch (problem->mod) {
    case FACTS_MOD_CAUSAL:
        return fattn_score_mod_causal(out);
    case FACTS_MOD_WINDOW:
        return fattn_score_mod_window(out, count_of(parameter[0]), count_of(parameter[1]));
    case FACTS_MOD_SOFTCAP:
        return fattn_score_mod_softcap(out, parameter[0]);
    case FACTS_MOD_TEMPERATURE:
        return fattn_score_mod_temperature(out, parameter[0]);
    case FACTS_MOD_PREFIX_LM:
        return fattn_score_mod_prefix_lm(out, count_of(parameter[0]));
    case FACTS_MOD_POST_SCALE_BIAS:
        return fattn_score_mod_post_scale_bias(out, (fattn_dtype)a->dtype, a->dim, a->stride);
    case FACTS_MOD_RELPOS:
        return fattn_score_mod_relative_position(out, ask->heads_q);
    case FACTS_MOD_DOCUMENT:
        return fattn_score_mod_document(out, ask->batch, ask->seq_q, ask->seq_kv);
    default:
        return FATTN_OK;
    }
}

static double element(const facts_tensor *t, const void *storage, int64_t b, int64_t h, int64_t i,
                      int64_t j)
{
    int64_t at = t->first + (t->dim[0] > 1 ? b * t->stride[0] : 0) +
                 (t->dim[1] > 1 ? h * t->stride[1] : 0) + (t->dim[2] > 1 ? i * t->stride[2] : 0) +
                 (t->dim[3] > 1 ? j * t->stride[3] : 0);
    return facts_decode(t->dtype, facts_load(t->dtype, storage, at));
}

static fref_modified choice(bool visible, double score)
{
    return (fref_modified){ .value = visible ? score : -INFINITY, .slope = visible ? 1.0 : 0.0 };
}

/* s + added: one operation, and `before` more magnitudes rounded on the way to `added`. */
static fref_modified sum(double score, double added, double before)
{
    return (fref_modified){ .value = score + added,
                            .slope = 1.0,
                            .rounded = fabs(score + added) + before };
}

/* a t, t = tanh(s / a): the division's error passes the slope; tanh within two ulps, unless it is
 * approximated; the product. */
static fref_modified softcap(double score, double cap)
{
    double t = tanh(score / cap), slope = 1.0 - t * t, value = cap * t;
    return (fref_modified){ .value = value,
                            .slope = slope,
                            .curvature = -2.0 * t * slope / cap,
                            .rounded = fabs(slope * score) + 3.0 * fabs(value),
                            .approximated = fabs(value),
                            .slope_rounded =
                                2.0 * fabs(t * slope * score / cap) + 5.0 * t * t + 1.0,
                            .slope_approximated = 2.0 * t * t };
}

/* A division, or the product with a rounded reciprocal; the same in the gradient. */
static fref_modified temperature(double score, double by)
{
    double value = score / by;
    return (fref_modified){ .value = value,
                            .slope = 1.0 / by,
                            .rounded = 2.0 * fabs(value),
                            .slope_rounded = 2.0 / fabs(by) };
}

fref_modified facts_mod_at(const void *owner, double score, const int64_t at[4])
{
    const facts_mod_owner *x = owner;
    const facts_problem *p = x->problem;
    const facts_tensor *a = &p->tensor[FACTS_TENSOR_MOD_A], *b = &p->tensor[FACTS_TENSOR_MOD_B];
    const int64_t row = at[2], key = at[3];
    double added;
    switch (p->mod) {
    case FACTS_MOD_CAUSAL:
        return choice(key <= row, score);
    case FACTS_MOD_WINDOW:
        return choice(key <= row + count_of(p->mod_parameter[1]) &&
                          key > row - count_of(p->mod_parameter[0]),
                      score);
    case FACTS_MOD_PREFIX_LM:
        return choice(key <= row || key < count_of(p->mod_parameter[0]), score);
    case FACTS_MOD_DOCUMENT:
        return choice(element(a, x->a, at[0], 0, row, 0) == element(b, x->b, at[0], 0, 0, key),
                      score);
    case FACTS_MOD_SOFTCAP:
        return softcap(score, p->mod_parameter[0]);
    case FACTS_MOD_TEMPERATURE:
        return temperature(score, p->mod_parameter[0]);
    case FACTS_MOD_POST_SCALE_BIAS:
        return sum(score, element(a, x->a, at[0], at[1], row, key), 0.0);
    case FACTS_MOD_RELPOS:
        added = element(a, x->a, 0, at[1], 0, 0) * (double)(key - row);
        return sum(score, added, fabs(added));
    default:
        return (fref_modified){ .value = score, .slope = 1.0 };
    }
}

static int64_t documents_of(const facts_problem *p, int64_t b)
{
    int64_t asked = (int64_t)p->mod_parameter[0], most = facts_live_kv(p, b);
    return asked < most ? asked : most;
}

int64_t facts_mod_document(const facts_problem *p, int64_t b, int64_t place, bool of_keys)
{
    int64_t count = documents_of(p, b), length = of_keys ? facts_live_kv(p, b) : facts_live_q(p, b);
    if (length == 0 || count == 0)
        return 0;
    return place < length ? place * count / length : count - 1;
}

/* The first place of document d among `length`: the least `place` with place * count / length >= d.
 */
static int64_t first_of(int64_t d, int64_t count, int64_t length)
{
    return (d * length + count - 1) / count;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void facts_mod_keys_of_row(const facts_problem *p, int64_t b, int64_t i, int64_t *first,
                           int64_t *last)
{
    int64_t count, document;
    switch (p->mod) {
    case FACTS_MOD_CAUSAL:
        *last = smaller(*last, i + 1);
        break;
    case FACTS_MOD_WINDOW:
        *first = larger(*first, i - count_of(p->mod_parameter[0]) + 1);
        *last = smaller(*last, i + count_of(p->mod_parameter[1]) + 1);
        break;
    case FACTS_MOD_PREFIX_LM:
        *last = smaller(*last, larger(i + 1, count_of(p->mod_parameter[0])));
        break;
    case FACTS_MOD_DOCUMENT:
        count = documents_of(p, b);
        document = facts_mod_document(p, b, i, false);
        if (count == 0)
            break;
        *first = larger(*first, first_of(document, count, facts_live_kv(p, b)));
        if (document + 1 < count)
            *last = smaller(*last, first_of(document + 1, count, facts_live_kv(p, b)));
        break;
    default:
        break;
    }
    if (*first >= *last)
        *first = *last = 0;
}
