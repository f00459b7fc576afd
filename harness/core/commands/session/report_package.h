/* Runs the report package (reports/facts_reports), which is a separate Python program. */
#ifndef FACTS_REPORT_PACKAGE_H
#define FACTS_REPORT_PACKAGE_H

#include <stdio.h>

#include "builds/home.h"

/* Runs the view `view` of the report package over a file, with one more word (may be NULL). Returns
 * its exit code. */
int facts_run_report(const char *view, const char *path, const char *more);
/* Gives the JSON lines of `write` to the view `view` of the report package, which prints them.
 * Returns its exit code, or 3 if the lines cannot be written. */
int facts_run_view(const char *view, void (*write)(const void *subject, FILE *out),
                   const void *subject);
#endif
