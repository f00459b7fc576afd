#include "fuzz_files.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "commands/session/expected.h"
#include "search/story.h"

int facts_fuzz_files_open(facts_fuzz_files *files, const facts_hunt *hunt, uint64_t seed)
{
    files->hunt = hunt;
    snprintf(files->origin, sizeof files->origin, "facts fuzz --seed %" PRIu64, seed);
    return FACTS_EXIT_OK;
}

static void complain(facts_fuzz_files *files, const char *path)
{
    if (!files->failed)
        fprintf(stderr, "facts: %s: %s\n", path, strerror(errno));
    files->failed = true;
}

/* Beside the record, whose name is known when it was opened. */
static bool open_folder(facts_fuzz_files *files)
{
    const facts_session *s = &files->hunt->session;
    const char *record = s->record[0] ? s->record : s->options->output ? s->options->output : "";
    size_t length = strlen(record), suffix = strlen(".jsonl");
    if (!*record)
        return false;
    if (length > suffix && strcmp(record + length - suffix, ".jsonl") == 0)
        length -= suffix;
    int n = snprintf(files->folder, sizeof files->folder, "%.*s.findings", (int)length, record);
    if (n > 0 && (size_t)n < sizeof files->folder && (mkdir(files->folder, 0777) == 0 || errno == EEXIST))
        return true;
    complain(files, files->folder);
    return false;
}

static void write_file(facts_fuzz_files *files, const char *id, const char *suffix, const facts_text *text)
{
    char path[2 * FACTS_PATH], aside[2 * FACTS_PATH + 8];
    snprintf(path, sizeof path, "%s/%s%s", files->folder, id, suffix);
    snprintf(aside, sizeof aside, "%s.new", path);
    FILE *out = text->failed || !text->data ? NULL : fopen(aside, "w");
    bool ok = out && fwrite(text->data, 1, text->length, out) == text->length;
    if (out)
        ok = fclose(out) == 0 && ok;
    if (!ok || rename(aside, path) != 0)
        complain(files, path);
}

static void write_bucket(facts_fuzz_files *files, const facts_bucket *bucket)
{
    char id[FACTS_STORY_ID], flags[FACTS_PATH + 64] = "", today[16];
    time_t now = time(NULL);
    struct tm utc;
    facts_text text = { 0 };
    facts_hunt_flags(files->hunt, flags, sizeof flags);
    strftime(today, sizeof today, "%Y-%m-%d", gmtime_r(&now, &utc));
    const facts_story story = { .version = FACTS_VERSION, .origin = files->origin, .flags = flags, .date = today };
    facts_story_id(bucket, id);
    facts_story_known(&text, bucket, &story);
    write_file(files, id, ".known", &text);
    facts_text_clear(&text);
    facts_story_paragraph(&text, bucket, &story);
    write_file(files, id, ".md", &text);
    facts_text_free(&text);
}

void facts_fuzz_files_write(facts_fuzz_files *files, facts_findings *findings)
{
    for (size_t i = 0; i < facts_findings_count(findings); i++) {
        facts_bucket *bucket = facts_findings_at(findings, i);
        if (!bucket->news || (!files->folder[0] && !open_folder(files)))
            continue;
        write_bucket(files, bucket);
        bucket->news = false;
    }
}
