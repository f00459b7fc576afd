#include "resume.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
