/* The command line. The parser, --help and the suggestions for misspelled words come from one table
 * of commands and one of options. */
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

/* The parsed command line. Strings belong to the caller's argv. */
typedef struct facts_options {
    const char **words; /* CASES, IN..., owned array of argv's strings */
    size_t word_count;
    const char *cudnn, *device, *where, *with, *output, *dump, *standalone, *plan_dir, *trust_plans,
        *oracle;
    int jobs, shard, shards; /* shard 1..shards; shards 0: not sharded */
    double timeout_s;
    const char *liar, *dtype;
    int clean, seed; /* -1: not given */
    int first;
    bool quick, markdown;
    const char *weights, *from; /* the first of: */
    const char **records;       /* of --from, owned array of argv's strings */
    size_t record_count;
    double minutes;           /* 0: not given */
    int cases, steps, rounds; /* 0: not given */
    const char *baseline, *candidate, *junit, *errata, *page, *fail_on, *by;
    double slower; /* 0: not given */
    bool annotations, all, decide, run, bench, twice;
    bool known, write, pinned_only, frontend;
    const char *source;
    bool json, bundle, count, resume, overwrite, fail_fast, plan, explain, trace, force,
        first_bad_only;
    bool help;
} facts_options;

/* X(SYMBOL, "name", "arguments", "one line of help"). The commands cudnn, report and adopt parse
 * their own options. */
#define FACTS_COMMAND_LIST(X)                                                                      \
    X(MATRIX, "matrix", "",                                                                        \
      "ask several cuDNN builds about suite smoke on two devices; write a page")                   \
    X(DOCTOR, "doctor", "", "show GPUs, driver and cuDNN builds; compile one plan as a test")      \
    X(LIST, "list", "[CASES...]",                                                                  \
      "expand cases, one canonical name a line; without CASES: list the suites")                   \
    X(KEYS, "keys", "[KEY]", "the keys of the case language, with values and defaults")            \
    X(DEVICES, "devices", "", "the described GPUs, and what they stand for")                       \
    X(DECIDE, "decide", "CASES...",                                                                \
      "ask cuDNN: accepted, by which engines, or why not; needs no GPU")                           \
    X(COMPILE, "compile", "CASES...",                                                              \
      "make plans for a later `facts run`, on a machine without a GPU")                            \
    X(RUN, "run", "CASES...", "compile, execute, and compare with the reference results")          \
    X(REPRO, "repro", "CASE", "one case with everything that is known about it")                   \
    X(SHRINK, "shrink", "CASE", "find the simplest case that fails the same way")                  \
    X(BENCH, "bench", "[CASES... | RECORD]", "time the engines of one or more builds on one GPU")  \
    X(GATE, "gate", "[CASES... | RECORDS]",                                                        \
      "may CI move from one cuDNN to another? one answer, at most ten groups")                     \
    X(DIFF, "diff", "A B", "compare two records, case by case")                                    \
    X(BISECT, "bisect", "CASE", "find the cuDNN version where an answer changed")                  \
    X(FUZZ, "fuzz", "", "draw random cases; shrink and describe what fails")                       \
    X(IMPORT, "import", "LOG...", "turn logs of cuDNN or cudnn-frontend into cases")               \
    X(AUDIT, "audit", "[CLAIMS...]",                                                               \
      "compare the support rules of other projects with cuDNN's answers")                          \
    X(EXPECT, "expect", "golden [check|add]",                                                      \
      "print, compare or extend the golden matrix of supported cases")                             \
    X(KNOWN, "known", "list|show|check|propose|note [...]",                                        \
      "list, show and check known failures, or add one")                                           \
    X(MERGE, "merge", "IN...", "join records; name what is missing")                               \
    X(SELF, "self", "", "run kernels that are wrong on purpose; show which ones FACTS finds")      \
    X(CALIBRATE, "calibrate", "CASES...",                                                          \
      "fit the constants of the error model to the errors of an engine")                           \
    X(REPORT, "report", "IN... -o DIR",                                                            \
      "write the HTML page, CSV, JSON, Markdown and JUnit from records")                           \
    X(CUDNN, "cudnn", "list|install|lock|remove|path",                                             \
      "list, install, lock and remove cuDNN builds")                                               \
    X(ADOPT, "adopt", "VERSION", "adopt a new cuDNN release: lock, install, gate, golden matrix")

#define AS_ENUM(symbol, name, rest, help) FACTS_COMMAND_##symbol,
typedef enum facts_command { FACTS_COMMAND_LIST(AS_ENUM) FACTS_COMMAND_COUNT } facts_command;
#undef AS_ENUM

/* Returns FACTS_COMMAND_COUNT if `word` is no command. One line on `err` then names the nearest
 * command, or the later version that has it. */
facts_command facts_command_parse(const char *word, FILE *err);

/* Parses the arguments of a command. Returns false with one line on `err`. */
bool facts_options_parse(facts_options *out, facts_command command, int argc, char **argv,
                         FILE *err);
void facts_options_free(facts_options *options);
/* Prints the --help of a command; FACTS_COMMAND_COUNT prints that of all commands. */
void facts_options_help(facts_command command, FILE *out);
/* The two examples that end a command's help. */
const char *const *facts_options_examples(facts_command command);
/* `facts help WORDS...`: the help of a command, or of all commands in another form (markdown, man
 * COMMAND, bash, zsh, fish, names). Returns an exit code, with one line on `err` if it does not
 * know the words. */
int facts_help(int argc, char **argv, FILE *out, FILE *err);

#endif
