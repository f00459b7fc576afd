/* One configuration of one case, from its memory to its verdict. Start to read here: the page is in the order of the calls, and the
 * details lie in the files beside it.
 *
 *     create, fill, reference   worker/memory/make_reference.c; all configurations of a case share them
 *     execute                   runs.c; exec.c for the ways of exec=
 *     compare                   compare_runs.c, judging*.c; checks.c for the further runs of check=
 *     report                    worker/row/row.c describes it in the row */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fattn/device.h"
#include "problem/huge.h"
#include "problem/resolution.h"
#include "runs.h"
#include "worker/memory/case_reference.h"
#include "worker/memory/own_forward.h"

/* One further run: everything that it owns. */
typedef struct further {
    facts_problem problem;
    facts_reference reference;
    facts_expectation expected; /* on the host */
    facts_view view;
} further;

typedef struct work {
    facts_runs *r;
    facts_expectation expected; /* of the base, on the host */
    facts_view base, done[FACTS_CHECK_RUNS];
    further run[FACTS_CHECK_RUNS];
    int number; /* in hand */
} work;

/* What a run has so far: the data of the fill; a backward's O and Stats too; the answers. */
typedef enum stage { FILLED, GIVEN, ANSWERED } stage;

static bool is_there(const facts_problem *p, facts_tensor_id id, stage now)
{
    const bool given =
        p->ask.pass == FATTN_BACKWARD && (id == FACTS_TENSOR_O || id == FACTS_TENSOR_STATS);
    return p->tensor[id].present &&
           (now == ANSWERED || (!facts_tensor_is_output(p, id) && (now == GIVEN || !given)));
}

/* On the host, wherever the memory is. */
static bool look_at(facts_view *out, facts_memory *m, stage now)
{
    bool whole = true;
    *out = (facts_view){ .problem = m->problem };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        out->at[id] =
            is_there(m->problem, id, now) ? facts_memory_storage(m, id, FACTS_PATTERN_A) : NULL;
        whole = whole && (out->at[id] || !is_there(m->problem, id, now));
    }
    return whole;
}

static void forget_expected(facts_expectation *expected, const facts_reference *of)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        facts_expected_release(&expected->answer[id], of, id);
}

/* A run that has answered, with its expected values. */
static bool look_at_answer(facts_view *out, facts_expectation *expected, facts_reference *of)
{
    bool whole = look_at(out, &of->memory, ANSWERED);
    *expected = of->expectation;
    memset(expected->answer, 0, sizeof expected->answer);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        whole = whole && facts_expected_on_host(&expected->answer[id], of, id);
    out->expected = expected;
    return whole;
}

#define NO_MEMORY "no memory for the check"

static fattn_status lack_memory(facts_error *error)
{
    return (fattn_status)facts_fail_as(FATTN_NO_MEMORY, error, NO_MEMORY);
}

static fattn_status edit_inputs(void *owner, facts_memory *memory, facts_error *error)
{
    work *w = owner;
    further *f = &w->run[w->number];
    if (!look_at(&f->view, memory, FILLED))
        return lack_memory(error);
    facts_check_write(&f->view, w->r->problem->check, w->number);
    f->problem.fill =
        FACTS_FILL_OTHER; /* the data is no longer that of the fill, so its name must not be used */
    return FATTN_OK;
}

static fattn_status edit_given(void *owner, facts_memory *memory, facts_error *error)
{
    work *w = owner;
    further *f = &w->run[w->number];
    if (!look_at(&f->view, memory, GIVEN))
        return lack_memory(error);
    facts_check_give(&f->view, &w->base);
    return FATTN_OK;
}

static const char *worst_tensor(const facts_trial *trial, double *ratio)
{
    const char *word = "";
    *ratio = -1.0;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (trial->judged[id] && trial->judgement[id].ratio > *ratio) {
            *ratio = trial->judgement[id].ratio;
            word = facts_tensor_word(id);
        }
    return word;
}

/* A run is compared with the reference first, as every answer. */
static bool judge(work *w, const facts_trial *trial)
{
    const char *check = facts_check_words[w->r->problem->check];
    double ratio;
    if (trial->status != FATTN_OK) {
        w->r->out->status = trial->status;
        snprintf(w->r->out->text, sizeof w->r->out->text, "check=%s, run %d: %.300s", check,
                 w->number, trial->text);
        return false;
    }
    w->r->out->check.runs++;
    /* An output without a known bound may have any value, but must be written, and only inside its
     * tensor. */
    if (trial->verdict == FACTS_VERDICT_PASS ||
        (facts_check_only_records(w->r->problem) && trial->verdict != FACTS_VERDICT_OVERRUN))
        return true;
    const char *tensor = worst_tensor(trial, &ratio);
    facts_runs_find(w->r, trial->verdict,
                    "check=%s, run %d: %s is %.3g times its tolerance. %.200s", check, w->number,
                    tensor, ratio, trial->text);
    return false;
}

static bool has_no_memory(facts_runs *r)
{
    r->out->status = FATTN_NO_MEMORY;
    snprintf(r->out->text, sizeof r->out->text, NO_MEMORY);
    return false;
}

static bool run_one(work *w)
{
    further *f = &w->run[w->number];
    /* The reference on a GPU takes neither NaN nor an infinity. */
    const bool here = !w->r->memory->gpu || w->r->problem->check == FACTS_CHECK_NONFINITE;
    facts_reference_edit edit = {
        .inputs = edit_inputs, .given = edit_given, .owner = w, .here = here
    };
    facts_trial trial;
    facts_trial_options options = *w->r->options;
    facts_check_ask(&f->problem, w->r->problem);
    options.once = true;
    options.problem = &f->problem;
    options.edit = &edit;
    facts_trial_run(&trial, &f->reference, w->r->plan, &options);
    if (!judge(w, &trial))
        return false;
    if (!look_at_answer(&f->view, &f->expected, &f->reference))
        return has_no_memory(w->r);
    w->done[w->number] = f->view;
    return true;
}

static void hold(work *w)
{
    facts_trial *out = w->r->out;
    facts_held *held = &out->check.held;
    facts_check_hold(held, &w->base, w->done);
    out->check.done = true;
    if (out->judged[held->id]) {
        facts_judgement *j = &out->judgement[held->id];
        j->gates[FACTS_GATE_CHECK] = held->ratio;
        if (held->wrong && held->ratio > j->ratio) {
            j->gate = FACTS_GATE_CHECK;
            j->ratio = held->ratio;
            j->got = held->got;
            j->want = held->want;
            j->bound = held->bound;
            for (int d = 0; d < 4; d++)
                j->worst[d] = held->at[d];
        }
        j->wrong += held->wrong;
    }
    if (held->wrong)
        facts_runs_find(w->r, FACTS_VERDICT_WRONG,
                        "check=%s: %s: %s at b %" PRId64 " h %" PRId64 " s %" PRId64 " d %" PRId64
                        " is %.9g, not %.9g within %.3g (%" PRId64 " of %" PRId64 ")",
                        facts_check_words[w->r->problem->check], held->law,
                        facts_tensor_word(held->id), held->at[0], held->at[1], held->at[2],
                        held->at[3], held->got, held->want, held->bound, held->wrong,
                        held->compared);
}

static void leave(work *w)
{
    for (int i = 0; i < FACTS_CHECK_RUNS; i++) {
        further *f = &w->run[i];
        forget_expected(&f->expected, &f->reference);
        facts_reference_destroy(&f->reference);
    }
    forget_expected(&w->expected, w->r->reference);
    free(w);
}

void facts_checks_run(facts_runs *r)
{
    int runs = facts_check_runs(r->problem);
    if (runs == 0 || facts_runs_over(r))
        return;
    work *w = calloc(1, sizeof *w);
    if (!w) {
        has_no_memory(r);
        return;
    }
    w->r = r;
    bool all = look_at_answer(&w->base, &w->expected, r->reference) || has_no_memory(r);
    for (w->number = 0; all && w->number < runs; w->number++)
        all = run_one(w);
    if (all)
        hold(w);
    leave(w);
}

/* ---- create, fill, reference
 * ------------------------------------------------------------------------------------------------
 */

static fattn_status make(facts_reference *out, const facts_making *how,
                         const facts_reference_edit *edit, facts_error *error)
{
    fattn_status status = facts_reference_create(out, how, error);
    if (status == FATTN_OK)
        status = facts_reference_fill(out, edit, error);
    return status == FATTN_OK ? facts_reference_compute(out, edit, error) : status;
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
    if (r->reference->keep.here && !edit && r->reference->backend != who.backend)
        facts_reference_destroy(r->reference); /* another configuration's backend dropped those */
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
