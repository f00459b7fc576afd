/* The commands: each takes its options and returns an exit code. */
#ifndef FACTS_COMMANDS_H
#define FACTS_COMMANDS_H

#include "session.h"

/* The whole command line goes along: it stands in the record. */
typedef struct facts_invocation {
    const facts_options *options;
    int argc;
    char **argv;
} facts_invocation;

int facts_command_list(const facts_invocation *call);
int facts_command_decide(const facts_invocation *call);
int facts_command_run(const facts_invocation *call);
int facts_command_repro(const facts_invocation *call);
int facts_command_doctor(const facts_invocation *call);
int facts_command_matrix(const facts_invocation *call);
int facts_command_shrink(const facts_invocation *call);
int facts_command_fuzz(const facts_invocation *call);
int facts_command_merge(const facts_invocation *call);
int facts_command_calibrate(const facts_invocation *call);
int facts_command_self(const facts_invocation *call);
/* Its words go to the Python package as they are. */
int facts_command_report(int argc, char **argv);

/* Runs the report package over words; waits. Returns its exit code, 3 when it cannot be started. */
int facts_run_report(const char *const *words, size_t count);

#endif
