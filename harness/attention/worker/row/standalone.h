/* The files from which `facts repro --standalone` makes a program. */
#ifndef FACTS_STANDALONE_H
#define FACTS_STANDALONE_H

#include <jansson.h>

#include "driver/request.h"
#include "words/fail.h"
#include "worker/target/loaded_target.h"

/* Writes into an existing folder, before cuDNN is used:
 *   case.json     the problem (problem_json.h), `cudnn`, `sm`, `device`, and the `graph` (fattn/descriptors.h)
 *   TENSOR.npy    the storage of each tensor that the call reads: one dimension, gaps included; one file for a shared storage
 *   ARRAY.npy     each small array that the call reads
 *   keep.npy      the scores that dropout keeps; for cuDNN's own random numbers this needs a GPU
 *
 *   TENSOR.want.npy ...  the expected values of what the call writes (dump.h), if request->expected
 *
 * O and Stats of a backward are the reference's. Returns false with the sentence in `error`. */
bool facts_standalone(facts_worker *worker, const facts_problem *problem,
                      const facts_request *request, facts_error *error);

/* Adds decided.json: what the heuristics offered, as in a row. */
bool facts_standalone_decided(const fattn_decision *decision, const char *folder,
                              facts_error *error);

#endif
