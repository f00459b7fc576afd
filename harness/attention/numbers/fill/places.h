/* Where the elements of a case lie: the rows, pages and tiles of a call, and the places of a
 * tensor's elements, ragged or not. They depend on the case alone. Pure. */
#ifndef FACTS_PLACES_H
#define FACTS_PLACES_H

#include "problem/case_problem.h"

/* Live queries or keys of batch entry b: rows below this number take part. */
int64_t facts_live_q(const facts_problem *problem, int64_t b);
int64_t facts_live_kv(const facts_problem *problem, int64_t b);

/* Is a row of this tensor a key? Else it is a query. */
static inline bool facts_is_keyed(facts_tensor_id id)
{
    return id == FACTS_TENSOR_K || id == FACTS_TENSOR_V || id == FACTS_TENSOR_DK ||
           id == FACTS_TENSOR_DV;
}
/* The live rows of this tensor. */
int64_t facts_live(const facts_problem *problem, facts_tensor_id id, int64_t b);
/* Page `n` of entry b: its place in the pool of K or V. */
int64_t facts_page_of(const facts_problem *problem, facts_tensor_id id, int64_t b, int64_t n);
/* Pages that entry b's keys fill. */
int64_t facts_pages_of_entry(const facts_problem *problem, facts_tensor_id id, int64_t b);
/* The entry that wrote page n of entry b. For a shared page it is the first entry that refers to
 * it. */
int64_t facts_page_owner(const facts_problem *problem, facts_tensor_id id, int64_t b, int64_t n);

/* The place of token t of entry b in a ragged, paged or plain tensor: elements from the start of
 * the storage, of head 0 and channel 0. */
int64_t facts_row_at(const facts_problem *problem, facts_tensor_id id, int64_t b, int64_t t);

/* Does the block mask show the scores of this tile of 128 x 128? */
bool facts_tile_kept(const facts_problem *problem, int64_t b, int64_t h, int64_t row_tile,
                     int64_t key_tile);

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

static inline int64_t facts_rows(const int64_t dim[4])
{
    return dim[0] * dim[1] * dim[2];
}

static inline int64_t facts_elements(const int64_t dim[4])
{
    return dim[0] * dim[1] * dim[2] * dim[3];
}

/* Row n of a dense array of rows. */
typedef struct facts_row {
    int64_t b, h, s;
} facts_row;

static inline facts_row facts_row_of(const int64_t dim[4], int64_t n)
{
    return (facts_row){ n / dim[2] / dim[1], n / dim[2] % dim[1], n % dim[2] };
}

/* The index of element n of a dense array. */
static inline void facts_index_of(const int64_t dim[4], int64_t n, int64_t out[4])
{
    for (int i = 3; i >= 0; i--) {
        out[i] = n % dim[i];
        n /= dim[i];
    }
}

/* The place of an element, in elements of the storage. */
static inline int64_t facts_element_place(const facts_tensor *seen, const int64_t at[4])
{
    return facts_row_place(seen, at[0], at[1], at[2]) + at[3] * seen->stride[3];
}

/* The same of a tensor whose dimensions of extent 1 are broadcast. */
static inline int64_t facts_broadcast_place(const facts_tensor *t, const int64_t at[4])
{
    int64_t place = t->first;
    for (int d = 0; d < 4; d++)
        place += t->dim[d] > 1 ? at[d] * t->stride[d] : 0;
    return place;
}

#endif
