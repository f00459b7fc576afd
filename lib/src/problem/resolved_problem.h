/* What a problem means once its defaults are gone. fattn_problem_resolve (fattn.h) is the only way to a resolved
 * problem; everything else in the library takes a resolved one and trusts it. */
#ifndef FATTN_RESOLVED_PROBLEM_H
#define FATTN_RESOLVED_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fattn/fattn.h"

/* The tensors of a problem, once: X(SYMBOL, field), the field without its "_strides". Stats, Max and Sum_exp have one layout. */
#define FATTN__ROLE_LIST(X) X(Q, q) X(K, k) X(V, v) X(O, o) X(STATS, stats) X(DO, do) X(DQ, dq) X(DK, dk) X(DV, dv) X(BIAS, bias) X(DBIAS, dbias)

#define FATTN__AS_ROLE_(symbol, name) FATTN__ROLE_##symbol,
typedef enum fattn__role { FATTN__ROLE_LIST(FATTN__AS_ROLE_) FATTN__ROLE_COUNT } fattn__role;
#undef FATTN__AS_ROLE_

/* One tensor of a resolved problem. */
typedef struct fattn__shape {
    int64_t dim[4]; /* b,h,s,d; b,h,s,s of bias and dbias; 1 where a gradient is summed. Paged: still b,h,s,d, with the pool's strides */
    int64_t strides[4];
    int32_t dtype;
    bool used;    /* this pass reads or writes it */
    bool written; /* this pass writes it */
} fattn__shape;

int64_t *fattn__problem_strides(fattn_problem *p, fattn__role which); /* the field */
fattn__shape fattn__problem_shape(const fattn_problem *resolved, fattn__role which);
/* A gradient before it is summed over what its input broadcasts: the extents of the input. `summed`, when not NULL, says for b,h,s,d where
 * it is. Returns whether anything is summed. */
bool fattn__problem_sums(const fattn_problem *resolved, fattn__role gradient, bool summed[4]);
/* The last of resolving: strides that are all zero become what they stand for, and those that nothing can have are refused. */
fattn_status fattn__problem_lay_out(fattn_problem *p);
const char *fattn__role_name(fattn__role which); /* "dq", the word of fattn_problem's fields */
/* The tensor that an output resembles: Q of O, O of dO, the input of a gradient; FATTN__ROLE_COUNT: none. */
fattn__role fattn__problem_input(fattn__role output);
/* Is it packed: does it start each entry at an offset given at the call? */
bool fattn__problem_ragged(const fattn_problem *resolved, fattn__role which);
/* The page size of K or V; 0: it is not paged. */
int64_t fattn__problem_page(const fattn_problem *resolved, fattn__role which);
/* What surely is memory of the tensor: its shape; of a ragged one a single token, of a paged one the pool. */
fattn__shape fattn__problem_bytes_of(const fattn_problem *resolved, fattn__role which);

/* The first tensor of this pass with a stride that is not a multiple of 16 bytes; FATTN__ROLE_COUNT when all are. cuDNN accepts
 * such strides and is then wrong or faults: a matter of policy, after cuDNN was asked. */
fattn__role fattn__problem_misaligned(const fattn_problem *resolved);

/* What a plan or a cache entry is found by: two problems are the same iff their images are equal. A resolved problem is its own
 * image (it has no padding, and what is not read is zero), so the bytes are stable over processes and little-endian machines. */
typedef struct fattn__problem_key {
    uint64_t low, high; /* XXH3, 128 bits, of the image */
} fattn__problem_key;

fattn__problem_key fattn__problem_key_of(const fattn_problem *resolved);
bool fattn__problem_same(const fattn_problem *resolved, const fattn_problem *other);

#endif
