/* Which engine configurations does cuDNN offer for a graph? */
#ifndef FATTN_CUDNN_HEURISTICS_H
#define FATTN_CUDNN_HEURISTICS_H

#include "cudnn/backend/backend.h"
#include "cudnn/backend/steps.h"

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

#endif
