/* libcudnn.so.9 asks the loader for libcudnn_graph.so.9.14.0, then .9.14, then .9. If the system
 * has the same release under its full version, the worker would load the system's library. These
 * links give the build's own libraries the full names, so that the loader finds them first. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "supervision.h"

#define PREFIX "facts-links-"

static bool is_library(const char *name)
{
    static const char ending[] = ".so.9";
    const size_t length = strlen(name), last = sizeof ending - 1;
    return strncmp(name, "libcudnn", 8) == 0 && length > last &&
           strcmp(name + length - last, ending) == 0;
}

static bool make_link(const char *folder, const char *library, const facts_build *build)
{
    const char *rest = strchr(build->version, '.'); /* of 9.14.0: .14.0 */
    char name[FACTS_PATH], file[FACTS_PATH], link[FACTS_PATH];
    const int length = snprintf(name, sizeof name, "%s%s", library, rest ? rest : "");
    return length < (int)sizeof name && facts_join(file, build->dir, library) &&
           facts_join(link, folder, name) && symlink(file, link) == 0;
}

/* The lock on the folder shows that its owner is running; the folder of a killed process has no
 * lock. */
static int lock_folder(const char *path)
{
    int lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0) {
        close(lock);
        lock = -1;
    }
    return lock;
}

static void remove_folder(const char *path, int lock)
{
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        unlinkat(lock, entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(path);
    close(lock);
}

/* Folders of runs that were killed. */
static void sweep(const char *temporary)
{
    DIR *dir = opendir(temporary);
    char path[FACTS_PATH];
    for (const struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0 ||
            !facts_join(path, temporary, entry->d_name))
            continue;
        int lock = lock_folder(path);
        if (lock >= 0)
            remove_folder(path, lock);
    }
    if (dir)
        closedir(dir);
}

void facts_links_make(facts_links *out, const facts_build *build)
{
    const char *given = getenv("TMPDIR"), *temporary = given && given[0] == '/' ? given : "/tmp";
    DIR *dir = opendir(build->dir);
    *out = (facts_links){ .lock = -1 };
    sweep(temporary);
    if (dir && facts_join(out->folder, temporary, PREFIX "XXXXXX") && mkdtemp(out->folder))
        out->lock = lock_folder(out->folder);
    bool made = dir && out->lock >= 0;
    for (const struct dirent *entry; made && (entry = readdir(dir)) != NULL;)
        made = !is_library(entry->d_name) || make_link(out->folder, entry->d_name, build);
    if (dir)
        closedir(dir);
    if (!made)
        facts_links_remove(out);
}

void facts_links_remove(facts_links *links)
{
    if (links->folder[0] && links->lock >= 0)
        remove_folder(links->folder, links->lock);
    *links = (facts_links){ .lock = -1 };
}

/* The environment of a worker: of the caller's environment, it contains only the variables in this
 * list. */

/* Passed on to workers if set: visible GPUs, the cuBLAS that measures them, options of sanitizers,
 * and whether rows have the times of their stages. */
static const char *const passed_for_gpu[] = { "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                              "FACTS_CUBLAS", NULL };
static const char *const passed[] = { "HOME",          "TMPDIR",       "ASAN_OPTIONS",
                                      "UBSAN_OPTIONS", "LSAN_OPTIONS", NULL };

typedef struct block {
    char *entries[16];
    size_t count;
    char text[8192];
    size_t used;
} block;

static void put(block *b, const char *name, const char *value)
{
    size_t left = sizeof b->text - b->used;
    int n = snprintf(b->text + b->used, left, "%s=%s", name, value);
    if (n < 0 || (size_t)n >= left || b->count + 1 >= sizeof b->entries / sizeof b->entries[0])
        return;
    b->entries[b->count++] = b->text + b->used;
    b->entries[b->count] = NULL;
    b->used += (size_t)n + 1;
}

static void put_set(block *b, const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value)
            put(b, *names, value);
    }
}

char **facts_worker_environment(const facts_target *target, const char *links, int threads,
                                const char *variable, const char *value)
{
    char number[16];
    block *b = calloc(1, sizeof *b);
    const char *path = getenv("PATH");
    put(b, "PATH", path ? path : "/usr/bin:/bin");
    snprintf(number, sizeof number, "%d", threads);
    put(b, "OMP_NUM_THREADS", number);
    put(b, "OMP_WAIT_POLICY",
        "passive"); /* several workers share the cores: threads that wait must not spin */
    if (target->kind != FACTS_TARGET_CPU &&
        (target->build.kind == FACTS_BUILD_JIT || target->build.three_libraries))
        put(b, "CUDNN_LIB_CONFIG", "GRAPH_JIT_ONLY");
    if (target->kind != FACTS_TARGET_CPU && value[0])
        put(b, variable, value);
    if (links[0])
        put(b, "LD_LIBRARY_PATH", links);
    put_set(b, passed);
    if (target->kind == FACTS_TARGET_GPU)
        put_set(b, passed_for_gpu);
    return b->entries; /* the block's first member */
}
