/* What a worker says it is doing is whose fault a deadline is: the engine's, whose plans and calls
 * hang, or ours (supervisor/slot.c). */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "../case/asked_problem.h"
#include "problem/case_problem.h"
#include "worker/exec/trial.h"
#include "worker/row/row.h"
#include "worker/target/loaded_target.h"

/* Every word but those that repeat the one before. */
static void note(void *owner, const char *word)
{
    char *reported = owner;
    const char *last = strrchr(reported, ' ');
    if (last == NULL || strcmp(last + 1, word) != 0) {
        strcat(reported, " ");
        strcat(reported, word);
    }
}

/* Returns how many runs were fetched, and so compared or judged. */
static uint64_t expect_stages(const char *text, facts_device device, const char *expects)
{
    facts_target_request request = { .device = FACTS_DEVICE_CPU, .threads = 2 };
    facts_worker worker;
    facts_problem p = problem_asked(text);
    facts_reference reference = { 0 };
    facts_trial trial;
    fattn_plan *plan = NULL;
    json_t *reply = NULL;
    char reported[1000] = "";
    cr_assert(facts_target_open(&worker, &request, &reply));
    json_decref(reply);
    cr_assert_eq(fattn_plan_create(&plan, worker.context, &p.ask, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    worker.device = device;
    facts_trial_run(&trial, &reference, plan,
                    &(facts_trial_options){
                        .worker = &worker, .problem = &p, .stage = note, .owner = reported });
    cr_expect(trial.status == FATTN_OK && trial.verdict == FACTS_VERDICT_PASS, "%s: %s", text,
              trial.text);
    cr_expect_str_eq(reported + (reported[0] == ' '), expects, "%s: %s", text, reported);
    const uint64_t fetches = reference.memory.fetches;
    fattn_plan_destroy(plan);
    facts_reference_destroy(&reference);
    worker.device = FACTS_DEVICE_CPU;
    facts_target_close(&worker);
    return fetches;
}

Test(worker_stages, each_run_of_a_check_is_made_and_judged)
{
    expect_stages(
        "pass=fwd b=2 h=4/2 s=40/56 d=32 want=stats check=nonfinite", FACTS_DEVICE_CPU,
        "reference exec judge reference exec judge reference exec judge reference exec judge");
}

Test(worker_stages, a_forward_before_its_backward_is_built_and_looked_at)
{
    facts_problem p = { .own_forward = false };
    char text[200];
    for (int seed = 1; !p.own_forward; seed++) {
        snprintf(text, sizeof text, "pass=bwd b=2 h=2 s=20/28 d=16 seed=%d", seed);
        p = problem_asked(text);
    }
    expect_stages(text, FACTS_DEVICE_CPU,
                  "reference build exec reference exec reference exec judge");
}

/* Of the timed launches the last is looked at, after a run over other memory. */
Test(worker_stages, a_gpu_makes_more_runs_and_all_are_looked_at)
{
    static const char text[] = "pass=fwd b=2 h=2 s=20 d=16", stages[] = "reference exec judge";
    cr_expect_eq(expect_stages(text, FACTS_DEVICE_CPU, stages), 2);
    cr_expect_eq(expect_stages(text, FACTS_DEVICE_GPU, stages), FACTS_RUNS_ON_A_GPU + 2);
    cr_expect_eq(expect_stages("pass=fwd b=2 h=2 s=20 d=16 repeat=9", FACTS_DEVICE_GPU, stages),
                 9 + 2);
}

static void expect_calibration(bool calibrated, int32_t assumed, const char *reported)
{
    facts_problem p = { .ask = { .pass = FATTN_FORWARD } };
    const facts_reference reference = {
        .memory = { .problem = &p }, .constants = { .calibrated = calibrated, .assumed = assumed }
    };
    const facts_trial trial = { .prepared = true, .oracle = "cpu" };
    json_t *row = json_object();
    facts_row_trial(row, &trial, &reference);
    const char *text = json_string_value(json_object_get(row, "calibration"));
    cr_expect((text == NULL) == (reported == NULL) && (text == NULL || strcmp(text, reported) == 0),
              "%s", text ? text : "nothing");
    json_decref(row);
}

Test(worker_rows, say_whose_constants_judged_them)
{
    expect_calibration(true, 0, "measured");
    expect_calibration(false, 92800, "assumed 9.28.0");
    expect_calibration(false, 0, NULL);
}
