#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "../numbers/dtype.h"

#define TIMED_LAUNCHES 5

/* One call, as fattn_stream_time wants it. */
typedef struct launch {
    const fattn_plan *plan;
    fattn_tensors tensors;
    bool backward;
} launch;

static fattn_status launch_once(void *argument, struct CUstream_st *stream)
{
    launch *l = argument;
    return l->backward ? fattn_backward(l->plan, &l->tensors, stream) : fattn_forward(l->plan, &l->tensors, stream);
}

typedef struct trial {
    facts_trial *out;
    facts_truth *truth;
    const facts_trial_options *options;
    const facts_problem *problem;
    launch call;
    int64_t overrun[FACTS_TENSOR_COUNT + 1]; /* the most of all runs */
} trial;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static bool check(trial *t, fattn_status status)
{
    if (status == FATTN_OK)
        return true;
    t->out->status = status;
    snprintf(t->out->text, sizeof t->out->text, "%s", fattn_last_error());
    if (status == FATTN_DEVICE_FAULT)
        t->truth->memory.worker->lost = true;
    return false;
}

static bool execute(trial *t, facts_pattern pattern)
{
    facts_memory *m = &t->truth->memory;
    facts_worker *worker = m->worker;
    int64_t overrun[FACTS_TENSOR_COUNT + 1];
    if (!check(t, facts_memory_arm(m, pattern)))
        return false;
    double since = now_us();
    if (!check(t, launch_once(&t->call, worker->stream)) || !check(t, fattn_stream_synchronize(worker->context, worker->stream)))
        return false;
    if (worker->device == FACTS_DEVICE_CPU)
        t->out->exec_us = now_us() - since;
    if (!check(t, facts_memory_fetch(m, pattern, overrun)))
        return false;
    for (int i = 0; i <= FACTS_TENSOR_COUNT; i++)
        t->overrun[i] = overrun[i] > t->overrun[i] ? overrun[i] : t->overrun[i];
    return true;
}

/* dQ may be summed by atomics in any order, unless the case asks for the same bits. */
static bool must_repeat(const facts_problem *p, facts_tensor_id id)
{
    return id != FACTS_TENSOR_DQ || p->ask.deterministic;
}

static facts_judgement judge(trial *t, facts_tensor_id id, facts_pattern pattern)
{
    const facts_problem *p = t->problem;
    facts_memory *m = &t->truth->memory;
    if (id == FACTS_TENSOR_MAX || id == FACTS_TENSOR_SUM_EXP)
        if (p->tensor[FACTS_TENSOR_MAX].present)
            facts_expect_pair(&t->truth->expectation, p, facts_memory_storage(m, FACTS_TENSOR_MAX, pattern));
    facts_rule rule = facts_expectation_rule(&t->truth->expectation, id, pattern);
    return facts_judge_tensor(&p->tensor[id], facts_memory_storage(m, id, pattern), &rule);
}

static void note_difference(trial *t, facts_tensor_id id, int64_t count, const int64_t at[4])
{
    if (t->out->text[0] == '\0')
        snprintf(t->out->text, sizeof t->out->text,
                 "%s: %" PRId64 " elements differ between two runs over different memory, the first at b %" PRId64 " h %" PRId64
                 " s %" PRId64 " d %" PRId64,
                 facts_tensor_word(id), count, at[0], at[1], at[2], at[3]);
}

static facts_verdict worse(facts_verdict a, facts_verdict b)
{
    return facts_verdict_worse(a, b);
}

/* The answer over poison B: the same bits, or judged for itself. */
static void judge_second(trial *t, facts_tensor_id id, facts_verdict *verdict)
{
    facts_memory *m = &t->truth->memory;
    int64_t at[4] = { 0 };
    int64_t different = facts_judge_repeat(&t->problem->tensor[id], facts_memory_storage(m, id, FACTS_PATTERN_A),
                                           facts_memory_storage(m, id, FACTS_PATTERN_B), t->truth->expectation.due[id], at);
    if (!different)
        return;
    facts_judgement second = judge(t, id, FACTS_PATTERN_B);
    facts_verdict found = facts_judgement_verdict(&second), both = worse(*verdict, found);
    if (both != *verdict)
        t->out->judgement[id] = second;
    *verdict = both;
    if (must_repeat(t->problem, id)) {
        note_difference(t, id, different, at);
        *verdict = worse(*verdict, FACTS_VERDICT_NONDETERMINISTIC);
    }
}

static uint64_t bits_of(const trial *t, facts_tensor_id id)
{
    const facts_tensor *tensor = &t->problem->tensor[id];
    size_t bytes = (size_t)tensor->elements * (size_t)facts_dtype_bytes(tensor->dtype);
    return XXH3_64bits(facts_memory_storage(&t->truth->memory, id, FACTS_PATTERN_A), bytes);
}

static facts_verdict judge_tensor(trial *t, facts_tensor_id id)
{
    facts_judgement *j = &t->out->judgement[id];
    *j = judge(t, id, FACTS_PATTERN_A);
    t->out->judged[id] = true;
    t->out->bits[id] = bits_of(t, id);
    facts_verdict verdict = facts_judgement_verdict(j);
    if (!t->options->once)
        judge_second(t, id, &verdict);
    if (verdict == FACTS_VERDICT_PASS && t->truth->untrusted[id]) {
        verdict = FACTS_VERDICT_MISTRUSTED;
        snprintf(t->out->text, sizeof t->out->text, "%s: an answer of zeros, or of the neighbouring row, would pass too",
                 facts_tensor_word(id));
    }
    return verdict;
}

static void judge_overruns(trial *t)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!t->overrun[id])
            continue;
        facts_judgement_overrun(&t->out->judgement[id], t->overrun[id]);
        t->out->judged[id] = true;
        t->out->verdict = FACTS_VERDICT_OVERRUN;
        snprintf(t->out->text, sizeof t->out->text, "%s: %" PRId64 " %s changed", facts_tensor_word(id), t->overrun[id],
                 facts_tensor_is_output(t->problem, id) ? "elements of its guards and gaps" : "bytes of an input");
    }
    if (t->overrun[FACTS_TENSOR_COUNT]) {
        t->out->verdict = FACTS_VERDICT_OVERRUN;
        snprintf(t->out->text, sizeof t->out->text, "workspace: %" PRId64 " bytes past its end changed", t->overrun[FACTS_TENSOR_COUNT]);
    }
}

static void judge_all(trial *t)
{
    t->options->stage(t->options->owner, "judge");
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(t->problem, id))
            t->out->verdict = worse(t->out->verdict, judge_tensor(t, id));
    judge_overruns(t);
}

/* Two runs, or as many as the case asks for; each after the first lies over poison B and is compared with the first. */
static bool execute_again(trial *t, int32_t run)
{
    if (!execute(t, FACTS_PATTERN_B))
        return false;
    for (facts_tensor_id id = 0; run > 2 && id < FACTS_TENSOR_COUNT; id++) {
        int64_t at[4] = { 0 };
        if (!facts_tensor_is_output(t->problem, id) || !must_repeat(t->problem, id))
            continue;
        const facts_memory *m = &t->truth->memory;
        int64_t different = facts_judge_repeat(&t->problem->tensor[id], facts_memory_storage(m, id, FACTS_PATTERN_A),
                                               facts_memory_storage(m, id, FACTS_PATTERN_B), t->truth->expectation.due[id], at);
        if (different) {
            note_difference(t, id, different, at);
            t->out->verdict = FACTS_VERDICT_NONDETERMINISTIC;
        }
    }
    return true;
}

void facts_trial_run(facts_trial *out, facts_truth *truth, const fattn_plan *plan, const facts_trial_options *options)
{
    facts_memory *m = &truth->memory;
    *out = (facts_trial){ .verdict = FACTS_VERDICT_PASS };
    trial t = { .out = out, .truth = truth, .options = options, .problem = m->problem };
    if (!check(&t, facts_memory_workspace(m, fattn_plan_workspace_bytes(plan))))
        return;
    t.call = (launch){ plan, facts_memory_tensors(m), m->problem->ask.pass == FATTN_BACKWARD };
    options->stage(options->owner, "exec");
    if (!execute(&t, FACTS_PATTERN_A))
        return;
    int32_t runs = options->once ? 1 : m->problem->repeat > 2 ? m->problem->repeat : 2;
    for (int32_t run = 2; run <= runs && out->verdict == FACTS_VERDICT_PASS; run++)
        if (!execute_again(&t, run))
            return;
    judge_all(&t);
    if (m->worker->device == FACTS_DEVICE_GPU && !options->once && out->verdict == FACTS_VERDICT_PASS)
        check(&t, fattn_stream_time(m->worker->context, m->worker->stream, launch_once, &t.call, TIMED_LAUNCHES, &out->exec_us));
}
