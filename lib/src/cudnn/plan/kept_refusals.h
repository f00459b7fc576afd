/* Refusals in the caller's store (fattn/cache.h). An entry holds cuDNN's messages for a graph,
 * unchanged. Conclusions from the messages are not stored; they are computed again when an entry is
 * read. */
#ifndef FATTN_CUDNN_KEPT_REFUSALS_H
#define FATTN_CUDNN_KEPT_REFUSALS_H

#include "core/context.h"
#include "core/decision.h"

/* The step at which cuDNN refused. */
typedef enum fattn__refused_step {
    FATTN__REFUSED_NOWHERE,
    FATTN__REFUSED_GRAPH,
    FATTN__REFUSED_OFFER,
    FATTN__REFUSED_PLAN
} fattn__refused_step;

/* cuDNN's refusal. */
typedef struct fattn__refusal_answer {
    int step;         /* fattn__refused_step */
    int status;       /* cuDNN's */
    const char *text; /* the graph's message */
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

/* True: *out is a stored refusal, and the caller frees it. False: the caller has no store, the
 * store has no refusal for this question, or the entry is damaged (the store is asked to drop it).
 * *out is then zero. */
bool fattn__refusal_recall(fattn__refusal_answer *out, const fattn_context *context,
                           const fattn__refusal_question *question);
void fattn__refusal_free(fattn__refusal_answer *refusal);

/* Stores the refusal if the caller has a store. The caller has checked fattn__refusal_lasts. */
void fattn__refusal_keep(const fattn_context *context, const fattn__refusal_question *question,
                         const fattn__refusal_answer *refusal);

/* Does the refusal depend only on the graph? Then the same question gets the same answer again. An
 * internal error of cuDNN, a lack of memory and a missing library may be gone the next time. `of`
 * has the lines of the log; NULL: there are none. */
bool fattn__refusal_lasts(int status, const fattn_decision *of);

#endif
