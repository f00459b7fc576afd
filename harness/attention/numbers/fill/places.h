/* The places of the rows, keys, pages and tiles of a call. They depend on the case alone, so no
 * caller needs the table. Pure. */
#ifndef FACTS_PLACES_H
#define FACTS_PLACES_H

#include "problem/case_problem.h"

/* Live queries or keys of batch entry b: rows below this number take part. */
int64_t facts_live_q(const facts_problem *problem, int64_t b);
int64_t facts_live_kv(const facts_problem *problem, int64_t b);

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

#endif
