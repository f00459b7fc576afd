/* An emulated GPU (lib/gpu/test) for the harness: its memory is the host's (hidden from the worker
 * by hidden_memory.h), the context is the cpu backend's. Each test opens one (open_emulated) and
 * closes it. */
#ifndef FACTS_TEST_EMULATED_H
#define FACTS_TEST_EMULATED_H

#include <criterion/criterion.h>

#include "../../../test/case/asked_problem.h"
#include "emulated_driver.h"
#include "worker/gpu/worker_gpu.h"
#include "worker/target/loaded_target.h"

extern int emulated_oracle_trims; /* how often its scratch memory was requested back */
extern int emulated_oracle_fails; /* 0, or an errno: what the oracle answers from now on */

static fattn_context *context;
static facts_gpu *gpu;

static inline void open_emulated(void)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    char error[256] = "";
    gpu_driver_replace(emulated_driver());
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 2;
    cr_assert_eq(fattn_context_create(&context, &options), FATTN_OK);
    cr_assert(facts_gpu_open(&gpu, context, NULL, error), "%s", error);
}

static inline void close_emulated(void)
{
    facts_gpu_close(gpu, false);
    fattn_context_destroy(context);
}

/* A worker that judges on the GPU, or here. */
static inline facts_worker worker_with(facts_gpu *where)
{
    return (facts_worker){ .context = context, .device = FACTS_DEVICE_CPU, .gpu = where };
}

/* Until the next one. */
static inline facts_problem *asked_by(const char *text)
{
    static facts_problem p;
    p = problem_asked(text);
    return &p;
}

#endif
