/* Degrees of freedom: how channels are related; src/freedom.h. */
#pragma once
#include "weigh.cuh"

namespace fref
{

enum {
    FREEDOM_ROWS = 1024,
    RELATE_ROWS = 32,           /* at a time */
    RELATE_LD = FREF__TILE + 4, /* no lanes meet in a bank */
    SHARES = 16 + 4,            /* doubles that a thread has of a relation: of C, and of squares */
    WARPS = FREF__THREADS / 32,
    HELD = RELATE_ROWS / WARPS
};

/* The work of a block: relates TILE channels of one head of a decoded tensor, lines, with TILE
 * others or with themselves, columns. */
struct relation {
    int which;          /* of fref__call.channels */
    const double *data; /* the head's */
    int ld;
    uint32_t slot, group; /* the head in the slice; heads that have one nch */
    uint32_t pairs;       /* blocks of a head */
    int tile[2];          /* of channels: line, column */
    uint32_t unit, part;  /* its number; which of the blocks that share its rows */
    uint32_t of_group;    /* the first relation of the head's group */
};

__device__ __forceinline__ relation find_relation(const fref__call &c)
{
    relation r = {};
    r.unit = blockIdx.x / (uint32_t)c.related_parts;
    r.part = blockIdx.x - r.unit * (uint32_t)c.related_parts;
    uint32_t at = r.unit, tiles = 0;
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
    r.of_group = r.unit - at + r.slot / r.group * r.group * r.pairs;
    const double *all = r.which == 0   ? c.rows_q
                        : r.which == 1 ? c.rows_d_o
                        : r.which == 2 ? c.keys_k
                                       : c.keys_v;
    r.data = all + r.slot * (r.which < 2 ? c.rows_padded : c.keys_padded) * r.ld;
    return r;
}

/* The shared memory of a block. */
struct relating {
    double staged[2][RELATE_ROWS][RELATE_LD]; /* of lines and columns */
    double per[2 * FREF__TILE];
    fref__related parts[WARPS];
    uint32_t ends[2][WARPS];
};

/* From the head's first live row to its last. */
__device__ __forceinline__ fref__span live_rows(const fref__call &c, uint32_t head,
                                                uint32_t ends[2][WARPS])
{
    const fref__span *range = c.range + head * c.rows_padded;
    const int rows = (int)c.rows, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint32_t first = UINT32_MAX, last = UINT32_MAX; /* counted down */
#pragma unroll 4
    for (int r = (int)threadIdx.x; r < rows; r += FREF__THREADS)
        if (range[r].last != 0) {
            first = first == UINT32_MAX ? (uint32_t)r : first;
            last = UINT32_MAX - (uint32_t)r;
        }
    first = __reduce_min_sync(0xffffffff, first);
    last = __reduce_min_sync(0xffffffff, last);
    if (lane == 0) {
        ends[0][warp] = first;
        ends[1][warp] = last;
    }
    __syncthreads();
    first = __reduce_min_sync(0xffffffff, ends[0][lane % WARPS]);
    last = __reduce_min_sync(0xffffffff, ends[1][lane % WARPS]);
    if (first == UINT32_MAX)
        return { 0, 0 };
    return { (int32_t)first, (int32_t)(UINT32_MAX - last) + 1 };
}

/* At most FREEDOM_ROWS of the head's rows that count, evenly spaced. */
struct freedom_rows {
    const double *first;
    uint32_t apart; /* times FREEDOM_ROWS */
    int used;
};

__device__ __forceinline__ freedom_rows rows_of(const fref__call &c, const relation &r,
                                                uint32_t ends[2][WARPS])
{
    const uint32_t head = (uint32_t)(r.which == 2 ? c.head_k0 : c.head_v0) + r.slot;
    const fref__span live =
        r.which < 2 ? live_rows(c, r.slot, ends)
                    : keys_of_all(c.problem, head / (uint32_t)(r.which == 2 ? c.problem.heads_k
                                                                            : c.problem.heads_v));
    const int all = live.last - live.first;
    return { r.data + live.first * (int64_t)r.ld, all > FREEDOM_ROWS ? (uint32_t)all : FREEDOM_ROWS,
             all < FREEDOM_ROWS ? all : FREEDOM_ROWS };
}

/* A thread's part of a step, two neighbours of the lines' channels and of the columns'; a warp
 * takes every WARPS-th row. */
struct held_rows {
    pair at[2][HELD];
};

/* Past the last row: the last row again. */
__device__ __forceinline__ void load_rows(held_rows *held, const relation &r,
                                          const freedom_rows &rows, int first)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const double *left = rows.first + r.tile[0] * FREF__TILE + 2 * lane,
                 *right = rows.first + r.tile[1] * FREF__TILE + 2 * lane;
#pragma unroll
    for (int n = 0; n < HELD; n++) {
        const int m = first + warp + n * WARPS;
        const uint64_t row = (uint64_t)(uint32_t)(m < rows.used ? m : rows.used - 1) * rows.apart /
                             FREEDOM_ROWS,
                       at = (uint32_t)row * (uint64_t)(uint32_t)r.ld;
        held->at[0][n] = *(const pair *)(left + at);
        if (r.tile[0] != r.tile[1])
            held->at[1][n] = *(const pair *)(right + at);
    }
}

/* The rows from `first` on; adds the squares of the thread's channels. */
__device__ __forceinline__ void stage_rows(double to[2][RELATE_ROWS][RELATE_LD],
                                           double squares[2][2], const relation &r,
                                           const freedom_rows &rows, const held_rows &held,
                                           int first)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int side = 0; side < 2; side++) {
        if (side == 1 && r.tile[0] == r.tile[1])
            continue;
#pragma unroll
        for (int n = 0; n < HELD; n++) {
            const bool used = first + warp + n * WARPS < rows.used;
            const pair x = used ? held.at[side][n] : pair{ { 0.0, 0.0 } };
            squares[side][0] += x.x[0] * x.x[0];
            squares[side][1] += x.x[1] * x.x[1];
            *(pair *)&to[side][warp + n * WARPS][2 * lane] = x;
        }
    }
}

/* A warp has 16 lines and 32 columns. */
__device__ __forceinline__ void multiply_rows(double sum[4][4],
                                              const double left[RELATE_ROWS][RELATE_LD],
                                              const double right[RELATE_ROWS][RELATE_LD])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, line = warp / 2 * 16 + lane / 4,
              column = warp % 2 * 32 + lane / 4;
#pragma unroll
    for (int k = lane % 4; k < RELATE_ROWS; k += 8) {
        double a[4];
#pragma unroll
        for (int n = 0; n < 4; n++)
            a[n] = left[k + n / 2 * 4][line + n % 2 * 8];
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const double b[2] = { right[k][column + 8 * n], right[k + 4][column + 8 * n] };
            multiply(sum[n], a, b);
        }
    }
}

/* Adds up the sums of a relation's blocks, in the order of its rows; the last block does this.
 * False: this block is not the last. */
__device__ __forceinline__ bool join_parts(const fref__call &c, const relation &r, double sum[4][4],
                                           double squares[2][2])
{
    const uint32_t parts = (uint32_t)c.related_parts, apart = SHARES * FREF__THREADS;
    static_assert(SHARES * FREF__THREADS == FREF__RELATED_SHARES, "");
    volatile double *shares = c.shares + r.unit * parts * apart + threadIdx.x,
                    *of_squares = shares + 16 * FREF__THREADS;
    int last = 0;
    for (int n = 0; n < 16; n++)
        shares[r.part * apart + n * FREF__THREADS] = sum[n / 4][n % 4];
    for (int n = 0; n < 4; n++)
        of_squares[r.part * apart + n * FREF__THREADS] = squares[n / 2][n % 2];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicInc(c.related_blocks + 4 * c.heads + r.unit, parts - 1) == parts - 1;
    if (!__syncthreads_or(last))
        return false;
    __threadfence();
    for (uint32_t part = 0; part < parts; part++) {
        for (int n = 0; n < 16; n++)
            sum[n / 4][n % 4] =
                (part == 0 ? 0.0 : sum[n / 4][n % 4]) + shares[part * apart + n * FREF__THREADS];
        for (int n = 0; n < 4; n++)
            squares[n / 2][n % 2] = (part == 0 ? 0.0 : squares[n / 2][n % 2]) +
                                    of_squares[part * apart + n * FREF__THREADS];
    }
    return true;
}

/* Of each channel, 1 / its sum of squares; 0 where it is nothing but zeros. */
__device__ __forceinline__ void reciprocals_of_channels(double per[2 * FREF__TILE],
                                                        double shared[WARPS][2 * FREF__TILE],
                                                        const double squares[2][2])
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

/* The thread's part of tr(C^2) and tr(C), of C with ones on its diagonal; what lies below the
 * diagonal is counted with what lies above. */
__device__ __forceinline__ fref__related traces(const relation &r, const double sum[4][4],
                                                const double per[2 * FREF__TILE])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool same = r.tile[0] == r.tile[1];
    double squares[4] = { 0.0, 0.0, 0.0, 0.0 };
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int line = warp / 2 * 16 + lane / 4 + i / 2 * 8,
                      column = warp % 2 * 32 + 8 * n + lane % 4 * 2 + i % 2;
            const double x = sum[n][i],
                         one = x * per[line] * (x * per[column + (same ? 0 : FREF__TILE)]);
            squares[i] += same && line == column ? 0.0 : one;
        }
    const double trace = same && threadIdx.x < FREF__TILE && per[threadIdx.x] > 0.0 ? 1.0 : 0.0;
    return { (squares[0] + squares[1] + (squares[2] + squares[3])) * (same ? 1.0 : 2.0) + trace,
             trace };
}

/* Over the block, in its first warp. */
__device__ __forceinline__ fref__related sum_of_block(const fref__related &mine,
                                                      fref__related parts[WARPS])
{
    const int lane = threadIdx.x % 32;
    const fref__related of_warp = { sum_of_warp(mine.squares), sum_of_warp(mine.trace) };
    if (lane == 0)
        parts[threadIdx.x / 32] = of_warp;
    __syncthreads();
    if (threadIdx.x >= 32)
        return of_warp;
    return { sum_of_lanes<WARPS>(parts[lane % WARPS].squares),
             sum_of_lanes<WARPS>(parts[lane % WARPS].trace) };
}

/* 1 / nch. */
__device__ __forceinline__ double per_channel(const fref__related &all)
{
    return all.trace > 0.0 && all.trace * all.trace > all.squares
               ? all.squares / (all.trace * all.trace)
               : 1.0;
}

/* Adds the sums of a head's blocks, in their order. */
__device__ __forceinline__ double per_channel_of_head(const volatile fref__related *parts,
                                                      uint32_t count)
{
    fref__related all = { 0.0, 0.0 };
    for (uint32_t n = 0; n < count; n++)
        all = { all.squares + parts[n].squares, all.trace + parts[n].trace };
    return per_channel(all);
}

/* The last of a group's blocks knows its nch: the least of its heads'. */
__device__ __forceinline__ void finish_relation(const fref__call &c, const relation &r,
                                                const fref__related &mine)
{
    const int lane = threadIdx.x % 32;
    const uint32_t unit = r.slot / r.group, blocks = r.group * r.pairs;
    double *to = c.channels[r.which] +
                 (r.which == 0   ? c.head_k0
                  : r.which == 1 ? c.head_v0
                                 : 0) +
                 unit;
    int last = 0;
    if (threadIdx.x == 0 && blocks == 1)
        *to = per_channel(mine);
    if (blocks == 1)
        return;
    if (threadIdx.x == 0) {
        c.related[r.unit] = mine;
        __threadfence();
        last = atomicInc(c.related_blocks + r.which * c.heads + unit * r.group, blocks - 1) ==
               blocks - 1;
    }
    if (!__syncthreads_or(last) || threadIdx.x >= 32)
        return;
    __threadfence();
    double most = 0.0;
    for (uint32_t n = (uint32_t)lane; n < r.group; n += 32)
        most = fmax(most, per_channel_of_head(c.related + r.of_group + n * r.pairs, r.pairs));
    most = largest_of_warp(most);
    if (lane == 0)
        *to = most;
}

/* 1 / nch of each tensor of `channels`: C = X^T X over its rows. A block for each head, pair of tiles of channels and
 * part of the rows, the first of its launch. */
__device__ __forceinline__ void relate(const fref__call &c, double *shared)
{
    static_assert(sizeof(relating) <= FREF__OF_RELATION * sizeof(double), "");
    relating &s = *(relating *)shared;
    const relation r = find_relation(c);
    const freedom_rows rows = rows_of(c, r, s.ends);
    const int right = r.tile[0] == r.tile[1] ? 0 : 1;
    held_rows held;
    double squares[2][2] = {};
    double sum[4][4] = {};
    const int steps = (rows.used + RELATE_ROWS - 1) / RELATE_ROWS,
              of_part = (steps + c.related_parts - 1) / c.related_parts * RELATE_ROWS;
    const int first = (int)r.part * of_part, end = (int)smaller(rows.used, first + of_part);
    if (first < end)
        load_rows(&held, r, rows, first);
    for (int m = first; m < end; m += RELATE_ROWS) {
        stage_rows(s.staged, squares, r, rows, held, m);
        __syncthreads();
        load_rows(&held, r, rows, m + RELATE_ROWS);
        multiply_rows(sum, s.staged[0], s.staged[right]);
        __syncthreads();
    }
    if (c.related_parts > 1 && !join_parts(c, r, sum, squares))
        return;
    static_assert(sizeof s.staged >= WARPS * sizeof s.per, "");
    reciprocals_of_channels(s.per, (double (*)[2 * FREF__TILE]) s.staged, squares);
    finish_relation(c, r, sum_of_block(traces(r, sum, s.per), s.parts));
}

} // namespace fref
