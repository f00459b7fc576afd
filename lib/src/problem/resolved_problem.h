/* A resolved problem: every default is replaced by its value. Only fattn_problem_resolve (fattn.h)
 * makes one. All other code of the library takes a resolved problem and does not check it again. */
#ifndef FATTN_RESOLVED_PROBLEM_H
#define FATTN_RESOLVED_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fattn/fattn.h"

/* Every tensor of a problem: X(SYMBOL, field), the field without its "_strides". Stats, Max and
 * Sum_exp have one layout. */
/* clang-format off */
#define FATTN__ROLE_LIST(X)                                                                 \
    X(Q, q) X(K, k) X(V, v) X(O, o) X(STATS, stats) X(DO, do) X(DQ, dq) X(DK, dk) X(DV, dv) \
    X(BIAS, bias) X(DBIAS, dbias)
/* clang-format on */

#define FATTN__AS_ROLE_(symbol, name) FATTN__ROLE_##symbol,
typedef enum fattn__role { FATTN__ROLE_LIST(FATTN__AS_ROLE_) FATTN__ROLE_COUNT } fattn__role;
#undef FATTN__AS_ROLE_

/* One tensor of a resolved problem. */
typedef struct fattn__shape {
    int64_t dim[4]; /* b,h,s,d; b,h,s,s of bias and dbias; 1 where a gradient is summed. Paged:
                       still b,h,s,d, with the pool's strides */
    int64_t strides[4];
    int32_t dtype;
    bool used;    /* this pass reads or writes it */
    bool written; /* this pass writes it */
} fattn__shape;

int64_t *fattn__problem_strides(fattn_problem *p, fattn__role which); /* the field */
fattn__shape fattn__problem_shape(const fattn_problem *resolved, fattn__role which);
/* Fills the extents of a gradient before the sum over the broadcast dimensions of its input: the
 * extents of the input. `summed`, unless NULL, receives for each of b,h,s,d whether it is summed.
 * Returns whether any dimension is summed. */
bool fattn__problem_sums(const fattn_problem *resolved, fattn__role gradient, bool summed[4]);
/* The last step of resolving: replaces strides that are all zero by those of the default layout,
 * and refuses strides that no tensor can have. */
fattn_status fattn__problem_lay_out(fattn_problem *p);
const char *fattn__role_name(fattn__role which); /* "dq", the word of fattn_problem's fields */
/* The tensor that an output resembles: Q of O, O of dO, the input of a gradient; FATTN__ROLE_COUNT:
 * none. */
fattn__role fattn__problem_input(fattn__role output);
/* Is the tensor ragged: does the call give the offset of each batch entry? */
bool fattn__problem_ragged(const fattn_problem *resolved, fattn__role which);
/* The page size of K or V; 0: not paged. */
int64_t fattn__problem_page(const fattn_problem *resolved, fattn__role which);
/* The part of the tensor that is memory for certain: its whole shape; for a ragged tensor one
 * token, for a paged tensor the pool. */
fattn__shape fattn__problem_bytes_of(const fattn_problem *resolved, fattn__role which);

/* The first tensor of this pass with a stride that is not a multiple of 16 bytes; FATTN__ROLE_COUNT
 * if there is none. cuDNN accepts such strides, and then gives wrong results or faults. A rule of
 * the policy refuses them, after cuDNN was asked. */
fattn__role fattn__problem_misaligned(const fattn_problem *resolved);

/* The key of plans and of cache entries: two problems are the same if and only if their images are
 * equal. The bytes of a resolved problem are its image: it has no padding, and members that do not
 * count are zero. So the key is the same in every process on little-endian machines. */
typedef struct fattn__problem_key {
    uint64_t low, high; /* XXH3, 128 bits, of the image */
} fattn__problem_key;

fattn__problem_key fattn__problem_key_of(const fattn_problem *resolved);
bool fattn__problem_same(const fattn_problem *resolved, const fattn_problem *other);

#endif
