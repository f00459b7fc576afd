/* dBias: sums of dX over what the bias broadcasts; src/backward/backward_bias.c. */
#include "weigh.cuh"

namespace fref
{

struct bias_sums {
    double value, magnitude, variance, bound;
};

__device__ __forceinline__ void add_sums(bias_sums *to, const bias_sums &more)
{
    *to = { to->value + more.value, to->magnitude + more.magnitude, to->variance + more.variance,
            to->bound + more.bound };
}

/* The casts before the last: of the parts, and of partial sums after each reduced dimension, in
 * those of the parts. */
struct bias_casts {
    double unit_roundoff, squares, sizes, tiny;
};

/* Entries that are reduced to one of dBias. */
__device__ __forceinline__ int64_t reduced_to_one(const fref__call &c)
{
    const int64_t *dim = c.backward.dbias_dim;
    return c.problem.batch / dim[0] * (c.problem.heads_q / dim[1]) * (c.problem.rows / dim[2]);
}

/* The stored number's size beside dX's, where it is less: what is cast is attn_scale dX. */
__device__ __forceinline__ double stored_part(const fref__call &c)
{
    const double scale = fabs(c.problem.scale);
    return c.rounding.bias_parts_cast && scale > 0.0 ? fmin(scale, 1.0) : 1.0;
}

__device__ __forceinline__ bias_casts casts_of(const fref__call &c)
{
    const fref_problem &p = c.problem;
    const int64_t full[3] = { p.batch, p.heads_q, p.rows };
    bias_casts casts = { 0.0, 0.0, 0.0, 0.0 };
    double parts = 1.0; /* of a sum over the dimensions so far */
    for (int d = 0; d < 3; d++) {
        const int64_t extent = full[d] / c.backward.dbias_dim[d];
        if (extent == 1)
            continue;
        casts.squares += parts;
        casts.sizes += 1.0;
        parts *= (double)extent;
    }
    if (!c.rounding.bias_parts_cast)
        return casts;
    int exponent;
    const bool scaled = p.scale != 0.0 && fabs(frexp(p.scale, &exponent)) != 0.5;
    casts.squares += scaled;
    casts.sizes += scaled;
    if (casts.sizes > 0.0)
        casts.unit_roundoff = c.bias_to.unit_roundoff;
    casts.tiny = c.bias_to.tiny / stored_part(c);
    return casts;
}

__device__ __forceinline__ void add_entry(bias_sums *sums, const fref__call &c, int64_t head,
                                          int64_t chunk_row, int64_t j, const bias_casts &casts)
{
    const int64_t at = head * c.rows_padded + c.row0 + chunk_row,
                  n = (head * c.chunk_rows + chunk_row) * c.keys_padded + j;
    const fref__span range = c.range[at];
    const double x = c.x[n], dp = c.dp[n]; /* whatever they are: one wait for all */
    const fref__facts f = c.facts[at];
    if (j < range.first || j >= range.last || x == -infinity())
        return;
    const double p = x * f.per_sum, kept = keep_of(c, head, c.row0 + chunk_row, j),
                 ep = kept * f.ep;
    const double dx = p * (kept * dp - f.delta), size = fabs(dx);
    const double variance_p = ep * ep + f.variance_delta;
    const double worst_p = kept * f.ez + f.worst_delta;
    const double cast = casts.unit_roundoff * fmax(size, casts.tiny), by_score = f.es * dx;
    sums->value += dx;
    sums->magnitude += size;
    sums->variance +=
        by_score * by_score + variance_p * p * p + THIRD * casts.squares * cast * cast;
    sums->bound += f.ew * size + worst_p * p + casts.sizes * cast + (p < P_FLUSHED ? size : 0.0);
}

} // namespace fref

using namespace fref;

/* A lane for each key; a warp for each row of the chunk, or where rows are reduced for every
 * BIAS_ROWS-th: then the warps' sums are added in their order. z: the rest. */
extern "C" __global__
__launch_bounds__(FREF__SUM_THREADS) void fref_add_bias(const __grid_constant__ fref__call c)
{
    __shared__ bias_casts casts;
    __shared__ bias_sums parts[FREF__BIAS_ROWS][32];
    const int64_t *dim = c.backward.dbias_dim;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool of_row = dim[2] > 1;
    const int64_t key = (int64_t)blockIdx.x * 32 + lane,
                  row = of_row ? (int64_t)blockIdx.y * FREF__BIAS_ROWS + warp : warp;
    const int64_t rows = smaller(c.chunk_rows, c.rows - c.row0), of_batch = blockIdx.z / dim[1],
                  of_head = blockIdx.z % dim[1];
    if (threadIdx.x == 0)
        casts = casts_of(c);
    __syncthreads();
    bias_sums sums = { 0.0, 0.0, 0.0, 0.0 };
    for (int64_t head = 0; head < c.heads; head++) {
        const batch_head at = batch_head_of(c.head0 + head, c.problem.heads_q);
        if ((dim[0] > 1 && at.b != of_batch) || (dim[1] > 1 && at.h != of_head))
            continue;
        for (int64_t r = row; r < rows && key < c.keys; r += of_row ? rows : FREF__BIAS_ROWS)
            add_entry(&sums, c, head, r, key, casts);
    }
    parts[warp][lane] = sums;
    __syncthreads();
    if (row >= rows || key >= dim[3] || (!of_row && warp > 0))
        return;
    for (int n = 1; n < FREF__BIAS_ROWS && !of_row; n++)
        add_sums(&sums, parts[n][lane]);
    const int64_t to =
        ((of_batch * dim[1] + of_head) * dim[2] + (of_row ? c.row0 + row : 0)) * dim[3] + key;
    c.bias_sum[0][to] += sums.value;
    c.bias_sum[1][to] += sums.magnitude;
    c.bias_sum[2][to] += sums.variance;
    c.bias_sum[3][to] += sums.bound;
}

extern "C" __global__ void fref_finish_bias(const __grid_constant__ fref__call c)
{
    const fref_backward_out &out = c.backward;
    const int64_t n = (int64_t)blockIdx.x * FREF__THREADS + threadIdx.x;
    if (n >= out.dbias_dim[0] * out.dbias_dim[1] * out.dbias_dim[2] * out.dbias_dim[3])
        return;
    const double terms = (double)reduced_to_one(c) / 16.0, sqrt_n = sqrt(terms > 1.0 ? terms : 1.0);
    const double value = c.bias_sum[0][n], sum = E32 * sqrt_n * c.bias_sum[1][n],
                 stored = stored_part(c);
    const double cast = c.bias_to.unit_roundoff * fmax(fabs(value), c.bias_to.tiny / stored);
    const bool read = c.bias_sum[3][n] > 0x1p-1000; /* less may be what subnormals have left */
    if (out.dbias.value != nullptr)
        out.dbias.value[n] = value;
    if (out.dbias.sigma != nullptr)
        out.dbias.sigma[n] = read ? sqrt(c.bias_sum[2][n] + sum * sum + THIRD * cast * cast) : 0.0;
    if (out.dbias.bound != nullptr)
        out.dbias.bound[n] = read ? c.bias_sum[3][n] + sum * sqrt_n + cast : 0.0;
}
