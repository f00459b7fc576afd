/* Which cases of a suite show which planted fault. Of the cases that can show it, a sample runs. */
#ifndef FACTS_SELF_SURVEY_H
#define FACTS_SELF_SURVEY_H

#include "self_case.h"
#include "words/fail.h"

/* Of one fault in one type and suite. */
typedef struct facts_shown {
    const fattn__fault *fault;
    facts_self_type type;
    const char *suite;
    size_t able, asked, red; /* cases that can show it; those that ran; those that turned red */
    const char *blind;       /* why no data of this type shows it; NULL: they must */
    double ratio;            /* the largest */
    char gate[24], tensor[24], name[FACTS_NAME_MAX]; /* of that ratio */
} facts_shown;

typedef struct facts_survey_choice {
    const char *const *suites; /* names, files or patterns */
    size_t suite_count;
    const char *suite_dir;
    const char *where; /* a predicate: only these cases; NULL: all */
    const char *fault; /* a part of its id; NULL: all */
    const char *type;  /* NULL: all */
    size_t sample;     /* cases for each fault and type; 0: all */
    bool quick;        /* one case that shows it is enough; else one that shows it clearly */
    uint64_t seed;     /* of the data */
    /* Called after each kernel that ran; NULL. The first of a case has no fault. */
    void (*each)(void *owner, const facts_shown *of, const char *name, const facts_self_end *end);
    void *owner;
} facts_survey_choice;

typedef struct facts_survey {
    facts_shown *shown; /* suite by suite, type by type, in the order of the faults */
    size_t count;
    size_t cases, refused; /* with a right kernel; that the cpu refuses */
    size_t honest, false_alarms;
    char alarms[2048]; /* the first ones, a line each */
} facts_survey;

/* Returns 0; ENOMEM; EINVAL (no such fault, type or suite) with one line in `error`. */
int facts_survey_run(facts_survey *out, const facts_survey_choice *choice, facts_error *error);
void facts_survey_free(facts_survey *survey);

/* Counts false alarms: runs right kernels, with every allowed rounding, on problems of every kind
 * (docs/numerics.md, section 12). Evaluation n of a seed does not depend on the others. */
typedef struct facts_clean {
    size_t evaluations, answers; /* answers: tensors and scalars that were judged */
    size_t refused;              /* drawn problems that the cpu backend refuses */
    size_t false_alarms;
    char alarms[2048];              /* the first ones, a line each */
    double worst[FACTS_GATE_COUNT]; /* the largest ratio of each gate */
} facts_clean;

/* Evaluations first .. first+count-1. Returns 0, or EINVAL with one line in `error`. */
int facts_clean_run(facts_clean *out, uint64_t seed, uint64_t first, size_t count,
                    facts_error *error);

#endif
