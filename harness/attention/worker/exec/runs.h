/* The runs of one configuration. The first run is over poison A and is compared with the reference.
 * The other runs are over poison B and may be made in another way (exec=). They must be correct
 * too, and equal to the first run bit for bit if docs/numerics.md, section 9, requires it. */
#ifndef FACTS_RUNS_H
#define FACTS_RUNS_H

#include "seams.h"
#include "trial.h"
#include "words/clock.h"

typedef struct facts_runs {
    facts_trial *out;
    facts_reference *reference;
    const facts_trial_options *options;
    const facts_problem *problem;
    facts_memory *memory;
    facts_worker *worker;
    const fattn_plan *plan;
    fattn_plan *forward;     /* owned; NULL */
    facts_call call;         /* the call with the first set */
    int32_t made;            /* runs so far */
    facts_verdict otherwise; /* the verdict for other bits: nondeterministic or graph_mismatch */
    facts_verdict
        second[FACTS_TENSOR_COUNT]; /* the worst verdict of the later runs; pass: none was worse */
    facts_judgement judgement[FACTS_TENSOR_COUNT];
    int64_t overrun[FACTS_PLACES]; /* the largest count of all runs */
} facts_runs;

/* The steps of facts_trial_run: runs the configuration; compares, if the runs returned true; ends
 * in any case. *runs, *out and *options must stay until the end. */
bool facts_trial_execute(facts_runs *runs, facts_trial *out, facts_reference *reference,
                         const fattn_plan *plan, const facts_trial_options *options);
void facts_trial_judge(facts_runs *runs);
void facts_trial_end(facts_runs *runs);

/* The call with the addresses of the current set. */
facts_call facts_call_now(const facts_runs *runs);

/* Returns true for FATTN_OK. Otherwise records the failure, with `what` and the library's message
 * (`what` NULL: the message only). */
bool facts_runs_check(facts_runs *runs, fattn_status status, const char *what);
/* Records a verdict and its message, unless there is a worse or an earlier one. */
void facts_runs_find(facts_runs *runs, facts_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prepares the current set for a run: inputs, poison, guards. From the third run on, the workspace
 * has noise, and other memory is allocated before. The shared memory of a GPU has NaN. False: failed. */
bool facts_runs_arm(facts_runs *runs, facts_pattern pattern);
/* Fetches the outputs of the current set, and records overruns. */
bool facts_runs_fetch(facts_runs *runs, facts_pattern pattern);
/* Prepares, launches, waits and fetches. */
bool facts_runs_once(facts_runs *runs, const facts_call *call, facts_pattern pattern);
/* Measures the launches of a call whose last run was over poison B, and compares the outputs of the
 * last launch with the first run. */
void facts_runs_time(facts_runs *runs, fattn_status (*launch)(void *, struct CUstream_st *),
                     void *argument);
/* Compares the outputs fetched last (poison B) with those of the first run. `how` says how the run
 * differed. */
void facts_runs_compare(facts_runs *runs, const char *how);
/* How many runs follow the first. */
int32_t facts_runs_repeats(const facts_runs *runs);
/* Can no further run change the verdict? */
bool facts_runs_over(const facts_runs *runs);
/* Compares the outputs fetched last only with the reference, because another engine wrote them. */
void facts_runs_judge_all(facts_runs *runs, const char *how);
/* Called if the reference on a GPU refuses its inputs after a forward has run. It accepted the case
 * before and refuses a NaN, so the forward wrote a NaN. */
void facts_runs_blame_forward(facts_runs *runs);
/* Records a failure of the reference, which is computed once more after a forward has run. failed:
 * 0, or an errno. Uses only `out` and `worker`. */
bool facts_runs_has_reference(facts_runs *runs, int failed);
/* Makes the plan of the forward that runs before this backward, if the case has one. False: failed.
 */
bool facts_runs_make_forward(facts_runs *runs);
/* Makes the workspace and the call, and checks the call's small arrays. */
bool facts_runs_ready(facts_runs *runs);
/* Makes the run over poison A. If O and Stats of the case's own forward cannot be used, repeats it
 * with those of the reference. */
bool facts_runs_first(facts_runs *runs);
/* Compares the first run with the reference: judgements, hashes, verdict and message of the trial.
 * Earlier findings of later runs count, too. */
void facts_runs_judge(facts_runs *runs);
/* Reports the current step to the supervisor. If the worker then dies or times out, the step
 * decides whether the engine or FACTS failed. */
void facts_runs_say(const facts_runs *runs, const char *stage);

/* The further runs of a check (check=), with the engine that answered. numbers/check/check.h
 * describes the checks. */
/* Makes the runs of this case's check and writes the result to runs->out. Does nothing if the case
 * has no check or is wrong already. */
void facts_checks_run(facts_runs *runs);

/* The ways to make a call: exec=. Each is a run over poison B, which is compared with
 * the plain first run. */
/* The reason why this target cannot do this case's exec=, known before anything is compiled; NULL
 * if it can. */
const char *facts_exec_refuses(const facts_problem *problem, fattn_backend backend,
                               const facts_worker *worker);

/* Makes all runs after the first and compares them. The trial's *out has the result. */
void facts_exec_run(facts_runs *runs);

#endif
