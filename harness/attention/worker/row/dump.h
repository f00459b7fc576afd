/* Every tensor of a case as .npy, for people with NumPy. */
#ifndef FACTS_DUMP_H
#define FACTS_DUMP_H

#include <jansson.h>

#include "npy.h"
#include "words/fail.h"
#include "worker/memory/case_reference.h"

/* Writes into an existing folder:
 *   case.json       the problem (problem_json.h)
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

/* NumPy's type string for the bits of a type. */
const char *facts_dump_descr(int32_t dtype);
/* Writes ARRAY.npy and keep.npy only; `outputs`: also arrays that the call writes. */
void facts_dump_arrays(const facts_npy *out, facts_reference *reference, bool outputs);
/* Writes the expected values, the deviations and the tolerances that the reference has. */
void facts_dump_expected(const facts_npy *out, facts_reference *reference);

#endif
