/* A backward whose forward runs before it: what becomes of O and Stats that the oracle on a GPU
 * does not take. */
#include <errno.h>
#include <string.h>

#include "emulated.h"
#include "worker/exec/trial.h"

/* When the oracle fails, and how. */
typedef struct failure {
    const char *stage;
    int after; /* so many stages of this name */
    int number;
} failure;

static void fail(void *owner, const char *stage)
{
    failure *f = owner;
    if (strcmp(stage, f->stage) == 0 && f->after-- == 0)
        emulated_oracle_fails = f->number;
}

static facts_trial run_failing(failure f)
{
    const facts_problem *p = asked_by("pass=bwd b=2 h=2 s=20 d=16 exec=graph");
    facts_worker worker = worker_with(gpu);
    facts_reference reference = { 0 };
    facts_trial trial;
    fattn_plan *plan = NULL;
    cr_assert_eq(fattn_plan_create(&plan, context, &p->ask, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    facts_trial_run(
        &trial, &reference, plan,
        &(facts_trial_options){
            .worker = &worker, .problem = p, .once = true, .stage = fail, .owner = &f });
    emulated_oracle_fails = 0;
    fattn_plan_destroy(plan);
    facts_reference_destroy(&reference);
    return trial;
}

TestSuite(own_forward, .init = open_emulated, .fini = close_emulated);

/* The C one computes with a NaN, and every gradient is due to be NaN, which nothing equals. */
Test(own_forward, what_is_no_number_is_the_forwards_and_no_lack_of_memory)
{
    const facts_trial trial = run_failing((failure){ "reference", 1, ENOTSUP });
    cr_expect_eq(trial.status, FATTN_OK, "%s", trial.text);
    cr_expect_eq(trial.verdict, FACTS_VERDICT_NAN);
    cr_expect(strstr(trial.text, "its own forward") != NULL, "%s", trial.text);
}

Test(own_forward, a_lack_of_memory_is_one)
{
    const facts_trial trial = run_failing((failure){ "reference", 1, ENOMEM });
    cr_expect_eq(trial.status, FATTN_NO_MEMORY);
    cr_expect_str_eq(trial.text, "no memory for the reference");
}
