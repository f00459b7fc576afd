/* A trial: one configuration of one case is prepared, executed over two poisons, and compared. */
#ifndef FACTS_TRIAL_H
#define FACTS_TRIAL_H

#include "numbers/check/check.h"
#include "worker/memory/case_reference.h"

#define FACTS_TIMED_LAUNCHES 5
#define FACTS_RUNS_ON_A_GPU 5 /* at least this many: two runs may miss a race */

/* The result of the case's check (check=). */
typedef struct facts_check_report {
    int runs; /* the number of runs that were made */
    bool done;
    facts_held held; /* valid if the check was made */
} facts_check_report;

typedef struct facts_trial {
    fattn_status status; /* the status of the calls; FATTN_OK: the answers were compared */
    facts_verdict verdict;
    bool facts_failed; /* FACTS itself failed: the case is inconclusive, whatever the verdict */
    bool prepared;     /* memory, inputs and reference results exist */
    bool again; /* the CUDA context was lost before this configuration ran: another worker has to
                   run it */
    const char *oracle; /* where the reference results were computed: "cpu" or "gpu" */
    facts_judgement judgement[FACTS_TENSOR_COUNT];
    bool judged[FACTS_TENSOR_COUNT];
    uint64_t
        bits[FACTS_TENSOR_COUNT]; /* hashes of the answers over poison A, with unwritten elements */
    facts_judgement
        array[FACTS_ARRAY_COUNT]; /* for arrays that the call writes; `checked` is 0 for others */
    bool ran_other; /* another plan than *plan was made and run; its configuration is `ran` */
    fattn_engine ran;
    double exec_us;       /* 0: not measured */
    double judge_ms;      /* the time of comparing all answers with their expected values */
    bool own_forward;     /* O and Stats of the backward came from a forward of this target */
    char no_forward[200]; /* the reason why they did not, if they should have */
    facts_check_report check;
    char text[400]; /* the reason of a verdict other than pass, if the errors do not show it */
} facts_trial;

/* Called before the steps "exec" and "judge". */
typedef void facts_stage_hook(void *owner, const char *stage);

typedef struct facts_trial_options {
    facts_worker *worker;
    const facts_problem *problem;
    const facts_reference_edit *
        edit; /* for a further run of a check, whose error model has the starting constants; NULL */
    bool once; /* a single launch: no second poison, no timing, no repeats */
    facts_stage_hook *stage;
    void *owner;
} facts_trial_options;

/* Makes the memory, the inputs and the reference results of a case: on the GPU if the worker has
 * one whose oracle can compute the case, else on the host (how->here is ignored). edit: NULL for
 * the case with its own fill. Destroy *out in any case. Returns FATTN_OK, or a status with the
 * reason in `error`. */
fattn_status facts_trial_prepare(facts_reference *out, const facts_making *how,
                                 const facts_reference_edit *edit, facts_error *error);

/* The verdict of a call that did not succeed. */
facts_verdict facts_verdict_of(fattn_status status);
/* The verdict of the configuration. */
facts_verdict facts_trial_verdict(const facts_trial *trial);

/* Runs the trial. *reference is { 0 } and is prepared first, or it was prepared for this problem.
 * After a failure to prepare it is { 0 }. Destroy it in any case. Sets worker->lost after a fault
 * of the device, and after a write outside the engine's buffers on a GPU. A backward with exec=graph
 * or graph_update runs its forward too, and so does one eager backward in five
 * (facts_problem.own_forward). The reference then uses that forward's O and Stats, as they were read
 * back. */
void facts_trial_run(facts_trial *out, facts_reference *reference, const fattn_plan *plan,
                     const facts_trial_options *options);

#endif
