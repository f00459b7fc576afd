/* How long a case is launched again: until the median of every configuration of every target is known well (docs/bench.md). */
#ifndef FACTS_ROUNDS_H
#define FACTS_ROUNDS_H

#include "commands/session/session.h"

#define FACTS_ROUNDS_LEAST 16 /* fewer cannot show anything at an error rate of 1 in 2,000 */
#define FACTS_ROUNDS_MOST 64

typedef struct facts_rounds facts_rounds;

/* Half the width of the 95 % interval of the median of `count` values, as a share of the median: by order statistics, whatever the
 * distribution. Sorts the values. 1: too few values to say. Pure. */
double facts_median_uncertainty(double *values, int count);

/* Makes `session` one whose cases are launched in turns; session->targets must be there. With `twice` every target is there two
 * times: what the two differ by is noise. NULL with a line on stderr. */
facts_rounds *facts_rounds_begin(facts_session *session, bool twice);
/* Turns that were measured; 0: nothing can be said. */
size_t facts_rounds_turns(const facts_rounds *rounds);
void facts_rounds_free(facts_rounds *rounds);

#endif
