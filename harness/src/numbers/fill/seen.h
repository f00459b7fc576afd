/* Where the elements of a tensor lie, packed or not: who walks over a tensor asks here. */
#ifndef FACTS_SEEN_H
#define FACTS_SEEN_H

#include "case/problem/case_problem.h"

/* The tensor as it is walked over: of a packed one, with its starts and lengths, which are the problem's. Paged ones are pools:
 * nobody walks. */
static inline facts_tensor facts_tensor_seen(const facts_problem *p, facts_tensor_id id)
{
    facts_tensor t = p->tensor[id];
    if (t.packed == FACTS_PACKED_NOT)
        return t;
    t.start = t.packed == FACTS_PACKED_Q ? p->start_q : p->start_kv;
    t.live = t.packed == FACTS_PACKED_Q ? p->len_q : p->len_kv;
    return t;
}

/* The tensor as it is stored: a packed one as one long sequence, a paged one as a pool. What an image is made of. */
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

/* Rows at and past an entry's length are of nobody, or another's. */
static inline bool facts_row_exists(const facts_tensor *seen, int64_t b, int64_t s)
{
    return !seen->live || s < seen->live[b];
}

/* Channel 0 of a row: elements of the storage. */
static inline int64_t facts_row_place(const facts_tensor *seen, int64_t b, int64_t h, int64_t s)
{
    int64_t entry = seen->start ? seen->start[b] * seen->stride[2] : b * seen->stride[0];
    return seen->first + entry + h * seen->stride[1] + s * seen->stride[2];
}

#endif
