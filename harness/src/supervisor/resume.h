/* What a record already holds of a plan: which (case, build, device) have their rows, and what was started before. */
#ifndef FACTS_RESUME_H
#define FACTS_RESUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/words/fail.h"
#include "record/reader.h"
#include "validity.h"

typedef struct facts_resume facts_resume;

typedef struct facts_resume_state {
    bool
        done; /* all its rows are there; rows that say not_run do not count, nor does a case that was late through us in some row */
    int from_config; /* with engine=all: the first configuration that has no row; 0 of what is asked again */
    int attempts;    /* starts so far */
} facts_resume_state;

/* Reads a record. Returns 0; 2 when its suite hash is another (`suite_hash`; NULL: any) or a newer FACTS wrote it; 3 when it cannot
 * be read. One line in `error`. A file that does not exist is an empty record. Only what was earned by `targets` counts (NULL:
 * all).
 */
int facts_resume_read(facts_resume **out, const char *path, const char *suite_hash, const facts_targets *targets,
                      facts_error *error);
facts_resume_state facts_resume_get(const facts_resume *resume, const char *name, const char *build, const char *device);
/* Calls `each` with every line of the record but rows and starts that do not count, in the file's order. */
bool facts_resume_rows(facts_resume *resume, bool (*each)(void *context, const facts_line *row), void *context);
void facts_resume_free(facts_resume *resume);

#endif
