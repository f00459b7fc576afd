/* One problem that cuDNN is asked about: its graph, and the configurations that mode A offers for
 * it. Deciding and compiling both start here. */
#ifndef FATTN_CUDNN_QUESTION_H
#define FATTN_CUDNN_QUESTION_H

#include "core/context.h"
#include "core/decision.h"
#include "cudnn/backend/backend.h"
#include "cudnn/backend/log.h"
#include "heuristics.h"

typedef struct fattn__question {
    fattn_context *context;
    struct CUctx_st *previous;
    fattn__handle_slot *slot; /* NULL unless a GPU */
    fattn__graph graph;
    uint64_t graph_id;  /* of the graph as it was built */
    fattn__offer offer; /* of mode A */
} fattn__question;

/* Makes the context current, borrows a handle and builds the graph's tensors and operations;
 * finalizes nothing. The caller always closes the question. Returns FATTN_OK; fattn__graph_status
 * otherwise, or FATTN_DEVICE_FAULT. */
fattn_status fattn__question_build(fattn__question *q, fattn_context *context,
                                   const fattn_problem *problem);

/* Checks the rules that come before cuDNN, builds the graph, asks mode A and then checks the other
 * rules. The answer, yes or no, goes into `out`. `options` may be NULL. If the options, or a
 * deterministic backward, pin an engine, cuDNN is asked for that engine instead of mode A. The
 * caller always closes the question. Returns FATTN_OK when answered. */
fattn_status fattn__question_ask(fattn__question *q, fattn_context *context,
                                 const fattn_problem *problem, const fattn_plan_options *options,
                                 fattn_decision *out);

void fattn__question_close(fattn__question *q);

static inline fattn__handle fattn__question_handle(const fattn__question *q)
{
    return q->slot != NULL ? q->slot->handle : NULL;
}

/* The reason class of a refusal, unsupported or environment, from the name of cuDNN's status. */
fattn_reason fattn__reason_of(const char *status);

#endif
