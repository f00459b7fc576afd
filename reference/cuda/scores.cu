/* Scores: X = scale Q K^T with -inf where the mask hides, and dP = dO V^T. A block makes a tile of PAD rows and PAD keys, a warp 32 rows and
 * 64 keys of it. */
#include "element.cuh"

namespace fref {

enum { STAGES = 3, SCORE_LD = FREF__STEP + 4, SCORE_SIDE = FREF__PAD * SCORE_LD };

/* FREF__STEP channels of PAD rows, from `from` on. */
__device__ __forceinline__ void stage_side(double *to, const double *from, int64_t ld)
{
    for (int n = (int)threadIdx.x; n < FREF__PAD * FREF__STEP / 2; n += FREF__THREADS) {
        const int row = n / (FREF__STEP / 2), pair = n % (FREF__STEP / 2) * 2;
        copy_async(to + row * SCORE_LD + pair, from + row * ld + pair);
    }
}

__device__ __forceinline__ void multiply_stage(double sum[2][8][4], const double *rows, const double *keys)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    double a[2][4];
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < 4; n++)
            a[m][n] = rows[(16 * m + g + n % 2 * 8) * SCORE_LD + t + n / 2 * 4];
#pragma unroll
    for (int n = 0; n < 8; n++) {
        const double b[2] = { keys[(8 * n + g) * SCORE_LD + t], keys[(8 * n + g) * SCORE_LD + t + 4] };
#pragma unroll
        for (int m = 0; m < 2; m++)
            multiply(sum[m][n], a[m], b);
    }
}

/* sum = rows . keys over `depth` channels. */
__device__ __forceinline__ void dot_tile(double sum[2][8][4], double *shared, const double *rows, const double *keys, int64_t ld,
                                         int64_t depth)
{
    const int warp = threadIdx.x / 32, steps = (int)((depth + FREF__STEP - 1) / FREF__STEP);
    for (int n = 0; n < STAGES - 1; n++) {
        if (n < steps) {
            stage_side(shared + n * 2 * SCORE_SIDE, rows + n * FREF__STEP, ld);
            stage_side(shared + n * 2 * SCORE_SIDE + SCORE_SIDE, keys + n * FREF__STEP, ld);
        }
        commit_copies();
    }
    for (int n = 0; n < steps; n++) {
        wait_for_copies<STAGES - 2>();
        __syncthreads();
        const int next = n + STAGES - 1;
        if (next < steps) {
            double *to = shared + next % STAGES * 2 * SCORE_SIDE;
            stage_side(to, rows + next * FREF__STEP, ld);
            stage_side(to + SCORE_SIDE, keys + next * FREF__STEP, ld);
        }
        commit_copies();
        const double *from = shared + n % STAGES * 2 * SCORE_SIDE;
        multiply_stage(sum, from + warp / 2 * 32 * SCORE_LD, from + SCORE_SIDE + warp % 2 * 64 * SCORE_LD);
    }
}

}

using namespace fref;

/* A block for each tile of the chunk, keys innermost. gradient: dP. */
extern "C" __global__ __launch_bounds__(FREF__THREADS) void fref_scores(const __grid_constant__ fref__call c, const int gradient)
{
    FREF_SHARED(shared);
    const int64_t key_tiles = c.keys_padded / FREF__PAD, row_tiles = c.chunk_rows / FREF__PAD;
    const int64_t n = blockIdx.x % key_tiles * FREF__PAD, chunk_row = blockIdx.x / key_tiles % row_tiles * FREF__PAD;
    const int64_t head = blockIdx.x / key_tiles / row_tiles, row = c.row0 + chunk_row;
    const fref__span *tiles = c.tile_range + (head * c.rows_padded + row) / FREF__TILE;
    if (!meet(both(tiles[0], tiles[1]), keys_of_tile(c, n, FREF__PAD)))
        return;
    const int64_t head_k = (c.head0 + head) / c.group_k - c.head_k0, head_v = (c.head0 + head) / c.group_v - c.head_v0;
    double sum[2][8][4] = {};
    if (gradient)
        dot_tile(sum, shared, c.rows_d_o + (head * c.rows_padded + row) * c.ld_v, c.keys_v + (head_v * c.keys_padded + n) * c.ld_v, c.ld_v,
                 c.problem.dim_v);
    else
        dot_tile(sum, shared, c.rows_q + (head * c.rows_padded + row) * c.ld_qk, c.keys_k + (head_k * c.keys_padded + n) * c.ld_qk, c.ld_qk,
                 c.problem.dim_qk);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int m = 0; m < 4; m++) {
        const int64_t r = warp / 2 * 32 + m * 8 + lane / 4;
        const fref__span range = c.range[head * c.rows_padded + row + r];
        double *to = (gradient ? c.dp : c.x) + (head * c.chunk_rows + chunk_row + r) * c.keys_padded;
#pragma unroll
        for (int tile = 0; tile < 8; tile++) {
            const int64_t at = n + warp % 2 * 64 + tile * 8 + lane % 4 * 2;
            double pair[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                /* m is a constant once unrolled; the choice keeps sum in registers when it is not */
                const double value = m < 2 ? (m == 0 ? sum[0][tile][i] : sum[0][tile][2 + i]) : (m == 2 ? sum[1][tile][i] : sum[1][tile][2 + i]);
                const int64_t j = at + i < c.keys ? key_of(c, at + i) : INT32_MAX;
                pair[i] = gradient ? value : j >= range.first && j < range.last ? value * c.problem.scale : -infinity();
            }
            to[at] = pair[0];
            to[at + 1] = pair[1];
        }
    }
}
