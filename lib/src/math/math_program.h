/* The program of a score_mod in the form that the kernels read. */
#ifndef FATTN_MATH_PROGRAM_H
#define FATTN_MATH_PROGRAM_H

#include <stdbool.h>

#include "math_params.h"
#include "score_mod/mod_program.h"

/* Packs node `place` of `program` and the nodes that it needs. False: it needs more values at one
 * time than a kernel has slots. */
bool fattn__program_pack(fattn__program *out, const fattn__mod_program *program, int32_t place);

#endif
