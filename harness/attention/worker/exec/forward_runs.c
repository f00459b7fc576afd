/* The forward that runs before its backward, so that the backward reads the O and Stats of this
 * target. */
#include <stdio.h>
#include <string.h>

#include "runs.h"
#include "worker/memory/own_forward.h"

/* The target refuses this forward; it did not fail. */
static bool is_refusal(fattn_status status)
{
    return (status >= FATTN_BAD_PROBLEM && status <= FATTN_INTERNAL &&
            status != FATTN_ENVIRONMENT) ||
           status == FATTN_BUILD_FAILED;
}

/* The forward that runs before this backward. */
bool facts_runs_make_forward(facts_runs *r)
{
    if (!facts_has_own_forward(r->problem))
        return true;
    facts_runs_say(r, "build");
    fattn_problem forward = facts_own_forward(&r->problem->ask);
    fattn_status status =
        facts_plan_get(&r->forward, r->worker->plans, r->worker->context, &forward, NULL, NULL);
    if (is_refusal(status) && facts_may_do_without_forward(r->problem)) {
        snprintf(r->out->no_forward, sizeof r->out->no_forward, "no forward here: %.170s",
                 fattn_last_error());
        return true;
    }
    r->out->own_forward = true;
    return facts_runs_check(r, status, "the forward of this case") &&
           facts_runs_check(r, facts_memory_produce(r->memory), NULL);
}

/* The expected values of a backward depend on the O and Stats that it read. */
static bool renew_reference(facts_runs *r)
{
    if (!r->forward)
        return true;
    facts_runs_say(r, "reference");
    const int failed = facts_reference_renew(r->reference);
    facts_runs_say(r, "exec");
    return facts_runs_has_reference(r, failed);
}

/* The forward's own cases detect a wrong forward; here it would hide the backward. */
static bool refuse_forward(facts_runs *r, bool *refused)
{
    bool kept = true;
    *refused = false;
    if (!r->forward || !facts_may_do_without_forward(r->problem))
        return true;
    facts_runs_say(r, "reference");
    const int failed = facts_reference_keep_own(r->reference, &kept);
    facts_runs_say(r, "exec");
    if (!facts_runs_has_reference(r, failed))
        return false;
    if (kept)
        return true;
    *refused = true;
    r->out->own_forward = false;
    snprintf(r->out->no_forward, sizeof r->out->no_forward,
             "its forward gave another O or other Stats");
    fattn_plan_destroy(r->forward);
    r->forward = NULL;
    r->call = facts_call_now(r);
    return true;
}

/* Runs over poison A. If the O and Stats of the forward cannot be used, runs again with the
 * reference's. */
bool facts_runs_first(facts_runs *r)
{
    bool again;
    if (!facts_runs_once(r, &r->call, FACTS_PATTERN_A) || !refuse_forward(r, &again))
        return false;
    if (again) {
        r->made = 0;
        memset(r->overrun, 0, sizeof r->overrun);
        return facts_runs_once(r, &r->call, FACTS_PATTERN_A);
    }
    return renew_reference(r);
}
