/* Refusals in the caller's store (fattn/cache.h): cuDNN's words for a graph, unchanged. Conclusions from these words are not
 * stored; the library that reads them computes them again. */
#ifndef FATTN_CUDNN_KEPT_REFUSALS_H
#define FATTN_CUDNN_KEPT_REFUSALS_H

#include "core/context.h"
#include "core/decision.h"

/* At which step cuDNN said no. */
typedef enum fattn__refused_step {
    FATTN__REFUSED_NOWHERE,
    FATTN__REFUSED_GRAPH,
    FATTN__REFUSED_OFFER,
    FATTN__REFUSED_PLAN
} fattn__refused_step;

/* What cuDNN said. */
typedef struct fattn__refusal_answer {
    int step;         /* fattn__refused_step */
    int status;       /* cuDNN's */
    const char *text; /* the graph's sentence */
    const char *log;
    char *memory; /* owned; NULL: the strings are the caller's */
} fattn__refusal_answer;

/* The question: everything that decides the answer. */
typedef struct fattn__refusal_question {
    uint64_t graph; /* fattn__graph_id */
    int64_t engine; /* FATTN_ENGINE_AUTO: mode A */
    const fattn_knob *knobs;
    int32_t knob_count;
    bool overrides;
    bool plan; /* a plan is asked for, not an offer */
} fattn__refusal_question;

/* False: the caller has no store, the store has no refusal for this question, or the entry is damaged (the store is asked to drop
 * it). *out is then zero. True: the caller frees *out. */
bool fattn__refusal_recall(fattn__refusal_answer *out, const fattn_context *context, const fattn__refusal_question *question);
void fattn__refusal_free(fattn__refusal_answer *said);

/* Gives it to the store, if there is one. The caller has seen that it lasts. */
void fattn__refusal_keep(const fattn_context *context, const fattn__refusal_question *question, const fattn__refusal_answer *said);

/* Does it speak of the graph alone? Then the next asking gives the same. An error inside of cuDNN, a lack of memory and a missing
 * library may be gone by then. `of` has the lines of the log; NULL: there are none. */
bool fattn__refusal_lasts(int status, const fattn_decision *of);

#endif
