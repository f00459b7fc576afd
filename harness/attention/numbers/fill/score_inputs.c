#include "score_inputs.h"

#include <math.h>

#include "fattn/score_mod.h"
#include "numbers/dtype.h"
#include "places.h"

/* Outputs of ordinary values are then near what their type holds. */
#define TIGHTER 100.0

/* Scales of fp8. Odd scales are all different, and neither 1 nor powers of two. A scale times its
 * descale is not 1, except for O, because a backward reads O as its own forward wrote it. S's scale
 * is a number of both types: P is 1 for the largest key of a row, and the cast of another number
 * would have the same relative error in every row. Large: P scaled to half of what its type holds,
 * so that an exponential above 2 saturates; the rest is odd. Tight: the largest outputs saturate. */
static double scale_of(const facts_problem *p, facts_array_id id)
{
    static const struct {
        facts_array_id id;
        double pow2, odd;
    } rows[] = {
        { FACTS_ARRAY_DESCALE_Q, 0x1p-4, 0.0713 },  { FACTS_ARRAY_DESCALE_K, 0x1p-3, 0.1129 },
        { FACTS_ARRAY_DESCALE_V, 0x1p-5, 0.0851 },  { FACTS_ARRAY_DESCALE_S, 0x1p-7, 0.00613 },
        { FACTS_ARRAY_SCALE_S, 0x1p7, 160.0 },      { FACTS_ARRAY_SCALE_O, 0x1p3, 11.7 },
        { FACTS_ARRAY_DESCALE_DO, 0x1p-6, 0.0457 }, { FACTS_ARRAY_DESCALE_DP, 0x1p-4, 0.0549 },
        { FACTS_ARRAY_SCALE_DP, 0x1p4, 19.3 },      { FACTS_ARRAY_SCALE_DQ, 0x1p2, 5.3 },
        { FACTS_ARRAY_SCALE_DK, 0x1p1, 3.7 },       { FACTS_ARRAY_SCALE_DV, 0x1p5, 7.1 },
    };
    const double most = p->ask.dtype == FATTN_E5M2 ? 28672.0 : 224.0;
    if (p->scales == FACTS_SCALES_LARGE && id == FACTS_ARRAY_SCALE_S)
        return most;
    if (p->scales == FACTS_SCALES_LARGE && id == FACTS_ARRAY_DESCALE_S)
        return 1.09 / most;
    const bool stored = id == FACTS_ARRAY_SCALE_O || id == FACTS_ARRAY_SCALE_DQ ||
                        id == FACTS_ARRAY_SCALE_DK || id == FACTS_ARRAY_SCALE_DV;
    const double tight = p->scales == FACTS_SCALES_TIGHT && stored ? TIGHTER * most / 224.0 : 1.0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].id == id)
            return p->scales == FACTS_SCALES_UNIT   ? 1.0
                   : p->scales == FACTS_SCALES_POW2 ? rows[i].pow2
                                                    : rows[i].odd * tight;
    return 1.0;
}

double facts_array_scalar(const facts_problem *p, facts_array_id id)
{
    switch (id) {
    case FACTS_ARRAY_ATTN_SCALE:
        return (double)(float)(0.75 / sqrt((double)p->ask.dim_qk));
    case FACTS_ARRAY_DROPOUT_SCALE:
        return (double)(float)(1.0 / (1.0 - p->drop));
    case FACTS_ARRAY_DROPOUT_SCALE_INVERSE:
        return (double)(float)(1.0 - p->drop);
    case FACTS_ARRAY_DESCALE_O:
        return facts_is_fp8(p->ask.o_dtype)
                   ? (double)(float)(1.0 / facts_array_scalar(p, FACTS_ARRAY_SCALE_O))
                   : 1.0;
    default:
        return (double)(float)scale_of(p, id);
    }
}

double facts_keep_scale_of(const facts_problem *p)
{
    return p->ask.dropout_mask ? facts_array_scalar(p, FACTS_ARRAY_DROPOUT_SCALE)
                               : (double)(float)(1.0 / (1.0 - p->ask.dropout));
}

double facts_oracle_scale(const facts_problem *problem)
{
    const fattn_problem *ask = &problem->ask;
    if (ask->scale_in_memory)
        return facts_array_scalar(problem, FACTS_ARRAY_ATTN_SCALE);
    return (double)(float)(ask->has_attn_scale ? ask->attn_scale : 1.0 / sqrt((double)ask->dim_qk));
}

double facts_mod_slope(int64_t heads, int64_t h)
{
    int64_t n = 1;
    while (2 * n <= heads)
        n *= 2;
    return h < n ? exp2(-8.0 * (double)(h + 1) / (double)n)
                 : exp2(-4.0 * (double)(2 * (h - n) + 1) / (double)n);
}

void facts_oracle_problem(fref_problem *out, const facts_problem *problem)
{
    const fattn_problem *ask = &problem->ask;
    *out = (fref_problem){
        .batch = ask->batch,
        .heads_q = ask->heads_q,
        .heads_k = ask->heads_k,
        .heads_v = ask->heads_v,
        .rows = ask->seq_q,
        .keys = ask->seq_kv,
        .dim_qk = ask->dim_qk,
        .dim_v = ask->dim_v,
        .scale = facts_oracle_scale(problem),
        .has_left = ask->has_left != 0,
        .has_right = ask->has_right != 0,
        .bottom_right = ask->align == FATTN_BOTTOM_RIGHT,
        .left = ask->window_left,
        .right = ask->window_right,
        .len_q = problem->has_lengths ? problem->len_q : NULL,
        .len_kv = problem->has_lengths ? problem->len_kv : NULL,
    };
}

bool facts_oracle_type(fref_type *out, int32_t dtype)
{
    switch (dtype) {
    case FATTN_BF16:
        *out = FREF_BF16;
        return true;
    case FATTN_F16:
        *out = FREF_F16;
        return true;
    case FATTN_F32:
        *out = FREF_F32;
        return true;
    case FATTN_E4M3:
    case FATTN_MXE4M3:
        *out = FREF_E4M3;
        return true;
    case FATTN_E5M2:
    case FATTN_MXE5M2:
        *out = FREF_E5M2;
        return true;
    default:
        return false;
    }
}

void facts_oracle_keys_of_row(const facts_problem *problem, int64_t b, int64_t i, int64_t *first,
                              int64_t *last)
{
    fref_problem p;
    facts_oracle_problem(&p, problem);
    fref_keys_of_row(&p, b, i, first, last);
    facts_mod_keys_of_row(problem, b, i, first, last);
}

bool facts_oracle_two_keys(const facts_problem *problem)
{
    /* If all keys are equal, all scores of a row are equal. If all values are equal, all dP of a
     * row are equal: dS is zero. */
    if (problem->tensor[FACTS_TENSOR_K].stride[2] == 0 ||
        problem->tensor[FACTS_TENSOR_V].stride[2] == 0)
        return false;
    for (int64_t b = 0; b < problem->ask.batch; b++)
        for (int64_t i = 0; i < facts_live_q(problem, b); i++) {
            int64_t first, last;
            facts_oracle_keys_of_row(problem, b, i, &first, &last);
            if (last - first >= 2)
                return true;
        }
    return false;
}

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

static double element(const facts_tensor *t, const void *storage, const int64_t at[4])
{
    return facts_decode(t->dtype, facts_load(t->dtype, storage, facts_broadcast_place(t, at)));
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
        return choice(element(a, x->a, at) == element(b, x->b, at), score);
    case FACTS_MOD_SOFTCAP:
        return softcap(score, p->mod_parameter[0]);
    case FACTS_MOD_TEMPERATURE:
        return temperature(score, p->mod_parameter[0]);
    case FACTS_MOD_POST_SCALE_BIAS:
        return sum(score, element(a, x->a, at), 0.0);
    case FACTS_MOD_RELPOS:
        added = element(a, x->a, at) * (double)(key - row);
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
