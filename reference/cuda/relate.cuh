/* Degrees of freedom: how channels are related; src/freedom.h. */
#pragma once
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
__device__ __forceinline__ fref__span live_rows(const fref__call &c, uint32_t head, fref__span shared[FREF__THREADS])
{
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

__device__ __forceinline__ freedom_rows rows_of(const fref__call &c, const relation &r, fref__span shared[FREF__THREADS])
{
    const uint32_t head = (uint32_t)(r.which == 2 ? c.head_k0 : c.head_v0) + r.slot;
    const fref__span live = r.which < 2 ? live_rows(c, r.slot, shared)
                                        : keys_of_all(c.problem, head / (uint32_t)(r.which == 2 ? c.problem.heads_k : c.problem.heads_v));
    const int64_t all = live.last - live.first;
    return { r.data + live.first * (int64_t)r.ld, all, (int)smaller(all, FREEDOM_ROWS) };
}

/* A thread's part of a step, two neighbours of the lines' channels and of the columns'; a warp takes every WARPS-th row. */
struct held_rows {
    pair at[2][HELD];
};

__device__ __forceinline__ void load_rows(held_rows *held, const relation &r, const freedom_rows &rows, int first)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int n = 0; n < HELD; n++) {
        const int m = first + warp + n * WARPS;
        const int64_t row = rows.all > rows.used ? (int64_t)((uint64_t)m * (uint64_t)rows.all / FREEDOM_ROWS) : m;
        const pair *from = (const pair *)(rows.first + row * r.ld) + lane;
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

/* What a block shares. */
struct relating {
    float staged[2][RELATE_ROWS][RELATE_LD];
    double per[2 * FREF__TILE];
    fref__related parts[WARPS];
    fref__span live[FREF__THREADS];
};

/* 1 / nch of each tensor of `channels`: C = X^T X over its rows on the TF32 tensor cores, channels with reciprocals of their exact squares. A block for
 * each head and pair of tiles of channels, the first of its launch. */
__device__ __forceinline__ void relate(const fref__call &c, double *shared)
{
    static_assert(sizeof(relating) <= FREF__OF_RELATION * sizeof(double), "");
    relating &s = *(relating *)shared;
    const relation r = find_relation(c);
    const freedom_rows rows = rows_of(c, r, s.live);
    const double unit = bring_below(c.extent[r.which][2 * r.slot], 0, -100);
    const int right = r.tile[0] == r.tile[1] ? 0 : 1;
    held_rows held;
    double squares[2][2] = {};
    float sum[4][4] = {};
    load_rows(&held, r, rows, 0);
    for (int m = 0; m < rows.used; m += RELATE_ROWS) {
        stage_rows(s.staged, squares, held, unit);
        __syncthreads();
        load_rows(&held, r, rows, m + RELATE_ROWS);
        multiply_rows(sum, s.staged[0], s.staged[right]);
        __syncthreads();
    }
    static_assert(sizeof s.staged >= WARPS * sizeof s.per, "");
    reciprocals_of_channels(s.per, (double(*)[2 * FREF__TILE])s.staged, squares);
    fref__related mine = traces(r, sum, s.per, s.per + right * FREF__TILE);
    mine = { sum_of_warp(mine.squares), sum_of_warp(mine.trace) };
    if (threadIdx.x % 32 == 0)
        s.parts[threadIdx.x / 32] = mine;
    __syncthreads();
    for (int n = 1; n < WARPS && threadIdx.x == 0; n++)
        mine = { mine.squares + s.parts[n].squares, mine.trace + s.parts[n].trace };
    finish_relation(c, r, mine);
}

}
