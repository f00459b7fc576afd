#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "session_parts.h"
#include "suites/planned_cases.h"

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
