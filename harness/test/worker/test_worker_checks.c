/* The further runs of a check, as the worker makes them on the cpu: what a row says of them, and
 * that what does not hold is a wrong answer. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../case/asked_problem.h"
#include "numbers/dtype.h"
#include "problem/case_problem.h"
#include "worker/exec/runs.h"
#include "worker/row/row.h"
#include "worker/target/loaded_target.h"

/* A case that has run once, so that its answers lie in memory. */
typedef struct scene {
    facts_worker worker;
    facts_problem p;
    facts_reference reference;
    fattn_plan *plan;
    facts_trial trial;
    facts_trial_options options;
    facts_runs runs;
} scene;

static void no_stage(void *owner, const char *stage)
{
    (void)owner, (void)stage;
}

static void begin(scene *s, const char *text)
{
    facts_target_request request = { .device = FACTS_DEVICE_CPU, .threads = 2 };
    facts_error why = { 0 };
    json_t *reply = NULL;
    memset(s, 0, sizeof *s);
    cr_assert(facts_target_open(&s->worker, &request, &reply));
    json_decref(reply);
    s->p = problem_asked(text);
    cr_assert_eq(facts_trial_prepare(&s->reference,
                                     &(facts_making){ .worker = &s->worker, .problem = &s->p },
                                     NULL, &why),
                 FATTN_OK, "%s", why.text);
    cr_assert_eq(fattn_plan_create(&s->plan, s->worker.context, &s->p.ask, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    s->trial.verdict = FACTS_VERDICT_PASS;
    s->options = (facts_trial_options){ .worker = &s->worker, .problem = &s->p, .stage = no_stage };
    s->runs = (facts_runs){ .out = &s->trial,
                            .reference = &s->reference,
                            .options = &s->options,
                            .problem = &s->p,
                            .memory = &s->reference.memory,
                            .worker = &s->worker,
                            .plan = s->plan };
    cr_assert_eq(facts_memory_workspace(&s->reference.memory, fattn_plan_workspace_bytes(s->plan)),
                 FATTN_OK);
    s->runs.call = facts_call_now(&s->runs);
    cr_assert(facts_runs_once(&s->runs, &s->runs.call, FACTS_PATTERN_A), "%s", s->trial.text);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        s->trial.judged[id] = facts_tensor_is_output(&s->p, id);
}

static void end(scene *s)
{
    fattn_plan_destroy(s->plan);
    facts_reference_destroy(&s->reference);
    facts_target_close(&s->worker);
}

/* Bends one element of an answer by a few steps of its type: less than the judge can see is enough
 * where bits are asked for. */
static void bend(scene *s, facts_tensor_id id, uint32_t steps)
{
    const facts_tensor *t = &s->p.tensor[id];
    void *storage = facts_memory_storage(&s->reference.memory, id, FACTS_PATTERN_A);
    facts_store(t->dtype, storage, t->first + 5,
                facts_load(t->dtype, storage, t->first + 5) + steps);
}

/* The further runs, which have to end so. */
static void check(scene *s, facts_verdict expects)
{
    facts_checks_run(&s->runs);
    cr_expect_eq(s->trial.status, FATTN_OK, "%s", s->trial.text);
    cr_expect_eq(s->trial.verdict, expects, "%s: %s", facts_verdict_name(s->trial.verdict),
                 s->trial.text);
}

#define SHAPE "dtype=bf16 b=2 h=4/2 s=40/56 d=32 "

Test(worker_checks, a_sum_that_does_not_agree_is_wrong_and_named)
{
    scene s;
    begin(&s, "pass=bwd " SHAPE "check=identities");
    bend(&s, FACTS_TENSOR_DV, 3000);
    check(&s, FACTS_VERDICT_WRONG);
    cr_expect(strncmp(s.trial.text, "check=identities: I1", 20) == 0, "%s", s.trial.text);
    cr_expect_eq(s.trial.judgement[s.trial.check.held.id].gate, FACTS_GATE_CHECK);
    end(&s);
}

/* FACTS writes the arrays of a call. A huge 8-bit backward without its forward's scale_o was
 * "unsupported", version after version. */
Test(worker_checks, a_call_that_lacks_an_array_is_a_failure_of_facts)
{
    scene s;
    begin(&s, "pass=fwd " SHAPE "padding=random");
    s.runs.call.tensors.seq_len_q = NULL;
    cr_assert_not(facts_runs_once(&s.runs, &s.runs.call, FACTS_PATTERN_A));
    cr_expect(s.trial.facts_failed, "%s", s.trial.text);
    cr_expect_eq(facts_trial_verdict(&s.trial), FACTS_VERDICT_INCONCLUSIVE);
    end(&s);
}

Test(worker_checks, an_answer_that_is_wrong_already_is_not_asked_further)
{
    scene s;
    begin(&s, "pass=fwd " SHAPE "check=identities");
    s.trial.verdict = FACTS_VERDICT_WRONG;
    facts_checks_run(&s.runs);
    cr_expect_not(s.trial.check.done);
    cr_expect_eq(s.trial.check.runs, 0);
    end(&s);
}

Test(worker_checks, a_row_has_what_the_check_found)
{
    scene s;
    begin(&s, "pass=bwd " SHAPE "mask=causal check=identities");
    check(&s, FACTS_VERDICT_PASS);
    json_t *row = json_object();
    facts_row_check(row, &s.trial.check);
    json_t *check = json_object_get(row, "check");
    cr_expect_eq(json_integer_value(json_object_get(check, "runs")), 1);
    cr_expect_gt(json_integer_value(json_object_get(check, "compared")), 100);
    cr_expect(json_real_value(json_object_get(check, "ratio")) < 1.0);
    cr_expect_eq(strncmp(json_string_value(json_object_get(check, "law")), "I", 1), 0);
    json_decref(row);
    end(&s);
}

/* A later run that stays within its tensors does not hide an earlier one that did not. */
Test(worker_checks, the_largest_overrun_of_all_runs_is_kept)
{
    scene s;
    begin(&s, "pass=fwd " SHAPE);
    ((unsigned char *)s.reference.memory.set->device[FACTS_TENSOR_O])[3] ^=
        1; /* before the tensor */
    cr_assert(facts_runs_fetch(&s.runs, FACTS_PATTERN_A), "%s", s.trial.text);
    cr_expect_eq(s.runs.overrun[FACTS_TENSOR_O], 1);
    cr_assert(facts_runs_once(&s.runs, &s.runs.call, FACTS_PATTERN_B), "%s", s.trial.text);
    cr_expect_eq(s.runs.overrun[FACTS_TENSOR_O], 1);
    end(&s);
}
