/* The part of a plan that a record already answers: the (case, build, device) that have their rows,
 * and those that were started. */
#ifndef FACTS_RESUME_H
#define FACTS_RESUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/reader.h"
#include "validity.h"
#include "words/fail.h"

typedef struct facts_resume facts_resume;

typedef struct facts_resume_state {
    bool done;       /* all its rows are there, and it did not time out in FACTS */
    int from_config; /* with engine=all: the first configuration without a row; 0 for a case that is
                        asked again */
    int attempts;    /* starts so far */
} facts_resume_state;

/* Reads a record. Returns 0; 2 if its suite hash differs from `suite_hash` (NULL: any), its guards
 * from `unguarded`, or a newer FACTS wrote it; 3 if it cannot be read. One line in `error`. A missing file is an empty record.
 * Only rows that are still valid for `targets` count (NULL: all rows; validity.h). */
int facts_resume_read(facts_resume **out, const char *path, const char *suite_hash, bool unguarded,
                      const facts_targets *targets, facts_error *error);
facts_resume_state facts_resume_get(const facts_resume *resume, const char *name, const char *build,
                                    const char *device);
/* Calls `each` for every line of the record in order, except rows and starts that do not count. */
bool facts_resume_rows(facts_resume *resume, bool (*each)(void *context, const facts_line *row),
                       void *context);
void facts_resume_free(facts_resume *resume);

#endif
