/* The command line. One table of commands and one of options give the parser, --help and the nearest-word hints. */
#ifndef FACTS_OPTIONS_H
#define FACTS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum facts_exit {
    FACTS_EXIT_OK = 0, /* all as expected */
    FACTS_EXIT_FINDINGS = 1,
    FACTS_EXIT_BAD_INPUT = 2,
    FACTS_EXIT_ENVIRONMENT = 3, /* the environment cannot do it */
    FACTS_EXIT_INCOMPLETE = 4,
    FACTS_EXIT_NOTHING = 5, /* nothing was selected */
    FACTS_EXIT_INTERRUPTED = 130
} facts_exit;

/* What was said on the command line. Strings are the caller's argv. */
typedef struct facts_options {
    const char **words; /* CASES, IN..., owned array of argv's strings */
    size_t word_count;
    const char *cudnn, *device, *where, *with, *output, *dump, *standalone, *plan_dir, *trust_plans, *oracle;
    int jobs, shard, shards; /* shard 1..shards; shards 0: not sharded */
    double timeout_s;
    const char *liar, *dtype;
    int clean, seed; /* -1: not said */
    int first;
    bool quick, markdown;
    const char *weights, *from; /* the first of: */
    const char **records;       /* of --from, owned array of argv's strings */
    size_t record_count;
    double minutes;   /* 0: not said */
    int cases, steps; /* 0: not said */
    const char *baseline, *candidate, *junit, *errata, *fail_on, *by;
    double slower; /* 0: not said */
    bool annotations, all, decide, run, bench, twice;
    bool known, write, pinned_only, frontend;
    const char *source;
    bool json, count, resume, overwrite, fail_fast, plan, explain, trace, force, first_bad_only;
    bool help;
} facts_options;

/* X(SYMBOL, "name", "what follows it", "one line")  Commands that take this table's options; cudnn and report have their own. */
#define FACTS_COMMAND_LIST(X)                                                                                                      \
    X(MATRIX, "matrix", "", "the main job: several cuDNN builds x suite smoke x devices; records and a report")                    \
    X(DOCTOR, "doctor", "", "what is here and what can be run: GPUs, driver, builds; compiles one plan to prove it")               \
    X(LIST, "list", "CASES...", "expand; one canonical name a line")                                                               \
    X(DECIDE, "decide", "CASES...", "ask each cuDNN for each device: accepted, by which engines, or why not (needs no GPU)")       \
    X(COMPILE, "compile", "CASES...",                                                                                              \
      "make the plans of a later `facts run` on any machine, without a GPU; what is in --plan-dir already is kept")                \
    X(RUN, "run", "CASES...", "compile, execute, compare with the reference, judge")                                               \
    X(REPRO, "repro", "CASE", "one case with everything that is known about it")                                                   \
    X(SHRINK, "shrink", "CASE", "the simplest case that fails the same way, and the path to it")                                   \
    X(BENCH, "bench", "[CASES...]",                                                                                                \
      "times of every engine, the builds in turns on one device: what is slower, what is fastest (default: suite bench)")          \
    X(GATE, "gate", "[CASES... | RECORDS]",                                                                                        \
      "may CI move from one cuDNN to another? one answer, and what changed in at most ten rows")                                   \
    X(DIFF, "diff", "A B", "what changed between two records, case by case, by class and likely cause")                            \
    X(BISECT, "bisect", "CASE", "the last good and the first bad version, each edge asked twice")                                  \
    X(FUZZ, "fuzz", "", "draw cases over all axes, ask, judge; what fails is shrunk and written down once")                        \
    X(IMPORT, "import", "LOG...", "cases out of cudnn-frontend's logs, cuDNN's own logs and plans")                                \
    X(AUDIT, "audit", "[CLAIMS...]", "what others say is supported, held against what cuDNN answers on both sides of each rule")   \
    X(EXPECT, "expect", "golden [check|add]",                                                                                      \
      "the golden support matrix: made, compared with the reviewed one, extended by a version")                                    \
    X(KNOWN, "known", "list|show|check|propose|note [...]",                                                                        \
      "the known failures: what fails, in which versions; check asks a build about each of them")                                  \
    X(MERGE, "merge", "IN...", "join records; refuses other suites, names what is missing")                                        \
    X(SELF, "self", "", "the liars: which kernels that are wrong on purpose are found, and how often a right one is called wrong") \
    X(CALIBRATE, "calibrate", "CASES...",                                                                                          \
      "what engines' errors say about the constants of the error model: rows for cases/calibration.json")                          \
    X(REPORT, "report", "IN... -o DIR", "the HTML page, CSV, JSON, Markdown and JUnit from records")                               \
    X(CUDNN, "cudnn", "list|install|lock|remove|path", "cuDNN builds: found, installable, installed; versions into ci/cudnn.lock") \
    X(ADOPT, "adopt", "VERSION",                                                                                                   \
      "a new cuDNN release: lock, install, known failures, gate, golden matrix; a summary for a pull request")

#define AS_ENUM(symbol, name, rest, help) FACTS_COMMAND_##symbol,
typedef enum facts_command { FACTS_COMMAND_LIST(AS_ENUM) FACTS_COMMAND_COUNT } facts_command;
#undef AS_ENUM

/* FACTS_COMMAND_COUNT with one line on `err` when it is no command (the nearest is named), or one of a later version. */
facts_command facts_command_parse(const char *word, FILE *err);

/* Parses what follows the command. False with one line on `err`. */
bool facts_options_parse(facts_options *out, facts_command command, int argc, char **argv, FILE *err);
void facts_options_free(facts_options *options);
/* --help of a command, or of all (FACTS_COMMAND_COUNT). */
void facts_options_help(facts_command command, FILE *out);

#endif
