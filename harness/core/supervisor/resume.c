#include "resume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builds/content.h"
#include "words/case_text.h"
#include "words/intern.h"
#include "words/verdict.h"

/* One (case, build, device) of the record. */
typedef struct entry {
    bool complete; /* its last row announces no further row */
    bool late;     /* one of its rows is not an answer: FACTS timed out */
    int next_config, attempts;
} entry;

struct facts_resume {
    facts_intern *keys;
    entry *entries; /* by key */
    size_t count;
    char *path;
    const char *suite_hash;
    bool unguarded;
    facts_error *error;
    bool foreign;
    facts_read_counts counts;
    facts_validity validity;
};

enum { KEY = 2048 };

static const char *key_of(char out[KEY], const char *name, const char *build, const char *device)
{
    snprintf(out, KEY, "%s\n%s\n%s", name, build, device);
    return out;
}

static entry *entry_of(facts_resume *r, const facts_line *line)
{
    char name[1500], build[64], device[128], key[KEY];
    if (!facts_json_string(facts_line_get(line, "case"), name, sizeof name) ||
        !facts_json_string(facts_line_get(line, "build"), build, sizeof build) ||
        !facts_json_string(facts_line_get(line, "device"), device, sizeof device))
        return NULL;
    const uint32_t id = facts_intern_id(r->keys, key_of(key, name, build, device));
    if (id > r->count) {
        r->entries = facts_grow(r->entries, r->count, sizeof *r->entries);
        r->entries[r->count++] = (entry){ .complete = false };
    }
    return &r->entries[id - 1];
}

static bool check_run(facts_resume *r, const facts_line *line)
{
    facts_span hash = facts_line_get(line, "suite_hash");
    const bool unguarded = facts_json_is(facts_line_get(line, "guards"), "off");
    if (!r->suite_hash)
        return true;
    if (hash.at && !facts_json_is(hash, r->suite_hash))
        facts_fail(r->error,
                   "%s: holds another suite (%.*s, now %s); give another -o, or --overwrite",
                   r->path, (int)(hash.length < 40 ? hash.length : 40), hash.at, r->suite_hash);
    else if (unguarded != r->unguarded)
        facts_fail(r->error,
                   "%s: was asked with the guards %s; give another -o, or --overwrite, or --guards",
                   r->path, unguarded ? "off" : "on");
    else
        return true;
    r->foreign = true;
    return false;
}

/* The row of a worker that died through FACTS alone: a longer --timeout may give an answer. */
static bool timed_out_in_facts(const facts_line *line)
{
    return facts_json_is(facts_line_get(line, "verdict"), "inconclusive") &&
           facts_line_get(line, "stage").at;
}

static void note_row(entry *e, const facts_line *line)
{
    int64_t config;
    bool more = false;
    const facts_verdict verdict = facts_verdict_parse(facts_line_get(line, "verdict"));
    if (verdict == FACTS_VERDICT_COUNT) /* an unknown word is no answer */
        return;
    if (e->complete) { /* asked again, all of it */
        e->complete = e->late = false;
        e->next_config = 0;
    }
    e->late |= timed_out_in_facts(line);
    if (!facts_json_bool(facts_line_get(line, "more"), &more) || !more)
        e->complete = true;
    if (facts_json_int(facts_line_get(line, "config"), &config) && config >= e->next_config &&
        config < 1000000)
        e->next_config = (int)config + 1;
}

static bool each_line(void *context, const facts_line *line)
{
    facts_resume *r = context;
    if (!facts_validity_line(&r->validity, line))
        return true;
    if (line->kind == FACTS_LINE_RUN)
        return check_run(r, line);
    if (line->kind != FACTS_LINE_START && line->kind != FACTS_LINE_ROW)
        return true;
    entry *e = entry_of(r, line);
    if (!e)
        return true;
    if (line->kind == FACTS_LINE_START)
        e->attempts++;
    else
        note_row(e, line);
    return true;
}

int facts_resume_read(facts_resume **out, const char *path, const char *suite_hash, bool unguarded,
                      const facts_targets *targets, facts_error *error)
{
    *out = NULL;
    facts_resume *r = calloc(1, sizeof *r);
    r->keys = facts_intern_new();
    r->path = strdup(path);
    for (size_t i = 0; targets && i < targets->count; i++)
        facts_validity_add(&r->validity, &targets->at[i]);
    r->suite_hash = suite_hash;
    r->unguarded = unguarded;
    r->error = error;
    bool missing = access(path, F_OK) != 0 && errno == ENOENT;
    bool read = missing || facts_record_read(path, each_line, r, &r->counts);
    if (r->foreign) {
        facts_resume_free(r);
        return 2;
    }
    if (!read) {
        facts_error why;
        int status = facts_record_trouble(&r->counts, &why);
        facts_fail(error, "%.400s: %.200s", path, why.text);
        facts_resume_free(r);
        return status;
    }
    facts_validity_say(&r->validity, path);
    *out = r;
    return 0;
}

facts_resume_state facts_resume_get(const facts_resume *r, const char *name, const char *build,
                                    const char *device)
{
    char key[KEY];
    const uint32_t id = facts_intern_find(r->keys, key_of(key, name, build, device));
    if (!id)
        return (facts_resume_state){ 0 };
    const entry *e = &r->entries[id - 1];
    return (facts_resume_state){ .done = e->complete && !e->late,
                                 .from_config = e->complete ? 0 : e->next_config,
                                 .attempts = e->attempts };
}

typedef struct counted {
    facts_validity *validity;
    bool (*each)(void *context, const facts_line *line);
    void *context;
} counted;

static bool each_counted(void *context, const facts_line *line)
{
    const counted *c = context;
    return !facts_validity_line(c->validity, line) || c->each(c->context, line);
}

bool facts_resume_rows(facts_resume *r, bool (*each)(void *, const facts_line *), void *context)
{
    facts_read_counts counts;
    counted c = { &r->validity, each, context };
    if (access(r->path, F_OK) != 0)
        return true;
    return facts_record_read(r->path, each_counted, &c, &counts);
}

void facts_resume_free(facts_resume *r)
{
    if (!r)
        return;
    facts_validity_free(&r->validity);
    facts_intern_free(r->keys);
    free(r->entries);
    free(r->path);
    free(r);
}

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

enum { VALIDITY_KEY = 512 };

static const char *validity_key(char out[VALIDITY_KEY], const char *run, const char *build,
                                const char *device)
{
    snprintf(out, VALIDITY_KEY, "%s\n%s\n%s", run, build, device);
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
    char build[64], device[128], content[32] = "", key[VALIDITY_KEY];
    const bool gpu = facts_json_is(facts_json_member(object, "kind"), "gpu");
    facts_json_string(facts_json_member(object, "content"), content, sizeof content);
    if (facts_json_string(facts_json_member(object, "build"), build, sizeof build) &&
        facts_json_string(facts_json_member(object, "device"), device, sizeof device))
        know(validity, validity_key(key, run, build, gpu ? ANY_GPU : device),
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
    char run[96], build[64], device[128], key[VALIDITY_KEY];
    if (!facts_json_string(facts_line_get(line, "run"), run, sizeof run) ||
        !facts_json_string(facts_line_get(line, "build"), build, sizeof build) ||
        !facts_json_string(facts_line_get(line, "device"), device, sizeof device))
        return false;
    if (!validity->known)
        return false;
    uint32_t id = facts_intern_find(validity->known, validity_key(key, run, build, device));
    if (!id)
        id = facts_intern_find(validity->known, validity_key(key, run, build, ANY_GPU));
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
