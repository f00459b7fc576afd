/* The implementations of the ways; exec.c chooses one. Each makes its runs over poison B and
 * compares them with the first run. */
#ifndef FACTS_EXEC_WAYS_H
#define FACTS_EXEC_WAYS_H

#include "runs.h"

void facts_exec_graph(facts_runs *runs); /* exec_graph.c: captured, updated, native */
void facts_exec_overridden(
    facts_runs *runs); /* exec_override.c: a plan of a larger shape, run with this one */

#endif
