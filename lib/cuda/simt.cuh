/* A block's product of 128 x BN in fp32 on the ordinary units, 8 x 8 (8 x 4) results a thread: for f32, and for what mixes types. Never TF32.
 * Operands of any type and alignment; whole aligned rows of f32 are loaded 16 bytes at once. */
#pragma once
#include "tensor_core.cuh"

namespace fattn {

/* Four neighbours of a row, the first `count` of them from memory and the rest zero. */
__device__ __forceinline__ void load_4(float out[4], const plane &p, int row, int column)
{
    const int count = row < p.rows ? p.columns - column : 0;
    const int64_t at = row * p.stride + column;
    if (p.dtype == FATTN__F32 && p.grain >= 16 && count >= 4) {
        const float4 x = *(const float4 *)((const float *)p.at + at);
        out[0] = x.x, out[1] = x.y, out[2] = x.z, out[3] = x.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        out[i] = i < count ? load(p.at, p.dtype, at + i) : 0.0f;
}

/* The interface of tensor_core. In shared memory both operands lie as [depth][128 or BN]. */
template <int BN_, bool LEFT_DOWN, bool RIGHT_DOWN> struct simt_core {
    static constexpr int BM = FATTN__TILE, BN = BN_, DEPTH = 16;
    static constexpr bool simt = true;
    static constexpr int dtype = FATTN__F32;
    static constexpr int LEFT_PITCH = BM + 4, RIGHT_PITCH = BN + 4;
    static constexpr int COLUMNS = BN / 16; /* of a thread */
    static constexpr int LEFT_LOADS = BM * DEPTH / 4 / THREADS, RIGHT_LOADS = BN * DEPTH / 4 / THREADS;
    static constexpr int OUT_PITCH = BN + 4;
    union shared {
        struct {
            float left[2][DEPTH * LEFT_PITCH], right[2][DEPTH * RIGHT_PITCH];
        } stage;
        float out[64 * OUT_PITCH];
    };

    float sum[8][COLUMNS];
    float left_held[LEFT_LOADS][4], right_held[RIGHT_LOADS][4];

    __device__ __forceinline__ static int thread_row()
    {
        return (int)threadIdx.x / 16 * 4;
    }
    __device__ __forceinline__ static int thread_column()
    {
        return (int)threadIdx.x % 16 * 4;
    }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
                sum[i][j] = 0;
    }

    /* Place of a thread's i-th four in an operand of `SIDE`: along the depth, or (DOWN) along the side. */
    template <bool DOWN, int SIDE> __device__ __forceinline__ static void place(int i, int *row, int *column)
    {
        const int chunk = (int)threadIdx.x + i * THREADS, across = DOWN ? SIDE / 4 : DEPTH / 4;
        *row = chunk / across;
        *column = chunk % across * 4;
    }
    template <bool DOWN, int SIDE, int PITCH> __device__ __forceinline__ static void put(float *to, int i, const float x[4])
    {
        int row, column;
        place<DOWN, SIDE>(i, &row, &column);
        if (DOWN) {
            *(float4 *)(to + row * PITCH + column) = make_float4(x[0], x[1], x[2], x[3]);
        } else {
#pragma unroll
            for (int k = 0; k < 4; k++)
                to[(column + k) * PITCH + row] = x[k];
        }
    }

    template <bool DOWN, int SIDE, int LOADS> __device__ __forceinline__ static void fetch(float held[LOADS][4], const plane &p)
    {
        const bool whole = p.dtype == FATTN__F32 && p.grain >= 16 && p.rows >= (DOWN ? DEPTH : SIDE) && p.columns >= (DOWN ? SIDE : DEPTH);
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            int row, column;
            place<DOWN, SIDE>(i, &row, &column);
            if (whole) {
                const float4 x = *(const float4 *)((const float *)p.at + row * p.stride + column);
                held[i][0] = x.x, held[i][1] = x.y, held[i][2] = x.z, held[i][3] = x.w;
            } else {
                load_4(held[i], p, row, column);
            }
        }
    }
    __device__ __forceinline__ void fetch_left(shared &, int, const plane &p)
    {
        fetch<LEFT_DOWN, BM, LEFT_LOADS>(left_held, p);
    }
    __device__ __forceinline__ void fetch_right(shared &, int, const plane &p)
    {
        fetch<RIGHT_DOWN, BN, RIGHT_LOADS>(right_held, p);
    }
    __device__ __forceinline__ void fetch_scores(const float *at, int64_t stride)
    {
#pragma unroll
        for (int i = 0; i < LEFT_LOADS; i++) {
            int row, column;
            place<false, BM>(i, &row, &column);
            const float4 x = *(const float4 *)(at + row * stride + column);
            left_held[i][0] = x.x, left_held[i][1] = x.y, left_held[i][2] = x.z, left_held[i][3] = x.w;
        }
    }
    __device__ __forceinline__ void finish_scores(shared &s, int stage, const float *top)
    {
#pragma unroll
        for (int i = 0; i < LEFT_LOADS; i++) {
            int row, column;
            place<false, BM>(i, &row, &column);
#pragma unroll
            for (int k = 0; k < 4; k++)
                left_held[i][k] = weight_of(left_held[i][k], top[row]);
        }
        finish_left(s, stage);
    }
    __device__ __forceinline__ void finish_left(shared &s, int stage)
    {
#pragma unroll
        for (int i = 0; i < LEFT_LOADS; i++)
            put<LEFT_DOWN, BM, LEFT_PITCH>(s.stage.left[stage], i, left_held[i]);
    }
    __device__ __forceinline__ void finish_right(shared &s, int stage)
    {
#pragma unroll
        for (int i = 0; i < RIGHT_LOADS; i++)
            put<RIGHT_DOWN, BN, RIGHT_PITCH>(s.stage.right[stage], i, right_held[i]);
    }
    __device__ __forceinline__ static void wait()
    {
    }

    __device__ __forceinline__ void compute(const shared &s, int stage)
    {
        const float *left = s.stage.left[stage] + thread_row(), *right = s.stage.right[stage] + thread_column();
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float a[8], b[COLUMNS];
#pragma unroll
            for (int i = 0; i < 8; i += 4)
                *(float4 *)(a + i) = *(const float4 *)(left + k * LEFT_PITCH + i * 16);
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 4)
                *(float4 *)(b + j) = *(const float4 *)(right + k * RIGHT_PITCH + j * 16);
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < COLUMNS; j++)
                    sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
        }
    }

    __device__ __forceinline__ bool bad() const
    {
        bool any = false;
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
                any |= !finite(sum[i][j]);
        return any;
    }

    __device__ __forceinline__ void lay_out(shared &s, int half) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 4) {
                const float *x = sum[i + half * 4] + j;
                *(float4 *)(s.out + (thread_row() + i) * OUT_PITCH + thread_column() + j * 16) = make_float4(x[0], x[1], x[2], x[3]);
            }
    }
};

}
