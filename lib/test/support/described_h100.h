/* A target for tests: a real cuDNN that is asked about a described H100, with the null driver. Where no cuDNN is installed the
 * tests that need one say so and are skipped. FACTS_TEST_CUDNN names the folder, FACTS_TEST_NVRTC the library; otherwise a CUDA
 * toolkit is tried. */
#ifndef FATTN_TEST_TARGET_H
#define FATTN_TEST_TARGET_H

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fattn/fattn.h"

#define TOOLKIT "/usr/local/cuda/lib64"

static inline const char *from_environment(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : otherwise;
}

static inline const char *test_cudnn(void)
{
    return from_environment("FACTS_TEST_CUDNN", TOOLKIT);
}

static inline const char *test_nvrtc(void)
{
    static char path[512];
    glob_t found;
    if (glob(TOOLKIT "/libnvrtc.so.[0-9]*", 0, NULL, &found) == 0) {
        snprintf(path, sizeof path, "%s", found.gl_pathv[0]);
        globfree(&found);
    }
    const char *nvrtc = from_environment("FACTS_TEST_NVRTC", path);
    return *nvrtc != '\0' ? nvrtc : NULL; /* from 9.21 none is needed */
}

static inline const char *null_driver(void)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/nulldriver/libcuda.so.1", from_environment("FACTS_BIN", "bin"));
    return path;
}

static inline char *read_device(const char *name)
{
    static char text[16384];
    char path[512];
    snprintf(path, sizeof path, "%s/lib/devices/%s.json", from_environment("FACTS_SOURCE", "."), name);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* Options of a described H100; each test changes what it is about. */
static inline fattn_context_options h100_options(void)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    char path[512];
    snprintf(path, sizeof path, "%s/libcudnn_graph.so.9", test_cudnn());
    if (access(path, R_OK) != 0)
        cr_skip_test("no cuDNN in %s: set FACTS_TEST_CUDNN", test_cudnn());
    options.cudnn_dir = test_cudnn();
    options.nvrtc = test_nvrtc();
    options.driver = null_driver();
    options.device_json = read_device("h100-sxm");
    options.device_kind = FATTN_DEVICE_DESCRIBED;
    return options;
}

static inline fattn_context *open_options(const fattn_context_options *options)
{
    fattn_context *context;
    fattn_status st = fattn_context_create(&context, options);
    cr_assert_eq(st, FATTN_OK, "%s", fattn_last_error());
    return context;
}

static inline fattn_context *open_h100(void)
{
    fattn_context_options options = h100_options();
    return open_options(&options);
}

/* Another described device and cuDNN's version. A folder without the precompiled engines is told to be what it is: the jit set,
 * which must not be completed from elsewhere. */
static inline fattn_context *open_described(const char *device, int *version)
{
    char path[512];
    snprintf(path, sizeof path, "%s/libcudnn_engines_precompiled.so.9", test_cudnn());
    if (access(path, R_OK) != 0)
        setenv("CUDNN_LIB_CONFIG", "GRAPH_JIT_ONLY", 1);
    fattn_context_options options = h100_options();
    options.device_json = read_device(device);
    fattn_context *context = open_options(&options);
    fattn_context_info info = { .struct_size = offsetof(fattn_context_info, build_id) }; /* reads no library to hash it */
    cr_assert_eq(fattn_context_info_get(context, &info), FATTN_OK);
    *version = info.cudnn_version;
    return context;
}

/* GPU 0; skips the test where there is none. */
static inline fattn_context *open_gpu(void)
{
    fattn_context_options options = h100_options();
    fattn_context *context;
    options.device_kind = FATTN_DEVICE_GPU;
    options.driver = NULL;
    fattn_status st = fattn_context_create(&context, &options);
    if (st == FATTN_ENVIRONMENT)
        cr_skip_test("no GPU: %s", fattn_last_error());
    cr_assert_eq(st, FATTN_OK, "%s", fattn_last_error());
    return context;
}

/* Is a plan compiled where nothing but its coming about is shown? Under a sanitizer none is: the sanitizer sees nothing of cuDNN's
 * compiler, which takes seconds there, and lib_plan compiles the plans that it needs. */
static inline bool compiling(void)
{
#ifdef __SANITIZE_ADDRESS__
    return false;
#else
    return true;
#endif
}

/* The case that every version and device says yes to. */
static inline fattn_problem control_problem(void)
{
    fattn_problem problem = FATTN_PROBLEM_INIT;
    problem.batch = 2;
    problem.heads_q = 8;
    problem.seq_q = problem.seq_kv = 512;
    problem.dim_qk = 128;
    return problem;
}

#endif
