/* Runs the Python parts of FACTS: the reports and the installer. Standard input is empty; the
 * output goes to this program's output. */
#ifndef FACTS_PYTHON_H
#define FACTS_PYTHON_H

#include <stddef.h>

#include "home.h"

/* Runs $FACTS_PYTHON (./facts sets it to its own environment), otherwise python3. `argv` ends with
 * NULL and does not contain the interpreter: a script's path and its arguments, or "-m",
 * "facts_reports", .... PYTHONPATH is reports/, where a bundle also has Jinja2. Returns the
 * program's exit code, or 3 with a line in *message if it could not be run or was ended by a
 * signal. */
int facts_python_run(const char *const argv[], facts_error *message);

/* Replaces this process by it, with an empty standard input. Returns 3 with a line in *message if
 * it cannot. */
int facts_python_become(const char *argv[], facts_error *message);

/* As facts_python_run, and keeps the first bytes - 1 bytes of its output, without the end of the
 * line. */
int facts_python_ask(const char *const argv[], char *out, size_t bytes, facts_error *message);

#endif
