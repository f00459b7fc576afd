/* What a score is made of: the scalar inputs, as the fp32 numbers that the engine gets
 * (docs/numerics.md, section 4), the keys that a row reads, and the named modifications. */
#ifndef FACTS_SCORE_INPUTS_H
#define FACTS_SCORE_INPUTS_H

#include <fref/fref.h>

#include "problem/case_problem.h"

/* Scales, descales and the attention scale in memory. */
double facts_array_scalar(const facts_problem *problem, facts_array_id id);
/* The factor of Q K^T. */
double facts_oracle_scale(const facts_problem *problem);
/* With dropout: the factor of a kept P: 1/(1-p) in fp32, or the given factor. */
double facts_keep_scale_of(const facts_problem *problem);
/* ALiBi's slope of a head. */
double facts_mod_slope(int64_t heads, int64_t h);

/* Converts a problem to the reference's types, and finds the rows with an expected value. */
/* `out` points into `problem` (the lengths). The facts_expect_ functions add bias and modification,
 * because these need memory. */
void facts_oracle_problem(fref_problem *out, const facts_problem *problem);
/* The reference's element type; for a block-scaled type that of its codes. False: the reference has
 * none. */
bool facts_oracle_type(fref_type *out, int32_t dtype);

/* The keys [*first, *last) that row i of batch entry b may read: lengths, band, and a modification
 * that masks. */
void facts_oracle_keys_of_row(const facts_problem *problem, int64_t b, int64_t i, int64_t *first,
                              int64_t *last);

/* Can some row read two different keys? Otherwise dQ, dK and dBias are zero, whatever a kernel
 * computes. */
bool facts_oracle_two_keys(const facts_problem *problem);

/* The named score modifications (mod=): their libfattn recordings, and their closed forms for the
 * reference.
 *
 * Order of the steps: x = mod(scale * q.k) + bias, then masks. A score of -inf is a key that the
 * row does not have. A row without a key is dead: O 0, Stats -inf, gradients 0. docs/numerics.md,
 * section 1, says which cases have such rows. */
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
