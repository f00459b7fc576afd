/* A session's record: its path, its first line and its last. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "builds/home.h"
#include "record/text.h"
#include "session_parts.h"
#include "suites/planned_cases.h"

#define GROUPS_MAX 256
#define GROUP_TEXT_MAX 400

static bool choose_record(facts_session *s)
{
    char part[80];
    snprintf(part, sizeof part, "runs/%s.jsonl", s->run_id);
    if (s->options->output && !s->record[0])
        snprintf(s->record, sizeof s->record, "%s", s->options->output);
    if (s->record[0])
        return true;
    if (facts_cache_path(part, s->record) && facts_make_folders(s->record))
        return true;
    fprintf(stderr, "facts: %s: %s; give the record's file with -o FILE\n", s->record,
            strerror(errno));
    return false;
}

static void name_run(facts_session *s, char started[32])
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(started, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
    size_t n = strftime(s->run_id, sizeof s->run_id, "%Y%m%dT%H%M%S", &utc);
    snprintf(s->run_id + n, sizeof s->run_id - n, "-%03ld-%d", now.tv_nsec / 1000000,
             (int)getpid());
}

static void add_targets(const facts_session *s, facts_text *line)
{
    static const char *const kinds[] = { "gpu", "described", "cpu" };
    facts_text_puts(line, "\"targets\":[");
    for (size_t i = 0; i < s->targets.count; i++) {
        const facts_target *t = &s->targets.at[i];
        facts_text_puts(line, i ? ",{" : "{");
        facts_text_member(line, "build", t->build.name);
        facts_text_member(line, "device", t->device);
        facts_text_member(line, "kind", kinds[t->kind]);
        facts_text_member_if(line, "product", t->described.product);
        facts_text_member_if(line, "content", t->content);
        facts_text_member_if(line, "libraries_hash", t->libraries_hash);
        facts_text_member_if(line, "description_hash", t->description_hash);
        facts_text_close(line);
    }
    facts_text_puts(line, "],");
}

/* Each group of the suite with its reason; the text is bounded, because a record's line is. */
static void add_groups(const facts_session *s, facts_text *line)
{
    const char *seen[GROUPS_MAX];
    size_t count = 0;
    facts_text_puts(line, "\"groups\":{");
    for (size_t i = 0; i < s->all_count && count < GROUPS_MAX; i++) {
        const facts_planned planned = facts_cases_at(s->cases, i);
        bool known = !*planned.group;
        for (size_t k = count; k > 0 && !known; k--)
            known = strcmp(seen[k - 1], planned.group) == 0;
        if (known)
            continue;
        facts_text_puts(line, count ? "," : "");
        facts_text_json(line, planned.group, strnlen(planned.group, GROUP_TEXT_MAX));
        facts_text_puts(line, ":");
        facts_text_json(line, planned.why, strnlen(planned.why, GROUP_TEXT_MAX));
        seen[count++] = planned.group;
    }
    facts_text_puts(line, "},");
}

static bool write_run(facts_session *s, const char *started)
{
    static const char *const tasks[] = { "decide", "plan", "run" };
    facts_text line = { 0 };
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    facts_text_puts(&line, "{\"run\":{");
    facts_text_member(&line, "id", s->run_id);
    facts_text_member(&line, "facts", FACTS_VERSION);
    facts_text_member_int(&line, "format", FACTS_RECORD_FORMAT);
    facts_text_member(&line, "started", started);
    facts_text_member(&line, "do", tasks[s->task]);
    facts_text_member(&line, "guards", s->unguarded ? "off" : "on");
    facts_text_strings(&line, "command", (const char *const *)s->call->argv, (size_t)s->call->argc);
    facts_text_member_if(&line, "suites", s->suites);
    facts_text_member(&line, "suite_hash", s->suite_hash);
    facts_text_member_int(&line, "seed", s->more ? (int64_t)s->seed : 1);
    facts_text_member(&line, "host", host);
    facts_text_member_int(&line, "cases", (int64_t)s->all_count);
    facts_text_member_int(&line, "planned", (int64_t)(s->work_count * s->targets.count));
    if (s->options->shards)
        facts_text_format(&line, "\"shard\":[%d,%d],", s->options->shard, s->options->shards);
    add_targets(s, &line);
    add_groups(s, &line);
    facts_text_close(&line);
    facts_text_puts(&line, "}");
    bool ok = facts_writer_line(s->writer, line.data, line.length);
    facts_text_free(&line);
    return ok;
}

int facts_session_open_record(facts_session *s)
{
    facts_error error = { 0 };
    char started[32];
    name_run(s, started);
    if (!s->keep_record && !s->options->output && !s->record[0])
        return FACTS_EXIT_OK;
    if (!choose_record(s))
        return FACTS_EXIT_ENVIRONMENT;
    int status = 0;
    for (size_t i = 0; i < s->targets.count; i++)
        if (!s->targets.at[i].content[0]) /* the resumed record was read already */
            facts_target_identify(&s->targets.at[i], s->worker);
    if (s->options->resume && !s->more)
        status = facts_resume_read(&s->resume, s->record, s->suite_hash, s->unguarded, &s->targets,
                                   &error);
    facts_open_mode mode = s->options->resume      ? FACTS_OPEN_RESUME
                           : s->options->overwrite ? FACTS_OPEN_REPLACE
                                                   : FACTS_OPEN_NEW;
    if (status == 0)
        status = facts_writer_open(&s->writer, s->record, mode, &error);
    if (status == 0 && !write_run(s, started))
        status = facts_fail_as(FACTS_EXIT_ENVIRONMENT, &error, "%s", facts_writer_error(s->writer));
    if (status == 0)
        return FACTS_EXIT_OK;
    s->record[0] = '\0'; /* there is none */
    return facts_complain(status, "facts: %s", error.text);
}

void facts_session_end_record(facts_session *s)
{
    facts_text line = { 0 };
    bool complete = s->counts.done == s->counts.planned && !s->counts.record_failed;
    facts_text_puts(&line, "{\"end\":{");
    facts_text_member(&line, "run", s->run_id);
    facts_text_member_bool(&line, "complete", complete);
    facts_text_member_int(&line, "rows", (int64_t)s->counts.rows);
    facts_text_member_int(&line, "noise", (int64_t)s->counts.noise);
    facts_text_puts(&line, "\"counts\":{");
    for (facts_verdict v = 0; v < FACTS_VERDICT_COUNT; v++)
        if (facts_tally_of(&s->tally, v))
            facts_text_member_int(&line, facts_verdict_name(v),
                                  (int64_t)facts_tally_of(&s->tally, v));
    facts_text_close(&line);
    facts_text_puts(&line, "}}");
    if (!facts_writer_line(s->writer, line.data, line.length) && !s->counts.record_failed) {
        s->counts.record_failed = true;
        snprintf(s->counts.trouble, sizeof s->counts.trouble, "%s", facts_writer_error(s->writer));
    }
    facts_text_free(&line);
}
