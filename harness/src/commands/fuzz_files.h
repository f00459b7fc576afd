/* What fuzz leaves beside its record: of each bucket RECORD.findings/ID.known (a file for cases/known) and ID.md (a paragraph for a
 * report). */
#ifndef FACTS_FUZZ_FILES_H
#define FACTS_FUZZ_FILES_H

#include "commands/session/hunt.h"

typedef struct facts_fuzz_files {
    const facts_hunt *hunt;
    char folder[FACTS_PATH];
    char origin[96];
    bool failed; /* something could not be written; it was said */
} facts_fuzz_files;

int facts_fuzz_files_open(facts_fuzz_files *files, const facts_hunt *hunt, uint64_t seed);
/* Those of the buckets that have news, each aside and renamed. */
void facts_fuzz_files_write(facts_fuzz_files *files, facts_findings *findings);

#endif
