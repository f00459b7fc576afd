#include "pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draft.h"
#include "key_value.h"

#define MOST_RANGES 4
#define MOST_ITEMS 4096

/* a..b:step or a..b*factor inside a value. */
typedef struct range {
    size_t at, length; /* letters of the value that it takes up */
    uint64_t first, last, step, count;
    bool factor;
} range;

/* One value of a list. */
typedef struct item {
    facts_span text;
    int column;
    size_t ranges;
    range range[MOST_RANGES];
    uint64_t count;
    char *canonical; /* when there is no range */
} item;

typedef struct axis {
    facts_key key;
    int column;
    size_t items;
    item *item;
    uint64_t count;
} axis;

struct facts_pattern {
    facts_place place;
    size_t axes;
    axis axis[FACTS_KEY_COUNT];
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

/* Is the letter at `at`, behind a range, the start of its step? Not when another range follows
 * (1..8:1..8), nor in a value that has a colon of its own (window=1..8:0) unless there is one more.
 */
static bool is_step(facts_key key, facts_span text, size_t at)
{
    if (at + 1 >= text.length || (text.at[at] != ':' && text.at[at] != '*'))
        return false;
    size_t end = at + 1 + digits(text, at + 1), colons = 0;
    for (size_t i = 0; i < text.length; i++)
        colons += text.at[i] == ':';
    bool own_colon =
        (key == FACTS_KEY_WINDOW || key == FACTS_KEY_RNG) && text.at[at] == ':' && colons < 2;
    bool next_range = end + 1 < text.length && text.at[end] == '.' && text.at[end + 1] == '.';
    return !own_colon && !next_range && end > at + 1;
}

/* Reads the range whose two dots are at `dots`; it starts at `least` or behind it. Returns NULL or
 * what is wrong. */
static const char *read_range(facts_key key, facts_span text, size_t least, size_t dots, range *out)
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
    if (is_step(key, text, end)) {
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

static bool read_ranges(facts_pattern *pattern, facts_key key, item *it, facts_error *error)
{
    size_t behind = 0; /* the range before: its digits are not also the next one's */
    it->count = 1;
    for (size_t i = 0; i + 1 < it->text.length; i++) {
        if (it->text.at[i] != '.' || it->text.at[i + 1] != '.')
            continue;
        range r;
        const char *wrong = it->ranges == MOST_RANGES ? "too many ranges in one value"
                                                      : read_range(key, it->text, behind, i, &r);
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

/* The text of one value of an item with ranges; the last range turns fastest. */
static bool item_text(const item *it, uint64_t index, char out[FACTS_CASE_TEXT])
{
    uint64_t digit[MOST_RANGES];
    for (size_t r = it->ranges; r-- > 0;) {
        digit[r] = index % it->range[r].count;
        index /= it->range[r].count;
    }
    size_t used = 0, from = 0;
    for (size_t r = 0; r <= it->ranges; r++) {
        size_t to = r < it->ranges ? it->range[r].at : it->text.length;
        char number[24] = "";
        if (r < it->ranges) {
            uint64_t value = it->range[r].first;
            if (it->range[r].factor) {
                for (uint64_t i = 0; i < digit[r]; i++)
                    value *= it->range[r].step;
            } else {
                value += digit[r] * it->range[r].step;
            }
            snprintf(number, sizeof number, "%" PRIu64, value);
        }
        size_t letters = to - from, written = strlen(number);
        if (used + letters + written >= FACTS_CASE_TEXT)
            return false;
        memcpy(out + used, it->text.at + from, letters);
        memcpy(out + used + letters, number, written);
        used += letters + written;
        from = r < it->ranges ? it->range[r].at + it->range[r].length : to;
    }
    out[used] = '\0';
    return true;
}

/* The canonical text of one value, in `out` or kept by the item; NULL when it is none. */
static const char *item_value(const facts_pattern *pattern, const axis *a, const item *it,
                              uint64_t index, char *out, facts_error *error)
{
    if (it->canonical != NULL)
        return it->canonical;
    char text[FACTS_CASE_TEXT];
    facts_value_fault fault = { 0 };
    if (!item_text(it, index, text)) {
        facts_fail_at(error, pattern->place.where, pattern->place.line, it->column,
                      "%s is longer than a case may be", facts_keys[a->key].word);
        return NULL;
    }
    if (!facts_value_canonical(a->key, facts_span_of(text), out, &fault)) {
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
    if (!facts_value_canonical(a->key, it->text, value, &fault))
        return facts_fail_at(error, pattern->place.where, pattern->place.line,
                             it->column + (int)fault.at, "%s", fault.text);
    it->canonical = strdup(value);
    return it->canonical != NULL ||
           facts_fail_at(error, pattern->place.where, pattern->place.line, it->column, "no memory");
}

static bool read_axis(facts_pattern *pattern, const facts_token *token, facts_error *error)
{
    axis *a = &pattern->axis[pattern->axes++];
    *a = (axis){ .key = token->key, .column = token->column, .items = 1 };
    for (size_t i = 0; i < token->value.length; i++)
        a->items += token->value.at[i] == ',';
    if (a->items > MOST_ITEMS)
        return facts_fail_at(error, pattern->place.where, pattern->place.line, token->column,
                             "more than %d values", MOST_ITEMS);
    a->item = calloc(a->items, sizeof *a->item);
    if (a->item == NULL)
        return facts_fail_at(error, pattern->place.where, pattern->place.line, token->column,
                             "no memory");
    facts_span rest = token->value;
    for (size_t i = 0; i < a->items; i++) {
        item *it = &a->item[i];
        it->column = token->value_column + (int)(rest.at - token->value.at);
        it->text = facts_span_cut(&rest, ',');
        if (!read_ranges(pattern, a->key, it, error) || !check_item(pattern, a, it, error))
            return false;
        a->count = sum(a->count, it->count);
    }
    pattern->count = product(pattern->count, a->count);
    return true;
}

bool facts_pattern_read(facts_pattern **out, facts_span text, facts_place place, facts_error *error)
{
    *out = NULL;
    facts_token token[FACTS_KEY_COUNT];
    size_t count = 0;
    if (!facts_tokens_read(text, place, token, &count, error))
        return false;
    facts_pattern *pattern = calloc(1, sizeof *pattern);
    if (pattern == NULL)
        return facts_fail_at(error, place.where, place.line, place.column, "no memory");
    pattern->place = place;
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
    facts_draft draft = { 0 };
    for (size_t i = pattern->axes; i-- > 0;) {
        const axis *a = &pattern->axis[i];
        uint64_t digit = index % a->count;
        index /= a->count;
        const item *it = a->item;
        for (; digit >= it->count; it++)
            digit -= it->count;
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
    for (size_t i = 0; i < pattern->axes; i++) {
        for (size_t j = 0; pattern->axis[i].item != NULL && j < pattern->axis[i].items; j++)
            free(pattern->axis[i].item[j].canonical);
        free(pattern->axis[i].item);
    }
    free(pattern);
}

static uint64_t splitmix(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
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
            uint64_t next = left ^ (splitmix(splitmix(seed + round) ^ right) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= count);
    return i;
}
