/* A backward whose forward runs before it: what becomes of O and Stats that the oracle on a GPU
 * does not take. */
#include <errno.h>
#include <string.h>

#include "emulated.h"
#include "worker/exec/both_oracles.h"

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

/* limits: what is due is computed while it is judged; NULL: before. */
static facts_trial run_failing(failure f, const facts_slab_limits *limits)
{
    static facts_problem p;
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    facts_worker worker = {
        .context = context, .device = FACTS_DEVICE_CPU, .gpu = gpu, .limits = limits
    };
    facts_reference reference = { 0 };
    facts_trial trial;
    facts_case c;
    facts_error error = { 0 };
    fattn_plan *plan = NULL;
    cr_assert(facts_case_parse(&c, "pass=bwd b=2 h=2 s=20 d=16 exec=graph", &error), "%s",
              error.text);
    cr_assert_eq(facts_problem_resolve(&p, &c, &error), FACTS_RESOLVED, "%s", error.text);
    cr_assert_eq(fattn_plan_create(&plan, context, &p.ask, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    facts_trial_run(
        &trial, &reference, plan,
        &(facts_trial_options){
            .worker = &worker, .problem = &p, .once = true, .stage = fail, .owner = &f });
    emulated_oracle_fails = 0;
    cr_expect(limits || facts_both_agree(&trial, &reference, &error),
              "what was not judged has nothing to compare: %s", error.text);
    fattn_plan_destroy(plan);
    facts_reference_destroy(&reference);
    close_emulated(gpu, context);
    return trial;
}

static void expect_blamed(const facts_trial *trial)
{
    cr_expect_eq(trial->status, FATTN_OK, "%s", trial->text);
    cr_expect_eq(trial->verdict, FACTS_VERDICT_NAN);
    cr_expect(strstr(trial->text, "its own forward") != NULL, "%s", trial->text);
}

/* The C one computes with a NaN, and every gradient is due to be NaN, which nothing equals. */
Test(own_forward, what_is_no_number_is_the_forwards_and_no_lack_of_memory)
{
    const facts_trial trial = run_failing((failure){ "reference", 1, ENOTSUP }, NULL);
    expect_blamed(&trial);
}

Test(own_forward, so_it_is_where_what_is_due_is_computed_while_judging)
{
    const facts_slab_limits one_head = { 0, 30000, 1e30 };
    const facts_trial trial = run_failing((failure){ "judge", 0, ENOTSUP }, &one_head);
    expect_blamed(&trial);
}

Test(own_forward, a_lack_of_memory_is_one)
{
    const facts_trial trial = run_failing((failure){ "reference", 1, ENOMEM }, NULL);
    cr_expect_eq(trial.status, FATTN_NO_MEMORY);
    cr_expect_str_eq(trial.text, "no memory for the reference");
}
