#include "worker_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fattn/device.h"
#include "gpu_launch.h"
#include "try.h"

bool facts_gpu_open(facts_gpu **out, fattn_context *context, struct CUstream_st *stream,
                    char error[256])
{
    *out = calloc(1, sizeof **out);
    if (!*out) {
        snprintf(error, 256, "no memory");
        return false;
    }
    (*out)->context = context;
    (*out)->stream = stream;
    if (facts_gpu_load(*out, error) &&
        fattn_buffer_create((void **)&(*out)->counters, context, sizeof(*out)->fetched) == FATTN_OK)
        return true;
    facts_gpu_close(*out, false);
    *out = NULL;
    return false;
}

void facts_gpu_close(facts_gpu *gpu, bool lost)
{
    struct CUctx_st *previous;
    if (gpu && !lost && fattn_context_enter(&previous, gpu->context) == FATTN_OK) {
        facts_gpu_forget(gpu);
        gpu_module_destroy(gpu->kernels);
        fattn_context_leave(gpu->context, previous);
        (void)facts_gpu_trim(gpu);
        fattn_buffer_destroy(gpu->context, gpu->counters);
    }
    free(gpu);
}

int64_t facts_gpu_free_bytes(facts_gpu *gpu)
{
    char error[256];
    struct CUctx_st *previous;
    size_t free_bytes = 0, all_bytes = 0;
    const gpu_driver *driver = gpu_driver_load(error);
    if (!driver || fattn_context_enter(&previous, gpu->context) != FATTN_OK)
        return -1;
    const int result = driver->memory_info(&free_bytes, &all_bytes);
    fattn_context_leave(gpu->context, previous);
    return result == 0 ? (int64_t)free_bytes : -1;
}

const char *facts_gpu_error(facts_gpu *gpu)
{
    memcpy(gpu->last, gpu->text, sizeof gpu->last);
    gpu->text[0] = '\0';
    return gpu->last;
}

int facts_gpu_refuse(facts_gpu *gpu, const char *why)
{
    snprintf(gpu->text, sizeof gpu->text, "%s", why);
    return ENOTSUP;
}

fattn_status facts_gpu_keep_error(facts_gpu *gpu, fattn_status status)
{
    if (status != FATTN_OK)
        snprintf(gpu->text, sizeof gpu->text, "%.250s", fattn_last_error());
    return status;
}

fattn_status facts_gpu_leave(facts_gpu *gpu, struct CUctx_st *previous, int result)
{
    fattn_context_leave(gpu->context, previous);
    return result ? FATTN_DEVICE_FAULT : FATTN_OK;
}

fattn_status facts_gpu_wait(facts_gpu *gpu)
{
    return facts_gpu_keep_error(gpu, fattn_stream_synchronize(gpu->context, gpu->stream));
}

/* Work is in the order of the stream: only calls that return a result wait. */
fattn_status facts_gpu_send(facts_gpu *gpu, void *to, const void *from_host, size_t bytes)
{
    struct CUctx_st *previous;
    if (bytes == 0)
        return FATTN_OK;
    TRY(facts_gpu_keep_error(gpu, fattn_context_enter(&previous, gpu->context)));
    return facts_gpu_leave(gpu, previous,
                           gpu_send(gpu->kernels, to, from_host, bytes, gpu->stream, gpu->text));
}

fattn_status facts_gpu_fetch(facts_gpu *gpu, void *to_host, const void *from, size_t bytes)
{
    struct CUctx_st *previous;
    if (bytes == 0)
        return facts_gpu_wait(gpu);
    TRY(facts_gpu_keep_error(gpu, fattn_context_enter(&previous, gpu->context)));
    return facts_gpu_leave(gpu, previous,
                           gpu_fetch(gpu->kernels, to_host, from, bytes, gpu->stream, gpu->text));
}

fattn_status facts_gpu_prove(facts_gpu *gpu)
{
    uint64_t words[2] = { 0 };
    void *memory;
    TRY(facts_gpu_make(gpu, &memory, sizeof words));
    fattn_status st = facts_gpu_send(gpu, memory, words, sizeof words);
    if (st == FATTN_OK)
        st = facts_gpu_noise(gpu, memory, 1, sizeof words);
    if (st == FATTN_OK)
        st = facts_gpu_fetch(gpu, words, memory, sizeof words);
    if (st == FATTN_OK)
        st = facts_gpu_wait(gpu);
    facts_gpu_free(gpu, memory);
    if (st == FATTN_OK && words[0] == 0 && words[1] == 0) {
        facts_gpu_refuse(gpu, "a kernel wrote nothing");
        st = FATTN_DEVICE_FAULT;
    }
    return st;
}
