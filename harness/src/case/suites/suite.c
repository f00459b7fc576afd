#include "suite.h"

#include <stdlib.h>
#include <string.h>

#include "file_lines.h"

#define MOST_LETTERS 65536 /* of one line */

typedef struct reader {
    facts_suite *suite;
    facts_lines in;
    size_t first_group;
} reader;

static char *copy(facts_span text)
{
    return strndup(text.at, text.length);
}

static bool open_group(reader *r, facts_span name)
{
    facts_suite *suite = r->suite;
    for (size_t i = r->first_group; i < suite->groups; i++) {
        if (name.length > 0 && facts_span_is(name, suite->group[i].name))
            return facts_lines_fail(&r->in, NULL, "a group with this name exists already");
    }
    facts_group *group = facts_grow(suite->group, suite->groups, sizeof *group);
    if (group == NULL)
        return facts_lines_fail(&r->in, NULL, "no memory");
    suite->group = group;
    group = &suite->group[suite->groups];
    *group = (facts_group){ copy(name), strdup(""), strdup(""), r->in.line, NULL };
    suite->groups++;
    return (group->name != NULL && group->why != NULL && group->expect != NULL) ||
           facts_lines_fail(&r->in, NULL, "no memory");
}

/* Longer texts may take several lines of the same key. */
static bool append(reader *r, char **to, facts_span text)
{
    size_t before = strlen(*to);
    if (before + text.length > MOST_LETTERS)
        return facts_lines_fail(&r->in, NULL, "longer than a group may say");
    char *longer = realloc(*to, before + text.length + 2);
    if (longer == NULL)
        return facts_lines_fail(&r->in, NULL, "no memory");
    *to = longer;
    if (before > 0)
        longer[before++] = ' ';
    memcpy(longer + before, text.at, text.length);
    longer[before + text.length] = '\0';
    return true;
}

/* Finds a word that stands alone; SIZE_MAX when there is none. */
static size_t find_word(facts_span text, const char *word)
{
    size_t letters = strlen(word);
    for (size_t i = 0; i + letters <= text.length; i++) {
        bool starts = i == 0 || facts_is_blank(text.at[i - 1]),
             ends = i + letters == text.length || facts_is_blank(text.at[i + letters]);
        if (starts && ends && memcmp(text.at + i, word, letters) == 0)
            return i;
    }
    return SIZE_MAX;
}

/* `draw N [seed=S]` at the front of a line. */
static bool read_draw(reader *r, facts_span *text, facts_suite_line *line)
{
    facts_span rest = *text, before;
    if (!facts_span_is(facts_span_word(&rest), "draw"))
        return true;
    facts_span number = facts_span_word(&rest);
    if (!facts_read_integer(number, 1000000, &line->draw) || line->draw == 0)
        return facts_lines_fail(
            &r->in, number.at,
            "draw takes how many, from 1 to 1000000: draw 40 seed=7 KEY=VALUES...");
    line->seed = 1;
    before = rest;
    facts_span seed = facts_span_word(&rest), value = seed;
    if (facts_span_is(facts_span_cut(&value, '='), "seed")) {
        if (!facts_read_integer(value, UINT64_MAX - 9, &line->seed))
            return facts_lines_fail(&r->in, seed.at, "the seed of a draw is a whole number");
    } else {
        rest = before;
    }
    *text = facts_span_trim(rest);
    return true;
}

static bool read_pattern(reader *r, facts_span text)
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
    if (!read_draw(r, &text, &line))
        return false;
    line.place = (facts_place){ r->in.where, r->in.line, (int)(text.at - r->in.start) + 1 };
    if (where != SIZE_MAX && !facts_lines_predicate(&r->in, kept, "where: ", &line.where))
        return false;
    facts_suite_line *lines = NULL;
    if (!facts_pattern_read(&line.pattern, text, line.place, r->in.error) ||
        (lines = facts_grow(suite->line, suite->lines, sizeof *lines)) == NULL) {
        facts_predicate_destroy(line.where);
        bool read = line.pattern != NULL;
        facts_pattern_destroy(line.pattern);
        return read ? facts_lines_fail(&r->in, NULL, "no memory") : false;
    }
    suite->line = lines;
    suite->line[suite->lines++] = line;
    if (line.draw > facts_pattern_count(line.pattern))
        return facts_lines_fail(&r->in, NULL, "draw %llu of %llu members",
                                (unsigned long long)line.draw,
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
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";
    for (size_t i = 0; i < name.length; i++) {
        if (name.at[i] == '\0' || strchr(letters, name.at[i]) == NULL)
            return facts_lines_fail(&r->in, NULL,
                                    "a name has letters, digits, _ . - / and no blanks");
    }
    return name.length > 0 && name.length <= 100
               ? open_group(r, name)
               : facts_lines_fail(&r->in, NULL, "name: takes a name of at most 100 letters");
}

static bool read_line(void *context, facts_span text)
{
    reader *r = context;
    facts_span rest;
    facts_group *group =
        r->suite->groups > r->first_group ? &r->suite->group[r->suite->groups - 1] : NULL;
    if (starts(text, "name:", &rest))
        return read_name(r, rest);
    bool why = starts(text, "why:", &rest), expect = !why && starts(text, "expect:", &rest);
    if (why || expect) {
        if (group == NULL)
            return facts_lines_fail(&r->in, NULL, "must follow the line name: of its group");
        return append(r, why ? &group->why : &group->expect, rest);
    }
    if (starts(text, "where ", &rest)) {
        if (group == NULL || group->where != NULL)
            return facts_lines_fail(&r->in, NULL,
                                    group == NULL ? "where must follow the line name: of its group"
                                                  : "this group has a where already");
        return facts_lines_predicate(&r->in, rest, "where: ", &group->where);
    }
    return read_pattern(r, text);
}

bool facts_suite_read(facts_suite *suite, const char *text, const char *where, facts_error *error)
{
    reader r = { .suite = suite,
                 .in = { .where = where, .most = MOST_LETTERS, .error = error },
                 .first_group = suite->groups };
    return facts_lines_each(&r.in, text, read_line, &r);
}

uint64_t facts_suite_count(const facts_suite *suite)
{
    uint64_t all = 0;
    for (size_t i = 0; i < suite->lines; i++) {
        uint64_t count = suite->line[i].draw > 0 ? suite->line[i].draw
                                                 : facts_pattern_count(suite->line[i].pattern);
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
