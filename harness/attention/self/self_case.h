/* One case in this process: its reference is made once, and any kernel may then run before it. */
#ifndef FACTS_SELF_CASE_H
#define FACTS_SELF_CASE_H

#include "self_types.h"
#include "worker/exec/trial.h"

typedef struct facts_self_case {
    facts_case asked;
    bool asked_is_valid; /* it is a case, whoever refuses it */
    facts_problem problem;
    fattn_score_mod *mod;
    fattn_plan *plan;
    facts_reference reference;
} facts_self_case;

/* Can the worker's cpu run it in a moment? Then resolves it. */
bool facts_self_case_takes(const char *name);
/* Returns false with the reason in `error`: the cpu refuses the case. Close it in any case. */
bool facts_self_case_open(facts_self_case *out, const char *name, facts_error *error);
void facts_self_case_close(facts_self_case *x);

/* Runs a kernel over both poisons, with one fault (FATTN__LIAR_NONE: none). */
void facts_self_case_run(facts_self_end *out, facts_self_case *x, const fattn__gpu_like *like,
                         fattn__liar fault);

#endif
