/* A block's product of 128 x BN on the tensor cores: mma.sync m16n8k16, bf16 or f16 into fp32, in
 * two stages of 32 deep, by eight warps. */
#pragma once
#include "math_sums.cuh"

namespace fattn
{

/* LEFT_DOWN: the left operand is stored as [depth][128], otherwise as [128][depth]. RIGHT_DOWN:
 * [depth][BN], otherwise [BN][depth]. */
template <class T, int BN_, bool LEFT_DOWN, bool RIGHT_DOWN> struct tensor_core {
    static constexpr int BM = FATTN__TILE, BN = BN_, DEPTH = 32, THREADS = FATTN__THREADS;
    static constexpr bool fp32 = false;
    static constexpr int dtype = T::dtype;
    static constexpr int LEFT_PITCH = (LEFT_DOWN ? BM : DEPTH) + 8,
                         RIGHT_PITCH = (RIGHT_DOWN ? BN : DEPTH) + 8; /* no bank twice */
    static constexpr int LEFT = (LEFT_DOWN ? DEPTH : BM) * LEFT_PITCH,
                         RIGHT = (RIGHT_DOWN ? DEPTH : BN) * RIGHT_PITCH;
    using block = block_sums<BN, THREADS / 32>;
    static constexpr int MI = block::MI, NI = block::NI;
    union shared {
        struct {
            uint16_t left[2][LEFT], right[2][RIGHT];
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
    /* The left operand is exp(score - top): scores wait in registers; none is masked. */
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
            const uint32_t high =
                pack<T>(weight_of(held[4 * i + 2], t), weight_of(held[4 * i + 3], t));
            *(uint2 *)(s.stage.left[stage] + row * LEFT_PITCH + chunk % 8 * 4) =
                make_uint2(low, high);
        }
    }
    __device__ __forceinline__ static void wait()
    {
        wait_for_copies();
    }

    __device__ __forceinline__ void compute(const shared &s, int stage, int)
    {
        const uint16_t *left = s.stage.left[stage], *right = s.stage.right[stage];
        const int l = block::lane(), row = block::warp_row();
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            uint32_t a[MI][4], b[NI][2];
#pragma unroll
            for (int i = 0; i < MI; i++) {
                const int m = row + i * 16;
                if (LEFT_DOWN)
                    load_matrices<true>(a[i], left + (k + l % 8 + l / 16 * 8) * LEFT_PITCH + m +
                                                  l / 8 % 2 * 8);
                else
                    load_matrices<false>(a[i], left + (m + l % 16) * LEFT_PITCH + k + l / 16 * 8);
            }
#pragma unroll
            for (int j = 0; j < NI; j += 2) {
                const int n = block::column(j);
                uint32_t x[4];
                if (RIGHT_DOWN)
                    load_matrices<true>(x, right + (k + l % 16) * RIGHT_PITCH + n +
                                               l / 16 * block::NEXT);
                else
                    load_matrices<false>(x, right +
                                                (n + l % 8 + l / 16 * block::NEXT) * RIGHT_PITCH +
                                                k + l / 8 % 2 * 8);
                b[j][0] = x[0], b[j][1] = x[1], b[j + 1][0] = x[2], b[j + 1][1] = x[3];
            }
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int j = 0; j < NI; j++)
                    multiply<T>(sums.at[i][j], a[i], b[j]);
        }
    }
};

} // namespace fattn
