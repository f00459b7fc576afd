/* dBias: dX = P (dP - D), summed over the dimensions that the bias broadcasts.
 *
 * dX is fp32. It is cast to dBias's type before it is summed (bias_parts_cast, n > 1), and after each of the m reduced
 * dimensions (in the order b, h, rows) except the last. The result is cast when it is written. So, over the n reduced entries:
 *
 *   variance = sum (es dX)^2 + P^2 (ep^2 + eD^2 + eo^2) + THIRD F (u |dX|)^2, + ab^2 + THIRD (u |dBias|)^2
 *   bound    = sum ew |dX| + P (ez + eD + sqrt(3 dv) eo) + m u |dX| + |dX| where P may be flushed, + ab sqrt(n/16) + u |dBias|
 *   ab = e32 sqrt(n/16) sum |dX|
 *   F = 1 + e_1 + e_1 e_2 + .. (m terms), e_l the reduced extents
 *
 * es, ep, eD and the others are those of backward_rows.c; u is dBias's. A partial sum after the dimensions 1 .. l has e_1 .. e_l
 * parts. Its square is at most that number times the sum of their squares (Cauchy-Schwarz), and its size at most the sum of
 * their sizes. cuDNN's engines cast in this way: their sums are, to the bit, the sums of rounded parts and rounded partial sums.
 *
 * What they cast first is attn_scale dX; they divide that, cast again, and sum. With an attn_scale below 1, u |dX| is therefore
 * u max(|dX|, tiny / attn_scale) in every term, with tiny the smallest normal number of the type. A power of two casts the
 * quotient to itself. With any other scale F and m are 1 more. */
#include <errno.h>
#include <math.h>
#include <omp.h>

#include "backward/ref_backward.h"

typedef struct scratch {
    double *s, *dp; /* [TILE_ROWS, TILE_KEYS + a panel] */
    double *bias;
    fref__precision part;  /* of the cast of each dX; unit_roundoff 0: none */
    double squares, sizes; /* of all casts before the last, in those of the parts: F and m */
} scratch;

enum { VALUE, MAGNITUDE, VARIANCE, BOUND };

/* One row against `keys`; s and dp start at keys.first. `to` is the place of dBias for key 0. */
static void add_row(const fref__backward *x, const scratch *t, const fref__head *head, int64_t i,
                    double *s, const double *dp, fref__range keys, int64_t to)
{
    const fref_problem *p = x->shape->problem;
    const fref__row_facts *f = &x->facts[head->slot * p->rows + i];
    const fref__score_arrays none = { 0 };
    fref__range own = head->range[i];
    int64_t first = own.first > keys.first ? own.first : keys.first,
            last = own.last < keys.last ? own.last : keys.last;
    if (first >= last)
        return;
    double *score = s + (first - keys.first);
    for (int64_t n = 0; n < last - first; n++)
        score[n] *= p->scale;
    if (x->scored)
        fref__score(score, &none, t->bias, p, 0.0,
                    &(fref__row_place){ head->b, head->h, i, &x->shape->keys, first },
                    last - first);
    const uint8_t *keep = fref__keep_of(p, head->b, head->h, i);
    double variance_delta = f->edelta * f->edelta + f->eo * f->eo;
    double worst_delta = f->edelta + sqrt(3.0 * (double)p->dim_v) * f->eo;
    for (int64_t j = first; j < last; j++) {
        if (score[j - first] == -INFINITY)
            continue;
        double kept = fref__kept(keep, p->keep_scale, j),
               variance_p = kept * f->ep * kept * f->ep + variance_delta;
        double probability = exp(score[j - first] - head->stats[i]),
               dx = probability * (kept * dp[j - keys.first] - f->delta),
               worst_p = kept * f->ez + worst_delta, size = fabs(dx),
               cast = t->part.unit_roundoff * fmax(size, t->part.tiny);
        x->bias_sums[VALUE][to + j] += dx;
        x->bias_sums[MAGNITUDE][to + j] += size;
        x->bias_sums[VARIANCE][to + j] += f->es * dx * f->es * dx +
                                          variance_p * probability * probability +
                                          THIRD * t->squares * cast * cast;
        x->bias_sums[BOUND][to + j] += f->ew * size + worst_p * probability + t->sizes * cast +
                                       (probability < FREF__P_FLUSHED ? size : 0.0);
    }
}

/* Rows i .. i+rows-1 of one head. */
static void add_tile(const fref__backward *x, const scratch *t, const fref__head *head, int64_t i,
                     int64_t rows, fref__range keys)
{
    const fref__shape *s = x->shape;
    const int64_t *dim = x->out->dbias_dim, ld = FREF__TILE_KEYS + FREF__LANES;
    int64_t skip = keys.first - fref__dot_panels(t->s, ld, head->q + i * s->ld_qk, s->ld_qk, rows,
                                                 s->problem->dim_qk, head->k_panels, keys);
    fref__dot_panels(t->dp, ld, head->d_o + i * s->ld_v, s->ld_v, rows, s->problem->dim_v,
                     head->v_panels, keys);
    for (int64_t r = 0; r < rows; r++) {
        int64_t b = dim[0] > 1 ? head->b : 0, h = dim[1] > 1 ? head->h : 0,
                row = dim[2] > 1 ? i + r : 0;
        add_row(x, t, head, i + r, t->s + r * ld + skip, t->dp + r * ld + skip, keys,
                ((b * dim[1] + h) * dim[2] + row) * dim[3]);
    }
}

/* Rows [first, last) of every head of the slab, in order: no other task adds to the same elements.
 */
static void add_rows(const fref__backward *x, const scratch *t, const fref__slab *slab,
                     fref__range rows, fref__range keys)
{
    for (int64_t unit = 0; unit < slab->count; unit++) {
        int64_t step = fref__slab_is_finite(slab, x->shape, unit) ? FREF__TILE_ROWS : 1;
        for (int64_t h = 0; h < x->shape->span; h++) {
            fref__head head = fref__head_of(slab, x->shape, unit, h);
            for (int64_t i = rows.first; i < rows.last; i += step)
                add_tile(x, t, &head, i, rows.last - i < step ? rows.last - i : step, keys);
        }
    }
}

/* The number of entries that are reduced to one of dBias. */
static int64_t reduced_to_one(const fref__backward *x)
{
    const fref_problem *p = x->shape->problem;
    const int64_t *dim = x->out->dbias_dim;
    return p->batch / dim[0] * (p->heads_q / dim[1]) * (p->rows / dim[2]);
}

/* The ratio of the stored number to dX, if it is below 1. */
static double stored_part(const fref__backward *x)
{
    const double scale = fabs(x->shape->problem->scale);
    return x->rounding->bias_parts_cast && scale > 0.0 ? fmin(scale, 1.0) : 1.0;
}

/* The casts before the last. */
static void set_casts(scratch *t, const fref__backward *x)
{
    const fref_problem *p = x->shape->problem;
    const int64_t full[3] = { p->batch, p->heads_q, p->rows };
    double parts = 1.0; /* of a sum over the dimensions so far */
    t->squares = t->sizes = 0.0;
    for (int d = 0; d < 3; d++) {
        const int64_t extent = full[d] / x->out->dbias_dim[d];
        if (extent == 1)
            continue;
        t->squares += parts;
        t->sizes += 1.0;
        parts *= (double)extent;
    }
    t->part = (fref__precision){ 0 };
    if (!x->rounding->bias_parts_cast)
        return;
    int exponent;
    const bool scaled = p->scale != 0.0 && fabs(frexp(p->scale, &exponent)) != 0.5;
    t->squares += scaled;
    t->sizes += scaled;
    if (t->sizes > 0.0)
        t->part = fref__precision_of(x->rounding->bias);
    t->part.tiny /= stored_part(x);
}

int fref__backward_bias(const fref__backward *x, const fref__slab *slab)
{
    const fref_problem *p = x->shape->problem;
    int64_t tile = FREF__TILE_ROWS * (FREF__TILE_KEYS + FREF__LANES);
    double *memory = fref__allocate((2 * tile + FREF__TILE_KEYS) * omp_get_max_threads());
    if (!memory)
        return ENOMEM;
    bool by_rows = x->out->dbias_dim[2] > 1; /* else all rows add to one */
    int64_t row_tiles = by_rows ? (p->rows + FREF__TILE_ROWS - 1) / FREF__TILE_ROWS : 1;
    int64_t key_tiles = (p->keys + FREF__TILE_KEYS - 1) / FREF__TILE_KEYS;
#pragma omp parallel for schedule(dynamic)
    for (int64_t task = 0; task < row_tiles * key_tiles; task++) {
        double *base = memory + omp_get_thread_num() * (2 * tile + FREF__TILE_KEYS);
        scratch mine = { .s = base, .dp = base + tile, .bias = base + 2 * tile };
        set_casts(&mine, x);
        int64_t i = task / key_tiles * FREF__TILE_ROWS, j = task % key_tiles * FREF__TILE_KEYS;
        fref__range rows = { i, !by_rows || i + FREF__TILE_ROWS > p->rows ? p->rows
                                                                          : i + FREF__TILE_ROWS };
        fref__range keys = { j, j + FREF__TILE_KEYS > p->keys ? p->keys : j + FREF__TILE_KEYS };
        add_rows(x, &mine, slab, rows, keys);
    }
    fref__release(memory);
    return 0;
}

void fref__backward_bias_write(const fref__backward *x)
{
    const fref_backward_out *out = x->out;
    const int64_t *dim = out->dbias_dim, count = dim[0] * dim[1] * dim[2] * dim[3];
    const fref__precision to = fref__precision_of(x->rounding->bias);
    const double sqrt_n = sqrt(fref__at_least_1((double)reduced_to_one(x) / 16.0)),
                 stored = stored_part(x);
    for (int64_t n = 0; n < count; n++) {
        double value = x->bias_sums[VALUE][n], sum = E32 * sqrt_n * x->bias_sums[MAGNITUDE][n];
        double cast = to.unit_roundoff * fmax(fabs(value), to.tiny / stored);
        /* A smaller value may be the rest of a subnormal one. */
        bool read = x->bias_sums[BOUND][n] > 0x1p-1000 || isnan(x->bias_sums[BOUND][n]);
        if (out->dbias.value)
            out->dbias.value[n] = value;
        if (out->dbias.sigma)
            out->dbias.sigma[n] =
                read ? sqrt(x->bias_sums[VARIANCE][n] + sum * sum + THIRD * cast * cast) : 0.0;
        if (out->dbias.bound)
            out->dbias.bound[n] = read ? x->bias_sums[BOUND][n] + sum * sqrt_n + cast : 0.0;
    }
}
