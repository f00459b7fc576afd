/* Joins records: runs of shards, of machines, of attempts. Of each (case, build, device, backend), and configuration with engine=all, the latest
 * row stays. */
#ifndef FACTS_MERGE_H
#define FACTS_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct facts_merge_request {
    const char *out;
    const char *const *in;
    size_t in_count;
    bool force;     /* different suites are joined all the same */
    bool overwrite; /* replaces what `out` holds */
} facts_merge_request;

typedef struct facts_merge_result {
    uint64_t rows, older; /* written; left out because a later one is there */
    uint64_t bad_lines;   /* that could not be parsed */
    uint64_t unfinished;  /* (case, build, device) that were started and have no row */
    uint64_t missing;     /* planned rows that no file has */
    bool complete;
    char what[1024]; /* what is missing, one line, or empty */
} facts_merge_result;

/* Returns 0; 2 (an input that is not there or no record, mixed suites, `out` exists, an input is `out`), 3 (cannot be written), 4 (written, but
 * incomplete: result->what). One line in `error` for 2 and 3. */
int facts_merge(const facts_merge_request *request, facts_merge_result *result, char *error, size_t capacity);

#endif
