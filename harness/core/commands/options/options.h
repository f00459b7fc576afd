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
    const char *cudnn, *device, *where, *with, *guards, *output, *dump, *standalone, *plan_dir,
        *oracle, *nvrtc;
    int jobs, shard, shards; /* shard 1..shards; shards 0: not sharded */
    double timeout_s;
    const char *liar, *dtype;
    int clean, seed; /* -1: not given */
    int first;
    bool quick, markdown;
    const char *draws, *by;
    double minutes;           /* 0: not given */
    int cases, steps, rounds; /* 0: not given */
    bool all, decide, run, turns, twice, known, pinned_only, frontend;
    bool json, bundle, count, each, resume, overwrite, fail_fast, plan, explain, trace,
        first_bad_only;
    bool help;
} facts_options;

/* X(SYMBOL, "name", function, "arguments", "one line of help", "example", "example"). The commands
 * of facts_command_python are Python's (reports/facts_reports), with their options and examples. */
#define FACTS_COMMAND_LIST(X)                                                                      \
    X(MATRIX, "matrix", facts_command_python, "[CASES...]",                                        \
      "ask several cuDNN builds on two devices (default: suite smoke); write a page", NULL, NULL)  \
    X(DOCTOR, "doctor", facts_command_doctor, "",                                                  \
      "show GPUs, driver and cuDNN builds; compile one plan as a test", "facts doctor",            \
      "facts doctor --json")                                                                       \
    X(LIST, "list", facts_command_list, "[CASES...]",                                              \
      "expand cases, one canonical name a line; without CASES: list the suites", "facts list",     \
      "facts list 'pass=fwd,bwd d=64,128 mask=causal'")                                            \
    X(KEYS, "keys", facts_command_keys, "[KEY]",                                                   \
      "the keys of the case language, with values and defaults", "facts keys", "facts keys mask")  \
    X(DEVICES, "devices", facts_command_devices, "",                                               \
      "the described GPUs, and what they stand for", "facts devices",                              \
      "facts decide smoke --device sm100-spec")                                                    \
    X(DECIDE, "decide", facts_command_decide, "CASES...",                                          \
      "ask cuDNN: accepted, by which engines, or why not; needs no GPU",                           \
      "facts decide 'pass=fwd d=256 mask=causal' --cudnn 9.20.0,9.27.0 --device h100-sxm",         \
      "facts decide 'pass=fwd d=100' --device h100-sxm --explain")                                 \
    X(COMPILE, "compile", facts_command_compile, "CASES...",                                       \
      "make plans for a later `facts run`, on a machine without a GPU",                            \
      "facts compile smoke --cudnn 9.27.0 --device h100-sxm --plan-dir plans",                     \
      "facts compile core --cudnn 9.27.0 --device h100-sxm --plan-dir plans --shard 1/4")          \
    X(RUN, "run", facts_command_run, "CASES...",                                                   \
      "compile, execute, and compare with the reference results",                                  \
      "facts run smoke --cudnn 9.27.0 --device 0 -o r.jsonl",                                      \
      "facts run 'pass=bwd d=64 mask=causal' --device cpu")                                        \
    X(REPRO, "repro", facts_command_repro, "CASE",                                                 \
      "one case with everything that is known about it",                                           \
      "facts repro 'pass=bwd s=192 d=64 fill=neglse' --cudnn 9.20.0 --device 0",                   \
      "facts repro 'pass=bwd s=192 d=64 fill=neglse' --device 0 --standalone DIR")                 \
    X(SHRINK, "shrink", facts_command_shrink, "CASE",                                              \
      "find the simplest case that fails the same way",                                            \
      "facts shrink 'pass=bwd b=4 h=1 s=1 mask=causal guards=off' --cudnn 9.27.0 --device "        \
      "h100-sxm",                                                                                  \
      "facts shrink 'pass=fwd h=16/4 d=100' --cudnn 9.27.0 --device h100-sxm --by reason")         \
    X(BENCH, "bench", facts_command_python, "[CASES... | RECORD]",                                 \
      "time the engines of one or more builds on one GPU", NULL, NULL)                             \
    X(GATE, "gate", facts_command_python, "[CASES... | RECORDS]",                                  \
      "may CI move from one cuDNN to another? one answer, at most ten groups", NULL, NULL)         \
    X(DIFF, "diff", facts_command_python, "A B", "compare two records, case by case", NULL, NULL)  \
    X(BISECT, "bisect", facts_command_bisect, "CASE",                                              \
      "find the cuDNN version where an answer changed",                                            \
      "facts bisect 'pass=fwd d=512' --cudnn 9.8..9.28",                                           \
      "facts bisect 'pass=fwd' --cudnn 9.8..9.28 --device sm120-spec --by engines --all")          \
    X(FUZZ, "fuzz", facts_command_fuzz, "", "draw random cases; shrink and describe what fails",   \
      "facts fuzz --minutes 10 --cudnn 9.27.0 --device 0 -o fuzz.jsonl",                           \
      "facts fuzz --cases 300 --where pass=bwd --cudnn 9.27.0 --device h100-sxm")                  \
    X(IMPORT, "import", facts_command_import, "LOG...",                                            \
      "turn logs of cuDNN or cudnn-frontend into cases", "facts import fe.log",                    \
      "facts import fe.log --decide --cudnn 9.20.0,9.27.0 --device h100-sxm")                      \
    X(AUDIT, "audit", facts_command_python, "[CLAIMS...]",                                         \
      "compare the support rules of other projects with cuDNN's answers", NULL, NULL)              \
    X(EXPECT, "expect", facts_command_python, "golden [check|add]",                                \
      "print, compare or extend the golden matrix of supported cases", NULL, NULL)                 \
    X(KNOWN, "known", facts_command_python, "CASE|list|show|check|propose|note [...]",             \
      "show what is known of a case; list, show and check known failures", NULL, NULL)             \
    X(MERGE, "merge", facts_command_python, "IN...", "merge records and list missing rows", NULL,  \
      NULL)                                                                                        \
    X(SELF, "self", facts_command_self, "[SUITES...]",                                             \
      "run a kernel with planted faults; show which suite turns red for which",                    \
      "facts self --quick --dtype bf16", "facts self numbers core --dtype bf16")                   \
    X(CALIBRATE, "calibrate", facts_command_python, "CASES...",                                    \
      "fit the constants of the error model to the errors of an engine", NULL, NULL)               \
    X(REPORT, "report", facts_command_python, "IN... -o DIR",                                      \
      "write the HTML page, CSV, JSON, Markdown and JUnit from records", NULL, NULL)               \
    X(CUDNN, "cudnn", facts_command_cudnn, "list|install|lock|remove|path",                        \
      "list, install, lock and remove cuDNN builds", "facts cudnn list",                           \
      "facts cudnn install 9.27.0")                                                                \
    X(ADOPT, "adopt", facts_command_python, "VERSION",                                             \
      "adopt a new cuDNN release: lock, install, gate, golden matrix", NULL, NULL)

#define AS_ENUM(symbol, ...) FACTS_COMMAND_##symbol,
typedef enum facts_command { FACTS_COMMAND_LIST(AS_ENUM) FACTS_COMMAND_COUNT } facts_command;
#undef AS_ENUM

/* Returns FACTS_COMMAND_COUNT if `word` is no command. One line on `err` then names the nearest
 * command, or the later version that has it. */
facts_command facts_command_parse(const char *word, FILE *err);

/* Parses the arguments of a command. Returns false with one line on `err`. */
bool facts_options_parse(facts_options *out, facts_command command, int argc, char **argv,
                         FILE *err);
void facts_options_free(facts_options *options);
/* Prints the --help of a command of C; FACTS_COMMAND_COUNT prints the list of all commands. */
void facts_options_help(facts_command command, FILE *out);
/* Prints a line of JSON for each command, for `facts help markdown` and the like, which Python
 * prints. */
void facts_options_json(FILE *out);
/* The two examples that end a command's help; NULL: Python has them. */
const char *const *facts_options_examples(facts_command command);

#endif
