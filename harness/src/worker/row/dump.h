/* Every tensor of a case as .npy, for people with numpy. */
#ifndef FACTS_DUMP_H
#define FACTS_DUMP_H

#include <jansson.h>

#include "case/words/fail.h"
#include "worker/memory/truth.h"

/* Writes <tensor>.npy (its own bits; bf16 and 8 bit types as unsigned integers) and <tensor>_f32.npy for inputs and answers, and
 * <tensor>.want.npy, .sigma.npy, .bound.npy (f64) for what is due, into an existing folder.
 * Returns an array of the names written; *error is filled when one could not be. */
json_t *facts_dump(facts_truth *truth, const char *folder, facts_error *error);

#endif
