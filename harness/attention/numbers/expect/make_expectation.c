#include <errno.h>
#include <fref/fref.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "expect_whole.h"
#include "expectation.h"
#include "numbers/dtype.h"
#include "numbers/fill/places.h"
#include "numbers/fill/recipe.h"
#include "numbers/fill/score_inputs.h"
#include "problem/huge.h"

/* Gradients of broadcast inputs, which are sums (stride=sum:). The reference gives the gradient of
 * every element, and these functions sum them. */

typedef struct facts_gradient {
    facts_tensor_id id;
    int64_t dim[4];    /* before the sum */
    facts_answer each; /* owned; empty if nothing is summed */
    facts_answer to;
    fref_answer *asked; /* in facts_gradients.out */
} facts_gradient;

typedef struct facts_gradients {
    fref_backward_out out; /* the arrays that the reference writes */
    facts_gradient at[4];
    int count;
} facts_gradients;

#define E32 0x1p-23

/* The extents before a sum: those of the input. */
static void full_dim(const facts_problem *p, facts_tensor_id id, int64_t dim[4])
{
    static const facts_tensor_id input[FACTS_TENSOR_COUNT] = { [FACTS_TENSOR_DQ] = FACTS_TENSOR_Q,
                                                               [FACTS_TENSOR_DK] = FACTS_TENSOR_K,
                                                               [FACTS_TENSOR_DV] = FACTS_TENSOR_V,
                                                               [FACTS_TENSOR_DBIAS] =
                                                                   FACTS_TENSOR_BIAS };
    memcpy(dim, p->tensor[input[id]].dim, 4 * sizeof *dim);
}

static fref_answer arrays_of(const facts_answer *a)
{
    return (fref_answer){ a->want, a->sigma, a->bound, a->nu, a->neff, NULL };
}

/* Chooses the array to which the reference writes this gradient: `to`, or a temporary array if the
 * gradient is a sum. False: no memory. Destroy in any case. */
static bool facts_gradients_take(facts_gradients *out, const facts_problem *p, facts_tensor_id id,
                                 facts_answer *to)
{
    facts_gradient *g = &out->at[out->count++];
    *g = (facts_gradient){ .id = id };
    full_dim(p, id, g->dim);
    facts_answer where = *to;
    if (memcmp(g->dim, p->tensor[id].dim, sizeof g->dim) != 0) {
        size_t n = (size_t)facts_elements(g->dim) + 1;
        to->parts = calloc((size_t)facts_elements(p->tensor[id].dim) + 1, sizeof *to->parts);
        where = g->each = (facts_answer){ .want = calloc(n, sizeof(double)),
                                          .sigma = calloc(n, sizeof(double)),
                                          .bound = calloc(n, sizeof(double)) };
        if (!where.want || !where.sigma || !where.bound || !to->parts)
            return false;
    }
    if (p->ask.rope && id == FACTS_TENSOR_DQ && !to->parts) { /* cast, then rotated */
        to->parts = calloc((size_t)facts_elements(p->tensor[id].dim) + 1, sizeof *to->parts);
        if (!to->parts)
            return false;
    }
    g->to = *to;
    fref_backward_out *r = &out->out;
    if (id == FACTS_TENSOR_DBIAS)
        memcpy(r->dbias_dim, g->dim, sizeof r->dbias_dim);
    g->asked = id == FACTS_TENSOR_DQ   ? &r->dq
               : id == FACTS_TENSOR_DK ? &r->dk
               : id == FACTS_TENSOR_DV ? &r->dv
                                       : &r->dbias;
    *g->asked = arrays_of(&where);
    return true;
}

/* One element of the sum. */
static void sum_element(const facts_gradient *g, const facts_tensor *t, int64_t n)
{
    int64_t at[4], from[4], to[4];
    facts_index_of(t->dim, n, at);
    for (int d = 0; d < 4; d++) {
        from[d] = g->dim[d] == t->dim[d] ? at[d] : 0;
        to[d] = g->dim[d] == t->dim[d] ? at[d] + 1 : g->dim[d];
    }
    double value = 0.0, size = 0.0, variance = 0.0, bound = 0.0, rounded = 0.0, steps = 0.0;
    const double u = facts_dtype_roundoff(t->dtype), /* and the smallest normal number */
        tiny = ldexp(1.0, 1 - facts_format_bias(facts_format_of(t->dtype)));
    for (int64_t h = from[1]; h < to[1]; h++)
        for (int64_t s = from[2]; s < to[2]; s++) {
            double over_batch = 0.0;
            for (int64_t b = from[0]; b < to[0]; b++) {
                int64_t k = ((b * g->dim[1] + h) * g->dim[2] + s) * g->dim[3] + at[3];
                over_batch += g->each.want[k];
                size += fabs(g->each.want[k]);
                variance += g->each.sigma[k] * g->each.sigma[k];
                bound += g->each.bound[k];
                steps += 2.0 * u *
                         fmax(fabs(g->each.want[k]), tiny); /* a step of x is 2 u |x| at most */
            }
            value += over_batch;
            if (g->id != FACTS_TENSOR_DBIAS)
                continue;
            /* cuDNN itself sums dBias over the batch, and casts its result before any further sum.
             */
            double between = u * fmax(fabs(over_batch), tiny);
            variance += between * between / 3.0;
            rounded += between;
        }
    double terms = (double)((to[0] - from[0]) * (to[1] - from[1]) * (to[2] - from[2])),
           root = sqrt(fmax(1.0, terms / 16.0));
    double cast = u * fmax(fabs(value), tiny), sum = E32 * root * size;
    bool exact = bound == 0.0;
    g->to.want[n] = value;
    g->to.sigma[n] = exact ? 0.0 : sqrt(variance + sum * sum + cast * cast / 3.0);
    g->to.parts[n] = steps;
    g->to.bound[n] = exact ? 0.0 : bound + rounded + sum * root + cast;
}

/* {value, least, most} of an Amax, with one more element. */
static void amax_join(double amax[3], double value, double bound)
{
    amax[0] = fmax(amax[0], fabs(value));
    amax[1] = fmax(amax[1], fabs(value) - bound);
    amax[2] = fmax(amax[2], fabs(value) + bound);
}

/* Sums the temporary arrays. sigma: each element is rounded to the gradient's type (its own last
 * cast), added in fp32, and the sum is cast once. bound: the sum of the bounds, and the same casts.
 * The error of an engine that sums in fp32 is smaller. Amax is of what is stored: of the sum. */
static void facts_gradients_sum(facts_gradients *gradients, const facts_problem *p)
{
    for (int i = 0; i < gradients->count; i++) {
        const facts_gradient *g = &gradients->at[i];
        const facts_tensor *t = &p->tensor[g->id];
        if (!g->each.want)
            continue;
#pragma omp parallel for schedule(static)
        for (int64_t n = 0; n < facts_elements(t->dim); n++)
            sum_element(g, t, n);
        double *amax = g->asked->amax, largest[3] = { 0.0 };
        for (int64_t n = 0; amax && n < facts_elements(t->dim); n++)
            amax_join(largest, g->to.want[n], g->to.bound[n]);
        if (amax)
            memcpy(amax, largest, sizeof largest);
    }
}

static void facts_gradients_destroy(facts_gradients *gradients)
{
    for (int i = 0; i < gradients->count; i++) {
        free(gradients->at[i].each.want);
        free(gradients->at[i].each.sigma);
        free(gradients->at[i].each.bound);
    }
    *gradients = (facts_gradients){ 0 };
}

/* The backward of block-scaled types (docs/numerics.md, section 1).
 *
 * Its products read Q, K and dO in two quantisations. dQ is a product with K's copy along the keys. dK and dV are products with Q's
 * and dO's copies along the rows. D is made of the 16-bit dO and O. The reference knows one quantisation of each tensor, so it gets
 * three times the channels:
 *
 *      q' = [q, 0, q_t]     k' = [k, k_t, 0]     q'.k' = q.k
 *      dO' = [dO, dO_16, dO_t]   v' = [v, 0, 0]   O' = [0, O, 0]     dO'.v' = dO.v, dO'.O' = dO_16.O
 *      dQ' = dS k' = [., dS k_t, .]     dK' = dS^T q' = [., ., dS^T q_t]     dV' = P^T dO' = [., ., P^T dO_t]
 *
 * dS is cast in blocks, and the largest number of a block may saturate: u = 2^-3, as in e5m2. P is cast with one factor, 256, which
 * keeps it below the type's largest number: u is the type's own. */

#define PARTS 3
#define P_SCALE 256.0 /* before P is cast; cudnn-frontend's reference results have it */

/* One tensor made of three: the tensor in each part; FACTS_TENSOR_COUNT: zeros. */
typedef struct joint {
    facts_tensor_id part[PARTS];
    fref_tensor tensor;
    float *data;
} joint;

static double decoded(const facts_whole *w, const facts_problem *p, facts_tensor_id id,
                      const int64_t at[4])
{
    const fref_tensor *t = &w->tensor[id];
    const int64_t place =
        at[0] * t->stride[0] + at[1] * t->stride[1] + at[2] * t->stride[2] + at[3] * t->stride[3];
    return facts_is_mx(p->tensor[id].dtype)
               ? (double)((const float *)t->data)[place]
               : facts_decode(p->tensor[id].dtype, facts_load(p->tensor[id].dtype, t->data, place));
}

static bool make_joint(joint *out, const facts_whole *w, const facts_problem *p,
                       facts_tensor_id like)
{
    const int64_t *dim = p->tensor[like].dim, rows = dim[0] * dim[1] * dim[2],
                  wide = PARTS * dim[3];
    out->data = calloc((size_t)(rows * wide) + 1, sizeof *out->data);
    out->tensor = (fref_tensor){ .data = out->data,
                                 .type = FREF_F32,
                                 .stride = { dim[1] * dim[2] * wide, dim[2] * wide, wide, 1 } };
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < wide && out->data; c++) {
            const int64_t at[4] = { row / (dim[1] * dim[2]), row / dim[2] % dim[1], row % dim[2],
                                    c % dim[3] };
            const facts_tensor_id from = out->part[c / dim[3]];
            out->data[row * wide + c] =
                from == FACTS_TENSOR_COUNT ? 0.0f : (float)decoded(w, p, from, at);
        }
    return out->data != NULL;
}

/* One answer: its array, the sum that is computed, and the part of the tripled channels that it is.
 */
typedef struct answer {
    const fref_answer *out;
    fref_answer *wide; /* value, sigma and bound are owned */
    facts_tensor_id id;
    int part;
} answer;

static bool make_wide(const answer *a, const facts_problem *p)
{
    const int64_t *dim = p->tensor[a->id].dim;
    const size_t bytes = ((size_t)(facts_elements(dim) * PARTS) + 1) * sizeof(double);
    const fref_answer *out = a->out;
    fref_answer *wide = a->wide;
    *wide = (fref_answer){ .value = out->value || out->amax ? malloc(bytes) : NULL,
                           .sigma = out->sigma ? malloc(bytes) : NULL,
                           .bound = out->bound || out->amax ? malloc(bytes) : NULL,
                           .nu = out->nu,
                           .neff = out->neff };
    return (wide->value || !(out->value || out->amax)) && (wide->sigma || !out->sigma) &&
           (wide->bound || !(out->bound || out->amax));
}

/* The wanted part; the errors of a row are of that many channels. */
static void take(const answer *a, const facts_problem *p)
{
    const int64_t *dim = p->tensor[a->id].dim, rows = dim[0] * dim[1] * dim[2];
    double *const to[] = { a->out->value, a->out->sigma, a->out->bound },
                  *const wide[] = { a->wide->value, a->wide->sigma, a->wide->bound },
                  *nu = a->out->nu;
    double largest[3] = { 0.0, 0.0, 0.0 };
    for (int64_t row = 0; row < rows; row++) {
        const int64_t from = (row * PARTS + a->part) * dim[3];
        for (int n = 0; n < 3; n++)
            if (to[n])
                memcpy(to[n] + row * dim[3], wide[n] + from, (size_t)dim[3] * sizeof(double));
        if (nu)
            nu[row] = fmax(nu[row] / PARTS, nu[row] > 0.0 ? 1.0 : 0.0);
        for (int64_t c = 0; a->out->amax && c < dim[3]; c++)
            amax_join(largest, wide[0][from + c], wide[2][from + c]);
    }
    if (a->out->amax)
        memcpy(a->out->amax, largest, sizeof largest);
}

/* As fref_backward, for whole->tensor with the copies. Returns 0; ENOMEM. */
static int facts_blocks_backward(const facts_whole *w, const facts_problem *p,
                                 const fref_rounding *rounding, const fref_backward_out *out)
{
    enum { Q, K, V, O, D_O, JOINTS };
    const facts_tensor_id none = FACTS_TENSOR_COUNT;
    static const facts_tensor_id like[JOINTS] = { FACTS_TENSOR_Q, FACTS_TENSOR_K, FACTS_TENSOR_V,
                                                  FACTS_TENSOR_O, FACTS_TENSOR_DO };
    joint joints[JOINTS] = { { .part = { FACTS_TENSOR_Q, none, FACTS_TENSOR_Q_T } },
                             { .part = { FACTS_TENSOR_K, FACTS_TENSOR_K_T, none } },
                             { .part = { FACTS_TENSOR_V, none, none } },
                             { .part = { none, FACTS_TENSOR_O, none } },
                             { .part = { FACTS_TENSOR_DO, FACTS_TENSOR_DO_16,
                                         FACTS_TENSOR_DO_T } } };
    fref_backward_out to = *out;
    const answer answers[3] = { { &out->dq, &to.dq, FACTS_TENSOR_DQ, 1 },
                                { &out->dk, &to.dk, FACTS_TENSOR_DK, 2 },
                                { &out->dv, &to.dv, FACTS_TENSOR_DV, 2 } };
    for (int i = 0; i < 3; i++)
        answers[i].wide->value = answers[i].wide->sigma = answers[i].wide->bound = NULL;
    bool good = true;
    for (int i = 0; i < JOINTS && good; i++)
        good = make_joint(&joints[i], w, p, like[i]);
    for (int i = 0; i < 3 && good; i++)
        good = make_wide(&answers[i], p);
    int status = good ? 0 : ENOMEM;
    if (good) {
        fref_problem wide = w->problem;
        fref_rounding coarse = *rounding;
        wide.dim_qk *= PARTS;
        wide.dim_v *= PARTS;
        coarse.ds = FREF_E5M2;
        wide.scales.scale_s = P_SCALE;
        wide.scales.descale_s = 1.0 / P_SCALE;
        status = fref_backward(&wide, &joints[Q].tensor, &joints[K].tensor, &joints[V].tensor,
                               &joints[O].tensor, &w->tensor[FACTS_TENSOR_STATS],
                               &joints[D_O].tensor, &coarse, &to);
    }
    for (int i = 0; i < 3; i++) {
        if (status == 0)
            take(&answers[i], p);
        free(answers[i].wide->value);
        free(answers[i].wide->sigma);
        free(answers[i].wide->bound);
    }
    for (int i = 0; i < JOINTS; i++)
        free(joints[i].data);
    return status;
}

#define AS_WORD(symbol, word, fwd, bwd) word,
static const char *const words[FACTS_TENSOR_COUNT] = { FACTS_TENSOR_LIST(AS_WORD) };
#undef AS_WORD
#define AS_PASSES(symbol, word, fwd, bwd) { fwd, bwd },
static const bool written[FACTS_TENSOR_COUNT][2] = { FACTS_TENSOR_LIST(AS_PASSES) };
#undef AS_PASSES

/* Padded rows of Stats are -inf from this version on, and unspecified before. */
#define STATS_SETTLED 91400

const char *facts_tensor_word(facts_tensor_id id)
{
    return words[id];
}

bool facts_tensor_is_output(const facts_problem *problem, facts_tensor_id id)
{
    return problem->tensor[id].present && written[id][problem->ask.pass == FATTN_BACKWARD];
}

static size_t elements_of(const facts_tensor *t)
{
    return (size_t)facts_elements(t->dim);
}

static bool make_array(double **out, const facts_tensor *t)
{
    *out = calloc(elements_of(t) + 1, sizeof **out);
    return *out != NULL;
}

_Static_assert(FACTS_EXPECTS_VALUE == 0, "what calloc makes of facts_row_expects");

/* The input of a gradient, if it is ragged: it has no rows past a length, so there is no gradient
 * there. */
static bool is_of_packed(const facts_problem *p, facts_tensor_id id)
{
    const facts_tensor_id of = id == FACTS_TENSOR_DQ   ? FACTS_TENSOR_Q
                               : id == FACTS_TENSOR_DK ? FACTS_TENSOR_K
                                                       : FACTS_TENSOR_V;
    return (id == FACTS_TENSOR_DQ || id == FACTS_TENSOR_DK || id == FACTS_TENSOR_DV) &&
           p->tensor[of].packed != FACTS_PACKED_NOT;
}

static facts_row_expects expects_of_padded(const facts_problem *p, facts_tensor_id id,
                                           int32_t cudnn_version)
{
    if (is_of_packed(p, id))
        return FACTS_EXPECTS_ZERO_OR_POISON;
    switch (id) {
    case FACTS_TENSOR_O:
        return FACTS_EXPECTS_ZERO_OR_POISON;
    case FACTS_TENSOR_STATS:
        return cudnn_version && cudnn_version < STATS_SETTLED ? FACTS_EXPECTS_ANYTHING
                                                              : FACTS_EXPECTS_VALUE;
    case FACTS_TENSOR_MAX:
    case FACTS_TENSOR_SUM_EXP:
        return FACTS_EXPECTS_ANYTHING;
    default:
        return FACTS_EXPECTS_VALUE; /* gradients are 0 there */
    }
}

static bool make_expected(facts_expectation *e, const facts_problem *p, facts_tensor_id id,
                          int32_t cudnn_version)
{
    const facts_tensor *t = &p->tensor[id];
    const facts_row_expects of_padded = t->packed != FACTS_PACKED_NOT
                                            ? FACTS_EXPECTS_NOTHING
                                            : expects_of_padded(p, id, cudnn_version);
    facts_row_expects *expects = calloc((size_t)(t->dim[0] * t->dim[2]) + 1, sizeof *expects);
    e->expects[id] = expects;
    for (int64_t b = 0; expects && b < t->dim[0]; b++)
        for (int64_t s = facts_live(p, id, b); s < t->dim[2]; s++)
            expects[b * t->dim[2] + s] = of_padded;
    if (expects && !e->oracle && facts_is_huge(p))
        return facts_big_expects(p, id, expects);
    return expects != NULL;
}

/* One number for each row, if there is an error model. */
static bool make_freedom(facts_answer *a, const facts_tensor *t)
{
    size_t rows = (size_t)(t->dim[0] * t->dim[1] * t->dim[2]) + 1;
    a->nu = a->at ? a->at->make(a->at->owner, rows) : calloc(rows, sizeof *a->nu);
    a->neff = a->at ? a->at->make(a->at->owner, rows) : calloc(rows, sizeof *a->neff);
    return a->nu && a->neff;
}

/* cuDNN's tanh is good to 2^-16.6: LSE of softcap:33 on an H200, 9.28.1, at a score of 19.4.
 * (softcap:5 on an H100, 9.14.0 to 9.27.0: 2^-18.6.) tanh.approx would be 2^-11. */
#define MODIFICATION_ERROR 0x1p-16

static fref_rounding rounding_of(const facts_problem *p, int32_t out_dtype,
                                 const facts_constants *constants)
{
    fref_type in = FREF_F32, out = FREF_F32;
    facts_oracle_type(&in, p->ask.dtype);
    facts_oracle_type(&out, out_dtype);
    fref_rounding rounding = fref_rounding_of(in, out);
    rounding.eps_mod = MODIFICATION_ERROR;
    rounding.discrete = facts_expect_few_weights(p);
    if (constants)
        facts_constants_apply(&rounding, constants);
    return rounding;
}

static void describe(facts_expectation *e, const facts_problem *p, const facts_constants *constants)
{
    e->dense = facts_expect_dense(p);
    facts_expect_means(e, p);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        e->coherent[id] = p->tensor[id].present && facts_expect_coherent(p, id);
    e->calibrated = constants && constants->calibrated;
    const fref_rounding rounding = rounding_of(
        p, p->ask.pass == FATTN_FORWARD ? p->ask.o_dtype : p->ask.grad_dtype, constants);
    facts_expect_gain(e, p, &rounding);
    e->lazy = M_LN2 * rounding.thr;
}

/* In host memory, or in that of the oracle. */
static bool make_elements(double **out, const facts_oracle *oracle, const facts_tensor *t)
{
    if (!oracle)
        return make_array(out, t);
    *out = oracle->make(oracle->owner, elements_of(t) + 1);
    return *out != NULL;
}

/* Later steps compute with them: Sum_exp is made of the LSE and Max, and logarithms to base 2 of
 * natural ones. */
static bool statistics_are_here(const facts_problem *p)
{
    return p->tensor[FACTS_TENSOR_SUM_EXP].present || (p->ask.outputs & FATTN_WANT_STATS_LOG2);
}

static bool make_answer(facts_expectation *e, const facts_problem *p, facts_tensor_id id,
                        bool with_sigma, int32_t cudnn_version)
{
    const facts_tensor *t = &p->tensor[id];
    facts_answer *a = &e->answer[id];
    a->at = with_sigma || !statistics_are_here(p) ? e->oracle : NULL;
    return make_elements(&a->want, a->at, t) && make_elements(&a->bound, a->at, t) &&
           (!with_sigma || make_elements(&a->sigma, a->at, t)) &&
           (!with_sigma || id == FACTS_TENSOR_DBIAS || make_freedom(a, t)) &&
           make_expected(e, p, id, cudnn_version);
}

/* here: in the memory of the statistics. */
static int run_forward(const facts_problem *p, const facts_storages *in,
                       const fref_forward_out *out, bool here)
{
    facts_whole all;
    int status = facts_whole_make(&all, p, in);
    fref_rounding rounding = rounding_of(p, p->ask.o_dtype, in->constants);
    if (status == 0 && in->oracle)
        status = in->oracle->forward(in->oracle->owner, p, &all.problem, all.tensor, &rounding, out,
                                     here);
    else if (status == 0)
        status = facts_big_forward(p, &all.problem, all.tensor, &rounding, out);
    facts_whole_destroy(&all);
    return status;
}

/* Sum_exp against the LSE: with the Max m that was used, Sum_exp = exp(LSE - m), relative error
 * tau_LSE + tau_Max. */
static void settle_sums(facts_answer *sum, size_t n, const facts_answer *lse,
                        const facts_answer *max)
{
    for (size_t i = 0; i < n; i++) {
        bool live = isfinite(lse->want[i]);
        sum->want[i] = live ? exp(lse->want[i] - max->want[i]) : 0.0;
        sum->bound[i] = live ? sum->want[i] * expm1(lse->bound[i] + max->bound[i]) : 0.0;
    }
}

static bool make_pair(facts_answer *out, const facts_tensor *t)
{
    return make_array(&out->want, t) && make_array(&out->bound, t);
}

static void free_answer(facts_answer *a)
{
    double *const arrays[] = { a->want, a->sigma, a->bound, a->nu, a->neff };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (a->at && arrays[i])
            a->at->drop(a->at->owner, arrays[i]);
        else
            free(arrays[i]);
    free(a->parts);
    *a = (facts_answer){ 0 };
}

int facts_expect_forward(facts_expectation *out, const facts_problem *p, const facts_storages *in,
                         int32_t cudnn_version)
{
    *out = (facts_expectation){ .oracle = in->oracle };
    describe(out, p, in->constants);
    bool has_sum = p->tensor[FACTS_TENSOR_SUM_EXP].present;
    bool ok =
        make_answer(out, p, FACTS_TENSOR_O, true, cudnn_version) && facts_expect_arrays(out, p);
    /* Sum_exp is compared by means of the LSE and Max, so both are computed too. */
    for (facts_tensor_id id = FACTS_TENSOR_STATS; ok && id <= FACTS_TENSOR_SUM_EXP; id++)
        if (p->tensor[id].present)
            ok = make_answer(out, p, id, false, cudnn_version);
    facts_answer lse = out->answer[FACTS_TENSOR_STATS], max = out->answer[FACTS_TENSOR_MAX],
                 own_lse = { 0 }, own_max = { 0 };
    const facts_tensor *sum = &p->tensor[FACTS_TENSOR_SUM_EXP];
    if (ok && has_sum && !lse.want) {
        ok = make_pair(&own_lse, sum);
        lse = own_lse;
    }
    if (ok && has_sum && !max.want) {
        ok = make_pair(&own_max, sum);
        max = own_max;
    } else if (ok && has_sum) {
        ok = make_array(&out->true_max, sum);
    }
    int status = ENOMEM;
    if (ok) {
        fref_forward_out answers = { .o = arrays_of(&out->answer[FACTS_TENSOR_O]),
                                     .lse = lse.want,
                                     .lse_tau = lse.bound,
                                     .max = max.want,
                                     .max_tau = max.bound,
                                     .amax_s = out->array[FACTS_ARRAY_AMAX_S] };
        answers.o.amax = out->array[FACTS_ARRAY_AMAX_O];
        status = run_forward(p, in, &answers, statistics_are_here(p));
    }
    if (status == 0 && has_sum)
        settle_sums(&out->answer[FACTS_TENSOR_SUM_EXP], elements_of(sum), &lse, &max);
    if (status == 0 && out->true_max)
        memcpy(out->true_max, max.want, elements_of(sum) * sizeof *max.want);
    if (status == 0 && out->answer[FACTS_TENSOR_STATS].want &&
        (p->ask.outputs & FATTN_WANT_STATS_LOG2))
        facts_answer_to_log2(&out->answer[FACTS_TENSOR_STATS],
                             (int64_t)elements_of(&p->tensor[FACTS_TENSOR_STATS]));
    free_answer(&own_lse);
    free_answer(&own_max);
    return status;
}

static int round_inputs(const facts_problem *p, const facts_oracle *oracle, const double *o,
                        const double *lse, void *o_storage, void *stats_storage)
{
    const facts_tensor seen_o = facts_tensor_seen(p, FACTS_TENSOR_O),
                       seen_stats = facts_tensor_seen(p, FACTS_TENSOR_STATS);
    const double unit = p->array[FACTS_ARRAY_DESCALE_O].count > 0
                            ? facts_array_scalar(p, FACTS_ARRAY_DESCALE_O)
                            : 1.0;
    if (!oracle) {
        facts_round_into(&seen_o, o, unit, o_storage);
        facts_round_into(&seen_stats, lse, 1.0, stats_storage);
        return 0;
    }
    const int status = oracle->round(oracle->owner, &seen_o, o, unit, o_storage);
    return status ? status : oracle->round(oracle->owner, &seen_stats, lse, 1.0, stats_storage);
}

int facts_expect_inputs(const facts_problem *p, const facts_storages *in, void *o_storage,
                        void *stats_storage)
{
    facts_answer o = { .at = in->oracle }, lse = { .at = in->oracle };
    int status = ENOMEM;
    if (make_elements(&o.want, o.at, &p->tensor[FACTS_TENSOR_O]) &&
        make_elements(&lse.want, lse.at, &p->tensor[FACTS_TENSOR_STATS])) {
        fref_forward_out answers = { .o.value = o.want, .lse = lse.want };
        status = run_forward(p, in, &answers, false);
    }
    if (status == 0)
        status = round_inputs(p, in->oracle, o.want, lse.want, o_storage, stats_storage);
    free_answer(&o);
    free_answer(&lse);
    return status;
}

static double value_at(const facts_tensor *t, const void *storage, int64_t row, int64_t d)
{
    const facts_row at = facts_row_of(t->dim, row);
    const int64_t place = facts_row_place(t, at.b, at.h, at.s) + d * t->stride[3];
    return facts_decode(t->dtype, facts_load(t->dtype, storage, place));
}

/* Rows without keys have Stats of -inf, and padded rows are not compared. */
static bool is_row_near(const facts_problem *p, const void *o_storage, const void *stats_storage,
                        double lse, int64_t row)
{
    const facts_tensor o = facts_tensor_seen(p, FACTS_TENSOR_O),
                       stats = facts_tensor_seen(p, FACTS_TENSOR_STATS);
    double got = value_at(&stats, stats_storage, row, 0);
    if (!(isfinite(lse) ? fabs(got - lse) < 1 : got == lse))
        return false;
    for (int64_t d = 0; o_storage && d < o.dim[3]; d++)
        if (!isfinite(value_at(&o, o_storage, row, d)))
            return false;
    return true;
}

int facts_expect_near(const facts_problem *p, const facts_storages *in, const void *o_storage,
                      const void *stats_storage, bool *near)
{
    const facts_tensor *stats = &p->tensor[FACTS_TENSOR_STATS];
    double *lse;
    *near = true;
    if (!make_array(&lse, stats))
        return ENOMEM;
    fref_forward_out answers = { .lse = lse };
    int status = run_forward(p, in, &answers, true);
    bool sampled =
        !in->oracle &&
        facts_is_huge(
            p); /* then only some rows of lse are answers, and the forward is used unchanged */
    for (int64_t row = 0; status == 0 && *near && !sampled && row < (int64_t)elements_of(stats);
         row++)
        if (row % stats->dim[2] < facts_live_q(p, row / (stats->dim[2] * stats->dim[1])))
            *near = is_row_near(p, o_storage, stats_storage, lse[row], row);
    free(lse);
    return status;
}

static bool has_sums(const facts_gradients *gradients)
{
    for (int i = 0; i < gradients->count; i++)
        if (gradients->at[i].each.want)
            return true;
    return false;
}

/* The gradients of Q and K are those of the rotated inputs, rotated back. */
static double *parts_of(const facts_gradients *gradients, facts_tensor_id id)
{
    for (int i = 0; i < gradients->count; i++)
        if (gradients->at[i].id == id)
            return gradients->at[i].to.parts;
    return NULL;
}

static int turn_back(const facts_problem *p, const facts_gradients *gradients)
{
    const struct {
        facts_tensor_id id;
        facts_array_id angles;
        const fref_answer *to;
    } turned[] = { { FACTS_TENSOR_DQ, FACTS_ARRAY_ROPE_Q, &gradients->out.dq },
                   { FACTS_TENSOR_DK, FACTS_ARRAY_ROPE_K, &gradients->out.dk } };
    for (size_t i = 0; p->ask.rope && i < sizeof turned / sizeof *turned; i++) {
        float *angles = malloc(facts_array_bytes(&p->array[turned[i].angles]) + 1);
        if (!angles)
            return ENOMEM;
        facts_array_fill(p, turned[i].angles, angles);
        const fref_answer *to = turned[i].to;
        if (to->value)
            facts_rope_back(p, turned[i].id, angles, to->value, to->sigma, to->bound,
                            parts_of(gradients, turned[i].id));
        free(angles);
    }
    return 0;
}

static int run_backward(const facts_problem *p, const facts_storages *in,
                        const facts_gradients *gradients)
{
    facts_whole all;
    fref_rounding rounding = rounding_of(p, p->ask.grad_dtype, in->constants);
    rounding.own_o = true;
    rounding.coherent = facts_expect_coherent_gradients(p);
    if (facts_is_fp8(p->ask.dtype)) /* dS is cast to dO's type, as in cudnn-frontend's graph */
        facts_oracle_type(&rounding.ds, p->ask.do_dtype);
    if (p->ask.dbias)
        facts_oracle_type(&rounding.bias, p->ask.bias_dtype);
    const bool blocks = facts_is_mx(p->ask.dtype);
    if ((has_sums(gradients) && (in->oracle || p->ask.rope || blocks)) ||
        (blocks && facts_is_huge(p))) /* sums are computed here */
        return ENOTSUP;
    int status = facts_whole_make(&all, p, in);
    if (status == 0 && in->oracle)
        status = in->oracle->backward(in->oracle->owner, p, &all.problem, all.tensor, &rounding,
                                      &gradients->out);
    else if (status == 0 && blocks)
        status = facts_blocks_backward(&all, p, &rounding, &gradients->out);
    else if (status == 0)
        status = facts_big_backward(p, &all.problem, all.tensor, &rounding, &gradients->out);
    facts_whole_destroy(&all);
    return status == 0 ? turn_back(p, gradients) : status;
}

/* O and Stats that a backward reads: rows with a key. A forward leaves the other rows unwritten. */
static bool make_expected_of_inputs(facts_expectation *e, const facts_problem *p)
{
    const facts_tensor *t = &p->tensor[FACTS_TENSOR_O];
    const size_t rows = (size_t)(t->dim[0] * t->dim[2]);
    facts_row_expects *expects = malloc((rows + 1) * sizeof *expects),
                      *same = malloc((rows + 1) * sizeof *same);
    fref_problem asked;
    facts_oracle_problem(&asked, p);
    for (int64_t row = 0; expects && row < (int64_t)rows; row++) {
        int64_t first, last, b = row / t->dim[2], i = row % t->dim[2];
        fref_keys_of_row(&asked, b, i, &first, &last);
        facts_mod_keys_of_row(p, b, i, &first, &last);
        expects[row] =
            i < facts_live_q(p, b) && first < last ? FACTS_EXPECTS_VALUE : FACTS_EXPECTS_ANYTHING;
    }
    if (expects && same)
        memcpy(same, expects, rows * sizeof *expects);
    e->expects[FACTS_TENSOR_O] = expects;
    e->expects[FACTS_TENSOR_STATS] = same;
    return expects && same;
}

int facts_expect_backward(facts_expectation *out, const facts_problem *p, const facts_storages *in)
{
    *out = (facts_expectation){ .oracle = in->oracle };
    describe(out, p, in->constants);
    facts_gradients gradients = { 0 };
    bool ok = make_expected_of_inputs(out, p) && facts_expect_arrays(out, p);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(p, id) && id != FACTS_TENSOR_RNG_DUMP)
            ok = ok && make_answer(out, p, id, true, 0) &&
                 facts_gradients_take(&gradients, p, id, &out->answer[id]);
    if (!ok) {
        facts_gradients_destroy(&gradients);
        return ENOMEM;
    }
    facts_expect_arrays_backward(out, p, &gradients.out);
    int status = run_backward(p, in, &gradients);
    if (status == 0)
        facts_gradients_sum(&gradients, p);
    facts_gradients_destroy(&gradients);
    return status;
}

void facts_expectation_destroy(facts_expectation *e)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        free_answer(&e->answer[id]);
        free(e->expects[id]);
    }
    facts_expect_arrays_destroy(e);
    free(e->true_max);
    *e = (facts_expectation){ 0 };
}

facts_rule facts_expectation_rule(const facts_expectation *e, facts_tensor_id id,
                                  facts_pattern pattern)
{
    const facts_answer *a = &e->answer[id];
    return (facts_rule){ .expected = { a->want, a->sigma, a->bound, a->nu, a->neff },
                         .expects = e->expects[id],
                         .pattern = pattern,
                         .dense = e->dense,
                         .coherent = e->coherent[id],
                         .calibrated = e->calibrated,
                         .means = e->means,
                         .shared = e->shared[id],
                         .gain = e->gain,
                         .by_row = e->by_row,
                         .unit = e->unit[id] };
}

void facts_expect_pair(facts_expectation *e, const facts_problem *p, const void *max_storage)
{
    const facts_tensor t = facts_tensor_seen(p, FACTS_TENSOR_MAX);
    facts_answer *max = &e->answer[FACTS_TENSOR_MAX], *sum = &e->answer[FACTS_TENSOR_SUM_EXP];
    if (!e->true_max)
        return;
    for (size_t i = 0; i < elements_of(&t); i++) {
        int64_t at[4];
        facts_index_of(t.dim, (int64_t)i, at);
        if (!facts_row_exists(&t, at[0], at[2]))
            continue;
        double got = facts_decode(t.dtype,
                                  facts_load(t.dtype, max_storage, facts_element_place(&t, at))),
               below = e->true_max[i] - got;
        bool lazy =
            isfinite(e->true_max[i]) && below > max->bound[i] && below <= e->lazy + max->bound[i];
        double used = lazy ? got : e->true_max[i];
        /* Sum_exp is relative to the maximum that the kernel used. */
        double factor = isfinite(used) ? exp(max->want[i] - used) : 1.0;
        sum->want[i] *= factor;
        sum->bound[i] *= factor;
        max->want[i] = used;
    }
}

void facts_answer_to_log2(facts_answer *stats, int64_t elements)
{
    const double log2_e = 1.4426950408889634;
    for (int64_t i = 0; i < elements; i++) {
        if (!isfinite(stats->want[i]))
            continue;
        stats->want[i] *= log2_e;
        stats->bound[i] =
            stats->bound[i] * log2_e +
            2 * 0x1p-23 * fabs(stats->want[i]); /* the factor and the product are fp32 */
    }
}

/* Section 9 allows 2^-21 sc sum_j |dS||k|. B of dQ holds u sc sum_j |dS||k| as one of its terms, u
 * that of dS's cast: the sum is B/u at most. */
facts_alike facts_expect_alike(const facts_problem *p, facts_tensor_id id, double *share)
{
    double u = p->ask.dtype == FATTN_BF16 ? 0x1p-8 : p->ask.dtype == FATTN_F16 ? 0x1p-11 : 0x1p-24;
    *share = 0x1p-21 / u;
    if (p->ask.deterministic || (id != FACTS_TENSOR_DQ && id != FACTS_TENSOR_DBIAS))
        return FACTS_ALIKE_BITS;
    return id == FACTS_TENSOR_DQ ? FACTS_ALIKE_SUMS : FACTS_ALIKE_RIGHT;
}

void facts_round_into(const facts_tensor *t, const double *values, double unit, void *storage)
{
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < facts_rows(t->dim); row++) {
        const facts_row at = facts_row_of(t->dim, row);
        const int64_t place = facts_row_place(t, at.b, at.h, at.s);
        for (int64_t d = 0; d < t->dim[3] && facts_row_exists(t, at.b, at.s); d++)
            facts_store(t->dtype, storage, place + d * t->stride[3],
                        facts_encode(t->dtype, values[row * t->dim[3] + d] / unit));
    }
}
