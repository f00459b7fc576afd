#include "decision.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine.h"
#include "problem.h"

const fattn__engine *fattn__engine_of(const fattn_context *context)
{
    return context->kind == FATTN_DEVICE_CPU ? &fattn__cpu_engine : &fattn__cudnn_engine;
}

/* ---- the two answers ----------------------------------------------------------------------------------------------------------
 */

void fattn__accept(fattn_decision *out, fattn_backend backend)
{
    out->backend = backend;
    out->reason = FATTN_REASON_NONE;
    out->status[0] = out->text[0] = '\0';
    out->remedy = "";
}

fattn_status fattn__refuse(fattn_decision *out, fattn_backend backend, fattn_reason reason, const char *status, const char *text,
                           const char *remedy)
{
    out->backend = backend;
    out->reason = reason;
    snprintf(out->status, sizeof out->status, "%s", status);
    snprintf(out->text, sizeof out->text, "%s", text);
    for (char *at = out->text; *at != '\0'; at++) {
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    }
    out->remedy = remedy != NULL ? remedy : "";
    return FATTN_OK;
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

/* ---- asking -------------------------------------------------------------------------------------------------------------------
 */

fattn_status fattn_decide(fattn_decision **out, fattn_context *context, const fattn_problem *problem, uint32_t ask)
{
    *out = NULL;
    fattn_decision *decision = calloc(1, sizeof *decision);
    if (decision == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a decision");
    fattn_problem resolved;
    fattn_backend backend = context->kind == FATTN_DEVICE_CPU ? FATTN_BACKEND_CPU : FATTN_BACKEND_CUDNN;
    fattn_status st = fattn_problem_resolve(problem, &resolved);
    const char *missing = st == FATTN_OK ? fattn__problem_not_implemented(&resolved) : NULL;
    fattn__accept(decision, backend);
    if (st != FATTN_OK) {
        fattn__refuse(decision, backend, FATTN_REASON_BAD_PROBLEM, "", fattn_last_error(), "");
    } else if (missing != NULL) {
        char text[sizeof decision->text];
        snprintf(text, sizeof text, "not implemented: %s", missing);
        fattn__refuse(decision, backend, FATTN_REASON_INTERNAL, "", text, "");
    } else {
        st = fattn__engine_of(context)->can_do(context, &resolved, ask, decision);
    }
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
    for (size_t mode = 0; mode < FATTN__MODES; mode++)
        free(decision->modes[mode].at);
    free(decision->refusals);
    free(decision->refusal_text);
    free(decision);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------
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
    return decision->status;
}

const char *fattn_decision_text(const fattn_decision *decision)
{
    return decision->text;
}

const char *fattn_decision_remedy(const fattn_decision *decision)
{
    return decision->remedy;
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
