/* The dropout generator of the CPU and math backends (cuDNN has its own). Plain C and CUDA C: the library on the host, its kernels
 * and all tests use these functions.
 *
 * Whether a score is kept is a pure function of (seed, offset, b, h, i, j). Extents, masks and the order of work have no influence.
 * So a backward drops the same scores as its forward, and a replayed graph uses the seed and offset that are in memory at the
 * replay.
 *
 *   key   = the first two words of Philox4x32-10 with counter (offset low, offset high, 0, 0) and key (seed low, seed high)
 *   words = Philox4x32-10 with counter (j / 4, i, h, b), each modulo 2^32, and that key
 *   kept  = words[j % 4] >= threshold, the threshold being round(p 2^32), at most 2^32 - 1
 *
 * Seed and offset are read as 64 bits; an int32 is sign-extended. A kept score is multiplied by 1 / (1 - p).
 * Source   J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011: Philox4x32 with ten rounds. */
#ifndef FATTN_DROPOUT_H
#define FATTN_DROPOUT_H

#include <stdint.h>

#if defined(__CUDACC__) || defined(GPU_EMULATED)
#define FATTN__DROPOUT_CALL static __device__ __forceinline__
#else
#define FATTN__DROPOUT_CALL static inline
#endif

typedef struct fattn__dropout {
    uint32_t key[2];
    uint32_t threshold;
} fattn__dropout;

FATTN__DROPOUT_CALL void fattn__philox(uint32_t x[4], uint32_t low, uint32_t high)
{
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xd2511f53u * x[0], b = (uint64_t)0xcd9e8d57u * x[2];
        const uint32_t x0 = (uint32_t)(b >> 32) ^ x[1] ^ low,
                       x2 = (uint32_t)(a >> 32) ^ x[3] ^ high;
        x[0] = x0, x[1] = (uint32_t)b, x[2] = x2, x[3] = (uint32_t)a;
        low += 0x9e3779b9u, high += 0xbb67ae85u;
    }
}

/* The generator of a call. `threshold` is from fattn__dropout_threshold. */
FATTN__DROPOUT_CALL fattn__dropout fattn__dropout_of(int64_t seed, int64_t offset,
                                                     uint32_t threshold)
{
    uint32_t x[4] = { (uint32_t)offset, (uint32_t)((uint64_t)offset >> 32), 0, 0 };
    fattn__dropout out;
    fattn__philox(x, (uint32_t)seed, (uint32_t)((uint64_t)seed >> 32));
    out.key[0] = x[0], out.key[1] = x[1], out.threshold = threshold;
    return out;
}

/* Bit n: is key 4 * quad + n of this row kept? */
FATTN__DROPOUT_CALL unsigned fattn__dropout_four(const fattn__dropout *of, uint32_t b, uint32_t h,
                                                 uint32_t i, uint32_t quad)
{
    uint32_t x[4] = { quad, i, h, b };
    fattn__philox(x, of->key[0], of->key[1]);
    return (unsigned)(x[0] >= of->threshold) | (unsigned)(x[1] >= of->threshold) << 1 |
           (unsigned)(x[2] >= of->threshold) << 2 | (unsigned)(x[3] >= of->threshold) << 3;
}

#if !defined(__CUDACC__) && !defined(GPU_EMULATED)
/* 0 <= p < 1. */
static inline uint32_t fattn__dropout_threshold(double p)
{
    const double scaled = p * 4294967296.0 + 0.5;
    return scaled >= 4294967295.0 ? UINT32_MAX : (uint32_t)scaled;
}

static inline int fattn__dropout_keeps(const fattn__dropout *of, int64_t b, int64_t h, int64_t i,
                                       int64_t j)
{
    return (
        int)(fattn__dropout_four(of, (uint32_t)b, (uint32_t)h, (uint32_t)i, (uint32_t)(j / 4)) >>
                 (j % 4) &
             1u);
}
#endif

#endif
