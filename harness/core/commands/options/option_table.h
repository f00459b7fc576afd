/* The options of the commands that are C: the parser, --help and `facts help json` are made from
 * it. */
#ifndef FACTS_OPTION_TABLE_H
#define FACTS_OPTION_TABLE_H

#include "options.h"

typedef enum option_kind {
    FLAG,
    TEXT,
    COUNT,
    NUMBER,
    SECONDS,
    MINUTES,
    SHARD,
    ORACLE,
    BY,
    ELSEWHERE
} option_kind;

#define ON(symbol) (1u << FACTS_COMMAND_##symbol)
#define BATCH (ON(DECIDE) | ON(COMPILE) | ON(RUN))
#define ASKS (BATCH | ON(REPRO))
#define CASES (ASKS | ON(LIST))
#define SEARCHES (ON(SHRINK) | ON(FUZZ))
#define VERSIONS (ON(BISECT) | ON(IMPORT)) /* ask builds, keep a record */
#define EVERY ((1u << FACTS_COMMAND_COUNT) - 1u)

/* ELSEWHERE: `facts cudnn` parses the option itself. */
/* X("name", 'letter', KIND, field, "ARGUMENT", commands, "help"); the help has at most 80
 * characters */
#define OPTION_LIST(X)                                                                             \
    X("cudnn", 0, TEXT, cudnn, "V,V", ASKS | SEARCHES | VERSIONS | ON(DEVICES),                    \
      "builds: 9.20.0, 9.20.0-jit-cu13, 9.12..9.27, a folder, default, latest")                    \
    X("device", 0, TEXT, device, "D,D", ASKS | SEARCHES | VERSIONS,                                \
      "GPU numbers, all (every GPU here), cpu, names of `facts devices`, JSON files")              \
    X("device", 0, TEXT, device, "D,D", ON(DEVICES),                                               \
      "print these devices for scripts: name, kind, sm, build, version")                           \
    X("where", 0, TEXT, where, "EXPR", CASES | ON(FUZZ),                                           \
      "keep the cases that satisfy a predicate: 'd.qk>128 & pass=bwd'")                            \
    X("with", 0, TEXT, with, "KEY=VALUE", BATCH | ON(LIST) | ON(FUZZ),                             \
      "set these keys in every case: 'engine=all'")                                                \
    X("guards", 0, TEXT, guards, "on|off", BATCH,                                                  \
      "on: the library refuses what cuDNN is known to get wrong; default: off, in run on")         \
    X("output", 'o', TEXT, output, "PATH", BATCH | SEARCHES | VERSIONS,                            \
      "write the record to this file")                                                             \
    X("json", 0, FLAG, json, NULL, CASES | ON(DOCTOR) | ON(SELF) | VERSIONS,                       \
      "print one JSON object a line")                                                              \
    X("count", 0, FLAG, count, NULL, ON(LIST), "print only the number of cases")                   \
    X("each", 0, FLAG, each, NULL, ON(LIST),                                                       \
      "patterns only: print the cases of each, none left out, then an empty line")                 \
    X("plan", 0, FLAG, plan, NULL, ON(DECIDE) | SEARCHES | VERSIONS,                               \
      "also compile what cuDNN accepts")                                                           \
    X("explain", 0, FLAG, explain, NULL, ON(DECIDE),                                               \
      "for each refused case, also find the nearest cases that are accepted")                      \
    X("jobs", 'j', COUNT, jobs, "N", ASKS | SEARCHES | VERSIONS,                                   \
      "workers at once; default: one a core; on a GPU 4, more while it compiles")                  \
    X("shard", 0, SHARD, shard, "I/N", BATCH | ON(LIST),                                           \
      "only part I of N, by the hash of the case's name")                                          \
    X("resume", 0, FLAG, resume, NULL, BATCH | SEARCHES | ON(BISECT),                              \
      "continue the record of -o: cases without a result, or that timed out in FACTS")             \
    X("overwrite", 0, FLAG, overwrite, NULL, BATCH | SEARCHES | VERSIONS,                          \
      "replace the record of -o")                                                                  \
    X("timeout", 0, SECONDS, timeout_s, "S", ASKS | SEARCHES | VERSIONS,                           \
      "seconds for one case; default: 60 for decide and fuzz, 300 for compile and run")            \
    X("fail-fast", 0, FLAG, fail_fast, NULL, BATCH, "stop at the first finding")                   \
    X("first-bad-only", 0, FLAG, first_bad_only, NULL, ON(RUN) | ON(REPRO),                        \
      "stop comparing a case at its first wrong output")                                           \
    X("turns", 0, FLAG, turns, NULL, ON(RUN),                                                      \
      "measure times: the builds take turns on one device (`facts bench` shows them)")             \
    X("twice", 0, FLAG, twice, NULL, ON(RUN),                                                      \
      "with --turns: two workers of each build; their difference is noise")                        \
    X("rounds", 0, COUNT, rounds, "N", ON(RUN),                                                    \
      "with --turns: N turns of each build; default: 16 to 64")                                    \
    X("plan-dir", 0, TEXT, plan_dir, "DIR", BATCH,                                                 \
      "keep plans in DIR, and load them from there (native code)")                                 \
    X("dump", 0, TEXT, dump, "DIR", ON(REPRO),                                                     \
      "write every tensor as .npy, with a script check.py")                                        \
    X("standalone", 0, TEXT, standalone, "DIR", ON(REPRO),                                         \
      "write a C program without FACTS that runs and checks the case")                             \
    X("frontend", 0, FLAG, frontend, NULL, ON(REPRO),                                              \
      "with --standalone: write a Python script on cudnn-frontend, too")                           \
    X("trace", 0, FLAG, trace, NULL, ON(REPRO), "one launch and nothing else, for a profiler")     \
    X("oracle", 0, ORACLE, oracle, "cpu|gpu", ON(RUN) | ON(REPRO),                                 \
      "where the reference runs; default: on a GPU if there is one")                               \
    X("liar", 0, TEXT, liar, "ID", ON(SELF), "only faults with this in their name: bwd.")          \
    X("dtype", 0, TEXT, dtype, "TYPE", ON(SELF),                                                   \
      "only this type: bf16 f16 f32 e4m3 e5m2 e4m3-hopper e5m2-hopper")                            \
    X("quick", 0, FLAG, quick, NULL, ON(SELF), "one case that shows a fault is enough")            \
    X("clean", 0, NUMBER, clean, "N", ON(SELF),                                                    \
      "only N evaluations of a right kernel; default: the faults, then 500")                       \
    X("first", 0, NUMBER, first, "I", ON(SELF),                                                    \
      "with --clean: begin at I; --clean 1 --first I repeats a false alarm")                       \
    X("seed", 0, NUMBER, seed, "N", ON(SELF) | ON(FUZZ), "seed of the random numbers; default 1")  \
    X("markdown", 0, FLAG, markdown, NULL, ON(SELF),                                               \
      "print Markdown, for a pull request or an issue")                                            \
    X("minutes", 0, MINUTES, minutes, "N", SEARCHES,                                               \
      "stop after N minutes; with -o FILE, --resume continues")                                    \
    X("cases", 0, NUMBER, cases, "N", ON(FUZZ), "draw N cases")                                    \
    X("steps", 0, NUMBER, steps, "N", SEARCHES,                                                    \
      "at most N questions to shrink one case; default 400")                                       \
    X("draws", 0, TEXT, draws, "FILE", ON(FUZZ),                                                   \
      "a suite with lines of draw; default: cases/fuzz.cases")                                     \
    X("known", 0, FLAG, known, NULL, ON(FUZZ), "also shrink known failures")                       \
    X("by", 0, BY, by, "WHAT", ON(BISECT) | ON(SHRINK),                                            \
      "what to compare: verdict, class, engine, engines, knobs or reason")                         \
    X("all", 0, FLAG, all, NULL, ON(BISECT),                                                       \
      "ask all versions and print every change, not only one")                                     \
    X("decide", 0, FLAG, decide, NULL, ON(IMPORT), "also ask --cudnn about the cases")             \
    X("run", 0, FLAG, run, NULL, ON(IMPORT), "also run the cases")                                 \
    X("pinned-only", 0, FLAG, pinned_only, NULL, ASKS | SEARCHES | VERSIONS | ON(DEVICES),         \
      "refuse a downloaded cuDNN that is not in ci/cudnn.lock")                                    \
    X("nvrtc", 0, TEXT, nvrtc, "V|FILE", ASKS | SEARCHES | VERSIONS,                               \
      "compile with this NVRTC (cuDNN below 9.21); default: beside cuDNN, else the newest")        \
    X("bundle", 0, FLAG, bundle, NULL, ON(DOCTOR),                                                 \
      "only print what a machine needs to run this bundle or package")                             \
    X("pinned-only", 0, ELSEWHERE, help, NULL, ON(CUDNN),                                          \
      "install: refuse a version that is not in ci/cudnn.lock")                                    \
    X("help", 'h', FLAG, help, NULL, EVERY, "print this text")

typedef struct option {
    const char *name;
    char letter;
    option_kind kind;
    size_t offset;
    const char *argument;
    unsigned commands;
    const char *help;
} option;

#define AS_ROW(name, letter, kind, field, argument, commands, help)                                \
    { name, letter, kind, offsetof(facts_options, field), argument, commands, help },
static const option options[] = { OPTION_LIST(AS_ROW) };
#undef AS_ROW
#define OPTION_COUNT (sizeof options / sizeof options[0])

typedef struct command_words {
    const char *name, *rest, *help;
    const char *examples[2];
} command_words;

#define AS_WORDS(symbol, name, run, rest, help, ...)                                               \
    [FACTS_COMMAND_##symbol] = { name, rest, help, { __VA_ARGS__ } },
static const command_words commands[FACTS_COMMAND_COUNT] = { FACTS_COMMAND_LIST(AS_WORDS) };
#undef AS_WORDS

#endif
