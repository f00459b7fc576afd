/* A flash-attention kernel in C, fp32, with the rounding points of docs/numerics.md. It is as
 * accurate as a correct kernel must be, and no more.
 *
 * It shares no arithmetic with the reference. It computes maximum and sum online over tiles of
 * keys, with base 2 exponentials. It casts P to the input type before P V, rescales O, and divides
 * and casts O at the end. Accumulators are fp32 (or have fewer bits) and take `chunk` products at a
 * time. One switch makes it a liar (flash_liars.h). */
#ifndef FACTS_FLASH_H
#define FACTS_FLASH_H

#include <fref/fref.h>

#include "flash_liars.h"
#include "flash_product.h"

/* How the kernel works. Every combination is correct. Fields that are not set are 0. */
typedef struct facts_kernel {
    facts_liar liar;
    int64_t tile;   /* keys; a multiple of 8; 0: 128 */
    int64_t splits; /* parts of the keys, combined at the end; 0: 1 */
    double
        lazy; /* log2: O is rescaled only if the maximum rises by more than this. 8-bit types: P is also scaled by 2^-lazy, and
                    Max and Sum_exp refer to the maximum that was used */
    bool reversed;       /* tiles of keys from last to first */
    facts_adder adder;   /* chunk 0: 16 products at a time to nearest, f32 one at a time */
    bool scale_last;     /* backward: attention scale after the products, not in dS */
    bool partials_fp32;  /* backward, GQA: partial dK, dV are not cast */
    int64_t key_shift;   /* forward: keys and values are read in rotated order, from this one on;
                            without mask, bias, dropout */
    double scale_factor; /* a factor of the attention scale; 0: 1 */
} facts_kernel;

/* The outputs. X(SYMBOL, "word") */
/* clang-format off */
#define FACTS_SLOT_LIST(X)                                                                  \
    X(O, "o") X(STATS, "stats") X(MAX, "max") X(SUM_EXP, "sum_exp") X(DQ, "dq") X(DK, "dk") \
    X(DV, "dv") X(DBIAS, "dbias")                                                           \
    X(DSINK, "dsink") X(AMAX_S, "amax_s") X(AMAX_O, "amax_o") X(AMAX_DP, "amax_dp")         \
    X(AMAX_DQ, "amax_dq") X(AMAX_DK, "amax_dk")                                             \
    X(AMAX_DV, "amax_dv")
/* clang-format on */
#define FACTS_AS_ENUM(symbol, word) FACTS_SLOT_##symbol,
typedef enum facts_slot_id { FACTS_SLOT_LIST(FACTS_AS_ENUM) FACTS_SLOT_COUNT } facts_slot_id;
#undef FACTS_AS_ENUM
extern const char *const facts_slot_words[FACTS_SLOT_COUNT];

/* Element (b,h,s,c) is written at data + b*stride[0] + ... elements; ragged: `first` replaces
 * b*stride[0]. NULL data: the output is not asked for. DSINK is [1, heads_q, 1, 1], amax [1, 1, 1,
 * 1]. */
typedef struct facts_slot {
    void *data;
    fref_type type;
    int64_t dim[4], stride[4];
    const int64_t *first;
} facts_slot;

/* One launch, described with the types of the reference. Outputs of 8 bits hold value * scale
 * (problem->scales). */
typedef struct facts_launch {
    const fref_problem *problem;
    fref_type type; /* the type of Q, K, V; P and dS are cast to it */
    const fref_tensor *q, *k, *v;
    const fref_tensor *o, *stats, *d_o; /* backward */
    facts_slot out[FACTS_SLOT_COUNT];
    unsigned char *workspace; /* backward: facts_emulation_workspace() bytes, with any contents */
    uint64_t seed; /* the seed of problem->keep, for a kernel that generates its own bits */
} facts_launch;

/* Writes 0 to padded rows of O, and -inf to those of Stats. Returns false if memory is short. */
bool facts_emulate_forward(const facts_kernel *kernel, const facts_launch *launch);
bool facts_emulate_backward(const facts_kernel *kernel, const facts_launch *launch);
size_t facts_emulation_workspace(const fref_problem *problem);

#endif
