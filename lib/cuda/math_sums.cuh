/* The sums of a block's product of 128 x BN, as mma.sync leaves them in the registers of its warps.
 */
#pragma once
#include "math_copy.cuh"

namespace fattn
{

template <int BN, int WARPS> struct block_sums {
    static constexpr int WARP_COLUMNS = WARPS == 8 ? 32 : BN / 2,
                         WARP_ROWS = FATTN__TILE * BN / WARPS / WARP_COLUMNS; /* a warp's part */
    static constexpr int MI = WARP_ROWS / 16, NI = WARP_COLUMNS / 8;
    static constexpr int OUT_PITCH = BN + 4;

    float at[MI][NI][4];

    __device__ __forceinline__ static int lane()
    {
        return (int)threadIdx.x % 32;
    }
    __device__ __forceinline__ static int warp_row()
    {
        return (int)threadIdx.x / 32 / (BN / WARP_COLUMNS) * WARP_ROWS;
    }
    /* First of the eight columns of a warp's j-th part. The warps take turns, so that each has
     * something to do where columns are few. */
    static constexpr int NEXT = BN / WARP_COLUMNS * 8;
    __device__ __forceinline__ static int column(int j)
    {
        return (int)threadIdx.x / 32 % (BN / WARP_COLUMNS) * 8 + j * NEXT;
    }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < NI; j++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    at[i][j][k] = 0;
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
                    any |= !finite(at[i][j][k]);
        return any;
    }

    /* Rows 64 * half to 64 * half + 63 of the sums. */
    __device__ __forceinline__ void lay_out(float *out, int half) const
    {
        if (warp_row() / 64 != half)
            return;
        const int l = lane(), row = warp_row() % 64 + l / 4;
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < NI; j++) {
                float *to = out + (row + i * 16) * OUT_PITCH + column(j) + l % 4 * 2;
                *(float2 *)to = make_float2(at[i][j][0], at[i][j][1]);
                *(float2 *)(to + 8 * OUT_PITCH) = make_float2(at[i][j][2], at[i][j][3]);
            }
    }
};

} // namespace fattn
