/* NVRTC for cuDNN below 9.21: of the build's CUDA major, with its builtins beside it (without them
 * every compile fails), and not older than 12.8 (older ones decide "yes" for Blackwell and then
 * cannot compile). */
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

typedef struct offers {
    int cuda_major, best;
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
    if (version < OLDEST || version <= o->best)
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
    offers o = { .cuda_major = cuda_major, .out = out };
    char root[FACTS_PATH];
    out[0] = 0;
    if (facts_cache_path("nvrtc", root))
        facts_find_paths(root, "*/lib", offer, &o, NULL);
    if (facts_home_path("cudnn/nvrtc", root))
        facts_find_paths(root, "*/lib", offer, &o, NULL);
    for (size_t i = 0; build_dir && i < sizeof BESIDE / sizeof *BESIDE; i++)
        if (facts_join(root, build_dir, BESIDE[i]))
            offer(&o, root);
    const char *toolkit = getenv("CUDA_HOME");
    if (toolkit && *toolkit)
        facts_find_paths(toolkit, "lib64", offer, &o, NULL);
    for (size_t i = 0; i < sizeof SYSTEM / sizeof *SYSTEM; i++)
        facts_find_paths("/", SYSTEM[i], offer, &o, NULL);
    return o.best ? out : NULL;
}
