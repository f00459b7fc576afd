/* Runs the report package (reports/facts_reports), which is a separate Python program. */
#ifndef FACTS_REPORT_PACKAGE_H
#define FACTS_REPORT_PACKAGE_H

#include <stdio.h>

#include "builds/home.h"

/* Writes a template for mkstemp and mkdtemp, below $TMPDIR or /tmp. False: the path is too long. */
bool facts_temporary_template(char out[FACTS_PATH]);
/* Opens a new file below $TMPDIR or /tmp for the report package. `path` is its name; the caller
 * unlinks it. NULL with a line on stderr. */
FILE *facts_open_temporary(char path[FACTS_PATH]);
/* Runs the report package with `words` and waits. Returns its exit code, or 3 if it cannot be
 * started. */
int facts_run_report(const char *const *words, size_t count);
/* Gives the JSON lines of `write` to the view `view` of the report package, which prints them.
 * Returns its exit code, or 3 if the lines cannot be written. */
int facts_run_view(const char *view, void (*write)(const void *subject, FILE *out),
                   const void *subject);
#endif
