/* The environment of a worker: of the caller's environment, it contains only the variables in this
 * list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervision.h"

/* Passed on to workers if set: visible GPUs, the cuBLAS that measures them, options of sanitizers,
 * and whether rows have the times of their stages. */
static const char *const passed_for_gpu[] = { "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                              "FACTS_CUBLAS", NULL };
static const char *const passed[] = { "HOME",          "TMPDIR",       "ASAN_OPTIONS",
                                      "UBSAN_OPTIONS", "LSAN_OPTIONS", NULL };

typedef struct block {
    char *entries[16];
    size_t count;
    char text[8192];
    size_t used;
} block;

static void put(block *b, const char *name, const char *value)
{
    size_t left = sizeof b->text - b->used;
    int n = snprintf(b->text + b->used, left, "%s=%s", name, value);
    if (n < 0 || (size_t)n >= left || b->count + 1 >= sizeof b->entries / sizeof b->entries[0])
        return;
    b->entries[b->count++] = b->text + b->used;
    b->entries[b->count] = NULL;
    b->used += (size_t)n + 1;
}

static void put_set(block *b, const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value)
            put(b, *names, value);
    }
}

char **facts_worker_environment(const facts_target *target, const char *links, int threads,
                                const char *variable, const char *value)
{
    char number[16];
    block *b = calloc(1, sizeof *b);
    const char *path = getenv("PATH");
    put(b, "PATH", path ? path : "/usr/bin:/bin");
    snprintf(number, sizeof number, "%d", threads);
    put(b, "OMP_NUM_THREADS", number);
    put(b, "OMP_WAIT_POLICY",
        "passive"); /* several workers share the cores: threads that wait must not spin */
    if (target->kind != FACTS_TARGET_CPU &&
        (target->build.kind == FACTS_BUILD_JIT || target->build.three_libraries))
        put(b, "CUDNN_LIB_CONFIG", "GRAPH_JIT_ONLY");
    if (target->kind != FACTS_TARGET_CPU && value[0])
        put(b, variable, value);
    if (links[0])
        put(b, "LD_LIBRARY_PATH", links);
    put_set(b, passed);
    if (target->kind == FACTS_TARGET_GPU)
        put_set(b, passed_for_gpu);
    return b->entries; /* the block's first member */
}
