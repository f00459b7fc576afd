/* A target for tests: a real cuDNN that is asked about a described H100, with the null driver. It
 * is the build FACTS_TEST_BUILD (by default 9.27.0-jit-cu13) in the cache of `facts cudnn install`,
 * or the folder FACTS_TEST_CUDNN with the library FACTS_TEST_NVRTC. Where it is not installed, the
 * tests that need it say so and are skipped. */
#ifndef FATTN_TEST_TARGET_H
#define FATTN_TEST_TARGET_H

#include <criterion/criterion.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fattn/fattn.h"
#include "night.h"

static inline const char *from_environment(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : otherwise;
}

static inline const char *test_build(void)
{
    return from_environment("FACTS_TEST_BUILD", "9.27.0-jit-cu13");
}

/* The first path in FACTS' cache that fits the pattern; where none does, the pattern itself. */
static inline const char *in_cache(char out[PATH_MAX], const char *pattern)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = from_environment("HOME", "/nowhere");
    if (cache != NULL && *cache == '/')
        snprintf(out, PATH_MAX, "%s/facts/%s", cache, pattern);
    else
        snprintf(out, PATH_MAX, "%s/.cache/facts/%s", home, pattern);
    glob_t found;
    if (glob(out, 0, NULL, &found) == 0) {
        snprintf(out, PATH_MAX, "%s", found.gl_pathv[0]);
        globfree(&found);
    }
    return out;
}

static inline const char *test_cudnn(void)
{
    static char path[PATH_MAX];
    char pattern[256];
    snprintf(pattern, sizeof pattern, "cudnn/%s/lib", test_build());
    return from_environment("FACTS_TEST_CUDNN", in_cache(path, pattern));
}

/* From 9.21 on cuDNN needs none. The cache has one where no CUDA toolkit was there when an older
 * cuDNN was installed. */
static inline const char *test_nvrtc(void)
{
    static char path[PATH_MAX];
    static const char *const toolkit = "/usr/local/cuda/lib64/libnvrtc.so.13";
    if (getenv("FACTS_TEST_CUDNN") != NULL)
        return from_environment("FACTS_TEST_NVRTC", NULL);
    in_cache(path, "nvrtc/13.*/lib/libnvrtc.so.13");
    return access(path, R_OK) == 0 ? path : access(toolkit, R_OK) == 0 ? toolkit : NULL;
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
    snprintf(path, sizeof path, "%s/lib/devices/%s.json", from_environment("FACTS_SOURCE", "."),
             name);
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
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/libcudnn_graph.so.9", test_cudnn());
    if (access(path, R_OK) != 0)
        cr_skip_test("%s is not there: ./facts cudnn install %s", path, test_build());
    snprintf(path, sizeof path, "%s/libcudnn_engines_precompiled.so.9", test_cudnn());
    if (access(path, R_OK) != 0) /* the jit set, which must not be completed from elsewhere */
        setenv("CUDNN_LIB_CONFIG", "GRAPH_JIT_ONLY", 1);
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

/* Another described device, and cuDNN's version. */
static inline fattn_context *open_described(const char *device, int *version)
{
    fattn_context_options options = h100_options();
    options.device_json = read_device(device);
    fattn_context *context = open_options(&options);
    fattn_context_info info = {
        .struct_size = offsetof(fattn_context_info, build_id)
    }; /* reads no library to hash it */
    cr_assert_eq(fattn_context_info_get(context, &info), FATTN_OK);
    *version = info.cudnn_version;
    return context;
}

static inline fattn_context *open_cpu(void)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 1;
    return open_options(&options);
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

/* Is a plan compiled where nothing but its coming about is shown? Under a sanitizer none is: the
 * sanitizer sees nothing of cuDNN's compiler, which takes seconds there, and lib_plan compiles the
 * plans that it needs. */
static inline bool compiling(void)
{
#ifdef __SANITIZE_ADDRESS__
    return false;
#else
    return true;
#endif
}

/* Are all of them compiled? A plan takes a second. By day one of each kind is, and the others are
 * only recognised. */
static inline bool compiling_all(void)
{
    return compiling() && night();
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
