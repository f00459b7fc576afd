#include "earned.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "builds/content.h"

#define GPU_DRIVER "/proc/driver/nvidia/version" /* none under WSL */
#define ANY_GPU "*"                              /* a run names its GPUs before it knows what they are */
#define MOST_TARGETS 1024

/* ---- what a target is ---------------------------------------------------------------------------------------------------------
 */

static void add_driver(facts_content *content, const facts_target *target)
{
    char path[FACTS_PATH], text[1024];
    FILE *file = target->kind == FACTS_TARGET_GPU ? fopen(GPU_DRIVER, "re") : NULL;
    if (file) {
        facts_content_text(content, "driver", text, fread(text, 1, sizeof text, file));
        (void)fclose(file);
    }
    if (target->kind == FACTS_TARGET_DESCRIBED && facts_home_path("nulldriver/libcuda.so.1", path))
        facts_content_file(content, path);
}

void facts_target_identify(facts_target *target, const char *worker)
{
    char path[FACTS_PATH];
    facts_content content = { 0 };
    facts_content_build(&content, &target->build);
    facts_content_file(&content, worker);
    add_driver(&content, target);
    facts_content_text(&content, "device", target->described.json, strlen(target->described.json));
    if (facts_home_path("cases/errata.json", path))
        facts_content_file(&content, path);
    target->content[0] = '\0';
    if (!content.unknown)
        snprintf(target->content, sizeof target->content, "%016" PRIx64, content.sum);
}

/* ---- what a record has --------------------------------------------------------------------------------------------------------
 */

/* A target of a run. */
typedef struct facts_earned_target {
    XXH128_hash_t key;
    bool holds;
} earned_target;

static int by_key(const void *a, const void *b)
{
    return XXH128_cmp(a, b);
}

static XXH128_hash_t key_of(const char *run, const char *build, const char *device)
{
    char text[512];
    const int n = snprintf(text, sizeof text, "%s\n%s\n%s", run, build, device);
    return XXH3_128bits(text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

bool facts_earned_add(facts_earned *earned, const facts_target *target)
{
    facts_earned_asked *more = realloc(earned->targets, (earned->target_count + 1) * sizeof *more);
    if (!more)
        return false;
    earned->targets = more;
    more[earned->target_count++].target = target;
    return true;
}

static bool holds(const facts_earned *earned, const char *build, const char *device, bool gpu, const char *content)
{
    for (size_t i = 0; i < earned->target_count; i++) {
        const facts_target *t = earned->targets[i].target;
        if (strcmp(t->build.name, build) == 0 && (gpu ? t->kind == FACTS_TARGET_GPU : strcmp(t->device, device) == 0))
            return t->content[0] && strcmp(t->content, content) == 0;
    }
    return true; /* not asked now: nobody will read it */
}

/* Without memory the target stays unknown, and is asked again. */
static void know(facts_earned *earned, XXH128_hash_t key, bool it_holds)
{
    if (earned->known_count == earned->capacity) {
        const size_t capacity = earned->capacity ? 2 * earned->capacity : 64;
        earned_target *more = realloc(earned->known, capacity * sizeof *more);
        if (!more)
            return;
        earned->known = more;
        earned->capacity = capacity;
    }
    earned->known[earned->known_count++] = (earned_target){ key, it_holds };
    earned->sorted = false;
}

static void read_target(facts_earned *earned, const char *run, facts_span object)
{
    facts_member members[16];
    size_t count;
    char build[64], device[128], content[32] = "";
    if (!facts_scan_object(object.at, object.length, members, 16, &count))
        return;
    count = count < 16 ? count : 16;
    const bool gpu = facts_json_is(facts_member_find(members, count, "kind"), "gpu");
    facts_json_string(facts_member_find(members, count, "content"), content, sizeof content);
    if (facts_json_string(facts_member_find(members, count, "build"), build, sizeof build) &&
        facts_json_string(facts_member_find(members, count, "device"), device, sizeof device))
        know(earned, key_of(run, build, gpu ? ANY_GPU : device), holds(earned, build, device, gpu, content));
}

static void read_run(facts_earned *earned, const facts_line *line)
{
    char run[96];
    facts_span elements[MOST_TARGETS];
    size_t count;
    const facts_span list = facts_line_get(line, "targets");
    if (!list.at || !facts_json_string(facts_line_get(line, "id"), run, sizeof run) ||
        !facts_scan_array(list.at, list.length, elements, MOST_TARGETS, &count))
        return;
    for (size_t i = 0; i < count && i < MOST_TARGETS; i++)
        read_target(earned, run, elements[i]);
}

static const earned_target *find(facts_earned *earned, const char *run, const char *build, const char *device)
{
    const earned_target wanted = { .key = key_of(run, build, device) };
    if (!earned->sorted && earned->known_count)
        qsort(earned->known, earned->known_count, sizeof *earned->known, by_key);
    earned->sorted = true;
    return earned->known_count ? bsearch(&wanted, earned->known, earned->known_count, sizeof *earned->known, by_key) : NULL;
}

static bool line_holds(facts_earned *earned, const facts_line *line)
{
    char run[96], build[64], device[128];
    if (!facts_json_string(facts_line_get(line, "run"), run, sizeof run) ||
        !facts_json_string(facts_line_get(line, "build"), build, sizeof build) ||
        !facts_json_string(facts_line_get(line, "device"), device, sizeof device))
        return false;
    const earned_target *known = find(earned, run, build, device);
    if (!known)
        known = find(earned, run, build, ANY_GPU);
    return known && known->holds;
}

bool facts_earned_line(facts_earned *earned, const facts_line *line)
{
    if (!earned->target_count)
        return true;
    if (line->kind == FACTS_LINE_RUN)
        read_run(earned, line);
    if ((line->kind != FACTS_LINE_ROW && line->kind != FACTS_LINE_START) || line_holds(earned, line))
        return true;
    earned->stale += line->kind == FACTS_LINE_ROW;
    return false;
}

void facts_earned_say(const facts_earned *earned, const char *path)
{
    if (earned->stale)
        fprintf(stderr, "facts: %s: %" PRIu64 " row%s of other libraries, another driver, device or FACTS; asking again\n", path,
                earned->stale, earned->stale == 1 ? " is" : "s are");
}

void facts_earned_free(facts_earned *earned)
{
    free(earned->targets);
    free(earned->known);
    *earned = (facts_earned){ 0 };
}
