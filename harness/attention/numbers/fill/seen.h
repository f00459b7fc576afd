/* The memory places of the elements of a tensor, ragged or not. Code that visits the elements of a
 * tensor uses these functions. */
#ifndef FACTS_SEEN_H
#define FACTS_SEEN_H

#include "problem/case_problem.h"

/* A view of the tensor for code that visits its elements; a ragged one has the starts and lengths
 * of the problem. A paged tensor is a pool, and no code visits it in this way. */
static inline facts_tensor facts_tensor_seen(const facts_problem *p, facts_tensor_id id)
{
    facts_tensor t = p->tensor[id];
    if (t.packed == FACTS_PACKED_NOT)
        return t;
    t.start = t.packed == FACTS_PACKED_Q ? p->start_q : p->start_kv;
    t.live = t.packed == FACTS_PACKED_Q ? p->len_q : p->len_kv;
    return t;
}

/* The tensor as it is stored: a ragged one as one long sequence, a paged one as a pool. Images are
 * made from it. */
static inline facts_tensor facts_tensor_stored(const facts_problem *p, facts_tensor_id id)
{
    facts_tensor t = p->tensor[id];
    if (t.packed != FACTS_PACKED_NOT) {
        t.dim[0] = 1;
        t.dim[2] = t.tokens;
        t.packed = FACTS_PACKED_NOT;
    } else if (t.page) {
        t.dim[0] = t.pages;
        t.dim[2] = t.page;
        t.page = 0;
    }
    return t;
}

/* Rows at and past the length of an entry belong to no entry, or to another. */
static inline bool facts_row_exists(const facts_tensor *seen, int64_t b, int64_t s)
{
    return !seen->live || s < seen->live[b];
}

/* The index of channel 0 of a row, in elements of the storage. */
static inline int64_t facts_row_place(const facts_tensor *seen, int64_t b, int64_t h, int64_t s)
{
    int64_t entry = seen->start ? seen->start[b] * seen->stride[2] : b * seen->stride[0];
    return seen->first + entry + h * seen->stride[1] + s * seen->stride[2];
}

#endif
