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
int facts_invoke(facts_command command, int argc, char **argv, int (*run)(facts_command command, const facts_invocation *call));
/* Becomes the program of this name beside this one, with the same words; returns only when it cannot: 3. */
int facts_invoke_program(const char *name, char **argv);

/* Runs a prepared session whose targets take turns (facts bench, facts gate --bench). twice: two workers of each target. */
int facts_bench(facts_session *session, bool twice);
/* The folder that --plan-dir names, made if need be. An exit code: whether it is ours alone is checked. */
int facts_open_plan_dir(char out[FACTS_PATH], facts_options *options);

/* Runs the report package over the records that `diff` and `gate` compare, with the options about the answer. `command` names the
 * command in messages. `unasked` (may be NULL): why there is no record; the answer is then CANNOT TELL in the form that the options
 * want. */
int facts_run_diff(const char *command, const facts_options *options, const char *unasked, const char *const *records,
                   size_t count);

#endif
