#include "loaded_target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "problem/rescale.h"

/* The files of a request's plan_dir: plans and refusals. A plan is executable code, so the folder
 * must be the user's own, not a link, and nobody else may write there. */

/* Opens the folder. Returns a descriptor, which the caller closes, or -1. */
static int facts_folder_open(const char *path)
{
    struct stat info;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0 &&
        (fstat(folder, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 022))) {
        close(folder);
        folder = -1;
    }
    return folder;
}

static char *read_all(int file, size_t most, size_t *count)
{
    struct stat info;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        info.st_size > (off_t)most)
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

/* The contents of a file, malloc'ed. NULL: it does not exist, is not the user's own, is a link, or
 * is longer than `most`. */
static char *facts_folder_read(int folder, const char *name, size_t most, size_t *count)
{
    int file = openat(folder, name,
                      O_RDONLY | O_NONBLOCK | O_NOFOLLOW |
                          O_CLOEXEC); /* NONBLOCK: a FIFO is refused, not waited for */
    char *bytes = file >= 0 ? read_all(file, most, count) : NULL;
    if (file >= 0)
        close(file);
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
    return true;
}

/* Writes a temporary file and renames it, so that a reader finds all of it or nothing. A checksum
 * detects damage after a power failure. False: the file is unchanged. */
static bool facts_folder_write(int folder, const char *name, const char *bytes, size_t count)
{
    char aside[120];
    snprintf(aside, sizeof aside, "%s.%ld", name, (long)getpid());
    int file = openat(folder, aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    bool good = write_all(file, bytes, count);
    good = close(file) == 0 && good && renameat(folder, aside, folder, name) == 0;
    if (!good)
        unlinkat(folder, aside, 0);
    return good;
}

static void facts_folder_drop(int folder, const char *name)
{
    unlinkat(folder, name, 0);
}

#define PLAN_MAX ((size_t)64 << 20)

/* Plans of cuDNN with another threshold are kept apart. */
static void file_name(char out[80], const char *key)
{
    const char *rescale = getenv(FACTS_RESCALE);
    snprintf(out, 80, "%.32s%s%.16s.plan", key, rescale ? "-rescale" : "", rescale ? rescale : "");
}

static void note(facts_plans *plans, const char *name, const char *why)
{
    if (plans->not_loaded[0] == '\0')
        snprintf(plans->not_loaded, sizeof plans->not_loaded, "%s: %.200s", name, why);
}

static void refuse(facts_plans *plans, const char *name, const char *why)
{
    facts_folder_drop(plans->folder, name);
    note(plans, name, why);
}

/* ---- plans
 * --------------------------------------------------------------------------------------------------------------------
 */

/* If a plan cannot be kept, the request does not fail. */
static void save(const fattn_plan *plan, facts_plans *plans, const char *name)
{
    char *bytes = NULL;
    size_t count = 0;
    if (fattn_plan_save(plan, &bytes, &count) == FATTN_OK &&
        !facts_folder_write(plans->folder, name, bytes, count))
        snprintf(plans->not_kept, sizeof plans->not_kept, "%s: %s", name, strerror(errno));
    fattn_free(bytes);
}

/* FATTN_BAD_PLAN: there is no usable plan. */
static fattn_status load(fattn_plan **out, facts_plans *plans, const char *name,
                         fattn_context *context, const fattn_problem *problem)
{
    size_t count = 0;
    char *bytes = facts_folder_read(plans->folder, name, PLAN_MAX, &count);
    fattn_status status =
        bytes ? fattn_plan_load(out, context, problem, bytes, count) : FATTN_BAD_PLAN;
    if (bytes && status == FATTN_BAD_PLAN)
        refuse(plans, name, fattn_last_error());
    free(bytes);
    return status;
}

static fattn_status get(fattn_plan **out, facts_plans *plans, fattn_context *context,
                        const fattn_problem *problem, const fattn_plan_options *options,
                        bool *loaded)
{
    char key[33], name[80];
    const bool fixed =
        !options || !options->override_shapes; /* a plan with shapes of the call is not saved */
    if (!plans || plans->folder < 0 || !fixed)
        return fattn_plan_create(out, context, problem, options);
    if (fattn_plan_key(context, problem, options, key) != FATTN_OK) {
        note(plans, "no key", fattn_last_error());
        return fattn_plan_create(out, context, problem, options);
    }
    file_name(name, key);
    fattn_status status = load(out, plans, name, context, problem);
    *loaded = status == FATTN_OK;
    if (status != FATTN_BAD_PLAN)
        return status;
    status = fattn_plan_create(out, context, problem, options);
    if (status == FATTN_OK)
        save(*out, plans, name);
    return status;
}

fattn_status facts_plan_get(fattn_plan **out, facts_plans *plans, fattn_context *context,
                            const fattn_problem *problem, const fattn_plan_options *options,
                            bool *loaded)
{
    bool unasked;
    loaded = loaded ? loaded : &unasked;
    *loaded = false;
    return get(out, plans, context, problem, options, loaded);
}

/* ---- the folder
 * ---------------------------------------------------------------------------------------------------------------
 */

fattn_status facts_plans_open(facts_plans **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return FATTN_NO_MEMORY;
    (*out)->folder = -1;
    return FATTN_OK;
}

void facts_plans_begin(facts_plans *plans, const char *folder)
{
    plans->folder = folder[0] ? facts_folder_open(folder) : -1;
    plans->not_loaded[0] = plans->not_kept[0] = '\0';
    if (folder[0] && plans->folder < 0)
        snprintf(plans->not_kept, sizeof plans->not_kept,
                 "the folder cannot be opened, is a link, or others may write there");
}

void facts_plans_end(facts_plans *plans)
{
    if (plans->folder >= 0)
        close(plans->folder);
    plans->folder = -1;
}
