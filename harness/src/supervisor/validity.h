/* Which answers of a record still hold: those of the very libraries, device, driver and worker that would be asked now. */
#ifndef FACTS_VALIDITY_H
#define FACTS_VALIDITY_H

#include "record/reader.h"
#include "target.h"

/* Fills target->content: a hash of every byte of the build's libraries, of its NVRTC, of the driver (of a GPU: what /proc says of
 * it), of the description, of cases/errata.json and of the worker. "" where one of the files cannot be read: then no answer holds.
 */
void facts_target_identify(facts_target *target, const char *worker);

/* To be asked now. */
typedef struct facts_validity_asked {
    const facts_target *target;
} facts_validity_asked;

/* Zero: every answer holds. */
typedef struct facts_validity {
    facts_validity_asked *targets;
    struct facts_validity_target *known;
    size_t target_count, known_count, capacity;
    bool sorted;
    uint64_t stale; /* rows that do not hold */
} facts_validity;

/* One more target, which outlives this. False: out of memory. */
bool facts_validity_add(facts_validity *validity, const facts_target *target);
/* For each line of a record, in order. False: a row or a start of other libraries. */
bool facts_validity_line(facts_validity *validity, const facts_line *line);
/* A line for people, where answers do not hold. */
void facts_validity_say(const facts_validity *validity, const char *path);
void facts_validity_free(facts_validity *validity);

#endif
