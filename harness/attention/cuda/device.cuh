/* Shared by all kernels. */
#ifndef FACTS_DEVICE_CUH
#define FACTS_DEVICE_CUH

#include "calls.h"
#include "numbers/poison.h"

/* A part of a launch's blocks: all of them, or those of one of several tasks. */
struct share {
    int one;
    int64_t block, blocks;
};

__device__ static inline share whole_grid()
{
    return { 0, (int64_t)blockIdx.x, (int64_t)gridDim.x };
}

/* blocks[n]: blocks of task n. */
__device__ static inline share share_of(const int32_t *blocks)
{
    share mine = { 0, (int64_t)blockIdx.x, 0 };
    while (mine.block >= blocks[mine.one])
        mine.block -= blocks[mine.one++];
    mine.blocks = blocks[mine.one];
    return mine;
}

/* Element n of every so many, for this thread: blocks may be fewer than there is work. */
__device__ static inline int64_t first_of_thread(const share &mine)
{
    return mine.block * blockDim.x + threadIdx.x;
}

__device__ static inline int64_t threads_of(const share &mine)
{
    return mine.blocks * blockDim.x;
}

__device__ static inline int64_t first_of_thread()
{
    return first_of_thread(whole_grid());
}

__device__ static inline int64_t threads_of_grid()
{
    return threads_of(whole_grid());
}

/* A division of two short numbers takes a fifth of the time of a long one. */
__device__ static inline int64_t divide(int64_t n, int64_t by, int64_t *rest)
{
    if ((uint64_t)(n | by) >> 32 == 0) {
        const uint32_t quotient = (uint32_t)n / (uint32_t)by;
        *rest = (uint32_t)n - quotient * (uint32_t)by;
        return quotient;
    }
    const int64_t quotient = n / by;
    *rest = n - quotient * by;
    return quotient;
}

/* Row n of [batch, heads, rows]. */
struct row_index {
    int64_t b, h, s;
};

__device__ static inline row_index row_index_of(const int64_t dim[4], int64_t n)
{
    row_index at;
    at.b = divide(divide(n, dim[2], &at.s), dim[1], &at.h);
    return at;
}

/* f(row number, lane, lanes) for each row, by 2^lane_bits threads that lie side by side: channels
 * lane, lane + lanes, ... are its. */
template <typename F>
__device__ static inline void for_rows(const share &mine, int64_t rows, int32_t lane_bits,
                                       const F &f)
{
    const int64_t first = first_of_thread(mine), step = threads_of(mine) >> lane_bits;
    const int lanes = 1 << lane_bits, lane = (int)(first & (lanes - 1));
    for (int64_t n = first >> lane_bits; n < rows; n += step)
        f(n, lane, lanes);
}

/* Channel 0 of a row. */
__device__ static inline int64_t row_of(const facts_strided *v, int64_t b, int64_t h, int64_t s)
{
    const int64_t entry = v->start ? v->start[b] * v->stride[2] : b * v->stride[0];
    return v->first + entry + h * v->stride[1] + s * v->stride[2];
}

__device__ static inline bool exists(const facts_strided *v, int64_t b, int64_t s)
{
    return !v->live || s < v->live[b];
}

/* f(logical number, place, batch, row) for each element that exists. */
template <typename F>
__device__ static inline void for_elements(const share &mine, const facts_strided *v, const F &f)
{
    for_rows(mine, v->dim[0] * v->dim[1] * v->dim[2], v->lane_bits,
             [&](int64_t n, int lane, int lanes) {
                 const row_index at = row_index_of(v->dim, n);
                 if (!exists(v, at.b, at.s))
                     return;
                 const int64_t first = n * v->dim[3], place = row_of(v, at.b, at.h, at.s);
                 for (int64_t d = lane; d < v->dim[3]; d += lanes)
                     f(first + d, place + d * v->stride[3], at.b, at.s);
             });
}

/* A place modulo the period of poison; negative ones are in the guard. */
__device__ static inline int phase_of(int64_t place)
{
    const int64_t later = place + FACTS_PATTERN_PERIOD * (int64_t)FACTS_GUARD_BYTES;
    return (int)(later >> 32 == 0 ? (uint32_t)later % FACTS_PATTERN_PERIOD
                                  : (uint32_t)(later % FACTS_PATTERN_PERIOD));
}

/* Poison by its phase where all threads of a block find it at once. */
struct poison_codes {
    uint32_t code[FACTS_PATTERN_PERIOD];
};

__device__ static inline void keep_codes(poison_codes *shared,
                                         const uint32_t code[FACTS_PATTERN_PERIOD])
{
    if (threadIdx.x < FACTS_PATTERN_PERIOD)
        shared->code[threadIdx.x] = code[threadIdx.x];
    __syncthreads();
}

__device__ static inline void count(facts_counter *to, int64_t found)
{
    if (found)
        atomicAdd(to, (facts_counter)found);
}

/* The same, called by all threads of a warp together: additions to one place are made one by one.
 */
__device__ static inline void count_warp(facts_counter *to, int64_t found)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        found += __shfl_xor_sync(0xffffffff, found, lanes);
    if (threadIdx.x % 32 == 0)
        count(to, found);
}

#endif
