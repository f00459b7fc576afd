#include "expectation_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/words/case_text.h"
#include "case/words/text_file.h"
#include "case/words/verdict.h"
#include "field.h"

typedef struct entry {
    facts_deviation shown;
    facts_predicate *where;
    char *text;    /* the line, cut at its fields: what `shown` points into */
    bool left_out; /* by facts_deviations_choose */
} entry;

struct facts_deviations {
    entry *entries;
    size_t count;
    char **texts; /* names of files and of suites */
    size_t text_count;
};

facts_deviations *facts_deviations_create(void)
{
    return calloc(1, sizeof(facts_deviations));
}

static int two_digits(const char *text)
{
    return (text[0] - '0') * 10 + (text[1] - '0');
}

static bool is_date(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    for (size_t i = 0; i < sizeof form; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == 'd' ? !digit : text[i] != form[i])
            return false;
    }
    int month = two_digits(text + 5), day = two_digits(text + 8);
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static bool is_verdict(facts_span text, facts_nearest *nearest)
{
    *nearest = facts_nearest_start(text);
    for (facts_verdict v = 0; v < FACTS_VERDICT_COUNT; v++)
        facts_nearest_offer(nearest, facts_verdict_name(v), strlen(facts_verdict_name(v)));
    return facts_verdict_read(text) < FACTS_VERDICT_COUNT;
}

bool facts_deviation_names(const facts_deviation *d, const char *verdict)
{
    bool found = false;
    facts_span rest = facts_span_of(d->verdict);
    while (rest.length > 0)
        found = facts_span_is(facts_span_cut(&rest, '/'), verdict) || found;
    return found;
}

/* One verdict, or some of which any may come: wrong/nan. */
static bool check_verdicts(const entry *e, facts_error *error)
{
    char quote[FACTS_QUOTE_MAX], hint[FACTS_QUOTE_MAX];
    const facts_deviation *d = &e->shown;
    facts_nearest nearest;
    facts_span rest = facts_span_of(d->verdict);
    do {
        facts_span word = facts_span_cut(&rest, '/');
        if (!is_verdict(word, &nearest))
            return facts_fail_at(error, d->file, d->line, (int)(word.at - e->text) + 1, "%s is not a verdict%s",
                                 facts_quote(quote, word), facts_nearest_hint(&nearest, hint));
    } while (rest.length > 0);
    return true;
}

/* Takes the first word off a text, in place. */
static char *first_word(char **rest)
{
    char *start = *rest + strspn(*rest, " \t");
    char *end = start + strcspn(start, " \t");
    *rest = *end == '\0' ? end : end + 1;
    *end = '\0';
    return start;
}

/* Takes the last word off a text, in place; "" when there is none. */
static char *last_word(char *text)
{
    size_t end = strlen(text);
    while (end > 0 && strchr(" \t\r", text[end - 1]) != NULL)
        text[--end] = '\0';
    size_t start = end;
    while (start > 0 && strchr(" \t", text[start - 1]) == NULL)
        start--;
    if (start > 0)
        text[start - 1] = '\0';
    return start > 0 ? text + start : text + end;
}

/* A # at the start or after a blank begins the note; inside a word it is a letter (owner/project#12). */
static char *cut_note(char *text)
{
    for (char *at = text; *at != '\0'; at++) {
        if (*at == '#' && (at == text || at[-1] == ' ' || at[-1] == '\t')) {
            *at = '\0';
            return at + 1 + strspn(at + 1, " \t");
        }
    }
    return text + strlen(text);
}

static bool read_entry(entry *e, const char *file, int line, const char *suites, facts_error *error)
{
    char quote[FACTS_QUOTE_MAX], *rest = e->text;
    facts_deviation *d = &e->shown;
    *d = (facts_deviation){ .note = cut_note(e->text), .suites = suites, .file = file, .line = line };
    d->date = first_word(&rest);
    char *verdict = first_word(&rest);
    size_t length = strlen(verdict);
    d->sometimes = length > 1 && verdict[length - 1] == '?';
    if (d->sometimes)
        verdict[length - 1] = '\0';
    d->verdict = verdict;
    if (!is_date(d->date))
        return facts_fail_at(error, file, line, 1, "%s is not a date; DATE VERDICT PREDICATE LINK # note",
                             facts_quote(quote, facts_span_of(d->date)));
    if (!check_verdicts(e, error))
        return false;
    d->link = last_word(rest);
    if (strchr(d->link, '/') == NULL)
        return facts_fail_at(error, file, line, (int)(d->link - e->text) + 1,
                             "the last word must be a link (owner/project#12 or an address)");
    d->where = rest + strspn(rest, " \t");
    d->column = (int)(d->where - e->text) + 1;
    facts_error inner = { 0 };
    facts_predicate *where = NULL;
    if (facts_predicate_parse(&where, d->where, &inner)) {
        e->where = where;
        return true;
    }
    const char *sentence = strchr(inner.text, ' ');
    return facts_fail_at(error, file, line, (int)(d->where - e->text) + inner.column, "%s",
                         sentence != NULL ? sentence + 1 : inner.text);
}

/* A copy that lives as long as the list; NULL: no memory. */
static const char *keep(facts_deviations *list, facts_span text)
{
    char **texts = realloc(list->texts, (list->text_count + 1) * sizeof *texts), *copy = strndup(text.at, text.length);
    if (texts != NULL)
        list->texts = texts;
    if (texts == NULL || copy == NULL) {
        free(copy);
        return NULL;
    }
    return texts[list->text_count++] = copy;
}

/* What follows `suites:`, its blanks made one. */
static bool read_suites(facts_deviations *list, facts_span text, const char **suites, const char *file, int line,
                        facts_error *error)
{
    char words[512] = "", quote[FACTS_QUOTE_MAX];
    size_t used = 0;
    facts_span word, rest = text;
    while ((word = facts_span_word(&rest)).length > 0 && word.at[0] != '#') {
        if (used + word.length + 2 > sizeof words)
            return facts_fail_at(error, file, line, 1, "more suites than a line may name");
        for (size_t i = 0; i < word.length; i++)
            if (strchr("abcdefghijklmnopqrstuvwxyz0123456789_-./", word.at[i]) == NULL)
                return facts_fail_at(error, file, line, (int)(strlen("suites:") + (size_t)(word.at - text.at)) + 1,
                                     "%s is no name of a suite", facts_quote(quote, word));
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%.*s", used > 0 ? " " : "", (int)word.length, word.at);
    }
    if (used == 0)
        return facts_fail_at(error, file, line, 1, "suites: takes names of suites, such as regress surface, or all");
    *suites = strcmp(words, "all") == 0 ? "" : keep(list, facts_span_of(words));
    return *suites != NULL || facts_fail_at(error, file, line, 1, "no memory");
}

static bool add_line(facts_deviations *list, facts_span text, const char **suites, const char *file, int line, facts_error *error)
{
    static const char head[] = "suites:";
    if (text.length >= strlen(head) && memcmp(text.at, head, strlen(head)) == 0)
        return read_suites(list, (facts_span){ text.at + strlen(head), text.length - strlen(head) }, suites, file, line, error);
    entry *entries = realloc(list->entries, (list->count + 1) * sizeof *entries);
    if (entries == NULL)
        return facts_fail_at(error, file, line, 1, "no memory");
    list->entries = entries;
    entry e = { .text = strndup(text.at, text.length) };
    if (e.text == NULL)
        return facts_fail_at(error, file, line, 1, "no memory");
    char *trimmed = e.text + strspn(e.text, " \t\r");
    if (*trimmed == '\0' || *trimmed == '#') {
        free(e.text);
        return true;
    }
    if (!read_entry(&e, file, line, *suites, error)) {
        free(e.text);
        return false;
    }
    entries[list->count++] = e;
    return true;
}

bool facts_deviations_read(facts_deviations *list, const char *text, const char *file, facts_error *error)
{
    const char *name = keep(list, facts_span_of(file)), *suites = "";
    if (name == NULL)
        return facts_fail_at(error, file, 1, 1, "no memory");
    facts_span rest = facts_span_of(text);
    for (int line = 1; rest.length > 0; line++) {
        if (!add_line(list, facts_span_cut(&rest, '\n'), &suites, name, line, error))
            return false;
    }
    return true;
}

bool facts_deviations_load(facts_deviations *list, const char *folder, facts_error *error)
{
    char **paths;
    size_t count = facts_folder_files(folder, ".expect", &paths);
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++) {
        char *text = facts_file_text(paths[i], error);
        ok = text != NULL && facts_deviations_read(list, text, paths[i], error);
        free(text);
    }
    facts_folder_free(paths, count);
    return ok;
}

/* Is one of the suites that are run one that the line names, or in a folder that it names? */
static bool is_about(const facts_deviation *d, const char *suites)
{
    facts_span rest = facts_span_of(d->suites), named;
    if (*d->suites == '\0' || *suites == '\0')
        return true;
    while ((named = facts_span_word(&rest)).length > 0) {
        facts_span run = facts_span_of(suites), word;
        while ((word = facts_span_word(&run)).length > 0) {
            bool begins = word.length >= named.length && memcmp(word.at, named.at, named.length) == 0;
            if (begins && (word.length == named.length || word.at[named.length] == '/'))
                return true;
        }
    }
    return false;
}

void facts_deviations_choose(facts_deviations *list, const char *suites)
{
    for (size_t i = 0; i < list->count; i++)
        list->entries[i].left_out = !is_about(&list->entries[i].shown, suites);
}

facts_deviation *facts_deviations_lookup(facts_deviations *list, const facts_subject *subject)
{
    entry *first = NULL;
    for (size_t i = 0; i < list->count; i++) {
        entry *e = &list->entries[i];
        if (e->left_out || !facts_predicate_holds(e->where, subject))
            continue;
        first = first != NULL ? first : e;
        if (subject->verdict != NULL && facts_deviation_names(&e->shown, subject->verdict)) {
            first = e;
            break;
        }
    }
    if (first == NULL)
        return NULL;
    first->shown.used = true;
    return &first->shown;
}

bool facts_deviations_possible(const facts_deviations *list, size_t i, const facts_subject *subject)
{
    return facts_predicate_possible(list->entries[i].where, subject);
}

size_t facts_deviations_count(const facts_deviations *list)
{
    return list->count;
}

const facts_deviation *facts_deviations_at(const facts_deviations *list, size_t i)
{
    return &list->entries[i].shown;
}

void facts_deviations_destroy(facts_deviations *list)
{
    if (list == NULL)
        return;
    for (size_t i = 0; i < list->count; i++) {
        facts_predicate_destroy(list->entries[i].where);
        free(list->entries[i].text);
    }
    for (size_t i = 0; i < list->text_count; i++)
        free(list->texts[i]);
    free(list->entries);
    free(list->texts);
    free(list);
}
