/* Which keys a row may read, and the inputs as doubles. */
#include "element.cuh"

namespace fref {

__device__ __forceinline__ fref__span keys_of_row(const fref_problem &p, int64_t b, int64_t i)
{
    const int64_t far = (int64_t)1 << 40;
    const int64_t len_q = p.len_q != nullptr ? p.len_q[b] : p.rows, len_kv = p.len_kv != nullptr ? p.len_kv[b] : p.keys;
    const int64_t diagonal = i + (p.bottom_right ? len_kv - len_q : 0);
    int64_t first = 0, last = larger(0, smaller(len_kv, p.keys));
    if (p.has_left)
        first = larger(first, diagonal - smaller(p.left, far) + 1);
    if (p.has_right)
        last = smaller(last, diagonal + smaller(p.right, far) + 1);
    if (i >= len_q || first >= last)
        return { 0, 0 };
    return { (int32_t)first, (int32_t)last };
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
    c.range[head * c.rows_padded + r] = mine;
    mine = union_of_block(mine, shared);
    if (threadIdx.x == 0)
        c.tile_range[blockIdx.x] = mine;
}

namespace fref {

/* A warp reads one row of `dim` elements into `to`, padded to `ld` with zeros; all zeros unless `live`. */
__device__ __forceinline__ void decode_row(const fref__call &c, const fref_tensor &from, double *to, double *norm, int64_t b, int64_t h,
                                           int64_t s, int64_t dim, int64_t ld, bool live)
{
    double squares = 0.0;
    const int64_t at = live ? place(from, b, h, s) : 0;
    for (int64_t n = threadIdx.x % 32; n < ld; n += 32) {
        double value = 0.0;
        if (live && n < dim) {
            value = load(from.data, from.type, at + n * from.stride[3]);
            value = from.descale != 0.0 ? value * from.descale : value;
        }
        if (!(fabs(value) < infinity()))
            *c.trouble = 1;
        to[n] = value;
        squares += value * value;
    }
    squares = sum_of_warp(squares);
    if (threadIdx.x % 32 == 0)
        *norm = sqrt(squares);
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
    const bool live = c.range[at].first < c.range[at].last;
    const int64_t i = live ? row_of(c, r) : 0;
    decode_row(c, c.q, c.rows_q + at * c.ld_qk, c.norm_q + at, b, h, i, c.problem.dim_qk, c.ld_qk, live);
    if (c.d_o.data != nullptr)
        decode_row(c, c.d_o, c.rows_d_o + at * c.ld_v, c.norm_d_o + at, b, h, i, c.problem.dim_v, c.ld_v, live);
}

/* A warp for each key: those of all heads of K, then those of V. */
extern "C" __global__ void fref_decode_keys(const __grid_constant__ fref__call c)
{
    int64_t at = (int64_t)blockIdx.x * (FREF__THREADS / 32) + threadIdx.x / 32;
    const bool of_k = at < c.heads_k * c.keys_padded;
    at -= of_k ? 0 : c.heads_k * c.keys_padded;
    const int64_t head = at / c.keys_padded, n = at % c.keys_padded;
    if (!of_k && head >= c.heads_v)
        return;
    const int64_t heads = of_k ? c.problem.heads_k : c.problem.heads_v, global = (of_k ? c.head_k0 : c.head_v0) + head;
    const int64_t b = global / heads, h = global % heads, j = n < c.keys ? key_of(c, n) : 0;
    const bool live = n < c.keys && j >= c.live[b].first && j < c.live[b].last;
    if (of_k)
        decode_row(c, c.k, c.keys_k + at * c.ld_qk, c.norm_k + at, b, h, j, c.problem.dim_qk, c.ld_qk, live);
    else
        decode_row(c, c.v, c.keys_v + at * c.ld_v, c.norm_v + at, b, h, j, c.problem.dim_v, c.ld_v, live);
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

/* The same over each row's range; what all rows of a tile share is added up once. A block of TILE threads for each tile of rows and head. */
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
    for (int64_t column = threadIdx.x; column < c.ld_v; column += FREF__TILE) {
        const double *v = c.keys_v + head_v * c.keys_padded * c.ld_v + column;
        const double *sums = c.tile_v + head_v * (c.keys_padded / FREF__TILE) * c.ld_v + column;
        const double common = shared ? kept_sum(c, v, sums, first, last) : 0.0;
        double *to = c.kept_v + (head * c.rows_padded + row) * c.ld_v + column;
        for (int r = 0; r < FREF__TILE; r++) {
            const fref__span own = range[r];
            double sum = 0.0;
            if (own.first < own.last)
                sum = shared ? common + kept_sum(c, v, sums, own.first, first) + kept_sum(c, v, sums, last, own.last)
                             : kept_sum(c, v, sums, own.first, own.last);
            to[r * c.ld_v] = sum;
        }
    }
}
