#include "pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "draft.h"

#define MOST_RANGES 8
#define MOST_ITEMS 4096
#define MOST_WEIGHT 1000000
#define MOST_NUMBERS 16 /* that are drawn until a value fits */

/* a..b:step, a..b*factor or {LIST} inside a value. */
typedef struct range {
    size_t at, length; /* letters of the value that it takes up */
    uint64_t first, last, step, count;
    bool factor;
    const facts_list *list;
} range;

/* One value of a list. */
typedef struct item {
    facts_span text; /* without its weight */
    int column;
    uint64_t weight;
    bool absent; /* default: the key is not set */
    size_t ranges;
    range range[MOST_RANGES];
    uint64_t count;
    char *canonical; /* when there is no range */
} item;

typedef struct values {
    size_t items;
    item *item;
    uint64_t count, weight;
} values;

struct facts_list {
    facts_span name;
    values values;
    const facts_list *before;
};

typedef struct axis {
    facts_key key;            /* FACTS_NO_KEY: of a list */
    const facts_key_row *row; /* of the key; NULL: of a list */
    int column;
    values values;
} axis;

struct facts_pattern {
    const facts_language *language;
    facts_place place;
    const facts_list *lists;
    int weight_column; /* of the first weight; 0: none */
    size_t axes;
    axis axis[FACTS_KEYS_MOST];
    uint64_t count;
};

static uint64_t product(uint64_t a, uint64_t b)
{
    return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static size_t digits(facts_span text, size_t from)
{
    size_t n = 0;
    while (from + n < text.length && text.at[from + n] >= '0' && text.at[from + n] <= '9')
        n++;
    return n;
}

/* Is a value two numbers with a colon between them? */
static bool has_colon(const facts_key_row *row)
{
    facts_span rest = facts_span_of(row->allowed), template;
    while ((template = facts_span_word(&rest)).length > 0) {
        if (template.length == 3 && template.at[0] <= 'Z' && template.at[1] == ':')
            return true;
    }
    return false;
}

/* Is the letter at `at`, behind a range, the start of its step? Not when another range follows
 * (1..8:1..8), nor in a value that has a colon of its own (window=1..8:0) unless there is one more.
 */
static bool is_step(const facts_key_row *row, facts_span text, size_t at)
{
    if (at + 1 >= text.length || (text.at[at] != ':' && text.at[at] != '*'))
        return false;
    size_t end = at + 1 + digits(text, at + 1), colons = 0;
    for (size_t i = 0; i < text.length; i++)
        colons += text.at[i] == ':';
    bool own_colon = row && has_colon(row) && text.at[at] == ':' && colons < 2;
    bool next_range = end + 1 < text.length && text.at[end] == '.' && text.at[end + 1] == '.';
    return !own_colon && !next_range && end > at + 1;
}

/* Reads the range whose two dots are at `dots`; it starts at `least` or behind it. Returns NULL or
 * what is wrong. */
static const char *read_range(const facts_key_row *row, facts_span text, size_t least, size_t dots,
                              range *out)
{
    size_t start = dots;
    while (start > least && text.at[start - 1] >= '0' && text.at[start - 1] <= '9')
        start--;
    size_t end = dots + 2 + digits(text, dots + 2);
    const uint64_t most = INT64_MAX;
    *out = (range){ .at = start, .step = 1 };
    if (!facts_read_integer((facts_span){ text.at + start, dots - start }, most, &out->first) ||
        !facts_read_integer((facts_span){ text.at + dots + 2, end - dots - 2 }, most, &out->last))
        return "a range is a..b:step or a..b*factor, of whole numbers";
    if (is_step(row, text, end)) {
        size_t letters = digits(text, end + 1);
        out->factor = text.at[end] == '*';
        if (!facts_read_integer((facts_span){ text.at + end + 1, letters }, most, &out->step))
            return "the step of a range is too large";
        end += 1 + letters;
    }
    out->length = end - start;
    if (out->last < out->first)
        return "a range runs upwards";
    if (out->step == 0 || (out->factor && (out->step < 2 || out->first == 0)))
        return "a step must be above 0, a factor above 1 and what it multiplies above 0";
    if (!out->factor) {
        out->count = (out->last - out->first) / out->step + 1;
        return NULL;
    }
    for (uint64_t value = out->first; value <= out->last; value *= out->step) {
        out->count++;
        if (value > out->last / out->step)
            break;
    }
    return NULL;
}

/* Reads {LIST}. Returns NULL or what is wrong. */
static const char *read_list_name(const facts_list *lists, facts_span text, size_t at, range *out)
{
    const char *end = memchr(text.at + at, '}', text.length - at);
    if (end == NULL)
        return "a { is not closed";
    facts_span name = { text.at + at + 1, (size_t)(end - text.at) - at - 1 };
    while (lists != NULL &&
           (lists->name.length != name.length || memcmp(lists->name.at, name.at, name.length) != 0))
        lists = lists->before;
    if (lists == NULL)
        return "no line `list` above has this name";
    *out =
        (range){ .at = at, .length = name.length + 2, .count = lists->values.count, .list = lists };
    return NULL;
}

static bool read_ranges(facts_pattern *pattern, const facts_key_row *row, item *it,
                        facts_error *error)
{
    size_t behind = 0; /* the range before: its digits are not also the next one's */
    it->count = 1;
    for (size_t i = 0; i < it->text.length; i++) {
        bool list = it->text.at[i] == '{',
             dots = i + 1 < it->text.length && it->text.at[i] == '.' && it->text.at[i + 1] == '.';
        if (!list && !dots)
            continue;
        range r = { 0 };
        const char *wrong = it->ranges == MOST_RANGES ? "too many ranges in one value"
                            : list ? read_list_name(pattern->lists, it->text, i, &r)
                                   : read_range(row, it->text, behind, i, &r);
        if (wrong != NULL)
            return facts_fail_at(error, pattern->place.where, pattern->place.line,
                                 it->column + (int)i, "%s", wrong);
        it->range[it->ranges++] = r;
        it->count = product(it->count, r.count);
        behind = r.at + r.length;
        i = behind - 1;
    }
    return true;
}

static const item *item_at(const values *v, uint64_t *index)
{
    const item *it = v->item;
    for (; *index >= it->count; it++)
        *index -= it->count;
    return it;
}

static bool put(char out[FACTS_CASE_TEXT], size_t *used, const char *letters, size_t count)
{
    if (*used + count >= FACTS_CASE_TEXT)
        return false;
    memcpy(out + *used, letters, count);
    *used += count;
    out[*used] = '\0';
    return true;
}

static bool put_item(const item *it, uint64_t index, char out[FACTS_CASE_TEXT], size_t *used);

static bool put_range(const range *r, uint64_t index, char out[FACTS_CASE_TEXT], size_t *used)
{
    char number[24];
    if (r->list != NULL) {
        const item *it = item_at(&r->list->values, &index);
        return put_item(it, index, out, used);
    }
    uint64_t value = r->first;
    for (uint64_t i = 0; r->factor && i < index; i++)
        value *= r->step;
    value += r->factor ? 0 : index * r->step;
    return put(out, used, number, (size_t)snprintf(number, sizeof number, "%" PRIu64, value));
}

/* The text of one value of an item; the last range turns fastest. */
static bool put_item(const item *it, uint64_t index, char out[FACTS_CASE_TEXT], size_t *used)
{
    uint64_t digit[MOST_RANGES];
    for (size_t r = it->ranges; r-- > 0;) {
        digit[r] = index % it->range[r].count;
        index /= it->range[r].count;
    }
    size_t from = 0;
    for (size_t r = 0; r < it->ranges; r++) {
        if (!put(out, used, it->text.at + from, it->range[r].at - from) ||
            !put_range(&it->range[r], digit[r], out, used))
            return false;
        from = it->range[r].at + it->range[r].length;
    }
    return put(out, used, it->text.at + from, it->text.length - from);
}

/* The canonical text of one value, in `out` or kept by the item; NULL when it is none. */
static const char *item_value(const facts_pattern *pattern, const axis *a, const item *it,
                              uint64_t index, char *out, facts_error *error)
{
    if (it->canonical != NULL)
        return it->canonical;
    char text[FACTS_CASE_TEXT];
    size_t used = 0;
    facts_value_fault fault = { 0 };
    if (!put_item(it, index, text, &used)) {
        facts_fail_at(error, pattern->place.where, pattern->place.line, it->column,
                      "%s is longer than a case may be", a->row->word);
        return NULL;
    }
    if (!facts_value_canonical(a->row, facts_span_of(text), out, &fault)) {
        facts_fail_at(error, pattern->place.where, pattern->place.line, it->column, "%s",
                      fault.text);
        return NULL;
    }
    return out;
}

/* Checks an item before anything is expanded: its value, or with ranges its first and its last one.
 */
static bool check_item(facts_pattern *pattern, const axis *a, item *it, facts_error *error)
{
    char value[FACTS_CASE_TEXT];
    if (it->ranges > 0)
        return item_value(pattern, a, it, 0, value, error) != NULL &&
               item_value(pattern, a, it, it->count - 1, value, error) != NULL;
    facts_value_fault fault = { 0 };
    if (!facts_value_canonical(a->row, it->text, value, &fault))
        return facts_fail_at(error, pattern->place.where, pattern->place.line,
                             it->column + (int)fault.at, "%s", fault.text);
    it->canonical = strdup(value);
    return true;
}

/* VALUE or VALUE@WEIGHT. */
static bool read_item(facts_pattern *pattern, const axis *a, facts_span text, item *it,
                      facts_error *error)
{
    facts_span weight = text;
    it->text = facts_span_cut(&weight, '@');
    it->weight = 1;
    int column = it->column + (int)it->text.length;
    if (it->text.length < text.length) {
        pattern->weight_column = pattern->weight_column ? pattern->weight_column : column;
        if (!facts_read_integer(weight, MOST_WEIGHT, &it->weight) || it->weight == 0)
            return facts_fail_at(error, pattern->place.where, pattern->place.line, column,
                                 "a weight is a whole number from 1 to %d: VALUE@WEIGHT",
                                 MOST_WEIGHT);
    }
    it->absent = a->row && facts_span_is(it->text, "default");
    it->count = 1;
    return it->absent || (read_ranges(pattern, a->row, it, error) &&
                          (a->row == NULL || check_item(pattern, a, it, error)));
}

static bool read_values(facts_pattern *pattern, axis *a, facts_span text, int column,
                        facts_error *error)
{
    values *v = &a->values;
    size_t items = 1;
    for (size_t i = 0; i < text.length; i++)
        items += text.at[i] == ',';
    if (items > MOST_ITEMS)
        return facts_fail_at(error, pattern->place.where, pattern->place.line, a->column,
                             "more than %d values", MOST_ITEMS);
    v->item = calloc(items, sizeof *v->item);
    for (facts_span rest = text; v->items < items;) {
        item *it = &v->item[v->items++];
        it->column = column + (int)(rest.at - text.at);
        if (!read_item(pattern, a, facts_span_cut(&rest, ','), it, error))
            return false;
        v->count = sum(v->count, it->count);
        v->weight += it->weight;
    }
    return true;
}

static bool read_axis(facts_pattern *pattern, const facts_token *token, facts_error *error)
{
    axis *a = &pattern->axis[pattern->axes++];
    *a = (axis){ .key = token->key,
                 .row = &pattern->language->keys[token->key],
                 .column = token->column };
    bool read = read_values(pattern, a, token->value, token->value_column, error);
    pattern->count = product(pattern->count, a->values.count);
    return read;
}

static void free_values(values *v)
{
    for (size_t i = 0; i < v->items; i++)
        free(v->item[i].canonical);
    free(v->item);
}

bool facts_list_read(const facts_language *language, const facts_list **lists, facts_span text,
                     facts_place place, facts_error *error)
{
    facts_span rest = text, name = facts_span_cut(&rest, '=');
    facts_pattern scratch = { .language = language, .place = place, .lists = *lists };
    axis a = { .key = FACTS_NO_KEY, .column = place.column };
    size_t letters = 0;
    while (letters < name.length && name.at[letters] >= 'a' && name.at[letters] <= 'z')
        letters++;
    if (letters == 0 || letters < name.length || memchr(rest.at, ' ', rest.length) != NULL)
        return facts_fail_at(error, place.where, place.line, place.column,
                             "want list NAME=VALUES; a name has the letters a-z");
    if (!read_values(&scratch, &a, rest, place.column + (int)name.length + 1, error)) {
        free_values(&a.values);
        return false;
    }
    facts_list *list = calloc(1, sizeof *list);
    *list = (facts_list){ name, a.values, *lists };
    *lists = list;
    return true;
}

void facts_lists_destroy(const facts_list *lists)
{
    while (lists != NULL) {
        facts_list *list = (facts_list *)lists;
        lists = list->before;
        free_values(&list->values);
        free(list);
    }
}

bool facts_pattern_read(const facts_language *language, facts_pattern **out, facts_span text,
                        facts_place place, const facts_list *lists, facts_error *error)
{
    *out = NULL;
    facts_token token[FACTS_KEYS_MOST];
    size_t count = 0;
    if (!facts_tokens_read(language, text, place, token, &count, error))
        return false;
    facts_pattern *pattern = calloc(1, sizeof *pattern);
    pattern->language = language;
    pattern->place = place;
    pattern->lists = lists;
    pattern->count = 1;
    for (size_t i = 0; i < count; i++) {
        if (!read_axis(pattern, &token[i], error)) {
            facts_pattern_destroy(pattern);
            return false;
        }
    }
    *out = pattern;
    return true;
}

int facts_pattern_weight(const facts_pattern *pattern)
{
    return pattern->weight_column;
}

uint64_t facts_pattern_count(const facts_pattern *pattern)
{
    return pattern->count;
}

bool facts_pattern_at(const facts_pattern *pattern, uint64_t index, facts_case *out,
                      facts_error *error)
{
    /* Values of items with ranges; a case longer than this is refused when it is stored. */
    char room[2 * FACTS_CASE_TEXT], value[FACTS_CASE_TEXT];
    size_t used = 0;
    facts_draft draft = { .language = pattern->language };
    for (size_t i = pattern->axes; i-- > 0;) {
        const axis *a = &pattern->axis[i];
        uint64_t digit = index % a->values.count;
        index /= a->values.count;
        const item *it = item_at(&a->values, &digit);
        if (it->absent)
            continue;
        const char *text = item_value(pattern, a, it, digit, value, error);
        if (text == NULL)
            return false;
        if (text == value) {
            size_t letters = strlen(value) + 1;
            if (letters > sizeof room - used)
                return facts_fail_at(error, pattern->place.where, pattern->place.line, it->column,
                                     "longer than a case may be");
            text = memcpy(room + used, value, letters);
            used += letters;
        }
        draft.value[a->key] = text;
    }
    facts_key at = 0;
    const char *complaint = facts_draft_normalise(&draft, &at);
    if (complaint != NULL) {
        int column = pattern->place.column;
        for (size_t i = 0; i < pattern->axes; i++)
            column = pattern->axis[i].key == at ? pattern->axis[i].column : column;
        return facts_fail_at(error, pattern->place.where, pattern->place.line, column, "%s",
                             complaint);
    }
    return facts_draft_store(&draft, out) ||
           facts_fail_at(error, pattern->place.where, pattern->place.line, pattern->place.column,
                         "longer than a case may be");
}

void facts_pattern_destroy(facts_pattern *pattern)
{
    if (pattern == NULL)
        return;
    for (size_t i = 0; i < pattern->axes; i++)
        free_values(&pattern->axis[i].values);
    free(pattern);
}

/* ---- drawing ---- */

static const item *draw_item(const values *v, facts_dice *dice)
{
    uint64_t left = facts_dice_below(dice, v->weight);
    const item *it = v->item;
    for (; left >= it->weight; it++)
        left -= it->weight;
    return it;
}

/* The number of one of the item's values. */
static uint64_t draw_number(const item *it, facts_dice *dice)
{
    uint64_t index = 0;
    for (size_t r = 0; r < it->ranges; r++) {
        const range *one = &it->range[r];
        uint64_t digit = 0;
        if (one->list == NULL) {
            digit = facts_dice_below(dice, one->count);
        } else {
            const values *v = &one->list->values;
            const item *chosen = draw_item(v, dice);
            for (const item *before = v->item; before < chosen; before++)
                digit += before->count;
            digit += draw_number(chosen, dice);
        }
        index = index * one->count + digit;
    }
    return index;
}

void facts_pattern_draw_keys(const facts_pattern *pattern, facts_dice *dice,
                             bool (*fits)(void *context, const facts_case *c), void *context,
                             facts_case *c)
{
    for (size_t i = 0; i < pattern->axes; i++) {
        const axis *a = &pattern->axis[i];
        const item *it = draw_item(&a->values, dice);
        bool set = it->absent;
        for (int k = 0; !set && k < (it->count > 1 ? MOST_NUMBERS : 1); k++) {
            const facts_case before = *c;
            char value[FACTS_CASE_TEXT];
            facts_error ignored;
            const char *text = item_value(pattern, a, it, draw_number(it, dice), value, &ignored);
            set = text != NULL && facts_case_set(c, a->key, text, &ignored) && fits(context, c);
            if (!set)
                *c = before;
        }
    }
}

/* A Feistel network permutes the smallest even power of two that holds `count`; what falls outside
 * is permuted again (at most four times as many places, so about four rounds on average). */
uint64_t facts_pattern_draw(uint64_t count, uint64_t seed, uint64_t i)
{
    unsigned half = 1;
    while (half < 32 && (UINT64_C(1) << (2 * half)) < count)
        half++;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = i >> half & mask, right = i & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t next = left ^ (facts_dice_hash(facts_dice_hash(seed + round) ^ right) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= count);
    return i;
}
