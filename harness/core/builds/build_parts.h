/* Shared inside builds/. */
#ifndef FACTS_BUILD_PARTS_H
#define FACTS_BUILD_PARTS_H

#include "builds.h"

#define FACTS_ENGINES "libcudnn_engines_runtime_compiled.so.9"

/* Reads "9.20.0.48" into number[0..3] and returns how many numbers there were (1 to 4). 0: not a
 * version. The text must end there, unless `end` takes the rest. */
int facts_version_parse(const char *text, int number[4], const char **end);

/* Fills version, full_version, name and needs_nvrtc from number[], kind and cuda_major. */
void facts_build_set_name(facts_build *build, const int number[4], int numbers);

/* Returns <0, 0 or >0 in the order of lists: newest first, jit before full, cu13 before cu12, then
 * origin. */
int facts_build_compare(const void *a, const void *b);

/* One line of FACTS_LOCK. */
typedef struct facts_locked {
    char package[48];
    char version[24];
    char sha256[65];
    long long bytes;
} facts_locked;

/* Calls `each` for every line. Returns 0, or 3 with a line. */
int facts_lock_read(void (*each)(void *data, const facts_locked *line), void *data,
                    facts_error *message);

/* Asks the package index (ci/cudnn_lock.py --find; network) for a version, a build's name or
 * "latest". `out` is a build of origin `index`. Returns 0; 2: not on the index (*message names the
 * nearest); 3: no network or no Python. */
int facts_index_find(facts_build *out, const char *word, facts_error *message);

/* Does errno say that a file is absent or not ours to read? Any other errno is a failure. */
bool facts_is_absent(int error);

/* A package name ("nvidia-cudnn-jit-cu13", "_" for "-" allowed) -> kind and CUDA major. */
bool facts_package_parse(const char *package, facts_build_kind *kind, int *cuda_major);

#endif
