/* What the examples share: their options, and moving small tensors. Nothing here is needed to use
 * the library. */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <fattn/device.h>
#include <fattn/fattn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FATTN_NULL_DRIVER
#define FATTN_NULL_DRIVER NULL
#endif

/* Every call of the library is checked; its sentence for people says more than its status. */
#define CHECK(call) example_check((call), #call)
static inline void example_check(fattn_status status, const char *call)
{
    if (status == FATTN_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", call, fattn_status_name(status), fattn_last_error());
    exit(status == FATTN_ENVIRONMENT ? 3 : 1);
}

static inline char *example_file(const char *path)
{
    char *text = calloc(1, 1 << 16);
    FILE *file = fopen(path, "rb");
    if (!text || !file || fread(text, 1, (1 << 16) - 1, file) == 0) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    fclose(file);
    return text;
}

typedef struct example {
    fattn_context *context;
    fattn_device_kind kind;
} example;

/* --device cpu (the default), a GPU's number, or a description (fattn/devices/h100-sxm.json), which
 * decides and compiles but runs nothing. A GPU and a description need --cudnn, the folder that
 * holds libcudnn.so.9, and below 9.21 also --nvrtc. */
static inline example example_open(int argc, char **argv)
{
    fattn_context_options o = FATTN_CONTEXT_OPTIONS_INIT;
    const char *device = "cpu", *driver = NULL;
    char *description = NULL;
    for (int i = 1; i < argc; i += 2) {
        const char **value = !strcmp(argv[i], "--device")   ? &device
                             : !strcmp(argv[i], "--cudnn")  ? &o.cudnn_dir
                             : !strcmp(argv[i], "--nvrtc")  ? &o.nvrtc
                             : !strcmp(argv[i], "--driver") ? &driver
                                                            : NULL;
        if (!value || i + 1 == argc) {
            fprintf(stderr,
                    "usage: %s [--device cpu|N|FILE.json] [--cudnn FOLDER] [--nvrtc FILE] "
                    "[--driver FILE]\n",
                    argv[0]);
            exit(2);
        }
        *value = argv[i + 1];
    }
    char *end;
    o.ordinal = (int32_t)strtol(device, &end, 10);
    o.device_kind = !strcmp(device, "cpu") ? FATTN_DEVICE_CPU
                    : *end == '\0'         ? FATTN_DEVICE_GPU
                                           : FATTN_DEVICE_DESCRIBED;
    if (o.device_kind == FATTN_DEVICE_DESCRIBED) {
        o.device_json = description = example_file(device);
        o.driver =
            driver
                ? driver
                : FATTN_NULL_DRIVER; /* a libcuda.so.1 that owns no device comes with the library */
    }
    /* A cuDNN of three libraries needs CUDNN_LIB_CONFIG before it is loaded; the library itself
     * never changes the environment. */
    setenv("CUDNN_LIB_CONFIG", "GRAPH_JIT_ONLY", 0);
    example e = { .kind = (fattn_device_kind)o.device_kind };
    CHECK(fattn_context_create(&e.context, &o));
    free(description);
    return e;
}

/* bf16 is the upper half of an fp32. */
static inline uint16_t example_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float example_from_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

static inline void *example_allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    return memory ? memory : (perror("memory"), exit(1), NULL);
}

/* Ordinary numbers of either sign that bf16 can hold. */
static inline float *example_noise(size_t count, uint32_t seed)
{
    float *x = example_allocate(count * sizeof *x);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = example_from_bf16(example_to_bf16((float)(seed >> 8) * 0x1p-23f - 1.0f));
    }
    return x;
}

static inline void *example_buffer(example e, size_t bytes)
{
    void *buffer;
    CHECK(fattn_buffer_create(&buffer, e.context, bytes > 0 ? bytes : 1));
    return buffer;
}

static inline void example_write(example e, void *to, const float *x, size_t count)
{
    uint16_t *bits = example_allocate(count * sizeof *bits);
    for (size_t i = 0; i < count; i++)
        bits[i] = example_to_bf16(x[i]);
    CHECK(fattn_buffer_write(e.context, to, bits, count * sizeof *bits));
    free(bits);
}

static inline void *example_upload(example e, const float *x, size_t count)
{
    void *buffer = example_buffer(e, count * sizeof(uint16_t));
    example_write(e, buffer, x, count);
    return buffer;
}

/* How far `got` (bf16, on the device) is from `want`, relative to the largest element; a NaN when
 * there is one. */
static inline double example_error(example e, const void *got, const double *want, size_t count)
{
    uint16_t *bits = example_allocate(count * sizeof *bits);
    CHECK(fattn_buffer_read(e.context, bits, got, count * sizeof *bits));
    double worst = 0, largest = 0;
    for (size_t i = 0; i < count && !isnan(worst); i++) {
        const double error = fabs((double)example_from_bf16(bits[i]) - want[i]);
        worst = error <= worst ? worst : error;
        largest = fmax(largest, fabs(want[i]));
    }
    free(bits);
    return worst / largest;
}

/* Says what was found, and makes it the exit status: bf16 has 8 bits, probabilities and results are
 * rounded to it once. */
static inline int example_verdict(const char *what, double error)
{
    printf("%s: worst error %.1e of the largest element: %s\n", what, error,
           error < 0.02 ? "right" : "WRONG");
    return error < 0.02 ? 0 : 1;
}

#endif
