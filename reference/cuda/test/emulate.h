/* CUDA C without a GPU: the kernels as C++, a block's threads as fibers on one thread, blocks one after the other. What waits for
 * others (a barrier, a shuffle, a matrix instruction) gives way until they have come. Slow, exact about who waits for whom and
 * about alignment; it knows no races, no caches and no time. */
#ifndef FREF_TEST_EMULATE_H
#define FREF_TEST_EMULATE_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define FREF_EMULATED
#define __device__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static

namespace emulate
{

enum { MOST_THREADS = 512, WARP = 32 };

struct dimension {
    unsigned x, y, z;
};

/* What the lanes of a warp leave for each other. */
struct warp {
    int arrived;
    unsigned generation;
    double given[WARP][10], taken[WARP][4];
};

struct block {
    dimension index, size;
    int running; /* the thread that runs */
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

/* `call(arguments)` is the kernel's body for one thread. */
void run(const unsigned grid[3], unsigned threads, void (*call)(void **), void **arguments);

} // namespace emulate

#define threadIdx (emulate::now.thread[emulate::now.running])
#define blockIdx (emulate::now.index)
#define blockDim (emulate::now.size)
#define __syncthreads() ((void)emulate::barrier(0))
#define __syncthreads_or(x) emulate::barrier(x)

struct alignas(16) double2 {
    double x, y;
};

struct alignas(8) float2 {
    float x, y;
};

static inline double __shfl_xor_sync(uint32_t, double x, int mask)
{
    emulate::mine().given[emulate::lane()][0] = x;
    emulate::together([mask](emulate::warp &w) {
        for (int i = 0; i < emulate::WARP; i++)
            w.taken[i][0] = w.given[i ^ mask][0];
    });
    return emulate::mine().taken[emulate::lane()][0];
}

static inline int __any_sync(uint32_t, int any)
{
    emulate::mine().given[emulate::lane()][0] = any;
    emulate::together([](emulate::warp &w) {
        w.taken[0][0] = 0;
        for (int i = 0; i < emulate::WARP; i++)
            w.taken[0][0] += w.given[i][0] != 0;
    });
    return emulate::mine().taken[0][0] != 0;
}

static inline uint32_t __reduce_max_sync(uint32_t, uint32_t x)
{
    emulate::mine().given[emulate::lane()][0] = x;
    emulate::together([](emulate::warp &w) {
        for (int i = 1; i < emulate::WARP; i++)
            w.given[0][0] = std::max(w.given[0][0], w.given[i][0]);
        for (int i = 0; i < emulate::WARP; i++)
            w.taken[i][0] = w.given[0][0];
    });
    return (uint32_t)emulate::mine().taken[emulate::lane()][0];
}

static inline uint32_t __reduce_min_sync(uint32_t mask, uint32_t x)
{
    return ~__reduce_max_sync(mask, ~x);
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

static inline long long __double_as_longlong(double x)
{
    long long y;
    memcpy(&y, &x, sizeof y);
    return y;
}

static inline void atomicMax(unsigned long long *at, unsigned long long x)
{
    *at = *at > x ? *at : x;
}

/* Counts up, and after `most` starts at 0 again. */
static inline unsigned atomicInc(unsigned *at, unsigned most)
{
    const unsigned before = *at;
    *at = before >= most ? 0 : before + 1;
    return before;
}

static inline void __threadfence()
{
}

static inline double __longlong_as_double(long long x)
{
    double y;
    memcpy(&y, &x, sizeof y);
    return y;
}

#endif
