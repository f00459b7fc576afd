#include "build_id.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The file is read, not mapped: if it becomes shorter meanwhile, the result is an error and no
 * SIGBUS. */
static bool hash_content(XXH3_state_t *hash, int file)
{
    char bytes[1 << 16];
    ssize_t n;
    while ((n = read(file, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            XXH3_64bits_update(hash, bytes, (size_t)n);
    return n == 0;
}

static bool hash_written(XXH3_state_t *hash, int file)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return false;
    const int64_t known[] = { (int64_t)info.st_dev, (int64_t)info.st_ino, info.st_size,
                              info.st_mtim.tv_sec, info.st_mtim.tv_nsec };
    return XXH3_64bits_update(hash, known, sizeof known) == XXH_OK;
}

static bool hash_changed(XXH3_state_t *hash, int file)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return false;
    const int64_t known[] = { info.st_ctim.tv_sec, info.st_ctim.tv_nsec };
    return hash_written(hash, file) && XXH3_64bits_update(hash, known, sizeof known) == XXH_OK;
}

typedef bool hash_file(XXH3_state_t *hash, int file);

/* 0: it cannot be read. */
static uint64_t hash_of(const char *path, uint64_t seed, hash_file *add)
{
    XXH3_state_t hash;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    XXH3_INITSTATE(&hash);
    XXH3_64bits_reset_withSeed(&hash, seed);
    const bool whole = add(&hash, file);
    close(file);
    return whole ? XXH3_64bits_digest(&hash) : 0;
}

static bool is_library(const char *name)
{
    static const char first[] = "libcudnn", last[] = ".so.9";
    const size_t n = strlen(name);
    return n >= sizeof first + sizeof last - 2 && memcmp(name, first, sizeof first - 1) == 0 &&
           strcmp(name + n - (sizeof last - 1), last) == 0;
}

static bool add_file(uint64_t *sum, const char *path, uint64_t seed, hash_file *add)
{
    const uint64_t one = hash_of(path, seed, add);
    *sum += one;
    return one != 0;
}

/* A sum: the order in which a folder lists its files does not matter. A file of `also` counts by
 * its place: libnvrtc.so.13 has another name where it is a link to libnvrtc.so.13.0.88. */
static uint64_t sum_of(const char *dir, const char *const also[], hash_file *add)
{
    uint64_t sum = 0;
    const struct dirent *entry;
    DIR *folder = opendir(dir);
    bool whole = folder != NULL;
    while (whole && (entry = readdir(folder)) != NULL) {
        char path[PATH_MAX];
        if (is_library(entry->d_name))
            whole = snprintf(path, sizeof path, "%s/%s", dir, entry->d_name) < (int)sizeof path &&
                    add_file(&sum, path, XXH3_64bits(entry->d_name, strlen(entry->d_name)), add);
    }
    if (folder != NULL)
        closedir(folder);
    for (size_t i = 0; whole && also != NULL && also[i] != NULL; i++)
        whole = add_file(&sum, also[i], i + 1, add);
    return whole ? sum : 0;
}

uint64_t fattn__build_id(const char *dir, const char *const also[])
{
    return sum_of(dir, also, hash_content);
}

uint64_t fattn__build_written(const char *dir, const char *const also[])
{
    return sum_of(dir, also, hash_written);
}

uint64_t fattn__build_stamp(const char *dir, const char *const also[])
{
    return sum_of(dir, also, hash_changed);
}

uint64_t fattn__file_id(const char *path)
{
    return hash_of(path, 0, hash_content);
}
