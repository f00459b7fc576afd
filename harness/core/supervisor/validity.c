#include "validity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builds/content.h"
#include "words/case_text.h"

#define GPU_DRIVER "/proc/driver/nvidia/version" /* none under WSL */
#define ANY_GPU "*" /* a run names its GPUs before their products are known */
#define MOST_TARGETS 1024

/* ---- what a target is
 * ---------------------------------------------------------------------------------------------------------
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

static void put(char out[17], const facts_content *content)
{
    out[0] = '\0';
    if (!content->unknown && content->sum)
        snprintf(out, 17, "%016" PRIx64, content->sum);
}

void facts_target_identify(facts_target *target, const char *worker)
{
    facts_content content = { 0 }, description = { 0 };
    const char *json = target->described.json;
    facts_content_build(&content, &target->build);
    put(target->libraries_hash, &content);
    if (*json)
        facts_content_text(&description, "device", json, strlen(json));
    put(target->description_hash, &description);
    facts_content_file(&content, worker);
    add_driver(&content, target);
    content.sum += description.sum;
    put(target->content, &content);
}

/* ---- what a record has
 * --------------------------------------------------------------------------------------------------------
 */

enum { KEY = 512 };

static const char *key_of(char out[KEY], const char *run, const char *build, const char *device)
{
    snprintf(out, KEY, "%s\n%s\n%s", run, build, device);
    return out;
}

void facts_validity_add(facts_validity *validity, const facts_target *target)
{
    validity->targets =
        realloc(validity->targets, (validity->target_count + 1) * sizeof(facts_target *));
    validity->targets[validity->target_count++] = target;
}

static bool holds(const facts_validity *validity, const char *build, const char *device, bool gpu,
                  const char *content)
{
    for (size_t i = 0; i < validity->target_count; i++) {
        const facts_target *t = validity->targets[i];
        if (strcmp(t->build.name, build) == 0 &&
            (gpu ? t->kind == FACTS_TARGET_GPU : strcmp(t->device, device) == 0))
            return t->content[0] && strcmp(t->content, content) == 0;
    }
    return true; /* not asked now: the answer would not be read */
}

static void know(facts_validity *validity, const char *key, bool it_holds)
{
    if (!validity->known)
        validity->known = facts_intern_new();
    const uint32_t id = facts_intern_id(validity->known, key);
    if (id > validity->known_count)
        validity->holds =
            facts_grow(validity->holds, validity->known_count++, sizeof *validity->holds);
    validity->holds[id - 1] = it_holds;
}

static void read_target(facts_validity *validity, const char *run, facts_span object)
{
    char build[64], device[128], content[32] = "", key[KEY];
    const bool gpu = facts_json_is(facts_json_member(object, "kind"), "gpu");
    facts_json_string(facts_json_member(object, "content"), content, sizeof content);
    if (facts_json_string(facts_json_member(object, "build"), build, sizeof build) &&
        facts_json_string(facts_json_member(object, "device"), device, sizeof device))
        know(validity, key_of(key, run, build, gpu ? ANY_GPU : device),
             holds(validity, build, device, gpu, content));
}

static void read_run(facts_validity *validity, const facts_line *line)
{
    char run[96];
    facts_span elements[MOST_TARGETS];
    size_t count;
    const facts_span list = facts_line_get(line, "targets");
    if (!list.at || !facts_json_string(facts_line_get(line, "id"), run, sizeof run) ||
        !facts_scan_array(list.at, list.length, elements, MOST_TARGETS, &count))
        return;
    for (size_t i = 0; i < count && i < MOST_TARGETS; i++)
        read_target(validity, run, elements[i]);
}

static bool line_holds(const facts_validity *validity, const facts_line *line)
{
    char run[96], build[64], device[128], key[KEY];
    if (!facts_json_string(facts_line_get(line, "run"), run, sizeof run) ||
        !facts_json_string(facts_line_get(line, "build"), build, sizeof build) ||
        !facts_json_string(facts_line_get(line, "device"), device, sizeof device))
        return false;
    if (!validity->known)
        return false;
    uint32_t id = facts_intern_find(validity->known, key_of(key, run, build, device));
    if (!id)
        id = facts_intern_find(validity->known, key_of(key, run, build, ANY_GPU));
    return id && validity->holds[id - 1];
}

bool facts_validity_line(facts_validity *validity, const facts_line *line)
{
    if (!validity->target_count)
        return true;
    if (line->kind == FACTS_LINE_RUN)
        read_run(validity, line);
    if ((line->kind != FACTS_LINE_ROW && line->kind != FACTS_LINE_START) ||
        line_holds(validity, line))
        return true;
    validity->stale += line->kind == FACTS_LINE_ROW;
    return false;
}

void facts_validity_say(const facts_validity *validity, const char *path)
{
    if (validity->stale)
        fprintf(stderr,
                "facts: %s: %" PRIu64 " row%s from other libraries, another driver, another device "
                "or another FACTS; FACTS asks them again\n",
                path, validity->stale, validity->stale == 1 ? " is" : "s are");
}

void facts_validity_free(facts_validity *validity)
{
    free(validity->targets);
    facts_intern_free(validity->known);
    free(validity->holds);
    *validity = (facts_validity){ 0 };
}
