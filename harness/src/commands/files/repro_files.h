/* The folder that `facts repro --dump` writes: every tensor, and a script that checks them. */
#ifndef FACTS_REPRO_FILES_H
#define FACTS_REPRO_FILES_H

#include "builds/home.h"
#include "commands/session/options.h"

typedef struct facts_repro_files {
    char dump[FACTS_PATH]; /* full path */
} facts_repro_files;

/* Makes the folder with its parents, puts check.py into it, and points the option at it. Returns an exit code. */
int facts_repro_files_begin(facts_repro_files *out, facts_options *options);

#endif
