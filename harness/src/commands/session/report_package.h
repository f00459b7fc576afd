/* How commands call the report package (reports/facts_reports), a Python program of its own. */
#ifndef FACTS_REPORT_PACKAGE_H
#define FACTS_REPORT_PACKAGE_H

#include <stdio.h>

#include "builds/home.h"

/* What mkstemp and mkdtemp take, below $TMPDIR, else /tmp. False: the path is too long. */
bool facts_temporary_template(char out[FACTS_PATH]);
/* A new file below $TMPDIR, else /tmp, for the report package to read: `path` is its name, to unlink(). NULL with a line on stderr.
 */
FILE *facts_open_temporary(char path[FACTS_PATH]);
/* Runs the report package over words; waits. Returns its exit code, 3 when it cannot be started. */
int facts_run_report(const char *const *words, size_t count);
/* What `write` writes (JSON lines), as `view` of the report package prints it. Returns its exit code, 3 when nothing can be handed
 * over. */
int facts_run_view(const char *view, void (*write)(const void *subject, FILE *out), const void *subject);
#endif
