/* One configuration of one case: prepared, executed over two poisons and judged. */
#ifndef FACTS_TRIAL_H
#define FACTS_TRIAL_H

#include "numbers/check/check.h"
#include "worker/memory/case_reference.h"

#define FACTS_TIMED_LAUNCHES 5
#define FACTS_RUNS_ON_A_GPU 5 /* at least: a race need not show in two */

/* What became of the case's check (check=). */
typedef struct facts_check_report {
    int runs; /* made */
    bool done;
    facts_held held;   /* when done */
    char skipped[220]; /* why it was left out; "" otherwise */
} facts_check_report;

typedef struct facts_trial {
    fattn_status status; /* of the calls; FATTN_OK: judged */
    facts_verdict verdict;
    bool ours;          /* FACTS itself failed: the case is inconclusive, whatever the verdict */
    bool prepared;      /* memory, inputs and reference results are there */
    bool again;         /* the context was dead before this configuration ran: another worker has to run it */
    const char *oracle; /* who computed the reference results: "cpu", "gpu", or "both" where both agree */
    facts_judgement judgement[FACTS_TENSOR_COUNT];
    bool judged[FACTS_TENSOR_COUNT];
    uint64_t bits[FACTS_TENSOR_COUNT]; /* hash of what was judged: equal bits, equal hash (over poison A; what was not written
                                          included) */
    facts_judgement array[FACTS_ARRAY_COUNT]; /* of those that the call writes: checked is 0 of the others */
    bool ran_other;                           /* another plan than *plan was made and run: by `ran` */
    fattn_engine ran;
    double exec_us;       /* 0: not measured */
    double judge_ms;      /* of all answers, compared with their expected values */
    bool own_forward;     /* O and Stats of the backward came from a forward of this target */
    char no_forward[200]; /* why they did not, where they should have */
    facts_check_report check;
    char text[400]; /* why the verdict is not a pass, when the errors do not say it */
} facts_trial;

/* Called before each step: "exec", "judge". */
typedef void facts_stage_hook(void *owner, const char *stage);

typedef struct facts_trial_options {
    facts_worker *worker;
    const facts_problem *problem;
    const facts_reference_edit *edit; /* of a check's further run, whose error model has the starting constants; NULL */
    bool once;                        /* a single launch: no second poison, no timing, no repeats */
    facts_stage_hook *stage;
    void *owner;
} facts_trial_options;

/* Memory, data of the inputs and reference results of a case, on the GPU if the worker has one whose oracle computes the case, else
 * on the host (how->here is not read). edit: NULL for the case as it is filled. Destroy *out in any case. Returns FATTN_OK, or why
 * not with the sentence in `error`. */
fattn_status facts_trial_prepare(facts_reference *out, const facts_making *how, const facts_reference_edit *edit,
                                 facts_error *error);

/* *truth is { 0 }, which is prepared first, or has been prepared for this problem. After a failure to prepare it is { 0 }. Destroy
 * it in any case. Sets worker->lost after a fault of the device, and after a write outside of what the engine was given on a GPU.
 *
 * *plan is NULL afterwards where the case asks for its end (exec=graph_after_destroy). A backward with exec=graph or graph_update,
 * and one eager one in five (facts_problem.own_forward), runs its forward too: truth is then about that forward's O and Stats, as
 * they were read back. */
void facts_trial_run(facts_trial *out, facts_reference *reference, fattn_plan **plan, const facts_trial_options *options);

#endif
