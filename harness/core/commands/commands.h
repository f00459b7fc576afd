/* The commands: each takes its options and returns an exit code. */
#ifndef FACTS_COMMANDS_H
#define FACTS_COMMANDS_H

#include "commands/session/inputs.h"
#include "commands/session/report_package.h"
#include "commands/session/session.h"

#define AS_PROTOTYPE(symbol, name, run, ...) int run(const facts_invocation *call);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls" /* several commands are Python's */
FACTS_COMMAND_LIST(AS_PROTOTYPE)
#pragma GCC diagnostic pop
#undef AS_PROTOTYPE

/* The whole program. Returns its exit code. */
int facts_run(const facts_driver *driver, int argc, char **argv);
/* Parses what follows argv[1], the command; prints its help or runs it. Returns its exit code. */
int facts_invoke(const facts_driver *driver, facts_command command, int argc, char **argv,
                 int (*run)(const facts_invocation *call));

#endif
