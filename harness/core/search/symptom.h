/* The way in which a case fails. Shrinking keeps it, and findings are grouped by it. Read from the
 * rows of a record. */
#ifndef FACTS_SYMPTOM_H
#define FACTS_SYMPTOM_H

#include "language/case.h"
#include "record/reader.h"
#include "words/verdict.h"

#define FACTS_TENSORS_TEXT 64

/* One way to fail. Without a value, words are empty and the engine is -1. */
typedef struct facts_symptom {
    facts_verdict verdict;
    int64_t engine;
    bool known; /* a known failure explains it */
    uint64_t
        value; /* 0: a failure. Otherwise any answer, compared by this value alone (reported.h) */
    char tensors[FACTS_TENSORS_TEXT]; /* at fault, in the row's order: "dq dk" */
    char gate[12];                    /* of the first of them */
    char backend[12];
    char class_word[24]; /* of the reason; if the worker died, the stage */
} facts_symptom;

/* The answer of a case: the worst verdict of its rows, and each way in which it failed (several
 * with engine=all). */
typedef struct facts_answer {
    facts_verdict verdict;
    size_t count;
    const facts_symptom *failing;
    const char *value; /* with --by: what is compared; otherwise NULL */
} facts_answer;

/* Reads a row of a record. A failure is every finding, and data that cannot show an error. False:
 * the row is no failure; *verdict is set all the same. */
bool facts_symptom_read(facts_symptom *out, const facts_line *row, facts_verdict *verdict);
/* Is `other` the same failure as `wanted`: same verdict, backend, engine and known failure, and
 * `other` contains the first tensor of `wanted`? */
bool facts_symptom_same(const facts_symptom *wanted, const facts_symptom *other);
/* The failure of an answer that equals `wanted`; NULL: none. */
const facts_symptom *facts_answer_find(const facts_answer *answer, const facts_symptom *wanted);
/* "wrong dq (t1), engine 6": for one line. Returns `out`. */
#define FACTS_SYMPTOM_TEXT 200
const char *facts_symptom_text(const facts_symptom *symptom, char out[FACTS_SYMPTOM_TEXT]);

#endif
