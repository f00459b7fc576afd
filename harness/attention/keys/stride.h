/* The forms of `stride=`, read into numbers. A plain value; the canonical text is written from it.
 *
 *   gap:q.s.4+k.h.8   that many elements after each index of that tensor and dimension; plain gap:N after each token of Q, K, V, O
 *                     and their gradients
 *   broadcast:k.b+v.b stride 0
 *   sum:dk.b          the gradient of a broadcast input is summed over that dimension: stride 0 there, and extent 1
 *   perm:q.hsbd       the tensor's memory order, outermost first; plain perm:hsbd for Q, K and V
 *   offset:q.8        the first element lies that many elements into the storage; plain: Q, K and V
 *   misaligned:q.2    the storage starts that many bytes past a 16-byte boundary; plain: Q, K and V
 *   size1:wild        dimensions of extent 1 get large strides
 */
#ifndef FACTS_CASE_STRIDE_H
#define FACTS_CASE_STRIDE_H

#include "key_values.h"

/* clang-format off */
#define FACTS_STRIDE_TENSORS(X)                                                           \
    X(Q, "q")                                                                             \
    X(K, "k")                                                                             \
    X(V, "v") X(O, "o") X(DO, "do") X(DQ, "dq") X(DK, "dk") X(DV, "dv") X(STATS, "stats") \
    X(BIAS, "bias") X(DBIAS, "dbias")
/* clang-format on */
#define AS_ENUM(symbol, word) FACTS_STRIDE_##symbol,
typedef enum facts_stride_tensor {
    FACTS_STRIDE_TENSORS(AS_ENUM) FACTS_STRIDE_COUNT,
    FACTS_STRIDE_ALL = FACTS_STRIDE_COUNT
} facts_stride_tensor;
#undef AS_ENUM

/* The forms for one tensor; index FACTS_STRIDE_ALL holds the plain forms. Dimensions in the order
 * b,h,s,d. */
typedef struct facts_stride_form {
    int64_t gap[4]; /* of FACTS_STRIDE_ALL only [2], the token */
    bool broadcast[4];
    bool sum[4];  /* of gradients only */
    char perm[5]; /* empty: as the layout says */
    int64_t offset, misaligned;
} facts_stride_form;

typedef struct facts_stride {
    facts_stride_form of[FACTS_STRIDE_COUNT + 1];
    bool wild;
} facts_stride;

/* `dense`, or forms joined by `;`. */
bool facts_stride_read(facts_span text, facts_stride *out, facts_value_fault *fault);

#endif
