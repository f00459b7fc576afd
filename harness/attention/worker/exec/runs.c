#include "runs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fattn/device.h"
#include "worker/gpu/worker_gpu.h"
#include "worker/memory/own_forward.h"

facts_call facts_call_now(const facts_runs *r)
{
    facts_call call = { .plan = r->plan,
                        .tensors = facts_memory_tensors(r->memory),
                        .backward = r->problem->ask.pass == FATTN_BACKWARD };
    call.forward = r->forward;
    call.forward_tensors = call.tensors;
    return call;
}

/* If the worker times out or dies here, this word decides whether the engine or FACTS is blamed. */
void facts_runs_say(const facts_runs *r, const char *stage)
{
    r->options->stage(r->options->owner, stage);
}

/* Is this sentence about the contents of an array? */
static bool is_about_arrays(const char *text)
{
    for (int id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (strncmp(text, facts_array_words[id], strlen(facts_array_words[id])) == 0)
            return true;
    return false;
}

bool facts_runs_check(facts_runs *r, fattn_status status, const char *what)
{
    if (status == FATTN_OK)
        return true;
    r->out->status = status;
    const char *text = r->worker->gpu ? facts_gpu_error(r->worker->gpu) : "";
    snprintf(r->out->text, sizeof r->out->text, "%s%s%.300s", what ? what : "", what ? ": " : "",
             text[0] ? text : fattn_last_error());
    if (status == FATTN_DEVICE_FAULT)
        r->worker->lost = true;
    /* FACTS writes the arrays, so that a wrong one is not the engine's mistake. */
    if (status == FATTN_BAD_PROBLEM && is_about_arrays(fattn_last_error()))
        r->out->facts_failed = true;
    return false;
}

void facts_runs_find(facts_runs *r, facts_verdict verdict, const char *format, ...)
{
    facts_verdict before = r->out->verdict, both = before == FACTS_VERDICT_PASS
                                                       ? verdict
                                                       : facts_verdict_worse(before, verdict);
    if (both == before && r->out->text[0] != '\0')
        return;
    r->out->verdict = both;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->out->text, sizeof r->out->text, format, arguments);
    va_end(arguments);
}

void facts_runs_blame_forward(facts_runs *r)
{
    facts_runs_find(r, FACTS_VERDICT_NAN, "O or Stats of its own forward: %s",
                    r->worker->gpu ? facts_gpu_error(r->worker->gpu) : "");
}

bool facts_runs_has_reference(facts_runs *r, int failed)
{
    if (failed == ENOTSUP) {
        facts_runs_blame_forward(r);
    } else if (failed == ENOMEM) {
        r->out->status = FATTN_NO_MEMORY;
        snprintf(r->out->text, sizeof r->out->text, "no memory for the reference");
    } else if (failed) {
        return facts_runs_check(r, FATTN_DEVICE_FAULT, "the reference");
    }
    return failed == 0;
}

/* ---- a run
 * ------------------------------------------------------------------------------------------------------------------
 */

bool facts_runs_arm(facts_runs *r, facts_pattern pattern)
{
    uint64_t garbage = r->made < 2 ? 0 : r->problem->seed * 1000003 + (uint64_t)r->made;
    r->made++;
    facts_gpu *gpu = r->worker->gpu;
    return (!garbage || facts_runs_check(r, facts_memory_disturb(r->memory, garbage), NULL)) &&
           facts_runs_check(r, facts_memory_arm(r->memory, pattern, garbage), NULL) &&
           (!gpu || facts_runs_check(r, facts_gpu_shared(gpu, NULL), NULL));
}

bool facts_runs_fetch(facts_runs *r, facts_pattern pattern)
{
    int64_t overrun[FACTS_PLACES];
    if (!facts_runs_check(r, facts_seam_fetch(r->memory, pattern, overrun), NULL))
        return false;
    for (int i = 0; i < FACTS_PLACES; i++)
        r->overrun[i] = overrun[i] > r->overrun[i] ? overrun[i] : r->overrun[i];
    return true;
}

/* The first run is over pattern A. With memory=N a launch without enough memory is an answer of the
 * engine, not a lack of memory of FACTS. */
static bool launch(facts_runs *r, facts_call *call, facts_pattern pattern)
{
    const int64_t mib = pattern == FACTS_PATTERN_A ? r->problem->memory_mib : -1;
    char why[160];
    facts_ballast ballast;
    const bool tight = facts_ballast_take(&ballast, r->worker->gpu, mib, why);
    const fattn_status status = tight ? facts_seam_run(r->memory, call) : FATTN_ENVIRONMENT;
    facts_ballast_drop(&ballast, r->worker->gpu);
    if (!tight) {
        r->out->status = status;
        snprintf(r->out->text, sizeof r->out->text, "%s", why);
    } else if (mib >= 0 && status == FATTN_NO_MEMORY) {
        facts_runs_find(r, FACTS_VERDICT_EXEC_FAIL, "with %" PRId64 " MiB free: %s", mib,
                        fattn_last_error());
    } else {
        return facts_runs_check(r, status, NULL);
    }
    return false;
}

bool facts_runs_once(facts_runs *r, const facts_call *call, facts_pattern pattern)
{
    facts_call launched = *call,
               before = { .plan = call->forward, .tensors = call->forward_tensors };
    if (!facts_runs_arm(r, pattern))
        return false;
    if (before.plan && !facts_runs_check(r, facts_call_launch(&before, r->worker->stream), NULL))
        return false;
    launched.forward = NULL;
    double since = facts_now_ms();
    if (!launch(r, &launched, pattern))
        return false;
    if (r->worker->device == FACTS_DEVICE_CPU)
        r->out->exec_us = (facts_now_ms() - since) * 1e3;
    return facts_runs_fetch(r, pattern);
}

/* ---- before the first run
 * ---------------------------------------------------------------------------------------------------
 */

static bool make_workspace(facts_runs *r)
{
    size_t bytes = fattn_plan_workspace_bytes(r->plan),
           forward = r->forward ? fattn_plan_workspace_bytes(r->forward) : 0;
    return facts_runs_check(r, facts_memory_workspace(r->memory, forward > bytes ? forward : bytes),
                            NULL);
}

/* Checks the offsets, tables, lengths and scales on the device. */
static bool check_call(facts_runs *r)
{
#define AS_PLACE(symbol, name, bit) [bit] = FACTS_TENSOR_##symbol,
    static const facts_tensor_id tensors[FATTN_RAGGED_TENSORS] = { FATTN_RAGGED_LIST(AS_PLACE) };
#undef AS_PLACE
    int64_t elements[FATTN_RAGGED_TENSORS] = { 0 };
    for (int i = 0; i < FATTN_RAGGED_TENSORS; i++) {
        const facts_tensor *t = &r->problem->tensor[tensors[i]];
        elements[i] = t->present ? t->elements - t->first : 0;
    }
    if (!facts_runs_check(r, facts_memory_arm(r->memory, FACTS_PATTERN_A, 0), NULL))
        return false;
    return facts_runs_check(
        r, fattn_call_check(r->plan, &r->call.tensors, elements, r->worker->stream), NULL);
}

bool facts_runs_ready(facts_runs *r)
{
    if (!make_workspace(r))
        return false;
    r->call = facts_call_now(r);
    facts_runs_say(r, "exec");
    return check_call(r);
}

int32_t facts_runs_repeats(const facts_runs *r)
{
    const int32_t least = r->worker->device == FACTS_DEVICE_GPU ? FACTS_RUNS_ON_A_GPU : 2;
    return (r->problem->repeat > least ? r->problem->repeat : least) -
           1; /* the first run is one of them */
}

bool facts_runs_over(const facts_runs *r)
{
    return r->out->status != FATTN_OK || r->out->verdict != FACTS_VERDICT_PASS;
}

/* The forward that runs before its backward, so that the backward reads the O and Stats of this
 * target. */

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
