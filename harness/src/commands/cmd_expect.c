/* facts expect: the expectations that the build makes of cases/known. `check` compares them with the suites and with records,
 * `update` proposes a file for cases/known from records, `golden` prints or checks the support matrix. The report package reads the
 * records. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case/language/expectation_lines.h"
#include "commands.h"
#include "commands/session/nearest_word.h"
#include "golden.h"
#include "record/text.h"

#define SUITES_MOST 64

/* The suites that lines name, each expanded once. */
typedef struct suites {
    char name[SUITES_MOST][104];
    facts_cases *cases[SUITES_MOST];
    size_t count;
} suites;

static void free_suites(suites *all)
{
    for (size_t i = 0; i < all->count; i++)
        facts_cases_destroy(all->cases[i]);
}

/* The place of a suite in the list; it is expanded on its first use. SUITES_MOST with a line on stderr when it cannot be. */
static size_t find_suite(suites *all, const char *name, const char *folder, const facts_deviation *d)
{
    facts_error error = { 0 };
    const char *texts[] = { name };
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->name[i], name) == 0)
            return i;
    bool room = all->count < SUITES_MOST && strlen(name) < sizeof all->name[0];
    if (!room || facts_cases_expand(&all->cases[all->count], texts, 1, folder, NULL, &error) != 0) {
        fprintf(stderr, "%s:%d:1: suites: %s\n", d->file, d->line, room ? error.text : "more than can be named");
        return SUITES_MOST;
    }
    strcpy(all->name[all->count], name);
    return all->count++;
}

static bool is_candidate(const facts_deviations *list, size_t line, const facts_cases *cases, size_t i)
{
    facts_case c;
    facts_error error;
    return facts_case_parse(&c, facts_cases_at(cases, i).name, &error) &&
           facts_deviations_possible(list, line, &(facts_subject){ .c = &c });
}

static bool has_candidate(const facts_deviations *list, size_t line, const facts_cases *cases)
{
    for (size_t i = 0; i < facts_cases_count(cases); i++)
        if (is_candidate(list, line, cases, i))
            return true;
    return false;
}

static void tell_candidates(facts_text *out, const facts_deviations *list, size_t line, const facts_cases *cases)
{
    for (size_t i = 0, said = 0; i < facts_cases_count(cases); i++)
        if (is_candidate(list, line, cases, i))
            facts_text_format(out, "%s%zu", said++ ? "," : "", i);
}

/* Has it expired, and is there a case in its suites that it could be about? Adds to *findings. */
static int check_line(const facts_deviations *list, size_t line, suites *all, const char *folder, const char *today,
                      size_t *findings)
{
    const facts_deviation *d = facts_deviations_at(list, line);
    char words[FACTS_SUITES_MAX], *rest = words;
    if (facts_deviation_expired(d, today)) {
        fprintf(stderr, "%s:%d:%d: expired on %s: check the failure, then remove the line or change its date\n", d->file, d->line,
                d->column, d->expires);
        ++*findings;
    }
    bool found = !*d->suites;
    snprintf(words, sizeof words, "%s", d->suites);
    for (char *name; *words && (name = strsep(&rest, " ")) != NULL;) {
        size_t at = find_suite(all, name, folder, d);
        if (at == SUITES_MOST)
            return FACTS_EXIT_BAD_INPUT;
        found = found || has_candidate(list, line, all->cases[at]);
    }
    if (!found) {
        fprintf(stderr, "%s:%d:%d: matches no case of its suites (%s)\n", d->file, d->line, d->column, d->suites);
        ++*findings;
    }
    return FACTS_EXIT_OK;
}

/* For the report package, in a file of its own: {"suites":{"regress":["case",...]},"lines":[{"regress":[0,7]},...]}: of each line
 * and each of its suites the cases that it could be about. */
static void tell_lines(facts_text *out, const facts_deviations *list, const suites *all)
{
    for (size_t i = 0; i < facts_deviations_count(list); i++) {
        char about[FACTS_SUITES_MAX + 2], name[128];
        snprintf(about, sizeof about, " %s ", facts_deviations_at(list, i)->suites);
        facts_text_puts(out, i ? ",\n{" : "{");
        for (size_t s = 0, said = 0; s < all->count; s++) {
            snprintf(name, sizeof name, " %.100s ", all->name[s]);
            if (!strstr(about, name))
                continue;
            facts_text_puts(out, said++ ? "]," : "");
            facts_text_json(out, all->name[s], strlen(all->name[s]));
            facts_text_puts(out, ":[");
            tell_candidates(out, list, i, all->cases[s]);
        }
        facts_text_puts(out, *facts_deviations_at(list, i)->suites ? "]}" : "}");
    }
}

static void tell_suites(facts_text *out, const suites *all)
{
    for (size_t s = 0; s < all->count; s++) {
        facts_text_puts(out, s ? "],\n" : "");
        facts_text_json(out, all->name[s], strlen(all->name[s]));
        facts_text_puts(out, ":[");
        for (size_t i = 0; i < facts_cases_count(all->cases[s]); i++) {
            const char *name = facts_cases_at(all->cases[s], i).name;
            facts_text_puts(out, i ? ",\n" : "");
            facts_text_json(out, name, strlen(name));
        }
    }
    facts_text_puts(out, all->count ? "]" : "");
}

static bool write_suites(const facts_deviations *list, const suites *all, char path[FACTS_PATH])
{
    FILE *out = facts_open_temporary(path);
    facts_text text = { 0 };
    if (!out)
        return false;
    facts_text_puts(&text, "{\"suites\":{");
    tell_suites(&text, all);
    facts_text_puts(&text, "},\"lines\":[");
    tell_lines(&text, list, all);
    facts_text_puts(&text, "]}\n");
    bool ok = !text.failed && fwrite(text.data, 1, text.length, out) == text.length;
    ok = fclose(out) == 0 && ok;
    facts_text_free(&text);
    if (!ok) {
        fprintf(stderr, "facts expect: %s: cannot be written\n", path);
        unlink(path);
    }
    return ok;
}

/* Hands records to `facts_reports expect TASK`, with what the suites of the lines are. */
static int ask_reports(const char *task, const facts_options *o, const facts_deviations *list, const suites *all, const char *cases,
                       const char *expect)
{
    char path[FACTS_PATH], known[FACTS_PATH];
    const char **words = calloc(o->word_count + 10, sizeof *words);
    size_t n = 0;
    int status = FACTS_EXIT_ENVIRONMENT;
    if (words && facts_join(known, cases, "known") && write_suites(list, all, path)) {
        words[n++] = "expect";
        words[n++] = task;
        words[n++] = "--suites";
        words[n++] = path;
        words[n++] = "--folder";
        words[n++] = expect;
        words[n++] = "--known";
        words[n++] = known;
        if (o->overwrite)
            words[n++] = "--overwrite";
        for (size_t i = 1; i < o->word_count; i++)
            words[n++] = o->words[i];
        status = facts_run_report(words, n);
        unlink(path);
    }
    free(words);
    return status;
}

/* Reads the expectations and checks what needs no record. */
static int check_lines(facts_deviations *list, suites *all, const char *folder, const char *expect, size_t *findings)
{
    char today[16];
    facts_error error = { 0 };
    if (!facts_deviations_load(list, expect, &error))
        return facts_complain(FACTS_EXIT_BAD_INPUT, "%s", error.text);
    facts_today(today);
    int status = FACTS_EXIT_OK;
    for (size_t i = 0; i < facts_deviations_count(list) && status == FACTS_EXIT_OK; i++)
        status = check_line(list, i, all, folder, today, findings);
    return status;
}

static int check_or_update(const facts_invocation *call, bool update)
{
    const facts_options *o = call->options;
    char folder[FACTS_PATH], expect[FACTS_PATH];
    static suites all;
    size_t findings = 0;
    if (update && o->word_count < 2)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts expect update: give the records whose failures shall be proposed");
    if (!facts_suite_dir(folder))
        return FACTS_EXIT_ENVIRONMENT;
    if (!facts_expectations_path(expect))
        return facts_complain(FACTS_EXIT_ENVIRONMENT,
                              "facts expect: the expectations that the build makes of cases/known are missing; run ./facts setup");
    facts_deviations *list = facts_deviations_create();
    int status = list ? check_lines(list, &all, folder, expect, &findings) : FACTS_EXIT_ENVIRONMENT;
    if (status == FACTS_EXIT_OK && !update)
        printf("%zu expectations, %zu to check\n", facts_deviations_count(list), findings);
    if (status == FACTS_EXIT_OK && o->word_count > 1)
        status = ask_reports(update ? "update" : "check", o, list, &all, folder, expect);
    if (status == FACTS_EXIT_OK && !update && findings)
        status = FACTS_EXIT_FINDINGS;
    free_suites(&all);
    facts_deviations_destroy(list);
    return status;
}

int facts_command_expect(const facts_invocation *call)
{
    static const char *const tasks[] = { "update", "check", "golden" };
    const char *task = call->options->words[0];
    if (strcmp(task, "golden") == 0)
        return facts_golden(call);
    if (strcmp(task, "check") == 0 || strcmp(task, "update") == 0)
        return check_or_update(call, strcmp(task, "update") == 0);
    return facts_complain(FACTS_EXIT_BAD_INPUT, "facts expect: \"%.60s\" is none of update, check, golden; did you mean %s?", task,
                          facts_nearest_word(task, tasks, sizeof tasks / sizeof tasks[0]));
}
