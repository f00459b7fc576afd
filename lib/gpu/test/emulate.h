/* CUDA C without a GPU: the kernels as C++, a block's threads as fibers on one thread, blocks one
 * after the other. A thread that waits for others (at a barrier, a shuffle, a matrix instruction)
 * gives way until they have come. Slow, exact about who waits for whom and about alignment; it
 * knows no races, no caches and no time. Included before the kernels; emulated.cmake does that. */
#ifndef GPU_EMULATE_H
#define GPU_EMULATE_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define GPU_EMULATED
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
struct alignas(16) double2 {
    double x, y;
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

namespace emulate
{

/* The bits of one type as another. */
template <class To, class From> inline To as(From x)
{
    static_assert(sizeof(To) == sizeof(From), "the bits of one are those of the other");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}

} // namespace emulate

static inline float __uint_as_float(uint32_t x)
{
    return emulate::as<float>(x);
}
static inline uint32_t __float_as_uint(float x)
{
    return emulate::as<uint32_t>(x);
}
static inline double __longlong_as_double(long long x)
{
    return emulate::as<double>(x);
}
static inline long long __double_as_longlong(double x)
{
    return emulate::as<long long>(x);
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

namespace emulate
{

enum { MOST_THREADS = 512, WARP = 32, GIVEN = 80, TAKEN = 32 /* bytes */ };

struct dimension {
    unsigned x, y, z;
};

/* The places where a warp's lanes leave values for each other: as an array of T, one lane after the
 * other. */
struct warp {
    int arrived;
    unsigned generation;
    alignas(16) unsigned char given_bytes[WARP][GIVEN];
    alignas(16) unsigned char taken_bytes[WARP][TAKEN];

    template <class T> T *given(int lane)
    {
        return (T *)given_bytes[lane];
    }
    template <class T> T *taken(int lane)
    {
        return (T *)taken_bytes[lane];
    }
};

struct block {
    dimension index, size, grid;
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
template <class T> inline T *given()
{
    return mine().template given<T>(lane());
}
template <class T> inline T *taken()
{
    return mine().template taken<T>(lane());
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

/* What `join` makes of all lanes' x: the same for every lane. */
template <class T, class Join> inline T reduce(T x, Join join)
{
    *given<T>() = x;
    together([join](warp &w) {
        T all = *w.given<T>(0);
        for (int i = 1; i < WARP; i++)
            all = join(all, *w.given<T>(i));
        for (int i = 0; i < WARP; i++)
            *w.taken<T>(i) = all;
    });
    return *taken<T>();
}

int barrier(int any);

} // namespace emulate

#define threadIdx (emulate::now.thread[emulate::now.running])
#define blockIdx (emulate::now.index)
#define blockDim (emulate::now.size)
#define gridDim (emulate::now.grid)
#define __syncthreads() ((void)emulate::barrier(0))
#define __syncthreads_or(x) emulate::barrier(x)

static inline void __threadfence()
{
}

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
static inline unsigned long long atomicMax(unsigned long long *to, unsigned long long x)
{
    const unsigned long long before = *to;
    *to = x > before ? x : before;
    return before;
}
/* Counts up, and after `most` starts at 0 again. */
static inline unsigned atomicInc(unsigned *to, unsigned most)
{
    const unsigned before = *to;
    *to = before >= most ? 0 : before + 1;
    return before;
}

template <class T> inline T __shfl_xor_sync(uint32_t, T x, int mask)
{
    *emulate::given<T>() = x;
    emulate::together([mask](emulate::warp &w) {
        for (int i = 0; i < emulate::WARP; i++)
            *w.taken<T>(i) = *w.given<T>(i ^ mask);
    });
    return *emulate::taken<T>();
}

static inline int __any_sync(uint32_t, int yes)
{
    return emulate::reduce(yes != 0, [](bool a, bool b) { return a || b; });
}

static inline uint32_t __reduce_max_sync(uint32_t, uint32_t x)
{
    return emulate::reduce(x, [](uint32_t a, uint32_t b) { return a > b ? a : b; });
}

static inline uint32_t __reduce_min_sync(uint32_t, uint32_t x)
{
    return emulate::reduce(x, [](uint32_t a, uint32_t b) { return a < b ? a : b; });
}

#endif
