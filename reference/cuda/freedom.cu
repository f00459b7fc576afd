/* Degrees of freedom: how channels are related, and the effective number of terms; src/freedom.h. */
#include "kept.cuh"
#include "weigh.cuh"

namespace fref {

enum {
    FREEDOM_ROWS = 1024,
    RELATE_ROWS = 64, /* at a time */
    RELATE_LD = FREF__TILE + 8, /* no lanes meet in a bank */
    WARPS = FREF__THREADS / 32,
    HELD = RELATE_ROWS / WARPS
};

/* What a block relates: TILE channels of one head of a decoded tensor, lines, with TILE others or with themselves, columns. */
struct relation {
    int which; /* of fref__call.channels */
    const double *data; /* the head's */
    int ld;
    uint32_t slot, group; /* the head in the lot; heads that have one nch */
    uint32_t pairs;       /* blocks of a head */
    int tile[2];          /* of channels: line, column */
    uint32_t of_group;    /* the first block of the head's group */
};

__device__ __forceinline__ relation find_relation(const fref__call &c)
{
    relation r = {};
    uint32_t at = blockIdx.x, tiles = 0;
    for (;; r.which++) {
        const int64_t heads = r.which < 2 ? c.heads : r.which == 2 ? c.heads_k : c.heads_v;
        r.ld = (int)(r.which % 2 == 0 ? c.ld_qk : c.ld_v);
        tiles = (uint32_t)r.ld / FREF__TILE;
        r.pairs = tiles * (tiles + 1) / 2;
        if (c.channels[r.which] != nullptr && at < heads * r.pairs)
            break;
        at -= c.channels[r.which] != nullptr ? (uint32_t)heads * r.pairs : 0;
    }
    r.slot = at / r.pairs;
    r.tile[0] = (int)(at % r.pairs);
    for (; r.tile[0] > r.tile[1]; r.tile[1]++)
        r.tile[0] -= r.tile[1] + 1;
    r.group = (uint32_t)(r.which == 0 ? c.group_k : r.which == 1 ? c.group_v : 1);
    r.of_group = blockIdx.x - at + r.slot / r.group * r.group * r.pairs;
    const double *all = r.which == 0 ? c.rows_q : r.which == 1 ? c.rows_d_o : r.which == 2 ? c.keys_k : c.keys_v;
    r.data = all + r.slot * (r.which < 2 ? c.rows_padded : c.keys_padded) * r.ld;
    return r;
}

/* From the head's first live row to its last. */
__device__ __forceinline__ fref__span live_rows(const fref__call &c, uint32_t head)
{
    __shared__ fref__span shared[FREF__THREADS];
    const fref__span *range = c.range + head * c.rows_padded;
    const int rows = (int)c.rows;
    fref__span mine = { 0, 0 };
#pragma unroll 8
    for (int r = (int)threadIdx.x; r < rows; r += FREF__THREADS)
        if (range[r].last != 0)
            mine = both(mine, { r, r + 1 });
    shared[threadIdx.x] = mine;
    for (int n = FREF__THREADS / 2; n > 0; n /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < n)
            shared[threadIdx.x] = both(shared[threadIdx.x], shared[threadIdx.x + n]);
    }
    __syncthreads();
    return shared[0];
}

/* At most FREEDOM_ROWS of the head's rows that count, evenly spaced. */
struct freedom_rows {
    const double *first;
    int64_t all;
    int used;
};

__device__ __forceinline__ freedom_rows rows_of(const fref__call &c, const relation &r)
{
    const uint32_t head = (uint32_t)(r.which == 2 ? c.head_k0 : c.head_v0) + r.slot;
    const fref__span live = r.which < 2 ? live_rows(c, r.slot)
                                        : keys_of_all(c.problem, head / (uint32_t)(r.which == 2 ? c.problem.heads_k : c.problem.heads_v));
    const int64_t all = live.last - live.first;
    return { r.data + live.first * (int64_t)r.ld, all, (int)smaller(all, FREEDOM_ROWS) };
}

/* Two neighbouring channels of a row. */
struct alignas(16) channel_pair {
    double x[2];
};

/* A thread's part of a step, of the lines' channels and of the columns'; a warp takes every WARPS-th row. */
struct held_rows {
    channel_pair at[2][HELD];
};

__device__ __forceinline__ void load_rows(held_rows *held, const relation &r, const freedom_rows &rows, int first)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int n = 0; n < HELD; n++) {
        const int m = first + warp + n * WARPS;
        const int64_t row = rows.all > rows.used ? (int64_t)((uint64_t)m * (uint64_t)rows.all / FREEDOM_ROWS) : m;
        const channel_pair *from = (const channel_pair *)(rows.first + row * r.ld) + lane;
#pragma unroll
        for (int side = 0; side < 2; side++) {
            held->at[side][n] = {};
            if (m < rows.used && (side == 0 || r.tile[0] != r.tile[1]))
                held->at[side][n] = from[r.tile[side] * (FREF__TILE / 2)];
        }
    }
}

/* To `staged`, in units that leave the longest row below 1; adds the squares of the thread's channels. */
__device__ __forceinline__ void stage_rows(float staged[2][RELATE_ROWS][RELATE_LD], double squares[2][2], const held_rows &held, double unit)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int side = 0; side < 2; side++)
#pragma unroll
        for (int n = 0; n < HELD; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const double x = held.at[side][n].x[i] * unit;
                squares[side][i] += x * x;
                staged[side][warp + n * WARPS][2 * lane + i] = cut((float)x);
            }
}

/* A warp has 16 lines and 32 columns. */
__device__ __forceinline__ void multiply_rows(float sum[4][4], const float left[RELATE_ROWS][RELATE_LD], const float right[RELATE_ROWS][RELATE_LD])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, line = warp / 2 * 16 + lane / 4, column = warp % 2 * 32 + lane / 4;
#pragma unroll
    for (int k = lane % 4; k < RELATE_ROWS; k += 8) {
        float a[4];
#pragma unroll
        for (int n = 0; n < 4; n++)
            a[n] = left[k + n / 2 * 4][line + n % 2 * 8];
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const float b[2] = { right[k][column + 8 * n], right[k + 4][column + 8 * n] };
            multiply_roughly(sum[n], a, b);
        }
    }
}

/* Of each channel, 1 / its sum of squares; 0 where it is nothing but zeros. */
__device__ __forceinline__ void reciprocals_of_channels(double per[2 * FREF__TILE], double shared[WARPS][2 * FREF__TILE], const double squares[2][2])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, t = (int)threadIdx.x;
    for (int n = 0; n < 4; n++)
        shared[warp][n / 2 * FREF__TILE + 2 * lane + n % 2] = squares[n / 2][n % 2];
    __syncthreads();
    if (t < 2 * FREF__TILE) {
        double sum = 0.0;
        for (int n = 0; n < WARPS; n++)
            sum += shared[n][t];
        per[t] = sum > 0.0 ? 1.0 / sum : 0.0;
    }
    __syncthreads();
}

/* The thread's part of tr(C^2) and tr(C), of C with ones on its diagonal; what lies below the diagonal is counted with what lies above. */
__device__ __forceinline__ fref__related traces(const relation &r, const float sum[4][4], const double *of_lines, const double *of_columns)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool same = r.tile[0] == r.tile[1];
    fref__related to = { 0.0, 0.0 };
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int line = warp / 2 * 16 + lane / 4 + i / 2 * 8, column = warp % 2 * 32 + 8 * n + lane % 4 * 2 + i % 2;
            const double x = (double)sum[n][i], one = of_lines[line] > 0.0 ? 1.0 : 0.0;
            const bool diagonal = same && line == column;
            to.squares += diagonal ? one : (same ? 1.0 : 2.0) * (x * of_lines[line] * (x * of_columns[column]));
            to.trace += diagonal ? one : 0.0;
        }
    return to;
}

/* Adds what a head's blocks left, in their order: 1 / nch. */
__device__ __forceinline__ double per_channel(const volatile fref__related *parts, uint32_t count)
{
    double squares = 0.0, trace = 0.0;
    for (uint32_t n = 0; n < count; n++) {
        squares += parts[n].squares;
        trace += parts[n].trace;
    }
    return trace > 0.0 && trace * trace > squares ? squares / (trace * trace) : 1.0;
}

/* The last of a group's blocks knows its nch: the least of its heads'. */
__device__ __forceinline__ void finish_relation(const fref__call &c, const relation &r, const fref__related &mine)
{
    const int lane = threadIdx.x % 32;
    const uint32_t unit = r.slot / r.group;
    int last = 0;
    if (threadIdx.x == 0) {
        c.related[blockIdx.x] = mine;
        __threadfence();
        last = atomicInc(c.related_blocks + r.which * c.heads + unit * r.group, r.group * r.pairs - 1) == r.group * r.pairs - 1;
    }
    if (!__syncthreads_or(last) || threadIdx.x >= 32)
        return;
    __threadfence();
    double most = 0.0;
    for (uint32_t n = (uint32_t)lane; n < r.group; n += 32)
        most = fmax(most, per_channel(c.related + r.of_group + n * r.pairs, r.pairs));
    most = largest_of_warp(most);
    if (lane == 0)
        c.channels[r.which][(r.which == 0 ? c.head_k0 : r.which == 1 ? c.head_v0 : 0) + unit] = most;
}

}

using namespace fref;

/* 1 / nch of each tensor of `channels`: C = X^T X over its rows on the TF32 tensor cores, channels with reciprocals of their exact squares. A block for
 * each head and pair of tiles of channels; what is beyond these `relations` makes kept_v, which waits for nothing else either. */
extern "C" __global__ __launch_bounds__(FREF__THREADS, 2) void fref_relate(const __grid_constant__ fref__call c, const int relations)
{
    __shared__ float staged[2][RELATE_ROWS][RELATE_LD];
    __shared__ double per[2 * FREF__TILE];
    __shared__ fref__related parts[WARPS];
    if ((int)blockIdx.x >= relations) {
        make_kept_sums(c, blockIdx.x - (uint32_t)relations);
        return;
    }
    const relation r = find_relation(c);
    const freedom_rows rows = rows_of(c, r);
    const double unit = bring_below(c.extent[r.which][2 * r.slot], 0, -100);
    const int right = r.tile[0] == r.tile[1] ? 0 : 1;
    held_rows held;
    double squares[2][2] = {};
    float sum[4][4] = {};
    load_rows(&held, r, rows, 0);
    for (int m = 0; m < rows.used; m += RELATE_ROWS) {
        stage_rows(staged, squares, held, unit);
        __syncthreads();
        load_rows(&held, r, rows, m + RELATE_ROWS);
        multiply_rows(sum, staged[0], staged[right]);
        __syncthreads();
    }
    static_assert(sizeof staged >= WARPS * sizeof per, "");
    reciprocals_of_channels(per, (double(*)[2 * FREF__TILE])staged, squares);
    fref__related mine = traces(r, sum, per, per + right * FREF__TILE);
    mine = { sum_of_warp(mine.squares), sum_of_warp(mine.trace) };
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = mine;
    __syncthreads();
    for (int n = 1; n < WARPS && threadIdx.x == 0; n++)
        mine = { mine.squares + parts[n].squares, mine.trace + parts[n].trace };
    finish_relation(c, r, mine);
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

template <bool OF_V> __device__ __forceinline__ void count_keys(const fref__call &c, uint32_t block)
{
    __shared__ double sums[FREF__SUM_THREADS / 32][KEYS][2];
    const int64_t group = OF_V ? c.group_v : c.group_k, head0 = OF_V ? c.head_v0 : c.head_k0;
    const uint32_t tiles = (uint32_t)(c.keys_padded / KEYS);
    const int64_t slot = block / tiles, tile = block % tiles * KEYS;
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
    double *to = c.gradient[1 + OF_V].key_weights + 2 * ((head0 + slot) * c.keys + tile) + lane;
    double sum = c.first_chunk ? 0.0 : *to;
#pragma unroll
    for (int n = 0; n < FREF__SUM_THREADS / 32; n++)
        sum += sums[n][lane / 2][lane % 2];
    *to = sum;
}

}

/* Of dK, w = dS^2 |q|^2, and of dV, P^2 |dO|^2, added over the group's heads before they are squared; a head alone is counted by the sums. A block for
 * KEYS keys of each head of the lot's groups, those of K (wanted & 1), then those of V (wanted & 2). */
extern "C" __global__ __launch_bounds__(FREF__SUM_THREADS, 2) void fref_key_weights(const __grid_constant__ fref__call c, const int wanted)
{
    const uint32_t of_k = wanted & 1 ? (uint32_t)(c.heads_k * (c.keys_padded / KEYS)) : 0;
    if (blockIdx.x < of_k)
        count_keys<false>(c, blockIdx.x);
    else
        count_keys<true>(c, blockIdx.x - of_k);
}
