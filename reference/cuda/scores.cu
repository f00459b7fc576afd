/* Scores: X = scale Q K^T with -inf where the mask hides, and dP = dO V^T. A block makes a tile of PAD rows and SCORE_KEYS keys, a warp 32
 * rows and 32 keys of it. */
#include "element.cuh"

namespace fref {

enum {
    SCORE_LD = FREF__DEPTH + 4,
    SCORE_LEFT = FREF__PAD * SCORE_LD,
    SCORE_STAGE = SCORE_LEFT + FREF__SCORE_KEYS * SCORE_LD,
};

/* DEPTH channels of `count` rows, from `from` on. */
template <int count> __device__ __forceinline__ void stage_side(double *to, const double *from, int64_t ld)
{
#pragma unroll
    for (int i = 0; i < count * FREF__DEPTH / 2 / FREF__THREADS; i++) {
        const int n = (int)threadIdx.x + i * FREF__THREADS, row = n / (FREF__DEPTH / 2), pair = n % (FREF__DEPTH / 2) * 2;
        copy_async(to + row * SCORE_LD + pair, from + row * ld + pair);
    }
}

__device__ __forceinline__ void multiply_stage(double sum[2][4][4], const double *rows, const double *keys)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    double a[2][4];
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < 4; n++)
            a[m][n] = rows[(16 * m + g + n % 2 * 8) * SCORE_LD + t + n / 2 * 4];
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const double b[2] = { keys[(8 * n + g) * SCORE_LD + t], keys[(8 * n + g) * SCORE_LD + t + 4] };
#pragma unroll
        for (int m = 0; m < 2; m++)
            multiply(sum[m][n], a[m], b);
    }
}

__device__ __forceinline__ void stage_both(double *shared, int n, int steps, const double *rows, const double *keys, int64_t ld)
{
    double *to = shared + n % FREF__SCORE_STAGES * SCORE_STAGE;
    if (n < steps) {
        stage_side<FREF__PAD>(to, rows + n * FREF__DEPTH, ld);
        stage_side<FREF__SCORE_KEYS>(to + SCORE_LEFT, keys + n * FREF__DEPTH, ld);
    }
    commit_copies();
}

/* sum = rows . keys over `depth` channels. */
__device__ __forceinline__ void dot_tile(double sum[2][4][4], double *shared, const double *rows, const double *keys, int64_t ld, int64_t depth)
{
    const int warp = threadIdx.x / 32, steps = (int)((depth + FREF__DEPTH - 1) / FREF__DEPTH);
    for (int n = 0; n < FREF__SCORE_STAGES - 1; n++)
        stage_both(shared, n, steps, rows, keys, ld);
    for (int n = 0; n < steps; n++) {
        wait_for_copies<FREF__SCORE_STAGES - 2>();
        __syncthreads();
        stage_both(shared, n + FREF__SCORE_STAGES - 1, steps, rows, keys, ld);
        const double *from = shared + n % FREF__SCORE_STAGES * SCORE_STAGE;
        multiply_stage(sum, from + warp / 2 * 32 * SCORE_LD, from + SCORE_LEFT + warp % 2 * 32 * SCORE_LD);
    }
}

}

using namespace fref;

/* A block for each tile of the chunk, keys innermost. gradient: dP. */
extern "C" __global__ __launch_bounds__(FREF__THREADS, 2) void fref_scores(const __grid_constant__ fref__call c, const int gradient)
{
    FREF_SHARED(shared);
    const int64_t key_tiles = c.keys_padded / FREF__SCORE_KEYS, row_tiles = c.chunk_rows / FREF__PAD;
    const int64_t n = blockIdx.x % key_tiles * FREF__SCORE_KEYS, chunk_row = blockIdx.x / key_tiles % row_tiles * FREF__PAD;
    const int64_t head = blockIdx.x / key_tiles / row_tiles, row = c.row0 + chunk_row;
    const fref__span *tiles = c.tile_range + (head * c.rows_padded + row) / FREF__TILE;
    if (!meet(both(tiles[0], tiles[1]), keys_of_tile(c, n, FREF__SCORE_KEYS)))
        return;
    const int64_t head_k = (c.head0 + head) / c.group_k - c.head_k0, head_v = (c.head0 + head) / c.group_v - c.head_v0;
    double sum[2][4][4] = {};
    if (gradient)
        dot_tile(sum, shared, c.rows_d_o + (head * c.rows_padded + row) * c.ld_v, c.keys_v + (head_v * c.keys_padded + n) * c.ld_v, c.ld_v,
                 c.problem.dim_v);
    else
        dot_tile(sum, shared, c.rows_q + (head * c.rows_padded + row) * c.ld_qk, c.keys_k + (head_k * c.keys_padded + n) * c.ld_qk, c.ld_qk,
                 c.problem.dim_qk);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int m = 0; m < 4; m++) {
        const int64_t r = warp / 2 * 32 + m * 8 + lane / 4;
        const fref__span range = c.range[head * c.rows_padded + row + r];
        double *to = (gradient ? c.dp : c.x) + (head * c.chunk_rows + chunk_row + r) * c.keys_padded;
#pragma unroll
        for (int tile = 0; tile < 4; tile++) {
            const int64_t at = n + warp % 2 * 32 + tile * 8 + lane % 4 * 2;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const double value = sum[m / 2][tile][m % 2 * 2 + i];
                to[at + i] = gradient ? value : at + i >= range.first && at + i < range.last ? value * c.problem.scale : -infinity();
            }
        }
    }
}
