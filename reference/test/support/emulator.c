#include "emulator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AS_WORD(symbol, word, what) [LIE_##symbol] = word,
const char *const lie_words[LIE_COUNT] = { LIE_LIST(AS_WORD) };
#undef AS_WORD

/* The data as the kernel sees it: fp32 copies of one batch entry and head. */
typedef struct view {
    const data *d;
    const emulated_kernel *kernel;
    int64_t b, h, hk, hv;
    int64_t chunk;
    float scale;
    float *q, *k, *v, *d_o, *o, *stats; /* rows of dim */
    float *s, *dp, *slope;              /* [rows, keys]; masked: -INFINITY */
} view;

static float *floats(int64_t n)
{
    float *x = calloc((size_t)n + 1, sizeof *x);
    if (!x)
        abort();
    return x;
}

static float *load(const fref_tensor *t, int64_t b, int64_t h, int64_t s, int64_t dim)
{
    float *x = floats(s * dim);
    for (int64_t i = 0; i < s; i++)
        for (int64_t c = 0; c < dim; c++)
            x[i * dim + c] = (float)element(t, b, h, i, c);
    return x;
}

/* sum of x y, `chunk` exact products into fp32 at a time. */
static float accumulate(const float *x, int64_t stride_x, const float *y, int64_t stride_y, int64_t n, int64_t chunk, float start)
{
    float sum = start;
    for (int64_t k = 0; k < n; k += chunk) {
        double exact = 0.0;
        for (int64_t m = k; m < n && m < k + chunk; m++)
            exact += (double)x[m * stride_x] * (double)y[m * stride_y];
        sum = (float)((double)sum + exact);
    }
    return sum;
}

/* The mask, written again, with the lies. */
static bool keeps(const view *x, int64_t i, int64_t j)
{
    const fref_problem *p = &x->d->problem;
    lie_id lie = x->kernel->lie;
    int64_t len_q = p->len_q ? p->len_q[x->b] : p->rows, len_kv = p->len_kv ? p->len_kv[x->b] : p->keys;
    int64_t diagonal = i + (p->bottom_right ? len_kv - len_q : 0);
    if (i >= len_q || j >= len_kv + (lie == LIE_LENGTH_LOOSE))
        return false;
    if (p->has_right && j > diagonal + p->right + (lie == LIE_CAUSAL_LOOSE))
        return false;
    if (p->has_left && j <= diagonal - p->left - (lie == LIE_LEFT_LOOSE))
        return false;
    return lie != LIE_TILE_LOST || j < (p->keys - 1) / x->kernel->tile * x->kernel->tile;
}

/* The score as the softmax sees it: rounded to fp32 after the scale, the modification and the bias. */
static float score_of(const view *x, int64_t i, int64_t j, float dot, float *slope)
{
    const fref_problem *p = &x->d->problem;
    lie_id lie = x->kernel->lie;
    float s = dot * x->scale, bias = 0.0F;
    if (p->bias)
        bias = (float)element(p->bias, x->b, lie == LIE_BIAS_HEAD ? 0 : x->h, i, j) * (lie == LIE_BIAS_SCALED ? x->scale : 1.0F);
    if (lie == LIE_BIAS_FIRST)
        s += bias;
    s = modify_in_fp32(x->kernel->mod, s, (int64_t[]){ x->b, x->h, i, j }, slope);
    if (lie == LIE_NO_SLOPE)
        *slope = 1.0F;
    return lie == LIE_BIAS_FIRST ? s : s + bias;
}

static void view_create(view *x, const data *d, const emulated_kernel *kernel, int64_t b, int64_t h)
{
    const fref_problem *p = &d->problem;
    bool wrong = kernel->lie == LIE_GROUPS;
    *x = (view){ .d = d, .kernel = kernel, .b = b, .h = h, .chunk = d->type == FREF_F32 ? 1 : 16 };
    x->hk = wrong ? h % p->heads_k : h / (p->heads_q / p->heads_k);
    x->hv = wrong ? h % p->heads_v : h / (p->heads_q / p->heads_v);
    x->scale = (float)p->scale * (kernel->lie == LIE_SCALE ? 1.001F : 1.0F);
    x->q = load(&d->q, b, h, p->rows, p->dim_qk);
    x->k = load(&d->k, b, x->hk, p->keys, p->dim_qk);
    x->v = load(&d->v, b, x->hv, p->keys, p->dim_v);
    x->d_o = load(&d->d_o, b, h, p->rows, p->dim_v);
    x->o = load(&d->o, b, h, p->rows, p->dim_v);
    x->stats = load(&d->stats, b, h, p->rows, 1);
    x->s = floats(p->rows * p->keys);
    x->dp = floats(p->rows * p->keys);
    x->slope = floats(p->rows * p->keys);
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->keys; j++) {
            float dot = accumulate(x->q + i * p->dim_qk, 1, x->k + j * p->dim_qk, 1, p->dim_qk, x->chunk, 0.0F);
            float score = score_of(x, i, j, dot, &x->slope[i * p->keys + j]);
            x->s[i * p->keys + j] = keeps(x, i, j) ? score : -INFINITY;
            x->dp[i * p->keys + j] = accumulate(x->d_o + i * p->dim_v, 1, x->v + j * p->dim_v, 1, p->dim_v, x->chunk, 0.0F);
        }
}

static void view_destroy(view *x)
{
    float *const owned[] = { x->q, x->k, x->v, x->d_o, x->o, x->stats, x->s, x->dp, x->slope };
    for (size_t n = 0; n < sizeof owned / sizeof owned[0]; n++)
        free(owned[n]);
}

static void forward_row(const view *x, const emulated *out, int64_t i, float *p, float *acc)
{
    const fref_problem *pr = &x->d->problem;
    fref_type type = x->d->type;
    int64_t tile = x->kernel->tile, tiles = (pr->keys + tile - 1) / tile, row = (x->b * pr->heads_q + x->h) * pr->rows + i;
    float max = -INFINITY, sum = 0.0F;
    memset(acc, 0, (size_t)pr->dim_v * sizeof *acc);
    for (int64_t n = 0; n < tiles; n++) {
        int64_t first = (x->kernel->reversed ? tiles - 1 - n : n) * tile, last = first + tile < pr->keys ? first + tile : pr->keys;
        const float *s = x->s + i * pr->keys;
        float new_max = max;
        for (int64_t j = first; j < last; j++)
            new_max = fmaxf(new_max, s[j]);
        if (new_max == -INFINITY)
            continue;
        float correction = expf(max - new_max), tile_sum = 0.0F;
        for (int64_t j = first; j < last; j++) {
            float e = expf(s[j] - new_max);
            tile_sum += e;
            p[j - first] = (float)rounded_to(type, (double)e);
        }
        sum = sum * correction + tile_sum;
        for (int64_t c = 0; c < pr->dim_v; c++)
            acc[c] = accumulate(p, 1, x->v + first * pr->dim_v + c, pr->dim_v, last - first, x->chunk, acc[c] * correction);
        max = new_max;
    }
    out->max[row] = (double)max;
    out->lse[row] = max == -INFINITY ? -INFINITY : (double)(max + logf(sum));
    for (int64_t c = 0; c < pr->dim_v; c++) {
        double o = max == -INFINITY ? 0.0 : (double)(acc[c] / sum);
        out->o[row * pr->dim_v + c] = x->kernel->lie == LIE_O_TRUNCATED ? truncated_to(type, o) : rounded_to(type, o);
    }
}

/* One entry of dX, [batch, heads, rows, keys]. */
static void put_dx(const view *x, float *parts, int64_t i, int64_t j, float dx)
{
    const fref_problem *p = &x->d->problem;
    if (x->kernel->lie == LIE_DBIAS_SCALED)
        dx *= x->scale;
    if (x->kernel->lie != LIE_DBIAS_BATCH || x->b + 1 == p->batch)
        parts[((x->b * p->heads_q + x->h) * p->rows + i) * p->keys + j] = dx;
}

/* [outer, count, inner] to [outer, inner], in place. */
static void sum_over(float *x, int64_t outer, int64_t count, int64_t inner)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            float sum = 0.0F;
            for (int64_t n = 0; n < count; n++)
                sum += x[(o * count + n) * inner + i];
            x[o * inner + i] = sum;
        }
}

static void cast_all(float *x, int64_t count, fref_type type)
{
    for (int64_t n = 0; n < count; n++)
        x[n] = (float)rounded_to(type, (double)x[n]);
}

/* dX summed to dBias, in place, one dimension after the other. A kernel that casts does so before the first and after each. */
static void reduce_bias(float *parts, const data *d, bool cast)
{
    const fref_problem *p = &d->problem;
    int64_t dim[4] = { p->batch, p->heads_q, p->rows, p->keys };
    for (int axis = 0; axis < 4; axis++) {
        int64_t outer = 1, inner = 1, count = dim[axis];
        if (d->dbias_dim[axis] == count)
            continue;
        for (int other = 0; other < 4; other++)
            *(other < axis ? &outer : &inner) *= other == axis ? 1 : dim[other];
        if (cast)
            cast_all(parts, outer * count * inner, d->type);
        sum_over(parts, outer, count, inner);
        dim[axis] = 1;
    }
    cast_all(parts, dim[0] * dim[1] * dim[2] * dim[3], d->type);
}

/* P and scale dS of the whole head, cast; its dX. */
static void backward_entries(const view *x, float *p, float *ds, float *parts)
{
    const fref_problem *pr = &x->d->problem;
    for (int64_t i = 0; i < pr->rows; i++) {
        float delta = accumulate(x->d_o + i * pr->dim_v, 1, x->o + i * pr->dim_v, 1, pr->dim_v, 1, 0.0F);
        if (x->kernel->lie == LIE_NO_DELTA)
            delta = 0.0F;
        for (int64_t j = 0; j < pr->keys; j++) {
            int64_t at = i * pr->keys + j;
            p[at] = ds[at] = 0.0F;
            if (x->s[at] == -INFINITY || x->stats[i] == -INFINITY)
                continue;
            float e = expf(x->s[at] - x->stats[i]);
            p[at] = (float)rounded_to(x->d->type, (double)e);
            float dx = e * (x->dp[at] - delta);
            put_dx(x, parts, i, j, dx);
            ds[at] = (float)rounded_to(x->d->type, (double)(dx * x->slope[at] * x->scale));
        }
    }
}

/* One head's partial gradient of keys: out[j][c] += sum_i w[i][j] x[i][c], cast or not. */
static void add_keys(double *out, const view *x, const float *w, const float *rows, int64_t dim, bool cast)
{
    const fref_problem *p = &x->d->problem;
    for (int64_t j = 0; j < p->keys; j++)
        for (int64_t c = 0; c < dim; c++) {
            double part = (double)accumulate(w + j, p->keys, rows + c, dim, p->rows, x->chunk, 0.0F);
            double *to = &out[j * dim + c];
            *to = (double)(float)(*to + (cast ? rounded_to(x->d->type, part) : part));
        }
}

static void backward_head(const view *x, const emulated *out, float *p, float *ds, float *parts)
{
    const fref_problem *pr = &x->d->problem;
    const emulated_kernel *kernel = x->kernel;
    backward_entries(x, p, ds, parts);
    for (int64_t i = 0; i < pr->rows; i++)
        for (int64_t c = 0; c < pr->dim_qk; c++)
            out->dq[((x->b * pr->heads_q + x->h) * pr->rows + i) * pr->dim_qk + c] =
                rounded_to(x->d->type, (double)accumulate(ds + i * pr->keys, 1, x->k + c, pr->dim_qk, pr->keys, x->chunk, 0.0F));
    int64_t group_k = pr->heads_q / pr->heads_k, group_v = pr->heads_q / pr->heads_v;
    bool skip = kernel->lie == LIE_LAST_HEAD;
    if (!skip || (x->h + 1) % group_k == 0)
        add_keys(out->dk + (x->b * pr->heads_k + x->hk) * pr->keys * pr->dim_qk, x, ds, x->q, pr->dim_qk,
                 group_k > 1 && !kernel->partials_fp32);
    if (!skip || (x->h + 1) % group_v == 0)
        add_keys(out->dv + (x->b * pr->heads_v + x->hv) * pr->keys * pr->dim_v, x, p, x->d_o, pr->dim_v,
                 group_v > 1 && !kernel->partials_fp32);
}

static double *doubles(int64_t n)
{
    double *x = calloc((size_t)n + 1, sizeof *x);
    if (!x)
        abort();
    return x;
}

void emulate(emulated *out, const data *d, const emulated_kernel *kernel)
{
    const fref_problem *p = &d->problem;
    int64_t rows = p->batch * p->heads_q * p->rows, count_k = p->batch * p->heads_k * p->keys * p->dim_qk,
            count_v = p->batch * p->heads_v * p->keys * p->dim_v,
            count_bias = d->dbias_dim[0] * d->dbias_dim[1] * d->dbias_dim[2] * d->dbias_dim[3], n = p->rows * p->keys;
    *out = (emulated){ .o = doubles(rows * p->dim_v),
                       .lse = doubles(rows),
                       .max = doubles(rows),
                       .dq = doubles(rows * p->dim_qk),
                       .dk = doubles(count_k),
                       .dv = doubles(count_v),
                       .dbias = doubles(count_bias) };
    float *pp = floats(n > kernel->tile ? n : kernel->tile), *ds = floats(n), *acc = floats(p->dim_v);
    float *parts = floats(p->batch * p->heads_q * n);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++) {
            view x;
            view_create(&x, d, kernel, b, h);
            for (int64_t i = 0; i < p->rows; i++)
                forward_row(&x, out, i, pp, acc);
            backward_head(&x, out, pp, ds, parts);
            view_destroy(&x);
        }
    for (int64_t i = 0; i < count_k; i++)
        out->dk[i] = rounded_to(d->type, out->dk[i]);
    for (int64_t i = 0; i < count_v; i++)
        out->dv[i] = rounded_to(d->type, out->dv[i]);
    reduce_bias(parts, d, !kernel->partials_fp32);
    for (int64_t i = 0; i < count_bias; i++)
        out->dbias[i] = (double)parts[i];
    free(pp);
    free(ds);
    free(acc);
    free(parts);
}

void emulated_destroy(emulated *e)
{
    double *const owned[] = { e->o, e->lse, e->max, e->dq, e->dk, e->dv, e->dbias };
    for (size_t n = 0; n < sizeof owned / sizeof owned[0]; n++)
        free(owned[n]);
}

void emulated_feed(const emulated *e, data *d)
{
    const fref_problem *p = &d->problem;
    for (int64_t row = 0; row < p->batch * p->heads_q * p->rows; row++) {
        int64_t b = row / p->rows / p->heads_q, h = row / p->rows % p->heads_q, i = row % p->rows;
        set_element(&d->stats, b, h, i, 0, e->lse[row]);
        for (int64_t c = 0; c < p->dim_v; c++)
            set_element(&d->o, b, h, i, c, e->o[row * p->dim_v + c]);
    }
}
