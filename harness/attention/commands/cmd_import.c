/* facts import: turns the problems of a log into cases and prints their known failures. With
 * --decide or --run it also asks cuDNN. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attention_commands.h"
#include "builds/described_device.h"
#include "builds/print_line.h"
#include "commands/print/explain_row.h"
#include "import/import.h"
#include "known/known.h"
#include "problem/case_problem.h"
#include "record/text.h"
#include "suites/predicate.h"

/* What makes a log that has the problem, to copy. */
#define LOGGING                                                                                    \
    "  export CUDNN_FRONTEND_LOG_INFO=1 CUDNN_FRONTEND_LOG_FILE=fe.log\n"                          \
    "  export CUDNN_LOGLEVEL_DBG=3 CUDNN_LOGDEST_DBG=cudnn.log\n"                                  \
    "  export NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2    # TransformerEngine, on its standard output\n"    \
    "Or give the call with its shapes (batch, heads, sequence, channels):\n"                       \
    "  echo 'scaled_dot_product_attention(q: bf16[2,16,1024,128], k: bf16[2,16,1024,128], "        \
    "v: bf16[2,16,1024,128], is_causal=True)' | facts import --decide --device h100 -\n"

enum { KNOWN_SHOWN = 5, UNREAD_SHOWN = 20 };

static const char nowhere[] =
    "data (fill, seed, poison), values of masks, lengths and page tables, "
    "pointers (offset, misaligned), "
    "and the way of the call (exec, repeat)";

static void version(char out[24], int packed)
{
    snprintf(out, 24, "%d.%d.%d", packed / 10000, packed / 100 % 100, packed % 100);
}

typedef struct knowledge {
    facts_knowledge failures;
    facts_described_device gpu; /* that the text names; sm 0: none, or unknown here */
} knowledge;

/* The failures that speak of a problem; the caller frees them. */
static facts_known_answer *known(const knowledge *k, const facts_imported *p, size_t *count)
{
    char cudnn[24], sm[12];
    facts_case c;
    facts_error error;
    facts_known_answer *out = calloc(k->failures.count + 1, sizeof *out);
    version(cudnn, p->cudnn);
    const bool parsed = facts_case_parse(&c, p->name, &error);
    snprintf(sm, sizeof sm, "%d", k->gpu.sm);
    const facts_subject subject = { .c = &c,
                                    .cudnn = p->cudnn ? cudnn : NULL,
                                    .sm = k->gpu.sm ? sm : NULL };
    *count = parsed ? facts_known_of(&k->failures, &subject, out) : 0;
    return out;
}

/* ---- text
 * ------------------------------------------------------------------------------------------------------------------
 */

static void print_known(const knowledge *k, const facts_imported *p, FILE *out)
{
    size_t count;
    facts_text lines = { 0 };
    facts_known_answer *found = known(k, p, &count);
    facts_known_lines(&lines, "#   ", found, count, KNOWN_SHOWN);
    fputs(lines.data ? lines.data : "", out);
    facts_text_free(&lines);
    free(found);
}

static void print_problem(const knowledge *k, const facts_imported *p, FILE *out)
{
    char cudnn[24], frontend[24];
    version(cudnn, p->cudnn);
    version(frontend, p->frontend);
    if (p->calls == 0)
        fprintf(out, "# %s:%zu, seen %zu time%s", p->file, p->line, p->seen,
                p->seen == 1 ? "" : "s");
    if (p->cudnn)
        fprintf(out, ", cuDNN %s", cudnn);
    if (p->frontend)
        fprintf(out, ", cudnn-frontend %s", frontend);
    fputs(p->calls == 0 ? "\n" : "", out);
    for (int i = 0; i < p->notes.count; i++)
        fprintf(out, "#   %s\n", p->notes.text[i]);
    for (int i = 0; i < p->log_count; i++)
        fprintf(out, "#   the log says: %s\n", p->log_text[i]);
    if (p->calls == 0 || p->cudnn) /* else all that was ever known would be there */
        print_known(k, p, out);
    if (p->calls)
        fprintf(out, "calls %" PRIu64 " ", p->calls);
    fprintf(out, "%s\n", p->name);
}

/* The versions that each log names, and a version that it names twice. */
static void print_named(const facts_import *m, FILE *out)
{
    const size_t count = facts_import_named_count(m);
    const facts_import_named *before = NULL;
    for (size_t i = 0; i < count; i++) {
        const facts_import_named *named = facts_import_named_at(m, i);
        if (!before || before->file != named->file)
            fprintf(out, "%s# %s names ", before ? "\n" : "", named->file);
        else
            fputs(", ", out);
        fprintf(out, "%s %s", named->what, named->version);
        before = named;
    }
    fputs(count ? "\n" : "", out);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            const facts_import_named *a = facts_import_named_at(m, i),
                                     *b = facts_import_named_at(m, j);
            if (a->file == b->file && strcmp(a->what, b->what) == 0)
                fprintf(
                    out,
                    "# Two of them disagree: %s %s and %s. Check which one the program loads.\n",
                    a->what, a->version, b->version);
        }
}

static const char *device_of(const knowledge *k)
{
    return k->gpu.sm ? k->gpu.name : "h100-sxm";
}

/* The first cuDNN that the text names, 91002; 0: none. */
static int named_cudnn(const facts_import *m)
{
    for (size_t i = 0; i < facts_import_named_count(m); i++)
        if (strcmp(facts_import_named_at(m, i)->what, "cuDNN") == 0)
            return facts_version_number(facts_span_of(facts_import_named_at(m, i)->version), 0);
    return 0;
}

/* The newest build here; 0: there is none. */
static int newest_build(char out[24])
{
    facts_builds builds = { 0 };
    facts_error ignored;
    int number = 0;
    if (facts_builds_resolve(&builds, "default", 0, NULL, &ignored) == 0 && builds.count > 0) {
        snprintf(out, 24, "%.23s", builds.at[0].version);
        number = facts_version_number(facts_span_of(out), 0);
    }
    facts_builds_free(&builds);
    return number;
}

/* The next commands for a problem, or (NULL) for the one that failed in the log, or the first: the
 * answer of the log's cuDNN on its GPU, and the versions in which it changed. */
static void print_next(const facts_import *m, const knowledge *k, const facts_imported *p,
                       FILE *out)
{
    char cudnn[24], of[40] = "";
    const facts_imported *first = facts_import_at(m, 0);
    for (size_t i = 0; !p && i < facts_import_count(m); i++)
        if (facts_import_at(m, i)->log_count)
            p = facts_import_at(m, i);
    for (size_t i = facts_import_count(m); !p && --i > 0;)
        if (facts_import_at(m, i)->line == first->line)
            p = facts_import_at(m, i); /* of a call with gradients the backward */
    p = p ? p : first;
    version(cudnn, p->cudnn ? p->cudnn : named_cudnn(m));
    if (p->cudnn || named_cudnn(m))
        snprintf(of, sizeof of, " --cudnn %s", cudnn);
    fprintf(out, "# Next: facts decide '%s'%s --device %s --explain\n", p->name, of, device_of(k));
    if (of[0] && newest_build(cudnn) > (p->cudnn ? p->cudnn : named_cudnn(m)))
        snprintf(of + strlen(of), sizeof of - strlen(of), "..%s", cudnn);
    else
        of[0] = '\0';
    fprintf(out, "#       facts bisect '%s'%s --device %s\n", p->name, of, device_of(k));
}

/* The first GPU that the text names and that has a description. */
static bool is_gpu(const char *word)
{
    facts_described_device found;
    facts_error ignored;
    return facts_device_load(&found, word, &ignored) == 0;
}

static void find_gpu(const facts_import *m, facts_described_device *out)
{
    facts_error ignored;
    for (size_t i = 0; i < facts_import_named_count(m) && !out->sm; i++)
        if (strcmp(facts_import_named_at(m, i)->what, "GPU") == 0 &&
            facts_device_load(out, facts_import_named_at(m, i)->version, &ignored) != 0)
            *out = (facts_described_device){ 0 };
}

static const char *text_of(const facts_caller *caller, const char *key)
{
    const char *text = json_string_value(json_object_get(caller->said, key));
    return text ? text : "";
}

/* Messages that many causes have, and what they mean. */
#define EVERY_ENGINE                                                                               \
    "cuDNN offered no engine, or each one refused. The reason is in cuDNN's log. Where other "     \
    "calls fail too, cuDNN may lack NVRTC: `facts doctor` compiles one plan."
static const char *const sayings[][2] = {
    { "No valid engine configs", EVERY_ENGINE },
    { "No execution plans", EVERY_ENGINE },
    { "No valid execution plans", EVERY_ENGINE },
    { "EXECUTION_FAILED", "A kernel failed while it ran, so cuDNN had accepted the call. `facts "
                          "known CASE` says what is known of a case." },
    { "Disabling FusedAttention", "TransformerEngine refused before cuDNN was asked, or its list "
                                  "of versions did. Its line `Running with config=` is the case." },
};

/* An error that no graph made, and the rule whose message it is. */
static void print_orphan(const char *text)
{
    facts_callers callers = { 0 };
    facts_error error;
    char path[FACTS_PATH];
    const bool loaded = facts_made_path("claims", path) &&
                        facts_callers_load(&callers, &facts_attention_language, path, &error);
    const facts_caller *rule = loaded ? facts_callers_saying(&callers, text) : NULL;
    printf("# An error whose graph is not in the log: %s\n", text);
    for (size_t i = 0; i < sizeof sayings / sizeof *sayings; i++)
        if (strstr(text, sayings[i][0])) {
            printf("#   %s\n", sayings[i][1]);
            break;
        }
    if (rule)
        printf("#   %s %s refuses with these words, not cuDNN: facts audit %s\n",
               text_of(rule, "project"), text_of(rule, "version"), text_of(rule, "rule"));
    facts_callers_free(&callers);
}

static void print_text(const facts_import *m, const knowledge *k, bool asks)
{
    size_t scales = 0, unread, orphans, count = facts_import_count(m);
    const char *text;
    for (size_t i = 0; i < count; i++) {
        print_problem(k, facts_import_at(m, i), stdout);
        scales += facts_import_at(m, i)->notes.scale_missing;
    }
    if (count)
        printf("# A log does not contain these, so they have their defaults: %s\n", nowhere);
    if (scales)
        printf("# The log does not contain the attention scale of %zu problem%s; assuming "
               "1/sqrt(d).\n",
               scales, scales == 1 ? "" : "s");
    for (size_t i = 0; i < UNREAD_SHOWN && (text = facts_import_unread(m, i, &unread)); i++)
        printf("# could not be read: %s\n", text);
    facts_import_unread(m, 0, &unread);
    if (unread > UNREAD_SHOWN)
        printf("# could not be read: %zu more\n", unread - UNREAD_SHOWN);
    for (size_t i = 0; i < UNREAD_SHOWN && (text = facts_import_orphan(m, i, &orphans)); i++)
        print_orphan(text);
    print_named(m, stdout);
    if (count && !asks)
        print_next(m, k, NULL, stdout);
}

/* ---- JSON
 * ------------------------------------------------------------------------------------------------------------------
 */

static void put_list(facts_text *t, const char *key, const char (*text)[FACTS_IMPORT_LOG_TEXT],
                     int count)
{
    facts_text_format(t, "\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        facts_text_puts(t, i ? "," : "");
        facts_text_json(t, text[i], strlen(text[i]));
    }
    facts_text_puts(t, "],");
}

static void put_problem(facts_text *t, const knowledge *k, const facts_imported *p)
{
    char number[24];
    facts_text_puts(t, "{");
    facts_text_member(t, "case", p->name);
    facts_text_member(t, "file", p->file);
    facts_text_member_int(t, "line", (int64_t)p->line);
    facts_text_member_int(t, "seen", (int64_t)p->seen);
    if (p->calls)
        facts_text_member_int(t, "calls", (int64_t)p->calls);
    version(number, p->cudnn);
    if (p->cudnn)
        facts_text_member(t, "cudnn", number);
    version(number, p->frontend);
    if (p->frontend)
        facts_text_member(t, "cudnn_frontend", number);
    facts_text_format(t, "\"scale_known\":%s,\"stand_ins\":[",
                      p->notes.scale_missing ? "false" : "true");
    for (int i = 0; i < p->notes.count; i++) {
        facts_text_puts(t, i ? "," : "");
        facts_text_json(t, p->notes.text[i], strlen(p->notes.text[i]));
    }
    facts_text_puts(t, "],");
    put_list(t, "log", p->log_text, p->log_count);
    size_t count;
    facts_known_answer *found = known(k, p, &count);
    facts_known_member(t, found, count);
    free(found);
    facts_text_close(t);
}

static void put_strings(facts_text *t, const char *key, const facts_import *m,
                        const char *(*at)(const facts_import *, size_t, size_t *))
{
    size_t total;
    const char *text;
    facts_text_format(t, "\"%s\":[", key);
    for (size_t i = 0; (text = at(m, i, &total)); i++) {
        facts_text_puts(t, i ? "," : "");
        facts_text_json(t, text, strlen(text));
    }
    at(m, 0, &total);
    facts_text_format(t, "],\"%s_count\":%zu,", key, total);
}

static void print_json(const facts_import *m, const knowledge *k)
{
    facts_text t = { 0 };
    for (size_t i = 0; i < facts_import_count(m); i++) {
        facts_text_clear(&t);
        put_problem(&t, k, facts_import_at(m, i));
        printf("%s\n", t.data ? t.data : "");
    }
    facts_text_clear(&t);
    facts_text_puts(&t, "{");
    facts_text_member_int(&t, "problems", (int64_t)facts_import_count(m));
    put_strings(&t, "unread", m, facts_import_unread);
    put_strings(&t, "orphans", m, facts_import_orphan);
    facts_text_puts(&t, "\"named\":[");
    for (size_t i = 0; i < facts_import_named_count(m); i++) {
        const facts_import_named *named = facts_import_named_at(m, i);
        facts_text_puts(&t, i ? ",{" : "{");
        facts_text_member(&t, "file", named->file);
        facts_text_member(&t, "what", named->what);
        facts_text_member(&t, "version", named->version);
        facts_text_close(&t);
    }
    facts_text_puts(&t, "],");
    facts_text_member_int(&t, "other_graphs", (int64_t)facts_import_other_graphs(m));
    facts_text_close(&t);
    printf("%s\n", t.data ? t.data : "");
    facts_text_free(&t);
}

/* ---- asking
 * ----------------------------------------------------------------------------------------------------------------
 */

/* A line for each target of each problem: its answer, and the link of the known failure. */
static void print_answers(const facts_session *s, FILE *out)
{
    for (size_t w = 0; w < s->work_count; w++) {
        fprintf(out, "\n%s\n", s->work[w].name);
        for (size_t t = 0; t < s->targets.count; t++) {
            const facts_target *target = &s->targets.at[t];
            const facts_cell *cell = facts_tally_cell(&s->tally, t, w);
            char shown[176];
            fprintf(out, "  %s on %s: ",
                    target->kind == FACTS_TARGET_CPU ? "our CPU backend" : target->build.name,
                    facts_target_shown(shown, target));
            if (cell->verdict >= FACTS_VERDICT_COUNT) {
                fputs("no answer\n", out);
                continue;
            }
            fputs(facts_verdict_name((facts_verdict)cell->verdict), out);
            if (cell->reason &&
                !(s->options->explain && cell->verdict == FACTS_VERDICT_UNSUPPORTED))
                fprintf(out, ", %s", facts_intern_text(s->tally.texts, cell->reason));
            if (cell->known)
                fprintf(out, "; known: %s", facts_intern_text(s->tally.texts, cell->known));
            fputc('\n', out);
        }
    }
}

/* Of a refused case the keys that decide, and accepted cases nearby. */
static void show_nearest(facts_session *session, const facts_outcome *outcome)
{
    char shown[176];
    facts_target_shown(shown, &session->targets.at[outcome->target]);
    if (facts_explain_nearest(outcome->text, outcome->length, shown, stdout))
        fputc('\n', stdout);
}

/* PyTorch does not see a call of TransformerEngine: where the text names that, only its rules and
 * the frontend's count. */
static void keep_callers(facts_callers *callers, const facts_import *m)
{
    bool named = false;
    size_t kept = 0;
    for (size_t i = 0; i < facts_import_named_count(m); i++)
        named |= strcmp(facts_import_named_at(m, i)->what, "TransformerEngine") == 0;
    for (size_t i = 0; named && i < callers->count; i++)
        if (strcmp(text_of(&callers->at[i], "project"), "PyTorch") == 0) {
            facts_predicate_destroy(callers->at[i].refuses);
            json_decref(callers->at[i].said);
        } else
            callers->at[kept++] = callers->at[i];
    callers->count = named ? kept : callers->count;
}

/* The first problem that a target did not accept; NULL: none. */
static const facts_imported *first_bad(const facts_import *m, const facts_session *s)
{
    for (size_t w = 0; w < s->work_count; w++)
        for (size_t t = 0; t < s->targets.count; t++) {
            const facts_verdict v = (facts_verdict)facts_tally_cell(&s->tally, t, w)->verdict;
            if (v < FACTS_VERDICT_COUNT && !facts_verdict_is_good(v))
                return facts_import_at(m, w);
        }
    return NULL;
}

static int ask(const facts_invocation *call, const facts_import *m, const knowledge *k)
{
    facts_options explained = *call->options;
    const facts_options *o = &explained;
    facts_task task = o->run ? FACTS_TASK_RUN : o->plan ? FACTS_TASK_PLAN : FACTS_TASK_DECIDE;
    facts_session s = {
        .options = o, .task = task, .unguarded = !o->run, .call = call, .keep_record = true
    };
    explained.explain = !o->run && !o->json;
    if (explained.explain)
        s.on_row = show_nearest;
    const char *devices = o->device ? o->device : o->run ? "0" : device_of(k);
    const char **names = malloc(facts_import_count(m) * sizeof *names);
    if (!o->device && o->run && facts_gpus_here() == 0) {
        fputs("facts import --run: no GPU here; give --device cpu (the CPU backend), or --decide, "
              "which needs no GPU\n",
              stderr);
        free(names);
        return FACTS_EXIT_ENVIRONMENT;
    }
    for (size_t i = 0; names && i < facts_import_count(m); i++)
        names[i] = facts_import_at(m, i)->name;
    int status = names ? facts_session_load_callers(&s) : FACTS_EXIT_ENVIRONMENT;
    keep_callers(&s.callers, m);
    if (status == FACTS_EXIT_OK)
        status = facts_session_ask(&s, names, facts_import_count(m), o->cudnn, devices);
    if (status == FACTS_EXIT_OK) {
        FILE *out = o->json ? stderr : stdout;
        print_answers(&s, out);
        facts_print_callers(&s, out);
        if (!o->json)
            print_next(m, k, first_bad(m, &s), out);
        fputc('\n', out);
        facts_print_line(out, "record: %s", s.record);
        status = facts_session_exit(&s);
    }
    facts_session_free(&s);
    free(names);
    return status;
}

/* ---- the command
 * -----------------------------------------------------------------------------------------------------------
 */

static int exit_of(const facts_import *m)
{
    size_t unread, orphans, count = facts_import_count(m), stand_ins = 0;
    facts_import_unread(m, 0, &unread);
    facts_import_orphan(m, 0, &orphans);
    for (size_t i = 0; i < count; i++)
        stand_ins += facts_import_at(m, i)->notes.count > 0;
    if (count == 0 && unread > 0)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts import: nothing could be read: %s",
                              facts_import_unread(m, 0, &unread));
    if (count == 0) {
        facts_complain(FACTS_EXIT_NOTHING,
                       "facts import: the text has no attention problem%s. Run the program again "
                       "with these, then import what they write:",
                       facts_import_other_graphs(m) ? ", only other graphs"
                       : orphans                    ? ", only errors"
                                                    : "");
        fputs(LOGGING, stderr);
        return FACTS_EXIT_NOTHING;
    }
    if (unread > 0)
        fprintf(stderr, "facts import: %zu piece%s could not be read\n", unread,
                unread == 1 ? "" : "s");
    if (stand_ins > 0)
        fprintf(stderr, "facts import: %zu problem%s with assumed values: see the comments\n",
                stand_ins, stand_ins == 1 ? " is" : "s are");
    return unread > 0 || stand_ins > 0 ? FACTS_EXIT_INCOMPLETE : FACTS_EXIT_OK;
}

/* A trace of PyTorch's profiler or a file of FlashInfer. reports/facts_reports/commands/import.py
 * reads it, and starts this command with its calls as text. */
static bool is_trace(const char *path)
{
    static const char *const words[] = { "\"traceEvents\"", "\"schemaVersion\"", "\"op_type\"",
                                         "\"definition\"" };
    struct stat about;
    char head[1 << 14];
    FILE *file = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL;
    const size_t got = file ? fread(head, 1, sizeof head - 1, file) : 0;
    if (file)
        fclose(file);
    head[got] = '\0';
    bool found = got > 1 && memcmp(head, "\x1f\x8b", 2) == 0; /* gzip */
    for (size_t i = 0; head[strspn(head, " \t\r\n")] == '{' && i < sizeof words / sizeof *words;
         i++)
        found |= strstr(head, words[i]) != NULL;
    return found;
}

static int import(const facts_invocation *call)
{
    for (size_t i = 0; i < call->options->word_count; i++)
        if (is_trace(call->options->words[i]))
            return facts_command_python(call);
    const facts_options *o = call->options;
    facts_import *m = facts_import_create();
    knowledge k = { 0 };
    facts_import_know_gpus(m, is_gpu);
    char path[FACTS_PATH];
    facts_error error = { 0 };
    int status = FACTS_EXIT_OK;
    if (facts_made_path("known", path) &&
        !facts_knowledge_load(&k.failures, call->driver->language, path, &error))
        status = facts_complain(FACTS_EXIT_BAD_INPUT, "facts import: %s", error.text);
    bool all = true;
    for (size_t i = 0; status == FACTS_EXIT_OK && i < o->word_count; i++) {
        bool read = facts_import_file(m, o->words[i], &error);
        if (!read)
            fprintf(stderr, "facts import: %s\n", error.text);
        all = all && read;
    }
    if (status == FACTS_EXIT_OK) {
        if (o->device && !strchr(o->device, ',') && is_gpu(o->device))
            (void)facts_device_load(&k.gpu, o->device, &error);
        find_gpu(m, &k.gpu);
        if (!k.gpu.sm && o->decide && !o->device) /* the one that is asked */
            (void)facts_device_load(&k.gpu, device_of(&k), &error);
        o->json ? print_json(m, &k) : print_text(m, &k, o->decide || o->run);
        fflush(stdout);
        status = all || facts_import_count(m) ? exit_of(m) : FACTS_EXIT_BAD_INPUT;
        if (!all)
            status = FACTS_EXIT_BAD_INPUT;
    }
    if ((o->decide || o->run) && facts_import_count(m) &&
        (status == FACTS_EXIT_OK || status == FACTS_EXIT_INCOMPLETE)) {
        int asked = ask(call, m, &k);
        status = asked != FACTS_EXIT_OK ? asked : status;
    }
    facts_knowledge_free(&k.failures);
    facts_import_destroy(m);
    return status;
}

const facts_driver facts_attention = { .language = &facts_attention_language,
                                       .proof = "pass=fwd dtype=bf16 b=1 h=2 s=256 d=128",
                                       .import = import };
