/* The libraries that are mapped into this process, read from its memory map. */
#ifndef FATTN_LIBRARIES_H
#define FATTN_LIBRARIES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "fattn/fattn.h"

/* Is the file directly in `dir` (a real path)? A symbolic link counts as being where the link is. A
 * link from elsewhere to the folder's libcudnn_X.so.9 counts too: `facts` gives its workers such
 * links (libcudnn_X.so.9.14.0). */
bool fattn__in_folder(const char *path, const char *dir);

/* The first mapped libcudnn* outside `dir`; false when there is none. */
bool fattn__foreign_cudnn(const char *dir, char *out, size_t capacity);

/* Fails with FATTN_ENVIRONMENT. The message names the foreign file and the folder. */
fattn_status fattn__fail_mixed(const char *foreign, const char *dir);

/* The first mapped libnvrtc.so* that is not the file `path` (real path); false when there is none.
 */
bool fattn__foreign_nvrtc(const char *path, char *out, size_t capacity);
/* The path, as the loader knows it, of a library of this process whose name begins with `prefix`.
 * false: none is mapped. */
bool fattn__mapped_library(const char *prefix, char out[PATH_MAX]);

#endif
