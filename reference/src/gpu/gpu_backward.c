/* The backward pass on a GPU; ref_backward.c and its parts explain each step. */
#include <string.h>

#include "amax.h"
#include "gpu/gpu_run.h"

typedef struct wanted {
    bool dq, dk, dv, bias, sink, largest_ds, freedom_of_rows, freedom_of_keys;
} wanted;

static wanted wanted_of(const fref_backward_out *out)
{
    return (wanted){ .dq = fref_is_wanted(&out->dq) || out->amax_dp,
                     .dk = fref_is_wanted(&out->dk),
                     .dv = fref_is_wanted(&out->dv),
                     .bias = fref_is_wanted(&out->dbias),
                     .sink = out->dsink || out->dsink_bound,
                     .largest_ds = out->amax_dp,
                     .freedom_of_rows = fref_has_freedom(&out->dq),
                     .freedom_of_keys = fref_has_freedom(&out->dk) || fref_has_freedom(&out->dv) };
}

/* Sums of one gradient, of `padded` rows or keys of each head of the slice: value, magnitude,
 * variance, bound, perhaps one more, and what may be flushed. */
static fref__gradient make_gradient(fref__run *run, fref__buffer which, int64_t padded, int64_t ld,
                                    int count)
{
    const int64_t rows = run->call.heads * padded, size = rows * ld;
    fref__gradient g = { .lossy = fref__run_flags(run, rows / FREF__TILE) };
    double *all = fref__run_doubles(run, which, size * (count + 1));
    if (!all)
        return g;
    for (int n = 0; n < count; n++)
        g.sum[n] = all + n * size;
    g.sum[FREF__SUMS - 1] = all + count * size;
    return g;
}

/* The gradient whose sums are computed next. */
static void take(fref__run *run, const fref__gradient *g)
{
    fref__call *c = &run->call;
    memcpy(c->sum, g->sum, sizeof c->sum);
    c->lossy = g->lossy;
    c->read = g->read;
    c->key_weights = g->key_weights;
}

/* A gradient of keys, and its launches. */
typedef struct of_keys {
    bool wanted;
    int of_v;
    int64_t heads, group, dim, ld; /* of all; query heads of each; channels */
    double *total[4], *channels, *weights;
    int64_t read; /* of fref__run_zeros */
    fref__kernel sum, lost;
} of_keys;

static of_keys make_of_keys(fref__run *run, bool wanted_, int of_v, bool freedom)
{
    const fref__call *c = &run->call;
    const fref_problem *p = &c->problem;
    of_keys g = { .wanted = wanted_,
                  .of_v = of_v,
                  .heads = p->batch * (of_v ? p->heads_v : p->heads_k),
                  .group = of_v ? c->group_v : c->group_k,
                  .dim = of_v ? p->dim_v : p->dim_qk,
                  .ld = of_v ? c->ld_v : c->ld_qk,
                  .sum = of_v ? FREF__kernel_sum_dv : FREF__kernel_sum_dk,
                  .lost = of_v ? FREF__kernel_sum_dv_lost : FREF__kernel_sum_dk_lost };
    if (!wanted_)
        return g;
    const int64_t keys = g.heads * c->keys;
    g.read = fref__run_keep_zeros(run, keys);
    if (!freedom)
        return g;
    g.channels =
        fref__run_doubles(run, of_v ? FREF__GROUP_CHANNELS_V : FREF__GROUP_CHANNELS_K, g.heads);
    g.weights = fref__run_doubles(run, of_v ? FREF__WEIGHTS_V : FREF__WEIGHTS_K, 2 * keys);
    return g;
}

/* For slices that may leave a group unfinished. */
static void make_totals(fref__run *run, of_keys *g)
{
    const int64_t size = g->heads * run->call.keys * g->dim;
    if (!g->wanted || run->heads_of_slice % g->group == 0)
        return;
    double *all = fref__run_doubles(run, g->of_v ? FREF__TOTAL_V : FREF__TOTAL_K, 4 * size);
    for (int n = 0; n < 4 && all; n++)
        g->total[n] = all + n * size;
}

static fref__gradient make_gradient_of_keys(fref__run *run, const of_keys *k)
{
    const fref__call *c = &run->call;
    fref__gradient g =
        make_gradient(run, k->of_v ? FREF__SUMS_V : FREF__SUMS_K, c->keys_padded, k->ld, 4);
    if (c->chunk_rows < c->rows_padded) /* the sum of flushed terms must exist, even if only a later
                                           chunk has some */
        fref__run_clear(run, g.sum[FREF__SUMS - 1],
                        c->heads * c->keys_padded * k->ld * (int64_t)sizeof(double));
    memcpy(g.total, k->total, sizeof g.total);
    g.read = fref__run_zeros(run, k->read);
    g.key_weights = k->weights;
    return g;
}

static int64_t blocks_of(int64_t threads)
{
    return (threads + FREF__THREADS - 1) / FREF__THREADS;
}

static void sum_keys(fref__run *run, const of_keys *g)
{
    fref__call *c = &run->call;
    if (!g->wanted)
        return;
    take(run, &c->gradient[1 + g->of_v]);
    c->counts = g->weights && g->group == 1;
    fref__run_sums(run, g->sum, g->lost, c->keys_padded / FREF__TILE, g->ld);
}

/* Where the sums of single heads do not. */
static void count_keys(fref__run *run, const of_keys *k, const of_keys *v)
{
    const fref__call *c = &run->call;
    const bool of_k = k->wanted && k->weights && k->group > 1,
               of_v = v->wanted && v->weights && v->group > 1;
    const int64_t heads = (of_k ? c->heads_k : 0) + (of_v ? c->heads_v : 0);
    fref__run_launch_with(run, FREF__kernel_key_weights,
                          heads * (c->keys_padded / FREF__WEIGHED_KEYS), FREF__SUM_THREADS,
                          of_k + 2 * of_v);
}

static void add_bias(fref__run *run)
{
    const fref__call *c = &run->call;
    const int64_t *dim = c->backward.dbias_dim;
    const unsigned grid[3] = { (unsigned)((dim[3] + 31) / 32),
                               dim[2] > 1 ? (unsigned)(c->chunk_rows / FREF__BIAS_ROWS) : 1,
                               (unsigned)(dim[0] * dim[1]) };
    fref__run_launch_grid(run, FREF__kernel_add_bias, grid, FREF__SUM_THREADS);
}

typedef struct pass {
    wanted wanted;
    of_keys k, v;
    int64_t bytes_of_head;
} pass;

static int64_t matrices_of(const fref__run *run)
{
    return 1 + fref__run_score_matrices(run);
}

static void chunk(fref__run *run, const pass *x)
{
    fref__call *c = &run->call;
    const bool gradients = x->wanted.dq || x->k.wanted || x->v.wanted || x->wanted.bias;
    fref__run_scores(run, 0);
    if (gradients)
        fref__run_scores(run, 1);
    fref__run_facts(run, FREF__kernel_backward_facts);
    if (x->wanted.dq) {
        c->counts = x->wanted.freedom_of_rows && !x->wanted.largest_ds;
        if (x->wanted.largest_ds)
            fref__run_launch(run, FREF__kernel_row_weights,
                             c->heads * c->chunk_rows / (FREF__THREADS / 32), FREF__THREADS);
        take(run, &c->gradient[0]);
        fref__run_sums(run, FREF__kernel_sum_dq, FREF__kernel_sum_dq_lost, fref__run_row_tiles(run),
                       c->ld_qk);
    }
    sum_keys(run, &x->k);
    sum_keys(run, &x->v);
    count_keys(run, &x->k, &x->v);
    if (x->wanted.bias)
        add_bias(run);
}

/* The chunks of a slice whose rows and keys are prepared. */
static void slice_pass(fref__run *run, const pass *x)
{
    fref__call *c = &run->call;
    fref__run_plan_chunks(run, x->bytes_of_head, matrices_of(run));
    memset(c->gradient, 0, sizeof c->gradient);
    if (x->wanted.dq)
        c->gradient[0] = make_gradient(run, FREF__SUMS_ROWS, c->rows_padded, c->ld_qk, 5);
    if (x->k.wanted)
        c->gradient[1] = make_gradient_of_keys(run, &x->k);
    if (x->v.wanted)
        c->gradient[2] = make_gradient_of_keys(run, &x->v);
    for (int64_t row0 = 0; row0 < c->rows_padded && run->status == 0; row0 += c->chunk_rows) {
        fref__run_take_chunk(run, row0);
        chunk(run, x);
    }
    const int64_t rows = x->wanted.dq ? fref__run_finish_blocks(c->heads, c->rows) : 0;
    const int64_t keys = fref__run_finish_blocks(
        (x->k.wanted ? c->heads_k : 0) + (x->v.wanted ? c->heads_v : 0), c->keys);
    fref__run_launch(run, FREF__kernel_finish_backward, rows + keys, FREF__THREADS);
}

static void channels(fref__run *run, const pass *x)
{
    fref__call *c = &run->call;
    c->channels[0] = x->k.wanted ? x->k.channels : NULL;
    c->channels[1] = x->v.wanted ? x->v.channels : NULL;
    c->channels[2] =
        x->wanted.freedom_of_rows ? fref__run_doubles(run, FREF__CHANNELS, c->heads_k) : NULL;
    fref__run_relate(run);
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t n = a;
    while (n % b != 0)
        n += a;
    return n;
}

static void start_bias(fref__run *run)
{
    fref__call *c = &run->call;
    const int64_t *dim = c->backward.dbias_dim, count = dim[0] * dim[1] * dim[2] * dim[3];
    double *all = fref__run_doubles(run, FREF__BIAS, 4 * count);
    for (int n = 0; n < 4 && all; n++)
        c->bias_sum[n] = all + n * count;
    fref__run_clear(run, all, 4 * count * (int64_t)sizeof *all);
}

static void finish_bias(fref__run *run)
{
    const int64_t *dim = run->call.backward.dbias_dim;
    fref__run_launch(run, FREF__kernel_finish_bias, blocks_of(dim[0] * dim[1] * dim[2] * dim[3]),
                     FREF__THREADS);
}

static void all_slices(fref__run *run, pass *x)
{
    fref__call *c = &run->call;
    const int64_t align = x->wanted.freedom_of_keys ? common_multiple(c->group_k, c->group_v) : 1;
    x->bytes_of_head = (c->rows_padded * (8 * c->ld_qk + 3 * c->ld_v + 32) +
                        c->keys_padded * (6 * c->ld_qk + 6 * c->ld_v + 4)) *
                       (int64_t)sizeof(double);
    fref__run_plan(run, x->bytes_of_head, matrices_of(run), align);
    make_totals(run, &x->k);
    make_totals(run, &x->v);
    for (int64_t head = 0; head < run->heads && run->status == 0; head += run->heads_of_slice) {
        fref__run_take_slice(run, head);
        fref__run_prepare(run);
        channels(run, x);
        slice_pass(run, x);
    }
}

int fref_gpu_backward(fref_gpu *gpu, const fref_problem *problem, const fref_gpu_mod *mod,
                      const fref_tensor *q, const fref_tensor *k, const fref_tensor *v,
                      const fref_tensor *o, const fref_tensor *stats, const fref_tensor *d_o,
                      const fref_rounding *rounding, const fref_backward_out *out, uint64_t scores,
                      struct CUstream_st *stream, char error[256])
{
    fref__run run;
    fref__call *c = &run.call;
    pass x = { .wanted = wanted_of(out) };
    const bool has_scores = scores != 0 && scores == fref_gpu_scores(gpu);
    fref__run_start(&run, gpu, problem, mod, rounding, stream, error);
    run.has_scores = has_scores;
    run.goes_on = gpu->owes;
    c->q = *q;
    c->k = *k;
    c->v = *v;
    c->o = *o;
    c->stats = *stats;
    c->d_o = *d_o;
    c->backward = *out;
    const int64_t rows = problem->rows, keys = problem->keys;
    fref__run_cast_p(&run, 1.0);
    c->z_dp = fref__z_of(run.heads * rows * problem->keys);
    c->z_dq = fref__z_of_gradient(rounding, FREF_GRADIENT_Q, run.heads * rows * problem->dim_qk);
    c->z_dk = fref__z_of_gradient(rounding, FREF_GRADIENT_K,
                                  problem->batch * problem->heads_k * keys * problem->dim_qk);
    c->z_dv = fref__z_of_gradient(rounding, FREF_GRADIENT_V,
                                  problem->batch * problem->heads_v * keys * problem->dim_v);
    double *const largest[] = { out->amax_dp, out->dq.amax, out->dk.amax, out->dv.amax };
    for (int i = 0; i < 4; i++)
        fref__run_amax(&run, largest[i]);
    x.k = make_of_keys(&run, x.wanted.dk, 0, fref_has_freedom(&out->dk));
    x.v = make_of_keys(&run, x.wanted.dv, 1, fref_has_freedom(&out->dv));
    if (x.wanted.bias)
        start_bias(&run);
    all_slices(&run, &x);
    if (x.wanted.sink)
        fref__run_launch(&run, FREF__kernel_sink, problem->heads_q, FREF__SUM_THREADS);
    if (x.wanted.bias)
        finish_bias(&run);
    return fref__run_end(&run);
}
