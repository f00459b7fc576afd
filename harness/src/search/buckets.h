/* Groups smallest cases into findings and sorts the findings. Pure. */
#ifndef FACTS_BUCKETS_H
#define FACTS_BUCKETS_H

#include "shrink.h"

#define FACTS_MOST_FORMS 4 /* of one bucket; more are counted only */

typedef struct facts_form {
    facts_case best, start; /* smallest; as drawn */
    facts_evidence_text evidence;
    unsigned kernels;  /* facts_case_kernels of the case, and of the cases that were shrunk to it */
    size_t cases;      /* drawn ones that it stands for */
    int failed, asked; /* of how many times */
    int steps;
    bool unfinished; /* shrinking ended early: out of time or steps */
    bool ordinary;
    facts_case known; /* of an explained bucket: the case without some features, which is a known
                         failure */
    char link[200];   /* of that one */
    facts_case control[FACTS_SHRINK_CONTROLS];
    size_t controls;
} facts_form;

typedef struct facts_bucket {
    facts_symptom symptom;
    facts_form form[FACTS_MOST_FORMS];
    size_t forms, cases; /* cases: of all forms, and those that belong to no form */
    bool ordinary;       /* some form is */
    bool explained;      /* a known failure explains it */
} facts_bucket;

/* The pass and the family of types, as one bit. They decide which kernels run. */
unsigned facts_case_kernels(const facts_case *c);
/* As facts_case_covers for the smallest case, and also for other kernels that fail in the same way.
 */
bool facts_form_covers(const facts_form *form, const facts_case *larger);
/* Does the larger case have every feature of the smaller one, and is no size smaller? The kernels
 * must be equal. The engine belongs to the symptom. */
bool facts_case_covers(const facts_case *smaller, const facts_case *larger);
/* Do both set the same keys, in the same pass and family of types? Values, sizes and the engine do
 * not matter. */
bool facts_case_same_keys(const facts_case *a, const facts_case *b);
/* Do two cases belong to one finding: the same keys, or one covers the other? */
bool facts_case_neighbours(const facts_case *a, const facts_case *b);
/* Puts a form and its cases into the bucket. If the bucket is full, the least ordinary form is only
 * counted. */
void facts_bucket_take(facts_bucket *bucket, const facts_form *form);
/* For sorting: below 0 when `a` comes first. */
int facts_bucket_order(const facts_bucket *a, const facts_bucket *b);

#endif
