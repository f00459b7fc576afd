#include "suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predicate.h"
#include "words/case_text.h"

/* Reads the text files of FACTS line by line, and reports the line and the letter of a mistake. */

typedef struct facts_lines {
    const facts_language *language; /* of predicates */
    const char *where;              /* the file, for people */
    size_t most;                    /* letters of a line; 0: as many as there are */
    facts_error *error;             /* of what went wrong */
    int line;                       /* the one that is read now */
    const char *start;              /* its first letter */
} facts_lines;

static bool facts_lines_fail(const facts_lines *in, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Calls `read` for each line that is not empty, without its comment, until it returns false.
 * Returns whether all lines were read. */
static bool facts_lines_each(facts_lines *in, const char *text,
                             bool (*read)(void *context, facts_span line), void *context)
{
    facts_span rest = facts_span_of(text);
    while (rest.length > 0) {
        facts_span line = facts_span_cut(&rest, '\n');
        in->line++;
        in->start = line.at;
        if (in->most > 0 && line.length > in->most)
            return facts_lines_fail(in, NULL, "the line is too long");
        line = facts_span_without_comment(line);
        if (line.length > 0 && !read(context, line))
            return false;
    }
    return true;
}

/* Reports a mistake at a letter of the line (NULL: the whole line). Returns false. */
static bool facts_lines_fail(const facts_lines *in, const char *at, const char *format, ...)
{
    char what[sizeof in->error->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return facts_fail_at(in->error, in->where, in->line, at ? (int)(at - in->start) + 1 : 1, "%s",
                         what);
}

/* Parses a predicate that is part of the line. Mistakes are reported at their place in the line,
 * which starts after `before`. */
static bool facts_lines_predicate(const facts_lines *in, facts_span text, const char *before,
                                  facts_predicate **out)
{
    facts_error inner = { 0 };
    char *copy = strndup(text.at, text.length);
    bool ok = facts_predicate_parse(in->language, out, copy, &inner);
    free(copy);
    const char *sentence = strchr(inner.text, ' '); /* after "where:1:COLUMN:" */
    return ok || facts_lines_fail(in, text.at + (inner.column ? inner.column - 1 : 0), "%s%s",
                                  before, sentence ? sentence + 1 : "no memory");
}

#define MOST_LETTERS 65536 /* of one line */
#define MOST_TRIES 64      /* of one case that is drawn */

typedef struct reader {
    facts_suite *suite;
    facts_lines in;
    size_t first_group;
    bool draws; /* the lines that follow belong to the last `draw` */
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
    suite->group = facts_grow(suite->group, suite->groups, sizeof *suite->group);
    suite->group[suite->groups++] =
        (facts_group){ copy(name), strdup(""), strdup(""), r->in.line, NULL };
    return true;
}

/* Longer texts may take several lines of the same key. */
static bool append(reader *r, char **to, facts_span text)
{
    size_t before = strlen(*to);
    if (before + text.length > MOST_LETTERS)
        return facts_lines_fail(&r->in, NULL, "longer than a group may say");
    char *longer = realloc(*to, before + text.length + 2);
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

/* Removes "WORD=N" from the front of *rest, if it is there. */
static bool read_number(reader *r, facts_span *rest, const char *word, uint64_t *out)
{
    facts_span behind = *rest, number = facts_span_word(&behind), value = number;
    if (!facts_span_is(facts_span_cut(&value, '='), word))
        return true;
    *rest = behind;
    return facts_read_integer(value, UINT64_MAX - 9, out) ||
           facts_lines_fail(&r->in, number.at, "%s= of a draw is a whole number", word);
}

/* `calls N` at the front of a line. */
static bool read_calls(reader *r, facts_span *text, facts_suite_line *line)
{
    facts_span rest = *text;
    if (!facts_span_is(facts_span_word(&rest), "calls"))
        return true;
    facts_span number = facts_span_word(&rest);
    *text = facts_span_trim(rest);
    return (facts_read_integer(number, UINT64_C(1) << 40, &line->calls) && line->calls &&
            text->length) ||
           facts_lines_fail(&r->in, number.at, "calls takes how many, then a case: calls 12 d=64");
}

/* `draw N [seed=S] [work=W]` at the front of a line. */
static bool read_draw(reader *r, facts_span *text, facts_suite_line *line)
{
    facts_span rest = *text;
    if (!facts_span_is(facts_span_word(&rest), "draw"))
        return true;
    facts_span number = facts_span_word(&rest);
    if (!facts_read_integer(number, 1000000, &line->draw) || line->draw == 0)
        return facts_lines_fail(
            &r->in, number.at,
            "draw takes how many, from 1 to 1000000: draw 40 seed=7 KEY=VALUES...");
    line->seed = 1;
    if (!read_number(r, &rest, "seed", &line->seed) || !read_number(r, &rest, "work", &line->work))
        return false;
    *text = facts_span_trim(rest);
    return true;
}

static bool add_line(reader *r, facts_suite_line line)
{
    facts_suite *suite = r->suite;
    suite->line = facts_grow(suite->line, suite->lines, sizeof *suite->line);
    suite->line[suite->lines++] = line;
    return true;
}

/* Keys of the `draw` above. */
static bool add_keys(reader *r, facts_drawn_keys keys)
{
    facts_suite_line *line = &r->suite->line[r->suite->lines - 1];
    line->keys = facts_grow(line->keys, line->key_lines, sizeof *line->keys);
    line->keys[line->key_lines++] = keys;
    return true;
}

/* A pattern alone: all its members, or some that are drawn. */
static bool add_pattern(reader *r, facts_suite_line line)
{
    int weight = facts_pattern_weight(line.pattern);
    uint64_t members = facts_pattern_count(line.pattern);
    if (weight > 0)
        return facts_lines_fail(&r->in, r->in.start + weight - 1,
                                "only lines below a `draw N` have weights");
    if (line.draw > members)
        return facts_lines_fail(&r->in, NULL, "draw %llu of %llu members",
                                (unsigned long long)line.draw, (unsigned long long)members);
    return add_line(r, line);
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
    if (!read_calls(r, &text, &line) || !read_draw(r, &text, &line))
        return false;
    line.place = (facts_place){ r->in.where, r->in.line, (int)(text.at - r->in.start) + 1 };
    if (where != SIZE_MAX && !facts_lines_predicate(&r->in, kept, "where: ", &line.where))
        return false;
    bool below = line.draw == 0 && r->draws;
    r->draws = below || (line.draw > 0 && text.length == 0);
    bool read = line.draw > 0 && text.length == 0
                    ? add_line(r, line)
                    : facts_pattern_read(suite->language, &line.pattern, text, line.place,
                                         suite->lists, r->in.error) &&
                          (below ? add_keys(r, (facts_drawn_keys){ line.pattern, line.where })
                                 : add_pattern(r, line));
    if (!read) {
        facts_predicate_destroy(line.where);
        facts_pattern_destroy(line.pattern);
    }
    return read;
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
    if (starts(text, "name:", &rest)) {
        r->draws = false;
        return read_name(r, rest);
    }
    if (starts(text, "list ", &rest))
        return facts_list_read(
            r->suite->language, &r->suite->lists, rest,
            (facts_place){ r->in.where, r->in.line, (int)(rest.at - r->in.start) + 1 },
            r->in.error);
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
    reader r = {
        .suite = suite,
        .in = { .language = suite->language, .where = where, .most = MOST_LETTERS, .error = error },
        .first_group = suite->groups
    };
    size_t first = suite->lines;
    if (!facts_lines_each(&r.in, text, read_line, &r))
        return false;
    for (size_t i = first; i < suite->lines; i++)
        if (suite->line[i].pattern == NULL && suite->line[i].key_lines == 0)
            return facts_fail_at(error, where, suite->line[i].place.line, 1,
                                 "no keys follow this draw");
    return true;
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
        facts_suite_line *line = &suite->line[i];
        for (size_t k = 0; k < line->key_lines; k++) {
            facts_pattern_destroy(line->keys[k].pattern);
            facts_predicate_destroy(line->keys[k].where);
        }
        free(line->keys);
        facts_pattern_destroy(line->pattern);
        facts_predicate_destroy(line->where);
    }
    facts_lists_destroy(suite->lists);
    free(suite->group);
    free(suite->line);
    *suite = (facts_suite){ .language = suite->language };
}

/* ---- drawing ---- */

static bool holds(const facts_predicate *p, const facts_case *c)
{
    return p == NULL || facts_predicate_holds(p, &(facts_subject){ .c = c });
}

typedef struct fitting {
    const facts_language *language;
    const facts_predicate *where;
} fitting;

static bool fits(void *context, const facts_case *c)
{
    const fitting *f = context;
    double work;
    return holds(f->where, c) && f->language->resolves(c, &work);
}

/* Parses the name again, so that two ways to the same case give the same text. */
static bool finish(const facts_suite *suite, const facts_suite_line *line,
                   const facts_draw_choice *choice, facts_case *c)
{
    char name[FACTS_NAME_MAX];
    facts_error ignored;
    double work;
    if (choice->with != NULL && !facts_case_override(c, choice->with, &ignored))
        return false;
    return suite->language->resolves(c, &work) && (line->work == 0 || work <= (double)line->work) &&
           holds(line->where, c) && holds(suite->group[line->group].where, c) &&
           holds(choice->where, c) &&
           facts_case_read(suite->language, c, facts_case_name(c, name), &ignored);
}

bool facts_line_draw(const facts_suite *suite, const facts_suite_line *line, uint64_t seed,
                     uint64_t index, const facts_draw_choice *choice, facts_case *out)
{
    fitting f = { .language = suite->language };
    bool found = false;
    for (uint64_t attempt = 0; !found && attempt < MOST_TRIES; attempt++) {
        facts_dice dice = facts_dice_make(seed, index, attempt);
        facts_error ignored;
        if (!facts_case_read(suite->language, out, "", &ignored))
            break;
        for (size_t i = 0; i < line->key_lines; i++) {
            f.where = line->keys[i].where;
            facts_pattern_draw_keys(line->keys[i].pattern, &dice, fits, &f, out);
        }
        found = finish(suite, line, choice, out);
    }
    return found;
}

static bool draw_member(const facts_suite *suite, const facts_suite_line *line, uint64_t seed,
                        uint64_t index, const facts_draw_choice *choice, facts_case *out)
{
    facts_error ignored;
    uint64_t member = facts_pattern_draw(facts_pattern_count(line->pattern), seed, index);
    return facts_pattern_at(line->pattern, member, out, &ignored) &&
           finish(suite, line, choice, out);
}

bool facts_suite_draw(const facts_suite *suite, uint64_t seed, uint64_t index,
                      const facts_draw_choice *choice, facts_case *out)
{
    uint64_t all = 0, i = 0;
    for (size_t k = 0; k < suite->lines; k++)
        all += suite->line[k].draw;
    if (all == 0)
        return false;
    const facts_suite_line *line = suite->line;
    for (i = index % all; i >= line->draw; line++)
        i -= line->draw;
    uint64_t of_round = facts_dice_hash(seed) + index / all + line->seed;
    return (line->pattern != NULL ? draw_member : facts_line_draw)(suite, line, of_round, i, choice,
                                                                   out);
}

bool facts_draw_check(const facts_language *language, const facts_draw_choice *choice,
                      facts_error *error)
{
    facts_case c;
    return choice->with == NULL || (facts_case_read(language, &c, "", error) &&
                                    facts_case_override(&c, choice->with, error));
}
