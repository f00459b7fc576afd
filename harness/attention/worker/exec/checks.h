/* The further runs of a check (check=), with the engine that answered. numbers/check/check.h
 * describes the checks. */
#ifndef FACTS_CHECKS_H
#define FACTS_CHECKS_H

#include "runs.h"

/* Makes the runs of this case's check and writes the result to runs->out. Does nothing if the case
 * has no check or is wrong already. */
void facts_checks_run(facts_runs *runs);

#endif
