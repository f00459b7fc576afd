#include "runs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "fattn/device.h"
#include "judging.h"

facts_call facts_call_now(const facts_runs *r)
{
    facts_call call = { .plan = *r->plan,
                        .tensors = facts_memory_tensors(r->memory),
                        .backward = r->problem->ask.pass == FATTN_BACKWARD };
    call.forward = r->forward;
    call.forward_tensors = call.tensors;
    return call;
}

bool facts_runs_check(facts_runs *r, fattn_status status, const char *what)
{
    if (status == FATTN_OK)
        return true;
    r->out->status = status;
    const char *said = r->worker->gpu ? facts_gpu_error(r->worker->gpu) : "";
    snprintf(r->out->text, sizeof r->out->text, "%s%s%.300s", what ? what : "", what ? ": " : "",
             said[0] ? said : fattn_last_error());
    if (status == FATTN_DEVICE_FAULT)
        r->worker->lost = true;
    return false;
}

void facts_runs_find(facts_runs *r, facts_verdict verdict, const char *format, ...)
{
    facts_verdict before = r->out->verdict, both = before == FACTS_VERDICT_PASS ? verdict : facts_verdict_worse(before, verdict);
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

bool facts_runs_has_truth(facts_runs *r, int failed)
{
    if (failed == EIO)
        return facts_runs_check(r, FATTN_DEVICE_FAULT, "the reference");
    if (failed == ENOTSUP) {
        facts_runs_blame_forward(r);
    } else if (failed) {
        r->out->status = FATTN_NO_MEMORY;
        snprintf(r->out->text, sizeof r->out->text, "no memory for the reference");
    }
    return failed == 0;
}

/* ---- a run ------------------------------------------------------------------------------------------------------------------ */

bool facts_runs_arm(facts_runs *r, facts_pattern pattern)
{
    uint64_t garbage = r->made < 2 ? 0 : r->problem->seed * 1000003 + (uint64_t)r->made;
    r->made++;
    if (garbage && !facts_runs_check(r, facts_memory_disturb(r->memory, garbage), NULL))
        return false;
    return facts_runs_check(r, facts_memory_arm(r->memory, pattern, garbage), NULL);
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

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

bool facts_runs_once(facts_runs *r, const facts_call *call, facts_pattern pattern)
{
    facts_call launched = *call, before = { .plan = call->forward, .tensors = call->forward_tensors };
    if (!facts_runs_arm(r, pattern))
        return false;
    if (before.plan && !facts_runs_check(r, facts_call_launch(&before, r->worker->stream), NULL))
        return false;
    launched.forward = NULL;
    double since = now_us();
    if (!facts_runs_check(r, facts_seam_run(r->memory, &launched), NULL))
        return false;
    if (r->worker->device == FACTS_DEVICE_CPU)
        r->out->exec_us = now_us() - since;
    return facts_runs_fetch(r, pattern);
}

/* ---- the same bits ---------------------------------------------------------------------------------------------------------- */

/* Of a huge problem what is due is computed here. */
static void judged(facts_runs *r, fattn_status status, double since)
{
    if (status == FATTN_INTERNAL && r->forward)
        facts_runs_blame_forward(r);
    else
        facts_runs_check(r, status, NULL);
    r->out->judge_ms += (now_us() - since) * 1e-3;
}

void facts_runs_judge_first(facts_runs *r)
{
    const double since = now_us();
    judged(r, facts_judging_all(r->out->judgement, r->out->bits, r->truth), since);
}

/* Of the elements that differ, those that do by more than the order of a sum: dQ may be summed by atomics, and dBias over the
 * batch, unless the case asks for the same bits. */
static int64_t unlike(facts_runs *r, facts_tensor_id id, int64_t different, int64_t at[4])
{
    double share;
    int64_t far = 0;
    switch (facts_expect_alike(r->problem, id, &share)) {
    case FACTS_ALIKE_BITS:
        return different;
    case FACTS_ALIKE_SUMS:
        facts_runs_check(r, facts_judging_close(&far, r->truth, id, share, at), NULL);
        return far;
    default:
        return 0;
    }
}

static void judge_again(facts_runs *r, facts_tensor_id id)
{
    facts_judgement found;
    const double since = now_us();
    judged(r, facts_judging_of(&found, r->truth, id, FACTS_PATTERN_B), since);
    facts_verdict verdict = facts_judgement_verdict(&found);
    /* The plain run is judged for itself: what a graph makes of it is the graph's doing. */
    if (verdict != FACTS_VERDICT_PASS && r->otherwise == FACTS_VERDICT_GRAPH_MISMATCH)
        verdict = FACTS_VERDICT_GRAPH_MISMATCH;
    facts_verdict both = facts_verdict_worse(r->second[id], verdict);
    if (both != r->second[id])
        r->judgement[id] = found;
    r->second[id] = both;
}

/* Numbers of a call over poison B have to be right too; a sum of them need not be the same. */
static void judge_arrays_again(facts_runs *r)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        facts_judgement found;
        if (!r->problem->array[id].output || r->problem->array[id].count == 0 ||
            !facts_runs_check(r, facts_judging_array(&found, r->truth, id, FACTS_PATTERN_B), NULL))
            continue;
        const facts_verdict verdict = facts_judgement_verdict(&found);
        if (verdict != FACTS_VERDICT_PASS)
            facts_runs_find(r, verdict, "%s over other memory: %.9g, not %.9g within %.3g", facts_array_words[id], found.got,
                            found.want, found.bound);
    }
}

void facts_runs_compare(facts_runs *r, const char *how)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        int64_t at[4] = { 0 }, different = 0;
        bool output = facts_tensor_is_output(r->problem, id),
             produced = r->forward && (id == FACTS_TENSOR_O || id == FACTS_TENSOR_STATS);
        if ((output || produced) && !facts_runs_check(r, facts_judging_repeat(&different, r->truth, id, at), NULL))
            return;
        if (!different)
            continue;
        if (output)
            judge_again(r, id);
        int64_t far = unlike(r, id, different, at);
        if (far || r->second[id] == FACTS_VERDICT_GRAPH_MISMATCH)
            facts_runs_find(r, r->otherwise,
                            "%s: %" PRId64 " elements differ between %s, the first at b %" PRId64 " h %" PRId64 " s %" PRId64
                            " d %" PRId64,
                            facts_tensor_word(id), far ? far : different, how, at[0], at[1], at[2], at[3]);
    }
    if (facts_tensor_is_output(r->problem, FACTS_TENSOR_RNG_DUMP))
        judge_again(r, FACTS_TENSOR_RNG_DUMP);
    judge_arrays_again(r);
}

void facts_runs_judge_all(facts_runs *r, const char *how)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!facts_tensor_is_output(r->problem, id))
            continue;
        judge_again(r, id);
        if (r->second[id] != FACTS_VERDICT_PASS)
            facts_runs_find(r, r->second[id], "%s: %s", facts_tensor_word(id), how);
    }
    judge_arrays_again(r);
}

bool facts_runs_over(const facts_runs *r)
{
    return r->out->status != FATTN_OK || r->out->verdict != FACTS_VERDICT_PASS;
}
