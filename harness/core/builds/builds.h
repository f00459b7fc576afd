/* cuDNN builds: those on this machine, those that can be installed, and how to find the one that a
 * user names.
 *
 * A build is one cuDNN: version, kind and CUDA major. Two builds of one version that differ in kind
 * or CUDA major are different test subjects with different names. FACTS never replaces one by the
 * other silently. A build is a plain value and may be copied.
 *
 * No function here loads a library of cuDNN. The contents of a folder are known from the package's
 * metadata. Without metadata they are read from texts in libcudnn_engines_runtime_compiled: its
 * serializer names the version, its compiler options name the CUDA toolkit. */
#ifndef FACTS_BUILDS_H
#define FACTS_BUILDS_H

#include <stdbool.h>
#include <stddef.h>

#include "home.h"

/* The platform of this program, the packages that fit it, and the folder of a CUDA toolkit's
 * libraries. */
#if defined(__aarch64__)
#define FACTS_LOCK "ci/cudnn-aarch64.lock"
#define FACTS_MACHINE "aarch64"
#define FACTS_TOOLKIT_LIB "targets/sbsa-linux/lib"
#else
#define FACTS_LOCK "ci/cudnn.lock"
#define FACTS_MACHINE "x86_64"
#define FACTS_TOOLKIT_LIB "targets/x86_64-linux/lib"
#endif

typedef enum facts_build_kind {
    FACTS_BUILD_JIT, /* the three-library set: libcudnn, graph, engines_runtime_compiled; to be run with
                        CUDNN_LIB_CONFIG=GRAPH_JIT_ONLY */
    FACTS_BUILD_FULL,
} facts_build_kind;

/* Where a build was found. If two are equal, the first in this order is used. `lock`: not
 * installed, but ci/cudnn.lock says how to install it. `index`: neither installed nor in the lock,
 * but on the package index. */
#define FACTS_ORIGIN_LIST(X)                                                                       \
    X(FOLDER, "folder")                                                                            \
    X(CACHE, "cache")                                                                              \
    X(BUNDLE, "bundle")                                                                            \
    X(PYTHON, "python")                                                                            \
    X(TOOLKIT, "toolkit")                                                                          \
    X(SYSTEM, "system")                                                                            \
    X(LOCK, "lock")                                                                                \
    X(INDEX, "index")

typedef enum facts_origin {
#define FACTS_ORIGIN_ENUM(id, text) FACTS_ORIGIN_##id,
    FACTS_ORIGIN_LIST(FACTS_ORIGIN_ENUM)
#undef FACTS_ORIGIN_ENUM
        FACTS_ORIGIN_COUNT
} facts_origin;

const char *facts_origin_name(facts_origin origin);

typedef struct facts_build {
    char name[40];         /* "9.20.0-jit-cu13": the join key of records */
    char version[16];      /* "9.20.0" */
    char full_version[24]; /* "9.20.0.48", or as `version` if no file names it */
    int major, minor, patch;
    facts_build_kind kind;
    bool
        three_libraries; /* `dir` has only these three libraries (always with jit; also a full build that was installed for
                          * attention only) */
    int cuda_major; /* 12, 13 */
    facts_origin origin;
    char dir[FACTS_PATH];    /* absolute, holds libcudnn.so.9; empty: not installed */
    bool needs_nvrtc;        /* below 9.21: cuDNN opens libnvrtc.so.<cuda_major> itself, and refuses
                                everything as unsupported without it */
    char nvrtc[FACTS_PATH];  /* absolute path of that library; empty if it is not needed or was not
                                found */
    char record[FACTS_PATH]; /* the package's RECORD file for these libraries; empty: unknown */
} facts_build;

typedef struct facts_builds {
    facts_build *at; /* owned */
    size_t count, capacity;
} facts_builds;

void facts_builds_free(facts_builds *builds);
void facts_builds_add(facts_builds *builds, const facts_build *build);

/* Identifies the build in a folder: the folder with libcudnn.so.9, or one with lib/, lib64/,
 * nvidia/cudnn/lib or nvidia/cudnn_jit/lib below it. Returns 0 and fills *out. Returns 2 with a
 * line in *message if there is no such folder, no cuDNN 9 in it, no permission, or no version.
 * Returns 3 if an existing file could not be read. */
int facts_build_identify(facts_build *out, const char *folder, facts_error *message);

/* Finds every build on this machine: in the cache, the bundle, Python packages (of python3 on PATH,
 * $VIRTUAL_ENV, $FACTS_PYTHON), CUDA toolkits and system folders. Each folder is listed once, with
 * its NVRTC. Order: newest version first, jit before full, cu13 before cu12, then origin. Returns
 * 0, or 3 with a line if an existing file could not be read. */
int facts_builds_discover(facts_builds *out, facts_error *message);

/* Returns N of the newest glibc 2.N that this program needs; 0 if the file is no program. */
int facts_glibc_needed(const char *program);

/* The builds that ci/cudnn.lock can install, newest first, with origin `lock`. Returns 0, or 3 with
 * a line if the file is missing or invalid. */
int facts_builds_installable(facts_builds *out, facts_error *message);

enum {
    FACTS_RESOLVE_INSTALLABLE =
        1, /* also return builds that are not installed (origin `lock`, dir empty) */
    FACTS_RESOLVE_LOCK_ONLY =
        2, /* look in ci/cudnn.lock first, then in the cache of FACTS; ignore all other builds */
    FACTS_RESOLVE_INDEX =
        4, /* ask the package index (network) for "latest" and, with one of the flags above, for a version
            * that neither this machine nor the lock has (origin `index`, dir empty) */
    FACTS_RESOLVE_PINNED = 8, /* --pinned-only: do not ask the index; refuse a build of the cache
                                 that is not in the lock */
};

/* What a user meant by --cudnn. `spec` is a comma list of
 *   a name            9.20.0-jit-cu13
 *   a version         9.20.0, 9.20.0.48, or 9.20 (its newest patch): jit before full, cu13 before cu12
 *   a range           9.12..9.27, every version between, both ends included, one build for each
 *   a folder          anything with a slash in it
 *   "default"         the newest jit cu13, else the newest there is
 *   "latest"          the newest on the package index; without a network, or pinned, the newest in ci/cudnn.lock (`note` says so)
 * No build is answered twice. When a word left a choice, `note` gets one line with the full names of what was taken, otherwise it
 * is empty. Returns 0; 2: not understood or unknown to us (the nearest version is named); 3: known but not installed, or its NVRTC
 * is missing (the remedy is named). On failure *out is empty. */
int facts_builds_resolve(facts_builds *out, const char *spec, unsigned flags, facts_error *note,
                         facts_error *message);

/* Downloads and installs the builds of `spec` (as above, from the lock file, then the package
 * index) and their NVRTC into the cache. Installed builds are not downloaded again. Prints progress
 * on stderr. `flags`: 0 or FACTS_RESOLVE_PINNED. `out` gets the builds. Returns 0; 2: unknown; 3:
 * no network, no pip, wrong hash, no space, or pinned and not in the lock. After a failure the
 * cache is as before. *message is empty if the installer has already printed the reason. */
int facts_builds_install(facts_builds *out, const char *spec, unsigned flags, facts_error *note,
                         facts_error *message);

/* As facts_builds_resolve, and installs missing builds. `flags` as for facts_builds_install. */
int facts_builds_ensure(facts_builds *out, const char *spec, unsigned flags, facts_error *note,
                        facts_error *message);

/* The variable of --nvrtc: a version or a file, for every build that needs one. */
#define FACTS_NVRTC "FACTS_NVRTC"
const char *facts_nvrtc_given(void); /* NULL: none */

/* Finds the NVRTC of a CUDA major, with its builtins in the same folder: beside the build, otherwise
 * the newest of the cache, the toolkits, Python packages and system folders, from 12.8 on. Returns
 * `out`, or NULL. */
const char *facts_nvrtc_find(int cuda_major, const char *build_dir, char out[FACTS_PATH]);

/* What compiles for a build, for people: "NVRTC 13.0 (FILE)", "the NVRTC inside cuDNN". */
void facts_nvrtc_words(const facts_build *build, char out[FACTS_PATH + 32]);

/* Runs `facts cudnn ...`; argv[0] is the word after `cudnn`. Returns the exit code. */
int facts_cudnn_command(int argc, char **argv);

#endif
