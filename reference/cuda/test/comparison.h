/* Random problems, judged by the oracle in C and by the one on a GPU, which may be emulated. */
#ifndef FREF_CUDA_TEST_COMPARISON_H
#define FREF_CUDA_TEST_COMPARISON_H

#include <fref/gpu.h>

#include <gpu/gpu_driver.h>

typedef struct size_limits {
    int64_t batch, heads, seq, dim;
} size_limits;

/* What must be part of a problem; 0: whatever is drawn. */
typedef enum feature {
    FEATURE_ANY,
    FEATURE_PLAIN,
    FEATURE_BAND,
    FEATURE_LENGTHS,
    FEATURE_GROUPS,
    FEATURE_BIAS,
    FEATURE_MOD,
    FEATURE_DROPOUT,
    FEATURE_SINK,
    FEATURE_ALIBI,
    FEATURE_APART = 11, /* ragged queries, paged keys; a number draws its own problems */
    FEATURE_MASK,       /* of elements, of tiles, or both */
    FEATURE_STEEP,      /* scores hundreds apart, else plain */
    FEATURE_COUNT
} feature;
extern const char *const feature_words[FEATURE_COUNT];

typedef struct tally {
    int problems, refused, wrong;
    double worst; /* difference over what is allowed */
} tally;

/* Draws the problem of `seed`, judges it on both sides, forward and backward, and prints what
 * differs. The backward takes the forward's scores where the seed is even. */
void compare_problem(fref_gpu *gpu, const gpu_driver *driver, feature with, uint64_t seed,
                     const size_limits *most, tally *t);

#endif
