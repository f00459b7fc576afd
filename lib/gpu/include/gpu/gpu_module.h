/* Kernels out of a fat binary: loaded into a CUDA context, launched, and given what they work on in the order of a stream.
 *
 * The context that a module was made in is current on the calling thread in every call. Launches and copies return CUresult (0:
 * success) and leave gpu_driver_say's sentence in `error` when they fail. Only gpu_fetch, and gpu_send where it says so, wait for
 * the stream. Threads  any number for launches of at most 48 KiB of shared memory; one at a time otherwise.
 */
#ifndef GPU_MODULE_H
#define GPU_MODULE_H

#include <gpu/gpu_driver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A fat binary (cubins and PTX) as a part of the program: make_image.cmake writes one of these. */
typedef struct gpu_image {
    const unsigned char *data;
    size_t bytes;      /* 0: this build has no kernels */
    const char *about; /* the compiler and its targets, or why there are no kernels */
} gpu_image;

typedef struct gpu_module gpu_module;

/* Loads the image and every kernel of `names`: no launch loads one later, when a stream may be captured. A kernel's number is its
 * place in `names`. driver: NULL for gpu_driver_load's, which needs a current context.
 *
 * Returns  0; ENODEV (no driver, no current context); ENOEXEC (no kernels in this build, or none for this GPU); ENOMEM. After a
 *          failure *out is NULL and the sentence is in `error`. */
int gpu_module_create(gpu_module **out, const gpu_driver *driver, const gpu_image *image,
                      const char *const *names, size_t count, char error[256]);
void gpu_module_destroy(gpu_module *module); /* may be NULL */

/* Enqueues a kernel. arguments[]: a pointer to each, as cuLaunchKernel takes them. */
int gpu_launch(gpu_module *module, size_t kernel, const unsigned grid[3], const unsigned block[3],
               unsigned shared_bytes, struct CUstream_st *stream, void **arguments,
               char error[256]);
/* Copies to the GPU. The caller may change the memory at `from_host` as soon as this returns; a GPU
 * that reads it where it lies is waited for. */
int gpu_send(const gpu_module *module, void *to, const void *from_host, size_t bytes,
             struct CUstream_st *stream, char error[256]);
/* Copies from the GPU, waits for the stream, and says what failed on it. */
int gpu_fetch(const gpu_module *module, void *to_host, const void *from, size_t bytes,
              struct CUstream_st *stream, char error[256]);

#ifdef __cplusplus
}
#endif
#endif
