/* What a file holds, remembered by what says that it did not change. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "builds/integrity.h"
#include "parts.h"

#define CHUNK ((size_t)1 << 20)

/* Device, inode, size, and both times: who changes a file cannot set the second. */
static bool stamp_of(const char *path, char out[160])
{
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    snprintf(out, 160, "%llx %llx %lld %lld.%09ld %lld.%09ld", (unsigned long long)info.st_dev, (unsigned long long)info.st_ino,
             (long long)info.st_size, (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec, (long long)info.st_ctim.tv_sec,
             info.st_ctim.tv_nsec);
    return true;
}

static bool hash_content(const char *path, char out[33])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *chunk = malloc(CHUNK);
    XXH3_state_t *state = XXH3_createState();
    ssize_t got = -1;
    if (fd >= 0 && chunk && state) {
        XXH3_128bits_reset(state);
        while ((got = read(fd, chunk, CHUNK)) > 0)
            XXH3_128bits_update(state, chunk, (size_t)got);
        XXH128_hash_t hash = XXH3_128bits_digest(state);
        snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    }
    XXH3_freeState(state);
    free(chunk);
    if (fd >= 0)
        close(fd);
    return got == 0;
}

static bool recall(facts_answers *store, const char *path, const char *stamp, int column, char *out, size_t size)
{
    pthread_mutex_lock(&store->lock);
    sqlite3_stmt *s = facts_answers_statement(store, STATEMENT_FILE_GET);
    sqlite3_bind_text(s, 1, path, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, stamp, -1, SQLITE_STATIC);
    bool found = !store->broken && sqlite3_step(s) == SQLITE_ROW && (size_t)sqlite3_column_bytes(s, column) == size - 1;
    if (found)
        memcpy(out, sqlite3_column_text(s, column), size);
    sqlite3_reset(s);
    pthread_mutex_unlock(&store->lock);
    return found;
}

static void remember(facts_answers *store, const char *path, const char *stamp, statement which, const char *hash)
{
    pthread_mutex_lock(&store->lock);
    if (!store->broken && !store->full) {
        sqlite3_stmt *s = facts_answers_statement(store, which);
        sqlite3_bind_text(s, 1, path, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, stamp, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 3, hash, -1, SQLITE_STATIC);
        facts_answers_step(store, s);
    }
    pthread_mutex_unlock(&store->lock);
}

/* One way to hash, remembered: column 0 of file is the content, 1 its SHA-256. */
static bool hash_once(facts_answers *store, const char *path, int column, bool (*hash)(const char *path, char *out), char *out,
                      size_t size)
{
    char stamp[160], after[160];
    if (!store || !stamp_of(path, stamp))
        return hash(path, out);
    if (recall(store, path, stamp, column, out, size))
        return true;
    if (!hash(path, out))
        return false;
    if (stamp_of(path, after) && strcmp(stamp, after) == 0) /* not while somebody writes it */
        remember(store, path, stamp, column == 0 ? STATEMENT_FILE_CONTENT : STATEMENT_FILE_SHA256, out);
    return true;
}

bool facts_answers_content(facts_answers *store, const char *path, char out[33])
{
    return hash_once(store, path, 0, hash_content, out, 33);
}

bool facts_answers_sha256(facts_answers *store, const char *path, char out[65])
{
    return hash_once(store, path, 1, facts_library_sha256, out, 65);
}
