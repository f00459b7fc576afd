/* The part of a plan that a record already answers: the (case, build, device) that have their rows,
 * and those that were started. */
#ifndef FACTS_RESUME_H
#define FACTS_RESUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/reader.h"
#include "target.h"
#include "words/fail.h"
#include "words/intern.h"

typedef struct facts_resume facts_resume;

typedef struct facts_resume_state {
    bool done;       /* all its rows are there, and it did not time out in FACTS */
    int from_config; /* with engine=all: the first configuration without a row; 0 for a case that is
                        asked again */
    int attempts;    /* starts so far */
} facts_resume_state;

/* Reads a record. Returns 0; 2 if its suite hash differs from `suite_hash` (NULL: any), its guards
 * from `unguarded`, or a newer FACTS wrote it; 3 if it cannot be read. One line in `error`. A missing file is an empty record.
 * Only rows that are still valid for `targets` count (NULL: all rows;
 * facts_validity). */
int facts_resume_read(facts_resume **out, const char *path, const char *suite_hash, bool unguarded,
                      const facts_targets *targets, facts_error *error);
facts_resume_state facts_resume_get(const facts_resume *resume, const char *name, const char *build,
                                    const char *device);
/* Calls `each` for every line of the record in order, except rows and starts that do not count. */
bool facts_resume_rows(facts_resume *resume, bool (*each)(void *context, const facts_line *row),
                       void *context);
void facts_resume_free(facts_resume *resume);

/* Which rows of a record are still valid: those of the same libraries, device, driver and worker as
 * now. */
/* Fills the target's hashes. Its libraries_hash and description_hash are "" without such a part. Its content is a hash of every byte of the build's libraries, its NVRTC, the driver (of a
 * GPU: the version in /proc), the description and the worker. "" if one of the
 * files cannot be read; then no row is valid. */
void facts_target_identify(facts_target *target, const char *worker);

/* Zero: every row is valid. */
typedef struct facts_validity {
    const facts_target **targets; /* of the present run */
    facts_intern *known;          /* targets of the record's runs */
    bool *holds;                  /* of each of these */
    size_t target_count, known_count;
    uint64_t stale; /* rows that are not valid */
} facts_validity;

/* Adds a target, which must outlive this. */
void facts_validity_add(facts_validity *validity, const facts_target *target);
/* Call it for each line of a record, in order. False: a row or a start of other libraries. */
bool facts_validity_line(facts_validity *validity, const facts_line *line);
/* Prints a line for people if rows are not valid. */
void facts_validity_say(const facts_validity *validity, const char *path);
void facts_validity_free(facts_validity *validity);

#endif
