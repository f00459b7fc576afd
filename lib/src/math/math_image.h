/* The kernels of lib/cuda as one fat binary (cubins and PTX), made a part of the library when it is built. */
#ifndef FATTN_MATH_IMAGE_H
#define FATTN_MATH_IMAGE_H

#include <stddef.h>

extern const unsigned char fattn__math_image[];
extern const size_t fattn__math_image_bytes; /* 0: this library was built without a CUDA compiler */
extern const char fattn__math_image_about[]; /* what it was compiled by and for, or why it was not */

#endif
