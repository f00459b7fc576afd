/* Which keys a row may read, and the inputs as doubles. */
#include "weigh.cuh"

namespace fref
{

enum { SINK_LANES = 8, SINK_TEAMS = FREF__SUM_THREADS / SINK_LANES };

/* sum dO O of a row, and of its magnitudes. */
__device__ __forceinline__ void sum_of_row(double *delta, double *size, const fref__call &c,
                                           const batch_head &of, int64_t i)
{
    const int64_t d_o = place(c.d_o, of.b, of.h, i), o = place(c.o, of.b, of.h, i);
    for (int n = (int)threadIdx.x % SINK_LANES; n < (int)c.problem.dim_v; n += SINK_LANES) {
        const double term = element_at(c.d_o, d_o, n) * element_at(c.o, o, n);
        *delta += term;
        *size += fabs(term);
    }
}

} // namespace fref

/* dSink and its bound: a block for each head, SINK_LANES for a row. */
extern "C" __global__
__launch_bounds__(FREF__SUM_THREADS) void fref_sink(const __grid_constant__ fref__call c)
{
    __shared__ double shared[2][SINK_TEAMS];
    const uint32_t h = blockIdx.x, team = threadIdx.x / SINK_LANES;
    const int64_t rows = c.problem.sink != nullptr ? c.problem.rows : 0;
    double value = 0.0, bound = 0.0;
    for (int64_t b = 0; b < c.problem.batch; b++)
        for (int64_t first = 0; first < rows; first += SINK_TEAMS) {
            const int64_t i = first + team;
            const fref__span range = i < rows ? keys_of_row(c.problem, b, i) : fref__span{ 0, 0 };
            const double stats =
                range.first < range.last ? element(c.stats, b, h, i, 0) : -infinity();
            double delta = 0.0, size = 0.0;
            if (stats != -infinity())
                sum_of_row(&delta, &size, c, { (int32_t)b, (int32_t)h }, i);
            delta = sum_of_lanes<SINK_LANES>(delta);
            size = sum_of_lanes<SINK_LANES>(size);
            const double sink = (double)c.problem.sink[h],
                         weight = stats != -infinity() ? exp(sink - stats) : 0.0;
            const double off =
                0x1p-20 + (weight > 0.0 ? 0x1p-22 * (fabs(sink) + fabs(stats)) : 0.0);
            value -= weight * delta;
            bound += weight * (off * fabs(delta) + 0x1p-23 * sqrt((double)c.problem.dim_v) * size);
        }
    shared[0][team] = value;
    shared[1][team] = bound;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int n = 1; n < SINK_TEAMS; n++) {
        value += shared[0][n];
        bound += shared[1][n];
    }
    if (!(fabs(value) < infinity()))
        *c.trouble = 1;
    if (c.backward.dsink != nullptr)
        c.backward.dsink[h] = value;
    if (c.backward.dsink_bound != nullptr)
        c.backward.dsink_bound[h] = bound;
}

namespace fref
{

/* Beyond it a problem is left to the reference in C: 2^120, the upper half of its bits. */
constexpr uint32_t LARGEST_INPUT = (1023 + 120) << 20;

/* LANES read a row, two channels each at a time, AT_ONCE times before the first is waited for. */
enum {
    DECODE_LANES = FREF__DECODE_THREADS / FREF__TILE,
    DECODE_STEP = 2 * DECODE_LANES,
    DECODE_AT_ONCE = 8
};

/* TILE rows of one tensor of one head, as a block reads them. */
struct piece {
    const fref_tensor *from;
    int which;        /* of q, d_o, k, v */
    uint32_t slot, n; /* head of the slice; the first row or key */
    batch_head head;
    int dim, ld;
    double *to, *norm, *peak; /* of this piece; peak NULL: not wanted */
};

/* Rows: of Q, of dO where there is one. Keys: of K and V. */
__device__ __forceinline__ piece find_piece(const fref__call &c)
{
    const uint32_t row_tiles = (uint32_t)(c.rows_padded / FREF__TILE),
                   key_tiles = (uint32_t)(c.keys_padded / FREF__TILE);
    const uint32_t heads[4] = { (uint32_t)c.heads, c.d_o.data == nullptr ? 0 : (uint32_t)c.heads,
                                (uint32_t)c.heads_k, (uint32_t)c.heads_v };
    piece p = {};
    uint32_t at = blockIdx.x;
    for (; p.which < 3 && at >= heads[p.which] * (p.which < 2 ? row_tiles : key_tiles); p.which++)
        at -= heads[p.which] * (p.which < 2 ? row_tiles : key_tiles);
    const uint32_t tiles = p.which < 2 ? row_tiles : key_tiles;
    p.slot = at / tiles;
    p.n = at % tiles * FREF__TILE;
    return p;
}

__device__ __forceinline__ piece piece_of_block(const fref__call &c)
{
    piece p = find_piece(c);
    const int64_t row = p.slot * c.rows_padded + p.n, key = p.slot * c.keys_padded + p.n;
    p.dim = (int)(p.which % 2 == 0 ? c.problem.dim_qk : c.problem.dim_v);
    p.ld = (int)(p.which % 2 == 0 ? c.ld_qk : c.ld_v);
    switch (p.which) {
    case 0:
        p.from = &c.q;
        p.to = c.rows_q + row * p.ld;
        p.norm = c.norm_q + row;
        break;
    case 1:
        p.from = &c.d_o;
        p.to = c.rows_d_o + row * p.ld;
        p.norm = c.norm_d_o + row;
        break;
    case 2:
        p.from = &c.k;
        p.to = c.keys_k + key * p.ld;
        p.norm = c.norm_k + key;
        p.peak = c.peak_k + key / FREF__TILE;
        break;
    default:
        p.from = &c.v;
        p.to = c.keys_v + key * p.ld;
        p.norm = c.norm_v + key;
        p.peak = c.peak_v + key / FREF__TILE;
        break;
    }
    p.head = p.which < 2    ? batch_head_of(c.head0 + p.slot, c.problem.heads_q)
             : p.which == 2 ? batch_head_of(c.head_k0 + p.slot, c.problem.heads_k)
                            : batch_head_of(c.head_v0 + p.slot, c.problem.heads_v);
    return p;
}

/* What row i reads, and its Stats where there are any; both 0: nothing. */
__device__ __forceinline__ fref__span range_of(double *stats, const fref__call &c,
                                               const batch_head &head, int64_t i)
{
    *stats = -infinity();
    if (i >= c.rows)
        return { 0, 0 };
    const fref__span range = keys_of_row(c.problem, head.b, i);
    if (c.stats.data == nullptr || range.first >= range.last)
        return range;
    *stats = element(c.stats, head.b, head.h, i, 0);
    return *stats == -infinity() ? fref__span{ 0, 0 } : range;
}

/* A warp has 32 rows of a tile, a block both halves. */
__device__ __forceinline__ void write_ranges(const fref__call &c, const piece &p, fref__span mine,
                                             double stats, fref__span *half)
{
    const int64_t at = p.slot * c.rows_padded + p.n + threadIdx.x;
    if (c.stats.data != nullptr) {
        if (stats != -infinity() && !(fabs(stats) < infinity()))
            *c.trouble = 1;
        c.row_stats[at] = stats;
    }
    const bool any = mine.first < mine.last;
    c.range[at] = mine;
    if (p.n + threadIdx.x >= c.rows)
        c.facts[at] = {};
    const uint32_t first = __reduce_min_sync(0xffffffff, any ? (uint32_t)mine.first : INT32_MAX);
    const uint32_t last = __reduce_max_sync(0xffffffff, any ? (uint32_t)mine.last : 0);
    half[threadIdx.x / 32] = { (int32_t)first, (int32_t)last };
}

/* Where this thread's row of the piece lies; -1: it is not read. */
__device__ __forceinline__ int64_t place_of_row(const fref__call &c, const piece &p,
                                                fref__span *half)
{
    const int64_t r = p.n + threadIdx.x;
    if (p.which < 2) {
        double stats;
        const fref__span range = range_of(&stats, c, p.head, r);
        if (p.which == 0)
            write_ranges(c, p, range, stats, half);
        return range.first < range.last ? place(*p.from, p.head.b, p.head.h, r) : -1;
    }
    const fref__span live = keys_of_all(c.problem, p.head.b);
    return r >= live.first && r < live.last ? place(*p.from, p.head.b, p.head.h, r) : -1;
}

/* Bits of DECODE_AT_ONCE pairs of neighbours of a row of `dim`, from n on; zeros past it. All are
 * asked for before one is looked at. */
template <fref_type TYPE>
__device__ __forceinline__ void load_pairs(uint32_t bits[DECODE_AT_ONCE][2],
                                           const fref_tensor &from, int64_t row, int n, int dim)
{
    const bool together = (TYPE == FREF_F16 || TYPE == FREF_BF16) && from.stride[3] == 1 &&
                          dim % 2 == 0 && ((uintptr_t)from.data + (uint64_t)row * 2) % 4 == 0;
    if (together) {
        const uint32_t *words = (const uint32_t *)((const uint16_t *)from.data + row);
        uint32_t word[DECODE_AT_ONCE];
#pragma unroll
        for (int m = 0; m < DECODE_AT_ONCE; m++, n += DECODE_STEP)
            word[m] = n < dim ? words[n / 2] : 0;
#pragma unroll
        for (int m = 0; m < DECODE_AT_ONCE; m++) {
            bits[m][0] = word[m] & 0xffff;
            bits[m][1] = word[m] >> 16;
        }
        return;
    }
#pragma unroll
    for (int m = 0; m < DECODE_AT_ONCE; m++, n += DECODE_STEP)
#pragma unroll
        for (int i = 0; i < 2; i++)
            bits[m][i] = n + i < dim ? bits_at(from.data, TYPE, row + (n + i) * from.stride[3]) : 0;
}

/* What a lane has seen of its row. The largest magnitude: the upper half of its bits. */
struct seen {
    double squares;
    uint32_t largest;
};

template <fref_type TYPE> __device__ __forceinline__ seen decode_row(const piece &p, int64_t row)
{
    const double descale = p.from->descale != 0.0 ? p.from->descale : 1.0;
    double *to = p.to + (int64_t)(threadIdx.x / DECODE_LANES) * p.ld;
    seen s = { 0.0, 0 };
    for (int n = threadIdx.x % DECODE_LANES * 2; n < p.ld; n += DECODE_STEP * DECODE_AT_ONCE) {
        uint32_t bits[DECODE_AT_ONCE][2];
        load_pairs<TYPE>(bits, *p.from, row, n, row < 0 ? 0 : p.dim);
#pragma unroll
        for (int m = 0; m < DECODE_AT_ONCE; m++) {
            pair two;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const double value = two.x[i] = value_of(bits[m][i], TYPE) * descale;
                const uint32_t upper = (uint32_t)(__double_as_longlong(fabs(value)) >> 32);
                s.squares += value * value;
                s.largest = upper > s.largest ? upper : s.largest;
            }
            *(pair *)(to + n + DECODE_STEP * m) = two;
        }
    }
    return s;
}

__device__ __forceinline__ seen decode_row_of_any(const piece &p, int64_t row)
{
    switch (p.from->type) {
    case FREF_F16:
        return decode_row<FREF_F16>(p, row);
    case FREF_BF16:
        return decode_row<FREF_BF16>(p, row);
    case FREF_E4M3:
        return decode_row<FREF_E4M3>(p, row);
    case FREF_E5M2:
        return decode_row<FREF_E5M2>(p, row);
    default:
        return decode_row<FREF_F32>(p, row);
    }
}

/* Norms of the piece's rows, and the longest: a warp. */
__device__ __forceinline__ void write_norms(const piece &p, const double *norm)
{
    const int lane = threadIdx.x;
    double longest = 0.0;
    for (int r = lane; r < FREF__TILE; r += 32) {
        p.norm[r] = norm[r];
        longest = fmax(longest, norm[r]);
    }
    longest = largest_of_warp(longest);
    if (lane == 0 && p.peak != nullptr)
        *p.peak = longest;
}

} // namespace fref

/* Ranges and Stats of rows, and the inputs as doubles with their norms. A block for each tile of a
 * tensor's rows and head: of Q, of dO, of K, of V. */
extern "C" __global__ __launch_bounds__(FREF__DECODE_THREADS,
                                        3) void fref_decode(const __grid_constant__ fref__call c)
{
    __shared__ int64_t place_of[FREF__TILE];
    __shared__ double norm[FREF__TILE];
    __shared__ fref__span half[FREF__TILE / 32];
    const piece p = piece_of_block(c);
    if (threadIdx.x < FREF__TILE)
        place_of[threadIdx.x] = place_of_row(c, p, half);
    __syncthreads();
    if (p.which == 0 && threadIdx.x == 0) {
        const fref__span all = { half[0].first < half[1].first ? half[0].first : half[1].first,
                                 half[0].last > half[1].last ? half[0].last : half[1].last };
        c.tile_range[(p.slot * c.rows_padded + p.n) / FREF__TILE] =
            all.last > 0 ? all : fref__span{ 0, 0 };
    }
    seen s = decode_row_of_any(p, place_of[threadIdx.x / DECODE_LANES]);
    if (s.largest >= LARGEST_INPUT)
        *c.trouble = 1;
    s.squares = sum_of_lanes<DECODE_LANES>(s.squares);
    if (threadIdx.x % DECODE_LANES == 0)
        norm[threadIdx.x / DECODE_LANES] = sqrt(s.squares);
    __syncthreads();
    if (threadIdx.x < 32)
        write_norms(p, norm);
}
