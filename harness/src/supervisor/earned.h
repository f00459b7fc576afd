/* Which answers of a record still hold: those of the very libraries, device, driver and worker that would be asked now. */
#ifndef FACTS_EARNED_H
#define FACTS_EARNED_H

#include "record/reader.h"
#include "target.h"

/* Fills target->content: a hash of every byte of the build's libraries, of its NVRTC, of the driver (of a GPU: what /proc says of
 * it), of the description, of cases/errata.json and of the worker. "" where one of the files cannot be read: then no answer holds.
 */
void facts_target_identify(facts_target *target, const char *worker);

/* To be asked now. */
typedef struct facts_earned_asked {
    const facts_target *target;
} facts_earned_asked;

/* Zero: every answer holds. */
typedef struct facts_earned {
    facts_earned_asked *targets;
    struct facts_earned_target *known;
    size_t target_count, known_count, capacity;
    bool sorted;
    uint64_t stale; /* rows that do not hold */
} facts_earned;

/* One more target, which outlives this. False: out of memory. */
bool facts_earned_add(facts_earned *earned, const facts_target *target);
/* For each line of a record, in order. False: a row or a start of other libraries. */
bool facts_earned_line(facts_earned *earned, const facts_line *line);
/* A line for people, where answers do not hold. */
void facts_earned_say(const facts_earned *earned, const char *path);
void facts_earned_free(facts_earned *earned);

#endif
