/* What the supervisor is asked to do, and what it tells as it goes. A plain value; everything it points at outlives the run. */
#ifndef FACTS_ORDER_H
#define FACTS_ORDER_H

#include "case/words/verdict.h"
#include "record/reader.h"
#include "record/writer.h"
#include "resume.h"
#include "target.h"

/* X(SYMBOL, "word of the protocol", default seconds for one request) */
#define FACTS_TASK_LIST(X) X(DECIDE, "decide", 60) X(PLAN, "plan", 300) X(RUN, "run", 300)
#define AS_ENUM(symbol, word, seconds) FACTS_TASK_##symbol,
typedef enum facts_task { FACTS_TASK_LIST(AS_ENUM) FACTS_TASK_COUNT } facts_task;
#undef AS_ENUM

typedef struct facts_work {
    const char *name;   /* canonical */
    const char *group;  /* of its suite, or "" */
    const char *expect; /* "CLASS words": what it has to be refused with; "" for most */
    int from_config;    /* with engine=all: the rows before it are there already */
    bool alone;         /* its worker ends after it, so that a bad end is this case's */
} facts_work;

/* What the expectations say of a row about to be written. */
typedef struct facts_expected_row {
    char json[1024]; /* the row's `expectation` object, or empty */
    bool unexpected; /* a finding: --fail-fast stops */
} facts_expected_row;

/* One finished row. */
typedef struct facts_outcome {
    size_t target, work;
    const facts_line *line; /* its members, without those that the supervisor adds */
    const char *text;       /* as it was written, without the newline */
    size_t length;
    facts_verdict verdict;
    const facts_expected_row *expected;
} facts_outcome;

typedef struct facts_order {
    facts_task task;
    bool explain, trace, first_bad_only, fail_fast;
    const char *dump, *standalone, *plan_dir; /* "" : none */
    const char *plan_key;                     /* seals what is written there */
    bool trust_plans;                         /* takes plans of others too */
    const char *oracle;                       /* cpu, gpu, both; "" or NULL: as the worker finds it */
    const facts_target *targets;
    size_t target_count;
    const facts_work *work;
    size_t work_count;
    int jobs;           /* 0: as many as cores */
    double timeout_s;   /* 0: the task's default */
    const char *worker; /* path of facts-worker */
    const char *fault;  /* FACTS_FAULT, or "" */
    const char *run_id;
    facts_writer *writer;       /* NULL: nothing is kept */
    const facts_resume *resume; /* NULL: from the start; always NULL with `more` */
    bool hash_libraries;        /* sha256 of what each worker has mapped, for the target line */
    void *context;
    /* NULL: `work` is all there is. Otherwise asked whenever a worker has nothing left to take: it may append to this order's
     * `work` (the array may move) and raise `work_count`, and says whether it did. Workers wait as long as others have something in
     * hand; with nothing added and nothing in hand the run is over. */
    bool (*more)(void *context);
    /* NULL, or, with `more` and one target: all rows of a case are written and no worker has it in hand. The name is set to NULL
     * here. `more` may put another case in the same place, so that a run that never ends needs no more memory. */
    void (*on_free)(void *context, size_t work);
    /* NULL: a case is asked once. Otherwise each target has one worker, and the targets are asked a case after each other. Each
     * worker keeps what it ran. Then they launch it in turns (on_turn: one turn's object), in the opposite order every other round.
     * Asked after each round: another one? Never together with `more`. */
    bool (*another_round)(void *context, size_t work, int round);
    void (*on_turn)(void *context, size_t target, size_t work, facts_span turn);
    void (*on_row)(void *context, const facts_outcome *outcome);
    void (*on_ready)(void *context, size_t target, const char *device,
                     const facts_line *ready);                             /* a target's first worker is there */
    void (*on_tick)(void *context, size_t done, size_t planned, int live); /* about ten times a second */
    void (*expect)(void *context, size_t target, size_t work, facts_verdict verdict, const facts_line *row,
                   facts_expected_row *out);
} facts_order;

typedef struct facts_outcome_counts {
    size_t planned; /* (case, target) pairs */
    size_t done;    /* of these, with all their rows, in this run or before */
    size_t rows;    /* written in this run */
    uint64_t noise; /* lines of workers that were not understood */
    bool interrupted, stopped_early, record_failed;
    bool target_failed; /* some target could not be asked at all */
    char trouble[640];  /* the first thing that a person should know about the environment */
} facts_outcome_counts;

/* Runs it. Returns 0, or 3 when nothing could be started (line in out->trouble). */
int facts_supervise(const facts_order *order, facts_outcome_counts *out);

#endif
