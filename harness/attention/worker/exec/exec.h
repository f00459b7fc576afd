/* The ways to make a call: exec=. Each is a run over poison B, which is compared with
 * the plain first run. */
#ifndef FACTS_EXEC_H
#define FACTS_EXEC_H

#include "runs.h"

/* The reason why this target cannot do this case's exec=, known before anything is compiled; NULL
 * if it can. */
const char *facts_exec_refuses(const facts_problem *problem, fattn_backend backend,
                               const facts_worker *worker);

/* Makes all runs after the first and compares them. The trial's *out has the result. */
void facts_exec_run(facts_runs *runs);

#endif
