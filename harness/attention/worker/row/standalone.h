/* The files of `facts repro`: those from which --standalone makes a program, every tensor of a case
 * as .npy, and pictures of wrong answers. */
#ifndef FACTS_STANDALONE_H
#define FACTS_STANDALONE_H

#include <jansson.h>

#include "driver/request.h"
#include "words/fail.h"
#include "worker/exec/trial.h"
#include "worker/target/loaded_target.h"

/* Writes into an existing folder, before cuDNN is used:
 *   case.json     the problem (row.h), `cudnn`, `sm`, `device`, and the `graph` (fattn/descriptors.h)
 *   TENSOR.npy    the storage of each tensor that the call reads: one dimension, gaps included; one file for a shared storage
 *   ARRAY.npy     each small array that the call reads
 *   keep.npy      the scores that dropout keeps; for cuDNN's own random numbers this needs a GPU
 *
 *   TENSOR.want.npy ...  the expected values of what the call writes (facts_dump), if request->expected
 *
 * O and Stats of a backward are the reference's. Returns false with the sentence in `error`. */
bool facts_standalone(facts_worker *worker, const facts_problem *problem,
                      const facts_request *request, facts_error *error);

/* Adds decided.json: what the heuristics offered, as in a row. */
bool facts_standalone_decided(const fattn_decision *decision, const char *folder,
                              facts_error *error);

/* A picture of each answer that is wrong. Returns {"o": text, ...} for every tensor with elements that a gate refused, from the first run
 * that has them; NULL: there are none. The caller owns it. */
json_t *facts_pictures(const facts_trial *trial, facts_reference *reference);

/* Writes into an existing folder:
 *   case.json       the problem (row.h)
 *   TENSOR.npy      the bits [b,h,s,d]; bf16 and 8-bit types as unsigned integers; 0 in rows beyond a ragged sequence
 *   TENSOR_f32.npy  the same as numbers
 *   TENSOR.packed.npy  of ragged tensors: the tokens of all sequences, as in memory
 *   TENSOR.want.npy, .sigma.npy  the expected values and the predicted deviation, f64
 *   TENSOR.tolerance.npy  the largest error of a correct element, f64; NaN in rows that are not compared
 *   ARRAY.npy       lengths, offsets, tables, slopes, sinks, scales, seeds, masks
 *   ARRAY.want.npy, .tolerance.npy  the same for arrays that the call writes
 *   keep.npy        the scores that dropout keeps [b,h,sq,skv]
 *
 * Returns an array of the names written. *error is filled if a file could not be written. `text`: the case's name. */
json_t *facts_dump(facts_reference *reference, const char *folder, const char *text,
                   facts_error *error);

#endif
