/* The answer that one version reported for a case, and the part of it that is compared between
 * versions. */
#ifndef FACTS_REPORTED_H
#define FACTS_REPORTED_H

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

/* The answer that one version reported for a case, and the part of it that is compared between
 * versions. */
/* X(SYMBOL, "word"). The property that two answers must differ in. */
#define FACTS_BY_LIST(X)                                                                           \
    X(VERDICT, "verdict")                                                                          \
    X(CLASS, "class")                                                                              \
    X(ENGINE, "engine") X(ENGINES, "engines") X(KNOBS, "knobs") X(REASON, "reason")
#define FACTS_BY_AS_ENUM(symbol, word) FACTS_BY_##symbol,
typedef enum facts_by { FACTS_BY_LIST(FACTS_BY_AS_ENUM) FACTS_BY_COUNT } facts_by;
#undef FACTS_BY_AS_ENUM

const char *facts_by_word(facts_by by);
facts_by facts_by_parse(const char *word); /* FACTS_BY_COUNT: none of them */

/* Without a value, words are empty and the engine is -1. */
typedef struct facts_reported {
    facts_verdict verdict; /* FACTS_VERDICT_COUNT: nothing yet */
    char backend[12];
    int64_t engine;
    char engines[128];   /* mode A's, each once, in their order */
    char knobs[300];     /* of the engine, by name: "KERNEL_CFG=1 TILE_M=3" */
    bool has_knobs;      /* the row has knobs, possibly an empty list */
    char class_word[24]; /* of the reason */
    char text[400];      /* of the reason */
    char meaning[400];   /* of the reason: a sentence of ours about the keys that decide */
    char forward[400];   /* why the forward of an accepted backward is refused */
    char remedy[200], rule[80];
    char known[400]; /* "TITLE (ID)" of the known failure that speaks of the case */
} facts_reported;

#define FACTS_REPORTED_NOTHING ((facts_reported){ .verdict = FACTS_VERDICT_COUNT, .engine = -1 })

/* With several rows (engine=all) the row of the largest weight counts: a failure, then a case that
 * could not be asked, then a pass. */
int facts_reported_weight(facts_verdict verdict);
/* One more row of the case. */
void facts_reported_row(facts_reported *reported, const facts_line *row);
/* Is it an answer? No, if the version could not be asked or the data could not show an error. */
bool facts_reported_answers(const facts_reported *reported);
/* Can it be compared by this property? Not by knobs, if the row of a cuDNN engine has none. */
bool facts_reported_has(const facts_reported *reported, facts_by by);
/* The value that is compared: "pass", "unsupported policy", "engine 8", "engine 8 KERNEL_CFG=1
 * TILE_M=3". For another backend than cuDNN it is the backend's name: "math". Returns `out`. */
#define FACTS_REPORTED_VALUE 480
const char *facts_reported_value(const facts_reported *reported, facts_by by,
                                 char out[FACTS_REPORTED_VALUE]);

#endif
