/* How a call is made: the ways of exec= and threads=, each a run over poison B that is compared with the plain first one. */
#ifndef FACTS_EXEC_H
#define FACTS_EXEC_H

#include "runs.h"

/* Why this case's exec= cannot be had on this target, known before anything is compiled; NULL when it can. The class goes to
 * *reason_class. */
const char *facts_exec_refuses(const facts_problem *problem, fattn_backend backend, const facts_worker *worker,
                               const char **reason_class);

/* Does this case put a forward before its backward? */
bool facts_exec_has_forward(const facts_problem *problem);
/* And is that forward there for the sake of its O and Stats alone, so that the reference's do where it cannot be had? */
bool facts_exec_may_do_without(const facts_problem *problem);
/* The problem of that forward. */
fattn_problem facts_exec_forward(const fattn_problem *backward);

/* All runs after the first, compared; *out of the trial says what was found. */
void facts_exec_run(facts_runs *runs);

#endif
