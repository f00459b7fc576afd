#include "weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/problem/case_problem.h"
#include "case/suites/file_lines.h"
#include "expression.h"
#include "template.h"

#define MOST_CHOICES 256
#define MOST_WEIGHT 1000000
#define MOST_TRIES 64 /* of one index */
#define NO_WORK_LIMIT UINT64_MAX

typedef struct key_line {
    facts_key key;
    facts_predicate *when; /* NULL: always */
    facts_choice_line *choice;
    size_t count;
    uint64_t total;
} key_line;

typedef struct predicates {
    facts_predicate **at;
    size_t count;
} predicates;

struct facts_weights {
    char *text;
    facts_named_number *number;
    size_t numbers;
    key_line *line;
    size_t lines;
    predicates where, ordinary; /* all conditions must hold */
    uint64_t most_work;
};

typedef struct reader {
    facts_weights *weights;
    facts_lines in;
} reader;

/* "3 {edge}, 1 64": weights and texts. The texts are checked when all numbers are known. */
static bool read_choices(reader *r, facts_span text, facts_choice_line **out, size_t *count,
                         uint64_t *total)
{
    facts_choice_line found[MOST_CHOICES];
    *count = 0;
    *total = 0;
    while (text.length > 0) {
        facts_span part = facts_span_trim(facts_span_cut(&text, ','));
        facts_span rest = part, weight = facts_span_word(&rest);
        uint64_t value;
        if (!facts_read_integer(weight, MOST_WEIGHT, &value))
            return facts_lines_fail(
                &r->in, part.at,
                "want WEIGHT VALUE, … here; a weight is a whole number up to 1000000");
        rest = facts_span_trim(rest);
        if (rest.length == 0)
            return facts_lines_fail(&r->in, part.at, "the value after the weight is missing");
        if (*count == MOST_CHOICES)
            return facts_lines_fail(&r->in, part.at, "more choices than 256");
        *total += value;
        found[(*count)++] = (facts_choice_line){ rest, value };
    }
    if (*total == 0)
        return facts_lines_fail(&r->in, text.at, "the weights are all 0");
    *out = malloc(*count * sizeof **out);
    if (*out == NULL)
        return facts_lines_fail(&r->in, NULL, "no memory");
    memcpy(*out, found, *count * sizeof *found);
    return true;
}

/* Removes the text before ": " (or before a colon at the end) and returns it. */
static bool cut_head(facts_span *rest, facts_span *head)
{
    for (size_t i = 0; i < rest->length; i++) {
        if (rest->at[i] != ':' || (i + 1 < rest->length && !facts_is_blank(rest->at[i + 1])))
            continue;
        *head = facts_span_trim((facts_span){ rest->at, i });
        *rest = facts_span_trim((facts_span){ rest->at + i + 1, rest->length - i - 1 });
        return true;
    }
    return false;
}

static bool read_number(reader *r, facts_span head, facts_span rest)
{
    facts_weights *w = r->weights;
    for (size_t i = 0; i < head.length; i++)
        if (!facts_expression_name_letter(head.at[i]))
            return facts_lines_fail(&r->in, head.at + i,
                                    "a number's name has the letters a-z (but x) and _");
    for (size_t i = 0; i < w->numbers; i++)
        if (w->number[i].name.length == head.length &&
            memcmp(w->number[i].name.at, head.at, head.length) == 0)
            return facts_lines_fail(&r->in, head.at, "a number of this name is there already");
    facts_named_number number = { .name = head };
    if (head.length == 0)
        return facts_lines_fail(&r->in, NULL, "want number NAME: WEIGHT EXPRESSION, …");
    if (!read_choices(r, rest, &number.choice, &number.count, &number.total))
        return false;
    facts_named_number *larger = facts_grow(w->number, w->numbers, sizeof *larger);
    if (larger == NULL) {
        free(number.choice);
        return facts_lines_fail(&r->in, NULL, "no memory");
    }
    w->number = larger;
    w->number[w->numbers++] = number;
    return true;
}

static bool read_key(reader *r, facts_span head, facts_span rest)
{
    facts_weights *w = r->weights;
    facts_span condition = head, word = facts_span_word(&condition),
               when = facts_span_word(&condition);
    key_line line = { .key = facts_key_find(word.at, word.length) };
    char quote[FACTS_QUOTE_MAX];
    if (line.key == FACTS_KEY_COUNT) {
        const char *near = facts_key_nearest(word.at, word.length);
        return facts_lines_fail(&r->in, word.at, "%s is no key of the case language%s%s%s",
                                facts_quote(quote, word), near ? "; did you mean " : "",
                                near ? near : "", near ? "?" : "");
    }
    if (when.length > 0 && !facts_span_is(when, "when"))
        return facts_lines_fail(&r->in, when.at,
                                "want a colon, or when PREDICATE and a colon, after the key");
    if (when.length > 0 &&
        !facts_lines_predicate(&r->in, facts_span_trim(condition), "", &line.when))
        return false;
    key_line *larger = NULL;
    if (read_choices(r, rest, &line.choice, &line.count, &line.total)) {
        larger = facts_grow(w->line, w->lines, sizeof *larger);
        if (larger == NULL)
            facts_lines_fail(&r->in, NULL, "no memory");
    }
    if (larger == NULL) {
        facts_predicate_destroy(line.when);
        free(line.choice);
        return false;
    }
    w->line = larger;
    w->line[w->lines++] = line;
    return true;
}

static bool read_predicate(reader *r, predicates *list, facts_span rest)
{
    facts_predicate **larger = facts_grow(list->at, list->count, sizeof(facts_predicate *));
    if (larger == NULL)
        return facts_lines_fail(&r->in, NULL, "no memory");
    list->at = larger;
    if (!facts_lines_predicate(&r->in, rest, "", &list->at[list->count]))
        return false;
    list->count++;
    return true;
}

static bool all_hold(const predicates *list, const facts_subject *subject)
{
    for (size_t i = 0; i < list->count; i++)
        if (!facts_predicate_holds(list->at[i], subject))
            return false;
    return true;
}

static void free_predicates(predicates *list)
{
    for (size_t i = 0; i < list->count; i++)
        facts_predicate_destroy(list->at[i]);
    free(list->at);
}

bool facts_weights_ordinary(const facts_weights *w, const facts_case *c)
{
    return w->ordinary.count > 0 && all_hold(&w->ordinary, &(facts_subject){ .c = c });
}

static bool read_line(void *context, facts_span text)
{
    reader *r = context;
    facts_span rest = text, head, word = facts_span_word(&rest);
    if (facts_span_is(word, "where"))
        return read_predicate(r, &r->weights->where, facts_span_trim(rest));
    if (facts_span_is(word, "ordinary"))
        return read_predicate(r, &r->weights->ordinary, facts_span_trim(rest));
    if (facts_span_is(word, "work"))
        return (facts_read_integer(facts_span_trim(rest), INT64_MAX, &r->weights->most_work) &&
                r->weights->most_work > 0) ||
               facts_lines_fail(&r->in, text.at, "want work N, a whole number above 0");
    if (!cut_head(&text, &head))
        return facts_lines_fail(&r->in, NULL,
                                "want KEY: WEIGHT VALUE, …  or number NAME: …, where PREDICATE, "
                                "ordinary PREDICATE, work N");
    rest = head;
    word = facts_span_word(&rest);
    return facts_span_is(word, "number") ? read_number(r, facts_span_trim(rest), text)
                                         : read_key(r, head, text);
}

/* ---- drawing
 * ---------------------------------------------------------------------------------------------------------------
 */

static facts_expression_scope scope_of(const facts_weights *w, const facts_case *c,
                                       facts_dice *dice)
{
    return (facts_expression_scope){
        .numbers = w->number, .number_count = w->numbers, .c = c, .dice = dice
    };
}

/* Draws each choice once for a plain case, so that an error is reported before the first draw. */
static bool check_line(reader *r, const key_line *line)
{
    for (size_t i = 0; i < line->count; i++) {
        facts_case c = { 0 };
        facts_error inner = { 0 };
        facts_dice dice = facts_dice_make(1, 1, 1);
        facts_expression_scope scope = scope_of(r->weights, &c, &dice);
        facts_expression_fault fault = { NULL, 0 };
        char value[FACTS_CASE_TEXT];
        if (facts_span_is(line->choice[i].text, "default"))
            continue;
        if (!facts_template_fill(line->choice[i].text, &scope, value, &fault))
            return facts_lines_fail(&r->in, line->choice[i].text.at + fault.at, "%s", fault.what);
        if (!facts_case_parse(&c, "", NULL) || !facts_case_set(&c, line->key, value, &inner)) {
            const char *says = strstr(inner.text, ": ");
            return facts_lines_fail(&r->in, line->choice[i].text.at, "%s",
                                    says ? says + 2 : inner.text);
        }
    }
    return true;
}

/* Returns to the line of this letter. */
static void go_to(reader *r, const char *at)
{
    r->in.line = 1;
    r->in.start = r->weights->text;
    for (const char *p = r->weights->text; p < at; p++)
        if (*p == '\n') {
            r->in.line++;
            r->in.start = p + 1;
        }
}

static bool check_all(reader *r)
{
    const facts_weights *w = r->weights;
    for (size_t i = 0; i < w->numbers; i++)
        for (size_t k = 0; k < w->number[i].count; k++) {
            const facts_choice_line *choice = &w->number[i].choice[k];
            facts_case c = { 0 };
            facts_dice dice = facts_dice_make(1, 1, 1);
            facts_expression_scope scope = scope_of(w, &c, &dice);
            facts_expression_fault fault = { NULL, 0 };
            int64_t value;
            go_to(r, choice->text.at);
            if (!facts_expression_draw(choice->text, &scope, &value, &fault))
                return facts_lines_fail(&r->in, choice->text.at + fault.at, "%s", fault.what);
        }
    for (size_t i = 0; i < w->lines; i++) {
        go_to(r, w->line[i].choice[0].text.at);
        if (!check_line(r, &w->line[i]))
            return false;
    }
    return true;
}

static bool has_line(const facts_weights *w, size_t before, facts_key key)
{
    for (size_t i = 0; i < before; i++)
        if (w->line[i].key == key)
            return true;
    return false;
}

/* Of the lines of a key, whose first is `first`: the line that holds for this case. */
static const key_line *line_for(const facts_weights *w, size_t first, const facts_case *c)
{
    const facts_subject subject = { .c = c };
    for (size_t i = first; i < w->lines; i++)
        if (w->line[i].key == w->line[first].key &&
            (w->line[i].when == NULL || facts_predicate_holds(w->line[i].when, &subject)))
            return &w->line[i];
    return NULL;
}

static bool resolves(const facts_case *c, facts_problem *problem)
{
    facts_error ignored;
    return facts_problem_resolve(problem, c, &ignored) == FACTS_RESOLVED;
}

static void draw_key(const facts_weights *w, const key_line *line, facts_dice *dice,
                     facts_problem *problem, facts_case *c)
{
    const facts_choice_line *choice = facts_choose(line->choice, line->count, line->total, dice);
    facts_expression_scope scope = scope_of(w, c, dice);
    facts_expression_fault fault;
    char value[FACTS_CASE_TEXT];
    facts_case before = *c;
    facts_error ignored;
    if (facts_span_is(choice->text, "default") ||
        !facts_template_fill(choice->text, &scope, value, &fault))
        return;
    if (!facts_case_set(c, line->key, value, &ignored) || !resolves(c, problem))
        *c = before;
}

bool facts_draw_check(const facts_draw_choice *choice, facts_error *error)
{
    facts_case c;
    return choice->with == NULL ||
           (facts_case_parse(&c, "", error) && facts_case_override(&c, choice->with, error));
}

static bool wanted(const facts_weights *w, const facts_draw_choice *choice,
                   const facts_problem *problem, const facts_case *c)
{
    const fattn_problem *ask = &problem->ask;
    const facts_subject subject = { .c = c };
    double work = (double)ask->batch * (double)ask->heads_q * (double)ask->seq_q *
                  (double)ask->seq_kv * (double)(ask->dim_qk + ask->dim_v) *
                  (double)problem->repeat;
    if (w->most_work != NO_WORK_LIMIT && work > (double)w->most_work)
        return false;
    if (!all_hold(&w->where, &subject))
        return false;
    return choice == NULL || choice->where == NULL ||
           facts_predicate_holds(choice->where, &subject);
}

/* Parses the name again, so that two ways to the same case give the same text. */
static bool finish(const facts_weights *w, const facts_draw_choice *choice, facts_problem *problem,
                   facts_case *c)
{
    char name[FACTS_NAME_MAX];
    facts_error ignored;
    if (choice != NULL && choice->with != NULL && !facts_case_override(c, choice->with, &ignored))
        return false;
    return resolves(c, problem) && wanted(w, choice, problem, c) &&
           facts_case_parse(c, facts_case_name(c, name), &ignored);
}

bool facts_weights_draw(const facts_weights *w, uint64_t seed, uint64_t index,
                        const facts_draw_choice *choice, facts_case *out)
{
    facts_problem *problem = malloc(sizeof *problem);
    bool found = false;
    for (uint64_t attempt = 0; problem != NULL && !found && attempt < MOST_TRIES; attempt++) {
        facts_dice dice = facts_dice_make(seed, index, attempt);
        facts_error ignored;
        if (!facts_case_parse(out, "", &ignored))
            break;
        for (size_t i = 0; i < w->lines; i++) {
            const key_line *line = has_line(w, i, w->line[i].key) ? NULL : line_for(w, i, out);
            if (line != NULL)
                draw_key(w, line, &dice, problem, out);
        }
        found = finish(w, choice, problem, out);
    }
    free(problem);
    return found;
}

/* ---- the file
 * --------------------------------------------------------------------------------------------------------------
 */

static bool read_lines(reader *r)
{
    if (!facts_lines_each(&r->in, r->weights->text, read_line, r))
        return false;
    if (r->weights->lines > 0)
        return check_all(r);
    r->in.line = 1; /* of the whole file */
    return facts_lines_fail(&r->in, NULL, "no key has a line: there is nothing to draw");
}

bool facts_weights_read(facts_weights **out, const char *text, const char *name, facts_error *error)
{
    *out = NULL;
    facts_weights *w = calloc(1, sizeof *w);
    if (w == NULL || (w->text = strdup(text)) == NULL) {
        free(w);
        return facts_fail_at(error, name, 1, 1, "no memory");
    }
    w->most_work = NO_WORK_LIMIT;
    if (!read_lines(&(reader){ .weights = w, .in = { .where = name, .error = error } })) {
        facts_weights_destroy(w);
        return false;
    }
    *out = w;
    return true;
}

void facts_weights_destroy(facts_weights *w)
{
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->numbers; i++)
        free(w->number[i].choice);
    for (size_t i = 0; i < w->lines; i++) {
        facts_predicate_destroy(w->line[i].when);
        free(w->line[i].choice);
    }
    free_predicates(&w->where);
    free_predicates(&w->ordinary);
    free(w->number);
    free(w->line);
    free(w->text);
    free(w);
}
