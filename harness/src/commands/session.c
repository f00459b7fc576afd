#include "session.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "../record/text.h"

#define GROUPS_MAX 256
#define GROUP_TEXT_MAX 400

bool facts_suite_dir(char out[FACTS_PATH])
{
    if (facts_home_path("cases", out))
        return true;
    fputs("facts: the folder cases/ was not found; set FACTS_HOME to the project's folder\n", stderr);
    return false;
}

int facts_gpu_count(void)
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

static int no_memory(void)
{
    fputs("facts: out of memory\n", stderr);
    return FACTS_EXIT_ENVIRONMENT;
}

static bool in_shard(const facts_options *options, const char *name)
{
    if (!options->shards)
        return true;
    return XXH64(name, strlen(name), 0) % (uint64_t)options->shards == (uint64_t)(options->shard - 1);
}

/* Names of the shard's cases, kept in one block: workers, record and tally all point at them. */
static bool keep_names(facts_session *s)
{
    facts_text names = { 0 };
    char name[FACTS_NAME_MAX];
    s->all_count = facts_cases_count(s->cases);
    s->work = calloc(s->all_count + 1, sizeof *s->work);
    if (!s->work)
        return false;
    for (size_t i = 0; i < s->all_count; i++) {
        const facts_planned *planned = facts_cases_at(s->cases, i);
        facts_case_name(&planned->c, name);
        if (!in_shard(s->options, name))
            continue;
        s->work[s->work_count++] =
            (facts_work){ .group = planned->group ? planned->group : "", .expect = planned->expect ? planned->expect : "" };
        facts_text_add(&names, name, strlen(name) + 1);
    }
    s->names = names.data;
    if (names.failed || !names.data) /* none: nothing of the shard, which the caller says */
        return !names.failed;
    const char *at = names.data;
    for (size_t i = 0; i < s->work_count; i++, at += strlen(at) + 1)
        s->work[i].name = at;
    return true;
}

int facts_session_cases(facts_session *s, const char *const *texts, size_t count)
{
    char folder[FACTS_PATH];
    facts_error error = { .text = "" };
    if (!facts_suite_dir(folder))
        return FACTS_EXIT_ENVIRONMENT;
    const facts_choice choice = { .where = s->options->where, .with = s->options->with };
    int status = facts_cases_expand(&s->cases, texts, count, folder, &choice, &error);
    if (status != 0) {
        fprintf(stderr, "%s\n", error.text);
        return status;
    }
    facts_cases_hash(s->cases, s->suite_hash);
    if (!keep_names(s))
        return no_memory();
    if (!s->work_count) {
        fputs("facts: no case is selected\n", stderr);
        return FACTS_EXIT_NOTHING;
    }
    return FACTS_EXIT_OK;
}

int facts_session_targets(facts_session *s, const char *cudnn, const char *devices)
{
    facts_message note = { "" }, message = { "" };
    int status = facts_targets_resolve(&s->targets, cudnn, devices, &note, &message);
    if (status != 0)
        fprintf(stderr, "facts: %s\n", message.text);
    else if (note.text[0] && !s->options->json)
        fprintf(stderr, "facts: %s\n", note.text);
    return status;
}

static bool find_worker(facts_session *s)
{
    const char *given = getenv("FACTS_WORKER");
    char folder[FACTS_PATH];
    if (given && *given)
        snprintf(s->worker, sizeof s->worker, "%s", given);
    else if (facts_program_dir(folder))
        facts_join(s->worker, folder, "facts-worker");
    if (access(s->worker, X_OK) == 0)
        return true;
    fprintf(stderr, "facts: the worker %s: %s; build it (./facts does) or set FACTS_WORKER\n", s->worker, strerror(errno));
    return false;
}

static bool make_folders(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        bool ok = mkdir(path, 0777) == 0 || errno == EEXIST;
        *slash = '/';
        if (!ok)
            return false;
    }
    return true;
}

static bool choose_record(facts_session *s)
{
    char part[80];
    snprintf(part, sizeof part, "runs/%s.jsonl", s->run_id);
    if (s->options->output && !s->record[0])
        snprintf(s->record, sizeof s->record, "%s", s->options->output);
    if (s->record[0])
        return true;
    if (facts_cache_path(part, s->record) && make_folders(s->record))
        return true;
    fprintf(stderr, "facts: %s: %s; say where the record goes with -o FILE\n", s->record, strerror(errno));
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
    snprintf(s->run_id + n, sizeof s->run_id - n, "-%03ld-%d", now.tv_nsec / 1000000, (int)getpid());
}

static void add_strings(facts_text *line, const char *key, char *const *strings, int count)
{
    facts_text_format(line, "\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        if (i)
            facts_text_puts(line, ",");
        facts_text_json(line, strings[i], strlen(strings[i]));
    }
    facts_text_puts(line, "],");
}

static void add_targets(const facts_session *s, facts_text *line)
{
    static const char *const kinds[] = { "gpu", "described", "cpu" };
    facts_text_puts(line, "\"targets\":[");
    for (size_t i = 0; i < s->targets.count; i++) {
        facts_text_puts(line, i ? ",{" : "{");
        facts_text_member(line, "build", s->targets.at[i].build.name);
        facts_text_member(line, "device", s->targets.at[i].device);
        facts_text_member(line, "kind", kinds[s->targets.at[i].kind]);
        facts_text_close(line);
    }
    facts_text_puts(line, "],");
}

/* Each group of the suite with why it exists: bounded, because a record's line is. */
static void add_groups(const facts_session *s, facts_text *line)
{
    const char *seen[GROUPS_MAX];
    size_t count = 0;
    facts_text_puts(line, "\"groups\":{");
    for (size_t i = 0; i < s->all_count && count < GROUPS_MAX; i++) {
        const facts_planned *planned = facts_cases_at(s->cases, i);
        bool known = !planned->group || !*planned->group;
        for (size_t k = count; k > 0 && !known; k--)
            known = strcmp(seen[k - 1], planned->group) == 0;
        if (known)
            continue;
        const char *why = planned->why ? planned->why : "";
        facts_text_puts(line, count ? "," : "");
        facts_text_json(line, planned->group, strnlen(planned->group, GROUP_TEXT_MAX));
        facts_text_puts(line, ":");
        facts_text_json(line, why, strnlen(why, GROUP_TEXT_MAX));
        seen[count++] = planned->group;
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
    facts_text_member(&line, "started", started);
    facts_text_member(&line, "do", tasks[s->task]);
    add_strings(&line, "command", s->argv, s->argc);
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
    bool ok = !line.failed && facts_writer_line(s->writer, line.data, line.length);
    facts_text_free(&line);
    return ok;
}

static int open_record(facts_session *s)
{
    char error[FACTS_PATH + 256] = "", started[32];
    name_run(s, started);
    if (!s->keep_record && !s->options->output && !s->record[0])
        return FACTS_EXIT_OK;
    if (!choose_record(s))
        return FACTS_EXIT_ENVIRONMENT;
    int status = 0;
    if (s->options->resume && !s->more)
        status = facts_resume_read(&s->resume, s->record, s->suite_hash, error, sizeof error);
    facts_open_mode mode = s->options->resume ? FACTS_OPEN_RESUME : s->options->overwrite ? FACTS_OPEN_REPLACE : FACTS_OPEN_NEW;
    if (status == 0)
        status = facts_writer_open(&s->writer, s->record, mode, error, sizeof error);
    if (status == 0 && !write_run(s, started)) {
        snprintf(error, sizeof error, "%s", facts_writer_error(s->writer));
        status = FACTS_EXIT_ENVIRONMENT;
    }
    if (status != 0)
        fprintf(stderr, "facts: %s\n", error);
    return status;
}

static void on_row(void *context, const facts_outcome *outcome)
{
    facts_session *s = context;
    facts_tally_add(&s->tally, outcome->target, outcome->work, outcome->line, outcome->verdict, outcome->expected);
    s->progress.yes += outcome->verdict == FACTS_VERDICT_PASS;
    s->progress.no += outcome->verdict == FACTS_VERDICT_UNSUPPORTED;
    s->progress.findings += outcome->expected->unexpected;
    if (s->options->json) {
        fwrite(outcome->text, 1, outcome->length, stdout);
        fputc('\n', stdout);
    }
    if (s->on_row)
        s->on_row(s, outcome);
}

static void on_ready(void *context, size_t target, const char *device, const facts_line *ready)
{
    facts_session *s = context;
    int64_t sm;
    snprintf(s->targets.at[target].device, sizeof s->targets.at[target].device, "%s", device);
    if (facts_slice_int(facts_line_get(ready, "sm"), &sm) && sm >= 0 && sm < 10000)
        s->sms[target] = (int)sm;
    if (s->on_ready)
        s->on_ready(s, target, ready);
}

static void on_tick(void *context, size_t done, size_t planned, int live)
{
    facts_session *s = context;
    if (s->show)
        s->show(s, live);
    else
        facts_progress_show(&s->progress, done, planned, live);
}

static void expect(void *context, size_t target, size_t work, facts_verdict verdict, const facts_line *row, facts_expected_row *out)
{
    facts_session *s = context;
    const facts_target *t = &s->targets.at[target];
    bool measured = s->task == FACTS_TASK_RUN && t->kind != FACTS_TARGET_DESCRIBED;
    int sm = s->sms[target] ? s->sms[target] : t->described.sm;
    facts_expectations_judge(s->expectations, t, sm, &s->work[work], measured, verdict, row, out);
}

static bool more(void *context)
{
    facts_session *s = context;
    return s->more(s);
}

static void write_end(facts_session *s)
{
    facts_text line = { 0 };
    bool complete = s->counts.done == s->counts.planned && !s->counts.record_failed;
    facts_text_puts(&line, "{\"end\":{");
    facts_text_member(&line, "run", s->run_id);
    facts_text_format(&line, "\"complete\":%s,", complete ? "true" : "false");
    facts_text_member_int(&line, "rows", (int64_t)s->counts.rows);
    facts_text_member_int(&line, "noise", (int64_t)s->counts.noise);
    facts_text_puts(&line, "\"counts\":{");
    for (facts_verdict v = 0; v < FACTS_VERDICT_COUNT; v++)
        if (facts_tally_of(&s->tally, v))
            facts_text_member_int(&line, facts_verdict_name(v), (int64_t)facts_tally_of(&s->tally, v));
    facts_text_close(&line);
    facts_text_puts(&line, "}}");
    if (!line.failed && !facts_writer_line(s->writer, line.data, line.length) && !s->counts.record_failed) {
        s->counts.record_failed = true;
        snprintf(s->counts.trouble, sizeof s->counts.trouble, "%s", facts_writer_error(s->writer));
    }
    facts_text_free(&line);
}

typedef struct index_entry {
    const char *name;
    size_t work;
} index_entry;

typedef struct recount {
    facts_session *session;
    index_entry *index;
} recount;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const index_entry *)a)->name, ((const index_entry *)b)->name);
}

/* A row of the record, this run's or an earlier one's. Of a case asked twice the later rows count: the first row of an attempt that
 * follows a finished case starts it anew. */
static bool recount_row(void *context, const facts_line *line)
{
    recount *r = context;
    facts_session *s = r->session;
    char name[FACTS_NAME_MAX], build[64], device[128];
    if (line->kind != FACTS_LINE_ROW || !facts_slice_string(facts_line_get(line, "case"), name, sizeof name) ||
        !facts_slice_string(facts_line_get(line, "build"), build, sizeof build) ||
        !facts_slice_string(facts_line_get(line, "device"), device, sizeof device))
        return true;
    const index_entry *found = bsearch(&(index_entry){ .name = name }, r->index, s->work_count, sizeof *r->index, by_name);
    facts_verdict verdict = facts_verdict_parse(facts_line_get(line, "verdict"));
    if (!found || verdict == FACTS_VERDICT_COUNT)
        return true;
    for (size_t t = 0; t < s->targets.count; t++) {
        if (strcmp(s->targets.at[t].build.name, build) != 0 || strcmp(s->targets.at[t].device, device) != 0)
            continue;
        facts_expected_row expected = { .unexpected = false };
        expect(s, t, found->work, verdict, line, &expected);
        facts_tally_add(&s->tally, t, found->work, line, verdict, &expected);
    }
    return true;
}

/* After --resume the tally is of the whole record, not of this run's part. */
static bool tally_record(facts_session *s)
{
    recount r = { .session = s, .index = calloc(s->work_count + 1, sizeof *r.index) };
    facts_tally_free(&s->tally);
    if (!r.index || !facts_tally_init(&s->tally, s->targets.at, s->targets.count, s->work, s->work_count)) {
        free(r.index);
        return false;
    }
    for (size_t i = 0; i < s->work_count; i++)
        r.index[i] = (index_entry){ s->work[i].name, i };
    qsort(r.index, s->work_count, sizeof *r.index, by_name);
    facts_resume_rows(s->resume, recount_row, &r);
    free(r.index);
    return true;
}

static void fill_order(facts_session *s)
{
    const facts_options *o = s->options;
    const char *fault = getenv("FACTS_FAULT");
    s->order = (facts_order){
        .task = s->task,
        .explain = o->explain,
        .trace = o->trace,
        .first_bad_only = o->first_bad_only,
        .fail_fast = o->fail_fast,
        .dump = o->dump ? o->dump : "",
        .plan_dir = o->plan_dir ? o->plan_dir : "",
        .oracle = o->oracle ? o->oracle : "",
        .targets = s->targets.at,
        .target_count = s->targets.count,
        .work = s->work,
        .work_count = s->work_count,
        .jobs = o->jobs,
        .timeout_s = o->timeout_s,
        .worker = s->worker,
        .fault = fault ? fault : "",
        .run_id = s->run_id,
        .writer = s->writer,
        .resume = s->resume,
        .hash_libraries = s->writer != NULL,
        .context = s,
        .more = s->more ? more : NULL,
        .on_row = on_row,
        .on_ready = on_ready,
        .on_tick = on_tick,
        .expect = expect,
    };
}

int facts_session_run(facts_session *s)
{
    facts_message message = { "" };
    char error[FACTS_PATH + 256] = "";
    if (!find_worker(s))
        return FACTS_EXIT_ENVIRONMENT;
    if (facts_expectations_load(&s->expectations, &message) != 0) {
        fprintf(stderr, "%s\n", message.text);
        return FACTS_EXIT_BAD_INPUT;
    }
    s->sms = calloc(s->targets.count, sizeof *s->sms);
    if (!s->sms || !facts_tally_init(&s->tally, s->targets.at, s->targets.count, s->work, s->work_count))
        return no_memory();
    int status = open_record(s);
    if (status != 0)
        return status;
    fill_order(s);
    facts_progress_start(&s->progress, s->options->json && !isatty(2));
    status = facts_supervise(&s->order, &s->counts);
    facts_progress_end(&s->progress);
    if (status == 0 && s->resume && !tally_record(s))
        status = no_memory();
    if (s->writer)
        write_end(s);
    if (!facts_writer_close(s->writer, error, sizeof error) && !s->counts.record_failed) {
        s->counts.record_failed = true;
        snprintf(s->counts.trouble, sizeof s->counts.trouble, "%.600s", error);
    }
    s->writer = NULL;
    if (s->counts.trouble[0])
        fprintf(stderr, "facts: %s\n", s->counts.trouble);
    fflush(stdout);
    return status;
}

int facts_session_exit(const facts_session *s)
{
    if (s->counts.interrupted)
        return FACTS_EXIT_INTERRUPTED;
    if (s->counts.record_failed)
        return FACTS_EXIT_ENVIRONMENT;
    if (facts_tally_unexpected(&s->tally))
        return FACTS_EXIT_FINDINGS;
    if (s->counts.target_failed || facts_tally_of(&s->tally, FACTS_VERDICT_INCONCLUSIVE))
        return FACTS_EXIT_ENVIRONMENT;
    if (s->counts.done < s->counts.planned || facts_tally_missing(&s->tally))
        return FACTS_EXIT_INCOMPLETE;
    return FACTS_EXIT_OK;
}

void facts_session_free(facts_session *s)
{
    char ignored[8];
    facts_writer_close(s->writer, ignored, sizeof ignored);
    facts_resume_free(s->resume);
    facts_tally_free(&s->tally);
    facts_expectations_free(s->expectations);
    facts_targets_free(&s->targets);
    facts_cases_destroy(s->cases);
    for (size_t i = 0; s->more && i < s->work_count; i++)
        free((char *)s->work[i].name); /* facts_session_add's */
    free(s->sms);
    free(s->work);
    free(s->names);
}
