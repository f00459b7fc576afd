/* The named score modifications (mod=), once: as libfattn records them and, for the reference, in closed form.
 *
 * Order of a score: x = mod(scale * q.k) + bias, then masks. x of -inf is a key that the row does not have. A row without a key is
 * dead: O 0, Stats -inf, gradients 0; docs/numerics.md section 1 says which cases have such rows.
 */
#ifndef FACTS_MOD_H
#define FACTS_MOD_H

#include <fref/fref.h>

#include "case/problem/case_problem.h"

/* The recording that `problem.mod` names, NULL for none. Destroy with fattn_score_mod_destroy; its tensors are MOD_A, then MOD_B.
 * Returns  what the library's own function returns. */
fattn_status facts_mod_create(fattn_score_mod **out, const facts_problem *problem);

/* What the closed form reads; lives as long as it is used. */
typedef struct facts_mod_owner {
    const facts_problem *problem;
    const void *a, *b; /* element 0 of the storages of MOD_A and MOD_B; NULL where absent */
} facts_mod_owner;
/* A fref_modification; `owner` is a facts_mod_owner. */
fref_modified facts_mod_at(const void *owner, double score, const int64_t at[4]);

/* Narrows the keys [*first, *last) of row i to those that the modification leaves; empty: *first == *last. */
void facts_mod_keys_of_row(const facts_problem *problem, int64_t b, int64_t i, int64_t *first, int64_t *last);

/* What MOD_A and MOD_B hold for documents. Documents follow one another, equally long up to one; those of the
 * rows and those of the keys of a batch entry have the same numbers, so that every live row has a key. */
int64_t facts_mod_document(const facts_problem *problem, int64_t b, int64_t place, bool of_keys);

#endif
