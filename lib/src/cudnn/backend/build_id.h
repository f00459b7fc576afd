/* What a cuDNN is by the content of its libraries: two builds may carry one version number. */
#ifndef FATTN_CUDNN_BUILD_ID_H
#define FATTN_CUDNN_BUILD_ID_H

#include <stddef.h>
#include <stdint.h>

/* Of every libcudnn*.so.9 of a folder: its name, and the hash of its content that the linker wrote into it (NT_GNU_BUILD_ID). Where
 * the linker wrote none, every byte is hashed. 0: no library can be read. */
uint64_t fattn__build_id(const char *dir);

/* The linker's hash in the bytes of an ELF file; NULL: none, or not such a file. */
const unsigned char *fattn__linker_hash(const unsigned char *bytes, size_t count, size_t *length);

#endif
