/* facts audit: compares other projects' support rules with cuDNN's answers on both sides of each
 * rule. The report package reads the rules, judges them and prints; this command parses the cases
 * and asks them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case/language/pattern.h"
#include "case/suites/file_lines.h"
#include "case/words/text_file.h"
#include "commands.h"

#define DEFAULT_DEVICES "h100-sxm,sm80-spec,sm89-spec,sm100-spec,sm120-spec"
#define MOST_PAIRS 64 /* of one rule */

typedef struct audit {
    const facts_options *options;
    facts_session session;
    char claims[FACTS_PATH],
        scratch[FACTS_PATH]; /* folders; the second for what one step leaves for the next */
    bool measured;
} audit;

/* What the scratch folder holds: written by the report package, here, here, and by the report
 * package. */
static const char *const scratch_files[] = { "texts", "members", "targets", "cases" };

static FILE *open_scratch(const audit *a, const char *name)
{
    char path[FACTS_PATH];
    FILE *file = facts_join(path, a->scratch, name) ? fopen(path, "w") : NULL;
    if (!file)
        facts_complain(FACTS_EXIT_ENVIRONMENT, "facts audit: %s/%s: %s", a->scratch, name,
                       strerror(errno));
    return file;
}

static int close_scratch(FILE *file, int status)
{
    if (fclose(file) == 0 || status != FACTS_EXIT_OK)
        return status;
    return facts_complain(FACTS_EXIT_ENVIRONMENT, "facts audit: %s", strerror(errno));
}

static int make_scratch(audit *a)
{
    if (facts_temporary_template(a->scratch) && mkdtemp(a->scratch))
        return FACTS_EXIT_OK;
    return facts_complain(FACTS_EXIT_ENVIRONMENT, "facts audit: %s: %s", a->scratch,
                          strerror(errno));
}

static void remove_scratch(const audit *a)
{
    char path[FACTS_PATH];
    for (size_t i = 0; i < sizeof scratch_files / sizeof *scratch_files; i++)
        if (facts_join(path, a->scratch, scratch_files[i]))
            unlink(path);
    rmdir(a->scratch);
}

/* One step of the report package: texts, cases or judge. Returns its exit code. */
static int run_step(const audit *a, const char *step)
{
    const facts_options *o = a->options;
    const char **words = calloc(o->word_count + 2 * o->record_count + 16, sizeof *words);
    size_t n = 0;
    if (!words)
        return facts_no_memory();
    const char *const first[] = { "audit", step, "--scratch", a->scratch, "--folder", a->claims };
    memcpy(words, first, sizeof first);
    n += sizeof first / sizeof *first;
    if (o->where) {
        words[n++] = "--where";
        words[n++] = o->where;
    }
    if (a->session.record[0]) {
        words[n++] = "--record";
        words[n++] = a->session.record;
    }
    if (o->page) {
        words[n++] = "--page";
        words[n++] = o->page;
    }
    for (size_t i = 0; i < o->record_count; i++) {
        words[n++] = "--from";
        words[n++] = o->records[i];
    }
    if (a->measured)
        words[n++] = "--measured";
    if (o->json || o->markdown)
        words[n++] = o->json ? "--json" : "--markdown";
    words[n++] = "--";
    memcpy(words + n, o->words, o->word_count * sizeof *words);
    int status = facts_run_report(words, n + o->word_count);
    free(words);
    return status;
}

/* ---- the case grammar
 * ------------------------------------------------------------------------------------------------------
 */

/* The names of a pattern's cases, one a line, and an empty line. */
static bool print_members(facts_span text, facts_place place, FILE *out, facts_error *error)
{
    facts_pattern *pattern = NULL;
    char name[FACTS_NAME_MAX];
    facts_case c;
    bool ok = facts_pattern_read(&pattern, text, place, error);
    uint64_t count = ok ? facts_pattern_count(pattern) : 0;
    if (count > MOST_PAIRS)
        ok = facts_fail_at(error, place.where, place.line, 1,
                           "a rule has at most %d pairs of cases", MOST_PAIRS);
    for (uint64_t i = 0; i < count && ok; i++) {
        ok = facts_pattern_at(pattern, i, &c, error);
        if (ok)
            fprintf(out, "%s\n", facts_case_name(&c, name));
    }
    fputc('\n', out);
    facts_pattern_destroy(pattern);
    return ok;
}

/* The next text of a rule: a line "KIND LINE PATH", and the text, which stands at its column. */
static bool check_text(facts_span *rest, FILE *out, facts_error *error)
{
    char path[FACTS_PATH];
    uint64_t line = 0;
    facts_predicate *predicate = NULL;
    facts_span head = facts_span_cut(rest, '\n'), text = facts_span_cut(rest, '\n'),
               kind = facts_span_word(&head);
    facts_read_integer(facts_span_word(&head), INT32_MAX, &line);
    snprintf(path, sizeof path, "%.*s", (int)head.length, head.at);
    const facts_place place = { path, (int)line, 1 };
    if (facts_span_is(kind, "pattern"))
        return print_members(text, place, out, error);
    const facts_lines in = { .where = path, .error = error, .line = (int)line, .start = text.at };
    bool ok = facts_lines_predicate(&in, text, "", &predicate);
    facts_predicate_destroy(predicate);
    return ok;
}

/* Checks the predicates of the rules, and gives the patterns' cases their names. */
static int check_texts(const audit *a)
{
    char path[FACTS_PATH];
    facts_error error = { 0 };
    facts_predicate *where = NULL;
    char *texts = facts_join(path, a->scratch, "texts") ? facts_file_text(path, &error) : NULL;
    FILE *out = texts ? open_scratch(a, "members") : NULL;
    facts_span rest = facts_span_of(texts ? texts : "");
    bool ok = out != NULL;
    while (ok && rest.length > 0)
        ok = check_text(&rest, out, &error);
    ok = ok && (!a->options->where || facts_predicate_parse(&where, a->options->where, &error));
    facts_predicate_destroy(where);
    free(texts);
    int status = ok ? FACTS_EXIT_OK : out ? FACTS_EXIT_BAD_INPUT : FACTS_EXIT_ENVIRONMENT;
    if (error.text[0])
        facts_complain(status, "%s", error.text);
    return out ? close_scratch(out, status) : status;
}

/* ---- asking
 * ----------------------------------------------------------------------------------------------------------------
 */

/* Described devices decide, GPUs run: one record holds one or the other. */
static int choose_task(audit *a)
{
    const facts_targets *targets = &a->session.targets;
    size_t described = facts_targets_of(targets, FACTS_TARGET_DESCRIBED);
    if (facts_targets_of(targets, FACTS_TARGET_CPU))
        return facts_complain(
            FACTS_EXIT_BAD_INPUT,
            "facts audit: --device cpu: rules are about cuDNN; name a GPU or a described device");
    if (described && described < targets->count)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts audit: --device: give GPUs, which run, "
                                                    "or described devices, which decide, not both");
    a->measured = !described;
    a->session.task = a->measured        ? FACTS_TASK_RUN
                      : a->options->plan ? FACTS_TASK_PLAN
                                         : FACTS_TASK_DECIDE;
    return FACTS_EXIT_OK;
}

/* Device, build, version and sm of each target; 0: a GPU that has not answered yet. */
static int write_targets(const audit *a)
{
    const facts_session *s = &a->session;
    FILE *out = open_scratch(a, "targets");
    for (size_t i = 0; out && i < s->targets.count; i++) {
        const facts_target *t = &s->targets.at[i];
        fprintf(out, "%s\t%s\t%s\t%d\n", t->device, t->build.name, t->build.version,
                s->sms && s->sms[i] ? s->sms[i] : t->described.sm);
    }
    return out ? close_scratch(out, FACTS_EXIT_OK) : FACTS_EXIT_ENVIRONMENT;
}

/* Asks the cases of the rules that concern these versions and devices, if there are any. */
static int ask(audit *a)
{
    facts_session *s = &a->session;
    const facts_options *o = a->options;
    char path[FACTS_PATH];
    const char *const cases = path;
    int status = facts_session_targets(s, o->cudnn, o->device ? o->device : DEFAULT_DEVICES);
    if (status == FACTS_EXIT_OK)
        status = choose_task(a);
    if (status == FACTS_EXIT_OK)
        status = write_targets(a);
    if (status == FACTS_EXIT_OK)
        status = run_step(a, "cases");
    if (status != FACTS_EXIT_OK || !facts_join(path, a->scratch, "cases") ||
        access(path, F_OK) != 0)
        return status;
    status = facts_session_cases(s, &cases, 1);
    if (status == FACTS_EXIT_OK)
        status = facts_session_run(s);
    return status == FACTS_EXIT_OK ? write_targets(a) : status;
}

/* An answer with a hole in it is incomplete, whatever the rest says. */
static int exit_of(const facts_session *s, int judged)
{
    int broken = facts_session_broken(s);
    if (broken != FACTS_EXIT_OK)
        return broken;
    return s->counts.target_failed              ? FACTS_EXIT_ENVIRONMENT
           : s->counts.done < s->counts.planned ? FACTS_EXIT_INCOMPLETE
                                                : judged;
}

int facts_command_audit(const facts_invocation *call)
{
    const facts_options *o = call->options;
    if (o->from && (o->cudnn || o->device || o->output || o->plan))
        return facts_complain(
            FACTS_EXIT_BAD_INPUT,
            "facts audit: --from reads records; leave out --cudnn, --device and -o");
    if (facts_check_folder("facts audit: --page", o->page) != FACTS_EXIT_OK)
        return FACTS_EXIT_BAD_INPUT;
    facts_options quiet =
        *o; /* a session would print its rows, and take --where for names that are not the file's */
    quiet.json = false;
    quiet.where = NULL;
    audit a = { .options = o,
                .session = { .options = &quiet,
                             .argc = call->argc,
                             .argv = call->argv,
                             .keep_record = true } };
    if (!facts_home_path("cases/claims", a.claims))
        a.claims[0] = '\0'; /* rules of a file can be read without it */
    int status = make_scratch(&a);
    if (status != FACTS_EXIT_OK)
        return status;
    status = run_step(&a, "texts");
    if (status == FACTS_EXIT_OK)
        status = check_texts(&a);
    if (status == FACTS_EXIT_OK && !o->from)
        status = ask(&a);
    if (status == FACTS_EXIT_OK)
        status = exit_of(&a.session, run_step(&a, "judge"));
    facts_session_free(&a.session);
    remove_scratch(&a);
    return status;
}
