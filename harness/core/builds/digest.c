#include "digest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "home.h"

#define LEAST_KEPT (4 << 20) /* bytes */
#define SETTLED_S 60
#define MOST_RECENT 128

typedef struct entry {
    char stamp[192]; /* which file this is, as text */
    facts_digest digest;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything static here */
static entry recent[MOST_RECENT];                        /* what this process asked */
static size_t recent_count;

static void stamp_of(char out[192], uint64_t seed, const struct stat *info)
{
    (void)snprintf(out, 192, "%016" PRIx64 " %ju %ju %jd %jd.%09ld %jd.%09ld", seed,
                   (uintmax_t)info->st_dev, (uintmax_t)info->st_ino, (intmax_t)info->st_size,
                   (intmax_t)info->st_mtim.tv_sec, info->st_mtim.tv_nsec,
                   (intmax_t)info->st_ctim.tv_sec, info->st_ctim.tv_nsec);
}

/* One file of the cache for each inode: a library that changed takes the place of the old one. */
static bool entry_path(char out[FACTS_PATH], uint64_t seed, const struct stat *info)
{
    char name[64];
    const uint64_t file[] = { (uint64_t)info->st_dev, (uint64_t)info->st_ino };
    (void)snprintf(name, sizeof name, "digests/%016" PRIx64,
                   XXH3_64bits_withSeed(file, sizeof file, seed));
    return facts_cache_path(name, out);
}

/* "STAMP XXH3 SHA256 CHECK": CHECK is the XXH3 of the text before it. */
static int entry_text(char out[384], const entry *e)
{
    const int n =
        snprintf(out, 384, "%s %016" PRIx64 " %s ", e->stamp, e->digest.xxh3, e->digest.sha256);
    return n + snprintf(out + n, 384 - (size_t)n, "%016" PRIx64 "\n", XXH3_64bits(out, (size_t)n));
}

static bool read_entry(const char *path, entry *e)
{
    char text[384], again[384], *end;
    struct stat info;
    ssize_t n = -1;
    const size_t stamp = strlen(e->stamp);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return false;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        (info.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        n = read(file, text, sizeof text - 1);
    (void)close(file);
    if (n <= (ssize_t)stamp || memcmp(text, e->stamp, stamp) != 0)
        return false;
    text[n] = '\0';
    e->digest.xxh3 = strtoull(text + stamp, &end, 16);
    (void)snprintf(e->digest.sha256, 65, "%.64s", *end ? end + 1 : end);
    return entry_text(again, e) == n && memcmp(again, text, (size_t)n) == 0;
}

static void write_entry(char *path, const entry *e)
{
    char text[384], part[FACTS_PATH + 32];
    const int n = entry_text(text, e);
    (void)snprintf(part, sizeof part, "%s.%ld", path, (long)getpid());
    if (!facts_make_folders(path))
        return;
    const int file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    const bool whole = write(file, text, (size_t)n) == n;
    if (close(file) != 0 || !whole || rename(part, path) != 0)
        (void)unlink(part);
}

static bool read_file(int file, uint64_t seed, facts_digest *out)
{
    static char bytes[4 << 20]; /* large blocks: few calls that may fail */
    unsigned char sum[SHA256_DIGEST_LENGTH];
    XXH3_state_t hash;
    SHA256_CTX sha;
    ssize_t n = -1;
    XXH3_INITSTATE(&hash); /* the reset below reads the old seed */
    XXH3_64bits_reset_withSeed(&hash, seed);
    SHA256_Init(&sha);
    while (file >= 0 && ((n = read(file, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0) {
            XXH3_64bits_update(&hash, bytes, (size_t)n);
            SHA256_Update(&sha, bytes, (size_t)n);
        }
    out->xxh3 = XXH3_64bits_digest(&hash);
    SHA256_Final(sum, &sha);
    for (size_t i = 0; i < sizeof sum; i++)
        (void)snprintf(out->sha256 + 2 * i, 3, "%02x", sum[i]);
    return n == 0;
}

/* Would every later change give the file another stamp? */
static bool is_settled(const struct stat *info, time_t now)
{
    return info->st_ctim.tv_nsec != 0 && info->st_ctim.tv_sec < now - SETTLED_S;
}

static bool is_recent(entry *e)
{
    for (size_t i = 0; i < recent_count; i++)
        if (strcmp(recent[i].stamp, e->stamp) == 0) {
            *e = recent[i];
            return true;
        }
    return false;
}

static void remember(const entry *e)
{
    entry known = *e;
    if (!is_recent(&known) && recent_count < MOST_RECENT)
        recent[recent_count++] = known;
}

/* A large file. What was read while the file changed is no file's digest, and is not remembered. */
static bool digest_large(int file, uint64_t seed, const struct stat *info, facts_digest *out)
{
    entry e = { 0 };
    struct stat after;
    char path[FACTS_PATH], stamp[192] = "";
    bool whole = true, same = true;
    const bool keeps = is_settled(info, time(NULL)) && entry_path(path, seed, info);
    stamp_of(e.stamp, seed, info);
    if (!is_recent(&e) && (!keeps || !read_entry(path, &e))) {
        whole = read_file(file, seed, &e.digest);
        if (whole && fstat(file, &after) == 0)
            stamp_of(stamp, seed, &after);
        same = strcmp(stamp, e.stamp) == 0;
        if (same && keeps)
            write_entry(path, &e);
    }
    if (same)
        remember(&e);
    *out = e.digest;
    return whole;
}

bool facts_digest_file(const char *path, facts_digest *out)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const uint64_t seed = XXH3_64bits(name, strlen(name));
    struct stat info;
    pthread_mutex_lock(&lock);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool large = file >= 0 && fstat(file, &info) == 0 && info.st_size >= LEAST_KEPT;
    const bool whole = large ? digest_large(file, seed, &info, out) : read_file(file, seed, out);
    if (file >= 0)
        (void)close(file);
    pthread_mutex_unlock(&lock);
    return whole;
}
