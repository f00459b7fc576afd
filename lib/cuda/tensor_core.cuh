/* A block's product of 128 x BN on the tensor cores: mma.sync m16n8k16, bf16 or f16 into fp32. Operands go from global to shared memory by
 * cp.async, two stages of 32 deep; where rows are not aligned for that, element by element. */
#pragma once
#include "band.cuh"

namespace fattn {

enum { THREADS = 256 };

/* A part of an operand as it lies in global memory: `rows` of `columns` exist, what is past them reads as zero. */
struct plane {
    const char *at;
    int64_t stride; /* elements */
    int rows, columns;
    int dtype, grain;
};

/* 8 elements to shared memory, the first `count` of them from global memory and the rest zero. */
template <int BYTES> __device__ __forceinline__ void copy_8(uint16_t *to, const uint16_t *from, const void *safe, int count)
{
#pragma unroll
    for (int i = 0; i < 8; i += BYTES / 2) {
        const int here = min(max(count - i, 0), BYTES / 2);
        copy_async<BYTES>(to + i, here > 0 ? (const void *)(from + i) : safe, here * 2);
    }
}

__device__ __forceinline__ void copy_8_slowly(uint16_t *to, const uint16_t *from, int count)
{
    uint32_t x[4] = { 0, 0, 0, 0 };
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < count)
            x[i / 2] |= (uint32_t)from[i] << (i % 2 * 16);
    *(uint4 *)to = make_uint4(x[0], x[1], x[2], x[3]);
}

/* ROWS x COLUMNS elements to shared memory, in their order. */
template <int ROWS, int COLUMNS, int PITCH> __device__ __forceinline__ void fetch(uint16_t *to, const plane &p)
{
    if (p.grain >= 16 && p.rows >= ROWS && p.columns >= COLUMNS) { /* nothing is missing, as nearly always */
#pragma unroll
        for (int i = 0; i < ROWS * COLUMNS / 8 / THREADS; i++) {
            const int chunk = (int)threadIdx.x + i * THREADS, row = chunk / (COLUMNS / 8), column = chunk % (COLUMNS / 8) * 8;
            copy_async<16>(to + row * PITCH + column, (const uint16_t *)p.at + row * p.stride + column, 16);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS / 8 / THREADS; i++) {
        const int chunk = (int)threadIdx.x + i * THREADS, row = chunk / (COLUMNS / 8), column = chunk % (COLUMNS / 8) * 8;
        const int count = row < p.rows ? min(max(p.columns - column, 0), 8) : 0;
        const uint16_t *from = (const uint16_t *)p.at + row * p.stride + column;
        uint16_t *at = to + row * PITCH + column;
        if (p.grain >= 16)
            copy_8<16>(at, from, p.at, count);
        else if (p.grain == 8)
            copy_8<8>(at, from, p.at, count);
        else if (p.grain == 4)
            copy_8<4>(at, from, p.at, count);
        else
            copy_8_slowly(at, from, count);
    }
}

/* LEFT_DOWN: the left operand lies as [depth][128], otherwise as [128][depth]. RIGHT_DOWN: [depth][BN], otherwise [BN][depth]. */
template <class T, int BN_, bool LEFT_DOWN, bool RIGHT_DOWN> struct tensor_core {
    static constexpr int BM = FATTN__TILE, BN = BN_, DEPTH = 32;
    static constexpr bool simt = false;
    static constexpr int dtype = T::dtype;
    static constexpr int LEFT_PITCH = (LEFT_DOWN ? BM : DEPTH) + 8, RIGHT_PITCH = (RIGHT_DOWN ? BN : DEPTH) + 8; /* no bank twice */
    static constexpr int LEFT = (LEFT_DOWN ? DEPTH : BM) * LEFT_PITCH, RIGHT = (RIGHT_DOWN ? DEPTH : BN) * RIGHT_PITCH;
    static constexpr int WARP_ROWS = BN == 128 ? 64 : 32; /* a warp's part: WARP_ROWS x 32 */
    static constexpr int MI = WARP_ROWS / 16, NI = 4;
    static constexpr int OUT_PITCH = BN + 4;
    union shared {
        struct {
            uint16_t left[2][LEFT], right[2][RIGHT];
        } stage;
        float out[64 * OUT_PITCH];
    };

    float sum[MI][NI][4];
    float held[16]; /* scores on their way */

    __device__ __forceinline__ static int warp()
    {
        return (int)threadIdx.x / 32;
    }
    __device__ __forceinline__ static int lane()
    {
        return (int)threadIdx.x % 32;
    }
    __device__ __forceinline__ static int warp_row()
    {
        return warp() / (BN / 32) * WARP_ROWS;
    }
    __device__ __forceinline__ static int warp_column()
    {
        return warp() % (BN / 32) * 32;
    }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < NI; j++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    sum[i][j][k] = 0;
    }

    __device__ __forceinline__ void fetch_left(shared &s, int stage, const plane &p)
    {
        fetch<LEFT_DOWN ? DEPTH : BM, LEFT_DOWN ? BM : DEPTH, LEFT_PITCH>(s.stage.left[stage], p);
    }
    __device__ __forceinline__ void fetch_right(shared &s, int stage, const plane &p)
    {
        fetch<RIGHT_DOWN ? DEPTH : BN, RIGHT_DOWN ? BN : DEPTH, RIGHT_PITCH>(s.stage.right[stage], p);
    }
    /* The left operand is exp(score - top): scores, all of them there, wait in registers. */
    __device__ __forceinline__ void fetch_scores(const float *at, int64_t stride)
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int chunk = (int)threadIdx.x + i * THREADS;
            const float4 x = *(const float4 *)(at + chunk / 8 * stride + chunk % 8 * 4);
            held[4 * i] = x.x, held[4 * i + 1] = x.y, held[4 * i + 2] = x.z, held[4 * i + 3] = x.w;
        }
    }
    __device__ __forceinline__ void finish_scores(shared &s, int stage, const float *top)
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int chunk = (int)threadIdx.x + i * THREADS, row = chunk / 8;
            const float t = top[row];
            const uint32_t low = pack<T>(weight_of(held[4 * i], t), weight_of(held[4 * i + 1], t));
            const uint32_t high = pack<T>(weight_of(held[4 * i + 2], t), weight_of(held[4 * i + 3], t));
            *(uint2 *)(s.stage.left[stage] + row * LEFT_PITCH + chunk % 8 * 4) = make_uint2(low, high);
        }
    }
    __device__ __forceinline__ void finish_left(shared &, int)
    {
    }
    __device__ __forceinline__ void finish_right(shared &, int)
    {
    }
    __device__ __forceinline__ static void wait()
    {
        wait_for_copies();
    }

    __device__ __forceinline__ void compute(const shared &s, int stage)
    {
        const uint16_t *left = s.stage.left[stage], *right = s.stage.right[stage];
        const int l = lane(), row = warp_row(), column = warp_column();
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            uint32_t a[MI][4], b[NI][2];
#pragma unroll
            for (int i = 0; i < MI; i++) {
                const int m = row + i * 16;
                if (LEFT_DOWN)
                    load_matrices<true>(a[i], left + (k + l % 8 + l / 16 * 8) * LEFT_PITCH + m + l / 8 % 2 * 8);
                else
                    load_matrices<false>(a[i], left + (m + l % 16) * LEFT_PITCH + k + l / 16 * 8);
            }
#pragma unroll
            for (int j = 0; j < NI; j += 2) {
                const int n = column + j * 8;
                uint32_t x[4];
                if (RIGHT_DOWN)
                    load_matrices<true>(x, right + (k + l % 16) * RIGHT_PITCH + n + l / 16 * 8);
                else
                    load_matrices<false>(x, right + (n + l % 8 + l / 16 * 8) * RIGHT_PITCH + k + l / 8 % 2 * 8);
                b[j][0] = x[0], b[j][1] = x[1], b[j + 1][0] = x[2], b[j + 1][1] = x[3];
            }
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int j = 0; j < NI; j++)
                    multiply<T>(sum[i][j], a[i], b[j]);
        }
    }

    __device__ __forceinline__ bool bad() const
    {
        bool any = false;
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < NI; j++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    any |= !finite(sum[i][j][k]);
        return any;
    }

    /* Rows 64 * half to 64 * half + 63 of the sums. */
    __device__ __forceinline__ void lay_out(shared &s, int half) const
    {
        if (warp_row() / 64 != half)
            return;
        const int l = lane(), row = warp_row() % 64 + l / 4, column = warp_column() + l % 4 * 2;
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < NI; j++) {
                float *at = s.out + (row + i * 16) * OUT_PITCH + column + j * 8;
                *(float2 *)at = make_float2(sum[i][j][0], sum[i][j][1]);
                *(float2 *)(at + 8 * OUT_PITCH) = make_float2(sum[i][j][2], sum[i][j][3]);
            }
    }
};

}
