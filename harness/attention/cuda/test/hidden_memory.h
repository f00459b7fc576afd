/* The emulated GPU's memory, hidden from the host: the worker may not touch it, the cpu backend
 * may. Include it once in a program that is linked with HIDDEN_MEMORY (harness/CMakeLists.txt). */
#ifndef FACTS_TEST_HIDDEN_MEMORY_H
#define FACTS_TEST_HIDDEN_MEMORY_H

#include "emulated.h"

#define WRAP(function, arguments)                                                                  \
    fattn_status __real_##function arguments;                                                      \
    fattn_status __wrap_##function arguments;                                                      \
    fattn_status __wrap_##function arguments
#define IN_REACH(call)                                                                             \
    {                                                                                              \
        emulated_memory_enter();                                                                   \
        const fattn_status status = call;                                                          \
        emulated_memory_leave();                                                                   \
        return status;                                                                             \
    }

static fattn_status hidden_launch; /* what a forward answers instead of running; 0: it runs */

WRAP(fattn_forward,
     (const fattn_plan *plan, const fattn_tensors *tensors, struct CUstream_st *stream))
IN_REACH(hidden_launch ? hidden_launch : __real_fattn_forward(plan, tensors, stream))
WRAP(fattn_backward,
     (const fattn_plan *plan, const fattn_tensors *tensors, struct CUstream_st *stream))
IN_REACH(__real_fattn_backward(plan, tensors, stream))
WRAP(fattn_call_check, (const fattn_plan *plan, const fattn_tensors *tensors,
                        const int64_t elements[FATTN_RAGGED_TENSORS], struct CUstream_st *stream))
IN_REACH(__real_fattn_call_check(plan, tensors, elements, stream))
WRAP(fattn_buffer_write, (fattn_context * of, void *to, const void *from_host, size_t bytes))
IN_REACH(__real_fattn_buffer_write(of, to, from_host, bytes))
WRAP(fattn_buffer_read, (fattn_context * of, void *to_host, const void *from, size_t bytes))
IN_REACH(__real_fattn_buffer_read(of, to_host, from, bytes))

static gpu_driver plain; /* as no test has changed it */

WRAP(fattn_buffer_create, (void **out, fattn_context *of, size_t bytes))
{
    gpu_address at = 0;
    (void)of;
    const int error = plain.memory_alloc(&at, bytes);
    *out = (void *)(uintptr_t)at;
    return error ? FATTN_NO_MEMORY : FATTN_OK;
}

void __wrap_fattn_buffer_destroy(fattn_context *of, void *buffer);
void __wrap_fattn_buffer_destroy(fattn_context *of, void *buffer)
{
    (void)of;
    plain.memory_free((gpu_address)(uintptr_t)buffer);
}

__attribute__((constructor)) static void hide_memory(void)
{
    plain = *emulated_driver();
    emulated_memory_is_hidden = true;
}

/* For a test that plays the kernel itself. */
static inline void show_memory(void)
{
    emulated_memory_is_hidden = false;
}

#endif
