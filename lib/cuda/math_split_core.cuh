/* A block's product of 128 x BN of fp32 on the tensor cores. Every factor is the sum of two TF32
 * numbers, high and low; a product of factors is the sum of low * high, high * low and high * high.
 * The missing low * low is below 2^-21 of the product and has either sign: this is comparable to
 * the rounding of fp32. The tensor cores truncate when they add, so each sum of eight products
 * starts from 0, and an fp32 addition adds it to the total. Operands have any type and alignment. A
 * factor that is not finite, or that rounds to a number that is not, makes the sum NaN: see bad().
 */
#pragma once
#include "math_tensor_core.cuh"

namespace fattn
{

template <int COUNT> struct split {
    uint32_t high[COUNT], low[COUNT];

    /* The tensor cores do not read the last 13 bits of `low`. */
    __device__ __forceinline__ void set(const uint32_t *x)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            high[i] = (x[i] + 0x1000u) & 0xffffe000u;
            low[i] = __float_as_uint(__uint_as_float(x[i]) - __uint_as_float(high[i]));
        }
    }
};

/* The interface of tensor_core. */
template <int BN_, bool LEFT_DOWN, bool RIGHT_DOWN> struct split_core {
    static constexpr int BM = FATTN__TILE, BN = BN_, DEPTH = 16, THREADS = FATTN__THREADS_F32;
    static constexpr bool fp32 = true;
    static constexpr int dtype = FATTN__F32;
    static constexpr int LEFT_PITCH = LEFT_DOWN ? BM + 8 : DEPTH + 4,
                         RIGHT_PITCH = RIGHT_DOWN ? BN + 8 : DEPTH + 4; /* no bank twice */
    static constexpr int LEFT = (LEFT_DOWN ? DEPTH : BM) * LEFT_PITCH,
                         RIGHT = (RIGHT_DOWN ? DEPTH : BN) * RIGHT_PITCH;
    using block = block_sums<BN, THREADS / 32>;
    static constexpr int MI = block::MI, NI = block::NI;
    union shared {
        struct {
            float left[2][LEFT], right[2][RIGHT];
        } stage;
        float out[64 * block::OUT_PITCH];
    };

    block sums;
    float held[16]; /* scores on their way */

    __device__ __forceinline__ void fetch_left(shared &s, int stage, const plane &p)
    {
        fetch<THREADS, LEFT_DOWN ? DEPTH : BM, LEFT_DOWN ? BM : DEPTH, LEFT_PITCH>(
            s.stage.left[stage], p);
    }
    __device__ __forceinline__ void fetch_right(shared &s, int stage, const plane &p)
    {
        fetch<THREADS, RIGHT_DOWN ? DEPTH : BN, RIGHT_DOWN ? BN : DEPTH, RIGHT_PITCH>(
            s.stage.right[stage], p);
    }
    __device__ __forceinline__ void fetch_scores(const float *at, int64_t stride)
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int chunk = (int)threadIdx.x + i * THREADS;
            const float4 x = *(const float4 *)(at + chunk / 4 * stride + chunk % 4 * 4);
            held[4 * i] = x.x, held[4 * i + 1] = x.y, held[4 * i + 2] = x.z, held[4 * i + 3] = x.w;
        }
    }
    __device__ __forceinline__ void finish_scores(shared &s, int stage, const float *top)
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int chunk = (int)threadIdx.x + i * THREADS, row = chunk / 4;
            const float t = top[row];
            *(float4 *)(s.stage.left[stage] + row * LEFT_PITCH + chunk % 4 * 4) =
                make_float4(weight_of(held[4 * i], t), weight_of(held[4 * i + 1], t),
                            weight_of(held[4 * i + 2], t), weight_of(held[4 * i + 3], t));
        }
    }
    __device__ __forceinline__ static void wait()
    {
        wait_for_copies();
    }

    /* Four factors of the left operand, from (m, k) on, as the instruction wants them. */
    __device__ __forceinline__ static void load_left(uint32_t a[4], const float *left, int m, int k)
    {
        const int l = block::lane();
        if (!LEFT_DOWN)
            load_matrices<false>(
                a, (const uint16_t *)(left + (m + l % 16) * LEFT_PITCH + k + l / 16 * 4));
#pragma unroll
        for (int i = 0; i < 4 * LEFT_DOWN; i++)
            a[i] =
                __float_as_uint(left[(k + l % 4 + i / 2 * 4) * LEFT_PITCH + m + l / 4 + i % 2 * 8]);
    }
    /* The same of the right one for two products: two, and two of the warp's next eight columns. */
    __device__ __forceinline__ static void load_right(uint32_t b[4], const float *right, int n,
                                                      int k)
    {
        const int l = block::lane();
        if (!RIGHT_DOWN)
            load_matrices<false>(
                b, (const uint16_t *)(right + (n + l % 8 + l / 16 * block::NEXT) * RIGHT_PITCH + k +
                                      l / 8 % 2 * 4));
#pragma unroll
        for (int i = 0; i < 4 * RIGHT_DOWN; i++)
            b[i] = __float_as_uint(
                right[(k + l % 4 + i % 2 * 4) * RIGHT_PITCH + n + l / 4 + i / 2 * block::NEXT]);
    }

    template <bool WHOLE>
    __device__ __forceinline__ void compute_stage(const shared &s, int stage, int columns)
    {
        const float *left = s.stage.left[stage], *right = s.stage.right[stage];
#pragma unroll 1
        for (int k = 0; k < DEPTH; k += 8) {
            split<4> a[MI];
            uint32_t x[4];
#pragma unroll
            for (int i = 0; i < MI; i++) {
                load_left(x, left, block::warp_row() + i * 16, k);
                a[i].set(x);
            }
#pragma unroll
            for (int j = 0; j < NI; j++) {
                if (!WHOLE && block::column(j) >= columns)
                    break;
                split<2> b;
                float part[MI][4];
                if (j % 2 == 0)
                    load_right(x, right, block::column(j), k);
                b.set(x + j % 2 * 2);
#pragma unroll
                for (int i = 0; i < MI; i++)
                    multiply_split(part[i], a[i].high, a[i].low, b.high, b.low);
#pragma unroll
                for (int i = 0; i < MI; i++)
#pragma unroll
                    for (int r = 0; r < 4; r++)
                        sums.at[i][j][r] += part[i][r];
            }
        }
    }
    /* Of `columns` that are wanted; most of them go faster than some of them. */
    __device__ __forceinline__ void compute(const shared &s, int stage, int columns)
    {
        if (!RIGHT_DOWN || columns > BN * 3 / 4)
            compute_stage<true>(s, stage, columns);
        else
            compute_stage<false>(s, stage, columns);
    }
};

} // namespace fattn
