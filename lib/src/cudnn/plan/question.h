/* One problem that cuDNN is asked about: its graph, and the configurations that mode A offers for
 * it. Deciding and compiling both start here. */
#ifndef FATTN_CUDNN_QUESTION_H
#define FATTN_CUDNN_QUESTION_H

#include "core/context.h"
#include "core/decision.h"
#include "cudnn/backend/backend.h"
#include "cudnn/backend/log.h"
#include "cudnn/backend/steps.h"

/* Which engine configurations does cuDNN offer for a graph? */
#define FATTN__MAX_CONFIGS 64

/* The answer of one heuristic mode. */
typedef struct fattn__offer {
    fattn__steps steps; /* its status is that of the first step that failed */
    int64_t candidates; /* before cuDNN's support check: never use it as an answer */
    int count;          /* configurations that passed the check */
    fattn__desc heuristics;
    fattn__desc engine; /* of a pin, with the knobs below */
    int knob_count;
    fattn__desc knobs[FATTN_MAX_KNOBS];
    int made;
    fattn__desc configs[FATTN__MAX_CONFIGS]; /* `made` descriptors, of which `count` are filled */
} fattn__offer;

/* Makes an empty offer, which may be released. */
void fattn__offer_init(fattn__offer *out, const fattn__cudnn *api);
/* Asks the heuristics. `description` is NULL on a GPU. The caller releases the offer in any case.
 */
void fattn__offer_ask(fattn__offer *out, const fattn__cudnn *api, fattn__desc operation_graph,
                      fattn__desc description, fattn_mode mode);
/* The same without the heuristics: one configuration, of this engine with these knobs, if the
 * engine takes the graph. */
void fattn__offer_pin(fattn__offer *out, const fattn__cudnn *api, fattn__desc operation_graph,
                      fattn__desc description, int64_t engine, const fattn_knob *knobs,
                      int knob_count);
void fattn__offer_release(fattn__offer *offer);

/* Descriptors that are reused for each configuration that is read. */
typedef struct fattn__config_reader {
    const fattn__cudnn *api;
    fattn__desc engine;
    int knob_count;
    fattn__desc knobs[FATTN_MAX_KNOBS];
} fattn__config_reader;

void fattn__config_reader_init(fattn__config_reader *reader, const fattn__cudnn *api);
void fattn__config_reader_release(fattn__config_reader *reader);
/* Reads engine index, knobs, notes and stated workspace of a configuration. False if cuDNN does not
 * give them. `mode` and `config` are not set. */
bool fattn__config_read(fattn__config_reader *reader, fattn__desc config, fattn_engine *out);

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
