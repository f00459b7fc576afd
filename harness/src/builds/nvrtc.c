/* NVRTC for cuDNN below 9.21: of the build's CUDA major, with its builtins beside it (without them every compile fails), and not
 * older than 12.8 (older ones decide "yes" for Blackwell and then cannot compile). */
#include "build_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OLDEST 1208 /* major * 100 + minor */

/* The version by the name of the builtins in that folder, libnvrtc-builtins.so.13.0; 0: none. */
static int builtins_version(const char *folder, int cuda_major)
{
    char pattern[FACTS_PATH], name[64];
    (void)snprintf(name, sizeof name, "libnvrtc-builtins.so.%d.*", cuda_major);
    if (!facts_join(pattern, folder, name))
        return 0;
    glob_t found;
    int newest = 0;
    if (facts_builds_glob(pattern, &found, NULL))
        for (size_t i = 0; i < found.gl_pathc; i++) {
            int number[4];
            const char *version = strstr(strrchr(found.gl_pathv[i], '/'), ".so.") + 4;
            if (facts_version_parse(version, number, NULL) >= 2 && number[0] * 100 + number[1] > newest)
                newest = number[0] * 100 + number[1];
        }
    globfree(&found);
    return newest;
}

static void offer(const char *folder, int cuda_major, int *best, char out[FACTS_PATH])
{
    char path[FACTS_PATH], name[32];
    (void)snprintf(name, sizeof name, "libnvrtc.so.%d", cuda_major);
    int version = facts_join(path, folder, name) && access(path, R_OK) == 0 ? builtins_version(folder, cuda_major) : 0;
    if (version < OLDEST || version <= *best)
        return;
    char *real = realpath(folder, NULL);
    if (real && facts_join(out, real, name))
        *best = version;
    free(real);
}

static void offer_all(const char *root, const char *pattern, int cuda_major, int *best, char out[FACTS_PATH])
{
    char full[FACTS_PATH];
    if (!facts_join(full, root, pattern))
        return;
    glob_t found;
    if (facts_builds_glob(full, &found, NULL))
        for (size_t i = 0; i < found.gl_pathc; i++)
            offer(found.gl_pathv[i], cuda_major, best, out);
    globfree(&found);
}

const char *facts_nvrtc_find(int cuda_major, const char *build_dir, char out[FACTS_PATH])
{
    static const char *const BESIDE[] = { "", "../../cuda_nvrtc/lib", "../../cu13/lib" };
    static const char *const SYSTEM[] = { "usr/local/cuda*/lib64", "usr/local/cuda*/targets/x86_64-linux/lib",
                                          "usr/lib/x86_64-linux-gnu", "usr/lib64" };
    int best = 0;
    char root[FACTS_PATH];
    out[0] = 0;
    if (facts_cache_path("nvrtc", root))
        offer_all(root, "*/lib", cuda_major, &best, out);
    if (facts_home_path("cudnn/nvrtc", root))
        offer_all(root, "*/lib", cuda_major, &best, out);
    for (size_t i = 0; build_dir && i < sizeof BESIDE / sizeof *BESIDE; i++)
        if (facts_join(root, build_dir, BESIDE[i]))
            offer(root, cuda_major, &best, out);
    const char *toolkit = getenv("CUDA_HOME");
    if (toolkit && *toolkit)
        offer_all(toolkit, "lib64", cuda_major, &best, out);
    for (size_t i = 0; i < sizeof SYSTEM / sizeof *SYSTEM; i++)
        offer_all("/", SYSTEM[i], cuda_major, &best, out);
    return best ? out : NULL;
}
