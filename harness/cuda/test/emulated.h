/* An emulated GPU (lib/gpu/test) for the harness: its memory is the host's (hidden from the worker
 * by hidden_memory.h), the context is the cpu backend's. */
#ifndef FACTS_TEST_EMULATED_H
#define FACTS_TEST_EMULATED_H

#include <criterion/criterion.h>

#include "emulated_driver.h"
#include "worker/gpu/worker_gpu.h"

extern int emulated_oracle_trims; /* how often its scratch memory was requested back */
extern int emulated_oracle_fails; /* 0, or an errno: what the oracle answers from now on */

static inline facts_gpu *open_emulated(fattn_context **context)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    char error[256] = "";
    facts_gpu *gpu = NULL;
    gpu_driver_replace(emulated_driver());
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 2;
    cr_assert_eq(fattn_context_create(context, &options), FATTN_OK);
    cr_assert(facts_gpu_open(&gpu, *context, NULL, error), "%s", error);
    return gpu;
}

static inline void close_emulated(facts_gpu *gpu, fattn_context *context)
{
    facts_gpu_close(gpu, false);
    fattn_context_destroy(context);
}

#endif
