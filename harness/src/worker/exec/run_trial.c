#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checks.h"
#include "exec.h"
#include "fattn/device.h"
#include "judging.h"
#include "numbers/check/judge_keep.h"
#include "numbers/dtype.h"
#include "runs.h"
#include "worker/memory/own_forward.h"

/* What is in hand: a worker that is late or dies there has the engine, or us, to blame. */
static void say_stage(const facts_runs *r, const char *word)
{
    r->options->stage(r->options->owner, word);
}

static facts_verdict verdict_of(facts_runs *r, facts_tensor_id id)
{
    facts_trial *out = r->out;
    out->judged[id] = true;
    facts_verdict first = facts_judgement_verdict(&out->judgement[id]), verdict = facts_verdict_worse(first, r->second[id]);
    if (verdict != first)
        out->judgement[id] = r->judgement[id];
    if (verdict == FACTS_VERDICT_PASS && r->truth->untrusted[id]) {
        verdict = FACTS_VERDICT_MISTRUSTED;
        snprintf(out->text, sizeof out->text, "%s: an answer of zeros, or of the neighbouring row, would pass too",
                 facts_tensor_word(id));
    }
    return verdict;
}

static void judge_array(facts_runs *r, facts_array_id id)
{
    facts_judgement *found = &r->out->array[id];
    facts_runs_check(r, facts_judging_array(found, r->truth, id, FACTS_PATTERN_A), NULL);
    const facts_verdict verdict = facts_judgement_verdict(found);
    if (verdict != FACTS_VERDICT_PASS && facts_verdict_worse(r->out->verdict, verdict) != r->out->verdict)
        facts_runs_find(r, verdict, "%s: %.9g, not %.9g within %.3g", facts_array_words[id], found->got, found->want, found->bound);
}

static void judge_overruns(facts_runs *r)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!r->overrun[id])
            continue;
        facts_judgement_overrun(&r->out->judgement[id], r->overrun[id]);
        r->out->judged[id] = true;
        r->out->verdict = FACTS_VERDICT_OVERRUN;
        snprintf(r->out->text, sizeof r->out->text, "%s: %" PRId64 " %s changed", facts_tensor_word(id), r->overrun[id],
                 r->memory->block[id].output ? "elements of its guards and gaps" : "bytes of an input");
    }
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (r->overrun[FACTS_PLACE_ARRAYS + id]) {
            r->out->verdict = FACTS_VERDICT_OVERRUN;
            snprintf(r->out->text, sizeof r->out->text, "%s: %" PRId64 " bytes %s changed", facts_array_words[id],
                     r->overrun[FACTS_PLACE_ARRAYS + id], r->problem->array[id].output ? "around it" : "of an input");
        }
    if (r->overrun[FACTS_PLACE_WORKSPACE]) {
        r->out->verdict = FACTS_VERDICT_OVERRUN;
        snprintf(r->out->text, sizeof r->out->text, "workspace: %" PRId64 " bytes around it changed",
                 r->overrun[FACTS_PLACE_WORKSPACE]);
    }
}

/* As many scores as should survive dropout. */
static void judge_rate(facts_runs *r)
{
    const facts_kept *keep = &r->truth->keep;
    const double p = r->problem->ask.dropout;
    if (p > 0 && keep->here && facts_rate_of(p, keep->kept, keep->of) == FACTS_RATE_NEITHER)
        facts_runs_find(r, FACTS_VERDICT_WRONG,
                        "dropout: %" PRId64 " of %" PRId64 " scores were kept, which is not 1 - %g, nor that in sixteenths",
                        keep->kept, keep->of, p);
}

static void judge_all(facts_runs *r)
{
    say_stage(r, "judge");
    facts_runs_judge_first(r);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(r->problem, id))
            r->out->verdict = facts_verdict_worse(r->out->verdict, verdict_of(r, id));
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (r->problem->array[id].output && r->problem->array[id].count)
            judge_array(r, id);
    judge_rate(r);
    judge_overruns(r);
}

/* A target without this forward, and not one that broke. */
static bool is_refusal(fattn_status status)
{
    return (status >= FATTN_BAD_PROBLEM && status <= FATTN_INTERNAL && status != FATTN_ENVIRONMENT) || status == FATTN_BUILD_FAILED;
}

/* The forward that goes before this backward. */
static bool make_forward(facts_runs *r)
{
    if (!facts_has_own_forward(r->problem))
        return true;
    say_stage(r, "build");
    fattn_problem forward = facts_own_forward(&r->problem->ask);
    fattn_status status = fattn_plan_create(&r->forward, r->worker->context, &forward, NULL);
    if (is_refusal(status) && facts_may_do_without_forward(r->problem)) {
        snprintf(r->out->no_forward, sizeof r->out->no_forward, "no forward here: %.170s", fattn_last_error());
        return true;
    }
    r->out->own_forward = true;
    return facts_runs_check(r, status, "the forward of this case") && facts_runs_check(r, facts_memory_produce(r->memory), NULL);
}

static bool make_workspace(facts_runs *r)
{
    size_t bytes = fattn_plan_workspace_bytes(*r->plan), forward = r->forward ? fattn_plan_workspace_bytes(r->forward) : 0;
    return facts_runs_check(r, facts_memory_workspace(r->memory, forward > bytes ? forward : bytes), NULL);
}

/* Is this sentence about what an array holds? */
static bool is_about_arrays(const char *text)
{
    for (int id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (strncmp(text, facts_array_words[id], strlen(facts_array_words[id])) == 0)
            return true;
    return false;
}

/* Offsets, tables, lengths and scales as they lie on the device. They are ours: one that is wrong is our mistake, not the engine's.
 */
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
    fattn_status status = fattn_call_check(*r->plan, &r->call.tensors, elements, r->worker->stream);
    const bool ours = status == FATTN_BAD_PROBLEM && is_about_arrays(fattn_last_error());
    return facts_runs_check(r, ours ? FATTN_INTERNAL : status, ours ? "what the call is given" : NULL);
}

/* What is due of a backward follows from the O and Stats that it read. */
static bool renew_truth(facts_runs *r)
{
    if (!r->forward)
        return true;
    say_stage(r, "reference");
    const int failed = facts_truth_renew(r->truth);
    say_stage(r, "exec");
    return facts_runs_has_truth(r, failed);
}

/* A forward that is wrong is found by its own cases: here it would hide the backward. */
static bool refuse_forward(facts_runs *r, bool *refused)
{
    bool kept = true;
    *refused = false;
    if (!r->forward || !facts_may_do_without_forward(r->problem))
        return true;
    say_stage(r, "reference");
    const int failed = facts_truth_keep_own(r->truth, &kept);
    say_stage(r, "exec");
    if (!facts_runs_has_truth(r, failed))
        return false;
    if (kept)
        return true;
    *refused = true;
    r->out->own_forward = false;
    snprintf(r->out->no_forward, sizeof r->out->no_forward, "its forward gave another O or other Stats");
    fattn_plan_destroy(r->forward);
    r->forward = NULL;
    r->call = facts_call_now(r);
    return true;
}

/* Over poison A; once more with the reference's O and Stats where those of the forward cannot be used. */
static bool run_first(facts_runs *r)
{
    bool again;
    if (!facts_runs_once(r, &r->call, FACTS_PATTERN_A) || !refuse_forward(r, &again))
        return false;
    if (again) {
        r->made = 0;
        memset(r->overrun, 0, sizeof r->overrun);
        return facts_runs_once(r, &r->call, FACTS_PATTERN_A);
    }
    return renew_truth(r);
}

static void measure(facts_runs *r)
{
    facts_call timed = r->call;
    if (facts_may_do_without_forward(r->problem))
        timed.forward = NULL; /* O and Stats lie there already */
    say_stage(r, "exec");
    facts_runs_check(
        r,
        fattn_stream_time(r->worker->context, r->worker->stream, facts_call_launch, &timed, FACTS_TIMED_LAUNCHES, &r->out->exec_us),
        NULL);
}

static void run(facts_runs *r)
{
    if (!make_forward(r) || !make_workspace(r))
        return;
    r->call = facts_call_now(r);
    say_stage(r, "exec");
    if (!check_call(r) || !run_first(r))
        return;
    if (!r->options->once)
        facts_exec_run(r);
    if (r->out->status != FATTN_OK)
        return;
    judge_all(r);
    if (!r->options->once)
        facts_checks_run(r);
    bool good = r->worker->device == FACTS_DEVICE_GPU && !r->options->once && r->out->verdict == FACTS_VERDICT_PASS;
    if (good && r->out->exec_us == 0 && *r->plan)
        measure(r);
    say_stage(r, "judge"); /* another oracle may follow, pictures, dumps */
}

void facts_trial_run(facts_trial *out, facts_truth *truth, fattn_plan **plan, const facts_trial_options *options)
{
    *out = (facts_trial){ .verdict = FACTS_VERDICT_PASS };
    facts_runs r = { .out = out,
                     .truth = truth,
                     .options = options,
                     .problem = truth->memory.problem,
                     .memory = &truth->memory,
                     .worker = truth->memory.worker,
                     .plan = plan };
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        r.second[id] = FACTS_VERDICT_PASS;
    run(&r);
    if (!r.worker->lost)
        fattn_plan_destroy(r.forward);
}
