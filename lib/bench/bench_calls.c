/* The host time of a call before its launch: the time to find the plan and check the addresses.
 *
 * usage: bench_calls [CUDNN_DIR [NVRTC|-]]     with CUDNN_DIR the addresses are in memory of GPU 0, otherwise in host memory
 * Prints one JSON object, nanoseconds of each, the best of several batches:
 *   resolve            fattn_problem_resolve
 *   hit                fattn_plan_get of a cached plan, and its release
 *   hit_other_words    the same, but each call spells the problem in another way than the call before, so that it is resolved
 *   check_fwd, _bwd    every check of a call: sizes, NULL, alignment, overlap, and on a GPU the owner of the memory
 *   check_bwd_packed   the same with dQ, dK and dV interleaved in one buffer
 *   check_host_*       the same without queries to the driver
 *   ask_driver         one cuPointerGetAttribute */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/arguments.h"
#include "core/context.h"
#include "core/plan.h"
#include "fattn/cache.h"
#include "fattn/device.h"

enum { BATCHES = 50, CALLS = 2000, ROOM = 1 << 24 };

static fattn_context *context;
static fattn_problem problem, spelled, resolved;
static fattn__arguments arguments;
static fattn_tensors tensors;
static const gpu_driver *driver;
static char *memory;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench_calls: %s: %s\n", what, fattn_last_error());
    exit(3);
}

static double best_of(void (*body)(int))
{
    double best = 1e300;
    for (int batch = 0; batch < BATCHES; batch++) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (int i = 0; i < CALLS; i++)
            body(i);
        clock_gettime(CLOCK_MONOTONIC, &end);
        const double ns =
            ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) /
            CALLS;
        best = ns < best ? ns : best;
    }
    return best;
}

static void do_resolve(int i)
{
    (void)i;
    fattn_problem_resolve(&problem, &resolved);
}

static void get(const fattn_problem *p)
{
    fattn_plan *plan;
    if (fattn_plan_get(&plan, context, p, NULL) != FATTN_OK)
        fail("plan");
    fattn_plan_destroy(plan);
}

static void do_hit(int i)
{
    (void)i;
    get(&problem);
}

static void do_hit_other_words(int i)
{
    get(i & 1 ? &problem : &spelled);
}

static void do_check(int i)
{
    (void)i;
    if (fattn__arguments_check(&arguments, &tensors, false, driver, context->device) != FATTN_OK)
        fail("check");
}

static void do_ask(int i)
{
    int ordinal;
    (void)i;
    driver->pointer_attribute(&ordinal, GPU_ORDINAL_OF_POINTER, (gpu_address)(uintptr_t)memory);
}

static void open_context(int argc, char **argv)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = argc > 1 ? FATTN_DEVICE_GPU : FATTN_DEVICE_CPU;
    options.cudnn_dir = argc > 1 ? argv[1] : NULL;
    options.nvrtc = argc > 2 && strcmp(argv[2], "-") != 0 ? argv[2] : NULL;
    void *buffer;
    if (fattn_context_create(&context, &options) != FATTN_OK ||
        fattn_buffer_create(&buffer, context, ROOM) != FATTN_OK)
        fail("context");
    memory = buffer;
    driver = context->cuda;
}

/* Every tensor has its own part of the buffer. */
static void place(fattn_pass pass, bool packed)
{
    fattn_problem p = problem;
    p.pass = (int32_t)pass;
    p.outputs = 0;
    const int64_t strides[4] = { 3 * 64 * 4 * 64, 64, 3 * 4 * 64, 1 };
    if (packed) {
        memcpy(p.dq_strides, strides, sizeof strides);
        memcpy(p.dk_strides, strides, sizeof strides);
        memcpy(p.dv_strides, strides, sizeof strides);
    }
    if (fattn_problem_resolve(&p, &resolved) != FATTN_OK)
        fail("problem");
    fattn__arguments_of(&arguments, &resolved, 4096);
    char *at = memory;
    tensors = (fattn_tensors)FATTN_TENSORS_INIT;
#define GIVE(field) tensors.field = (void *)at, at += ROOM / 16;
    /* clang-format off */
    GIVE(q) GIVE(k) GIVE(v) GIVE(o) GIVE(stats) GIVE(d_o) GIVE(dq) GIVE(dk) GIVE(dv)
    GIVE(workspace)
    /* clang-format on */
#undef GIVE
        if (packed)
    {
        tensors.dk = (char *)tensors.dq + 4 * 64 * 2;
        tensors.dv = (char *)tensors.dq + 2 * 4 * 64 * 2;
    }
    tensors.workspace_bytes = 4096;
}

static void report(const char *name, void (*body)(int))
{
    printf("\"%s\": %.1f, ", name, best_of(body));
}

int main(int argc, char **argv)
{
    if (argc > 3) {
        fprintf(stderr, "usage: bench_calls [CUDNN_DIR [NVRTC|-]]\n");
        return 2;
    }
    open_context(argc, argv);
    problem = (fattn_problem)FATTN_PROBLEM_INIT;
    problem.batch = 2;
    problem.heads_q = 4;
    problem.seq_q = problem.seq_kv = 64;
    problem.dim_qk = 64;
    spelled = problem;
    spelled.heads_k = 4;
    printf("{");
    report("resolve", do_resolve);
    report("hit", do_hit);
    report("hit_other_words", do_hit_other_words);
    static const char *const names[2][3] = { { "check_fwd", "check_bwd", "check_bwd_packed" },
                                             { "check_host_fwd", "check_host_bwd",
                                               "check_host_bwd_packed" } };
    const gpu_driver *const real = driver;
    for (int host = real == NULL; host < 2; host++) {
        driver = host ? NULL : real;
        for (int i = 0; i < 3; i++) {
            place(i == 0 ? FATTN_FORWARD : FATTN_BACKWARD, i == 2);
            report(names[host][i], do_check);
        }
    }
    driver = real;
    if (driver != NULL)
        report("ask_driver", do_ask);
    printf("\"gpu\": %s}\n", real != NULL ? "true" : "false");
    fattn_buffer_destroy(context, memory);
    fattn_context_destroy(context);
    return 0;
}
