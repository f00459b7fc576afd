/* Decides how often a case is timed: until the median of every configuration of every target is
 * precise enough (docs/bench.md). */
#ifndef FACTS_ROUNDS_H
#define FACTS_ROUNDS_H

#include "commands/session/session.h"

#define FACTS_ROUNDS_LEAST 16 /* with fewer values no interval has an error rate of 1 in 2,000 */
#define FACTS_ROUNDS_MOST 64

typedef struct facts_rounds facts_rounds;

/* Half the width of the 95 % interval of the median of `count` values, as a share of the median.
 * The interval comes from order statistics, so it holds for every distribution. 1: there are too
 * few values. Sorts `values`. Pure. */
double facts_median_uncertainty(double *values, int count);

/* Prepares `session` to launch its cases in turns. session->targets must be complete. With `twice`
 * every target takes part two times, and the difference between the two is noise. */
facts_rounds *facts_rounds_begin(facts_session *session, bool twice);
/* The number of turns that were measured; 0: there is nothing to report. */
size_t facts_rounds_turns(const facts_rounds *rounds);
void facts_rounds_free(facts_rounds *rounds);

#endif
