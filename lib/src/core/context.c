#include "context.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn/backend/cudnn_device.h"
#include "error.h"
#include "fattn/cache.h"
#include "libraries.h"
#include "math/math_sum.h"
#include "sized.h"

fattn_status fattn__enter(const fattn_context *context, struct CUctx_st **previous)
{
    *previous = NULL;
    if (context->cuda == NULL)
        return FATTN_OK;
    int result = context->cuda->context_get(previous);
    if (result == 0 && *previous != context->primary)
        result = context->cuda->context_set(context->primary);
    if (result != 0)
        return fattn__fail(FATTN_DEVICE_FAULT, "the GPU's context cannot be made current: %s",
                           gpu_driver_text(context->cuda, result));
    return FATTN_OK;
}

void fattn__leave(const fattn_context *context, struct CUctx_st *previous)
{
    if (context->cuda != NULL && previous != context->primary)
        context->cuda->context_set(previous);
}

/* ---- create
 * ----------------------------------------------------------------------------------------------------------------
 */

/* Returns the driver's first error: a GPU that is half known would be taken for another one. */
static int read_gpu_info(const gpu_driver *cuda, int device, fattn_context_info *info)
{
    int major = 0, minor = 0, driver = 0;
    gpu_uuid uuid;
    int result = cuda->device_attribute(&major, GPU_MAJOR, device);
    if (result == 0)
        result = cuda->device_attribute(&minor, GPU_MINOR, device);
    if (result == 0)
        result = cuda->device_attribute(&info->multiprocessors, GPU_MULTIPROCESSORS, device);
    if (result == 0)
        result = cuda->driver_version(&driver);
    if (result == 0)
        result = cuda->device_name(info->device_name, (int)sizeof info->device_name, device);
    if (result == 0)
        result = cuda->device_uuid(&uuid, device);
    if (result != 0)
        return result;
    info->sm = major * 10 + minor;
    info->driver_version = driver;
    char *at = info->device_uuid + snprintf(info->device_uuid, sizeof info->device_uuid, "GPU-");
    for (int i = 0; i < 16; i++)
        at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                      (unsigned)uuid.bytes[i]);
    return 0;
}

static fattn_status open_gpu(fattn_context *context, int32_t ordinal)
{
    char error[256];
    const gpu_driver *cuda = gpu_driver_of(context->api->driver, error);
    if (cuda == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "%s", error);
    int count = 0;
    int result = cuda->init(0);
    if (result == 0)
        result = cuda->device_count(&count);
    if (result == 0 && (ordinal < 0 || ordinal >= count))
        return fattn__fail(FATTN_ENVIRONMENT, "no GPU %d: this machine shows %d", ordinal, count);
    if (result == 0)
        result = cuda->device_get(&context->device, ordinal);
    if (result == 0)
        result = cuda->primary_retain(&context->primary, context->device);
    if (result != 0)
        return fattn__fail(result == GPU_OUT_OF_MEMORY ? FATTN_NO_MEMORY : FATTN_ENVIRONMENT,
                           "no GPU %d: %s", ordinal, gpu_driver_text(cuda, result));
    context->cuda = cuda;
    result = cuda->context_id(context->primary, &context->primary_id);
    if (result == 0)
        result = cuda->context_set(context->primary);
    if (result == 0)
        result = read_gpu_info(cuda, context->device, &context->info);
    if (result != 0)
        return fattn__fail(FATTN_ENVIRONMENT, "GPU %d cannot be used: %s", ordinal,
                           gpu_driver_text(cuda, result));
    context->handles = calloc(1, sizeof *context->handles);
    if (context->handles == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a context");
    return fattn__handles_init(context->handles, context->api);
}

/* The cuDNN and the NVRTC that this process has mapped, for example PyTorch's. The folder is that
 * of the link, not of its target. */
static fattn_status use_mapped(fattn_context_options *options, char dir[PATH_MAX],
                               char nvrtc[PATH_MAX])
{
    if (!fattn__mapped_library("libcudnn.so.9", dir))
        return fattn__fail(
            FATTN_ENVIRONMENT,
            "this process has mapped no libcudnn.so.9: name its folder in cudnn_dir");
    *strrchr(dir, '/') = '\0';
    options->cudnn_dir = dir;
    if (options->nvrtc == NULL && fattn__mapped_library("libnvrtc.so", nvrtc))
        options->nvrtc = nvrtc;
    return FATTN_OK;
}

static fattn_status open_build(fattn_context *context, const fattn_context_options *given)
{
    char dir[PATH_MAX], nvrtc[PATH_MAX];
    fattn_context_options asked = *given, *options = &asked;
    if (asked.cudnn_dir == NULL)
        TRY(use_mapped(&asked, dir, nvrtc));
    TRY(fattn__cudnn_load(&context->api, options->cudnn_dir, options->nvrtc, options->driver));
    context->info.cudnn_version = context->api->version;
    if (options->nvrtc != NULL) {
        context->nvrtc = realpath(options->nvrtc, NULL);
        if (context->nvrtc == NULL)
            return fattn__fail(FATTN_ENVIRONMENT, "no NVRTC at %s", options->nvrtc);
    }
    fattn_status st;
    if (context->kind == FATTN_DEVICE_GPU)
        st = open_gpu(context, options->ordinal);
    else
        st = fattn__device_describe(&context->description, &context->info, context->api,
                                    options->device_json);
    return st == FATTN_OK ? fattn__device_identify(context) : st;
}

static void release_memory(fattn_context *context)
{
    for (size_t i = 0; i < context->path_count; i++)
        free(context->paths[i]);
    free(context->paths);
    free(context->nvrtc);
    free(context->handles);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

static uint64_t next_id(void)
{
    static _Atomic uint64_t last;
    return ++last;
}

#define MOST_THREADS 4096 /* each has scratch memory */

fattn_status fattn_context_create(fattn_context **out, const fattn_context_options *options)
{
    NEED(out);
    fattn_context_options o = FATTN_CONTEXT_OPTIONS_INIT;
    *out = NULL;
    if (options == NULL || !fattn__read_sized(&o, sizeof o, options) || o.reserved != 0)
        return fattn__fail(
            FATTN_BAD_PROBLEM,
            "fattn_context_options: struct_size is wrong or an unknown field is set");
    if (o.device_kind < FATTN_DEVICE_GPU || o.device_kind > FATTN_DEVICE_CPU || o.threads < 0 ||
        o.threads > MOST_THREADS)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "fattn_context_options: device_kind must be 0..2 and threads 0..%d",
                           MOST_THREADS);
    fattn_context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a context");
    pthread_mutex_init(&context->lock, NULL);
    context->references = 1;
    context->id = next_id();
    context->kind = (fattn_device_kind)o.device_kind;
    context->threads = o.threads;
    context->info.struct_size = sizeof context->info;
    fattn_status st = FATTN_OK;
    if (context->kind == FATTN_DEVICE_CPU)
        snprintf(context->info.device_name, sizeof context->info.device_name, "cpu");
    else
        st = open_build(context, &o);
    if (st == FATTN_OK)
        *out = context;
    else
        fattn_context_destroy(context);
    return st;
}

/* ---- end
 * -------------------------------------------------------------------------------------------------------------------
 */

bool fattn__context_alive(const fattn_context *context)
{
    unsigned flags;
    int active = 0;
    unsigned long long id = 0;
    if (context->abandoned)
        return false;
    if (context->cuda == NULL)
        return true;
    /* After a device reset the primary context has another number. */
    return context->cuda->primary_state(context->device, &flags, &active) == 0 && active != 0 &&
           context->cuda->context_id(context->primary, &id) == 0 && id == context->primary_id;
}

static void close_gpu(fattn_context *context)
{
    struct CUctx_st *previous;
    if (context->handles != NULL && fattn__enter(context, &previous) == FATTN_OK) {
        fattn__math_close(context);
        fattn__handles_destroy(context->handles, context->api);
        fattn__leave(context, previous == context->primary ? NULL : previous);
    }
    context->cuda->primary_release(context->device);
}

fattn_context *fattn__context_retain(fattn_context *context)
{
    context->references++;
    return context;
}

void fattn__context_release(fattn_context *context)
{
    if (--context->references > 0)
        return;
    if (fattn__context_alive(context)) {
        if (context->description != NULL)
            context->api->cudnnBackendDestroyDescriptor(context->description);
        if (context->cuda != NULL)
            close_gpu(context);
    }
    release_memory(context);
}

void fattn_context_destroy(fattn_context *context)
{
    if (context == NULL)
        return;
    fattn_cache_drop(context);
    fattn__context_release(context);
}

void fattn_context_abandon(fattn_context *context)
{
    if (context == NULL)
        return;
    context->abandoned = true;
    fattn_context_destroy(context);
}

fattn_status fattn_context_info_get(const fattn_context *context, fattn_context_info *out)
{
    NEED(context, out);
    size_t size = out->struct_size;
    if (size <= sizeof out->struct_size)
        return fattn__fail(FATTN_BAD_PROBLEM, "fattn_context_info: struct_size is not set");
    fattn_context_info info = context->info;
    if (size > offsetof(fattn_context_info, build_id) && context->api != NULL)
        info.build_id = fattn__cudnn_build(context->api);
    info.math_kernels = fattn__math_image.bytes > 0;
    snprintf(info.math_about, sizeof info.math_about, "%s", fattn__math_image.about);
    memcpy(out, &info, size < sizeof *out ? size : sizeof *out);
    out->struct_size = size;
    return FATTN_OK;
}
