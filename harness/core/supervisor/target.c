#include "target.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_GPUS 64

void facts_device_label(char *out, size_t capacity, const char *device_name)
{
    if (strncmp(device_name, "NVIDIA ", 7) == 0)
        device_name += 7;
    size_t n = 0;
    for (; *device_name && n + 1 < capacity; device_name++) {
        unsigned char c = (unsigned char)*device_name;
        if (isalnum(c))
            out[n++] = (char)tolower(c);
        else if (n && out[n - 1] != '-')
            out[n++] = '-';
    }
    while (n && out[n - 1] == '-')
        n--;
    out[n] = '\0';
}

/* A record names a target by the names of its build and its device: two targets with the same two
 * names would be one in the record. */
static int clash(const facts_target *a, const facts_target *b, facts_error *message)
{
    if (strcmp(a->described.json, b->described.json) != 0)
        return facts_fail_as(
            2, message, "two descriptions are named %s; change the \"name\" in one of the files",
            a->device);
    return facts_fail_as(2, message, "two folders have the build %s: %s and %s; name one of them",
                         a->build.name, a->build.dir, b->build.dir);
}

void facts_targets_add(facts_targets *targets, const facts_target *target)
{
    targets->at = realloc(targets->at, (targets->count + 1) * sizeof *targets->at);
    targets->at[targets->count++] = *target;
}

size_t facts_targets_find(const facts_targets *targets, const char *build, const char *device)
{
    size_t t = 0;
    while (t < targets->count && (strcmp(targets->at[t].build.name, build) != 0 ||
                                  strcmp(targets->at[t].device, device) != 0))
        t++;
    return t;
}

const char *facts_target_backend(const facts_target *target)
{
    return target->kind == FACTS_TARGET_CPU ? "cpu" : "cudnn";
}

size_t facts_targets_of(const facts_targets *targets, facts_target_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < targets->count; i++)
        count += targets->at[i].kind == kind;
    return count;
}

static int add(facts_targets *targets, const facts_target *target, facts_error *message)
{
    const size_t found = facts_targets_find(targets, target->build.name, target->device);
    if (found < targets->count) {
        const facts_target *other = &targets->at[found];
        bool same = strcmp(other->described.json, target->described.json) == 0 &&
                    strcmp(other->build.dir, target->build.dir) == 0;
        return same ? 0 : clash(other, target, message);
    }
    for (size_t i = 0; i < targets->count; i++)
        if (targets->at[i].gpus && target->gpus && targets->at[i].gpus != target->gpus)
            return facts_fail_as(2, message,
                                 "--device: all is every GPU already; leave the numbers out");
    facts_targets_add(targets, target);
    return 0;
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 4;
}

int facts_gpus_here(void)
{
    DIR *devices = opendir("/dev");
    int n = 0;
    if (!devices)
        return 0;
    for (struct dirent *entry; (entry = readdir(devices)) != NULL;)
        n += strncmp(entry->d_name, "nvidia", 6) == 0 && isdigit((unsigned char)entry->d_name[6]);
    closedir(devices);
    return n;
}

/* The GPUs that CUDA shows: CUDA_VISIBLE_DEVICES ends at the first number below 0. */
static int gpus_shown(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int n = 0;
    if (!visible)
        return facts_gpus_here();
    while (*visible && *visible != '-' && n < MOST_GPUS) {
        n++;
        visible += strcspn(visible, ",");
        visible += *visible == ',';
    }
    return n;
}

void facts_target_planned(char out[16], const facts_target *target)
{
    if (target->gpus > 1)
        strcpy(out, "gpus");
    else
        snprintf(out, 16, "gpu%d", target->ordinal);
}

static int all_gpus(facts_target *out, facts_error *message)
{
    out->kind = FACTS_TARGET_GPU;
    out->gpus = gpus_shown();
    facts_target_planned(out->device, out);
    if (out->gpus > 0)
        return 0;
    return facts_fail_as(
        3, message, "--device all: no GPU here; give cpu, a name of lib/devices or a JSON file");
}

int facts_target_device(facts_target *out, const char *word, facts_error *message)
{
    memset(out, 0, sizeof *out);
    if (strcmp(word, "cpu") == 0) {
        out->kind = FACTS_TARGET_CPU;
        strcpy(out->device, "cpu");
        strcpy(out->build.name, "none");
        return 0;
    }
    if (is_number(word)) {
        out->kind = FACTS_TARGET_GPU;
        out->ordinal = (int)strtol(word, NULL, 10);
        out->gpus = 1;
        facts_target_planned(out->device, out);
        return 0;
    }
    if (strcmp(word, "all") == 0)
        return all_gpus(out, message);
    out->kind = FACTS_TARGET_DESCRIBED;
    int status = facts_device_load(&out->described, word, message);
    if (status == 0)
        snprintf(out->device, sizeof out->device, "%s", out->described.name);
    return status;
}

const char *facts_target_shown(char out[176], const facts_target *target)
{
    const char *product = target->described.product;
    snprintf(out, 176, "%s%s%s%s", target->device, *product ? " (" : "", product,
             *product ? ")" : "");
    return out;
}

static int add_device(facts_targets *targets, const char *word, const facts_builds *builds,
                      facts_error *message)
{
    facts_target target;
    int status = facts_target_device(&target, word, message);
    if (status != 0)
        return status;
    if (target.kind == FACTS_TARGET_CPU)
        return add(targets, &target, message);
    for (size_t i = 0; i < builds->count && status == 0; i++) {
        target.build = builds->at[i];
        status = add(targets, &target, message);
    }
    return status;
}

/* True if any word of the list is not cpu: only then a build is necessary. */
static bool needs_build(const char *devices)
{
    while (*devices) {
        size_t n = strcspn(devices, ",");
        if (n && !(n == 3 && memcmp(devices, "cpu", 3) == 0))
            return true;
        devices += n + (devices[n] == ',');
    }
    return false;
}

static int add_devices(facts_targets *out, const char *devices, const facts_builds *builds,
                       facts_error *message)
{
    char *words = strdup(devices), *rest = words, *word;
    int status = 0;
    while (status == 0 && (word = strsep(&rest, ",")) != NULL)
        if (*word)
            status = add_device(out, word, builds, message);
    free(words);
    return status;
}

/* A range and "default" mean the builds that are here. A version that was named is installed. */
static bool means_what_is_here(const char *cudnn)
{
    return strstr(cudnn, "..") || strcmp(cudnn, "default") == 0;
}

int facts_targets_resolve(facts_targets *out, const char *cudnn, unsigned flags,
                          const char *devices, facts_error *note, facts_error *message)
{
    *out = (facts_targets){ 0 };
    facts_builds builds = { 0 };
    if (note)
        note->text[0] = '\0';
    /* An unknown device is bad input, whether or not cuDNN is installed: it is checked first,
     * without a build. */
    int status = add_devices(out, devices, &builds, message);
    facts_targets_free(out);
    if (status == 0 && needs_build(devices))
        status = (means_what_is_here(cudnn) ? facts_builds_resolve : facts_builds_ensure)(
            &builds, cudnn, flags, note, message);
    if (status == 0)
        status = add_devices(out, devices, &builds, message);
    if (status == 0 && out->count == 0) {
        facts_fail(message, "--device: nothing named; give a GPU number, all, cpu, a name of "
                            "lib/devices or a JSON file");
        status = 2;
    }
    facts_builds_free(&builds);
    if (status != 0)
        facts_targets_free(out);
    return status;
}

void facts_targets_free(facts_targets *targets)
{
    free(targets->at);
    *targets = (facts_targets){ 0 };
}
