/* Random problems with every feature of fref_problem, reproducible from a seed. */
#ifndef FREF_CUDA_TEST_DRAWN_H
#define FREF_CUDA_TEST_DRAWN_H

#include "comparison.h"
#include "problems.h"

/* Owner of a problem and all that it points to, on the host; may not move. */
typedef struct drawn {
    data data;
    fref_rounding rounding;
    fref_gpu_mod mod;
    fref_tensor mod_a, mod_b; /* on the host */
    float *mod_memory;
    const fref_tensor *bias;  /* without what the masks make of it: NULL: none */
    fref_tensor seen, masked; /* as in fref_gpu_mod; the bias that the one in C reads instead */
    uint8_t *seen_memory, *tiles;
    float *masked_memory;
    uint8_t *keep;
    double *alibi;
    float *sink;
} drawn;

void drawn_create(drawn *out, feature with, uint64_t seed, const size_limits *most);
void drawn_destroy(drawn *x);

static inline size_t bytes_of(fref_type type)
{
    return type == FREF_F32 ? 4 : type == FREF_F16 || type == FREF_BF16 ? 2 : 1;
}

#endif
