/* How the kernel of the cpu backend works: as itself, or, in a build with FATTN_LIARS, with the
 * rounding points of a GPU kernel (docs/numerics.md). It then casts P and dS to the operands' type
 * before the second products, adds as tensor cores do, and takes keys tile by tile, in parts that
 * it combines. It is as accurate as a right kernel must be, and no more. */
#ifndef FATTN_GPU_LIKE_H
#define FATTN_GPU_LIKE_H

#include <stdbool.h>
#include <stdint.h>

/* Products and sums as in a tensor core: `chunk` products and the accumulator are added at a time,
 * aligned or exactly. The sum is then rounded to a narrow accumulator. */
typedef struct fattn__adder {
    int64_t chunk;  /* products between two roundings of the accumulator; 0: 16, f32 one */
    bool truncates; /* the accumulator is rounded toward zero, otherwise to nearest even */
    int bits; /* significant bits of the accumulator: 24 is fp32; with fewer it always truncates */
    int aligned; /* fraction bits that each product and the accumulator keeps relative to the
                    largest exponent; the rest is cut off. 0: all of them */
    int64_t run; /* products that it adds before its sum is moved to fp32 and it starts again from
                    0; 0: no limit */
} fattn__adder;

/* Hopper's: the published model of its tensor cores that agrees with an H100 and an H200 bit by bit
 * (Khattak and Mikaitis, arXiv 2512.07004). */
#define FATTN__HOPPER_16                                                                           \
    ((fattn__adder){ .chunk = 16, .truncates = true, .bits = 24, .aligned = 25 })
#define FATTN__HOPPER_8                                                                            \
    ((fattn__adder){ .chunk = 32, .truncates = true, .bits = 14, .aligned = 13, .run = 128 })

/* Every combination is right. */
typedef struct fattn__gpu_like {
    bool on;        /* false: the kernel works as in every other build */
    int64_t tile;   /* keys: 64, 128 or 256 */
    int64_t splits; /* parts of the keys, combined at the end; 0: 1 */
    float
        lazy; /* log2: O is rescaled only if the maximum rises by more than this. 8-bit types: P is
                 also scaled by 2^-lazy, and Max beside Sum_exp is the maximum that was used */
    bool one_lane; /* forward: a row's sum is formed key by key */
    bool reversed; /* forward: tiles of keys from last to first */
    fattn__adder adder;
    bool scale_last;     /* backward: attention scale after the products, not in dS */
    bool partials_fp32;  /* backward, GQA: partial dK, dV are not cast */
    int64_t key_shift;   /* forward: keys and values are read in rotated order, from this one on,
                            where the order does not matter */
    double scale_factor; /* a factor of the attention scale; 0: 1 */
} fattn__gpu_like;

#ifdef FATTN_LIARS
struct fattn__kernels;
extern fattn__gpu_like fattn__like_gpu;
/* Its inner loops, for operands of that type. */
const struct fattn__kernels *fattn__gpu_kernels(int32_t dtype);
#else
static const fattn__gpu_like fattn__like_gpu = { false };
#define fattn__gpu_kernels(dtype) NULL
#endif

#endif
