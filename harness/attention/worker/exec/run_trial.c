/* One configuration of one case, from its memory to its verdict. Start to read here: the page is in the order of the calls, and the
 * details lie in the files beside it.
 *
 *     create, fill, reference   worker/memory/make_reference.c; all configurations of a case share them
 *     execute                   runs.c, forward_runs.c; exec.c for the ways of exec=
 *     compare                   compare_runs.c, judging*.c; checks.c for the further runs of check=
 *     report                    worker/row/row_trial.c describes it in the row */
#include <stdio.h>

#include "checks.h"
#include "exec.h"
#include "fattn/device.h"
#include "problem/huge.h"
#include "runs.h"
#include "worker/clock/spent.h"
#include "worker/gpu/try.h"
#include "worker/memory/own_forward.h"

/* ---- create, fill, reference
 * ------------------------------------------------------------------------------------------------
 */

static fattn_status make(facts_reference *out, const facts_making *how,
                         const facts_reference_edit *edit, facts_error *error)
{
    const facts_spent before = facts_spend(FACTS_SPENT_ALLOCATE);
    fattn_status status = facts_reference_create(out, how, error);
    facts_spend(FACTS_SPENT_FILL);
    if (status == FATTN_OK)
        status = facts_reference_fill(out, edit, error);
    facts_spend(FACTS_SPENT_ORACLE);
    if (status == FATTN_OK)
        status = facts_reference_compute(out, edit, error);
    facts_spend(before);
    return status;
}

/* The reference on a GPU computes every element: this many products take an H100 a few seconds. */
#define MOST_PRODUCTS 0x1p45

/* The reference in C computes a sample of the rows of such a case. A sample says nothing of the
 * largest score of every row. */
static bool is_too_long(const facts_problem *p)
{
    const fattn_problem *ask = &p->ask;
    const double products = (ask->pass == FATTN_BACKWARD ? 5.0 : 2.0) * facts_pairs(p) *
                            (double)(ask->dim_qk + ask->dim_v);
    return products > MOST_PRODUCTS && !p->tensor[FACTS_TENSOR_MAX].present;
}

fattn_status facts_trial_prepare(facts_reference *out, const facts_making *how,
                                 const facts_reference_edit *edit, facts_error *error)
{
    facts_making making = *how;
    making.here = !how->worker->gpu || how->worker->oracle == FACTS_ORACLE_CPU ||
                  (edit && edit->here) || is_too_long(how->problem);
    fattn_status status = make(out, &making, edit, error);
    if (making.here || status != FATTN_INTERNAL ||
        edit) /* an edit has changed what the data is made of */
        return status;
    facts_reference_destroy(out); /* the oracle on the GPU refuses this case: the C reference
                                     computes it, on the host */
    making.here = true;
    return make(out, &making, edit, error);
}

/* Nothing of this case has run, except possibly the engine's launch for the dropout mask. Any other
 * device fault comes from an earlier case of this process, or from FACTS. */
static bool give_up(facts_runs *r, fattn_status status, const char *why)
{
    const bool fault = status == FATTN_DEVICE_FAULT;
    r->worker->lost = r->worker->lost || fault;
    r->out->again = fault && r->worker->ran;
    r->out->facts_failed = fault && !r->options->edit && !r->reference->keep.faulted;
    r->out->status = status;
    snprintf(r->out->text, sizeof r->out->text, "%s%.250s",
             r->out->facts_failed ? "before an engine ran: " : "", why);
    facts_reference_destroy(r->reference);
    return false;
}

/* The error model has the constants of this engine, where they are known. */
static bool prepare(facts_runs *r)
{
    const facts_reference_edit *edit = r->options->edit;
    const fattn_engine *engine = fattn_plan_engine(r->plan);
    const facts_who who = { .sm = r->worker->info.sm,
                            .backend = (int32_t)fattn_plan_backend(r->plan),
                            .dtype = r->problem->ask.dtype,
                            .pass = r->problem->ask.pass,
                            .engine = engine ? engine->index : -1,
                            .cudnn = r->worker->info.cudnn_version };
    const facts_making making = {
        .worker = r->worker, .problem = r->problem, .plan = r->plan, .who = edit ? NULL : &who
    };
    facts_error error = { 0 };
    facts_runs_say(r, "reference");
    fattn_status status = r->reference->memory.problem
                              ? FATTN_OK
                              : facts_trial_prepare(r->reference, &making, edit, &error);
    if (status != FATTN_OK)
        return give_up(r, status, error.text);
    r->out->prepared =
        edit || facts_runs_has_reference(r, facts_reference_judges(r->reference, &who));
    r->out->again =
        !r->out->prepared && r->worker->lost; /* by another configuration: this one has not run */
    r->out->oracle = facts_reference_oracle(r->reference);
    return r->out->prepared;
}

/* ---- execute
 * ----------------------------------------------------------------------------------------------------------------
 */

/* A case with repeats is timed, on a GPU. */
static void measure(facts_runs *r)
{
    facts_call timed = r->call;
    if (r->worker->device != FACTS_DEVICE_GPU || r->out->exec_us > 0 || facts_runs_over(r))
        return;
    if (!facts_runs_once(
            r, &r->call,
            FACTS_PATTERN_B)) /* a repeated launch finds the results of the launch before */
        return;
    if (facts_may_do_without_forward(r->problem))
        timed.forward = NULL; /* O and Stats are already in memory */
    facts_runs_time(r, facts_call_launch, &timed);
}

static bool execute(facts_runs *r)
{
    r->worker->ran = true;
    if (!facts_runs_make_forward(r) || !facts_runs_ready(r) || !facts_runs_first(r))
        return false;
    if (!r->options->once) {
        facts_exec_run(r);
        measure(r);
    }
    return r->out->status == FATTN_OK;
}

/* ---- compare
 * --------------------------------------------------------------------------------------------------------
 */

void facts_trial_judge(facts_runs *r)
{
    facts_runs_judge(r);
    if (!r->options->once)
        facts_checks_run(r);
}

facts_verdict facts_verdict_of(fattn_status status)
{
    switch (status) {
    case FATTN_ENVIRONMENT:
    case FATTN_NO_MEMORY:
        return FACTS_VERDICT_INCONCLUSIVE;
    case FATTN_BUILD_FAILED:
        return FACTS_VERDICT_BUILD_FAIL;
    case FATTN_DEVICE_FAULT:
        return FACTS_VERDICT_EXEC_FAIL;
    default:
        return FACTS_VERDICT_UNSUPPORTED;
    }
}

facts_verdict facts_trial_verdict(const facts_trial *trial)
{
    if (trial->facts_failed)
        return FACTS_VERDICT_INCONCLUSIVE;
    return trial->status == FATTN_OK ? trial->verdict : facts_verdict_of(trial->status);
}

/* ---- the whole
 * --------------------------------------------------------------------------------------------------------------
 */

bool facts_trial_execute(facts_runs *r, facts_trial *out, facts_reference *reference,
                         const fattn_plan *plan, const facts_trial_options *options)
{
    *out = (facts_trial){ .verdict = FACTS_VERDICT_PASS };
    *r = (facts_runs){ .out = out,
                       .reference = reference,
                       .options = options,
                       .problem = options->problem,
                       .memory = &reference->memory,
                       .worker = options->worker,
                       .plan = plan };
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        r->second[id] = FACTS_VERDICT_PASS;
    return prepare(r) && execute(r);
}

void facts_trial_end(facts_runs *r)
{
    const bool gpu = r->worker->device == FACTS_DEVICE_GPU;
    if (r->out->prepared && r->out->status == FATTN_OK) {
        facts_runs_say(r, "judge"); /* pictures and dumps may follow */
        /* The call may also have written past the guards: into the next case's memory, or into code. */
        r->worker->lost = r->worker->lost || (gpu && r->out->verdict == FACTS_VERDICT_OVERRUN);
    }
    if (!r->worker->lost)
        fattn_plan_destroy(r->forward);
}

void facts_trial_run(facts_trial *out, facts_reference *reference, const fattn_plan *plan,
                     const facts_trial_options *options)
{
    facts_runs r;
    if (facts_trial_execute(&r, out, reference, plan, options))
        facts_trial_judge(&r);
    facts_trial_end(&r);
}
