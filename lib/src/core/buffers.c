/* Buffers, streams and time: the driver's on a GPU, plain memory on the cpu. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "context.h"
#include "error.h"
#include "fattn/device.h"

enum { BUFFER_ALIGNMENT = 256 };

static fattn_status check(const fattn_context *context, int result, const char *what)
{
    enum { CAPTURE_FIRST = 900, CAPTURE_LAST = 908 };
    if (result == 0)
        return FATTN_OK;
    if (result >= CAPTURE_FIRST &&
        result <= CAPTURE_LAST) /* the caller's mistake; the device works */
        return fattn__fail(FATTN_BAD_PROBLEM, "%s: not while a stream is captured: %s", what,
                           gpu_driver_text(context->cuda, result));
    return fattn__fail(FATTN_DEVICE_FAULT, "%s: %s", what, gpu_driver_text(context->cuda, result));
}

static fattn_status no_device(const fattn_context *context)
{
    if (context->kind == FATTN_DEVICE_DESCRIBED)
        return fattn__fail(FATTN_UNSUPPORTED, "a described device has no memory and runs nothing");
    return FATTN_OK;
}

fattn_status fattn_buffer_create(void **out, fattn_context *context, size_t bytes)
{
    NEED(out);
    *out = NULL;
    NEED(context);
    TRY(no_device(context));
    if (bytes == 0)
        bytes = 1;
    if (context->cuda == NULL) {
        if (bytes <= SIZE_MAX - BUFFER_ALIGNMENT)
            *out = aligned_alloc(BUFFER_ALIGNMENT, (bytes + BUFFER_ALIGNMENT - 1) /
                                                       BUFFER_ALIGNMENT * BUFFER_ALIGNMENT);
        return *out != NULL ? FATTN_OK
                            : fattn__fail(FATTN_NO_MEMORY, "no memory for %zu bytes", bytes);
    }
    struct CUctx_st *previous;
    TRY(fattn__enter(context, &previous));
    gpu_address address = 0;
    int result = context->cuda->memory_alloc(&address, bytes);
    fattn__leave(context, previous);
    if (result == GPU_OUT_OF_MEMORY)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for %zu bytes on the GPU", bytes);
    *out = (void *)(uintptr_t)address;
    return check(context, result, "allocate");
}

void fattn_buffer_destroy(fattn_context *context, void *buffer)
{
    struct CUctx_st *previous;
    if (buffer == NULL || context == NULL)
        return;
    if (context->cuda == NULL) {
        free(buffer);
    } else if (fattn__enter(context, &previous) == FATTN_OK) {
        context->cuda->memory_free((gpu_address)(uintptr_t)buffer);
        fattn__leave(context, previous);
    }
}

/* Between the host and the device, which are the same on the cpu. */
static fattn_status copy(fattn_context *context, void *to, const void *from, size_t bytes,
                         bool to_device)
{
    const char *what = to_device ? "copy to the GPU" : "copy from the GPU";
    struct CUctx_st *previous;
    TRY(no_device(context));
    if (bytes == 0)
        return FATTN_OK;
    if (context->cuda == NULL) {
        memcpy(to, from, bytes);
        return FATTN_OK;
    }
    TRY(fattn__enter(context, &previous));
    int result = to_device ? context->cuda->copy_to_device((gpu_address)(uintptr_t)to, from, bytes)
                           : context->cuda->copy_to_host(to, (gpu_address)(uintptr_t)from, bytes);
    /* Pageable memory: the copy may return before its last part has arrived, and our streams do not
     * wait for the default stream. */
    if (result == 0 && to_device)
        result = context->cuda->stream_synchronize(NULL);
    fattn__leave(context, previous);
    return check(context, result, what);
}

fattn_status fattn_buffer_write(fattn_context *context, void *to, const void *from_host,
                                size_t bytes)
{
    NEED(context);
    return copy(context, to, from_host, bytes, true);
}

fattn_status fattn_buffer_read(fattn_context *context, void *to_host, const void *from,
                               size_t bytes)
{
    NEED(context);
    return copy(context, to_host, from, bytes, false);
}

fattn_status fattn_stream_create(struct CUstream_st **out, fattn_context *context)
{
    NEED(out);
    *out = NULL;
    NEED(context);
    if (context->cuda == NULL)
        return no_device(context);
    struct CUctx_st *previous;
    fattn_status st = fattn__enter(context, &previous);
    if (st == FATTN_OK) {
        st = check(context, context->cuda->stream_create(out, GPU_STREAM_NON_BLOCKING),
                   "create a stream");
        fattn__leave(context, previous);
    }
    return st;
}

void fattn_stream_destroy(fattn_context *context, struct CUstream_st *stream)
{
    struct CUctx_st *previous;
    if (context == NULL || context->cuda == NULL || stream == NULL ||
        fattn__enter(context, &previous) != FATTN_OK)
        return;
    context->cuda->stream_destroy(stream);
    fattn__leave(context, previous);
}

fattn_status fattn_stream_synchronize(fattn_context *context, struct CUstream_st *stream)
{
    NEED(context);
    if (context->cuda == NULL)
        return no_device(context);
    struct CUctx_st *previous;
    fattn_status st = fattn__enter(context, &previous);
    if (st == FATTN_OK) {
        st = check(context, context->cuda->stream_synchronize(stream), "a launch failed");
        fattn__leave(context, previous);
    }
    return st;
}

fattn_status fattn_context_enter(struct CUctx_st **previous, fattn_context *context)
{
    NEED(previous, context);
    return fattn__enter(context, previous);
}

void fattn_context_leave(fattn_context *context, struct CUctx_st *previous)
{
    fattn__leave(context, previous);
}

/* ---- time
 * ------------------------------------------------------------------------------------------------------------------
 */

typedef fattn_status launcher(void *argument, struct CUstream_st *stream);

static fattn_status time_on_cpu(launcher *launch, void *argument, int repeats, double *out_us)
{
    struct timespec start, end;
    fattn_status st = FATTN_OK;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < repeats && st == FATTN_OK; i++)
        st = launch(argument, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    *out_us =
        ((double)(end.tv_sec - start.tv_sec) * 1e6 + (double)(end.tv_nsec - start.tv_nsec) * 1e-3) /
        repeats;
    return st;
}

static fattn_status time_on_gpu(fattn_context *context, struct CUstream_st *stream,
                                launcher *launch, void *argument, int repeats, double *out_us)
{
    const gpu_driver *cuda = context->cuda;
    struct CUevent_st *start = NULL, *end = NULL;
    float ms = 0;
    fattn_status st = check(context, cuda->event_create(&start, 0), "create an event");
    if (st == FATTN_OK)
        st = check(context, cuda->event_create(&end, 0), "create an event");
    if (st == FATTN_OK)
        st = check(context, cuda->event_record(start, stream), "record an event");
    for (int i = 0; i < repeats && st == FATTN_OK; i++)
        st = launch(argument, stream);
    if (st == FATTN_OK)
        st = check(context, cuda->event_record(end, stream), "record an event");
    if (st == FATTN_OK)
        st = check(context, cuda->event_synchronize(end), "a launch failed");
    if (st == FATTN_OK)
        st = check(context, cuda->event_elapsed(&ms, start, end), "read the time");
    *out_us = (double)ms * 1e3 / repeats;
    if (start != NULL)
        cuda->event_destroy(start);
    if (end != NULL)
        cuda->event_destroy(end);
    return st;
}

fattn_status fattn_stream_time(fattn_context *context, struct CUstream_st *stream, launcher *launch,
                               void *argument, int repeats, double *out_us)
{
    NEED(context, out_us);
    *out_us = 0;
    if (repeats < 1)
        return fattn__fail(FATTN_BAD_PROBLEM, "repeats must be at least 1");
    fattn_status st = no_device(context);
    if (st != FATTN_OK || context->cuda == NULL)
        return st != FATTN_OK ? st : time_on_cpu(launch, argument, repeats, out_us);
    struct CUctx_st *previous;
    st = fattn__enter(context, &previous);
    if (st == FATTN_OK) {
        st = time_on_gpu(context, stream, launch, argument, repeats, out_us);
        fattn__leave(context, previous);
    }
    return st;
}
