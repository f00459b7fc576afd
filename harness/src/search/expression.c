#include "expression.h"

#include <math.h>
#include <string.h>

#include "case/suites/field.h"

#define MOST_DEPTH 8
#define MOST_NUMBER (UINT64_C(1) << 40)

typedef struct reader {
    facts_span text;
    size_t at;
    facts_expression_scope *scope;
    facts_expression_fault *fault;
} reader;

static bool wrong(reader *r, size_t at, const char *what)
{
    *r->fault = (facts_expression_fault){ what, at };
    return false;
}

static char letter(const reader *r, size_t ahead)
{
    return r->at + ahead < r->text.length ? r->text.at[r->at + ahead] : '\0';
}

bool facts_expression_name_letter(char c)
{
    return (c >= 'a' && c <= 'z' && c != 'x') || c == '_';
}

const facts_choice_line *facts_choose(const facts_choice_line *choice, size_t count, uint64_t total,
                                      facts_dice *dice)
{
    uint64_t left = facts_dice_below(dice, total);
    size_t i = 0;
    while (i + 1 < count && left >= choice[i].weight)
        left -= choice[i++].weight;
    return &choice[i];
}

static bool named(reader *r, facts_span name, int64_t *out)
{
    facts_expression_scope *scope = r->scope;
    for (size_t i = 0; i < scope->number_count; i++) {
        const facts_named_number *number = &scope->numbers[i];
        if (number->name.length != name.length ||
            memcmp(number->name.at, name.at, name.length) != 0)
            continue;
        if (scope->depth == MOST_DEPTH)
            return wrong(r, r->at, "numbers that name one another too deep");
        scope->depth++;
        bool ok = facts_expression_draw(
            facts_choose(number->choice, number->count, number->total, scope->dice)->text, scope,
            out, r->fault);
        scope->depth--;
        return ok;
    }
    facts_field field;
    char hint[FACTS_QUOTE_MAX];
    double value;
    const facts_subject subject = { .c = scope->c };
    if (!facts_field_find(name, &field, hint) || !facts_field_number(&field, &subject, &value) ||
        isinf(value))
        return wrong(r, r->at, "is no name of a number, in this file or of the case");
    *out = (int64_t)value;
    return true;
}

/* An integer or a name: its letters, and perhaps one dot and more of them (s.kv). */
static bool simple(reader *r, int64_t *out)
{
    size_t start = r->at;
    uint64_t integer;
    while (letter(r, 0) >= '0' && letter(r, 0) <= '9')
        r->at++;
    if (r->at > start) {
        if (!facts_read_integer((facts_span){ r->text.at + start, r->at - start }, MOST_NUMBER,
                                &integer))
            return wrong(r, start, "is too large a number");
        *out = (int64_t)integer;
        return true;
    }
    while (facts_expression_name_letter(letter(r, 0)))
        r->at++;
    if (r->at > start && letter(r, 0) == '.' && facts_expression_name_letter(letter(r, 1)))
        for (r->at++; facts_expression_name_letter(letter(r, 0));)
            r->at++;
    if (r->at == start)
        return wrong(r, start, "a number or a name is missing");
    size_t end = r->at;
    r->at = start;
    bool ok = named(r, (facts_span){ r->text.at + start, end - start }, out);
    r->at = end;
    return ok;
}

/* Every power of two is equally probable. */
static int64_t any_magnitude(facts_dice *dice, int64_t low, int64_t high)
{
    double from = log2((double)low + 1.0), to = log2((double)high + 2.0);
    double at = (double)(facts_dice_roll(dice) >> 11) * 0x1p-53;
    int64_t value = (int64_t)(exp2(from + (to - from) * at) - 1.0);
    return value < low ? low : value > high ? high : value;
}

static bool atom(reader *r, int64_t *out)
{
    int64_t high;
    if (!simple(r, out))
        return false;
    if (letter(r, 0) != '.' || letter(r, 1) != '.')
        return true;
    r->at += 2;
    if (!simple(r, &high))
        return false;
    bool magnitudes = letter(r, 0) == '*';
    r->at += magnitudes;
    if (high <= *out)
        return true; /* nothing to choose from */
    *out = magnitudes
               ? any_magnitude(r->scope->dice, *out, high)
               : *out + (int64_t)facts_dice_below(r->scope->dice, (uint64_t)(high - *out) + 1);
    return true;
}

static bool product(reader *r, int64_t *out)
{
    int64_t factor;
    if (!atom(r, out))
        return false;
    while (letter(r, 0) == 'x') {
        r->at++;
        if (!atom(r, &factor))
            return false;
        if (factor > 0 && *out > (int64_t)MOST_NUMBER / factor)
            return wrong(r, r->at, "is too large a number");
        *out *= factor;
    }
    return true;
}

bool facts_expression_draw(facts_span text, facts_expression_scope *scope, int64_t *out,
                           facts_expression_fault *fault)
{
    reader r = { .text = text, .scope = scope, .fault = fault };
    int64_t term;
    if (!product(&r, out))
        return false;
    while (r.at < text.length) {
        char sign = letter(&r, 0);
        if (sign != '+' && sign != '-')
            return wrong(&r, r.at, "want + - x .. or the end here");
        r.at++;
        if (!product(&r, &term))
            return false;
        *out += sign == '+' ? term : -term;
    }
    if (*out < 0)
        *out = 0;
    return true;
}
