/* Degrees of freedom: the effective number of terms; src/freedom.h. */
#include "weigh.cuh"

namespace fref
{

__device__ __forceinline__ score score_at(const fref__call &c, int64_t head, int64_t chunk_row,
                                          int64_t n)
{
    const int64_t at = (head * c.chunk_rows + chunk_row) * c.keys_padded + n;
    score s = { c.x[at], c.dp[at], 1.0, 0.0, 0.0, keep_of(c, head, c.row0 + chunk_row, n) };
    if (c.sloped) {
        s.slope = c.slope[at];
        s.curvature = c.curvature[at];
        s.slope_extra = c.slope_extra[at];
    }
    return s;
}

/* Of scale dS, before its cast. */
__device__ __forceinline__ void take_dp(amax *a, const fref__call &c, const fref__facts &f,
                                        const score &s, const gradient &g)
{
    const double scale = fabs(c.problem.scale), of_score = f.es * g.size,
                 of_dp = s.keep * f.ep * g.slope_p;
    const double of_delta = f.edelta * g.slope_p, of_o = f.eo * g.slope_p;
    const double off = (fabs(s.curvature) * f.es_raw + E32 * s.slope_extra) * g.dx;
    const double worst_off = (fabs(s.curvature) * f.ew_raw + 2.0 * E32 * s.slope_extra) * g.dx;
    const double sigma =
        sqrt(of_score * of_score + of_dp * of_dp + off * off + of_delta * of_delta + of_o * of_o);
    const double bound = f.ew * g.size + s.keep * f.ez * g.slope_p + fabs(worst_off) + of_delta +
                         sqrt(3.0 * (double)c.problem.dim_v) * of_o;
    const double flushed = g.slope_p < P_FLUSHED ? g.size : 0.0;
    take(a, scale * g.size, scale * (fmin(bound, c.z_dp * sigma) + flushed) + 0x1p-126);
}

} // namespace fref

using namespace fref;

/* Of dQ: w = dS^2 |k|^2; and the largest dS, without which the sums make neff (`counts`). A warp
 * for each row of the chunk. */
extern "C" __global__ void fref_row_weights(const __grid_constant__ fref__call c)
{
    const int64_t n = (int64_t)blockIdx.x * (FREF__THREADS / 32) + threadIdx.x / 32,
                  head = n / c.chunk_rows, r = c.row0 + n % c.chunk_rows;
    if (head >= c.heads || r >= c.rows)
        return;
    const int64_t at = head * c.rows_padded + r;
    const fref__span range = c.range[at];
    const fref__facts f = c.facts[at];
    const double *norm = c.norm_k + ((c.head0 + head) / c.group_k - c.head_k0) * c.keys_padded;
    double first = 0.0, second = 0.0;
    amax largest = {};
    for (int64_t j = range.first + threadIdx.x % 32; j < range.last; j += 32) {
        const score s = score_at(c, head, r - c.row0, j);
        if (s.x == -infinity())
            continue;
        const gradient g = gradient_of(s, f);
        const double term = g.size * norm[j], w = term * term;
        take_dp(&largest, c, f, s, g);
        first += w;
        second += w * w;
    }
    first = sum_of_warp(first);
    second = sum_of_warp(second);
    join(c.backward.amax_dp, largest);
    if (threadIdx.x % 32 == 0)
        c.facts[at].neff = effective_number(first, second);
}

namespace fref
{

/* A block counts for KEYS keys. Of PAD rows a thread weighs ROWS_AT_ONCE, which hide each other's
 * latency. */
enum {
    KEYS = FREF__WEIGHED_KEYS,
    LINES = FREF__SUM_THREADS / KEYS,
    ROWS_AT_ONCE = FREF__PAD / LINES
};

/* Adds one head's weights of the rows r, r + LINES, ... of the chunk. */
template <bool OF_V>
__device__ __forceinline__ void add_weights(double w[ROWS_AT_ONCE], const fref__call &c,
                                            int64_t head, int64_t r, int64_t key)
{
    const int64_t at = head * c.rows_padded + c.row0 + r;
    score s[ROWS_AT_ONCE];
    bool has[ROWS_AT_ONCE];
#pragma unroll
    for (int n = 0; n < ROWS_AT_ONCE; n++) {
        const fref__span range = c.range[at + n * LINES];
        has[n] = key >= range.first && key < range.last;
    }
#pragma unroll
    for (int n = 0; n < ROWS_AT_ONCE; n++)
        if (has[n])
            s[n] = score_at(c, head, r + n * LINES, key);
#pragma unroll
    for (int n = 0; n < ROWS_AT_ONCE; n++) {
        if (!has[n] || s[n].x == -infinity())
            continue;
        const fref__facts &f = c.facts[at + n * LINES];
        const gradient g = gradient_of(s[n], f);
        const double term = OF_V ? g.p * s[n].keep * f.norm_d_o : g.size * f.norm_q;
        w[n] += term * term;
    }
}

template <bool OF_V> __device__ __forceinline__ void count_keys(const fref__call &c, uint32_t block)
{
    __shared__ double sums[FREF__SUM_THREADS / 32][KEYS][2];
    const int64_t group = OF_V ? c.group_v : c.group_k, head0 = OF_V ? c.head_v0 : c.head_k0;
    const uint32_t tiles = (uint32_t)(c.keys_padded / KEYS);
    const int64_t slot = block / tiles, tile = block % tiles * KEYS;
    const int line = (int)threadIdx.x / KEYS, warp = (int)threadIdx.x / 32,
              lane = (int)threadIdx.x % 32;
    double first = 0.0, second = 0.0;
    for (int64_t r = line; r < c.chunk_rows; r += FREF__PAD) {
        double w[ROWS_AT_ONCE] = {};
        for (int64_t head = slot * group; head < (slot + 1) * group; head++)
            add_weights<OF_V>(w, c, head, r, tile + lane % KEYS);
#pragma unroll
        for (int n = 0; n < ROWS_AT_ONCE; n++) {
            first += w[n];
            second += w[n] * w[n];
        }
    }
    first += __shfl_xor_sync(0xffffffff, first, KEYS);
    second += __shfl_xor_sync(0xffffffff, second, KEYS);
    if (lane < KEYS) {
        sums[warp][lane][0] = first;
        sums[warp][lane][1] = second;
    }
    __syncthreads();
    if (warp != 0 || tile + lane / 2 >= c.keys)
        return;
    double *to = c.gradient[1 + OF_V].key_weights + 2 * ((head0 + slot) * c.keys + tile) + lane;
    double sum = c.first_chunk ? 0.0 : *to;
#pragma unroll
    for (int n = 0; n < FREF__SUM_THREADS / 32; n++)
        sum += sums[n][lane / 2][lane % 2];
    *to = sum;
}

} // namespace fref

/* Of dK, w = dS^2 |q|^2, and of dV, P^2 |dO|^2, added over the group's heads before they are
 * squared; a head alone is counted by the sums. A block for KEYS keys of each head of the slice's
 * groups, those of K (wanted & 1), then those of V (wanted & 2). */
extern "C" __global__
__launch_bounds__(FREF__SUM_THREADS, 2) void fref_key_weights(const __grid_constant__ fref__call c,
                                                              const int wanted)
{
    const uint32_t of_k = wanted & 1 ? (uint32_t)(c.heads_k * (c.keys_padded / KEYS)) : 0;
    if (blockIdx.x < of_k)
        count_keys<false>(c, blockIdx.x);
    else
        count_keys<true>(c, blockIdx.x - of_k);
}
