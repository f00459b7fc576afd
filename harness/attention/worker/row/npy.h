/* Arrays as .npy files (NPY version 1.0), little-endian as the machine. */
#ifndef FACTS_NPY_H
#define FACTS_NPY_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "words/fail.h"

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

#endif
