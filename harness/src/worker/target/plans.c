#include "plans.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case/words/rescale.h"
#include "own_folder.h"
#include "worker/clock/spent.h"

#define PLAN_MAX ((size_t)64 << 20)
#define REFUSAL_MAX ((size_t)1 << 20)
#define PLAN ".plan"
#define REFUSAL ".refusal"

/* Plans and refusals of cuDNN with another threshold are kept apart. */
static void file_name(char out[80], const char *key, const char *ending)
{
    const char *rescale = getenv(FACTS_RESCALE);
    snprintf(out, 80, "%.32s%s%.16s%s", key, rescale ? "-rescale" : "", rescale ? rescale : "",
             ending);
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

/* The contents of a file without the seal; NULL: there is no usable file. A damaged file is
 * removed. A file of another program stays, and is not overwritten. */
static char *read_sealed(facts_plans *plans, const char *name, size_t most, size_t *count)
{
    char *bytes = facts_folder_read(plans->folder, name, most + FACTS_SEAL_BYTES, count);
    if (!bytes)
        return NULL;
    const facts_seal seal = facts_seal_check(plans->key, name, bytes, *count);
    const bool ours = plans->has_key && seal == FACTS_SEAL_OURS;
    if (ours || (plans->trusts && (seal != FACTS_SEAL_BROKEN || *count == 0))) {
        if (seal == FACTS_SEAL_OURS || seal == FACTS_SEAL_FOREIGN)
            memmove(bytes, bytes + FACTS_SEAL_BYTES, *count -= FACTS_SEAL_BYTES);
        return bytes;
    }
    free(bytes);
    if (plans->has_key && seal == FACTS_SEAL_BROKEN)
        refuse(plans, name, "is damaged");
    else
        note(plans, name, "was not written by this user on this machine; --trust-plans takes it");
    return NULL;
}

static bool is_of_others(const facts_plans *plans, const char *name)
{
    size_t count;
    char *there = plans->has_key && !plans->trusts
                      ? facts_folder_read(plans->folder, name, PLAN_MAX + FACTS_SEAL_BYTES, &count)
                      : NULL;
    const facts_seal seal =
        there ? facts_seal_check(plans->key, name, there, count) : FACTS_SEAL_BROKEN;
    free(there);
    return seal == FACTS_SEAL_FOREIGN || seal == FACTS_SEAL_NONE;
}

static bool write_sealed(facts_plans *plans, const char *name, const char *bytes, size_t count)
{
    if (is_of_others(plans, name))
        return false;
    char *sealed = plans->has_key ? malloc(count + FACTS_SEAL_BYTES) : NULL;
    if (!sealed)
        return !plans->has_key && plans->trusts &&
               facts_folder_write(plans->folder, name, bytes, count);
    facts_seal_make((unsigned char *)sealed, plans->key, name, bytes, count);
    memcpy(sealed + FACTS_SEAL_BYTES, bytes, count);
    const bool kept = facts_folder_write(plans->folder, name, sealed, count + FACTS_SEAL_BYTES);
    free(sealed);
    return kept;
}

/* ---- refusals
 * -----------------------------------------------------------------------------------------------------------------
 */

static bool find(void *user, const char *key, char **bytes, size_t *count)
{
    facts_plans *plans = user;
    char name[80];
    if (plans->folder < 0)
        return false;
    file_name(name, key, REFUSAL);
    *bytes = read_sealed(plans, name, REFUSAL_MAX, count);
    plans->refusal_loaded = *bytes != NULL;
    return plans->refusal_loaded;
}

static bool is_refusal(const char *name)
{
    const size_t n = strlen(name), ending = strlen(REFUSAL);
    return n > ending && strcmp(name + n - ending, REFUSAL) == 0;
}

static size_t count_refusals(int folder)
{
    size_t count = 0;
    const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    if (!list) {
        if (again >= 0)
            close(again);
        return FACTS_REFUSALS_MOST;
    }
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += is_refusal(entry->d_name);
    closedir(list);
    return count;
}

/* Counted once for a folder: files that other workers add later do not count. */
static bool has_room(facts_plans *plans)
{
    struct stat info;
    if (fstat(plans->folder, &info) != 0)
        return false;
    if (info.st_dev != plans->device || info.st_ino != plans->inode)
        plans->refusals = count_refusals(plans->folder);
    plans->device = info.st_dev;
    plans->inode = info.st_ino;
    return plans->refusals < FACTS_REFUSALS_MOST;
}

static void keep(void *user, const char *key, const char *bytes, size_t count)
{
    facts_plans *plans = user;
    char name[80];
    if (plans->folder < 0)
        return;
    file_name(name, key, REFUSAL);
    if (!bytes) {
        plans->refusal_loaded = false;
        refuse(plans, name, "the kept refusal is damaged");
    } else if (count <= REFUSAL_MAX && has_room(plans)) {
        plans->refusals += write_sealed(plans, name, bytes, count);
    }
}

/* ---- plans
 * --------------------------------------------------------------------------------------------------------------------
 */

/* If a plan cannot be kept, the request does not fail. */
static void save(const fattn_plan *plan, facts_plans *plans, const char *name)
{
    char *bytes = NULL;
    size_t count = 0;
    if (fattn_plan_save(plan, &bytes, &count) == FATTN_OK)
        (void)write_sealed(plans, name, bytes, count);
    fattn_free(bytes);
}

/* FATTN_BAD_PLAN: there is no usable plan. */
static fattn_status load(fattn_plan **out, facts_plans *plans, const char *name,
                         fattn_context *context, const fattn_problem *problem)
{
    size_t count = 0;
    char *bytes = read_sealed(plans, name, PLAN_MAX, &count);
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
    file_name(name, key, PLAN);
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
    const facts_spent before = facts_spend(FACTS_SPENT_PLAN);
    bool unasked;
    loaded = loaded ? loaded : &unasked;
    *loaded = false;
    const fattn_status status = get(out, plans, context, problem, options, loaded);
    facts_spend(before);
    return status;
}

/* ---- the folder
 * ---------------------------------------------------------------------------------------------------------------
 */

fattn_status facts_plans_open(facts_plans **out, fattn_context *context, const char *key,
                              bool trusts)
{
    facts_plans *plans = calloc(1, sizeof *plans);
    const fattn_refusal_store store = {
        .struct_size = sizeof store, .user = plans, .find = find, .keep = keep
    };
    *out = plans;
    if (!plans)
        return FATTN_NO_MEMORY;
    plans->folder = -1;
    plans->has_key = facts_seal_key(plans->key, key);
    plans->trusts = trusts;
    return fattn_context_keep_refusals(context, &store);
}

void facts_plans_begin(facts_plans *plans, const char *folder)
{
    plans->folder = folder[0] ? facts_folder_open(folder) : -1;
    plans->refusal_loaded = false;
    plans->not_loaded[0] = '\0';
}

void facts_plans_end(facts_plans *plans)
{
    if (plans->folder >= 0)
        close(plans->folder);
    plans->folder = -1;
}
