/* A drawn problem in a device's memory, its tensors in layouts that the drawn one does not have.
 * What fails aborts. */
#ifndef FREF_CUDA_TEST_DEVICE_PROBLEM_H
#define FREF_CUDA_TEST_DEVICE_PROBLEM_H

#include <fref/gpu.h>

#include "drawn.h"
#include <gpu/gpu_driver.h>

enum { DEVICE_PIECES = 128 };

/* Owns its pieces of memory; begin with the driver alone. */
typedef struct device {
    const gpu_driver *driver;
    gpu_address piece[DEVICE_PIECES];
    int count;
} device;

/* Memory of the device, filled from `from` unless that is NULL; the device's until device_free. */
void *device_array(device *d, const void *from, size_t bytes);
void device_free(device *d);

/* The tensor [b,h,s,c] in another layout, with gaps between; rows at or past len[b] (NULL: none)
 * hold NaN. */
fref_tensor device_tensor(device *d, const fref_tensor *t, const int64_t dim[4], const int32_t *len,
                          uint64_t *state);
/* b,s,h,c with batch entries anywhere; nothing past a length. */
fref_tensor device_ragged(device *d, const fref_tensor *t, const int64_t dim[4], const int32_t *len,
                          uint64_t *state);
/* In pages anywhere; of very many it makes a ragged one. */
fref_tensor device_paged(device *d, const fref_tensor *t, const int64_t dim[4], const int32_t *len,
                         uint64_t *state);
/* The problem with device addresses; it points to *bias. */
fref_problem device_problem(device *d, const drawn *x, fref_tensor *bias, fref_gpu_mod *mod);

#endif
