/* Which smallest cases are one finding, and in which order findings are listed. Pure. */
#ifndef FACTS_BUCKETS_H
#define FACTS_BUCKETS_H

#include "shrink.h"

#define FACTS_MOST_FORMS 4 /* of one bucket; more are counted only */

typedef struct facts_form {
    facts_case best, start; /* smallest; as drawn */
    facts_evidence_text evidence;
    unsigned kernels;  /* facts_case_kernels of its own, and of what was shrunk to it */
    size_t cases;      /* drawn ones that it stands for */
    int failed, asked; /* of how many times */
    int steps;
    bool unfinished; /* not (or not wholly) shrunk: time or steps were over */
    bool ordinary;
    facts_case known; /* of an explained bucket: what is left without some features, and a known failure */
    char link[200];   /* of that one */
    facts_case control[FACTS_SHRINK_CONTROLS];
    size_t controls;
} facts_form;

typedef struct facts_bucket {
    facts_symptom symptom;
    facts_form form[FACTS_MOST_FORMS];
    size_t forms, cases; /* cases: of all forms, and those that were counted without one */
    bool ordinary;       /* some form is */
    bool explained;      /* a known failure explains it */
} facts_bucket;

/* Pass and family of types, which decide what kernels run: one bit. */
unsigned facts_case_kernels(const facts_case *c);
/* As facts_case_covers of its smallest case, also for other kernels that were found to fail in the same way. */
bool facts_form_covers(const facts_form *form, const facts_case *larger);
/* Has the larger case every feature of the smaller one, and is it nowhere smaller? The kernels are the same. The engine is part of
 * the symptom. */
bool facts_case_covers(const facts_case *smaller, const facts_case *larger);
/* Do they set the same keys, in the same pass and family of types, to whatever values? Sizes and the engine do not count. */
bool facts_case_same_keys(const facts_case *a, const facts_case *b);
/* One finding: the same keys, or one covers the other. */
bool facts_case_neighbours(const facts_case *a, const facts_case *b);
/* Takes a form (with its cases) to its place. Of too many the least ordinary is counted only. */
void facts_bucket_take(facts_bucket *bucket, const facts_form *form);
/* For sorting: below 0 when `a` comes first. */
int facts_bucket_order(const facts_bucket *a, const facts_bucket *b);

#endif
