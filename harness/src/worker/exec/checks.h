/* The further runs of a check (check=), with the engine that has answered. What they are is in numbers/check/check.h. */
#ifndef FACTS_CHECKS_H
#define FACTS_CHECKS_H

#include "runs.h"

/* Makes the runs of this case's check and says in runs->out what was found; nothing when the case has none, or is wrong already. A
 * run whose shape is not the case's needs a plan of its own by the same engine: where the target has none, the check is left out
 * and the reason recorded. */
void facts_checks_run(facts_runs *runs);

#endif
