#include "predicate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words/verdict.h"

typedef enum facts_field_kind {
    FACTS_FIELD_KEY,     /* text of a key */
    FACTS_FIELD_NUMBER,  /* a key, or the sm, whose values are (also) numbers */
    FACTS_FIELD_PART,    /* a part of a key: a number or inf */
    FACTS_FIELD_VERSION, /* compared by its parts */
    FACTS_FIELD_WORD     /* text that is not of the case */
} facts_field_kind;

typedef struct facts_field {
    facts_field_kind kind;
    facts_key key;     /* of KEY, NUMBER and PART; FACTS_NO_KEY: not of the case */
    int part;          /* of PART */
    int result;        /* place in the list of what is known of a result, -1: of the case */
    const char *words; /* what it may be, separated by blanks; NULL: anything */
    const char *name;
} facts_field;

#define AS_WORD2(symbol, word) word " "

static const char backend[] = "backend";

/* What is known of a result. X(MEMBER of facts_subject, "word", KIND, words) */
/* clang-format off */
#define RESULT_LIST(X)                                                                          \
    X(cudnn, "cudnn", VERSION, NULL) X(sm, "sm", NUMBER, NULL) X(build, "build", WORD, NULL)    \
    X(backend, backend, WORD, NULL)                                   \
    X(grade, "grade", WORD, "measured decided claimed")                                         \
    X(verdict, "verdict", WORD, FACTS_VERDICT_LIST(AS_WORD2)) X(engine, "engine", NUMBER, NULL) \
    X(config, "config", NUMBER, NULL)                                                           \
    X(reason_class, "class", WORD, "unsupported bad_problem environment policy internal")
/* clang-format on */

#define AS_ROW(member, word, kind, words) { FACTS_FIELD_##kind, FACTS_NO_KEY, 0, 0, words, word },
static const facts_field results[] = { RESULT_LIST(AS_ROW) };
#undef AS_ROW
#define RESULTS (sizeof results / sizeof *results)

static const char case_word[] = "case";

/* The field of a word; false when there is none, with the nearest in *hint. */
static bool facts_field_find(const facts_language *language, facts_span word, facts_field *out,
                             char hint[FACTS_QUOTE_MAX])
{
    facts_nearest nearest = facts_nearest_start(word);
    for (size_t i = 0; i < RESULTS; i++) {
        *out = results[i];
        out->result = (int)i;
        if (results[i].name == backend)
            out->words = language->backends;
        if (facts_span_is(word, results[i].name))
            return true;
        facts_nearest_offer(&nearest, results[i].name, strlen(results[i].name));
    }
    for (size_t i = 0; i < language->part_count; i++) {
        const facts_key_part *part = &language->parts[i];
        *out = (facts_field){ FACTS_FIELD_PART, part->key, part->index, -1, NULL, part->word };
        if (facts_span_is(word, part->word))
            return true;
        facts_nearest_offer(&nearest, part->word, strlen(part->word));
    }
    *out = (facts_field){ FACTS_FIELD_WORD, FACTS_NO_KEY, 0, -1, NULL, case_word };
    if (facts_span_is(word, case_word))
        return true;
    facts_key key = facts_key_find(language, word.at, word.length);
    if (key != FACTS_NO_KEY) {
        *out = (facts_field){ facts_key_is_number(&language->keys[key]) ? FACTS_FIELD_NUMBER
                                                                        : FACTS_FIELD_KEY,
                              key,
                              0,
                              -1,
                              NULL,
                              language->keys[key].word };
        return true;
    }
    for (key = 0; key < language->count; key++)
        facts_nearest_offer(&nearest, language->keys[key].word, strlen(language->keys[key].word));
    facts_nearest_hint(&nearest, hint);
    return false;
}

static const char *result_text(const facts_field *field, const facts_subject *subject)
{
#define AS_VALUE(member, word, kind, words) subject->member,
    const char *const values[] = { RESULT_LIST(AS_VALUE) };
#undef AS_VALUE
    return values[field->result];
}

/* The part of 8/2/2, 512, 128:inf; a part that is absent repeats the one before. */
static facts_span part_of(const char *text, int index)
{
    facts_span rest = facts_span_of(text);
    char separator = strchr(text, ':') != NULL ? ':' : '/';
    facts_span part = facts_span_cut(&rest, separator);
    for (int i = 0; i < index && rest.length > 0; i++)
        part = facts_span_cut(&rest, separator);
    return part;
}

/* What the subject has there: text in `out` (FACTS_NAME_MAX), false when unknown. */
static bool facts_field_text(const facts_field *field, const facts_subject *subject, char *out)
{
    facts_key key = field->key;
    if (field->result >= 0) {
        const char *known = result_text(field, subject);
        if (known != NULL) {
            snprintf(out, FACTS_NAME_MAX, "%s", known);
            return true;
        }
        /* Before a result is known, `engine` is the one that the case asks for. */
        key = subject->c == NULL
                  ? FACTS_NO_KEY
                  : facts_key_find(subject->c->language, field->name, strlen(field->name));
        if (key == FACTS_NO_KEY)
            return false;
    }
    if (subject->c == NULL)
        return false;
    if (key == FACTS_NO_KEY) {
        facts_case_name(subject->c, out);
        return true;
    }
    const char *text = facts_case_get(subject->c, key);
    facts_span part =
        field->kind == FACTS_FIELD_PART ? part_of(text, field->part) : facts_span_of(text);
    snprintf(out, FACTS_NAME_MAX, "%.*s", (int)part.length, part.at);
    return true;
}

/* A number as predicates write it: decimal, or inf; for the sm also with its sm_ in front. */
static bool facts_field_read_number(facts_span text, double *out)
{
    if (text.length > 3 && memcmp(text.at, "sm_", 3) == 0)
        text = (facts_span){ text.at + 3, text.length - 3 };
    if (facts_span_is(text, "inf")) {
        *out = INFINITY;
        return true;
    }
    return facts_read_real(text, out);
}

/* The same as a number, inf included; false when unknown or not a number. */
static bool facts_field_number(const facts_field *field, const facts_subject *subject, double *out)
{
    char text[FACTS_NAME_MAX];
    return facts_field_text(field, subject, text) &&
           facts_field_read_number(facts_span_of(text), out);
}

static bool facts_version_read(facts_span text, uint32_t out[FACTS_VERSION_PARTS])
{
    facts_span rest = text;
    text = facts_span_cut(&rest, '-');
    for (int i = 0; i < FACTS_VERSION_PARTS; i++) {
        uint64_t value = 0;
        bool expects = i == 0 || text.length > 0;
        if (expects && !facts_read_integer(facts_span_cut(&text, '.'), 999999, &value))
            return false;
        out[i] = (uint32_t)value;
    }
    return text.length == 0;
}

int32_t facts_version_number(facts_span text, uint32_t missing)
{
    uint32_t part[FACTS_VERSION_PARTS];
    int written = 1;
    if (!facts_version_read(text, part))
        return 0;
    for (size_t i = 0; i < text.length && text.at[i] != '-'; i++)
        written += text.at[i] == '.';
    for (int i = written; i < 3; i++)
        part[i] = missing;
    return written < 2 || written > 3 || part[0] > 99 || part[1] > 99 || part[2] > 99
               ? 0
               : (int32_t)(part[0] * 10000 + part[1] * 100 + part[2]);
}

static int facts_version_compare(const uint32_t a[FACTS_VERSION_PARTS],
                                 const uint32_t b[FACTS_VERSION_PARTS])
{
    for (int i = 0; i < FACTS_VERSION_PARTS; i++) {
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

/* * is any letters, ? one letter. */
static bool facts_glob(facts_span pattern, const char *text)
{
    size_t p = 0, star = SIZE_MAX, t = 0, back = 0;
    while (text[t] != '\0') {
        if (p < pattern.length && pattern.at[p] == '*') {
            star = p++;
            back = t;
        } else if (p < pattern.length && (pattern.at[p] == '?' || pattern.at[p] == text[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++back;
        } else {
            return false;
        }
    }
    while (p < pattern.length && pattern.at[p] == '*')
        p++;
    return p == pattern.length;
}

/*  any     = all { "|" all }            all = one { "&" one }
 *  one     = "!" one | "(" any ")" | field test
 *  field   = name [ "%" N ]             test = op value | "~" glob | "in" "(" value { "," value } ")"
 */
#define MOST_LETTERS 8192
#define MOST_NODES 1024
#define MOST_DEPTH 64

typedef enum node_kind { NODE_OR, NODE_AND, NODE_NOT, NODE_TEST } node_kind;
typedef enum op { OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE, OP_GLOB, OP_NOT_GLOB } op;

typedef struct node {
    node_kind kind;
    int left,
        right; /* children; of TEST in a list: right is the next value's node + 1, 0 at the end */
    op op;
    facts_field field, other; /* other: compared with another field, when has_other */
    bool has_other;
    uint64_t modulus; /* 0: none */
    double number;
    uint32_t version[FACTS_VERSION_PARTS];
    size_t text; /* offset in `texts` of the canonical value */
    size_t length;
} node;

struct facts_predicate {
    node *nodes;
    int count, root;
    char *texts;
    size_t texts_used;
};

typedef struct parser {
    const facts_language *language;
    facts_predicate *out;
    const char *text;
    size_t at, length;
    int depth, most; /* most: nodes that `out` has room for */
    facts_error *error;
} parser;

static bool wrong_at(parser *p, size_t at, const char *what, facts_span about, const char *hint)
{
    char quote[FACTS_QUOTE_MAX];
    return facts_fail_at(p->error, "where", 1, (int)at + 1, "%s%s%s%s", facts_quote(quote, about),
                         about.length > 0 ? " " : "", what, hint);
}

static const facts_span nothing = { "", 0 };

static void skip(parser *p)
{
    while (p->at < p->length && (p->text[p->at] == ' ' || p->text[p->at] == '\t'))
        p->at++;
}

static bool take(parser *p, char letter)
{
    skip(p);
    if (p->at >= p->length || p->text[p->at] != letter)
        return false;
    p->at++;
    return true;
}

static int add(parser *p, node n)
{
    if (p->out->count == p->most) {
        wrong_at(p, p->at, "too long for a predicate", nothing, "");
        return -1;
    }
    p->out->nodes[p->out->count] = n;
    return p->out->count++;
}

static bool in_name(char letter)
{
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_' ||
           letter == '.';
}

static facts_span take_name(parser *p)
{
    skip(p);
    size_t start = p->at;
    while (p->at < p->length && in_name(p->text[p->at]))
        p->at++;
    return (facts_span){ p->text + start, p->at - start };
}

static bool take_value(parser *p, facts_span *out)
{
    skip(p);
    size_t start = p->at;
    char quote = p->at < p->length ? p->text[p->at] : '\0';
    if (quote == '\'' || quote == '"') {
        const char *end = memchr(p->text + start + 1, quote, p->length - start - 1);
        if (end == NULL)
            return wrong_at(p, start, "a quote is not closed", nothing, "");
        *out = (facts_span){ p->text + start + 1, (size_t)(end - p->text) - start - 1 };
        p->at = (size_t)(end - p->text) + 1;
        return true;
    }
    while (p->at < p->length && p->text[p->at] != '\0' &&
           strchr(" \t&|(),!<>='\"", p->text[p->at]) == NULL)
        p->at++;
    *out = (facts_span){ p->text + start, p->at - start };
    return out->length > 0 || wrong_at(p, start, "a value is missing", nothing, "");
}

static bool take_op(parser *p, op *out)
{
    static const struct {
        const char *word;
        op op;
    } ops[] = { { "!=", OP_NE },       { "<=", OP_LE }, { ">=", OP_GE },
                { "!~", OP_NOT_GLOB }, { "==", OP_EQ }, { "=", OP_EQ },
                { "<", OP_LT },        { ">", OP_GT },  { "~", OP_GLOB } };
    skip(p);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        size_t letters = strlen(ops[i].word);
        if (p->length - p->at >= letters && memcmp(p->text + p->at, ops[i].word, letters) == 0) {
            *out = ops[i].op;
            p->at += letters;
            return true;
        }
    }
    return false;
}

static bool ordered(const facts_field *field)
{
    return field->kind == FACTS_FIELD_NUMBER || field->kind == FACTS_FIELD_PART ||
           field->kind == FACTS_FIELD_VERSION;
}

static void keep_text(parser *p, node *n, const char *text, size_t length)
{
    n->text = p->out->texts_used;
    n->length = length;
    memcpy(p->out->texts + n->text, text, length);
    p->out->texts[n->text + length] = '\0';
    p->out->texts_used += length + 1;
}

/* A value that is compared for equality with words: must be one of them. */
static bool check_word(parser *p, const node *n, facts_span value, size_t at)
{
    if (n->field.words == NULL)
        return true;
    facts_nearest nearest = facts_nearest_start(value);
    facts_span rest = facts_span_of(n->field.words), word;
    while ((word = facts_span_word(&rest)).length > 0) {
        if (word.length == value.length && memcmp(word.at, value.at, value.length) == 0)
            return true;
        facts_nearest_offer(&nearest, word.at, word.length);
    }
    char quote[FACTS_QUOTE_MAX], hint[FACTS_QUOTE_MAX];
    return facts_fail_at(p->error, "where", 1, (int)at + 1, "%s is not a %s; allowed: %s%s",
                         facts_quote(quote, value), n->field.name, n->field.words,
                         facts_nearest_hint(&nearest, hint));
}

/* Another field on the right: s.q<=s.kv. */
static bool is_field(const facts_language *language, const node *n, facts_span value,
                     facts_field *other)
{
    char hint[FACTS_QUOTE_MAX];
    bool numbers = n->field.kind == FACTS_FIELD_NUMBER || n->field.kind == FACTS_FIELD_PART;
    return numbers && value.length > 0 && value.at[0] >= 'a' &&
           facts_field_find(language, value, other, hint) &&
           (other->kind == FACTS_FIELD_PART || other->kind == FACTS_FIELD_NUMBER);
}

static bool set_value(parser *p, node *n, facts_span value, size_t at)
{
    if (n->op == OP_GLOB || n->op == OP_NOT_GLOB) {
        keep_text(p, n, value.at, value.length);
        return true;
    }
    if (n->field.kind == FACTS_FIELD_VERSION)
        return facts_version_read(value, n->version) ||
               wrong_at(p, at, "is not a version, such as 9.10.2", value, "");
    n->has_other = is_field(p->language, n, value, &n->other);
    if (n->has_other)
        return true;
    bool number = facts_field_read_number(value, &n->number);
    bool numbers_only =
        n->modulus > 0 || n->field.kind == FACTS_FIELD_PART || n->field.key == FACTS_NO_KEY;
    bool equality = n->op == OP_EQ || n->op == OP_NE;
    if (n->field.kind == FACTS_FIELD_PART || n->field.kind == FACTS_FIELD_NUMBER) {
        if (number)
            return true;
        n->number = NAN; /* a word: compared as text */
        if (!equality || (numbers_only && n->field.result < 0))
            return wrong_at(p, at, "is not a number", value, "");
    }
    if (n->field.key == FACTS_NO_KEY) {
        keep_text(p, n, value.at, value.length);
        return check_word(p, n, value, at);
    }
    char canonical[FACTS_CASE_TEXT];
    facts_value_fault fault = { 0 };
    if (!facts_value_canonical(&p->language->keys[n->field.key], value, canonical, &fault))
        return facts_fail_at(p->error, "where", 1, (int)(at + fault.at) + 1, "%s", fault.text);
    keep_text(p, n, canonical, strlen(canonical));
    return true;
}

static bool room_for(parser *p, size_t letters)
{
    return 4 * MOST_LETTERS - p->out->texts_used > letters + FACTS_CASE_TEXT ||
           wrong_at(p, p->at, "too long for a predicate", nothing, "");
}

static int value_node(parser *p, node n)
{
    facts_span value = nothing;
    size_t at = (skip(p), p->at);
    if (!take_value(p, &value) || !room_for(p, value.length) || !set_value(p, &n, value, at))
        return -1;
    return add(p, n);
}

/* in (a, b): a chain of ORs. */
static int list_node(parser *p, node n)
{
    if (!take(p, '(')) {
        wrong_at(p, p->at, "in takes values in parentheses: in (a, b)", nothing, "");
        return -1;
    }
    n.op = OP_EQ;
    int all = value_node(p, n);
    while (all >= 0 && take(p, ',')) {
        int next = value_node(p, n);
        all = next < 0 ? -1 : add(p, (node){ .kind = NODE_OR, .left = all, .right = next });
    }
    if (all >= 0 && !take(p, ')')) {
        wrong_at(p, p->at, "a ) is missing", nothing, "");
        return -1;
    }
    return all;
}

static bool take_field(parser *p, node *n)
{
    char hint[FACTS_QUOTE_MAX] = "";
    facts_span name = take_name(p);
    size_t at = (size_t)(name.at - p->text);
    if (name.length == 0)
        return wrong_at(p, at, "expected a key here", nothing, "");
    if (!facts_field_find(p->language, name, &n->field, hint))
        return wrong_at(p, at, "is not a key", name, hint);
    if (take(p, '%')) {
        facts_span modulus = take_name(p);
        if (!facts_read_integer(modulus, INT32_MAX, &n->modulus) || n->modulus == 0)
            return wrong_at(p, (size_t)(modulus.at - p->text), "% takes a whole number above 0",
                            nothing, "");
        if (n->field.kind != FACTS_FIELD_PART && n->field.kind != FACTS_FIELD_NUMBER)
            return wrong_at(p, at, "is not a number", name, "");
    }
    return true;
}

static int test_node(parser *p)
{
    node n = { .kind = NODE_TEST };
    if (!take_field(p, &n))
        return -1;
    size_t at = (skip(p), p->at);
    facts_span word = take_name(p);
    if (facts_span_is(word, "in"))
        return list_node(p, n);
    p->at = at;
    if (!take_op(p, &n.op)) {
        wrong_at(p, at, "expected one of = != < <= > >= ~ in here", nothing, "");
        return -1;
    }
    bool order = n.op == OP_LT || n.op == OP_LE || n.op == OP_GT || n.op == OP_GE;
    if (order && !ordered(&n.field)) {
        char parts[FACTS_QUOTE_MAX] = "";
        for (size_t i = 0; i < p->language->part_count; i++) {
            const facts_key_part *part = &p->language->parts[i];
            size_t used = strlen(parts);
            if (part->key == n.field.key)
                snprintf(parts + used, sizeof parts - used, "%s %s",
                         used ? "" : "; its parts have:", part->word);
        }
        wrong_at(p, at, "has no order", facts_span_of(n.field.name),
                 parts[0] ? parts : "; = != ~ in apply");
        return -1;
    }
    return value_node(p, n);
}

static int any_node(parser *p);

static int one_node(parser *p)
{
    if (p->depth == MOST_DEPTH) {
        wrong_at(p, p->at, "nested too deep", nothing, "");
        return -1;
    }
    p->depth++;
    int result;
    if (take(p, '!')) {
        int inner = one_node(p);
        result = inner < 0 ? -1 : add(p, (node){ .kind = NODE_NOT, .left = inner });
    } else if (take(p, '(')) {
        result = any_node(p);
        if (result >= 0 && !take(p, ')')) {
            wrong_at(p, p->at, "a ) is missing", nothing, "");
            result = -1;
        }
    } else {
        result = test_node(p);
    }
    p->depth--;
    return result;
}

static int chain(parser *p, char letter, node_kind kind, int (*next)(parser *))
{
    int all = next(p);
    while (all >= 0 && take(p, letter)) {
        take(p, letter); /* && and || are fine */
        int right = next(p);
        all = right < 0 ? -1 : add(p, (node){ .kind = kind, .left = all, .right = right });
    }
    return all;
}

static int all_node(parser *p)
{
    return chain(p, '&', NODE_AND, one_node);
}

static int any_node(parser *p)
{
    return chain(p, '|', NODE_OR, all_node);
}

bool facts_predicate_parse(const facts_language *language, facts_predicate **out, const char *text,
                           facts_error *error)
{
    *out = NULL;
    parser p = { .language = language, .text = text, .length = strlen(text), .error = error };
    if (p.length > MOST_LETTERS)
        return wrong_at(&p, 0, "too long for a predicate", nothing, "");
    p.most = p.length < MOST_NODES ? (int)p.length + 1 : MOST_NODES; /* a node takes a letter */
    facts_predicate *made = calloc(1, sizeof *made);
    if (made != NULL) {
        made->nodes = malloc((size_t)p.most * sizeof *made->nodes);
        made->texts = malloc(5 * MOST_LETTERS);
    }
    if (made == NULL || made->nodes == NULL || made->texts == NULL) {
        facts_predicate_destroy(made);
        return wrong_at(&p, 0, "no memory", nothing, "");
    }
    p.out =
        made; /* hundreds are read at a start: nothing is cleared, and each keeps what it needs */
    made->root = any_node(&p);
    skip(&p);
    if (made->root >= 0 && p.at < p.length) {
        wrong_at(&p, p.at, "is left over; & or | join tests",
                 (facts_span){ text + p.at, p.length - p.at }, "");
        made->root = -1;
    }
    if (made->root < 0) {
        facts_predicate_destroy(made);
        return false;
    }
    node *fitting = realloc(made->nodes, (size_t)made->count * sizeof *fitting);
    made->nodes = fitting != NULL ? fitting : made->nodes;
    char *texts = realloc(made->texts, made->texts_used + 1);
    made->texts = texts != NULL ? texts : made->texts;
    *out = made;
    return true;
}

void facts_predicate_destroy(facts_predicate *p)
{
    if (p == NULL)
        return;
    free(p->nodes);
    free(p->texts);
    free(p);
}

/* ---- evaluation
 * -------------------------------------------------------------------------------------------------------------
 */

static bool compare(op o, int order)
{
    switch (o) {
    case OP_EQ:
        return order == 0;
    case OP_NE:
        return order != 0;
    case OP_LT:
        return order < 0;
    case OP_LE:
        return order <= 0;
    case OP_GT:
        return order > 0;
    default:
        return order >= 0;
    }
}

static bool numbers_hold(const node *n, const facts_subject *s, bool *decided)
{
    double have, expects = n->number;
    *decided = n->has_other || !isnan(expects);
    if (!*decided)
        return false;
    if (!facts_field_number(&n->field, s, &have))
        return n->op == OP_NE && !n->has_other && n->modulus == 0 && n->field.key != FACTS_NO_KEY &&
               s->c != NULL;
    if (n->has_other && !facts_field_number(&n->other, s, &expects))
        return false;
    if (n->modulus > 0)
        have = isfinite(have) ? fmod(have, (double)n->modulus) : NAN;
    return !isnan(have) && compare(n->op, have < expects ? -1 : have > expects);
}

static bool test_holds(const facts_predicate *p, const node *n, const facts_subject *s)
{
    bool decided = false;
    bool text_only = n->op == OP_GLOB || n->op == OP_NOT_GLOB;
    if (!text_only && (n->field.kind == FACTS_FIELD_NUMBER || n->field.kind == FACTS_FIELD_PART)) {
        bool holds = numbers_hold(n, s, &decided);
        if (decided)
            return holds;
    }
    char have[FACTS_NAME_MAX];
    if (!facts_field_text(&n->field, s, have))
        return false;
    const char *expects = p->texts + n->text;
    if (text_only)
        return facts_glob((facts_span){ expects, n->length }, have) == (n->op == OP_GLOB);
    if (n->field.kind == FACTS_FIELD_VERSION) {
        uint32_t version[FACTS_VERSION_PARTS];
        return facts_version_read(facts_span_of(have), version) &&
               compare(n->op, facts_version_compare(version, n->version));
    }
    return compare(n->op, strcmp(have, expects));
}

static bool node_holds(const facts_predicate *p, int at, const facts_subject *s)
{
    const node *n = &p->nodes[at];
    switch (n->kind) {
    case NODE_OR:
        return node_holds(p, n->left, s) || node_holds(p, n->right, s);
    case NODE_AND:
        return node_holds(p, n->left, s) && node_holds(p, n->right, s);
    case NODE_NOT:
        return !node_holds(p, n->left, s);
    default:
        return test_holds(p, n, s);
    }
}

bool facts_predicate_holds(const facts_predicate *p, const facts_subject *s)
{
    return node_holds(p, p->root, s);
}

typedef enum truth { TRUTH_NO, TRUTH_OPEN, TRUTH_YES } truth;

static bool is_open(const facts_field *field, const facts_subject *s)
{
    char text[FACTS_NAME_MAX];
    if (field->result < 0)
        return s->c == NULL;
    return !facts_field_text(field, s, text) || strcmp(text, "auto") == 0 ||
           strcmp(text, "all") == 0;
}

static truth node_truth(const facts_predicate *p, int at, const facts_subject *s)
{
    const node *n = &p->nodes[at];
    if (n->kind == NODE_TEST)
        return is_open(&n->field, s) || (n->has_other && is_open(&n->other, s)) ? TRUTH_OPEN
               : test_holds(p, n, s)                                            ? TRUTH_YES
                                                                                : TRUTH_NO;
    truth left = node_truth(p, n->left, s);
    if (n->kind == NODE_NOT)
        return TRUTH_YES - left;
    truth right = node_truth(p, n->right, s);
    return (n->kind == NODE_OR) == (left > right) ? left : right;
}

bool facts_predicate_possible(const facts_predicate *p, const facts_subject *s)
{
    return node_truth(p, p->root, s) != TRUTH_NO;
}
