#include "expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../numbers/judge.h" /* the words for verdicts */
#include "file.h"
#include "text.h"

typedef struct entry {
    facts_deviation shown;
    facts_predicate *where;
    char *text; /* the line, cut at its fields: what `shown` points into */
} entry;

struct facts_deviations {
    entry *entries;
    size_t count;
    char **files;
    size_t file_count;
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

static bool is_verdict(const char *text, facts_nearest *nearest)
{
#define AS_WORD(symbol, word) word,
    static const char *const words[] = { FACTS_VERDICT_LIST(AS_WORD) };
#undef AS_WORD
    bool found = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        found = found || strcmp(words[i], text) == 0;
        facts_nearest_offer(nearest, words[i], strlen(words[i]));
    }
    return found;
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

static bool read_entry(entry *e, const char *file, int line, facts_error *error)
{
    char quote[FACTS_QUOTE_MAX], hint[FACTS_QUOTE_MAX], *rest = e->text;
    facts_deviation *d = &e->shown;
    *d = (facts_deviation){ .note = cut_note(e->text), .file = file, .line = line };
    d->date = first_word(&rest);
    char *verdict = first_word(&rest);
    size_t length = strlen(verdict);
    d->sometimes = length > 1 && verdict[length - 1] == '?';
    if (d->sometimes)
        verdict[length - 1] = '\0';
    d->verdict = verdict;
    if (!is_date(d->date))
        return facts_fail(error, file, line, 1, "%s is not a date; DATE VERDICT PREDICATE LINK # note",
                          facts_quote(quote, facts_span_of(d->date)));
    facts_nearest nearest = facts_nearest_start(facts_span_of(d->verdict));
    if (!is_verdict(d->verdict, &nearest))
        return facts_fail(error, file, line, (int)(d->verdict - e->text) + 1, "%s is not a verdict%s",
                          facts_quote(quote, facts_span_of(d->verdict)), facts_nearest_hint(&nearest, hint));
    d->link = last_word(rest);
    if (strchr(d->link, '/') == NULL)
        return facts_fail(error, file, line, (int)(d->link - e->text) + 1,
                          "the last word must be a link (owner/project#12 or an address)");
    d->where = rest + strspn(rest, " \t");
    facts_error inner = { "", 0, 0 };
    facts_predicate *where = NULL;
    if (facts_predicate_parse(&where, d->where, &inner)) {
        e->where = where;
        return true;
    }
    const char *sentence = strchr(inner.text, ' ');
    return facts_fail(error, file, line, (int)(d->where - e->text) + inner.column, "%s",
                      sentence != NULL ? sentence + 1 : inner.text);
}

static bool add_line(facts_deviations *list, facts_span text, const char *file, int line, facts_error *error)
{
    entry *entries = realloc(list->entries, (list->count + 1) * sizeof *entries);
    if (entries == NULL)
        return facts_fail(error, file, line, 1, "no memory");
    list->entries = entries;
    entry e = { .text = strndup(text.at, text.length) };
    if (e.text == NULL)
        return facts_fail(error, file, line, 1, "no memory");
    char *trimmed = e.text + strspn(e.text, " \t\r");
    if (*trimmed == '\0' || *trimmed == '#') {
        free(e.text);
        return true;
    }
    if (!read_entry(&e, file, line, error)) {
        free(e.text);
        return false;
    }
    entries[list->count++] = e;
    return true;
}

bool facts_deviations_read(facts_deviations *list, const char *text, const char *file, facts_error *error)
{
    char **files = realloc(list->files, (list->file_count + 1) * sizeof *files), *name = strdup(file);
    if (files != NULL)
        list->files = files;
    if (files == NULL || name == NULL) {
        free(name);
        return facts_fail(error, file, 1, 1, "no memory");
    }
    files[list->file_count++] = name;
    facts_span rest = facts_span_of(text);
    for (int line = 1; rest.length > 0; line++) {
        if (!add_line(list, facts_span_cut(&rest, '\n'), name, line, error))
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

const facts_deviation *facts_deviations_lookup(facts_deviations *list, const facts_subject *subject)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!facts_predicate_holds(list->entries[i].where, subject))
            continue;
        list->entries[i].shown.used = true;
        return &list->entries[i].shown;
    }
    return NULL;
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
    for (size_t i = 0; i < list->file_count; i++)
        free(list->files[i]);
    free(list->entries);
    free(list->files);
    free(list);
}
