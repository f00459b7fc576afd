/* What lies in the inputs. docs/numerics.md section 4: each fill makes one class of bug visible.
 *
 * The value of element (b,h,s,d) follows from the seed and its logical place alone; layouts, strides, thread counts and machines
 * change nothing. Where stride 0 makes several logical elements share one place, the place holds the value of the first of them
 * (index 0 in the broadcast dimensions).
 */
#ifndef FACTS_FILL_H
#define FACTS_FILL_H

#include "case/problem/case_problem.h"
#include "fill_element.h"

/* How to fill a tensor, here or on a GPU: fill_element.h computes each element from it. Its tables are in host memory and owned.
 * Returns  false without memory. facts_recipe_destroy in any case. */
bool facts_recipe_make(facts_recipe *out, const facts_problem *problem, facts_tensor_id id);
void facts_recipe_destroy(facts_recipe *recipe);
/* What the gaps of a storage hold. */
facts_gaps facts_gaps_of(const facts_problem *problem, int32_t dtype);
/* The same for bias (bias_fill) and the tensors of score modifications (mod.h); facts_recipe_make calls it. */
bool facts_recipe_scores(facts_recipe *out, const facts_problem *problem, facts_tensor_id id);

/* Writes an input into its storage (element 0 of the storage at `storage`), through the strides; nothing between them is touched.
 * Rows of a padded batch entry hold ordinary values of the fill, or the case's poison. Threads  OpenMP over rows. Returns  false
 * without memory. */
bool facts_fill_tensor(const facts_problem *problem, facts_tensor_id id, void *storage);

/* Every element of a storage of `elements`: ordinary values, or the case's poison. Done first: what stays of it are the gaps. */
void facts_fill_gaps(const facts_problem *problem, int32_t dtype, void *storage, int64_t elements);

/* needle: the key that row i of query head h points at. */
int64_t facts_needle_key(const facts_problem *problem, int64_t b, int64_t h, int64_t i);
/* needle: q = a k. The smallest a on a 3 bit grid that lifts the needle 5 above the log-sum of the other keys. */
double facts_needle_gain(int64_t dim, int64_t keys, double scale);

/* Dense fills have noise-like data: an answer that belongs to other data cannot pass by chance. */
bool facts_fill_is_dense(facts_fill fill);

#endif
