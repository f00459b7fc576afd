/* Scores: X = scale Q K^T with -inf where the mask hides, and dP = dO V^T. A block makes a tile of
 * PAD rows and SCORE_KEYS keys, a warp 32 rows and 32 keys of it; where these are too few for a
 * GPU, half the rows. */
#include "relate.cuh"

namespace fref
{

enum {
    SCORE_LD = FREF__DEPTH + 4,
};

/* Of 16 * MS rows. */
template <int MS>
__device__ __forceinline__ void multiply_stage(double sum[MS][4][4], const double *rows,
                                               const double *keys)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    double a[MS][4];
#pragma unroll
    for (int m = 0; m < MS; m++)
#pragma unroll
        for (int n = 0; n < 4; n++)
            a[m][n] = rows[(16 * m + g + n % 2 * 8) * SCORE_LD + t + n / 2 * 4];
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const double b[2] = { keys[(8 * n + g) * SCORE_LD + t],
                              keys[(8 * n + g) * SCORE_LD + t + 4] };
#pragma unroll
        for (int m = 0; m < MS; m++)
            multiply(sum[m][n], a[m], b);
    }
}

/* sum = rows . keys over `depth` channels, DEPTH at a time: a thread brings two of them of a row of
 * every LINES. */
template <int MS>
__device__ __forceinline__ void dot_tile(double sum[MS][4][4], double *shared, const double *rows,
                                         const double *keys, int64_t ld, int64_t depth)
{
    constexpr int LINES = FREF__THREADS / (FREF__DEPTH / 2), STAGE = (MS + 1) * LINES * SCORE_LD;
    static_assert(LINES == 64 && FREF__SCORE_KEYS == LINES, "");
    const int warp = threadIdx.x / 32, steps = (int)((depth + FREF__DEPTH - 1) / FREF__DEPTH);
    const int line = threadIdx.x / (FREF__DEPTH / 2), channel = threadIdx.x % (FREF__DEPTH / 2) * 2,
              mine = line * SCORE_LD + channel;
    const int64_t apart = LINES * ld;
    rows += line * ld + channel;
    keys += line * ld + channel;
    int staged = 0, next = 0, use = 0;
    const auto stage = [&] {
        if (staged++ < steps) {
#pragma unroll
            for (int m = 0; m < MS; m++)
                copy_async(shared + next + mine + m * LINES * SCORE_LD, rows + m * apart);
            copy_async(shared + next + mine + MS * LINES * SCORE_LD, keys);
        }
        commit_copies();
        rows += FREF__DEPTH;
        keys += FREF__DEPTH;
        next = next == (FREF__SCORE_STAGES - 1) * STAGE ? 0 : next + STAGE;
    };
    for (int n = 0; n < FREF__SCORE_STAGES - 1; n++)
        stage();
    for (int n = 0; n < steps; n++) {
        wait_for_copies<FREF__SCORE_STAGES - 2>();
        __syncthreads();
        stage();
        multiply_stage<MS>(sum, shared + use + warp / 2 * 16 * MS * SCORE_LD,
                           shared + use + (MS * LINES + warp % 2 * 32) * SCORE_LD);
        use = use == (FREF__SCORE_STAGES - 1) * STAGE ? 0 : use + STAGE;
    }
}

/* A tile of 64 * MS rows: keys innermost, then rows, then heads. What else waits for the decoded
 * inputs alone goes before: it takes longer. */
template <int MS>
__device__ __forceinline__ void make_scores(const fref__call &c, const bool gradient,
                                            double *shared)
{
    constexpr int ROWS = 64 * MS;
    const uint32_t block = blockIdx.x - (uint32_t)c.relations;
    if ((int)blockIdx.x < c.relations)
        return relate(c, shared);
    const uint32_t key_tiles = (uint32_t)(c.keys_padded / FREF__SCORE_KEYS),
                   row_tiles = (uint32_t)(c.chunk_rows / ROWS);
    const uint32_t n = block % key_tiles * FREF__SCORE_KEYS,
                   chunk_row = block / key_tiles % row_tiles * ROWS;
    const uint32_t head = block / key_tiles / row_tiles;
    const int64_t row = head * c.rows_padded + c.row0 + chunk_row;
    const fref__span *tiles = c.tile_range + row / FREF__PAD * (FREF__PAD / FREF__TILE);
    if (!meet(both(tiles[0], tiles[1]), keys_of_tile(c, n, FREF__SCORE_KEYS)))
        return;
    const uint32_t global = (uint32_t)c.head0 + head;
    const int64_t head_k = global / (uint32_t)c.group_k - c.head_k0,
                  head_v = global / (uint32_t)c.group_v - c.head_v0;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = warp / 2 * 16 * MS + lane / 4,
              at = (int)n + warp % 2 * 32 + lane % 4 * 2;
    fref__span range[2 * MS];
#pragma unroll
    for (int m = 0; m < 2 * MS; m++)
        range[m] = c.range[row + r + m * 8];
    double sum[MS][4][4] = {};
    if (gradient)
        dot_tile<MS>(sum, shared, c.rows_d_o + row * c.ld_v,
                     c.keys_v + (head_v * c.keys_padded + n) * c.ld_v, c.ld_v, c.problem.dim_v);
    else
        dot_tile<MS>(sum, shared, c.rows_q + row * c.ld_qk,
                     c.keys_k + (head_k * c.keys_padded + n) * c.ld_qk, c.ld_qk, c.problem.dim_qk);
#pragma unroll
    for (int m = 0; m < 2 * MS; m++) {
        double *to =
            (gradient ? c.dp : c.x) + (head * c.chunk_rows + chunk_row + r + m * 8) * c.keys_padded;
#pragma unroll
        for (int tile = 0; tile < 4; tile++) {
            const int key = at + tile * 8;
            pair two;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const double value = sum[m / 2][tile][m % 2 * 2 + i];
                two.x[i] = gradient ? value
                           : key + i >= range[m].first && key + i < range[m].last
                               ? value * c.problem.scale
                               : -infinity();
            }
            *(pair *)(to + key) = two;
        }
    }
}

} // namespace fref

using namespace fref;

/* A block for each tile of the chunk. gradient: dP. */
extern "C" __global__ __launch_bounds__(FREF__THREADS,
                                        2) void fref_scores(const __grid_constant__ fref__call c,
                                                            const int gradient)
{
    FREF_SHARED(shared);
    make_scores<FREF__PAD / 64>(c, gradient != 0, shared);
}

extern "C" __global__
__launch_bounds__(FREF__THREADS, 2) void fref_scores_half(const __grid_constant__ fref__call c,
                                                          const int gradient)
{
    FREF_SHARED(shared);
    make_scores<FREF__PAD / 128>(c, gradient != 0, shared);
}
