/* The libraries that are mapped into this process, read from its memory map. */
#ifndef FATTN_LIBRARIES_H
#define FATTN_LIBRARIES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "fattn/fattn.h"

/* The first mapped libcudnn* outside `dir`; false when there is none. */
bool fattn__foreign_cudnn(const char *dir, char *out, size_t capacity);

/* Fails with FATTN_ENVIRONMENT. The message names the foreign file and the folder. */
fattn_status fattn__fail_mixed(const char *foreign, const char *dir);

/* The path, as the loader knows it, of a library of this process whose name begins with `prefix`.
 * false: none is mapped. */
bool fattn__mapped_library(const char *prefix, char out[PATH_MAX]);

#endif
