/* CUDA C without a GPU: the kernels as C++, a block's threads as fibers on one thread, blocks one after the other. What waits for others (a
 * barrier, a shuffle, a matrix instruction) gives way until they have come. Slow, exact about who waits for whom and about alignment; it knows
 * no races, no caches and no time. */
#ifndef FATTN_TEST_EMULATE_H
#define FATTN_TEST_EMULATE_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define FATTN_EMULATED
#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
static inline float4 make_float4(float x, float y, float z, float w)
{
    return { x, y, z, w };
}
static inline float2 make_float2(float x, float y)
{
    return { x, y };
}
static inline uint2 make_uint2(uint32_t x, uint32_t y)
{
    return { x, y };
}
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return { x, y, z, w };
}
static inline float __uint_as_float(uint32_t x)
{
    float y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline uint32_t __float_as_uint(float x)
{
    uint32_t y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline int min(int a, int b)
{
    return a < b ? a : b;
}
static inline int max(int a, int b)
{
    return a > b ? a : b;
}
static inline int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

namespace emulate {

enum { MOST_THREADS = 256, WARP = 32 };

struct dimension {
    unsigned x;
};

/* What the lanes of a warp leave for each other. */
struct warp {
    int arrived;
    unsigned generation;
    uint32_t given[WARP][12], taken[WARP][4];
    const uint16_t *address[WARP];
};

struct block {
    dimension index, size, grid;
    int running;       /* the thread that runs */
    int alive, arrived;
    unsigned generation;
    int any, any_result;
    bool over[MOST_THREADS];
    dimension thread[MOST_THREADS];
    warp warps[MOST_THREADS / WARP];
};

extern block now;

void give_way();

static inline int lane()
{
    return now.running % WARP;
}
static inline warp &mine()
{
    return now.warps[now.running / WARP];
}

/* Waits for the whole warp; the last to come does `work` for all. */
template <class Work> inline void together(Work work)
{
    warp &w = mine();
    const unsigned generation = w.generation;
    if (++w.arrived == WARP) {
        work(w);
        w.arrived = 0;
        w.generation++;
    }
    while (w.generation == generation)
        give_way();
}

int barrier(int any);

/* `call(argument)` is the kernel's body for one thread. */
void run(unsigned blocks, unsigned threads, void (*call)(void **), void **arguments);

}

#define threadIdx (emulate::now.thread[emulate::now.running])
#define blockIdx (emulate::now.index)
#define blockDim (emulate::now.size)
#define gridDim (emulate::now.grid)
#define __syncthreads() ((void)emulate::barrier(0))
#define __syncthreads_or(x) emulate::barrier(x)
#define __syncwarp() emulate::together([](emulate::warp &) {})

static inline unsigned long long atomicAdd(unsigned long long *to, unsigned long long x)
{
    const unsigned long long before = *to;
    *to += x;
    return before;
}
static inline unsigned long long atomicMin(unsigned long long *to, unsigned long long x)
{
    const unsigned long long before = *to;
    *to = x < before ? x : before;
    return before;
}

static inline float __shfl_xor_sync(uint32_t, float x, int mask)
{
    emulate::mine().given[emulate::lane()][0] = __float_as_uint(x);
    emulate::together([mask](emulate::warp &w) {
        for (int i = 0; i < emulate::WARP; i++)
            w.taken[i][0] = w.given[i ^ mask][0];
    });
    return __uint_as_float(emulate::mine().taken[emulate::lane()][0]);
}

static inline int64_t __shfl_xor_sync(uint32_t, int64_t x, int mask)
{
    memcpy(emulate::mine().given[emulate::lane()], &x, sizeof x);
    emulate::together([mask](emulate::warp &w) {
        for (int i = 0; i < emulate::WARP; i++)
            memcpy(w.taken[i], w.given[i ^ mask], sizeof(int64_t));
    });
    memcpy(&x, emulate::mine().taken[emulate::lane()], sizeof x);
    return x;
}

static inline int __any_sync(uint32_t, int yes)
{
    emulate::mine().given[emulate::lane()][0] = yes != 0;
    emulate::together([](emulate::warp &w) {
        uint32_t any = 0;
        for (int i = 0; i < emulate::WARP; i++)
            any |= w.given[i][0];
        for (int i = 0; i < emulate::WARP; i++)
            w.taken[i][0] = any;
    });
    return (int)emulate::mine().taken[emulate::lane()][0];
}

#endif
