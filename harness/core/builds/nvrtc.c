/* NVRTC for cuDNN below 9.21: of the build's CUDA major, with its builtins beside it (without them
 * every compile fails). One beside the build is its own. Of the others the newest is taken, and none
 * older than 12.8 (those decide "yes" for Blackwell and then cannot compile). */
#include "build_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OLDEST 1208 /* major * 100 + minor */

static void note_version(void *to, const char *path)
{
    int number[4], *newest = to;
    const char *version = strstr(strrchr(path, '/'), ".so.") + 4;
    if (facts_version_parse(version, number, NULL) >= 2 && number[0] * 100 + number[1] > *newest)
        *newest = number[0] * 100 + number[1];
}

/* The version by the name of the builtins in that folder, libnvrtc-builtins.so.13.0; 0: none. */
static int builtins_version(const char *folder, int cuda_major)
{
    char name[64];
    int newest = 0;
    (void)snprintf(name, sizeof name, "libnvrtc-builtins.so.%d.*", cuda_major);
    facts_find_paths(folder, name, note_version, &newest, NULL);
    return newest;
}

const char *facts_nvrtc_given(void)
{
    const char *given = getenv(FACTS_NVRTC);
    return given && *given ? given : NULL;
}

typedef struct offers {
    int cuda_major, least, most, best;
    char *out; /* FACTS_PATH */
} offers;

static void offer(void *to, const char *folder)
{
    offers *o = to;
    char path[FACTS_PATH], name[32];
    (void)snprintf(name, sizeof name, "libnvrtc.so.%d", o->cuda_major);
    int version = facts_join(path, folder, name) && access(path, R_OK) == 0
                      ? builtins_version(folder, o->cuda_major)
                      : 0;
    if (version < o->least || version > o->most || version <= o->best)
        return;
    char *real = realpath(folder, NULL);
    if (real && facts_join(o->out, real, name))
        o->best = version;
    free(real);
}

const char *facts_nvrtc_find(int cuda_major, const char *build_dir, char out[FACTS_PATH])
{
    static const char *const BESIDE[] = { "", "../../cuda_nvrtc/lib", "../../cu13/lib" };
    static const char *const SYSTEM[] = { "usr/local/cuda*/lib64",
                                          "usr/local/cuda*/" FACTS_TOOLKIT_LIB,
                                          "usr/lib/" FACTS_MACHINE "-linux-gnu", "usr/lib64" };
    offers o = { .cuda_major = cuda_major, .least = 1, .most = 9999, .out = out };
    const char *given = facts_nvrtc_given();
    char root[FACTS_PATH];
    int number[4] = { 0 };
    out[0] = 0;
    if (given && strchr(given, '/'))
        return access(given, R_OK) == 0 && facts_join(out, given, "") ? out : NULL;
    if (given && facts_version_parse(given, number, NULL) >= 2)
        o.least = o.most = number[0] * 100 + number[1];
    for (size_t i = 0; build_dir && i < sizeof BESIDE / sizeof *BESIDE; i++)
        if (facts_join(root, build_dir, BESIDE[i]))
            offer(&o, root);
    if (o.best)
        return out;
    o.least = given ? o.least : OLDEST;
    if (facts_cache_path("nvrtc", root))
        facts_find_paths(root, "*/lib", offer, &o, NULL);
    if (facts_home_path("cudnn/nvrtc", root))
        facts_find_paths(root, "*/lib", offer, &o, NULL);
    const char *toolkit = getenv("CUDA_HOME");
    if (toolkit && *toolkit)
        facts_find_paths(toolkit, "lib64", offer, &o, NULL);
    for (size_t i = 0; i < sizeof SYSTEM / sizeof *SYSTEM; i++)
        facts_find_paths("/", SYSTEM[i], offer, &o, NULL);
    return o.best ? out : NULL;
}

void facts_nvrtc_words(const facts_build *build, char out[FACTS_PATH + 32])
{
    char folder[FACTS_PATH];
    const char *slash = strrchr(build->nvrtc, '/');
    if (!build->needs_nvrtc || !slash) {
        strcpy(out, build->needs_nvrtc ? "no NVRTC" : "the NVRTC inside cuDNN");
        return;
    }
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - build->nvrtc), build->nvrtc);
    const int version = builtins_version(folder, build->cuda_major);
    (void)snprintf(out, FACTS_PATH + 32, "NVRTC %d.%d (%s)", version / 100, version % 100,
                   build->nvrtc);
}
