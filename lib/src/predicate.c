#include "predicate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "field.h"
#include "problem.h"

/*  any  = all { "|" all }          all  = one { "&" one }
 *  one  = "!" one | "(" any ")" | side test
 *  side = field [ "%" number ]     test = op ( word | number | side ) | "in" "(" value { "," value } ")"
 *
 * Everything is read whatever holds, so that what is wrong is found with any problem. */
enum { MOST_DEPTH = 32, MOST_DIGITS = 18 };

typedef enum op { OP_EQ, OP_NE, OP_LE, OP_GE, OP_LT, OP_GT } op;

typedef struct side {
    const fattn__field *field; /* NULL: a number of the text */
    bool is_real;
    int64_t number;
    double real;
} side;

typedef struct reader {
    const char *text, *at;
    const fattn_problem *problem;
    int depth;
    bool failed;
    char wrong[192]; /* the first thing that was */
} reader;

__attribute__((format(printf, 3, 4))) static bool fail(reader *r, const char *at, const char *format, ...)
{
    va_list arguments;
    if (r->failed)
        return false;
    r->failed = true;
    const int head = snprintf(r->wrong, sizeof r->wrong, "column %zu: ", (size_t)(at - r->text) + 1);
    va_start(arguments, format);
    vsnprintf(r->wrong + head, sizeof r->wrong - (size_t)head, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- pieces -------------------------------------------------------------------------------------------------------------------
 */

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

static bool in_name(char letter)
{
    return (letter >= 'a' && letter <= 'z') || is_digit(letter) || letter == '_' || letter == '.';
}

static void skip(reader *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

static bool take(reader *r, const char *word)
{
    skip(r);
    if (strncmp(r->at, word, strlen(word)) != 0)
        return false;
    r->at += strlen(word);
    return true;
}

static int take_name(reader *r, const char **name)
{
    skip(r);
    *name = r->at;
    while (in_name(*r->at))
        r->at++;
    return r->at - *name > 40 ? 40 : (int)(r->at - *name);
}

static bool take_op(reader *r, op *out)
{
    static const struct {
        const char *word;
        op op;
    } ops[] = { { "!=", OP_NE }, { "<=", OP_LE }, { ">=", OP_GE }, { "=", OP_EQ }, { "<", OP_LT }, { ">", OP_GT } };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (take(r, ops[i].word)) {
            *out = ops[i].op;
            return true;
        }
    }
    return false;
}

/* -12 or 0.5; not by strtod, which reads the caller's locale. */
static bool take_number(reader *r, side *out)
{
    skip(r);
    const char *start = r->at;
    const bool negative = take(r, "-");
    int64_t whole = 0;
    int digits = 0;
    for (; is_digit(*r->at) && digits <= MOST_DIGITS; r->at++, digits++)
        whole = whole * 10 + (*r->at - '0');
    *out = (side){ .number = negative ? -whole : whole };
    if (*r->at == '.') {
        double value = (double)whole, unit = 0.1;
        for (r->at++; is_digit(*r->at); r->at++, unit /= 10)
            value += unit * (*r->at - '0');
        out->is_real = true;
        out->real = negative ? -value : value;
    }
    return (digits > 0 && digits <= MOST_DIGITS && !in_name(*r->at)) ||
           fail(r, start, "a number of at most %d digits is missing", MOST_DIGITS);
}

static bool take_side(reader *r, side *out)
{
    const char *name, *start;
    skip(r);
    start = r->at;
    if (is_digit(*r->at) || *r->at == '-')
        return take_number(r, out);
    const int length = take_name(r, &name);
    *out = (side){ .field = fattn__field_find(name, (size_t)length) };
    if (out->field == NULL)
        return fail(r, start, length > 0 ? "\"%.*s\" is not a field of a problem" : "the name of a field is missing%.*s", length,
                    name);
    out->is_real = out->field->kind == FATTN__FIELD_REAL;
    if (r->problem != NULL && out->is_real)
        out->real = out->field->real(r->problem);
    else if (r->problem != NULL)
        out->number = out->field->number(r->problem);
    if (!take(r, "%"))
        return true;
    side modulus;
    if (out->field->kind != FATTN__FIELD_NUMBER)
        return fail(r, start, "%s is not a whole number: it has no remainder", out->field->name);
    start = r->at;
    if (!take_number(r, &modulus))
        return false;
    if (modulus.is_real || modulus.number <= 0)
        return fail(r, start, "a remainder needs a whole number above 0");
    out->number %= modulus.number;
    return true;
}

/* ---- tests --------------------------------------------------------------------------------------------------------------------
 */

static bool is_wordy(const side *s)
{
    return s->field != NULL && s->field->words != NULL;
}

static bool compare(const side *left, op how, const side *right)
{
    int order = left->number < right->number ? -1 : left->number > right->number;
    if (left->is_real || right->is_real) {
        const double a = left->is_real ? left->real : (double)left->number,
                     b = right->is_real ? right->real : (double)right->number;
        order = a < b ? -1 : a > b;
    }
    switch (how) {
    case OP_EQ:
        return order == 0;
    case OP_NE:
        return order != 0;
    case OP_LE:
        return order <= 0;
    case OP_GE:
        return order >= 0;
    case OP_LT:
        return order < 0;
    case OP_GT:
        return order > 0;
    }
    return false;
}

/* One of the field's words; *holds says whether it is the field's value. */
static bool take_word(reader *r, const side *left, bool *holds)
{
    const char *name;
    const int length = take_name(r, &name);
    char allowed[96] = "";
    size_t used = 0;
    for (const fattn__word *word = left->field->words; word->word != NULL; word++) {
        if (strlen(word->word) == (size_t)length && memcmp(word->word, name, (size_t)length) == 0) {
            *holds =
                left->field->kind == FATTN__FIELD_FORMAT ? (left->number >> word->value & 1) != 0 : left->number == word->value;
            return true;
        }
        if (used < sizeof allowed)
            used += (size_t)snprintf(allowed + used, sizeof allowed - used, " %s", word->word);
    }
    return fail(r, name, "%s is never \"%.*s\"; want one of%s", left->field->name, length, name, allowed);
}

/* One value right of an `=` or in a list. */
static bool take_value(reader *r, const side *left, op how, bool *holds)
{
    side right;
    skip(r);
    const char *start = r->at;
    if (is_wordy(left)) {
        bool is = false;
        if (how != OP_EQ && how != OP_NE)
            return fail(r, start, "%s has words: want = or !=", left->field->name);
        *holds = take_word(r, left, &is) && is == (how == OP_EQ);
        return !r->failed;
    }
    if (!take_side(r, &right))
        return false;
    if (is_wordy(&right))
        return fail(r, start, "%s has words, %s is a number", right.field->name, left->field->name);
    *holds = compare(left, how, &right);
    return true;
}

static bool read_list(reader *r, const side *left)
{
    bool any = false;
    if (!take(r, "("))
        return fail(r, r->at, "a list in ( ) is missing");
    do {
        bool holds = false;
        if (!take_value(r, left, OP_EQ, &holds))
            return false;
        any = any || holds;
    } while (take(r, ","));
    return take(r, ")") ? any : fail(r, r->at, "a ) is missing");
}

static bool read_any(reader *r);

static bool read_one(reader *r)
{
    side left;
    op how;
    bool holds = false;
    if (r->depth == MOST_DEPTH)
        return fail(r, r->at, "nested deeper than %d", MOST_DEPTH);
    r->depth++;
    if (take(r, "!")) {
        holds = !read_one(r);
    } else if (take(r, "(")) {
        holds = read_any(r);
        if (!take(r, ")"))
            fail(r, r->at, "a ) is missing");
    } else if (take_side(r, &left)) {
        if (left.field == NULL)
            fail(r, r->at, "a test begins with a field");
        else if (take_op(r, &how))
            take_value(r, &left, how, &holds);
        else if (take(r, "in"))
            holds = read_list(r, &left);
        else
            fail(r, r->at, "a comparison is missing: = != < <= > >= or in (…)");
    }
    r->depth--;
    return holds && !r->failed;
}

static bool read_all(reader *r)
{
    bool holds = read_one(r);
    while (!r->failed && take(r, "&"))
        holds = read_one(r) && holds;
    return holds;
}

static bool read_any(reader *r)
{
    bool holds = read_all(r);
    while (!r->failed && take(r, "|"))
        holds = read_all(r) || holds;
    return holds;
}

static bool read_whole(reader *r)
{
    const bool holds = read_any(r);
    skip(r);
    if (*r->at != '\0')
        fail(r, r->at, "\"%.20s\" is too much", r->at);
    return holds && !r->failed;
}

fattn_status fattn__predicate_check(const char *text)
{
    reader r = { .text = text, .at = text };
    read_whole(&r);
    return r.failed ? fattn__fail(FATTN_BAD_PROBLEM, "when: %s", r.wrong) : FATTN_OK;
}

bool fattn__predicate_holds(const char *text, const fattn_problem *resolved)
{
    reader r = { .text = text, .at = text, .problem = resolved };
    return text == NULL || read_whole(&r);
}

/* ---- sentences ----------------------------------------------------------------------------------------------------------------
 */

static int print_value(char *out, size_t capacity, const fattn__field *field, const fattn_problem *p)
{
    if (field->kind == FATTN__FIELD_REAL)
        return snprintf(out, capacity, "%g", field->real(p));
    const int64_t number = field->number(p);
    if (field->words == NULL)
        return snprintf(out, capacity, "%" PRId64, number);
    for (const fattn__word *word = field->words; word->word != NULL; word++) {
        if (field->kind == FATTN__FIELD_FORMAT ? (number >> word->value & 1) != 0 : number == word->value)
            return snprintf(out, capacity, "%s", word->word);
    }
    return snprintf(out, capacity, "?");
}

void fattn__predicate_fill(char *out, size_t capacity, const char *sentence, const fattn_problem *resolved)
{
    size_t used = 0;
    while (*sentence != '\0' && used + 1 < capacity) {
        const char *end = *sentence == '{' ? strchr(sentence, '}') : NULL;
        const fattn__field *field = end != NULL ? fattn__field_find(sentence + 1, (size_t)(end - sentence - 1)) : NULL;
        if (field == NULL) {
            out[used++] = *sentence++;
            continue;
        }
        const int length = print_value(out + used, capacity - used, field, resolved);
        used += (size_t)length < capacity - used ? (size_t)length : capacity - used - 1;
        sentence = end + 1;
    }
    out[used] = '\0';
}
