#include "decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "liars/lies.h"
#include "policy/policy_stack.h"
#include "policy/rules.h"
#include "problem/resolved_problem.h"

const fattn__engine *fattn__engine_for(const fattn_context *context, fattn_backend backend)
{
    static const fattn__engine *const engines[] = { &fattn__cudnn_engine, &fattn__math_engine,
                                                    &fattn__cpu_engine };
    const bool on_cpu = context->kind == FATTN_DEVICE_CPU;
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
        if (engines[i]->backend == backend && on_cpu == (backend == FATTN_BACKEND_CPU))
            return engines[i];
    return NULL;
}

const fattn__engine *fattn__engine_of(const fattn_context *context)
{
    return context->kind == FATTN_DEVICE_CPU ? &fattn__cpu_engine : &fattn__cudnn_engine;
}

/* ---- what helps
 * ------------------------------------------------------------------------------------------------------------
 */

/* Remedies: a part of cuDNN's sentence or condition, and the advice for it. The first that fits
 * counts. X("part of the sentence", "advice") */
#define HELP_LIST(X)                                                                               \
    X("multiple of 8", "pad the head dimension to a multiple of 8 with zeros, or allow the math "  \
                       "backend with a policy")                                                    \
    X("s_q == 1", "give two query rows, or allow the math backend with a policy")                  \
    X("eterministic", "ask without deterministic, or allow the math backend with a policy")

static const char *general_help(fattn_reason reason, const char *text)
{
#define AS_HELP(part, help)                                                                        \
    if (strstr(text, part) != NULL)                                                                \
        return help;
    switch (reason) {
    case FATTN_REASON_NONE:
        return "";
    case FATTN_REASON_BAD_PROBLEM:
        return "correct the field that the text names";
    case FATTN_REASON_UNSUPPORTED:
        HELP_LIST(AS_HELP)
        return "fattn_explain finds the nearest problems that are accepted; a policy can allow the "
               "math backend";
    case FATTN_REASON_ENVIRONMENT:
        return "ask the control case first: this target cannot be asked";
    case FATTN_REASON_POLICY:
        return "allow another backend with a policy, or set guards_off to ask cuDNN anyway";
    case FATTN_REASON_INTERNAL:
        return "leave the field that the text names at its default: this library does not build it "
               "yet";
    }
#undef AS_HELP
    return "";
}

/* ---- the two answers
 * -------------------------------------------------------------------------------------------------------
 */

/* One line, cut at the capacity. */
static void keep(char *out, size_t capacity, const char *text)
{
    snprintf(out, capacity, "%s", text);
    for (char *at = out; *at != '\0'; at++) {
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    }
}

void fattn__accept(fattn_decision *out, fattn_backend backend)
{
    out->backend = backend;
    out->reason = FATTN_REASON_NONE;
    out->message.status[0] = out->message.text[0] = out->message.remedy[0] = '\0';
}

fattn_status fattn__refuse(fattn_decision *out, fattn_backend backend, fattn_reason reason,
                           const char *status, const char *text, const char *remedy)
{
    out->backend = backend;
    out->reason = reason;
    keep(out->message.status, sizeof out->message.status, status);
    keep(out->message.text, sizeof out->message.text, text);
    keep(out->message.remedy, sizeof out->message.remedy,
         remedy != NULL && *remedy != '\0' ? remedy : general_help(reason, out->message.text));
    return FATTN_OK;
}

void fattn__note_rule(fattn_decision *out, const fattn_rule *rule)
{
    if (out->message.rule[0] == '\0')
        keep(out->message.rule, sizeof out->message.rule, rule->name);
}

fattn_status fattn__refuse_by_rule(fattn_decision *out, fattn_backend backend,
                                   const fattn_rule *rule, const fattn_problem *resolved)
{
    char text[sizeof out->message.text];
    fattn__rule_text(text, sizeof text, rule, resolved);
    out->message.rule[0] = '\0';
    fattn__note_rule(out, rule);
    return fattn__refuse(out, backend, FATTN_REASON_POLICY, "", text, rule->remedy);
}

fattn_status fattn__add_engine(fattn_decision *out, fattn_mode mode, const fattn_engine *engine)
{
    fattn__engine_list *list = &out->modes[mode];
    fattn_engine *at = realloc(list->at, (list->count + 1) * sizeof *at);
    if (at == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a decision");
    list->at = at;
    at[list->count] = *engine;
    at[list->count].mode = (int32_t)mode;
    at[list->count].config = (int32_t)list->count;
    list->count++;
    return FATTN_OK;
}

/* ---- asking
 * ----------------------------------------------------------------------------------------------------------------
 */

static _Thread_local uint64_t asked[2];

uint64_t fattn__asked(fattn_pass pass)
{
    return asked[pass];
}

void fattn__count_asked(fattn_pass pass)
{
    asked[pass]++;
}

/* Refuses an impossible problem, for which no backend is needed. */
static fattn_status ask_nobody(fattn_decision *out, fattn_backend backend,
                               const fattn_problem *problem, fattn_problem *resolved)
{
    const fattn_status st = fattn_problem_resolve(problem, resolved);
    fattn__accept(out, backend);
    if (st != FATTN_OK) {
        fattn__refuse(out, backend, FATTN_REASON_BAD_PROBLEM, "", fattn_last_error(), NULL);
        return st;
    }
    return FATTN_OK;
}

/* The cuDNN engine asks the rules itself, before and after cuDNN. */
static fattn_status ask_one(fattn_decision *out, fattn_context *context, fattn_backend backend,
                            const fattn_problem *resolved, uint32_t ask)
{
    const fattn_rule *rule =
        backend != FATTN_BACKEND_CUDNN ? fattn__policy_denies(context, resolved, backend) : NULL;
    if (rule != NULL)
        return fattn__refuse_by_rule(out, backend, rule, resolved);
    const fattn__engine *engine = fattn__engine_for(context, backend);
    const char *missing = fattn__features_missing(resolved, engine->features);
    if (missing == NULL)
        return engine->can_do(context, resolved, ask, out);
    char text[128];
    snprintf(text, sizeof text, "not implemented: %s", missing);
    return fattn__refuse(out, backend, FATTN_REASON_INTERNAL, "", text, NULL);
}

static void record(fattn_decision *out, const fattn_decision *one)
{
    const size_t i = out->answer_count++;
    out->answer_texts[i] = one->message;
    const fattn__answer_text *m = &out->answer_texts[i];
    out->answers[i] = (fattn_answer){
        (int32_t)one->backend, (int32_t)one->reason, m->status, m->text, m->remedy, m->rule
    };
}

static void release(fattn_decision *decision)
{
    for (size_t mode = 0; mode < FATTN__MODES; mode++)
        free(decision->modes[mode].at);
    free(decision->refusals);
    free(decision->refusal_text);
}

/* The first backend that accepts decides; without one, the first refusal does. */
static void settle(fattn_decision *out, fattn_decision *one)
{
    record(out, one);
    const bool first = out->answer_count == 1,
               better = out->reason != FATTN_REASON_NONE && one->reason == FATTN_REASON_NONE;
    if (!first && !better) {
        release(one);
        return;
    }
    release(out);
    out->backend = one->backend;
    out->reason = one->reason;
    out->message = one->message;
    out->refusals = one->refusals;
    out->refusal_count = one->refusal_count;
    out->refusal_text = one->refusal_text;
    memcpy(out->modes, one->modes, sizeof out->modes);
}

static fattn_status ask_all(fattn_decision *out, fattn_context *context,
                            const fattn_problem *resolved, uint32_t ask, const int32_t *order,
                            int count)
{
    fattn_decision *one = malloc(sizeof *one);
    fattn_status st =
        one != NULL ? FATTN_OK : fattn__fail(FATTN_NO_MEMORY, "no memory for a decision");
    for (int i = 0; i < count && st == FATTN_OK; i++) {
        memset(one, 0, sizeof *one);
        st = ask_one(one, context, (fattn_backend)order[i], resolved, ask);
        if (st == FATTN_OK)
            settle(out, one);
        else
            release(one);
    }
    free(one);
    return st;
}

fattn_status fattn_decide(fattn_decision **out, fattn_context *context,
                          const fattn_problem *problem, uint32_t ask)
{
    NEED(out);
    *out = NULL;
    NEED(context);
    fattn_decision *decision = calloc(1, sizeof *decision);
    if (decision == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a decision");
    fattn_problem resolved;
    int32_t order[FATTN_BACKEND_COUNT];
    const int count = fattn__policy_order(context, order);
    fattn_status st = ask_nobody(decision, (fattn_backend)order[0], problem, &resolved);
    fattn__liar_bend(&resolved);
    if (decision->reason != FATTN_REASON_NONE)
        record(decision, decision);
    else
        st = ask_all(decision, context, &resolved, ask, order, count);
    if (st == FATTN_OK || st == FATTN_BAD_PROBLEM)
        *out = decision;
    else
        fattn_decision_destroy(decision);
    return st;
}

void fattn_decision_destroy(fattn_decision *decision)
{
    if (decision == NULL)
        return;
    release(decision);
    free(decision);
}

/* ---- reading
 * ---------------------------------------------------------------------------------------------------------------
 */

bool fattn_decision_supported(const fattn_decision *decision)
{
    return decision->reason == FATTN_REASON_NONE;
}

fattn_backend fattn_decision_backend(const fattn_decision *decision)
{
    return decision->backend;
}

fattn_reason fattn_decision_reason(const fattn_decision *decision)
{
    return decision->reason;
}

const char *fattn_decision_status(const fattn_decision *decision)
{
    return decision->message.status;
}

const char *fattn_decision_text(const fattn_decision *decision)
{
    return decision->message.text;
}

const char *fattn_decision_remedy(const fattn_decision *decision)
{
    return decision->message.remedy;
}

size_t fattn_decision_answer_count(const fattn_decision *decision)
{
    return decision->answer_count;
}

const fattn_answer *fattn_decision_answer(const fattn_decision *decision, size_t i)
{
    return i < decision->answer_count ? &decision->answers[i] : NULL;
}

size_t fattn_decision_refusal_count(const fattn_decision *decision)
{
    return decision->refusal_count;
}

const fattn_refusal *fattn_decision_refusal(const fattn_decision *decision, size_t i)
{
    return i < decision->refusal_count ? &decision->refusals[i] : NULL;
}

size_t fattn_decision_engine_count(const fattn_decision *decision, fattn_mode mode)
{
    return (size_t)mode < FATTN__MODES ? decision->modes[mode].count : 0;
}

const fattn_engine *fattn_decision_engine(const fattn_decision *decision, fattn_mode mode, size_t i)
{
    return i < fattn_decision_engine_count(decision, mode) ? &decision->modes[mode].at[i] : NULL;
}
