/* Which rows of a record are still valid: those of the same libraries, device, driver and worker as
 * now. */
#ifndef FACTS_VALIDITY_H
#define FACTS_VALIDITY_H

#include "record/reader.h"
#include "target.h"
#include "words/intern.h"

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
