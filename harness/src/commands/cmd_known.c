/* facts known: the known failures in cases/known. `check` asks a build about the cases of each
 * failure, which have guards off, and their controls; or reads records that are there; the report
 * package reads and changes the files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builds/print_line.h"
#include "case/suites/known_cases.h"
#include "case/words/case_text.h"
#include "case/words/text_file.h"
#include "commands.h"

#define MOST_TEXTS 256
#define WITH_ENGINES "engine=all"
#define DESCRIBED "h100-sxm,sm100-spec,sm120-spec,sm80-spec"

/* Arguments for the report package; the strings are the caller's. */
typedef struct words {
    const char *at[64];
    size_t count;
    bool too_many;
} words;

static void add(words *w, const char *word)
{
    if (w->count < sizeof w->at / sizeof w->at[0])
        w->at[w->count++] = word;
    else
        w->too_many = true;
}

static int hand_over(words *w)
{
    return w->too_many ? facts_complain(FACTS_EXIT_BAD_INPUT, "facts known: too many words")
                       : facts_run_report(w->at, w->count);
}

static void start(words *w, const char *folder, const char *task)
{
    add(w, "known");
    add(w, "--folder");
    add(w, folder);
    add(w, task);
}

/* The files of failures; for described devices only those that a described device can show. A case
 * that hangs can disable the GPU, so those files come last. */
static size_t choose_files(const char *folder, bool described, char *out[MOST_TEXTS])
{
    char **paths;
    size_t count = 0, files = facts_folder_files(folder, ".known", &paths);
    for (int last = 0; last < 2; last++)
        for (size_t i = 0; i < files && count < MOST_TEXTS; i++) {
            facts_error error;
            char *text = facts_file_text(paths[i], &error);
            bool wanted = text && facts_known_in_regress(text) &&
                          (described ? facts_known_shows_without_gpu(text)
                                     : strstr(text, "\nfailure:") != NULL) &&
                          (strstr(text, "\nverdict: hang") != NULL) == (last == 1);
            if (wanted && (out[count] = strdup(paths[i])))
                count++;
            free(text);
        }
    facts_folder_free(paths, files);
    return count;
}

/* The named failures; without a name all that can be asked. The caller frees the texts. */
static size_t choose_cases(const facts_options *o, const char *folder, bool described,
                           char *out[MOST_TEXTS])
{
    size_t count = 0;
    if (o->word_count < 2)
        return choose_files(folder, described, out);
    for (size_t i = 1; i < o->word_count && count < MOST_TEXTS; i++)
        if (asprintf(&out[count], "regress/%s", o->words[i]) >= 0)
            count++;
    return count;
}

/* Are all these devices described ones: neither a GPU's number nor cpu? */
static bool are_described(const char *devices)
{
    for (const char *at = devices; *at; at += strcspn(at, ","), at += *at == ',')
        if ((*at >= '0' && *at <= '9') || strncmp(at, "cpu", 3) == 0)
            return false;
    return true;
}

/* Asks a build about the cases. Described devices only decide and compile; on a GPU, every engine
 * runs. */
static int ask(const facts_invocation *call, const char *folder, char record[FACTS_PATH])
{
    facts_options options = *call->options;
    facts_session s = { .options = &options,
                        .task = FACTS_TASK_RUN,
                        .argc = call->argc,
                        .argv = call->argv,
                        .keep_record = true };
    const char *devices = options.device ? options.device : facts_gpus_here() ? "0" : DESCRIBED;
    bool described = are_described(devices);
    char *texts[MOST_TEXTS];
    size_t count = choose_cases(&options, folder, described, texts);
    s.task = described ? FACTS_TASK_PLAN : FACTS_TASK_RUN;
    options.with = WITH_ENGINES;
    options.json = false;
    int status =
        facts_session_prepare(&s, (const char *const *)texts, count, options.cudnn, devices);
    if (status == FACTS_EXIT_OK)
        status = facts_session_run(&s);
    if (status == FACTS_EXIT_OK)
        status = facts_session_broken(&s);
    strcpy(record, s.record);
    facts_session_free(&s);
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    return status;
}

/* Is there a failure of this name (ID, or ID/LABEL)? Returns an exit code, with a line on stderr.
 */
static int find(const char *word, const char *folder)
{
    char path[FACTS_PATH], file[FACTS_PATH], hint[FACTS_QUOTE_MAX], **paths;
    const facts_span id = { word, strcspn(word, "/") };
    snprintf(file, sizeof file, "%.*s.known", (int)(id.length < 200 ? id.length : 200), word);
    if (id.length > 0 && facts_join(path, folder, file) && access(path, F_OK) == 0)
        return FACTS_EXIT_OK;
    facts_nearest nearest = facts_nearest_start(id);
    size_t count = facts_folder_files(folder, ".known", &paths);
    for (size_t i = 0; i < count; i++) {
        const char *name = strrchr(paths[i], '/') + 1;
        facts_nearest_offer(&nearest, name, strlen(name) - strlen(".known"));
    }
    facts_nearest_hint(&nearest, hint);
    facts_complain(
        FACTS_EXIT_BAD_INPUT,
        "facts known: no known failure is called %.100s%s (`facts known list` lists them)", word,
        hint);
    facts_folder_free(paths, count);
    return FACTS_EXIT_BAD_INPUT;
}

static int check(const facts_invocation *call, const char *folder)
{
    const facts_options *o = call->options;
    char record[FACTS_PATH] = "";
    size_t records = 0;
    words w = { .count = 0 };
    for (size_t i = 1; i < o->word_count; i++)
        records += facts_is_record_name(o->words[i]);
    if (records && records + 1 < o->word_count)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts known check: give records, or names of failures, not both");
    for (size_t i = 1; i < o->word_count && !records; i++)
        if (find(o->words[i], folder) != FACTS_EXIT_OK)
            return FACTS_EXIT_BAD_INPUT;
    start(&w, folder, "check");
    if (o->write)
        add(&w, "--write");
    for (size_t i = 1; i < o->word_count && records; i++)
        add(&w, o->words[i]);
    if (!records) {
        int status = ask(call, folder, record);
        if (status != FACTS_EXIT_OK)
            return status;
        facts_print_line(stderr, "record: %s", record);
        add(&w, record);
    }
    return hand_over(&w);
}

static int list(const facts_options *o, const char *folder)
{
    words w = { .count = 0 };
    if (o->word_count > 1)
        return facts_complain(
            FACTS_EXIT_BAD_INPUT,
            "facts known list: takes no \"%.60s\"; one failure: facts known show %.60s",
            o->words[1], o->words[1]);
    if (o->cudnn && !facts_is_version(o->cudnn))
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts known list: --cudnn %.60s: give a version, such as 9.28.1",
                              o->cudnn);
    start(&w, folder, "list");
    if (o->cudnn) {
        add(&w, "--cudnn");
        add(&w, o->cudnn);
    }
    if (o->json)
        add(&w, "--json");
    return hand_over(&w);
}

static int show(const facts_options *o, const char *folder, const char *task)
{
    words w = { .count = 0 };
    if (strcmp(task, "propose") != 0 && o->word_count > 1 &&
        find(o->words[1], folder) != FACTS_EXIT_OK)
        return FACTS_EXIT_BAD_INPUT;
    start(&w, folder, task);
    for (size_t i = 1; i < o->word_count; i++)
        add(&w, o->words[i]);
    if (o->source) {
        add(&w, "--source");
        add(&w, o->source);
    }
    if (o->write)
        add(&w, "--write");
    return hand_over(&w);
}

int facts_command_known(const facts_invocation *call)
{
    static const char *const tasks[] = { "list", "show", "check", "propose", "note" };
    const facts_options *o = call->options;
    const char *task = o->word_count ? o->words[0] : "";
    char cases[FACTS_PATH], folder[FACTS_PATH];
    if (!facts_suite_dir(cases) || !facts_join(folder, cases, "known"))
        return FACTS_EXIT_ENVIRONMENT;
    if (strcmp(task, "check") == 0)
        return check(call, folder);
    if (strcmp(task, "list") == 0)
        return list(o, folder);
    if (strcmp(task, "show") == 0 || strcmp(task, "note") == 0 || strcmp(task, "propose") == 0)
        return show(o, folder, task);
    const char *near = facts_nearest_word(task, tasks, sizeof tasks / sizeof tasks[0]);
    return facts_complain(
        FACTS_EXIT_BAD_INPUT,
        "facts known: \"%.60s\" is none of list, show, check, propose, note%s%s%s", task,
        near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}
