/* Running FACTS' own Python: the reports and the installer. Standard input is empty; output goes where ours goes. */
#ifndef FACTS_PYTHON_H
#define FACTS_PYTHON_H

#include <stddef.h>

#include "home.h"

/* Runs $FACTS_PYTHON (./facts sets it to its private environment's), else python3. `argv` ends with NULL, without the interpreter:
 * a script's path and its arguments, or "-m", "facts_reports", .... PYTHONPATH is set to reports/, where a bundle also has Jinja2.
 * Returns the program's exit code; 3 with a line in *message when it could not be run or was ended by a signal. */
int facts_python_run(const char *const argv[], facts_error *message);

/* The same, and keeps what the program prints: the first bytes - 1 of it, without the line's end. */
int facts_python_ask(const char *const argv[], char *out, size_t bytes, facts_error *message);

#endif
