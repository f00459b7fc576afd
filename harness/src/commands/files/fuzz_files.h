/* Gives the findings of fuzz and shrink to the report package. For each bucket it writes
 * RECORD.findings/ID.known (a file for cases/known) and ID.md (a paragraph for a report), or it
 * prints the paragraph. */
#ifndef FACTS_FUZZ_FILES_H
#define FACTS_FUZZ_FILES_H

#include "commands/session/search_session.h"
#include "record/text.h"

typedef struct facts_fuzz_files {
    const facts_search *search;
    char folder[FACTS_PATH]; /* "": the paragraphs are printed */
    char origin[96];         /* "facts fuzz --seed 7" */
    facts_findings *findings;
    const facts_bucket *bucket; /* instead of findings */
} facts_fuzz_files;

/* The folder beside a record. */
void facts_fuzz_files_folder(char out[FACTS_PATH], const char *record);
/* Writes one finding as members of a JSON object for the record. `rank` is its place in the list,
 * from 1. */
void facts_fuzz_files_finding(facts_text *out, const facts_bucket *bucket, size_t rank);
/* Returns the report package's exit code: 0, or 3 with a line on stderr. */
int facts_fuzz_files_write(const facts_fuzz_files *files);

#endif
