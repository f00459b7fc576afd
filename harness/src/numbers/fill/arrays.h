/* What the small arrays of a call hold: lengths, offsets, page tables, scales, slopes, seeds, scale factors. docs/numerics.md
 * section 4. */
#ifndef FACTS_ARRAYS_H
#define FACTS_ARRAYS_H

#include "case/problem/case_problem.h"

extern const char *const facts_array_words[FACTS_ARRAY_COUNT];
size_t facts_array_bytes(const facts_array *array);
/* Where an array of a call stands in fattn_tensors. */
size_t facts_array_place(facts_array_id id);

/* Writes `facts_array_bytes` bytes of an input. Scale factors of block-scaled types (sf_) are those of the elements that
 * facts_fill_tensor writes. A packed page table has zeros after its last page. */
void facts_array_fill(const facts_problem *problem, facts_array_id id, void *out);

/* The value of a scalar input (scales, descales, the attention scale), as the fp32 number that the engine is given. */
double facts_array_scalar(const facts_problem *problem, facts_array_id id);
/* With dropout: what a kept P is multiplied with, fp32's 1/(1-p) or the factor that is given. */
double facts_keep_scale_of(const facts_problem *problem);

/* Page `n` of entry b: its place in the pool of K or V. */
int64_t facts_page_of(const facts_problem *problem, facts_tensor_id id, int64_t b, int64_t n);
/* Does anybody refer to this page of the pool? Others hold poison. */
bool facts_page_used(const facts_problem *problem, facts_tensor_id id, int64_t page);

/* Where token t of entry b of a packed, paged or plain tensor lies: elements from the storage, of head 0 and channel 0. */
int64_t facts_row_at(const facts_problem *problem, facts_tensor_id id, int64_t b, int64_t t);

/* May scores of this tile of 128 x 128 be seen? */
bool facts_tile_kept(const facts_problem *problem, int64_t b, int64_t h, int64_t row_tile, int64_t key_tile);

#endif
