/* A context whose GPU is emulated (lib/gpu/test): device memory is the host's, kernels run as C++.
 */
#ifndef FATTN_TEST_MATH_EMULATED_H
#define FATTN_TEST_MATH_EMULATED_H

#include "../../src/math/math_sum.h"
#include "../../test/math/math_runs.h"
#include "emulated_driver.h"

static inline fattn_context *open_emulated(void)
{
    fattn_context *context = calloc(1, sizeof *context);
    context->kind = FATTN_DEVICE_GPU;
    context->cuda = emulated_driver();
    context->info.sm = 80;
    pthread_mutex_init(&context->lock, NULL);
    return context;
}

static inline void close_emulated(fattn_context *context)
{
    fattn__math_close(context);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

#endif
