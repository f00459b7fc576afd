/* The kernels of reference/cuda as one fat binary (cubins and PTX), made a part of the library when it is built. */
#ifndef FREF_GPU_IMAGE_H
#define FREF_GPU_IMAGE_H

#include <stddef.h>

extern const unsigned char fref__gpu_image[];
extern const size_t fref__gpu_image_bytes; /* 0: this library was built without a CUDA compiler */
extern const char fref__gpu_image_about[]; /* what it was compiled by and for, or why it was not */

#endif
