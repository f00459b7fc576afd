/* Degrees of freedom: how channels are related, and the effective number of terms; src/freedom.h. */
#include "weigh.cuh"

namespace fref {

enum { FREEDOM_ROWS = 1024 };

/* One of the decoded tensors. */
struct decoded {
    const double *data;
    int64_t padded, ld, dim, heads;
};

__device__ __forceinline__ decoded decoded_of(const fref__call &c, int which)
{
    const decoded all[] = { { c.rows_q, c.rows_padded, c.ld_qk, c.problem.dim_qk, c.heads },
                            { c.rows_d_o, c.rows_padded, c.ld_v, c.problem.dim_v, c.heads },
                            { c.keys_k, c.keys_padded, c.ld_qk, c.problem.dim_qk, c.heads_k },
                            { c.keys_v, c.keys_padded, c.ld_v, c.problem.dim_v, c.heads_v } };
    return all[which];
}

}

using namespace fref;

/* A block for each head of the lot. */
extern "C" __global__ void fref_live_rows(const __grid_constant__ fref__call c)
{
    __shared__ fref__span shared[FREF__THREADS];
    fref__span mine = { 0, 0 };
    for (int64_t r = threadIdx.x; r < c.rows; r += FREF__THREADS)
        if (c.range[blockIdx.x * c.rows_padded + r].last != 0)
            mine = both(mine, { (int32_t)r, (int32_t)r + 1 });
    shared[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int n = 1; n < FREF__THREADS; n++)
        mine = both(mine, shared[n]);
    c.live_rows[blockIdx.x] = mine;
}

/* C = X^T X over at most FREEDOM_ROWS live rows, evenly spaced: a warp for 16 rows of C, 64 columns, and one of RELATE_PARTS of X's rows. which: of
 * channels[]. */
extern "C" __global__ __launch_bounds__(FREF__THREADS) void fref_relate(const __grid_constant__ fref__call c, const int which)
{
    const decoded x = decoded_of(c, which);
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int64_t columns = x.ld / 64, lines = x.ld / 16, unit = (int64_t)blockIdx.x * (FREF__THREADS / 32) + threadIdx.x / 32;
    const int64_t column = unit % columns * 64, line = unit / columns % lines * 16, part = unit / columns / lines % FREF__RELATE_PARTS;
    const int64_t slot = unit / columns / lines / FREF__RELATE_PARTS;
    const int64_t b = which == 2 ? (c.head_k0 + slot) / c.problem.heads_k : (c.head_v0 + slot) / c.problem.heads_v;
    const fref__span live = which < 2 ? c.live_rows[slot] : keys_of_all(c.problem, b);
    const int64_t n = live.last - live.first, used = smaller(n, FREEDOM_ROWS);
    const double *rows = x.data + (slot * x.padded + live.first) * x.ld;
    double sum[8][4] = {};
#pragma unroll 2
    for (int64_t m = part * 8 + t; m - t < used; m += 8 * FREF__RELATE_PARTS) {
        const bool has[2] = { m < used, m + 4 < used };
        const double *row[2];
        double left[4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t at = has[i] ? m + 4 * i : 0;
            row[i] = rows + (n > used ? at * n / FREEDOM_ROWS : at) * x.ld;
            left[2 * i] = has[i] ? row[i][line + g] : 0.0;
            left[2 * i + 1] = has[i] ? row[i][line + g + 8] : 0.0;
        }
#pragma unroll
        for (int tile = 0; tile < 8; tile++) {
            const double right[2] = { row[0][column + 8 * tile + g], row[1][column + 8 * tile + g] };
            multiply(sum[tile], left, right);
        }
    }
    double *to = c.relation + ((part * x.heads + slot) * x.ld + line + g) * x.ld + column + 2 * t;
#pragma unroll
    for (int tile = 0; tile < 8; tile++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[i / 2 * 8 * x.ld + 8 * tile + i % 2] = sum[tile][i];
}

/* nch, from C: a block for each head. */
extern "C" __global__ __launch_bounds__(FREF__CHANNEL_THREADS) void fref_channels(const __grid_constant__ fref__call c, const int which)
{
    __shared__ double partial[2][FREF__CHANNEL_THREADS / 32];
    const decoded x = decoded_of(c, which);
    const int64_t part = x.heads * x.ld * x.ld;
    const int dim = (int)x.dim, ld = (int)x.ld;
    double *all = c.relation + blockIdx.x * x.ld * x.ld;
#pragma unroll 4
    for (int n = threadIdx.x; n < ld * ld; n += FREF__CHANNEL_THREADS) {
        double sum = all[n];
#pragma unroll
        for (int i = 1; i < FREF__RELATE_PARTS; i++)
            sum += all[i * part + n];
        all[n] = sum;
    }
    __syncthreads();
    double squares = 0.0, trace = 0.0;
#pragma unroll 4
    for (int n = threadIdx.x; n < dim * dim; n += FREF__CHANNEL_THREADS) {
        const int a = n / dim, b = n % dim;
        const double of_a = all[a * ld + a], of_b = all[b * ld + b], both_ = all[a * ld + b];
        if (of_a > 0.0 && of_b > 0.0)
            squares += both_ / of_a * (both_ / of_b);
        trace += a == b && of_a > 0.0 ? 1.0 : 0.0;
    }
    squares = sum_of_warp(squares);
    trace = sum_of_warp(trace);
    if (threadIdx.x % 32 == 0) {
        partial[0][threadIdx.x / 32] = squares;
        partial[1][threadIdx.x / 32] = trace;
    }
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    constexpr int WARPS = FREF__CHANNEL_THREADS / 32;
    squares = sum_of_lanes<WARPS>(partial[0][threadIdx.x % WARPS]);
    trace = sum_of_lanes<WARPS>(partial[1][threadIdx.x % WARPS]);
    if (threadIdx.x == 0)
        c.channels[which][blockIdx.x] = trace > 0.0 && trace * trace > squares ? trace * trace / squares : 1.0;
}

/* The least of a group's query heads, for each head of K (of_v: of V) of the lot; the lot holds whole groups. */
extern "C" __global__ void fref_group_channels(const __grid_constant__ fref__call c, const int of_v)
{
    const int64_t slot = (int64_t)blockIdx.x * FREF__THREADS + threadIdx.x, group = of_v ? c.group_v : c.group_k;
    if (slot >= (of_v ? c.heads_v : c.heads_k))
        return;
    double least = infinity();
    for (int64_t n = 0; n < group; n++)
        least = fmin(least, c.channels[of_v][slot * group + n]);
    c.group_channels[(of_v ? c.head_v0 : c.head_k0) + slot] = least;
}

namespace fref {

__device__ __forceinline__ score score_at(const fref__call &c, int64_t head, int64_t chunk_row, int64_t n)
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
__device__ __forceinline__ void take_dp(amax *a, const fref__call &c, const fref__facts &f, const score &s, const gradient &g)
{
    const double scale = fabs(c.problem.scale), of_score = f.es * g.size, of_dp = s.keep * f.ep * g.slope_p;
    const double of_delta = f.edelta * g.slope_p, of_o = f.eo * g.slope_p;
    const double off = (fabs(s.curvature) * f.es_raw + E32 * s.slope_extra) * g.dx;
    const double worst_off = (fabs(s.curvature) * f.ew_raw + 2.0 * E32 * s.slope_extra) * g.dx;
    const double sigma = sqrt(of_score * of_score + of_dp * of_dp + off * off + of_delta * of_delta + of_o * of_o);
    const double bound = f.ew * g.size + s.keep * f.ez * g.slope_p + fabs(worst_off) + of_delta + sqrt(3.0 * (double)c.problem.dim_v) * of_o;
    const double flushed = g.slope_p < P_FLUSHED ? g.size : 0.0;
    take(a, scale * g.size, scale * (fmin(bound, c.z_dp * sigma) + flushed) + 0x1p-126);
}

}

/* Of dQ: w = dS^2 |k|^2; and the largest dS, without which the sums make neff (`counts`). A warp for each row of the chunk. */
extern "C" __global__ void fref_row_weights(const __grid_constant__ fref__call c)
{
    const int64_t n = (int64_t)blockIdx.x * (FREF__THREADS / 32) + threadIdx.x / 32, head = n / c.chunk_rows, r = c.row0 + n % c.chunk_rows;
    if (head >= c.heads || r >= c.rows)
        return;
    const int64_t at = head * c.rows_padded + r;
    const fref__span range = c.range[at];
    const fref__facts f = c.facts[at];
    const double *norm = c.norm_k + ((c.head0 + head) / c.group_k - c.head_k0) * c.norms;
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

namespace fref {

/* A block counts for KEYS keys. Of PAD rows a thread weighs ROWS_AT_ONCE, which hide each other's latency. */
enum { KEYS = FREF__WEIGHED_KEYS, LINES = FREF__SUM_THREADS / KEYS, ROWS_AT_ONCE = FREF__PAD / LINES };

/* Adds one head's weights of the rows r, r + LINES, ... of the chunk. */
template <bool OF_V> __device__ __forceinline__ void add_weights(double w[ROWS_AT_ONCE], const fref__call &c, int64_t head, int64_t r, int64_t key)
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

template <bool OF_V> __device__ __forceinline__ void count_keys(const fref__call &c)
{
    __shared__ double sums[FREF__SUM_THREADS / 32][KEYS][2];
    const int64_t group = OF_V ? c.group_v : c.group_k, head0 = OF_V ? c.head_v0 : c.head_k0;
    const unsigned tiles = (unsigned)(c.keys_padded / KEYS);
    const int64_t slot = blockIdx.x / tiles, tile = blockIdx.x % tiles * KEYS;
    const int line = (int)threadIdx.x / KEYS, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
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
    double *to = c.key_weights + 2 * ((head0 + slot) * c.keys + tile) + lane;
    double sum = c.first_chunk ? 0.0 : *to;
#pragma unroll
    for (int n = 0; n < FREF__SUM_THREADS / 32; n++)
        sum += sums[n][lane / 2][lane % 2];
    *to = sum;
}

}

/* Of dK, w = dS^2 |q|^2 (of_v: of dV, P^2 |dO|^2), added over the group's heads before they are squared; a head alone is counted by the sums. A block for
 * KEYS keys of each head of the lot's groups. */
extern "C" __global__ __launch_bounds__(FREF__SUM_THREADS, 2) void fref_key_weights(const __grid_constant__ fref__call c, const int of_v)
{
    if (of_v)
        count_keys<true>(c);
    else
        count_keys<false>(c);
}
