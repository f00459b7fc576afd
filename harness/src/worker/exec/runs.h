/* Runs of one configuration: the first over poison A, which is judged, and the others over poison B, whatever way they are made,
 * which have to give the same bits where docs/numerics.md section 9 says so, and a right answer everywhere. */
#ifndef FACTS_RUNS_H
#define FACTS_RUNS_H

#include "seams.h"
#include "trial.h"

typedef struct facts_runs {
    facts_trial *out;
    facts_reference *reference;
    const facts_trial_options *options;
    const facts_problem *problem;
    facts_memory *memory;
    facts_worker *worker;
    fattn_plan **plan;                        /* the caller's; NULL there once it was destroyed */
    fattn_plan *forward;                      /* owned; NULL */
    facts_call call;                          /* of the first set */
    int32_t made;                             /* runs so far */
    facts_verdict otherwise;                  /* what other bits are called: nondeterministic, graph_mismatch */
    facts_verdict second[FACTS_TENSOR_COUNT]; /* the worst of the later runs; pass: none was worse */
    facts_judgement judgement[FACTS_TENSOR_COUNT];
    int64_t overrun[FACTS_PLACES]; /* the most of all runs */
} facts_runs;

/* The call with the addresses of the set in hand. */
facts_call facts_call_now(const facts_runs *runs);

/* Notes a call that failed (FATTN_OK: true), with the library's sentence behind `what` (NULL: alone). */
bool facts_runs_check(facts_runs *runs, fattn_status status, const char *what);
/* The verdict and its sentence, unless there is a worse or earlier one. */
void facts_runs_find(facts_runs *runs, facts_verdict verdict, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Arms the set in hand; runs after the first two lie over noise, with allocations between. False: failed. */
bool facts_runs_arm(facts_runs *runs, facts_pattern pattern);
/* Fetches the set in hand and notes overruns. */
bool facts_runs_fetch(facts_runs *runs, facts_pattern pattern);
/* arm, launch, wait, fetch. */
bool facts_runs_once(facts_runs *runs, const facts_call *call, facts_pattern pattern);
/* Measures the launches of a call whose last run lay over poison B, and compares what the last of them wrote with the first run. */
void facts_runs_time(facts_runs *runs, fattn_status (*launch)(void *, struct CUstream_st *), void *argument);
/* Compares what the last fetch over poison B brought with the first run; `how` says what was done differently. */
void facts_runs_compare(facts_runs *runs, const char *how);
/* Is there nothing left to find out? */
bool facts_runs_over(const facts_runs *runs);
/* Judges what that fetch brought, and compares no bits: another engine's answer. */
void facts_runs_judge_all(facts_runs *runs, const char *how);
/* A forward has run, and the oracle on a GPU, which took the case and takes no NaN, refuses what is there now: that is the
 * forward's. */
void facts_runs_blame_forward(facts_runs *runs);
/* Notes a failure of the reference that is computed once more after a forward has run. failed: 0, or an errno. Needs only out and
 * worker. */
bool facts_runs_has_reference(facts_runs *runs, int failed);
/* The forward that goes before this backward, where the case has one: its plan. False: failed. */
bool facts_runs_make_forward(facts_runs *runs);
/* Makes the workspace and the call, and checks the arrays that the call is given. */
bool facts_runs_ready(facts_runs *runs);
/* The run over poison A; once more with the reference's O and Stats where those of the own forward cannot be used. */
bool facts_runs_first(facts_runs *runs);
/* Judges the first run: judgements, hashes, verdict and sentence of the trial. Earlier findings of later runs count, too. */
void facts_runs_judge(facts_runs *runs);
/* Reports the current step to the supervisor. If the worker then dies or times out, the step decides whether the engine or FACTS
 * failed. */
void facts_runs_say(const facts_runs *runs, const char *stage);
double facts_runs_now_us(void);

#endif
