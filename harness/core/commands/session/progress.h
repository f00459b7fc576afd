/* Shows progress on stderr: a bar on a terminal, otherwise a line from time to time. */
#ifndef FACTS_PROGRESS_H
#define FACTS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct facts_progress {
    bool terminal, quiet, drawn;
    double started_ms, last_ms;
    size_t first_done; /* there already when it began */
    size_t yes, no, findings;
    const char *group; /* of the suite, of the newest row; NULL: not known */
} facts_progress;

void facts_progress_start(facts_progress *progress, bool quiet);
void facts_progress_show(facts_progress *progress, size_t done, size_t planned, int live);
/* The same for work without a known end: shows the given line. */
void facts_progress_say(facts_progress *progress, const char *text);
void facts_progress_end(facts_progress *progress); /* wipes the bar */

#endif
