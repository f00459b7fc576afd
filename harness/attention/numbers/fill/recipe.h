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
/* The same for bias (bias_fill) and the tensors of score modifications (mod.h); facts_recipe_make
 * calls it. */
bool facts_recipe_scores(facts_recipe *out, const facts_problem *problem, facts_tensor_id id);

/* needle: the key whose score is raised for row i of query head h. */
int64_t facts_needle_key(const facts_problem *problem, int64_t b, int64_t h, int64_t i);
/* needle: q = a k. The smallest a on a 3-bit grid for which the needle's score is 5 above the
 * log-sum-exp of the other keys. */
double facts_needle_gain(int64_t dim, int64_t keys, double scale);

/* Dense fills have noise-like data: an answer that belongs to other data cannot pass by chance. */
bool facts_fill_is_dense(facts_fill fill);

#endif
