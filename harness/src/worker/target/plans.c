#include "plans.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#define PLAN_MAX ((off_t)64 << 20)

/* A plan does not depend on what lies in the tensors, nor on what is made of the answer: cases that differ in nothing else share
 * it. */
static bool is_of_the_plan(const char *token, size_t length)
{
    static const char *const data[] = { "fill=", "poison=", "check=", "repeat=" };
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        if (length > strlen(data[i]) && memcmp(token, data[i], strlen(data[i])) == 0)
            return false;
    return true;
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0;
    while (*text != '\0') {
        const size_t length = strcspn(text, " ");
        if (is_of_the_plan(text, length))
            hash = XXH64(text, length, hash);
        text += length + (text[length] == ' ');
    }
    return hash;
}

static void file_name(char out[80], const fattn_context *context, const facts_request *request, const fattn_plan_options *options)
{
    fattn_context_info info = { .struct_size = sizeof info };
    const uint64_t hash = hash_of(request->text);
    (void)fattn_context_info_get(context, &info);
    int n = snprintf(out, 80, "%016" PRIx64 "-cudnn%d-sm%d", hash, info.cudnn_version, info.sm);
    if (options->config >= 0)
        snprintf(out + n, 80 - (size_t)n, "-%d.plan", options->config);
    else
        snprintf(out + n, 80 - (size_t)n, ".plan");
}

/* The folder, if it is a real one of ours that nobody else may write. */
static int open_folder(const char *path)
{
    struct stat info;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0 && (fstat(folder, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 022))) {
        close(folder);
        folder = -1;
    }
    return folder;
}

static char *read_all(int file, size_t *count)
{
    struct stat info;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() || info.st_size > PLAN_MAX)
        return NULL;
    char *bytes = malloc((size_t)info.st_size + 1);
    *count = 0;
    while (bytes && *count < (size_t)info.st_size) {
        ssize_t n = read(file, bytes + *count, (size_t)info.st_size - *count);
        if (n <= 0) {
            free(bytes);
            return NULL;
        }
        *count += (size_t)n;
    }
    return bytes;
}

static bool write_all(int file, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n = write(file, bytes, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        count -= (size_t)n;
    }
    return fsync(file) == 0;
}

/* Written aside and renamed; a plan that cannot be kept is no reason to fail. */
static void save(const fattn_plan *plan, int folder, const char *name)
{
    char *bytes = NULL, aside[100];
    size_t count = 0;
    if (fattn_plan_save(plan, &bytes, &count) != FATTN_OK)
        return;
    snprintf(aside, sizeof aside, "%s.%ld", name, (long)getpid());
    int file = openat(folder, aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0) {
        bool good = write_all(file, bytes, count);
        good = close(file) == 0 && good;
        if (!good || renameat(folder, aside, folder, name) != 0)
            unlinkat(folder, aside, 0);
    }
    fattn_free(bytes);
}

fattn_status facts_plan_get(fattn_plan **out, fattn_context *context, const fattn_problem *problem,
                            const fattn_plan_options *options, const facts_request *request, bool load, bool *loaded)
{
    char name[80];
    *loaded = false;
    if (request->plan_dir[0] == '\0')
        return fattn_plan_create(out, context, problem, options);
    int folder = open_folder(request->plan_dir);
    if (folder < 0)
        return fattn_plan_create(out, context, problem, options);
    file_name(name, context, request, options);
    fattn_status status = FATTN_BAD_PLAN;
    int file = load ? openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (file >= 0) {
        size_t count = 0;
        char *bytes = read_all(file, &count);
        if (bytes)
            status = fattn_plan_load(out, context, problem, bytes, count);
        *loaded = status == FATTN_OK;
        free(bytes);
        close(file);
    } else {
        status = fattn_plan_create(out, context, problem, options);
        if (status == FATTN_OK)
            save(*out, folder, name);
    }
    close(folder);
    return status;
}
