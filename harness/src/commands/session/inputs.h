/* What the words of a command line name: the whole line, one case, a record. */
#ifndef FACTS_INPUTS_H
#define FACTS_INPUTS_H

#include "case/language/case.h"
#include "commands/options/options.h"
#include "record/reader.h"

/* The whole command line goes along: it stands in the record. */
typedef struct facts_invocation {
    const facts_options *options;
    int argc;
    char **argv;
} facts_invocation;

/* The one case that a command takes. Returns an exit code; says why on stderr. */
int facts_read_case(const char *command, const facts_options *options, facts_case *out);
/* A record, line by line, into `each`. `bad` (may be NULL): how many lines could not be read, which is said. Returns an exit code;
 * says why on stderr, as `who`. */
int facts_read_record(const char *who, const char *path, bool (*each)(void *context, const facts_line *line), void *context,
                      uint64_t *bad);

/* Does this word name a record: NAME.jsonl, packed or not? */
bool facts_is_record_name(const char *word);

#endif
