/* The only table of options. The parser, --help, the man pages, docs/commands.md and the shell
 * completions are made from it. */
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
    RATIO,
    SHARD,
    ORACLE,
    BY,
    CHANGES,
    RECORDS,
    ELSEWHERE
} option_kind;

#define ON(symbol) (1u << FACTS_COMMAND_##symbol)
#define CASES (ON(LIST) | ON(DECIDE) | ON(COMPILE) | ON(RUN) | ON(REPRO))
#define ASKS (ON(DECIDE) | ON(COMPILE) | ON(RUN) | ON(REPRO))
#define BATCH (ON(DECIDE) | ON(COMPILE) | ON(RUN))
#define MEASURES (ON(CALIBRATE) | ON(BENCH))
#define SEARCHES (ON(SHRINK) | ON(FUZZ))
#define COMPARES (ON(GATE) | ON(DIFF))
#define VERSIONS                                                                                   \
    (ON(GATE) | ON(BISECT) | ON(IMPORT) | ON(AUDIT) | ON(EXPECT) |                                 \
     ON(KNOWN)) /* ask builds, keep a record */
#define EVERY ((1u << FACTS_COMMAND_COUNT) - 1u)

/* ELSEWHERE: the command is another program, which parses the option. The row is for the help
 * alone; a test compares. */
/* X("name", 'letter', KIND, field, "ARGUMENT", commands, "help"); the help has at most 80
 * characters */
#define OPTION_LIST(X)                                                                             \
    X("cudnn", 0, TEXT, cudnn, "V,V",                                                              \
      ASKS | SEARCHES | ON(MATRIX) | MEASURES | (VERSIONS & ~ON(GATE)),                            \
      "builds: 9.20.0, 9.20.0-jit-cu13, 9.12..9.27, a folder, default, latest")                    \
    X("device", 0, TEXT, device, "D,D", ASKS | SEARCHES | ON(MATRIX) | MEASURES | VERSIONS,        \
      "GPU numbers, all (every GPU here), cpu, names of `facts devices`, JSON files")              \
    X("where", 0, TEXT, where, "EXPR", CASES | ON(FUZZ) | MEASURES | COMPARES | ON(AUDIT),         \
      "keep the cases that satisfy a predicate: 'd.qk>128 & pass=bwd'")                            \
    X("with", 0, TEXT, with, "KEY=VALUE", BATCH | ON(LIST) | ON(FUZZ) | MEASURES,                  \
      "set these keys in every case: 'engine=all'")                                                \
    X("output", 'o', TEXT, output, "PATH",                                                         \
      BATCH | SEARCHES | ON(MATRIX) | ON(MERGE) | MEASURES | VERSIONS,                             \
      "write the record to this file (matrix: the folder)")                                        \
    X("json", 0, FLAG, json, NULL,                                                                 \
      CASES | ON(MATRIX) | ON(DOCTOR) | ON(SELF) | ON(BENCH) | COMPARES |                          \
          (VERSIONS & ~ON(EXPECT)),                                                                \
      "print one JSON object a line")                                                              \
    X("json", 0, FLAG, json, NULL, ON(EXPECT),                                                     \
      "print the golden matrix of this checkout as one JSON document; ask nothing")                \
    X("count", 0, FLAG, count, NULL, ON(LIST), "print only the number of cases")                   \
    X("plan", 0, FLAG, plan, NULL, ON(DECIDE) | SEARCHES | (VERSIONS & ~ON(EXPECT)),               \
      "also compile what cuDNN accepts")                                                           \
    X("explain", 0, FLAG, explain, NULL, ON(DECIDE),                                               \
      "for each refused case, also find the nearest cases that are accepted")                      \
    X("jobs", 'j', COUNT, jobs, "N", ASKS | SEARCHES | ON(MATRIX) | ON(CALIBRATE) | VERSIONS,      \
      "workers at once; default: one a core; on a GPU 4, more while it compiles")                  \
    X("shard", 0, SHARD, shard, "I/N", BATCH | ON(LIST),                                           \
      "only part I of N, by the hash of the case's name")                                          \
    X("resume", 0, FLAG, resume, NULL, BATCH | SEARCHES | ON(GATE) | ON(BISECT),                   \
      "continue the record of -o: cases without a result, or that timed out in FACTS")             \
    X("overwrite", 0, FLAG, overwrite, NULL, BATCH | SEARCHES | ON(MERGE) | MEASURES | VERSIONS,   \
      "replace the record of -o")                                                                  \
    X("timeout", 0, SECONDS, timeout_s, "S", ASKS | SEARCHES | ON(MATRIX) | MEASURES | VERSIONS,   \
      "seconds for one case; default: 60 for decide and fuzz, 300 for compile and run")            \
    X("fail-fast", 0, FLAG, fail_fast, NULL, BATCH, "stop at the first finding")                   \
    X("first-bad-only", 0, FLAG, first_bad_only, NULL, ON(RUN) | ON(REPRO),                        \
      "stop comparing a case at its first wrong output")                                           \
    X("plan-dir", 0, TEXT, plan_dir, "DIR", BATCH | ON(BENCH) | ON(GATE),                          \
      "keep plans and cuDNN's refusals in DIR, and load them from there")                          \
    X("trust-plans", 0, TEXT, trust_plans, "DIR", BATCH | ON(BENCH) | ON(GATE),                    \
      "as --plan-dir, but load plans that others compiled (native code)")                          \
    X("dump", 0, TEXT, dump, "DIR", ON(REPRO),                                                     \
      "write every tensor as .npy, with a script check.py")                                        \
    X("standalone", 0, TEXT, standalone, "DIR", ON(REPRO),                                         \
      "write a C program without FACTS that runs and checks the case")                             \
    X("frontend", 0, FLAG, frontend, NULL, ON(REPRO),                                              \
      "with --standalone: write a Python script on cudnn-frontend instead")                        \
    X("trace", 0, FLAG, trace, NULL, ON(REPRO), "one launch and nothing else, for a profiler")     \
    X("oracle", 0, ORACLE, oracle, "cpu|gpu|both", ON(RUN) | ON(REPRO),                            \
      "where the reference runs; default: on a GPU if there is one; both: and compare")            \
    X("force", 0, FLAG, force, NULL, ON(MERGE), "join records of different suites, too")           \
    X("liar", 0, TEXT, liar, "ID", ON(SELF), "only liars with this in their name: bwd.")           \
    X("dtype", 0, TEXT, dtype, "TYPE", ON(SELF),                                                   \
      "only this type: bf16 f16 f32 e4m3 e5m2 e4m3-hopper e5m2-hopper")                            \
    X("quick", 0, FLAG, quick, NULL, ON(SELF), "only the smallest size")                           \
    X("clean", 0, NUMBER, clean, "N", ON(SELF),                                                    \
      "only N evaluations of a correct kernel; default: the liars, then 2000")                     \
    X("first", 0, NUMBER, first, "I", ON(SELF),                                                    \
      "with --clean: begin at I; --clean 1 --first I repeats a false alarm")                       \
    X("seed", 0, NUMBER, seed, "N", ON(SELF) | ON(FUZZ), "seed of the random numbers; default 1")  \
    X("markdown", 0, FLAG, markdown, NULL, ON(SELF) | COMPARES | ON(AUDIT),                        \
      "print Markdown, for a pull request or an issue")                                            \
    X("minutes", 0, MINUTES, minutes, "N", SEARCHES,                                               \
      "stop after N minutes; with -o FILE, --resume continues")                                    \
    X("cases", 0, NUMBER, cases, "N", ON(FUZZ), "draw N cases")                                    \
    X("steps", 0, NUMBER, steps, "N", SEARCHES,                                                    \
      "at most N questions to shrink one case; default 400")                                       \
    X("weights", 0, TEXT, weights, "FILE", ON(FUZZ),                                               \
      "how often each value is drawn; default: cases/fuzz.weights")                                \
    X("from", 0, RECORDS, from, "RECORD", ON(CALIBRATE) | ON(AUDIT),                               \
      "use existing records instead of a run; may be given several times")                         \
    X("write", 0, FLAG, write, NULL, ON(KNOWN),                                                    \
      "check, propose: write into cases/known instead of printing the difference")                 \
    X("source", 0, TEXT, source, "TEXT", ON(KNOWN),                                                \
      "note: the record or report that shows the observation")                                     \
    X("known", 0, FLAG, known, NULL, ON(FUZZ), "also shrink known failures")                       \
    X("baseline", 0, TEXT, baseline, "V", COMPARES,                                                \
      "the build that is trusted (also of one record that holds both)")                            \
    X("candidate", 0, TEXT, candidate, "V", COMPARES, "the build that may replace it")             \
    X("fail-on", 0, CHANGES, fail_on, "CLASS,CLASS", COMPARES,                                     \
      "changes that fail; default worse,changed-kind,lost; any; docs/gate.md lists them")          \
    X("slower", 0, RATIO, slower, "R", COMPARES,                                                   \
      "ratio of times above which a case is slower; default 1.10")                                 \
    X("bench", 0, FLAG, bench, NULL, ON(GATE),                                                     \
      "measure times, the builds in turns; a slower case is then a finding")                       \
    X("twice", 0, FLAG, twice, NULL, ON(BENCH),                                                    \
      "two workers of each build: their difference is noise")                                      \
    X("rounds", 0, COUNT, rounds, "N", ON(BENCH),                                                  \
      "N turns of each build; default: 16 to 64, until the intervals are narrow")                  \
    X("junit", 0, TEXT, junit, "FILE", COMPARES, "also write the answer as JUnit")                 \
    X("errata", 0, TEXT, errata, "FILE", COMPARES,                                                 \
      "also write the engines to avoid, in cudnn-frontend's format")                               \
    X("page", 0, TEXT, page, "DIR", COMPARES | ON(AUDIT), "also write the report page there")      \
    X("annotations", 0, FLAG, annotations, NULL, COMPARES,                                         \
      "also print the groups as GitHub annotations")                                               \
    X("by", 0, BY, by, "WHAT", ON(BISECT) | ON(SHRINK),                                            \
      "what to compare: verdict, class, engine, engines, knobs or reason")                         \
    X("all", 0, FLAG, all, NULL, ON(BISECT),                                                       \
      "ask all versions and print every change, not only one")                                     \
    X("decide", 0, FLAG, decide, NULL, ON(IMPORT), "also ask --cudnn about the cases")             \
    X("run", 0, FLAG, run, NULL, ON(IMPORT), "also run the cases")                                 \
    X("pinned-only", 0, FLAG, pinned_only, NULL,                                                   \
      ASKS | SEARCHES | ON(MATRIX) | MEASURES | VERSIONS,                                          \
      "refuse a downloaded cuDNN that is not in ci/cudnn.lock")                                    \
    X("bundle", 0, FLAG, bundle, NULL, ON(DOCTOR),                                                 \
      "only print what a machine needs to run this bundle or package")                             \
    X("output", 'o', ELSEWHERE, help, "DIR", ON(REPORT),                                           \
      "folder for index.html, results.csv, results.json, summary.md, junit.xml")                   \
    X("site", 0, ELSEWHERE, help, "DIR", ON(REPORT),                                               \
      "several records as a site: an index, a page for each, a page of each case")                 \
    X("title", 0, ELSEWHERE, help, "TEXT", ON(REPORT), "title of the page")                        \
    X("issue", 0, ELSEWHERE, help, "CASE", ON(REPORT),                                             \
      "print the body of an issue about this case, in Markdown")                                   \
    X("decisions", 0, ELSEWHERE, help, "A B", ON(REPORT),                                          \
      "compare the decisions for devices A and B; print each difference")                          \
    X("bits", 0, ELSEWHERE, help, "A B", ON(REPORT),                                               \
      "compare the tensors of records A and B bit for bit; print each difference")                 \
    X("pinned-only", 0, ELSEWHERE, help, NULL, ON(CUDNN),                                          \
      "install: refuse a version that is not in ci/cudnn.lock")                                    \
    X("device", 0, ELSEWHERE, help, "D,D", ON(ADOPT),                                              \
      "for known failures and gate; default: GPU 0, otherwise described devices")                  \
    X("baseline", 0, ELSEWHERE, help, "V", ON(ADOPT),                                              \
      "default: the newest version of the golden matrix before VERSION")                           \
    X("plan", 0, ELSEWHERE, help, NULL, ON(ADOPT), "gate: also compile what cuDNN accepts")        \
    X("output", 'o', ELSEWHERE, help, "FILE", ON(ADOPT), "write the summary there too")            \
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
} command_words;

#define AS_WORDS(symbol, name, rest, help) [FACTS_COMMAND_##symbol] = { name, rest, help },
static const command_words commands[FACTS_COMMAND_COUNT] = { FACTS_COMMAND_LIST(AS_WORDS) };
#undef AS_WORDS

#endif
