/* The answer to "may this target run this problem?". There are two ways to give it, and "no" cannot be said without a reason. */
#ifndef FATTN_DECISION_H
#define FATTN_DECISION_H

#include "fattn/fattn.h"

#define FATTN__MODES 4

typedef struct fattn__engine_list {
    fattn_engine *at;
    size_t count;
} fattn__engine_list;

struct fattn_decision {
    fattn_backend backend;
    fattn_reason reason;
    char status[96];
    char text[768];
    const char *remedy; /* static string */
    fattn_refusal *refusals;
    size_t refusal_count;
    char *refusal_text;                     /* the strings of `refusals` */
    fattn__engine_list modes[FATTN__MODES]; /* by fattn_mode */
};

/* Says yes. */
void fattn__accept(fattn_decision *out, fattn_backend backend);
/* Says no. `status` is cuDNN's name or "". `remedy` is a static string or NULL. Returns FATTN_OK: the question was answered. */
fattn_status fattn__refuse(fattn_decision *out, fattn_backend backend, fattn_reason reason, const char *status, const char *text,
                           const char *remedy);
/* Appends a configuration to a mode's list; its `mode` and `config` are set here. Returns FATTN_OK or FATTN_NO_MEMORY. */
fattn_status fattn__add_engine(fattn_decision *out, fattn_mode mode, const fattn_engine *engine);

#endif
