#include "expectation_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/words/case_text.h"
#include "case/words/text_file.h"
#include "case/words/verdict.h"
#include "file_lines.h"

typedef struct entry {
    facts_deviation shown;
    facts_predicate *where;
    bool left_out; /* by facts_deviations_choose */
} entry;

struct facts_deviations {
    const facts_language *language;
    entry *entries;
    size_t count;
    char **texts; /* what the entries point into */
    size_t text_count;
};

facts_deviations *facts_deviations_create(const facts_language *language)
{
    facts_deviations *list = calloc(1, sizeof *list);
    if (list)
        list->language = language;
    return list;
}

static int two_digits(const char *text)
{
    return (text[0] - '0') * 10 + (text[1] - '0');
}

static bool is_date(facts_span text)
{
    static const char form[] = "dddd-dd-dd";
    for (size_t i = 0; i < sizeof form - 1; i++) {
        bool digit = i < text.length && text.at[i] >= '0' && text.at[i] <= '9';
        if (form[i] == 'd' ? !digit : text.at[i] != form[i])
            return false;
    }
    int month = two_digits(text.at + 5), day = two_digits(text.at + 8);
    return text.length == sizeof form - 1 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

bool facts_deviation_names(const facts_deviation *d, const char *verdict)
{
    bool found = false;
    facts_span rest = facts_span_of(d->verdict);
    while (rest.length > 0)
        found = facts_span_is(facts_span_cut(&rest, '/'), verdict) || found;
    return found;
}

/* A file while it is read. */
typedef struct reader {
    facts_deviations *list;
    facts_lines in;
    const char *suites; /* of the lines that follow; "": all */
} reader;

/* One verdict, or some of which any may come: wrong/nan. */
static bool check_verdicts(const reader *r, facts_span rest)
{
    char quote[FACTS_QUOTE_MAX], hint[FACTS_QUOTE_MAX];
    do {
        facts_span word = facts_span_cut(&rest, '/');
        facts_nearest nearest = facts_nearest_start(word);
        for (facts_verdict v = 0; v < FACTS_VERDICT_COUNT; v++)
            facts_nearest_offer(&nearest, facts_verdict_name(v), strlen(facts_verdict_name(v)));
        if (facts_verdict_read(word) == FACTS_VERDICT_COUNT)
            return facts_lines_fail(&r->in, word.at, "%s is not a verdict%s",
                                    facts_quote(quote, word), facts_nearest_hint(&nearest, hint));
    } while (rest.length > 0);
    return true;
}

/* Takes the last word off a text; it is empty when the text has no other. */
static facts_span last_word(facts_span *text)
{
    size_t start = text->length;
    while (start > 0 && !facts_is_blank(text->at[start - 1]))
        start--;
    if (start == 0)
        return (facts_span){ text->at + text->length, 0 };
    facts_span word = { text->at + start, text->length - start };
    text->length = start;
    *text = facts_span_trim(*text);
    return word;
}

/* What stands behind the # of a line, whose text before it is given. */
static facts_span note_of(facts_span line)
{
    facts_span rest = facts_span_of(line.at + line.length);
    rest = facts_span_cut(&rest, '\n');
    facts_span_cut(&rest, '#');
    return facts_span_trim(rest);
}

/* A copy that lives as long as the list. */
static const char *keep(facts_deviations *list, facts_span text)
{
    list->texts = facts_grow(list->texts, list->text_count, sizeof *list->texts);
    return list->texts[list->text_count++] = strndup(text.at, text.length);
}

static bool read_entry(reader *r, facts_span line)
{
    char quote[FACTS_QUOTE_MAX];
    facts_deviations *list = r->list;
    facts_span where = line, date = facts_span_word(&where), verdict = facts_span_word(&where),
               link;
    bool sometimes = verdict.length > 1 && verdict.at[verdict.length - 1] == '?';
    verdict.length -= sometimes ? 1 : 0;
    if (!is_date(date))
        return facts_lines_fail(&r->in, date.at,
                                "%s is not a date; DATE VERDICT PREDICATE LINK # note",
                                facts_quote(quote, date));
    if (!check_verdicts(r, verdict))
        return false;
    where = facts_span_trim(where);
    link = last_word(&where);
    if (link.length == 0 || memchr(link.at, '/', link.length) == NULL)
        return facts_lines_fail(&r->in, link.at,
                                "the last word must be a link (owner/project#12 or an address)");
    list->entries = facts_grow(list->entries, list->count, sizeof *list->entries);
    entry e = { .left_out = false };
    if (!facts_lines_predicate(&r->in, where, "", &e.where))
        return false;
    e.shown = (facts_deviation){ .date = keep(list, date),
                                 .verdict = keep(list, verdict),
                                 .where = keep(list, where),
                                 .link = keep(list, link),
                                 .note = keep(list, note_of(line)),
                                 .suites = r->suites,
                                 .file = r->in.where,
                                 .line = r->in.line,
                                 .column = (int)(where.at - r->in.start) + 1,
                                 .sometimes = sometimes };
    list->entries[list->count++] = e;
    return true;
}

/* What follows `suites:`, its blanks made one. */
static bool read_suites(reader *r, facts_span text)
{
    char words[512] = "", quote[FACTS_QUOTE_MAX];
    size_t used = 0;
    facts_span word;
    while ((word = facts_span_word(&text)).length > 0) {
        if (used + word.length + 2 > sizeof words)
            return facts_lines_fail(&r->in, NULL, "more suites than a line may name");
        for (size_t i = 0; i < word.length; i++)
            if (strchr("abcdefghijklmnopqrstuvwxyz0123456789_-./", word.at[i]) == NULL)
                return facts_lines_fail(&r->in, word.at, "%s is no name of a suite",
                                        facts_quote(quote, word));
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%.*s", used > 0 ? " " : "",
                                 (int)word.length, word.at);
    }
    if (used == 0)
        return facts_lines_fail(&r->in, NULL,
                                "suites: takes names of suites, such as regress surface, or all");
    r->suites = strcmp(words, "all") == 0 ? "" : keep(r->list, facts_span_of(words));
    return true;
}

static bool read_line(void *context, facts_span line)
{
    static const char head[] = "suites:";
    const size_t letters = strlen(head);
    if (line.length >= letters && memcmp(line.at, head, letters) == 0)
        return read_suites(context, (facts_span){ line.at + letters, line.length - letters });
    return read_entry(context, line);
}

bool facts_deviations_read(facts_deviations *list, const char *text, const char *file,
                           facts_error *error)
{
    reader r = { .list = list,
                 .in = { .language = list->language,
                         .where = keep(list, facts_span_of(file)),
                         .error = error },
                 .suites = "" };
    return facts_lines_each(&r.in, text, read_line, &r);
}

bool facts_deviations_load(facts_deviations *list, const char *folder, facts_error *error)
{
    char **paths;
    size_t count = facts_folder_files(folder, ".expect", &paths);
    /* A folder that cannot be listed is not one without lines. */
    bool ok = count > 0 || errno == 0 || errno == ENOENT || errno == ENOTDIR ||
              facts_fail_at(error, folder, 1, 1, "cannot be listed: %s", strerror(errno));
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
            bool begins =
                word.length >= named.length && memcmp(word.at, named.at, named.length) == 0;
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
    facts_deviation *first = NULL, *named = NULL;
    for (size_t i = 0; i < list->count; i++) {
        entry *e = &list->entries[i];
        if (e->left_out || !facts_predicate_holds(e->where, subject))
            continue;
        e->shown.used = true;
        if (!first)
            first = &e->shown;
        if (!named && subject->verdict && facts_deviation_names(&e->shown, subject->verdict))
            named = &e->shown;
    }
    return named ? named : first;
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
    for (size_t i = 0; i < list->count; i++)
        facts_predicate_destroy(list->entries[i].where);
    for (size_t i = 0; i < list->text_count; i++)
        free(list->texts[i]);
    free(list->entries);
    free(list->texts);
    free(list);
}
