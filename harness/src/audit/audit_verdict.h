/* What a rule is worth: its word on each case, held against what the backend answered. Pure. */
#ifndef FACTS_AUDIT_VERDICT_H
#define FACTS_AUDIT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "case/words/verdict.h"

/* What a backend answered about one case. */
typedef enum facts_reply {
    FACTS_REPLY_NONE,     /* no row */
    FACTS_REPLY_REFUSED,  /* by cuDNN */
    FACTS_REPLY_ACCEPTED, /* engines are offered (and built, where that was asked); whether the numbers are right is not known */
    FACTS_REPLY_PASSED,   /* the numbers of every engine offered are right */
    FACTS_REPLY_UNBUILT,  /* an engine is offered and does not build */
    FACTS_REPLY_BROKEN,   /* an engine is offered, and its numbers are wrong, or it faults, dies or hangs */
    FACTS_REPLY_OURS,     /* our own library refuses it: cuDNN was not asked */
    FACTS_REPLY_UNKNOWN   /* could not be asked, or the data could not tell */
} facts_reply;

/* One row's reply. `by_cudnn`: a refusal with a status of cuDNN's. */
facts_reply facts_reply_of(facts_verdict verdict, bool measured, bool by_cudnn);
/* Of two rows of one case (engine=all has one for each configuration). Of right numbers beside an engine that does not build the
 * whole is not known to be right. */
facts_reply facts_reply_join(facts_reply a, facts_reply b);

/* What is said of a rule for one version and device. X(SYMBOL, "word", "what it means") */
#define FACTS_AUDIT_LIST(X)                                                                                                        \
    X(TOO_STRICT, "too strict", "it refuses what every engine offered computes right")                                             \
    X(TOO_LOOSE, "too loose",                                                                                                      \
      "no rule of the project refuses it, and the backend does, or gets it wrong; told under the first rule that shows it")        \
    X(ACCEPTED, "accepted, numbers not known",                                                                                     \
      "it refuses what the backend accepts; a GPU has to say whether the numbers are right")                                       \
    X(UNKNOWN, "not answered", "the backend could not be asked, or the data could not tell")                                       \
    X(AGREES, "agrees", "the backend refuses (or gets wrong) what it refuses, and takes the other side")                           \
    X(BLIND, "both sides refused",                                                                                                 \
      "the backend refuses the other side too, for a reason that another rule tells: no edge is to be seen")                       \
    X(OURS, "not asked",                                                                                                           \
      "our own library refuses it before cuDNN sees it: nobody could compute it, or no graph of that version can say it")
#define AS_ENUM(symbol, word, meaning) FACTS_AUDIT_##symbol,
typedef enum facts_audit_word { FACTS_AUDIT_LIST(AS_ENUM) FACTS_AUDIT_COUNT } facts_audit_word;
#undef AS_ENUM
const char *facts_audit_name(facts_audit_word word);
const char *facts_audit_meaning(facts_audit_word word);

/* A case of a rule on one version and device. */
typedef struct facts_trial {
    bool refused; /* by the rule */
    bool others;  /* by another rule of the same project; or what the backend says against it is told under another rule */
    facts_reply reply;
} facts_trial;

typedef struct facts_audit_verdict {
    bool said[FACTS_AUDIT_COUNT];    /* several of those before AGREES may be; AGREES, BLIND and OURS only alone */
    size_t shows[FACTS_AUDIT_COUNT]; /* the first trial that shows it */
    bool refuses;                    /* the rule refuses something here */
} facts_audit_verdict;

void facts_audit_judge(facts_audit_verdict *out, const facts_trial *trials, size_t count);

#endif
