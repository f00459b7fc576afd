/* What a cuDNN is by the content of its libraries: two builds may carry one version number, one name, one size and one time. */
#ifndef FATTN_CUDNN_BUILD_ID_H
#define FATTN_CUDNN_BUILD_ID_H

#include <stdint.h>

/* XXH3 over name and every byte of each libcudnn*.so.9 of a folder, and of the files of `also` (ends with NULL). 0: one of them
 * cannot be read, or there is none. A gigabyte takes 0.2 s once it is in memory. */
uint64_t fattn__build_id(const char *dir, const char *const also[]);

/* Of the same files what the file system says: device, inode, size, times of writing and of change. It is another one after a file
 * was written or replaced, even where the time of writing was set back. Microseconds. */
uint64_t fattn__build_stamp(const char *dir, const char *const also[]);

/* XXH3 of every byte of a file; 0: it cannot be read. */
uint64_t fattn__file_id(const char *path);

/* What this library is: a hash of its sources and of how they were compiled (lib/code_id.cmake). */
uint64_t fattn__code_id(void);

#endif
