/* cuDNN as an engine. */
#include "core/engine.h"

#include "cudnn_plan.h"
#include "policy/policy_stack.h"
#include "question.h"

/* Appends the offered configurations to the list of their mode. Configurations that a rule removes
 * keep their place. */
static fattn_status list(fattn_decision *out, fattn__config_reader *reader,
                         const fattn__offer *offer, fattn_mode mode, const fattn__question *q,
                         const fattn_problem *problem)
{
    const fattn_rule *first = NULL;
    fattn_status st = FATTN_OK;
    int left = 0;
    for (int i = 0; i < offer->count && st == FATTN_OK; i++) {
        fattn_engine engine;
        /* A configuration that cannot be read keeps its place in the list, as engine -1. */
        fattn__config_read(reader, offer->configs[i], &engine);
        const fattn_rule *rule =
            fattn__policy_removes(q->context, problem, FATTN_BACKEND_CUDNN, &engine);
        engine.removed = rule != NULL;
        left += rule == NULL;
        first = first != NULL ? first : rule;
        st = fattn__add_engine(out, mode, &engine);
    }
    if (st != FATTN_OK || mode != FATTN_MODE_A || first == NULL || out->reason != FATTN_REASON_NONE)
        return st;
    fattn__note_rule(out, first);
    return left > 0 ? FATTN_OK : fattn__refuse_by_rule(out, FATTN_BACKEND_CUDNN, first, problem);
}

static fattn_status list_all(fattn_decision *out, fattn__question *q, const fattn_problem *problem,
                             uint32_t ask)
{
    static const struct {
        uint32_t bit;
        fattn_mode mode;
    } others[] = { { FATTN_ASK_B, FATTN_MODE_B },
                   { FATTN_ASK_FALLBACK, FATTN_MODE_FALLBACK },
                   { FATTN_ASK_INSTANT, FATTN_MODE_INSTANT } };
    fattn__config_reader reader;
    fattn__config_reader_init(&reader, q->context->api);
    fattn_status st = list(out, &reader, &q->offer, FATTN_MODE_A, q, problem);
    for (size_t i = 0; i < sizeof others / sizeof *others && st == FATTN_OK; i++) {
        if ((ask & others[i].bit) == 0)
            continue;
        fattn__offer offer;
        fattn__offer_ask(&offer, q->context->api, q->graph.operation_graph, q->context->description,
                         others[i].mode);
        st = list(out, &reader, &offer, others[i].mode, q, problem);
        fattn__offer_release(&offer);
    }
    fattn__config_reader_release(&reader);
    return st;
}

static fattn_status can_do(fattn_context *context, const fattn_problem *problem, uint32_t ask,
                           fattn_decision *out)
{
    fattn__question q;
    fattn_status st = fattn__question_ask(&q, context, problem, NULL, out);
    if (st == FATTN_OK && q.graph.operation_graph != NULL &&
        (q.offer.count > 0 || ask > FATTN_ASK_A))
        st = list_all(out, &q, problem, ask);
    fattn__question_close(&q);
    return st;
}

/* All features: builders.c refuses those that the builder of a problem lacks. */
const fattn__engine fattn__cudnn_engine = {
    "cudnn",          FATTN_BACKEND_CUDNN, FATTN__EVERY_FEATURE, can_do, fattn__cudnn_setup,
    fattn__cudnn_run, fattn__cudnn_done
};
