#include "plans.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "own_folder.h"
#include "worker/clock/spent.h"

#define PLAN_MAX ((size_t)64 << 20)
#define REFUSAL_MAX ((size_t)1 << 20)
#define PLAN ".plan"
#define REFUSAL ".refusal"

/* What cuDNN makes, or says, with another threshold is kept apart. */
static void file_name(char out[80], const char *key, const char *ending)
{
    const char *rescale = getenv(FACTS_RESCALE);
    snprintf(out, 80, "%.32s%s%.16s%s", key, rescale ? "-rescale" : "", rescale ? rescale : "", ending);
}

static void refuse(facts_plans *plans, const char *name, const char *why)
{
    facts_folder_drop(plans->folder, name);
    if (plans->not_loaded[0] == '\0')
        snprintf(plans->not_loaded, sizeof plans->not_loaded, "%s: %.200s", name, why);
}

/* ---- refusals -----------------------------------------------------------------------------------------------------------------
 */

static bool find(void *user, const char *key, char **bytes, size_t *count)
{
    facts_plans *plans = user;
    char name[80];
    if (plans->folder < 0)
        return false;
    file_name(name, key, REFUSAL);
    *bytes = facts_folder_read(plans->folder, name, REFUSAL_MAX, count);
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

/* Counted once for a folder: what other workers add meanwhile is not seen. */
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
        plans->refusals += facts_folder_write(plans->folder, name, bytes, count);
    }
}

/* ---- plans --------------------------------------------------------------------------------------------------------------------
 */

/* A plan that cannot be kept is no reason to fail. */
static void save(const fattn_plan *plan, int folder, const char *name)
{
    char *bytes = NULL;
    size_t count = 0;
    if (fattn_plan_save(plan, &bytes, &count) == FATTN_OK)
        (void)facts_folder_write(folder, name, bytes, count);
    fattn_free(bytes);
}

/* FATTN_BAD_PLAN: there is none, or none that can be taken. */
static fattn_status load(fattn_plan **out, facts_plans *plans, const char *name, fattn_context *context,
                         const fattn_problem *problem)
{
    size_t count = 0;
    char *bytes = facts_folder_read(plans->folder, name, PLAN_MAX, &count);
    fattn_status status = bytes ? fattn_plan_load(out, context, problem, bytes, count) : FATTN_BAD_PLAN;
    if (bytes && status == FATTN_BAD_PLAN)
        refuse(plans, name, fattn_last_error());
    free(bytes);
    return status;
}

static fattn_status get(fattn_plan **out, facts_plans *plans, fattn_context *context, const fattn_problem *problem,
                        const fattn_plan_options *options, bool *loaded)
{
    char key[33], name[80];
    const bool fixed = !options || !options->override_shapes; /* one whose shapes are given at the call is not saved */
    if (!plans || plans->folder < 0 || !fixed || fattn_plan_key(context, problem, options, key) != FATTN_OK)
        return fattn_plan_create(out, context, problem, options);
    file_name(name, key, PLAN);
    fattn_status status = load(out, plans, name, context, problem);
    *loaded = status == FATTN_OK;
    if (status != FATTN_BAD_PLAN)
        return status;
    status = fattn_plan_create(out, context, problem, options);
    if (status == FATTN_OK)
        save(*out, plans->folder, name);
    return status;
}

fattn_status facts_plan_get(fattn_plan **out, facts_plans *plans, fattn_context *context, const fattn_problem *problem,
                            const fattn_plan_options *options, bool *loaded)
{
    const facts_spent before = facts_spend(FACTS_SPENT_PLAN);
    bool unasked;
    loaded = loaded ? loaded : &unasked;
    *loaded = false;
    const fattn_status status = get(out, plans, context, problem, options, loaded);
    facts_spend(before);
    return status;
}

/* ---- the folder ---------------------------------------------------------------------------------------------------------------
 */

fattn_status facts_plans_open(facts_plans **out, fattn_context *context)
{
    facts_plans *plans = calloc(1, sizeof *plans);
    const fattn_refusal_store store = { .struct_size = sizeof store, .user = plans, .find = find, .keep = keep };
    *out = plans;
    if (!plans)
        return FATTN_NO_MEMORY;
    plans->folder = -1;
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
