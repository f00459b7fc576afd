/* How a call is made: the ways of exec= and threads=, each a run over poison B that is compared with the plain first one. */
#ifndef FACTS_EXEC_H
#define FACTS_EXEC_H

#include "runs.h"

/* Why this case's exec= cannot be had on this target, known before anything is compiled; NULL when it can. The class goes to
 * *reason_class. */
const char *facts_exec_refuses(const facts_problem *problem, fattn_backend backend, const facts_worker *worker,
                               const char **reason_class);

/* All runs after the first, compared; *out of the trial says what was found. */
void facts_exec_run(facts_runs *runs);

#endif
