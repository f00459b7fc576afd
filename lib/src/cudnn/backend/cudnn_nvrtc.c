#include "cudnn_nvrtc.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

typedef void *program; /* nvrtcProgram */

/* dlsym gives an object pointer; ISO C wants a function's. */
static bool find(void *library, const char *name, void *out)
{
    void *address = dlsym(library, name);
    memcpy(out, &address, sizeof address);
    return address != NULL;
}

static fattn_status map_builtins(char builtins[PATH_MAX], const char *real, int major, int minor)
{
    const int folder = (int)(strrchr(real, '/') - real);
    /* A path longer than the kernel takes is cut, and then not found. */
    if (snprintf(builtins, PATH_MAX, "%.*s/libnvrtc-builtins.so.%d.%d", folder, real, major,
                 minor) >= PATH_MAX)
        builtins[0] = '\0';
    /* NVRTC opens this library by its bare name when it first compiles. Without it a promised plan
     * cannot be compiled. */
    if (dlopen(builtins, RTLD_NOW | RTLD_GLOBAL) == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "NVRTC %d.%d lacks its builtins: %s", major, minor,
                           dlerror());
    return FATTN_OK;
}

fattn_status fattn__nvrtc_map(fattn__nvrtc *out, const char *path)
{
    int (*version)(int *, int *);
    int major = 0, minor = 0;
    if (realpath(path, out->path) == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "no NVRTC at %s", path);
    out->library = dlopen(out->path, RTLD_NOW | RTLD_GLOBAL);
    if (out->library == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "NVRTC cannot be mapped: %s", dlerror());
    if (!find(out->library, "nvrtcVersion", &version) || version(&major, &minor) != 0)
        return fattn__fail(FATTN_ENVIRONMENT, "%s is not NVRTC: it has no nvrtcVersion", out->path);
    out->version = major * 1000 + minor * 10;
    return map_builtins(out->builtins, out->path, major, minor);
}

/* The words of the log, in one line. */
static void read_log(const fattn__nvrtc *nvrtc, program p, char *out, size_t capacity)
{
    int (*size)(program, size_t *), (*log)(program, char *);
    size_t bytes = 0;
    char *text = NULL;
    if (find(nvrtc->library, "nvrtcGetProgramLogSize", &size) &&
        find(nvrtc->library, "nvrtcGetProgramLog", &log) && size(p, &bytes) == 0)
        text = calloc(bytes + 1, 1);
    if (text != NULL && log(p, text) == 0)
        snprintf(out, capacity, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

fattn_status fattn__nvrtc_prove(const fattn__nvrtc *nvrtc)
{
    int (*create)(program *, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(program, int, const char *const *), (*destroy)(program *);
    char text[256] = "no message";
    program p = NULL;
    if (nvrtc->library == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "no NVRTC was given");
    if (!find(nvrtc->library, "nvrtcCreateProgram", &create) ||
        !find(nvrtc->library, "nvrtcCompileProgram", &compile) ||
        !find(nvrtc->library, "nvrtcDestroyProgram", &destroy))
        return fattn__fail(FATTN_ENVIRONMENT, "NVRTC lacks functions");
    int status = create(&p, "__global__ void nothing() {}", "nothing.cu", 0, NULL, NULL);
    if (status == 0)
        status = compile(p, 0, NULL);
    if (status != 0 && p != NULL)
        read_log(nvrtc, p, text, sizeof text);
    if (p != NULL)
        destroy(&p);
    return status == 0 ? FATTN_OK
                       : fattn__fail(FATTN_ENVIRONMENT, "NVRTC cannot compile anything: %s", text);
}
