/* Reads the inputs that a command line names: one case, or a record. */
#ifndef FACTS_INPUTS_H
#define FACTS_INPUTS_H

#include "commands/options/options.h"
#include "driver/driver.h"
#include "record/reader.h"

/* The command line. The record stores all of it. */
typedef struct facts_invocation {
    const facts_driver *driver;
    const facts_options *options;
    int argc;
    char **argv;
} facts_invocation;

/* Reads the only case of a command. Returns an exit code, with a line on stderr. */
int facts_read_case(const char *command, const facts_invocation *call, facts_case *out);
/* Gives each line of a record to `each`. *bad (may be NULL) is the number of lines that could not
 * be read; a line on stderr says it. Returns an exit code, with a line on stderr that begins with
 * `who`. */
int facts_read_record(const char *who, const char *path,
                      bool (*each)(void *context, const facts_line *line), void *context,
                      uint64_t *bad);

/* The line on stderr that ends a failed command. Prints it and returns `status`: return facts_complain(FACTS_EXIT_BAD_INPUT, "facts
 * run: …"). */
int facts_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
