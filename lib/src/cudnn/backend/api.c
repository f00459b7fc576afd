#include "api.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_id.h"
#include "core/context.h"
#include "core/error.h"
#include "core/libraries.h"
#include "cudnn_nvrtc.h"
#include "log.h"

static fattn__cudnn loaded;
static bool is_loaded;
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

/* A path longer than the kernel takes is cut, and then not found. */
static void join(char out[PATH_MAX], const char *dir, const char *name)
{
    if (snprintf(out, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
        out[0] = '\0';
}

static fattn_status map_cudnn(const char *dir, void **out)
{
    static const char *const names[] = { "libcudnn_graph.so.9",
                                         "libcudnn_engines_runtime_compiled.so.9",
                                         "libcudnn.so.9" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_MAX];
        join(path, dir, names[i]);
        *out = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (*out == NULL)
            return fattn__fail(FATTN_ENVIRONMENT, "cuDNN cannot be mapped: %s", dlerror());
    }
    return FATTN_OK;
}

#define AS_ONE(result, name, arguments) +1

static fattn_status find_functions(fattn__cudnn *api, void *cudnn)
{
    static const struct {
        const char *name;
        size_t offset;
    } table[] = {
#define AS_ROW(result, name, arguments) { #name, offsetof(fattn__cudnn, name) },
        FATTN__CUDNN_FUNCTION_LIST(AS_ROW) FATTN__CUDNN_OPTIONAL_LIST(AS_ROW)
#undef AS_ROW
    };
    enum { NEEDED = 0 FATTN__CUDNN_FUNCTION_LIST(AS_ONE) };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        void *address = dlsym(cudnn, table[i].name);
        if (address == NULL && i < NEEDED)
            return fattn__fail(FATTN_ENVIRONMENT, "%s/libcudnn.so.9 has no %s", api->dir,
                               table[i].name);
        memcpy((char *)api + table[i].offset, &address, sizeof address);
    }
    return FATTN_OK;
}

/* cuDNN asks the loader for the NVRTC of its own CUDA major. Given another NVRTC, it would use any
 * that the machine has, or answer "no engine". */
static fattn_status check_nvrtc(const fattn__cudnn *api)
{
    const int wanted = (int)(api->cudnnGetCudartVersion() / 1000),
              major = api->nvrtc.version / 1000, minor = api->nvrtc.version / 10 % 100;
    if (api->version >= FATTN__NVRTC_INSIDE || api->nvrtc.version == 0 || major == wanted)
        return FATTN_OK;
    return fattn__fail(FATTN_ENVIRONMENT,
                       "NVRTC %d.%d was given, and the cuDNN of %s is built for CUDA %d", major,
                       minor, api->dir, wanted);
}

typedef uint64_t stamp_files(const char *dir, const char *const also[]);

static uint64_t stamp_of(const fattn__cudnn *api, stamp_files *stamp)
{
    const char *const nvrtc[] = { api->nvrtc.path, api->nvrtc.builtins, NULL };
    return stamp(api->dir, api->nvrtc.library != NULL ? nvrtc : NULL);
}

static fattn_status load(fattn__cudnn *api, const char *nvrtc, const char *driver)
{
    char foreign[PATH_MAX];
    if (fattn__foreign_cudnn(api->dir, foreign, sizeof foreign))
        return fattn__fail(
            FATTN_ENVIRONMENT,
            "this process has mapped %s already; cuDNN's libraries must come from %s", foreign,
            api->dir);
    void *cudnn = NULL;
    api->driver = dlopen(driver != NULL ? driver : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (api->driver == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "no CUDA driver: %s", dlerror());
    fattn_status st = nvrtc != NULL ? fattn__nvrtc_map(&api->nvrtc, nvrtc) : FATTN_OK;
    api->written = stamp_of(api, fattn__build_written);
    if (st == FATTN_OK)
        st = map_cudnn(api->dir, &cudnn);
    if (st == FATTN_OK)
        st = find_functions(api, cudnn);
    if (st != FATTN_OK)
        return st;
    /* This call makes libcudnn look for libcudnn_graph.so.9.14.0, by its full version first:
     * another folder may have that file. */
    api->version = (int)api->cudnnGetVersion();
    if (fattn__foreign_cudnn(api->dir, foreign, sizeof foreign))
        return fattn__fail_mixed(foreign, api->dir);
    TRY(check_nvrtc(api));
    api->cudnnSetCallback(DNN_SEVERITY_ERROR | DNN_SEVERITY_WARNING, NULL, fattn__log_callback);
    return FATTN_OK;
}

fattn_status fattn__cudnn_load(const fattn__cudnn **out, const char *dir, const char *nvrtc,
                               const char *driver)
{
    *out = NULL;
    char real[PATH_MAX];
    if (dir == NULL || realpath(dir, real) == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "no cuDNN folder %s", dir != NULL ? dir : "given");
    fattn_status st = FATTN_OK;
    pthread_mutex_lock(&load_lock);
    if (!is_loaded) {
        memcpy(loaded.dir, real, sizeof real);
        st = load(&loaded, nvrtc, driver);
        is_loaded = st == FATTN_OK;
    } else if (strcmp(loaded.dir, real) != 0)
        st = fattn__fail(FATTN_ENVIRONMENT,
                         "this process holds the cuDNN of %s and cannot hold another", loaded.dir);
    pthread_mutex_unlock(&load_lock);
    if (st == FATTN_OK)
        *out = &loaded;
    return st;
}

static uint64_t hash_of(const fattn__cudnn *api)
{
    const char *const nvrtc[] = { api->nvrtc.path, api->nvrtc.builtins, NULL };
    return fattn__build_id(
        api->dir, api->version < FATTN__NVRTC_INSIDE && api->nvrtc.library != NULL ? nvrtc : NULL);
}

/* Reads the large files only if something is kept. The first time they must be unchanged since they
 * were mapped; a new link to a file does not matter. Later, a new time stamp makes the library read
 * the bytes again. */
static uint64_t build_of(fattn__cudnn *api)
{
    const uint64_t stamp = stamp_of(api, fattn__build_stamp);
    if (stamp == api->stamp && api->build != 0)
        return api->build;
    const uint64_t build = hash_of(api);
    const bool same =
        api->build != 0 ? build == api->build : api->written == stamp_of(api, fattn__build_written);
    if (build == 0 || !same)
        return 0;
    api->stamp = stamp;
    return api->build = build;
}

uint64_t fattn__cudnn_build(const fattn__cudnn *api)
{
    pthread_mutex_lock(&load_lock);
    const uint64_t build = api == &loaded ? build_of(&loaded) : api->build;
    pthread_mutex_unlock(&load_lock);
    return build;
}

const char *fattn__cudnn_status_name(const fattn__cudnn *api, int status)
{
    const char *name = api->cudnnGetErrorString(status);
    return name != NULL ? name : "";
}
