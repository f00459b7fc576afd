/* facts list, keys, devices: prints the cases of a suite, a file or a pattern; the suites; the keys
 * of a case; the described GPUs. */
#include <stdlib.h>
#include <string.h>

#include "builds/described_device.h"
#include "commands.h"
#include "language/pattern.h"
#include "record/text.h"
#include "suites/planned_cases.h"
#include "words/text_file.h"

static void print_json(const facts_session *s)
{
    facts_text line = { 0 };
    for (size_t i = 0, shown = 0; i < s->all_count && shown < s->work_count; i++) {
        const facts_planned planned = facts_cases_at(s->cases, i);
        if (planned.name != s->work[shown].name)
            continue; /* of another shard */
        shown++;
        facts_text_clear(&line);
        facts_text_puts(&line, "{");
        facts_text_member(&line, "case", planned.name);
        facts_text_member_if(&line, "group", planned.group);
        facts_text_member_if(&line, "why", planned.why);
        facts_text_close(&line);
        puts(line.data ? line.data : "");
    }
    facts_text_free(&line);
}

/* The first line of a suite's file, without its "# ": why the suite is there. */
static void print_why(const char *path)
{
    char line[512] = "";
    FILE *file = fopen(path, "r");
    bool reported = file && fgets(line, sizeof line, file) && line[0] == '#';
    line[strcspn(line, "\n")] = '\0';
    facts_plain(line);
    puts(reported ? line + 1 + strspn(line + 1, " ") : "");
    if (file)
        fclose(file);
}

static int print_suite(const facts_language *language, const char *folder, const char *name)
{
    facts_cases *cases = NULL;
    facts_error error = { 0 };
    int status = facts_cases_expand(language, &cases, &name, 1, folder, NULL, &error);
    if (status != 0)
        return facts_complain(status, "facts list: %s", error.text);
    printf("%-24s %7zu  ", name, facts_cases_count(cases));
    facts_cases_destroy(cases);
    return FACTS_EXIT_OK;
}

/* The suites of one folder below cases/suites; `above` is its name with a slash, or "". */
static int list_folder(const facts_language *language, const char *cases, const char *above)
{
    char folder[FACTS_PATH + 16], name[FACTS_PATH], **paths;
    snprintf(folder, sizeof folder, "%s/suites/%s", cases, above);
    size_t count = facts_folder_files(folder, ".cases", &paths);
    int status = FACTS_EXIT_OK;
    for (size_t i = 0; i < count && status == FACTS_EXIT_OK; i++) {
        const char *base = strrchr(paths[i], '/') + 1;
        snprintf(name, sizeof name, "%s%.*s", above, (int)(strlen(base) - strlen(".cases")), base);
        status = print_suite(language, cases, name);
        if (status == FACTS_EXIT_OK)
            print_why(paths[i]);
    }
    facts_folder_free(paths, count);
    return status;
}

static int list_suites(const facts_language *language)
{
    static const char *const folders[] = { "", "models/", "nightly/" };
    static const char *const others[][2] = {
        { "models", "all files of models/" },
        { "nightly", "all files of nightly/" },
        { "regress", "the cases of all known failures; regress/ID: of one" },
        { "reject", "problems that must be refused, with the reason" }
    };
    char cases[FACTS_PATH];
    int status = facts_suite_dir(cases) ? FACTS_EXIT_OK : FACTS_EXIT_ENVIRONMENT;
    for (size_t i = 0; i < sizeof folders / sizeof *folders && status == FACTS_EXIT_OK; i++)
        status = list_folder(language, cases, folders[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others && status == FACTS_EXIT_OK; i++)
        if ((status = print_suite(language, cases, others[i][0])) == FACTS_EXIT_OK)
            puts(others[i][1]);
    return status;
}

/* The list of suites has no form of its own. */
static int refuse_without_cases(const facts_options *o)
{
    const char *option = o->json     ? "json"
                         : o->count  ? "count"
                         : o->where  ? "where"
                         : o->with   ? "with"
                         : o->shards ? "shard"
                                     : NULL;
    if (option)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts list: --%s needs CASES: facts list smoke --%s", option,
                              option);
    return FACTS_EXIT_OK;
}

/* For scripts: the cases of each pattern, then an empty line. */
static int print_each(const facts_invocation *call)
{
    const facts_options *o = call->options;
    for (size_t i = 0; i < o->word_count; i++) {
        facts_pattern *pattern = NULL;
        facts_error error = { 0 };
        char name[FACTS_NAME_MAX];
        facts_case c;
        bool ok = facts_pattern_read(call->driver->language, &pattern, facts_span_of(o->words[i]),
                                     (facts_place){ "case", 1, 1 }, NULL, &error);
        for (uint64_t k = 0; ok && k < facts_pattern_count(pattern); k++) {
            ok = facts_pattern_at(pattern, k, &c, &error);
            if (ok)
                puts(facts_case_name(&c, name));
        }
        facts_pattern_destroy(pattern);
        if (!ok)
            return facts_complain(FACTS_EXIT_BAD_INPUT, "%s", error.text);
        puts("");
    }
    return FACTS_EXIT_OK;
}

int facts_command_list(const facts_invocation *call)
{
    if (!call->options->word_count) {
        int refused = refuse_without_cases(call->options);
        return refused ? refused : list_suites(call->driver->language);
    }
    if (call->options->each)
        return print_each(call);
    facts_session s = { .call = call, .options = call->options };
    int status = facts_session_cases(&s, call->options->words, call->options->word_count);
    if (status == FACTS_EXIT_OK && call->options->count)
        printf("%zu\n", s.work_count);
    else if (status == FACTS_EXIT_OK && call->options->json)
        print_json(&s);
    else if (status == FACTS_EXIT_OK)
        for (size_t i = 0; i < s.work_count; i++)
            puts(s.work[i].name);
    facts_session_free(&s);
    return status;
}

int facts_command_keys(const facts_invocation *call)
{
    const facts_options *o = call->options;
    const facts_language *language = call->driver->language;
    if (!o->word_count)
        facts_keys_help(language, FACTS_NO_KEY, stdout);
    for (size_t i = 0; i < o->word_count; i++) {
        const char *word = o->words[i];
        facts_key key = facts_key_find(language, word, strlen(word));
        const char *nearest = facts_key_nearest(language, word, strlen(word));
        if (key == FACTS_NO_KEY)
            return facts_complain(FACTS_EXIT_BAD_INPUT,
                                  "facts keys: no key \"%.40s\"%s%s%s (`facts keys` lists them)",
                                  word, nearest ? "; did you mean " : "", nearest ? nearest : "",
                                  nearest ? "?" : "");
        facts_keys_help(language, key, stdout);
    }
    return FACTS_EXIT_OK;
}

/* For scripts; the build of a target is "-" without --cudnn. */
static void print_target(facts_target *t, bool built)
{
    static const char *const kinds[] = { "gpu", "described", "cpu" };
    facts_plain(t->device); /* may be a file's text */
    printf("%s\t%s\t%d\t%s\t%s\n", t->device, kinds[t->kind], t->described.sm,
           built ? t->build.name : "-", built ? t->build.version : "-");
}

static int print_targets(const facts_options *o)
{
    facts_session s = { .options = o };
    char *words = strdup(o->device), *rest = words, *word;
    int status = o->cudnn ? facts_session_targets(&s, o->cudnn, o->device) : FACTS_EXIT_OK;
    for (size_t i = 0; i < s.targets.count; i++)
        print_target(&s.targets.at[i], true);
    while (!o->cudnn && status == FACTS_EXIT_OK && (word = strsep(&rest, ",")) != NULL) {
        facts_target target;
        facts_error message = { 0 };
        status = facts_target_device(&target, word, &message);
        if (status == FACTS_EXIT_OK)
            print_target(&target, false);
        else
            facts_complain(status, "facts devices: %s", message.text);
    }
    free(words);
    facts_session_free(&s);
    return status;
}

int facts_command_devices(const facts_invocation *call)
{
    char names[512], *rest = NULL;
    facts_described_device device;
    facts_error error = { 0 };
    if (call->options->device)
        return print_targets(call->options);
    facts_device_names(names, sizeof names);
    for (char *name = strtok_r(names, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        if (facts_device_load(&device, name, &error) != 0)
            return facts_complain(FACTS_EXIT_BAD_INPUT, "facts devices: %s", error.text);
        printf("%-10s sm_%-3d %4d SMs  %s: %s\n", name, device.sm, device.multiprocessors,
               device.read_with[0] ? "measured" : "specification", device.products);
    }
    puts("GPUs of this machine have numbers (`facts doctor` lists them); cpu is the CPU backend.");
    return FACTS_EXIT_OK;
}
