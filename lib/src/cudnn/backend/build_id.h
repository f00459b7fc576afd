/* Identifies a cuDNN by the contents of its libraries. Two builds may have the same version, name,
 * size and time. */
#ifndef FATTN_CUDNN_BUILD_ID_H
#define FATTN_CUDNN_BUILD_ID_H

#include <stdint.h>

/* XXH3 over name and every byte of each libcudnn*.so.9 of a folder, and over place and bytes of the
 * files of `also` (ends with NULL). 0: one of them cannot be read, or there is none. A gigabyte
 * takes 0.2 s once it is in memory. */
uint64_t fattn__build_id(const char *dir, const char *const also[]);

/* A hash of the file system's data about the same files: device, inode, size, times of writing and
 * of change. It changes when a file is written or replaced, also if the time of writing was set
 * back. Takes microseconds. */
uint64_t fattn__build_stamp(const char *dir, const char *const also[]);

/* The same without the time of change, which a link to a file moves too. */
uint64_t fattn__build_written(const char *dir, const char *const also[]);

/* XXH3 of every byte of a file; 0: it cannot be read. */
uint64_t fattn__file_id(const char *path);

/* Identifies this library: a hash of its sources and of its compiler options (lib/code_id.cmake).
 */
uint64_t fattn__code_id(void);

#endif
