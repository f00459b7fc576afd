#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define MOST_LETTERS 65536 /* of one line */

/* What is being read: one line of one file. */
typedef struct reader {
    facts_suite *suite;
    const char *where;
    int line;
    size_t first_group;
    facts_error *error;
} reader;

static bool fail(const reader *r, int column, const char *what)
{
    return facts_fail(r->error, r->where, r->line, column, "%s", what);
}

static void *grow(void *array, size_t count, size_t size)
{
    return (count & (count + 1)) == 0 ? realloc(array, (count * 2 + 1) * size) : array;
}

static char *copy(facts_span text)
{
    return strndup(text.at, text.length);
}

static bool open_group(reader *r, facts_span name)
{
    facts_suite *suite = r->suite;
    for (size_t i = r->first_group; i < suite->groups; i++) {
        if (name.length > 0 && facts_span_is(name, suite->group[i].name))
            return fail(r, 1, "a group of this name is there already");
    }
    facts_group *group = grow(suite->group, suite->groups, sizeof *group);
    if (group == NULL)
        return fail(r, 1, "no memory");
    suite->group = group;
    group = &suite->group[suite->groups];
    *group = (facts_group){ copy(name), strdup(""), strdup(""), r->line, NULL };
    suite->groups++;
    return (group->name != NULL && group->why != NULL && group->expect != NULL) || fail(r, 1, "no memory");
}

/* Longer texts may take several lines of the same key. */
static bool append(reader *r, char **to, facts_span text)
{
    size_t before = strlen(*to);
    if (before + text.length > MOST_LETTERS)
        return fail(r, 1, "longer than a group may say");
    char *longer = realloc(*to, before + text.length + 2);
    if (longer == NULL)
        return fail(r, 1, "no memory");
    *to = longer;
    if (before > 0)
        longer[before++] = ' ';
    memcpy(longer + before, text.at, text.length);
    longer[before + text.length] = '\0';
    return true;
}

static bool read_where(reader *r, facts_span text, int column, facts_predicate **out)
{
    char *expression = copy(text);
    if (expression == NULL)
        return fail(r, column, "no memory");
    facts_error inner = { "", 0, 0 };
    bool ok = facts_predicate_parse(out, expression, &inner);
    free(expression);
    if (ok)
        return true;
    const char *sentence = strchr(inner.text, ' '); /* after "where:1:COLUMN:" */
    return facts_fail(r->error, r->where, r->line, column + inner.column - 1, "where: %s",
                      sentence != NULL ? sentence + 1 : inner.text);
}

/* Finds a word that stands alone; SIZE_MAX when there is none. */
static size_t find_word(facts_span text, const char *word)
{
    size_t letters = strlen(word);
    for (size_t i = 0; i + letters <= text.length; i++) {
        bool starts = i == 0 || facts_is_blank(text.at[i - 1]), ends = i + letters == text.length || facts_is_blank(text.at[i + letters]);
        if (starts && ends && memcmp(text.at + i, word, letters) == 0)
            return i;
    }
    return SIZE_MAX;
}

/* `draw N [seed=S]` at the front of a line. */
static bool read_draw(reader *r, facts_span *text, const char *start, facts_suite_line *line)
{
    facts_span rest = *text, before;
    if (!facts_span_is(facts_span_word(&rest), "draw"))
        return true;
    facts_span number = facts_span_word(&rest);
    if (!facts_read_integer(number, 1000000, &line->draw) || line->draw == 0)
        return fail(r, (int)(number.at - start) + 1, "draw takes how many, from 1 to 1000000: draw 40 seed=7 KEY=VALUES...");
    line->seed = 1;
    before = rest;
    facts_span seed = facts_span_word(&rest), value = seed;
    if (facts_span_is(facts_span_cut(&value, '='), "seed")) {
        if (!facts_read_integer(value, UINT64_MAX - 9, &line->seed))
            return fail(r, (int)(seed.at - start) + 1, "the seed of a draw is a whole number");
    } else {
        rest = before;
    }
    *text = facts_span_trim(rest);
    return true;
}

static bool read_pattern(reader *r, facts_span text, const char *start)
{
    facts_suite *suite = r->suite;
    if (suite->groups == r->first_group && !open_group(r, (facts_span){ "", 0 }))
        return false;
    facts_suite_line line = { .group = suite->groups - 1 };
    size_t where = find_word(text, "where");
    facts_span kept = { text.at + text.length, 0 };
    if (where != SIZE_MAX) {
        kept = facts_span_trim((facts_span){ text.at + where + 5, text.length - where - 5 });
        text = facts_span_trim((facts_span){ text.at, where });
    }
    if (!read_draw(r, &text, start, &line))
        return false;
    line.place = (facts_place){ r->where, r->line, (int)(text.at - start) + 1 };
    if (where != SIZE_MAX && !read_where(r, kept, (int)(kept.at - start) + 1, &line.where))
        return false;
    facts_suite_line *lines = NULL;
    if (!facts_pattern_read(&line.pattern, text, line.place, r->error) ||
        (lines = grow(suite->line, suite->lines, sizeof *lines)) == NULL) {
        facts_predicate_destroy(line.where);
        bool read = line.pattern != NULL;
        facts_pattern_destroy(line.pattern);
        return read ? fail(r, 1, "no memory") : false;
    }
    suite->line = lines;
    suite->line[suite->lines++] = line;
    if (line.draw > facts_pattern_count(line.pattern))
        return facts_fail(r->error, r->where, r->line, 1, "draw %llu of %llu members", (unsigned long long)line.draw,
                          (unsigned long long)facts_pattern_count(line.pattern));
    return true;
}

static bool starts(facts_span text, const char *word, facts_span *rest)
{
    size_t letters = strlen(word);
    if (text.length < letters || memcmp(text.at, word, letters) != 0)
        return false;
    *rest = facts_span_trim((facts_span){ text.at + letters, text.length - letters });
    return true;
}

static bool read_name(reader *r, facts_span name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";
    for (size_t i = 0; i < name.length; i++) {
        if (name.at[i] == '\0' || strchr(letters, name.at[i]) == NULL)
            return fail(r, 1, "a name has letters, digits, _ . - / and no blanks");
    }
    return name.length > 0 && name.length <= 100 ? open_group(r, name) : fail(r, 1, "name: takes a name of at most 100 letters");
}

static bool read_line(reader *r, facts_span whole)
{
    facts_span text = facts_span_without_comment(whole), rest;
    facts_group *group = r->suite->groups > r->first_group ? &r->suite->group[r->suite->groups - 1] : NULL;
    if (text.length == 0)
        return true;
    if (starts(text, "name:", &rest))
        return read_name(r, rest);
    bool why = starts(text, "why:", &rest), expect = !why && starts(text, "expect:", &rest);
    if (why || expect) {
        if (group == NULL)
            return fail(r, 1, "belongs to a group; name: opens one");
        return append(r, why ? &group->why : &group->expect, rest);
    }
    if (starts(text, "where ", &rest)) {
        if (group == NULL || group->where != NULL)
            return fail(r, 1,
                        group == NULL ? "where belongs to a group; name: opens one" : "where is there already for this group");
        return read_where(r, rest, (int)(rest.at - whole.at) + 1, &group->where);
    }
    return read_pattern(r, text, whole.at);
}

bool facts_suite_read(facts_suite *suite, const char *text, const char *where, facts_error *error)
{
    reader r = { .suite = suite, .where = where, .first_group = suite->groups, .error = error };
    facts_span rest = facts_span_of(text);
    while (rest.length > 0) {
        facts_span line = facts_span_cut(&rest, '\n');
        r.line++;
        if (line.length > MOST_LETTERS)
            return fail(&r, 1, "the line is longer than a line may be");
        if (!read_line(&r, line))
            return false;
    }
    return true;
}

uint64_t facts_suite_count(const facts_suite *suite)
{
    uint64_t all = 0;
    for (size_t i = 0; i < suite->lines; i++) {
        uint64_t count = suite->line[i].draw > 0 ? suite->line[i].draw : facts_pattern_count(suite->line[i].pattern);
        all = count > UINT64_MAX - all ? UINT64_MAX : all + count;
    }
    return all;
}

void facts_suite_clear(facts_suite *suite)
{
    for (size_t i = 0; i < suite->groups; i++) {
        free(suite->group[i].name);
        free(suite->group[i].why);
        free(suite->group[i].expect);
        facts_predicate_destroy(suite->group[i].where);
    }
    for (size_t i = 0; i < suite->lines; i++) {
        facts_pattern_destroy(suite->line[i].pattern);
        facts_predicate_destroy(suite->line[i].where);
    }
    free(suite->group);
    free(suite->line);
    *suite = (facts_suite){ 0 };
}
