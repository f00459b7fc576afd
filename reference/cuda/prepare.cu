/* Which keys a row may read, and the inputs as doubles. */
#include "weigh.cuh"

namespace fref {

/* The first of the key set that is not below j. */
__device__ __forceinline__ int32_t listed(const fref__call &c, int32_t j)
{
    int64_t low = 0, high = c.keys;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (c.key_index[middle] < j)
            low = middle + 1;
        else
            high = middle;
    }
    return (int32_t)low;
}

__device__ __forceinline__ fref__span listed_keys(const fref__call &c, fref__span all)
{
    if (c.key_index == nullptr || all.first >= all.last)
        return all;
    const fref__span some = { listed(c, all.first), listed(c, all.last) };
    if (some.first >= some.last)
        return { -1, -1 };
    return some;
}

/* The union over a block's threads, in thread 0. */
__device__ __forceinline__ fref__span union_of_block(fref__span mine, fref__span *shared)
{
    shared[threadIdx.x] = mine;
    __syncthreads();
    for (int n = (int)blockDim.x / 2; n > 0; n /= 2) {
        if ((int)threadIdx.x < n)
            shared[threadIdx.x] = both(shared[threadIdx.x], shared[threadIdx.x + n]);
        __syncthreads();
    }
    return shared[0];
}

}

using namespace fref;

/* A block for each batch entry: the keys that any of its rows reads. */
extern "C" __global__ void fref_live(const __grid_constant__ fref__call c)
{
    __shared__ fref__span shared[FREF__THREADS];
    fref__span mine = { 0, 0 };
    for (int64_t i = threadIdx.x; i < c.problem.rows; i += blockDim.x)
        mine = both(mine, keys_of_row(c.problem, blockIdx.x, i));
    mine = union_of_block(mine, shared);
    if (threadIdx.x == 0)
        c.live[blockIdx.x] = mine;
}

/* A block of TILE threads for each tile of rows and head of the lot. */
extern "C" __global__ void fref_ranges(const __grid_constant__ fref__call c)
{
    __shared__ fref__span shared[FREF__TILE];
    const int64_t tiles = c.rows_padded / FREF__TILE, head = blockIdx.x / tiles, r = blockIdx.x % tiles * FREF__TILE + threadIdx.x;
    const int64_t b = (c.head0 + head) / c.problem.heads_q, h = (c.head0 + head) % c.problem.heads_q;
    fref__span mine = { 0, 0 };
    if (r < c.rows)
        mine = keys_of_row(c.problem, b, row_of(c, r));
    if (c.stats.data != nullptr) {
        const bool live = mine.first < mine.last;
        const double stats = live ? element(c.stats, b, h, row_of(c, r), 0) : -infinity();
        if (stats == -infinity())
            mine = { 0, 0 };
        else if (!(fabs(stats) < infinity()))
            *c.trouble = 1;
        c.row_stats[head * c.rows_padded + r] = stats;
    }
    mine = listed_keys(c, mine);
    c.range[head * c.rows_padded + r] = mine;
    mine = union_of_block(mine, shared);
    if (threadIdx.x == 0)
        c.tile_range[blockIdx.x] = mine;
}

/* dSink and its bound: a block for each head. */
extern "C" __global__ void fref_sink(const __grid_constant__ fref__call c)
{
    __shared__ double shared[2][FREF__THREADS / 32];
    const int64_t h = blockIdx.x, rows = c.problem.rows, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    double value = 0.0, bound = 0.0;
    for (int64_t n = warp; c.problem.sink != nullptr && n < c.problem.batch * rows; n += FREF__THREADS / 32) {
        const int64_t b = n / rows, i = n % rows;
        const fref__span range = keys_of_row(c.problem, b, i);
        const double stats = range.first < range.last ? element(c.stats, b, h, i, 0) : -infinity();
        if (stats == -infinity())
            continue;
        double delta = 0.0, size = 0.0;
        for (int64_t at = lane; at < c.problem.dim_v; at += 32) {
            const double term = element(c.d_o, b, h, i, at) * element(c.o, b, h, i, at);
            delta += term;
            size += fabs(term);
        }
        delta = sum_of_warp(delta);
        size = sum_of_warp(size);
        const double weight = exp((double)c.problem.sink[h] - stats);
        value -= weight * delta;
        bound += weight * (0x1p-20 * fabs(delta) + 0x1p-23 * sqrt((double)c.problem.dim_v) * size);
    }
    shared[0][warp] = value;
    shared[1][warp] = bound;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int n = 1; n < FREF__THREADS / 32; n++) {
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

namespace fref {

/* Beyond it a square is no float any more. */
constexpr double LARGEST_INPUT = 0x1p120;

/* A warp reads one row of `dim` elements into `to`, padded to `ld` with zeros; all zeros unless `live`. */
__device__ __forceinline__ void decode_row(const fref__call &c, const fref_tensor &from, double *to, double *norm, double *extent, int64_t b,
                                           int64_t h, int64_t s, int64_t dim, int64_t ld, bool live)
{
    double squares = 0.0, smallest = infinity();
    const int64_t at = live ? place(from, b, h, s) : 0;
    for (int64_t n = threadIdx.x % 32; n < ld; n += 32) {
        double value = 0.0;
        if (live && n < dim) {
            value = load(from.data, from.type, at + n * from.stride[3]);
            value = from.descale != 0.0 ? value * from.descale : value;
        }
        if (!(fabs(value) < LARGEST_INPUT))
            *c.trouble = 1;
        to[n] = value;
        squares += value * value;
        smallest = value != 0.0 ? fmin(smallest, fabs(value)) : smallest;
    }
    squares = sum_of_warp(squares);
    const double reciprocal = largest_of_warp(1.0 / smallest); /* 0: all are */
    if (threadIdx.x % 32 != 0)
        return;
    if (norm != nullptr)
        *norm = sqrt(squares);
    if (live) {
        raise(extent, sqrt(squares));
        raise(extent + 1, reciprocal);
    }
}

/* One of the keys' tensors. */
struct side {
    int64_t slot, n; /* head of the lot, key */
    int64_t b, h;
    bool of_k;
};

/* A warp for each key of `padded`: those of all heads of K, then those of V. */
__device__ __forceinline__ bool find_key(side *out, const fref__call &c, int64_t padded)
{
    int64_t at = (int64_t)blockIdx.x * (FREF__THREADS / 32) + threadIdx.x / 32;
    out->of_k = at < c.heads_k * padded;
    at -= out->of_k ? 0 : c.heads_k * padded;
    out->slot = at / padded;
    out->n = at % padded;
    const int64_t heads = out->of_k ? c.problem.heads_k : c.problem.heads_v, global = (out->of_k ? c.head_k0 : c.head_v0) + out->slot;
    out->b = global / heads;
    out->h = global % heads;
    return out->of_k || out->slot < c.heads_v;
}

}

/* A warp for each row: of Q, of dO where there is one. */
extern "C" __global__ void fref_decode_rows(const __grid_constant__ fref__call c)
{
    const int64_t at = (int64_t)blockIdx.x * (FREF__THREADS / 32) + threadIdx.x / 32;
    const int64_t head = at / c.rows_padded, r = at % c.rows_padded;
    if (head >= c.heads)
        return;
    const int64_t b = (c.head0 + head) / c.problem.heads_q, h = (c.head0 + head) % c.problem.heads_q;
    const bool live = c.range[at].last != 0;
    const int64_t i = live ? row_of(c, r) : 0;
    decode_row(c, c.q, c.rows_q + at * c.ld_qk, c.norm_q + at, c.extent[0] + 2 * head, b, h, i, c.problem.dim_qk, c.ld_qk, live);
    if (c.d_o.data != nullptr)
        decode_row(c, c.d_o, c.rows_d_o + at * c.ld_v, c.norm_d_o + at, c.extent[1] + 2 * head, b, h, i, c.problem.dim_v, c.ld_v, live);
}

/* The key set; its norms where it is all keys. */
extern "C" __global__ void fref_decode_keys(const __grid_constant__ fref__call c)
{
    side w;
    if (!find_key(&w, c, c.keys_padded))
        return;
    const int64_t j = w.n < c.keys ? key_of(c, w.n) : 0, at = w.slot * c.keys_padded + w.n, ld = w.of_k ? c.ld_qk : c.ld_v;
    const bool live = w.n < c.keys && j >= c.live[w.b].first && j < c.live[w.b].last;
    double *norm = c.key_index != nullptr ? nullptr : (w.of_k ? c.norm_k : c.norm_v) + w.slot * c.norms + w.n;
    decode_row(c, w.of_k ? c.k : c.v, (w.of_k ? c.keys_k : c.keys_v) + at * ld, norm, c.extent[w.of_k ? 2 : 3] + 2 * w.slot, w.b, w.h, j,
               w.of_k ? c.problem.dim_qk : c.problem.dim_v, ld, live);
}

/* Norms of all keys. */
extern "C" __global__ void fref_norms(const __grid_constant__ fref__call c)
{
    side w;
    if (!find_key(&w, c, c.norms))
        return;
    const fref_tensor &from = w.of_k ? c.k : c.v;
    const bool live = w.n >= c.live[w.b].first && w.n < c.live[w.b].last;
    double squares = 0.0;
    for (int64_t n = threadIdx.x % 32; live && n < (w.of_k ? c.problem.dim_qk : c.problem.dim_v); n += 32) {
        const double value = element(from, w.b, w.h, w.n, n);
        squares += value * value;
    }
    squares = sum_of_warp(squares);
    if (threadIdx.x % 32 == 0)
        (w.of_k ? c.norm_k : c.norm_v)[w.slot * c.norms + w.n] = sqrt(squares);
}

/* The longest of each tile of keys: a thread for each, of K, then of V. */
extern "C" __global__ void fref_peaks(const __grid_constant__ fref__call c)
{
    int64_t tile = (int64_t)blockIdx.x * FREF__THREADS + threadIdx.x;
    const int64_t of_k = c.heads_k * c.norms / FREF__TILE, of_v = c.heads_v * c.norms / FREF__TILE;
    const bool is_k = tile < of_k;
    tile -= is_k ? 0 : of_k;
    if (!is_k && tile >= of_v)
        return;
    const double *norm = (is_k ? c.norm_k : c.norm_v) + tile * FREF__TILE;
    double longest = 0.0;
    for (int n = 0; n < FREF__TILE; n++)
        longest = fmax(longest, norm[n]);
    (is_k ? c.peak_k : c.peak_v)[tile] = longest;
}

/* Sums of |V| over tiles of keys: a block of TILE threads for each tile and head, a thread for each column. */
extern "C" __global__ void fref_tile_sums(const __grid_constant__ fref__call c)
{
    for (int64_t column = threadIdx.x; column < c.ld_v; column += FREF__TILE) {
        const double *from = c.keys_v + (int64_t)blockIdx.x * FREF__TILE * c.ld_v + column;
        double sum = 0.0;
        for (int n = 0; n < FREF__TILE; n++)
            sum += fabs(from[n * c.ld_v]);
        c.tile_v[blockIdx.x * c.ld_v + column] = sum;
    }
}

namespace fref {

/* sum |V| over the keys of [first, last), one column; of the tiles it holds by their sums. */
__device__ __forceinline__ double kept_sum(const fref__call &c, const double *v, const double *tiles, int64_t first, int64_t last)
{
    double sum = 0.0;
    int64_t n = first;
    while (n < last) {
        if (n % FREF__TILE == 0 && n + FREF__TILE <= last) {
            sum += tiles[n / FREF__TILE * c.ld_v];
            n += FREF__TILE;
        } else {
            sum += fabs(v[n * c.ld_v]);
            n++;
        }
    }
    return sum;
}

}

/* The same over each row's range; what all rows of a tile share is added up once. A block for each tile of rows and head, a thread for each column and
 * every so many of the rows. */
extern "C" __global__ void fref_kept_sums(const __grid_constant__ fref__call c)
{
    const int64_t tiles = c.rows_padded / FREF__TILE, head = blockIdx.x / tiles, row = blockIdx.x % tiles * FREF__TILE;
    const int64_t head_v = (c.head0 + head) / c.group_v - c.head_v0;
    const fref__span *range = c.range + head * c.rows_padded + row;
    int64_t first = 0, last = INT32_MAX;
    for (int r = 0; r < FREF__TILE; r++)
        if (range[r].first < range[r].last) {
            first = larger(first, range[r].first);
            last = smaller(last, range[r].last);
        }
    const bool shared = last < INT32_MAX && first < last;
    for (int64_t column = threadIdx.x % FREF__TILE; column < c.ld_v; column += FREF__TILE) {
        const double *v = c.keys_v + head_v * c.keys_padded * c.ld_v + column;
        const double *sums = c.tile_v + head_v * (c.keys_padded / FREF__TILE) * c.ld_v + column;
        const double common = shared ? kept_sum(c, v, sums, first, last) : 0.0;
        double *to = c.kept_v + (head * c.rows_padded + row) * c.ld_v + column;
        for (int r = (int)threadIdx.x / FREF__TILE; r < FREF__TILE; r += FREF__THREADS / FREF__TILE) {
            const fref__span own = range[r];
            double sum = 0.0;
            if (own.first < own.last)
                sum = shared ? common + kept_sum(c, v, sums, own.first, first) + kept_sum(c, v, sums, last, own.last)
                             : kept_sum(c, v, sums, own.first, own.last);
            to[r * c.ld_v] = sum;
        }
    }
}
