/* The answer to "may this target run this problem?". There are two ways to give it, and "no" cannot be said without a reason. */
#ifndef FATTN_DECISION_H
#define FATTN_DECISION_H

#include "fattn/fattn.h"
#include "fattn/policy.h"

#define FATTN__MODES 4

typedef struct fattn__engine_list {
    fattn_engine *at;
    size_t count;
} fattn__engine_list;

/* What one backend answered, with room for its strings: a policy may be popped while the decision lives. */
typedef struct fattn__answer_text {
    char status[96];
    char text[768];
    char remedy[256];
    char rule[96];
} fattn__answer_text;

struct fattn_decision {
    fattn_backend backend;
    fattn_reason reason;
    fattn__answer_text said;
    fattn_refusal *refusals;
    size_t refusal_count;
    char *refusal_text;                     /* the strings of `refusals` */
    fattn__engine_list modes[FATTN__MODES]; /* by fattn_mode */

    /* Of every backend that the policy named; only in what fattn_decide gives. */
    fattn_answer answers[FATTN_BACKEND_COUNT];
    fattn__answer_text answer_texts[FATTN_BACKEND_COUNT];
    size_t answer_count;
};

/* Says yes. */
void fattn__accept(fattn_decision *out, fattn_backend backend);
/* Says no. `status` is cuDNN's name or "". `remedy` NULL or "": what helps with such a reason in general. Strings are copied. Returns
 * FATTN_OK: the question was answered. */
fattn_status fattn__refuse(fattn_decision *out, fattn_backend backend, fattn_reason reason, const char *status, const char *text,
                           const char *remedy);
/* Says no by a rule, which the decision names. */
fattn_status fattn__refuse_by_rule(fattn_decision *out, fattn_backend backend, const fattn_rule *rule, const fattn_problem *resolved);
/* A configuration was removed by a rule: the answer names the first such rule, yes or no. */
void fattn__note_rule(fattn_decision *out, const fattn_rule *rule);
/* Appends a configuration to a mode's list; its `mode` and `config` are set here. Returns FATTN_OK or FATTN_NO_MEMORY. */
fattn_status fattn__add_engine(fattn_decision *out, fattn_mode mode, const fattn_engine *engine);

/* How often this thread has asked cuDNN, by pass. For tests of what a probe costs. */
uint64_t fattn__asked(fattn_pass pass);
void fattn__count_asked(fattn_pass pass);

#endif
