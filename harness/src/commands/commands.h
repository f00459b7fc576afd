/* The commands: each takes its options and returns an exit code. */
#ifndef FACTS_COMMANDS_H
#define FACTS_COMMANDS_H

#include "commands/session/inputs.h"
#include "commands/session/report_package.h"
#include "commands/session/session.h"

int facts_command_list(const facts_invocation *call);
int facts_command_keys(const facts_invocation *call);
int facts_command_devices(const facts_invocation *call);
int facts_command_decide(const facts_invocation *call);
int facts_command_compile(const facts_invocation *call);
int facts_command_run(const facts_invocation *call);
int facts_command_repro(const facts_invocation *call);
int facts_command_doctor(const facts_invocation *call);
int facts_command_matrix(const facts_invocation *call);
int facts_command_shrink(const facts_invocation *call);
int facts_command_fuzz(const facts_invocation *call);
int facts_command_bench(const facts_invocation *call);
int facts_command_gate(const facts_invocation *call);
int facts_command_diff(const facts_invocation *call);
int facts_command_bisect(const facts_invocation *call);
int facts_command_import(const facts_invocation *call);
int facts_command_audit(const facts_invocation *call);
int facts_command_expect(const facts_invocation *call);
int facts_command_known(const facts_invocation *call);
int facts_command_merge(const facts_invocation *call);
int facts_command_calibrate(const facts_invocation *call);
int facts_command_self(const facts_invocation *call); /* of facts-self */
/* Its words go to the Python package as they are. */
int facts_command_report(int argc, char **argv);
/* Its words go to ci/adopt.py as they are. */
int facts_command_adopt(int argc, char **argv);

/* Parses what follows argv[1], the command; prints its help or runs it. Returns its exit code. */
int facts_invoke(facts_command command, int argc, char **argv,
                 int (*run)(facts_command command, const facts_invocation *call));
/* Replaces this process by the program of that name in the same folder, with the same arguments.
 * Returns 3 only if it fails. */
int facts_invoke_program(const char *name, char **argv);

/* Runs a prepared session whose targets take turns (facts bench, facts gate --bench). twice: each
 * target has two workers. */
int facts_bench(facts_session *session, bool twice);
/* Opens the folder of --plan-dir, and makes it if it is missing. Returns an exit code; a folder
 * that other users can write to is refused. */
int facts_open_plan_dir(char out[FACTS_PATH], facts_options *options);

/* Runs the report package over the records that `diff` and `gate` compare. `command` is the
 * command's name in messages. `unasked` (may be NULL) says why there is no record; `facts gate`
 * then answers that it does not know, in the form that the options ask for. */
int facts_run_diff(const char *command, const facts_options *options, const char *unasked,
                   const char *const *records, size_t count);

#endif
