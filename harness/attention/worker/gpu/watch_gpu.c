#include "worker_gpu.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fattn/device.h"
#include "gpu_launch.h"

#define MIB ((int64_t)1 << 20)
#define GRANULE (2 * MIB) /* the driver's pages */
#define SLACK (64 * MIB)  /* page tables come and go with the pieces */

/* The largest piece that the driver still gives: free memory is not always one piece. */
bool facts_ballast_take(facts_ballast *out, facts_gpu *gpu, int64_t mib, char why[160])
{
    *out = (facts_ballast){ .pieces = 0 };
    if (mib < 0)
        return true;
    const int64_t leave = mib * MIB;
    int64_t piece = INT64_MAX, left = facts_gpu_free_bytes(gpu);
    while (out->pieces < FACTS_BALLAST_PIECES) {
        const int64_t over = (left - leave) / GRANULE * GRANULE;
        piece = over < piece ? over : piece;
        if (piece < GRANULE)
            break;
        if (fattn_buffer_create(&out->piece[out->pieces], gpu->context, (size_t)piece) == FATTN_OK)
            out->pieces++;
        else
            piece = piece / 2 / GRANULE * GRANULE;
        left = facts_gpu_free_bytes(gpu);
    }
    if (left >= 0 && left <= leave + SLACK)
        return true;
    snprintf(why, 160, "memory: %" PRId64 " MiB of the GPU stayed free", left / MIB);
    return false;
}

void facts_ballast_drop(facts_ballast *ballast, facts_gpu *gpu)
{
    while (ballast->pieces > 0)
        fattn_buffer_destroy(gpu->context, ballast->piece[--ballast->pieces]);
}

#define SIDE 8192
#define COPY_BYTES ((size_t)512 << 20)
#define BLOCK_BYTES ((size_t)16 << 20)
#define LAUNCHES 10
#define SAMPLES 5

/* cublas_api.h, library_types.h. These are our own declarations: no header of cuBLAS is read. */
enum { NO_TRANSPOSE = 0, TRANSPOSE = 1, BF16 = 14, SUMS_OF_F32 = 68, DEFAULT_ALGORITHM = -1 };
typedef int gemm_function(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                          const void *alpha, const void *a, int type_a, int lda, const void *b,
                          int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
                          int compute, int algorithm);

typedef struct peak {
    fattn_context *context;
    struct CUstream_st *stream;
    void *a, *b, *c; /* on the device */
    void *handle;
    gemm_function *gemm;
    int (*copy)(uint64_t to, uint64_t from, size_t bytes, struct CUstream_st *stream);
} peak;

static void find(void *library, const char *name, void *out)
{
    void *address = library ? dlsym(library, name) : NULL;
    memcpy(out, &address, sizeof address);
}

static fattn_status launch_gemm(void *argument, struct CUstream_st *stream)
{
    const peak *p = argument;
    const float one = 1, zero = 0;
    (void)stream;
    const int status =
        p->gemm(p->handle, TRANSPOSE, NO_TRANSPOSE, SIDE, SIDE, SIDE, &one, p->a, BF16, SIDE, p->b,
                BF16, SIDE, &zero, p->c, BF16, SIDE, SUMS_OF_F32, DEFAULT_ALGORITHM);
    return status == 0 ? FATTN_OK : FATTN_DEVICE_FAULT;
}

static fattn_status launch_copy(void *argument, struct CUstream_st *stream)
{
    const peak *p = argument;
    return p->copy((uint64_t)(uintptr_t)p->b, (uint64_t)(uintptr_t)p->a, COPY_BYTES, stream) == 0
               ? FATTN_OK
               : FATTN_DEVICE_FAULT;
}

/* The shortest of several times, so the speed is a peak. 0: it failed. */
static double best_us(peak *p, fattn_status (*launch)(void *, struct CUstream_st *))
{
    double best = 0, us;
    for (int i = 0; i <= SAMPLES; i++) { /* the first warms up */
        if (fattn_stream_time(p->context, p->stream, launch, p, LAUNCHES, &us) != FATTN_OK)
            return 0;
        best = i > 0 && (best == 0 || us < best) ? us : best;
    }
    return best;
}

/* Random numbers of bf16 near 1: zeros would need less power, and a card that needs less is faster.
 */
static bool fill(const peak *p, void *to)
{
    uint16_t *block = malloc(BLOCK_BYTES);
    uint32_t state = 1;
    bool good = block != NULL;
    for (size_t i = 0; good && i < BLOCK_BYTES / sizeof *block; i++) {
        state = state * 1664525u + 1013904223u;
        block[i] = (uint16_t)((state >> 31) << 15 | 0x3f00 | (state >> 16 & 0xff));
    }
    for (size_t at = 0; good && at < COPY_BYTES; at += BLOCK_BYTES)
        good = fattn_buffer_write(p->context, (char *)to + at, block, BLOCK_BYTES) == FATTN_OK;
    free(block);
    return good;
}

static void *open_cublas(const char *cudnn_dir, char path[PATH_MAX])
{
    static const char *const names[] = { "libcublas.so.13", "libcublas.so.12" };
    static const char *const beside[] = {
        "libcublas.so.13", "libcublas.so.12", "../../cu13/lib/libcublas.so.13",
        "../../cublas/lib/libcublas.so.12"
    }; /* the CUDA toolkit's folder; pip's */
    const char *named = getenv("FACTS_CUBLAS");
    void *library = NULL;
    if (named && snprintf(path, PATH_MAX, "%s", named) < PATH_MAX)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof beside / sizeof beside[0] && !library; i++)
        if (snprintf(path, PATH_MAX, "%s/%s", cudnn_dir, beside[i]) < PATH_MAX)
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < 2 && !library; i++)
        library = dlopen(strcpy(path, names[i]), RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void measure_gemm(peak *p, json_t *out, const char *cudnn_dir)
{
    char path[PATH_MAX];
    void *library = open_cublas(cudnn_dir, path);
    int (*create)(void **handle) = NULL, (*destroy)(void *handle) = NULL,
                       (*use)(void *handle, struct CUstream_st *stream) = NULL;
    find(library, "cublasCreate_v2", &create);
    find(library, "cublasDestroy_v2", &destroy);
    find(library, "cublasSetStream_v2", &use);
    find(library, "cublasGemmEx", &p->gemm);
    if (!create || !destroy || !use || !p->gemm || create(&p->handle) != 0)
        return;
    if (use(p->handle, p->stream) == 0) {
        const double us = best_us(p, launch_gemm);
        if (us > 0)
            json_object_set_new(out, "gemm_tflops",
                                json_real(2.0 * SIDE * SIDE * SIDE / us * 1e-6));
        json_object_set_new(out, "gemm", json_string(path));
    }
    destroy(p->handle);
}

json_t *facts_measure_peak(fattn_context *context, struct CUstream_st *stream,
                           const char *cudnn_dir)
{
    peak p = { .context = context, .stream = stream };
    json_t *out = json_object();
    struct CUctx_st *previous;
    if (fattn_context_enter(&previous, context) != FATTN_OK)
        return out;
    void *driver =
        dlopen("libcuda.so.1",
               RTLD_NOW | RTLD_NOLOAD); /* the file in use: the library is private to this load */
    find(driver, "cuMemcpyDtoDAsync_v2", &p.copy);
    if (fattn_buffer_create(&p.a, context, COPY_BYTES) == FATTN_OK &&
        fattn_buffer_create(&p.b, context, COPY_BYTES) == FATTN_OK &&
        fattn_buffer_create(&p.c, context, COPY_BYTES) == FATTN_OK && fill(&p, p.a) &&
        fill(&p, p.b)) {
        const double us = p.copy ? best_us(&p, launch_copy) : 0;
        if (us > 0)
            json_object_set_new(out, "copy_gbs", json_real(2.0 * (double)COPY_BYTES / us * 1e-3));
        measure_gemm(&p, out, cudnn_dir);
    }
    if (driver)
        dlclose(driver);
    fattn_buffer_destroy(context, p.a);
    fattn_buffer_destroy(context, p.b);
    fattn_buffer_destroy(context, p.c);
    fattn_context_leave(context, previous);
    return out;
}

/* nvml.h: nvmlClockType_t, nvmlTemperatureSensors_t. These are our own declarations: no header of
 * NVML is read. */
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0 };

struct facts_watch {
    void *library, *device;
    int (*clock)(void *device, int type, unsigned *mhz);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*power)(void *device, unsigned *milliwatts);
    int (*throttled)(void *device, unsigned long long *reasons);
};

static int find_device(facts_watch *w, const char *uuid)
{
    int (*start)(void) = NULL, (*by_uuid)(const char *uuid, void **out) = NULL;
    find(w->library, "nvmlInit_v2", &start);
    find(w->library, "nvmlDeviceGetHandleByUUID", &by_uuid);
    find(w->library, "nvmlDeviceGetClockInfo", &w->clock);
    find(w->library, "nvmlDeviceGetTemperature", &w->temperature);
    find(w->library, "nvmlDeviceGetPowerUsage", &w->power);
    find(w->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &w->throttled);
    return !start || !by_uuid || start() != 0 || by_uuid(uuid, &w->device) != 0;
}

facts_watch *facts_watch_open(const char *uuid)
{
    facts_watch *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (w->library && find_device(w, uuid) == 0)
        return w;
    facts_watch_close(w);
    return NULL;
}

json_t *facts_watch_read(const facts_watch *w)
{
    json_t *out = json_object();
    unsigned value;
    unsigned long long reasons;
    if (w->clock && w->clock(w->device, CLOCK_SM, &value) == 0)
        json_object_set_new(out, "sm_mhz", json_integer((json_int_t)value));
    if (w->clock && w->clock(w->device, CLOCK_MEMORY, &value) == 0)
        json_object_set_new(out, "memory_mhz", json_integer((json_int_t)value));
    if (w->temperature && w->temperature(w->device, SENSOR_GPU, &value) == 0)
        json_object_set_new(out, "temperature_c", json_integer((json_int_t)value));
    if (w->power && w->power(w->device, &value) == 0)
        json_object_set_new(out, "power_w", json_real(value / 1e3));
    if (w->throttled && w->throttled(w->device, &reasons) == 0)
        json_object_set_new(out, "throttled", json_integer((json_int_t)reasons));
    return out;
}

void facts_watch_close(facts_watch *w)
{
    if (w && w->library)
        dlclose(w->library);
    free(w);
}
