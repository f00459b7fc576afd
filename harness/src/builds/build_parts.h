/* Shared inside builds/. */
#ifndef FACTS_BUILD_PARTS_H
#define FACTS_BUILD_PARTS_H

#include "builds.h"

#define FACTS_ENGINES "libcudnn_engines_runtime_compiled.so.9"

/* "9.20.0.48" -> number[0..3], how many numbers there were (1..4); 0: not a version. Nothing may follow but what `end` is pointed
 * at. */
int facts_version_parse(const char *text, int number[4], const char **end);

/* Fills version, full_version, name and needs_nvrtc from number[], kind and cuda_major. */
void facts_build_set_name(facts_build *build, const int number[4], int numbers);

/* <0, 0, >0: as lists are ordered (newest first, jit before full, cu13 before cu12, then origin). */
int facts_build_compare(const void *a, const void *b);

/* One line of FACTS_LOCK. */
typedef struct facts_locked {
    char package[48];
    char version[24];
    char sha256[65];
    long long bytes;
} facts_locked;

/* Calls `each` for every line. Returns 0, or 3 with a line. */
int facts_lock_read(void (*each)(void *data, const facts_locked *line), void *data, facts_error *message);

/* What the package index has for a version, a build's name or "latest" (ci/cudnn_lock.py --find; network): `out` is a build of
 * origin `index`. Returns 0; 2 not on the index (the nearest are named); 3 no network, no Python. */
int facts_index_find(facts_build *out, const char *word, facts_error *message);

/* Calls `each` for every path below `folder` that fits the pattern ("*" and "?" in names), in the order of their names. `trouble`
 * says which folder that is there could not be listed. */
void facts_find_paths(const char *folder, const char *pattern, void (*each)(void *to, const char *path), void *to,
                      facts_error *trouble);
/* Does errno say that there is nothing, or nothing for us? Anything else is trouble. */
bool facts_is_absent(int error);

/* A package name ("nvidia-cudnn-jit-cu13", "_" for "-" allowed) -> kind and CUDA major. */
bool facts_package_parse(const char *package, facts_build_kind *kind, int *cuda_major);

#endif
