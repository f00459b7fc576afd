/* facts bisect: between which versions of cuDNN an answer changes. The search says which versions
 * it needs; they are asked in rounds, each a session of one case on as many targets. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "commands/session/inputs.h"
#include "commands/session/report_package.h"
#include "commands/session/session.h"
#include "record/text.h"
#include "search/bisect.h"
#include "search/reported.h"
#include "words/intern.h"

/* A bisection: one case, one device, and the answers of several versions. */
#define FACTS_BISECT_ATTEMPTS 2

typedef struct facts_bisected {
    facts_target target; /* dir empty: not installed yet */
    facts_reported reported[FACTS_BISECT_ATTEMPTS];
    bool open[FACTS_BISECT_ATTEMPTS], known[FACTS_BISECT_ATTEMPTS];
    char why[400]; /* it could not be asked at all */
} facts_bisected;

typedef struct facts_bisection {
    const facts_options *options;
    const facts_invocation *call;
    facts_case c;
    char name[FACTS_NAME_MAX];
    const char *device_word; /* as --device has it */
    facts_task task;
    facts_by by;
    facts_bisected *at; /* owned; oldest first */
    size_t versions;
    bool dear[FACTS_BISECT_MOST]; /* would have to be installed */
    facts_intern *values;         /* what is compared; a value is its number */
    facts_bisect_result result;
    char device[112];  /* a GPU's name once it is known; empty before */
    size_t asked;      /* questions to workers */
    bool written;      /* the record exists; new lines are appended */
    bool cut_off;      /* the record that is resumed has no end */
    char offline[400]; /* why a version that nobody named could not be installed */
    char wider[80];    /* "9.8.0..9.28.1": the versions that could be named; empty: they were */
} facts_bisection;

/* Passes the result of a bisection to the report package: JSON lines, the summary first, then each
 * version, oldest first. */

/* "9.25.1". */
static const char *facts_bisection_version(const facts_bisection *b, size_t version)
{
    return b->at[version].target.build.version;
}

static void add_whole(facts_text *out, const facts_bisection *b)
{
    char shown[176];
    static const char *const outcomes[] = { "waiting", "nothing", "equal", "found" };
    facts_text_puts(out, "{");
    facts_text_member(out, "case", b->name);
    facts_text_member(out, "device", b->device[0] ? b->device : b->at[0].target.device);
    facts_target_shown(shown, &b->at[0].target);
    facts_text_member(out, "shown_device", b->device[0] ? b->device : shown);
    facts_text_member(out, "by", facts_by_word(b->by));
    facts_text_member(out, "outcome", outcomes[b->result.outcome]);
    facts_text_member(out, "asked_device", b->device_word);
    facts_text_member(out, "wider", b->wider);
    facts_text_member_bool(out, "ran", b->task == FACTS_TASK_RUN);
    facts_text_member_bool(out, "plan", b->options->plan);
    facts_text_member_bool(out, "all", b->options->all);
    facts_text_member_bool(out, "json", b->options->json);
    facts_text_member_bool(out, "whole", b->result.whole);
    facts_text_member_int(out, "first", (int64_t)b->result.first);
    facts_text_member_int(out, "last", (int64_t)b->result.last);
    facts_text_puts(out, "\"edges\":[");
    for (size_t i = 0; i < b->result.edges; i++)
        facts_text_format(out, "%s[%zu,%zu]", i ? "," : "", b->result.edge[i].before,
                          b->result.edge[i].after);
    facts_text_puts(out, "]}\n");
}

static void add_version(facts_text *out, const facts_bisection *b, size_t version)
{
    const facts_bisected *v = &b->at[version];
    const facts_reported *reported = &v->reported[0];
    const char *const members[][2] = { { "cudnn", v->target.build.version },
                                       { "build", v->target.build.name },
                                       { "why", v->why },
                                       { "verdict", facts_verdict_name(reported->verdict) },
                                       { "backend", reported->backend },
                                       { "engines", reported->engines },
                                       { "knobs", reported->knobs },
                                       { "class", reported->class_word },
                                       { "text", reported->text },
                                       { "meaning", reported->meaning },
                                       { "forward", reported->forward },
                                       { "rule", reported->rule },
                                       { "remedy", reported->remedy },
                                       { "known", reported->known } };
    char value[FACTS_REPORTED_VALUE];
    facts_text_puts(out, "{");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        facts_text_member(out, members[i][0], members[i][1]);
    facts_text_member(out, "value", facts_reported_value(reported, b->by, value));
    facts_text_member(out, "again", facts_reported_value(&v->reported[1], b->by, value));
    facts_text_member_int(out, "engine", reported->engine);
    facts_text_member_bool(out, "asked", v->known[0]);
    facts_text_member_bool(out, "silent", b->result.state[version] == FACTS_BISECT_SILENT);
    facts_text_member_bool(out, "flaky", b->result.state[version] == FACTS_BISECT_FLAKY);
    facts_text_close(out);
    facts_text_puts(out, "\n");
}

static void write_all(const void *subject, FILE *file)
{
    const facts_bisection *b = subject;
    facts_text text = { 0 };
    add_whole(&text, b);
    for (size_t v = 0; v < b->versions; v++)
        add_version(&text, b, v);
    fwrite(text.data, 1, text.length, file);
    facts_text_free(&text);
}

static int facts_bisection_print(const facts_bisection *b)
{
    return facts_run_view("bisect", write_all, b);
}

#define EVERY_VERSION "9.0..9.999" /* that is here */
#define DEFAULT_DEVICE "h100-sxm"

/* One session: which versions it asks, by target. */
typedef struct bisect_round {
    facts_bisection *b;
    int attempt;
    size_t version[FACTS_BISECT_MOST];
    size_t targets;
    bool foreign; /* the GPU is another than the record's */
} bisect_round;

/* ---- questions and answers
 * -------------------------------------------------------------------------------------------------
 */

static bool ask(void *context, size_t version, int attempt, int *value)
{
    facts_bisection *b = context;
    facts_bisected *v = &b->at[version];
    char text[FACTS_REPORTED_VALUE];
    if (!v->known[attempt - 1]) {
        v->open[attempt - 1] = true;
        return false;
    }
    const facts_reported *reported = &v->reported[attempt - 1];
    *value = facts_reported_answers(reported)
                 ? (int)facts_intern_id(b->values, facts_reported_value(reported, b->by, text))
                 : FACTS_BISECT_NO_VALUE;
    return true;
}

static void session_row(facts_session *session, const facts_outcome *outcome)
{
    bisect_round *round = session->context;
    facts_line line;
    facts_line_parse(&line, outcome->text, outcome->length);
    facts_reported_row(&round->b->at[round->version[outcome->target]].reported[round->attempt - 1],
                       &line);
}

/* A GPU's name is known only now. */
static void session_ready(facts_session *session, size_t target, const facts_line *ready)
{
    bisect_round *round = session->context;
    const char *device = session->targets.at[target].device;
    (void)ready;
    round->foreign |= round->b->device[0] && strcmp(round->b->device, device) != 0;
    if (!round->b->device[0])
        snprintf(round->b->device, sizeof round->b->device, "%s", device);
}

static bool session_more(facts_session *session)
{
    (void)session;
    return false;
}

static void session_show(facts_session *session, int live)
{
    const bisect_round *round = session->context;
    char text[200];
    size_t used =
        (size_t)snprintf(text, sizeof text, "asking%s", round->attempt > 1 ? " again" : "");
    for (size_t i = 0; i < round->targets && used + 24 < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %s",
                                 facts_bisection_version(round->b, round->version[i]));
    if (live)
        facts_progress_say(&session->progress, text);
}

/* ---- builds that are not here yet
 * ------------------------------------------------------------------------------------------ */

static bool is_ready(const facts_build *build)
{
    return build->dir[0] && (!build->needs_nvrtc || build->nvrtc[0]);
}

static unsigned pinned(const facts_bisection *b)
{
    return b->options->pinned_only ? FACTS_RESOLVE_PINNED : 0;
}

/* Installs it (the installer says what and how large); of what cannot be had it is kept why. */
static void make_ready(facts_bisection *b, size_t version)
{
    facts_bisected *v = &b->at[version];
    facts_builds builds = { 0 };
    facts_error message = { 0 };
    if (is_ready(&v->target.build) || v->why[0])
        return;
    snprintf(v->why, sizeof v->why, "%s", b->offline);
    if (v->why[0])
        return;
    int status = facts_builds_ensure(&builds, v->target.build.name, pinned(b), NULL, &message);
    if (status == 0 && builds.count == 1 && is_ready(&builds.at[0])) {
        v->target.build = builds.at[0];
        v->target.content[0] = '\0'; /* it was of what could be installed */
    } else
        snprintf(v->why, sizeof v->why, "%.*s", (int)sizeof v->why - 1,
                 message.text[0] ? message.text : "it could not be installed");
    if (!b->options->cudnn) /* nobody asked for this version: the next one is not tried */
        snprintf(b->offline, sizeof b->offline, "%s", v->why);
    facts_builds_free(&builds);
}

/* ---- a round
 * ---------------------------------------------------------------------------------------------------------------
 */

static void gather(bisect_round *round, facts_session *session)
{
    facts_bisection *b = round->b;
    session->targets.at = calloc(b->versions, sizeof *session->targets.at);
    for (size_t i = 0; i < b->versions; i++) {
        facts_bisected *v = &b->at[i];
        if (!v->open[round->attempt - 1])
            continue;
        make_ready(b, i);
        v->open[round->attempt - 1] = false;
        v->known[round->attempt - 1] = true;
        v->reported[round->attempt - 1] = FACTS_REPORTED_NOTHING;
        if (v->why[0])
            continue;
        round->version[round->targets++] = i;
        session->targets.at[session->targets.count++] = v->target;
    }
}

static int run_session(bisect_round *round, facts_session *session)
{
    facts_bisection *b = round->b;
    const facts_work work = { .name = b->name, .group = "bisect", .expect = "" };
    if (round->attempt)
        facts_session_add(session, &work);
    int status = facts_session_run(session);
    b->asked += round->targets;
    b->written = true;
    if (round->foreign)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts: the record is of %s and this is another GPU; give another -o",
                              b->device);
    if (status != 0)
        return status;
    if (session->counts.interrupted)
        return FACTS_EXIT_INTERRUPTED;
    return session->counts.record_failed ? FACTS_EXIT_ENVIRONMENT : FACTS_EXIT_OK;
}

/* Nothing is left to ask of a record that was cut off: it gets its end. */
static void only_end(bisect_round *round, facts_session *session)
{
    session->targets.at = malloc(sizeof *session->targets.at);
    session->targets.at[session->targets.count++] = round->b->at[0].target;
}

/* Asks what is open of an attempt: the second in workers of its own. Attempt 0 asks nothing. */
static int ask_round(facts_bisection *b, int attempt)
{
    facts_options options = *b->options;
    bisect_round round = { .b = b, .attempt = attempt };
    options.json = false; /* rows are not the answer */
    options.explain = b->task != FACTS_TASK_RUN;
    options.resume |= b->written;
    facts_session session = { .options = &options,
                              .task = b->task,
                              .unguarded = true,
                              .call = b->call,
                              .more = session_more,
                              .show = session_show,
                              .on_row = session_row,
                              .on_ready = session_ready,
                              .context = &round };
    int status = FACTS_EXIT_OK;
    (attempt ? gather : only_end)(&round, &session);
    if (round.targets || !attempt)
        status = run_session(&round, &session);
    facts_session_free(&session);
    return status;
}

/* ---- the record that is resumed
 * -------------------------------------------------------------------------------------------- */

typedef struct loading {
    facts_bisection *b;
    char device[112]; /* as the record calls it */
    facts_validity validity;
} loading;

static bool find_device(void *context, const facts_line *line)
{
    loading *l = context;
    if (line->kind == FACTS_LINE_RUN || line->kind == FACTS_LINE_END)
        l->b->cut_off = line->kind == FACTS_LINE_RUN;
    if (line->kind == FACTS_LINE_TARGET &&
        facts_json_is(facts_line_get(line, "planned"), l->b->at[0].target.device))
        facts_json_string(facts_line_get(line, "device"), l->device, sizeof l->device);
    return true;
}

/* The first answer of a version is its first attempt, the next its second; no answer is none. */
static bool load_row(void *context, const facts_line *line)
{
    loading *l = context;
    bool more = false;
    if (!facts_validity_line(&l->validity, line) || line->kind != FACTS_LINE_ROW ||
        !facts_json_is(facts_line_get(line, "case"), l->b->name) ||
        !facts_json_is(facts_line_get(line, "device"), l->device))
        return true;
    facts_json_bool(facts_line_get(line, "more"), &more);
    for (size_t i = 0; i < l->b->versions; i++) {
        facts_bisected *v = &l->b->at[i];
        int attempt = v->known[0] ? 1 : 0;
        if (v->known[attempt] ||
            !facts_json_is(facts_line_get(line, "build"), v->target.build.name))
            continue;
        facts_reported_row(&v->reported[attempt], line);
        v->known[attempt] = !more && facts_reported_answers(&v->reported[attempt]);
        if (!more && !v->known[attempt])
            v->reported[attempt] = FACTS_REPORTED_NOTHING;
    }
    return true;
}

static int load_rows(facts_bisection *b, loading *l)
{
    char worker[FACTS_PATH];
    bool known = facts_find_worker(worker);
    int status = known ? FACTS_EXIT_OK : FACTS_EXIT_ENVIRONMENT;
    for (size_t i = 0; known && i < b->versions; i++) {
        facts_target_identify(&b->at[i].target, worker);
        facts_validity_add(&l->validity, &b->at[i].target);
    }
    if (status == FACTS_EXIT_OK)
        status = facts_read_record("facts", b->options->output, load_row, l, NULL);
    facts_validity_say(&l->validity, b->options->output);
    facts_validity_free(&l->validity);
    return status;
}

static int load_record(facts_bisection *b)
{
    loading l = { .b = b };
    const char *path = b->options->output;
    if (access(path, F_OK) != 0)
        return FACTS_EXIT_OK; /* nothing yet */
    snprintf(l.device, sizeof l.device, "%s", b->at[0].target.device);
    int status = facts_read_record("facts", path, find_device, &l, NULL);
    if (status == FACTS_EXIT_OK)
        status = load_rows(b, &l);
    if (status != FACTS_EXIT_OK)
        return status;
    for (size_t i = 0; i < b->versions; i++)
        for (int attempt = 0; attempt < FACTS_BISECT_ATTEMPTS; attempt++)
            if (b->at[i].known[attempt] && !facts_reported_has(&b->at[i].reported[attempt], b->by))
                return facts_complain(
                    FACTS_EXIT_BAD_INPUT,
                    "facts bisect: %s: the answer of %s has no knobs; --by knobs needs another -o",
                    path, facts_bisection_version(b, i));
    if (b->at[0].target.kind == FACTS_TARGET_GPU && strcmp(l.device, b->at[0].target.device) != 0)
        snprintf(b->device, sizeof b->device, "%s", l.device);
    return FACTS_EXIT_OK;
}

/* ---- what is asked
 * ---------------------------------------------------------------------------------------------------------
 */

static int read_words(facts_bisection *b)
{
    b->by = b->options->by ? facts_by_parse(b->options->by) : FACTS_BY_VERDICT;
    int status = facts_read_case("bisect", b->call, &b->c);
    if (status == FACTS_EXIT_OK)
        facts_case_name(&b->c, b->name);
    return status;
}

static int read_device(facts_bisection *b, facts_target *out)
{
    facts_error message = { 0 };
    const char *word = b->options->device ? b->options->device : DEFAULT_DEVICE;
    int status = FACTS_EXIT_BAD_INPUT;
    *out = (facts_target){ .ordinal = 0 };
    if (strchr(word, ','))
        facts_fail(&message,
                   "--device %s: give one device; answers of devices change in different versions",
                   word);
    else if (strcmp(word, "cpu") == 0)
        facts_fail(&message, "--device cpu: the CPU backend does not use cuDNN");
    else
        status = facts_target_device(out, word, &message);
    if (status != 0)
        fprintf(stderr, "facts: %s\n", message.text);
    b->device_word = word;
    b->task = out->kind == FACTS_TARGET_GPU ? FACTS_TASK_RUN
              : b->options->plan            ? FACTS_TASK_PLAN
                                            : FACTS_TASK_DECIDE;
    return status;
}

static int compare_versions(const facts_build *a, const facts_build *b)
{
    return a->major != b->major   ? a->major - b->major
           : a->minor != b->minor ? a->minor - b->minor
                                  : a->patch - b->patch;
}

/* Oldest first; of a version the build that is named first. */
static void insert_version(facts_bisection *b, const facts_target *target)
{
    size_t place = b->versions;
    while (place > 0 && compare_versions(&b->at[place - 1].target.build, &target->build) > 0)
        place--;
    if (place > 0 && compare_versions(&b->at[place - 1].target.build, &target->build) == 0)
        return;
    memmove(&b->at[place + 1], &b->at[place], (b->versions - place) * sizeof *b->at);
    b->at[place] =
        (facts_bisected){ .target = *target,
                          .reported = { FACTS_REPORTED_NOTHING, FACTS_REPORTED_NOTHING } };
    b->versions++;
}

static int take_versions(facts_bisection *b, facts_target *target, const facts_builds *builds)
{
    if (builds->count > FACTS_BISECT_MOST)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts: that is %zu builds; at most %d are bisected", builds->count,
                              FACTS_BISECT_MOST);
    b->at = calloc(builds->count + 1, sizeof *b->at);
    b->values = facts_intern_new();
    for (size_t i = 0; i < builds->count; i++) {
        target->build = builds->at[i];
        insert_version(b, target);
    }
    for (size_t i = 0; i < b->versions; i++)
        b->dear[i] = !is_ready(&b->at[i].target.build);
    if (b->versions > 1)
        return FACTS_EXIT_OK;
    return facts_complain(
        FACTS_EXIT_BAD_INPUT,
        "facts: that is one version (%s); a bisection needs two or more: --cudnn 9.20..9.27",
        b->versions ? b->at[0].target.build.name : "none");
}

/* The oldest and the newest version of some builds: "9.8.0..9.28.1". */
static void span_of(const facts_builds *builds, char out[80])
{
    const facts_build *oldest = &builds->at[0], *newest = oldest;
    for (size_t i = 1; i < builds->count; i++) {
        const facts_build *one = &builds->at[i];
        oldest = compare_versions(one, oldest) < 0 ? one : oldest;
        newest = compare_versions(one, newest) > 0 ? one : newest;
    }
    snprintf(out, 80, "%.30s..%.30s", oldest->version, newest->version);
}

/* Without --cudnn: the installed versions, and those between them that could be installed. */
static void add_between(facts_bisection *b, facts_builds *builds)
{
    facts_builds more = { 0 };
    facts_error ignored;
    char installed[80];
    if (facts_builds_installable(&more, &ignored) == 0 && more.count > 0)
        span_of(&more, b->wider);
    facts_builds_free(&more);
    if (b->options->all || builds->count < 2)
        return;
    span_of(builds, installed);
    if (facts_builds_resolve(&more, installed, FACTS_RESOLVE_INSTALLABLE | pinned(b), NULL,
                             &ignored) != 0)
        return;
    facts_builds_free(builds);
    *builds = more;
}

static int read_versions(facts_bisection *b)
{
    facts_error message = { 0 };
    facts_builds builds = { 0 };
    facts_target target;
    int status = read_device(b, &target);
    if (status != FACTS_EXIT_OK)
        return status;
    const unsigned flags = b->options->cudnn ? FACTS_RESOLVE_INSTALLABLE | FACTS_RESOLVE_INDEX : 0;
    status = facts_builds_resolve(&builds, b->options->cudnn ? b->options->cudnn : EVERY_VERSION,
                                  flags | pinned(b), NULL, &message);
    if (status != FACTS_EXIT_OK)
        fprintf(stderr, "facts: %s\n", message.text);
    else {
        if (!b->options->cudnn)
            add_between(b, &builds);
        status = take_versions(b, &target, &builds);
    }
    facts_builds_free(&builds);
    return status;
}

/* ---- the command
 * -----------------------------------------------------------------------------------------------------------
 */

static int bisect(facts_bisection *b)
{
    const facts_verdict good =
        b->task == FACTS_TASK_RUN ? FACTS_VERDICT_PASS : FACTS_VERDICT_SUPPORTED;
    const facts_bisect_order order = {
        .versions = b->versions,
        .good = b->by == FACTS_BY_VERDICT
                    ? (int)facts_intern_id(b->values, facts_verdict_name(good))
                    : FACTS_BISECT_NO_VALUE,
        .all = b->options->all,
        .lookahead = facts_session_jobs(b->options),
        .dear = b->dear,
        .context = b,
        .ask = ask,
    };
    for (;;) {
        facts_bisect(&b->result, &order);
        if (b->result.outcome != FACTS_BISECT_WAITING)
            return b->cut_off && !b->written ? ask_round(b, 0) : FACTS_EXIT_OK;
        for (int attempt = 1; attempt <= FACTS_BISECT_ATTEMPTS; attempt++) {
            int status = ask_round(b, attempt);
            if (status != FACTS_EXIT_OK)
                return status;
        }
    }
}

/* An answer with a hole in it is incomplete. Scripts read the answer: why there is no whole one is
 * on stderr too. */
static int exit_code(const facts_bisection *b)
{
    if (b->result.outcome == FACTS_BISECT_NOTHING)
        return facts_complain(FACTS_EXIT_ENVIRONMENT,
                              "facts bisect: fewer than two versions answered");
    if (!b->result.whole)
        return facts_complain(FACTS_EXIT_INCOMPLETE,
                              "facts bisect: a version at a change or at an end did not answer");
    return FACTS_EXIT_OK;
}

int facts_command_bisect(const facts_invocation *call)
{
    facts_bisection *b = calloc(1, sizeof *b);
    b->options = call->options;
    b->call = call;
    int status = read_words(b);
    if (status == FACTS_EXIT_OK)
        status = read_versions(b);
    if (status == FACTS_EXIT_OK && call->options->resume)
        status = load_record(b);
    if (status == FACTS_EXIT_OK)
        status = bisect(b);
    if (status == FACTS_EXIT_OK) {
        status = facts_bisection_print(b);
        status = status == FACTS_EXIT_OK ? exit_code(b) : status;
    }
    facts_intern_free(b->values);
    free(b->at);
    free(b);
    return status;
}
