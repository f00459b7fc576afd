/* Every tensor of a case as .npy, for people with NumPy. */
#ifndef FACTS_DUMP_H
#define FACTS_DUMP_H

#include <jansson.h>

#include "case/words/fail.h"
#include "npy.h"
#include "worker/memory/case_reference.h"

/* Writes into an existing folder:
 *   case.json       the problem (problem_json.h)
 *   TENSOR.npy      its own bits [b,h,s,d]; bf16 and 8 bit types as unsigned integers; rows that a packed sequence does not have: 0
 *   TENSOR_f32.npy  the same as numbers
 *   TENSOR.packed.npy  of packed tensors, the tokens of all sequences as they lie
 *   TENSOR.want.npy, .sigma.npy, .bound.npy  what is due (f64)
 *   ARRAY.npy       lengths, offsets, tables, slopes, sinks, scales, seeds, masks; ARRAY.want.npy: what is due of those that are
 * written keep.npy        what dropout kept [b,h,sq,skv] Returns an array of the names written; *error is filled when one could not
 * be. `text`: the case's name. */
json_t *facts_dump(facts_reference *reference, const char *folder, const char *text, facts_error *error);

/* NumPy's word for the bits of a type. */
const char *facts_dump_descr(int32_t dtype);
/* ARRAY.npy and keep.npy alone; `outputs`: also of arrays that the call writes. */
void facts_dump_arrays(const facts_npy *out, facts_reference *reference, bool outputs);

#endif
