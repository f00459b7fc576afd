/* The named score modifications (mod=): their libfattn recordings, and their closed forms for the
 * reference.
 *
 * Order of the steps: x = mod(scale * q.k) + bias, then masks. A score of -inf is a key that the
 * row does not have. A row without a key is dead: O 0, Stats -inf, gradients 0. docs/numerics.md,
 * section 1, says which cases have such rows. */
#ifndef FACTS_MOD_H
#define FACTS_MOD_H

#include <fref/fref.h>

#include "problem/case_problem.h"

/* The recording that `problem.mod` names, or NULL. Destroy it with fattn_score_mod_destroy. Its
 * tensors are MOD_A, then MOD_B. Returns the status of the library's function. */
fattn_status facts_mod_create(fattn_score_mod **out, const facts_problem *problem);

/* The data that the closed form reads. It must stay valid while the form is used. */
typedef struct facts_mod_owner {
    const facts_problem *problem;
    const void *a, *b; /* element 0 of the storages of MOD_A and MOD_B; NULL: absent */
} facts_mod_owner;
/* A fref_modification; `owner` is a facts_mod_owner. */
fref_modified facts_mod_at(const void *owner, double score, const int64_t at[4]);

/* Limits the keys [*first, *last) of row i to those that the modification does not mask; none:
 * *first == *last. */
void facts_mod_keys_of_row(const facts_problem *problem, int64_t b, int64_t i, int64_t *first,
                           int64_t *last);

/* The document number in MOD_A or MOD_B. Documents follow one another, and their lengths differ by
 * at most one. The rows and the keys of a batch entry have the same document numbers, so every live
 * row has a key. */
int64_t facts_mod_document(const facts_problem *problem, int64_t b, int64_t place, bool of_keys);

#endif
