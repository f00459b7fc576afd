/* Every tensor of a case as .npy, for people with NumPy. */
#ifndef FACTS_DUMP_H
#define FACTS_DUMP_H

#include "worker/exec/trial.h"
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "words/fail.h"
#include "worker/memory/case_reference.h"

/* Arrays as .npy files (NPY version 1.0), little-endian as the machine. */
typedef struct facts_npy {
    const char *folder; /* it must exist */
    json_t *names;      /* the files written so far */
    facts_error *error; /* filled if a file could not be written */
} facts_npy;

/* Opens a file of the folder and writes the header of an array of this shape. `descr` is NumPy's:
 * "<f4". NULL: not opened. */
FILE *facts_npy_open(const facts_npy *out, const char *name);
FILE *facts_npy_begin(const facts_npy *out, const char *name, const char *descr, const int64_t *dim,
                      int rank);
/* Closes the file, and records its name if all was written. */
void facts_npy_end(const facts_npy *out, FILE *file, const char *name);
/* Writes a whole array of one dimension. */
void facts_npy_put(const facts_npy *out, const char *name, const char *descr, const void *from,
                   size_t size, int64_t count);

/* facts repro: a picture of each answer that is wrong. */
/* Returns {"o": text, ...} for every tensor with elements that a gate refused, from the first run
 * that has them; NULL: there are none. The caller owns it. */
json_t *facts_pictures(const facts_trial *trial, facts_reference *reference);

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
