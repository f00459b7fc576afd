/* The folders that `facts repro` writes: --dump (every tensor, and a script that checks them) and
 * --standalone (a program without FACTS). */
#ifndef FACTS_REPRO_FILES_H
#define FACTS_REPRO_FILES_H

#include <stdbool.h>
#include <stdio.h>

#include "commands/options/options.h"
#include "supervisor/order.h"

typedef struct facts_repro_files {
    char dump[FACTS_PATH], folder[FACTS_PATH],
        data[FACTS_PATH]; /* full paths; data: what the worker writes for a program */
    FILE *rows;           /* the answers, for the program's README */
    char trouble[300];    /* why a file of the worker is missing */
    bool dumped;          /* some row has a dump */
    bool made;            /* `data` was not there before */
} facts_repro_files;

/* Makes the folders and their parents, puts check.py beside the dump, and sets the options to full
 * paths. Returns an exit code. */
int facts_repro_files_begin(facts_repro_files *out, facts_options *options);
void facts_repro_files_row(facts_repro_files *files, const facts_outcome *outcome);
/* Writes the program. Returns `status`, the exit code of the run, or a worse exit code. */
int facts_repro_files_end(facts_repro_files *files, const facts_options *options, int status);

#endif
