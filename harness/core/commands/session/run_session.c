#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "builds/home.h"
#include "record/text.h"
#include "session.h"
#include "suites/planned_cases.h"
#include "words/case_text.h"

/* A session's record: its path, its first line and its last. */

#define GROUPS_MAX 256
#define GROUP_TEXT_MAX 400

#define DAYS_KEPT 30.0 /* of a record that nobody named */

static void forget_if_old(void *now, const char *path)
{
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISREG(info.st_mode) &&
        difftime(*(const time_t *)now, info.st_mtime) > DAYS_KEPT * 86400.0)
        (void)unlink(path);
}

static void forget_old_records(void)
{
    char folder[FACTS_PATH];
    time_t now = time(NULL);
    if (facts_cache_path("runs", folder))
        facts_find_paths(folder, "*.jsonl", forget_if_old, &now, NULL);
}

static bool choose_record(facts_session *s)
{
    char part[80];
    snprintf(part, sizeof part, "runs/%s.jsonl", s->run_id);
    if (s->options->output && !s->record[0])
        snprintf(s->record, sizeof s->record, "%s", s->options->output);
    if (s->record[0])
        return true;
    if (facts_cache_path(part, s->record) && facts_make_folders(s->record)) {
        forget_old_records();
        return true;
    }
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

/* Names the run, opens its record if it has one, and writes the first line. Returns 0, or 2 or 3
 * with a line on stderr. */
static int facts_session_open_record(facts_session *s)
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

/* Writes the last line. A failure is noted in `counts`. */
static void facts_session_end_record(facts_session *s)
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

/* Counts the rows of a resumed record together with those of this run. */

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

/* A row of the record, from this run or an earlier one. */
static bool recount_row(void *context, const facts_line *line)
{
    recount *r = context;
    facts_session *s = r->session;
    char name[FACTS_NAME_MAX], build[64], device[128];
    if (line->kind != FACTS_LINE_ROW ||
        !facts_json_string(facts_line_get(line, "case"), name, sizeof name) ||
        !facts_json_string(facts_line_get(line, "build"), build, sizeof build) ||
        !facts_json_string(facts_line_get(line, "device"), device, sizeof device))
        return true;
    const index_entry *found =
        bsearch(&(index_entry){ .name = name }, r->index, s->work_count, sizeof *r->index, by_name);
    facts_verdict verdict = facts_verdict_parse(facts_line_get(line, "verdict"));
    const size_t target = facts_targets_find(&s->targets, build, device);
    if (!found || verdict == FACTS_VERDICT_COUNT || target == s->targets.count)
        return true;
    facts_expected_row expected = { .unexpected = false };
    s->order.expect(s, target, found->work, verdict, line, &expected);
    facts_tally_add(&s->tally, target, found->work, line, verdict, &expected);
    return true;
}

/* After --resume the tally is of the whole record, not only of this run. False: errno has the
 * reason. */
static bool facts_session_recount(facts_session *s)
{
    recount r = { .session = s, .index = calloc(s->work_count + 1, sizeof *r.index) };
    facts_tally_free(&s->tally);
    facts_tally_init(&s->tally, s->targets.at, s->targets.count, s->work, s->work_count);
    for (size_t i = 0; i < s->work_count; i++)
        r.index[i] = (index_entry){ s->work[i].name, i };
    qsort(r.index, s->work_count, sizeof *r.index, by_name);
    const bool read = facts_resume_rows(s->resume, recount_row, &r);
    free(r.index);
    return read;
}

/* Adds work while a session runs. */

/* Makes room after the last. */
static void append(facts_session *s)
{
    s->work = facts_grow(s->work, s->work_count, sizeof *s->work);
    if (s->tally.cells)
        facts_tally_grow(&s->tally, s->work, s->work_count + 1);
    s->work[s->work_count++].name = NULL;
    s->order.work = s->work;
    s->order.work_count = s->work_count;
}

/* Cases that are added together are asked in the order of their places. */
static size_t take_lowest(facts_session *s)
{
    size_t lowest = 0;
    for (size_t i = 1; i < s->vacant_count; i++)
        if (s->vacant[i] < s->vacant[lowest])
            lowest = i;
    size_t place = s->vacant[lowest];
    s->vacant[lowest] = s->vacant[--s->vacant_count];
    return place;
}

size_t facts_session_add(facts_session *s, const facts_work *work)
{
    char *name = strdup(work->name); /* `work` may be in the list that grows */
    if (!s->vacant_count)
        append(s);
    size_t place = s->vacant_count ? take_lowest(s) : s->work_count - 1;
    s->work[place] = *work;
    s->work[place].name = name;
    return place;
}

/* Frees the place of this work, all of whose rows are written (on_free). */
static void facts_session_vacate(facts_session *s, size_t work)
{
    facts_tally_retire(&s->tally, work);
    free((char *)s->work[work].name);
    s->work[work].name = NULL;
    s->vacant = facts_grow(s->vacant, s->vacant_count, sizeof *s->vacant);
    s->vacant[s->vacant_count++] = work;
}

bool facts_suite_dir(char out[FACTS_PATH])
{
    if (facts_home_path("cases", out))
        return true;
    fputs("facts: the folder cases/ was not found; set FACTS_HOME to the project's folder\n",
          stderr);
    return false;
}

int facts_session_jobs(const facts_options *o)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return o->jobs > 0 ? o->jobs : cores < 1 ? 1 : (int)cores;
}

static bool in_shard(const facts_options *options, const char *name)
{
    if (!options->shards)
        return true;
    return XXH64(name, strlen(name), 0) % (uint64_t)options->shards ==
           (uint64_t)(options->shard - 1);
}

/* The shard's cases. Workers, record and tally all point at the names of the list. */
static void take_shard(facts_session *s)
{
    s->all_count = facts_cases_count(s->cases);
    s->work = calloc(s->all_count + 1, sizeof *s->work);
    for (size_t i = 0; i < s->all_count; i++) {
        const facts_planned planned = facts_cases_at(s->cases, i);
        if (in_shard(s->options, planned.name))
            s->work[s->work_count++] = (facts_work){ .name = planned.name,
                                                     .group = planned.group,
                                                     .calls = planned.calls,
                                                     .expect = planned.expect };
    }
}

int facts_session_cases(facts_session *s, const char *const *texts, size_t count)
{
    char folder[FACTS_PATH];
    facts_error error = { 0 };
    if (!facts_suite_dir(folder))
        return FACTS_EXIT_ENVIRONMENT;
    const facts_choice choice = { .where = s->options->where, .with = s->options->with };
    int status = facts_cases_expand(s->call->driver->language, &s->cases, texts, count, folder,
                                    &choice, &error);
    if (status != 0)
        return facts_complain(status, "%s", error.text);
    facts_expectations_suites(texts, count, s->suites);
    facts_cases_hash(s->cases, s->suite_hash);
    take_shard(s);
    if (!s->work_count)
        return facts_complain(FACTS_EXIT_NOTHING, "facts: no case is selected");
    return FACTS_EXIT_OK;
}

/* A requested GPU is not replaced without a message. */
static int check_oracle(const facts_session *s)
{
    const char *oracle = s->options->oracle;
    for (size_t i = 0; oracle && strcmp(oracle, "cpu") != 0 && i < s->targets.count; i++)
        if (s->targets.at[i].kind != FACTS_TARGET_GPU)
            return facts_complain(
                FACTS_EXIT_BAD_INPUT,
                "facts: --oracle %s: %s is no GPU that can compute the reference; use --oracle cpu",
                oracle, s->targets.at[i].device);
    return FACTS_EXIT_OK;
}

int facts_session_targets(facts_session *s, const char *cudnn, const char *devices)
{
    facts_error note = { 0 }, message = { 0 };
    const unsigned flags =
        FACTS_RESOLVE_INDEX | (s->options->pinned_only ? FACTS_RESOLVE_PINNED : 0);
    int status = facts_targets_resolve(&s->targets, cudnn ? cudnn : "default", flags, devices,
                                       &note, &message);
    if (status != 0)
        fprintf(stderr, "facts: %s\n", message.text);
    else if (note.text[0] && !s->options->json)
        fprintf(stderr, "facts: %s\n", note.text);
    if (status == 0 && s->options->cudnn &&
        facts_targets_of(&s->targets, FACTS_TARGET_CPU) == s->targets.count)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts: --device cpu runs no cuDNN: leave out "
                                                    "--cudnn, or name a GPU or a described device");
    size_t needs = 0;
    for (size_t i = 0; i < s->targets.count; i++)
        needs += s->targets.at[i].build.needs_nvrtc;
    if (status == 0 && s->options->nvrtc && !needs)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts: --nvrtc %s: cuDNN 9.21 and newer have NVRTC inside",
                              s->options->nvrtc);
    return status != 0 ? status : check_oracle(s);
}

/* Both. */
static int facts_session_prepare(facts_session *s, const char *const *texts, size_t count,
                                 const char *cudnn, const char *devices)
{
    int status = facts_session_cases(s, texts, count);
    return status == FACTS_EXIT_OK ? facts_session_targets(s, cudnn, devices) : status;
}

bool facts_find_worker(char out[FACTS_PATH])
{
    const char *given = getenv("FACTS_WORKER");
    char folder[FACTS_PATH];
    out[0] = '\0';
    if (given && *given)
        snprintf(out, FACTS_PATH, "%s", given);
    else if (facts_program_dir(folder))
        facts_join(out, folder, "facts-worker");
    if (access(out, X_OK) == 0)
        return true;
    fprintf(stderr, "facts: the worker %s: %s; build it (./facts does) or set FACTS_WORKER\n", out,
            strerror(errno));
    return false;
}

static void count_plans(facts_plan_counts *counts, const facts_line *row)
{
    bool loaded = false;
    facts_json_bool(facts_line_get(row, "plan_loaded"), &loaded);
    const facts_span ms = facts_line_get(row, "plan_ms");
    const bool made = !loaded && ms.at && facts_json_is(facts_line_get(row, "backend"), "cudnn");
    counts->loaded += loaded;
    counts->compiled += made;
    counts->ms += made ? strtod(ms.at, NULL) : 0;
    const facts_span why = facts_line_get(row, "not_loaded");
    if (why.at && counts->not_loaded++ == 0)
        facts_json_string(why, counts->why, sizeof counts->why);
    const facts_span lost = facts_line_get(row, "not_kept");
    if (lost.at && counts->not_kept++ == 0)
        facts_json_string(lost, counts->why_not_kept, sizeof counts->why_not_kept);
}

int facts_session_load_callers(facts_session *s)
{
    facts_error error;
    char path[FACTS_PATH];
    const facts_language *language = s->call->driver->language;
    return language->known && facts_made_path("claims", path) &&
                   !facts_callers_load(&s->callers, language, path, &error)
               ? facts_complain(FACTS_EXIT_BAD_INPUT, "facts: %s", error.text)
               : FACTS_EXIT_OK;
}

/* A row with the rules of other projects that refuse its case, which no record has. */
static void print_row(const facts_session *s, const facts_outcome *outcome)
{
    facts_text callers = { 0 };
    size_t length = outcome->length;
    if (s->callers.count && outcome->text[length - 1] == '}') {
        facts_text_puts(&callers, ",");
        facts_session_callers(s, outcome->target, outcome->work, NULL, &callers);
        facts_text_close(&callers);
        length--;
    }
    fwrite(outcome->text, 1, length, stdout);
    puts(callers.data ? callers.data : "");
    facts_text_free(&callers);
}

static void on_row(void *context, const facts_outcome *outcome)
{
    facts_session *s = context;
    count_plans(&s->plans, outcome->line);
    s->progress.group = s->work[outcome->work].group;
    facts_tally_add(&s->tally, outcome->target, outcome->work, outcome->line, outcome->verdict,
                    outcome->expected);
    s->progress.yes += facts_verdict_is_good(outcome->verdict);
    s->progress.no += outcome->verdict == FACTS_VERDICT_UNSUPPORTED;
    s->progress.findings += outcome->expected->unexpected;
    if (s->options->json)
        print_row(s, outcome);
    if (s->on_row)
        s->on_row(s, outcome);
}

/* A version without measured error constants is compared with those of the nearest version: the
 * worker reports which. */
static void note_calibration(facts_session *s, const facts_line *ready)
{
    char version[16], used[16], words[80];
    if (!facts_json_string(facts_line_get(ready, "cudnn"), version, sizeof version) ||
        !facts_json_string(facts_line_get(ready, "calibration"), used, sizeof used) ||
        strcmp(version, used) == 0)
        return;
    size_t n = strlen(s->calibration);
    snprintf(words, sizeof words, "%s was not measured, %s is the nearest", version, used);
    if (!strstr(s->calibration, words))
        snprintf(s->calibration + n, sizeof s->calibration - n, "%s%s", n ? "; " : "", words);
}

static void on_ready(void *context, size_t target, const char *device, const facts_line *ready)
{
    facts_session *s = context;
    int64_t sm;
    snprintf(s->targets.at[target].device, sizeof s->targets.at[target].device, "%s", device);
    if (facts_json_int(facts_line_get(ready, "sm"), &sm) && sm >= 0 && sm < 10000)
        s->sms[target] = (int)sm;
    if (s->task == FACTS_TASK_RUN)
        note_calibration(s, ready);
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

void facts_session_callers(const facts_session *s, size_t target, size_t work, const char *prefix,
                           facts_text *out)
{
    facts_case c;
    facts_error error;
    char sm[12];
    const facts_target *t = &s->targets.at[target];
    const facts_subject subject = { .c = &c, .cudnn = t->build.version, .sm = sm };
    if (t->kind == FACTS_TARGET_CPU ||
        !facts_case_read(s->call->driver->language, &c, s->work[work].name, &error))
        return;
    snprintf(sm, sizeof sm, "%d", s->sms[target] ? s->sms[target] : t->described.sm);
    prefix ? facts_callers_lines(out, prefix, &s->callers, &subject)
           : facts_callers_member(out, &s->callers, &subject);
}

static void expect(void *context, size_t target, size_t work, facts_verdict verdict,
                   const facts_line *row, facts_expected_row *out)
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

static void on_done(void *context, size_t work)
{
    facts_session *s = context;
    s->on_done(s, work);
}

static void on_free(void *context, size_t work)
{
    facts_session_vacate(context, work);
}

static bool another_round(void *context, size_t work, int round)
{
    facts_session *s = context;
    return s->another_round(s, work, round);
}

static void on_turn(void *context, size_t target, size_t work, facts_span turn)
{
    facts_session *s = context;
    s->on_turn(s, target, work, turn);
}

static void fill_order(facts_session *s)
{
    const facts_options *o = s->options;
    const char *fault = getenv("FACTS_FAULT");
    s->order = (facts_order){
        .task = s->task,
        .language = s->call->driver->language,
        .unguarded = s->unguarded,
        .explain = o->explain,
        .trace = o->trace,
        .first_bad_only = o->first_bad_only,
        .fail_fast = o->fail_fast,
        .dump = o->dump ? o->dump : "",
        .standalone = o->standalone ? o->standalone : "",
        .expected = o->frontend,
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
        .on_done = s->on_done ? on_done : NULL,
        .on_free = s->reuses_places ? on_free : NULL,
        .another_round = s->another_round ? another_round : NULL,
        .on_turn = on_turn,
        .on_row = on_row,
        .on_ready = on_ready,
        .on_tick = on_tick,
        .expect = expect,
    };
}

int facts_session_run(facts_session *s)
{
    facts_error error = { 0 };
    if (!facts_find_worker(s->worker))
        return FACTS_EXIT_ENVIRONMENT;
    if (facts_expectations_load(&s->expectations, s->call->driver->language, s->suites, &error) !=
        0)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "%s", error.text);
    facts_expectations_unguard(s->expectations, s->unguarded);
    s->sms = calloc(s->targets.count, sizeof *s->sms);
    facts_tally_init(&s->tally, s->targets.at, s->targets.count, s->work, s->work_count);
    int status = facts_session_open_record(s);
    if (status != 0)
        return status;
    fill_order(s);
    facts_progress_start(&s->progress, s->options->json && !isatty(2));
    status = facts_supervise(&s->order, &s->counts);
    facts_progress_end(&s->progress);
    if (status == 0 && s->resume && !facts_session_recount(s))
        status = facts_complain(FACTS_EXIT_ENVIRONMENT, "facts: %s: cannot be read again: %s",
                                s->record, strerror(errno));
    if (s->writer && s->before_end)
        s->before_end(s);
    if (s->writer)
        facts_session_end_record(s);
    if (!facts_writer_close(s->writer, &error) && !s->counts.record_failed) {
        s->counts.record_failed = true;
        snprintf(s->counts.trouble, sizeof s->counts.trouble, "%.600s", error.text);
    }
    s->writer = NULL;
    if (s->counts.trouble[0])
        fprintf(stderr, "facts: %s\n", s->counts.trouble);
    if (s->calibration[0])
        fprintf(stderr, "facts: error constants: cuDNN %s\n", s->calibration);
    fflush(stdout);
    bool whole = status == 0 && !s->more && !s->options->where && !s->options->shards;
    s->stale =
        whole ? facts_expectations_stale(s->expectations, &s->tally, s->sms, s->task, stderr) : 0;
    return status;
}

int facts_session_ask(facts_session *s, const char *const *texts, size_t count, const char *cudnn,
                      const char *devices)
{
    int status = facts_session_prepare(s, texts, count, cudnn, devices);
    return status == FACTS_EXIT_OK ? facts_session_run(s) : status;
}

int facts_session_broken(const facts_session *s)
{
    if (s->counts.interrupted)
        return FACTS_EXIT_INTERRUPTED;
    return s->counts.record_failed ? FACTS_EXIT_ENVIRONMENT : FACTS_EXIT_OK;
}

int facts_session_exit(const facts_session *s)
{
    int broken = facts_session_broken(s);
    if (broken != FACTS_EXIT_OK)
        return broken;
    if (facts_tally_unexpected(&s->tally) || s->stale)
        return FACTS_EXIT_FINDINGS;
    if (s->counts.target_failed || facts_tally_of(&s->tally, FACTS_VERDICT_INCONCLUSIVE))
        return FACTS_EXIT_ENVIRONMENT;
    if (s->counts.done < s->counts.planned || facts_tally_missing(&s->tally))
        return FACTS_EXIT_INCOMPLETE;
    return FACTS_EXIT_OK;
}

void facts_session_free(facts_session *s)
{
    facts_writer_close(s->writer, NULL);
    facts_resume_free(s->resume);
    facts_tally_free(&s->tally);
    facts_expectations_free(s->expectations);
    facts_callers_free(&s->callers);
    facts_targets_free(&s->targets);
    facts_cases_destroy(s->cases);
    for (size_t i = 0; s->more && i < s->work_count; i++)
        free((char *)s->work[i].name); /* facts_session_add's */
    free(s->sms);
    free(s->vacant);
    free(s->work);
}
