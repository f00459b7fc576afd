#include "checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/valid_checks.h"
#include "worker/memory/expected_transfer.h"

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
