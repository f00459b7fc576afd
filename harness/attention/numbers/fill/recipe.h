/* The recipe of a tensor's contents. fill_element.h computes each element from it, on the host or
 * on a GPU. docs/numerics.md, section 4. */
#ifndef FACTS_RECIPE_H
#define FACTS_RECIPE_H

#include "fill_element.h"
#include "problem/case_problem.h"

/* The tables are in host memory, and the recipe owns them. Returns  false if memory is short. Call facts_recipe_destroy in any
 * case. */
bool facts_recipe_make(facts_recipe *out, const facts_problem *problem, facts_tensor_id id);
void facts_recipe_destroy(facts_recipe *recipe);
/* The contents of the gaps of a storage. */
facts_gaps facts_gaps_of(const facts_problem *problem, int32_t dtype);

/* needle: the key whose score is raised for row i of query head h. */
int64_t facts_needle_key(const facts_problem *problem, int64_t b, int64_t h, int64_t i);
/* needle: q = a k. The smallest a on a 3-bit grid for which the needle's score is 5 above the
 * log-sum-exp of the other keys. */
double facts_needle_gain(int64_t dim, int64_t keys, double scale);

/* Dense fills have noise-like data: an answer that belongs to other data cannot pass by chance. */
bool facts_fill_is_dense(facts_fill fill);

/* Block-scaled types (mxe4m3, mxe5m2): codes and scale factors, one E8M0 byte for each block of 32
 * along one axis. docs/numerics.md, section 4.
 *
 * A factor is the power of two that brings the largest magnitude of its block below the type's
 * largest power of two. Codes are rounded to nearest even, and saturate. The factors of a head are
 * in the order F8_128x4: lines by blocks, padded to tiles of 128 by 4, one row of tiles after
 * another. */
#define FACTS_MX_BLOCK 32

/* The index of a factor among those of its head. `line` is the index along the other axis: a row,
 * or a channel if the blocks run along rows. */
int64_t facts_mx_place(int64_t line, int64_t block, int64_t blocks);
/* 2^(factor - 127). */
double facts_mx_factor(uint8_t factor);

/* Do these functions fill the tensor: is it of a block-scaled type, or a 16-bit copy of one? */
bool facts_mx_makes(const facts_problem *problem, facts_tensor_id id);
/* The value of a recipe's element before quantisation. Noise is multiplied by 2^-2 to 2^1, changing
 * from row to row in each 32 channels and from channel to channel in each 32 rows. The factors
 * therefore differ along both axes, so a kernel that uses a wrong factor gets a wrong answer. */
double facts_mx_value(const facts_problem *problem, const facts_recipe *recipe,
                      const int64_t at[4]);

/* The array with the factors of a tensor, and whether its blocks run along its rows. False: the
 * tensor has no factors. */
bool facts_mx_factors_of(const facts_problem *problem, facts_tensor_id id, facts_array_id *out,
                         bool *along_rows);
/* Writes the codes through the strides, as facts_fill_tensor. False if memory is short. */
bool facts_mx_fill(const facts_problem *problem, facts_tensor_id id, void *storage);
/* Fills the factors: an array of facts_problem. Unused places are finite. False: no memory. */
bool facts_mx_fill_factors(const facts_problem *problem, facts_array_id id, uint8_t *out);
/* The values of codes times factors, dense b,h,s,d; exact in fp32. */
void facts_mx_decode(const facts_problem *problem, facts_tensor_id id, const void *storage,
                     const uint8_t *factors, float *out);

/* The contents of the inputs (docs/numerics.md, section 4). Each fill makes one class of bugs
 * visible. The value of element (b,h,s,d) depends only on the seed and its logical place, not on
 * layouts, strides, thread counts or machines. If stride 0 makes several logical elements share one
 * place, the place has the value of the first of them (index 0 in the broadcast dimensions). */
/* Writes an input into its storage (element 0 of the storage at `storage`), through the strides; nothing between them is touched.
 * Rows of a padded batch entry hold ordinary values of the fill, or the case's poison. Threads  OpenMP over rows. Returns  false
 * without memory. */
bool facts_fill_tensor(const facts_problem *problem, facts_tensor_id id, void *storage);

/* Fills a whole storage of `elements` with ordinary values or the case's poison. Done first, so
 * that it remains in the gaps. */
void facts_fill_gaps(const facts_problem *problem, int32_t dtype, void *storage, int64_t elements);

/* The contents of the small arrays of a call: lengths, offsets, page tables, scales, slopes, seeds,
 * scale factors (docs/numerics.md, section 4). */
/* Writes `facts_array_bytes` bytes of an input. Scale factors of block-scaled types (sf_) are those
 * of the elements that facts_fill_tensor writes. A ragged page table has zeros after its last page.
 */
void facts_array_fill(const facts_problem *problem, facts_array_id id, void *out);
/* The same with other valid contents for a call of this shape: shorter sequences without gaps, a
 * permuted page table, other scales, slopes and factors, another seed and offset. Every number
 * differs if the shape allows it. Returns false: no memory. */
bool facts_array_fill_other(const facts_problem *problem, facts_array_id id, void *out);

#endif
