/* The order that the supervisor carries out, and the callbacks for its results. A plain value.
 * Everything that it points to must outlive the run. */
#ifndef FACTS_ORDER_H
#define FACTS_ORDER_H

#include "language/case.h"
#include "record/reader.h"
#include "record/writer.h"
#include "resume.h"
#include "target.h"
#include "words/verdict.h"

/* X(SYMBOL, "word of the protocol", default seconds for one request) */
#define FACTS_TASK_LIST(X) X(DECIDE, "decide", 60) X(PLAN, "plan", 300) X(RUN, "run", 300)
#define AS_ENUM(symbol, word, seconds) FACTS_TASK_##symbol,
typedef enum facts_task { FACTS_TASK_LIST(AS_ENUM) FACTS_TASK_COUNT } facts_task;
#undef AS_ENUM

typedef struct facts_work {
    const char *name;   /* canonical */
    const char *group;  /* of its suite, or "" */
    uint64_t calls;     /* that a model makes of it; 0: unknown */
    const char *expect; /* "CLASS words": what it has to be refused with; "" for most */
    int from_config;    /* with engine=all: the rows before it are there already */
    bool alone;         /* its worker ends after it, so that a bad end is this case's */
} facts_work;

/* What is known of a row about to be written. The pointers hold until the next row; NULL: nothing. */
typedef struct facts_expected_row {
    char json[1024];   /* the row's `expectation` object, or empty */
    bool unexpected;   /* a finding: --fail-fast stops */
    const char *title; /* "TITLE (ID)" of the known failure that was expected */
    const char *known; /* the row's member `known` */
    const char
        *lines;     /* the same for people: a sentence for each failure, and what to do instead */
    bool such_data; /* the first of them is about the data that the case has */
    bool serious;   /* and it is serious (docs/known.md) */
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
    bool unguarded; /* a case that leaves `guards` open is asked without the library's guards */
    bool expected;  /* with `standalone`: the expected values too */
    const char *dump, *standalone, *plan_dir; /* "" : none */
    const char *oracle; /* cpu, gpu, both; "" or NULL: as the worker finds it */
    const facts_target *targets;
    size_t target_count;
    const facts_work *work;
    size_t work_count;
    const facts_language *language; /* of the names in `work` */
    int jobs;                       /* 0: as many as cores */
    double timeout_s;               /* 0: the task's default */
    const char *worker;             /* path of facts-worker */
    const char *fault;              /* FACTS_FAULT, or "" */
    const char *run_id;
    facts_writer *writer;       /* NULL: nothing is kept */
    const facts_resume *resume; /* NULL: from the start; always NULL with `more` */
    bool hash_libraries;        /* sha256 of what each worker has mapped, for the target line */
    void *context;
    /* NULL: `work` is complete. Otherwise called when a worker has no work left. It may append to this order's `work` (the array
     * may move), raise `work_count`, and returns whether it did. Idle workers wait while others are busy. The run ends when nothing
     * was added and no worker is busy. */
    bool (*more)(void *context);
    void (*on_done)(
        void *context,
        size_t work); /* NULL, or: all rows of a case are written; the last may announce others */
    /* With `more` and one target; may be NULL. All rows of a case are written and no worker has it. Its name is set to NULL. `more` may
     * put another case in the same place, so that the memory of a run without an end does not grow. */
    void (*on_free)(void *context, size_t work);
    /* NULL: each case runs once. Otherwise each target has one worker, and the targets run one case one after another. Each worker
     * keeps its plan. Then the workers launch the case in turns (on_turn gets one turn), in the opposite order in every second
     * round. Called after each round: should there be another one? Never together with `more`. */
    bool (*another_round)(void *context, size_t work, int round);
    void (*on_turn)(void *context, size_t target, size_t work, facts_span turn);
    void (*on_row)(void *context, const facts_outcome *outcome);
    void (*on_ready)(void *context, size_t target, const char *device,
                     const facts_line *ready); /* a target's first worker is there */
    void (*on_tick)(void *context, size_t done, size_t planned,
                    int live); /* about ten times a second */
    void (*expect)(void *context, size_t target, size_t work, facts_verdict verdict,
                   const facts_line *row, facts_expected_row *out);
} facts_order;

typedef struct facts_outcome_counts {
    size_t planned; /* (case, target) pairs */
    size_t done;    /* of these, with all their rows, in this run or before */
    size_t rows;    /* written in this run */
    uint64_t noise; /* lines of workers that were not understood */
    bool interrupted, stopped_early, record_failed;
    bool target_failed; /* some target could not be asked at all */
    char trouble[640];  /* the first problem of the environment, for people */
} facts_outcome_counts;

/* Carries out the order. Returns 0, or 3 if nothing could be started (out->trouble says why). */
int facts_supervise(const facts_order *order, facts_outcome_counts *out);

#endif
