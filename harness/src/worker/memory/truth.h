/* One case with everything that its configurations share: memory, what is due, and whether the data can tell. */
#ifndef FACTS_TRUTH_H
#define FACTS_TRUTH_H

#include "case_memory.h"
#include "dropout_kept.h"
#include "gpu_expectation.h"

typedef struct facts_slabs facts_slabs;

typedef struct facts_truth {
    facts_memory memory;
    facts_expectation expectation;
    facts_kept keep;                    /* what dropout kept */
    facts_constants constants;          /* that it was computed for */
    bool weighed;                       /* what follows is known: facts_judging_all */
    bool untrusted[FACTS_TENSOR_COUNT]; /* a wrong answer could pass here */
    facts_oracle oracle;                /* of memory that is on the GPU */
    facts_there there;                  /* its owner */
    facts_slabs *slabs;                 /* NULL: what is due is all in the expectation */
    double fill_ms, oracle_ms;          /* what making it took; what was computed again, too */
} facts_truth;

/* Who computed what is due: "gpu", "cpu". */
const char *facts_truth_oracle(const facts_truth *truth);

/* What a check's further run has different from what the fill makes. */
typedef struct facts_truth_edit {
    void (*inputs)(void *owner, facts_memory *memory); /* before the reference reads them */
    void (*given)(void *owner, facts_memory *memory);  /* of a backward: after the reference's O and Stats were written */
    void *owner;
} facts_truth_edit;

typedef struct facts_making {
    facts_worker *worker;
    const facts_problem *problem;
    const facts_who *who;    /* whose constants the error model has; NULL: the starting constants */
    const facts_truth *like; /* its constants instead; NULL: no other truth's */
    bool here;               /* memory and reference are on the host, also where there is a GPU */
} facts_making;

/* The three steps that make a truth: its memory, the data of the inputs, the reference results (of a backward: O and Stats first,
 * as inputs). edit: NULL for the case as it is filled. Destroy in any case. Return FATTN_OK, or why not with the sentence in
 * `error`. facts_truth_compute: FATTN_INTERNAL where the reference of this side cannot compute the case. */
fattn_status facts_truth_create(facts_truth *out, const facts_making *making, facts_error *error);
fattn_status facts_truth_fill(facts_truth *truth, const facts_truth_edit *edit, facts_error *error);
fattn_status facts_truth_compute(facts_truth *truth, const facts_truth_edit *edit, facts_error *error);
/* Who is judged next. What is due is computed again where the constants of the error model are others for him. Returns 0, or an
 * errno. */
int facts_truth_judges(facts_truth *truth, const facts_who *who);
/* Once more: of a backward from the O and Stats that lie in memory now (pattern A). Returns 0, or an errno. */
int facts_truth_renew(facts_truth *truth);
/* Dropout is from now on by this seed, given beside the case's offset. What is due is not computed again: facts_truth_renew.
 * Returns FATTN_OK, or why not with the sentence in `error`. */
fattn_status facts_truth_reseed(facts_truth *truth, int64_t seed, facts_error *error);
/* Of a backward whose forward has run: are its O and Stats (pattern A) near enough to the reference's to tell something about the
 * backward? Where they are not, the reference's are the inputs from now on, and *kept is false. Returns 0, or an errno. */
int facts_truth_keep_own(facts_truth *truth, bool *kept);
void facts_truth_destroy(facts_truth *truth);

#endif
