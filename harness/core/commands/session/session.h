/* A session: from a command line to a finished run, with cases, targets, record, supervisor, tally
 * and exit code. decide, run, repro and matrix are sessions. */
#ifndef FACTS_SESSION_H
#define FACTS_SESSION_H

#include "commands/options/options.h"
#include "expected.h"
#include "inputs.h"
#include "known/callers.h"
#include "suites/planned_cases.h"
#include "supervisor/order.h"
#include "tally.h"

/* What rows say of plans. */
typedef struct facts_plan_counts {
    size_t compiled, loaded; /* of cuDNN */
    double ms;               /* for those that were compiled */
    size_t not_loaded;       /* files that could not be used; their plans were compiled again */
    size_t not_kept;         /* plans that could not be written to the folder */
    char why[300], why_not_kept[160]; /* of the first of these */
} facts_plan_counts;

typedef struct facts_session {
    const facts_invocation *call; /* its language, and its words for the record */
    const facts_options *options; /* possibly others than the call's */
    facts_task task;
    bool unguarded; /* of order.h */
    facts_cases *cases;
    facts_work *work;
    size_t work_count, all_count; /* all_count: before sharding */
    size_t *vacant,
        vacant_count; /* places of `work` whose case is done; facts_session_add takes them first */
    char suite_hash[17];
    facts_targets targets;
    int *sms; /* by target, once ready; 0 before */
    facts_expectations *expectations;
    facts_callers callers;         /* of `decide`, to say which refuse a case; otherwise empty */
    char suites[FACTS_SUITES_MAX]; /* the suites that CASES names; "": CASES also names something
                                      else */
    size_t stale; /* expectations that should have come true in this run and did not */
    facts_resume *resume;
    facts_writer *writer;
    facts_tally tally;
    facts_progress progress;
    facts_order order;
    facts_outcome_counts counts;
    char run_id[48], record[FACTS_PATH], worker[FACTS_PATH];
    /* Called for each row, after the tally has it; may be NULL. */
    void (*on_row)(struct facts_session *session, const facts_outcome *outcome);
    void (*on_done)(struct facts_session *session, size_t work); /* of order.h; may be NULL */
    void (*on_ready)(struct facts_session *session, size_t target, const facts_line *ready);
    /* Both or neither. more: adds work as answers come (facts_session_add). show: prints the
     * progress, about ten times a second. */
    bool (*more)(struct facts_session *session);
    void (*show)(struct facts_session *session, int live);
    /* With `more` and one target: when all rows of a work are written, its place may take another
     * case. */
    bool reuses_places;
    /* Both or neither: cases are launched again in turns (commands/bench/rounds.h). */
    bool (*another_round)(struct facts_session *session, size_t work, int round);
    void (*on_turn)(struct facts_session *session, size_t target, size_t work, facts_span turn);
    void (*before_end)(
        struct facts_session *session); /* the record takes its last lines; may be NULL */
    uint64_t seed;                      /* of what is drawn, for the record */
    void *context;
    facts_plan_counts plans;
    char calibration[200]; /* the versions whose error constants stand in for those of this one; "":
                              none */
    bool keep_record;      /* false: doctor and repro write a record only on request */
} facts_session;

/* Expands CASES (and --where, --shard). Returns an exit code, with a line on stderr. */
int facts_session_cases(facts_session *session, const char *const *texts, size_t count);
/* Finds the targets that --cudnn (NULL: the default build) and --device name. */
int facts_session_targets(facts_session *session, const char *cudnn, const char *devices);
/* Adds one case to a session with `more`. Copies `work` and its name, but not the group. Returns
 * its place. */
size_t facts_session_add(facts_session *session, const facts_work *work);
/* Opens the record, runs, closes the record and counts. Returns 0, or 2 or 3 if the run could not
 * start. */
int facts_session_run(facts_session *session);
/* Prepares and runs. */
int facts_session_ask(facts_session *session, const char *const *texts, size_t count,
                      const char *cudnn, const char *devices);
/* Returns an exit code if the run was interrupted or the record could not be written, so that
 * answers are missing; otherwise 0. */
int facts_session_broken(const facts_session *session);
/* The rules of `callers` that refuse a case on a target: lines for people, or (`prefix` NULL) a
 * member of a row. */
void facts_session_callers(const facts_session *session, size_t target, size_t work,
                           const char *prefix, facts_text *out);
/* For a few cases: prints them for each case. */
void facts_print_callers(const facts_session *session, FILE *out);
/* Loads `callers`. Returns 0, or 2 with a line on stderr. */
int facts_session_load_callers(facts_session *session);
/* The exit code of what was run. */
int facts_session_exit(const facts_session *session);
void facts_session_free(facts_session *session);

/* Finds facts-worker; false with a line on stderr. */
bool facts_find_worker(char out[FACTS_PATH]);
/* Finds the folder of suites; false with a line on stderr (exit 3). */
bool facts_suite_dir(char out[FACTS_PATH]);
/* How many cases should be in work at once: --jobs, otherwise the number of cores. */
int facts_session_jobs(const facts_options *options);

#endif
