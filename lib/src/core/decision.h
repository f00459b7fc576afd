/* The answer to "may this target run this problem?". Two functions give it: fattn__accept, and
 * fattn__refuse, which requires a reason. */
#ifndef FATTN_DECISION_H
#define FATTN_DECISION_H

#include "fattn/fattn.h"
#include "fattn/policy.h"

#define FATTN__MODES 4

typedef struct fattn__engine_list {
    fattn_engine *at;
    size_t count;
} fattn__engine_list;

/* The answer of one backend. The decision owns the strings, because the policy that they come from
 * may be popped while the decision lives. */
typedef struct fattn__answer_text {
    char status[96];
    char text[768];
    char remedy[256];
    char rule[96];
} fattn__answer_text;

struct fattn_decision {
    fattn_backend backend;
    fattn_reason reason;
    fattn__answer_text message;
    fattn_refusal *refusals;
    size_t refusal_count;
    char *refusal_text;                     /* the strings of `refusals` */
    fattn__engine_list modes[FATTN__MODES]; /* by fattn_mode */

    /* One answer for every backend that the policy names. Only fattn_decide fills them. */
    fattn_answer answers[FATTN_BACKEND_COUNT];
    fattn__answer_text answer_texts[FATTN_BACKEND_COUNT];
    size_t answer_count;
};

/* Answers yes. */
void fattn__accept(fattn_decision *out, fattn_backend backend);
/* Answers no. `status` is cuDNN's name of the status, or "". `remedy` may be NULL or "": the
 * decision then gives the general advice for the reason. The strings are copied. Returns FATTN_OK:
 * the question was answered. */
fattn_status fattn__refuse(fattn_decision *out, fattn_backend backend, fattn_reason reason,
                           const char *status, const char *text, const char *remedy);
/* Answers no because of a rule. The decision names the rule. */
fattn_status fattn__refuse_by_rule(fattn_decision *out, fattn_backend backend,
                                   const fattn_rule *rule, const fattn_problem *resolved);
/* Records that a rule removed a configuration. The answer, yes or no, names the first such rule. */
void fattn__note_rule(fattn_decision *out, const fattn_rule *rule);
/* Appends a configuration to a mode's list and sets its `mode` and `config`. Returns FATTN_OK or
 * FATTN_NO_MEMORY. */
fattn_status fattn__add_engine(fattn_decision *out, fattn_mode mode, const fattn_engine *engine);

/* How often this thread has asked cuDNN, for each pass. Tests use it to measure what a decision
 * costs. */
uint64_t fattn__asked(fattn_pass pass);
void fattn__count_asked(fattn_pass pass);

#endif
