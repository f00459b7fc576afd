#include "errata.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/problem/case_problem.h"
#include "case/suites/field.h"
#include "case/suites/predicate.h"
#include "fattn/policy.h"

enum { MOST_RULES = 4096, MOST_BYTES = 4 * 1024 * 1024, MOST_KNOB_TYPE = 256 };

/* One rule. Its strings belong to the document. */
typedef struct erratum {
    fattn_rule rule;
    fattn_knob knobs[FATTN_MAX_KNOBS];
    facts_predicate *when; /* NULL: the rule holds for every case */
} erratum;

struct facts_errata {
    json_t *document;
    erratum *at;
    size_t count;
};

/* A rule while it is read. */
typedef struct draft {
    erratum *to;
    bool left_out;
    facts_error error;
} draft;

static bool wrong(draft *d, const char *about, const char *what)
{
    return facts_fail(&d->error, "%.40s: %.200s", about, what);
}

/* ---- values
 * -------------------------------------------------------------------------------------------------------------------
 */

static bool read_text(draft *d, const char *key, const json_t *value, const char **out)
{
    *out = json_string_value(value);
    return *out != NULL || wrong(d, key, "expected a text");
}

/* The whole text is a number of at most nine digits. */
static bool whole_number(const char *text, int64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9' || strlen(text) > 9)
        return false;
    *out = strtoll(text, &end, 10);
    return *end == '\0';
}

/* A number, also in quotes: cudnn-frontend's documentation has the one form, its source the other.
 */
static bool read_number(draft *d, const char *key, const json_t *value, int64_t *out)
{
    const char *text = json_string_value(value);
    if (text != NULL)
        return whole_number(text, out) || wrong(d, key, "expected a number");
    *out = json_integer_value(value);
    return (json_is_integer(value) && *out >= -1 && *out <= INT32_MAX) ||
           wrong(d, key, "expected a number");
}

static bool word_of(const char *text, const char *const *words, int count, int32_t *out)
{
    for (int32_t i = 0; i < count; i++) {
        if (strcmp(words[i], text) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* "TILE_M", "CUDNN_KNOB_TYPE_TILE_M" or "k40". */
static bool knob_type(const char *name, size_t length, int32_t *out)
{
    static const char prefix[] = "CUDNN_KNOB_TYPE_";
    char word[64];
    int64_t number;
    if (length >= sizeof word)
        return false;
    memcpy(word, name, length);
    word[length] = '\0';
    if (word[0] == 'k' && whole_number(word + 1, &number)) {
        *out = (int32_t)number;
        return true;
    }
    const char *bare =
        strncmp(word, prefix, sizeof prefix - 1) == 0 ? word + sizeof prefix - 1 : word;
    for (*out = 0; *out < MOST_KNOB_TYPE; ++*out) {
        if (strcmp(fattn_knob_name(*out), bare) == 0)
            return true;
    }
    return false;
}

static bool add_knob(draft *d, const char *name, size_t length, int64_t value)
{
    fattn_rule *rule = &d->to->rule;
    if (rule->knob_count == FATTN_MAX_KNOBS)
        return wrong(d, "knobs", "more knobs than a rule can have");
    fattn_knob *knob = &d->to->knobs[rule->knob_count];
    if (!knob_type(name, length, &knob->type))
        return wrong(d, "knobs", "no knob has this name; expected a name such as TILE_M or k40");
    knob->value = value;
    rule->knob_count++;
    return true;
}

/* {"TILE_M":2} or {"k40":"2"} */
static bool read_knob_object(draft *d, json_t *value)
{
    const char *name;
    json_t *each;
    json_object_foreach(value, name, each)
    {
        int64_t number = 0;
        if (!read_number(d, "knobs", each, &number) || !add_knob(d, name, strlen(name), number))
            return false;
    }
    return true;
}

/* ["k40=2"] or {"k40":"2"} */
static bool read_knobs(draft *d, json_t *value)
{
    size_t i;
    json_t *each;
    if (json_is_object(value))
        return read_knob_object(d, value);
    if (!json_is_array(value))
        return wrong(d, "knobs", "expected a list or an object");
    json_array_foreach(value, i, each)
    {
        const char *text = json_string_value(each),
                   *equal = text != NULL ? strchr(text, '=') : NULL;
        int64_t number;
        if (equal == NULL || !whole_number(equal + 1, &number))
            return wrong(d, "knob", "expected a text such as \"k40=2\"");
        if (!add_knob(d, text, (size_t)(equal - text), number))
            return false;
    }
    return true;
}

/* ---- our form
 * -----------------------------------------------------------------------------------------------------------------
 */

/* 9.14 is the first or the last of its patches. */
static bool version_of(const char *text, size_t length, bool last, int32_t *out)
{
    *out = facts_version_number((facts_span){ text, length }, last ? 99 : 0);
    return *out >= 90000;
}

static bool sm_of(const char *text, size_t length, bool last, int32_t *out)
{
    char word[8];
    int64_t number;
    (void)last;
    if (length >= sizeof word)
        return false;
    memcpy(word, text, length);
    word[length] = '\0';
    if (!whole_number(word, &number) || number == 0)
        return false;
    *out = (int32_t)number;
    return true;
}

/* "a..b", "a..", "..b" or "a" */
static bool read_range(draft *d, const char *key, const json_t *value,
                       bool (*of)(const char *, size_t, bool, int32_t *), int32_t *from,
                       int32_t *to)
{
    const char *text;
    if (json_is_integer(value) && of == sm_of) {
        *from = *to = (int32_t)json_integer_value(value);
        return *from > 0 ||
               wrong(d, key, "expected a range such as \"90\", \"90..100\" or \"..90\"");
    }
    if (!read_text(d, key, value, &text))
        return false;
    const char *dots = strstr(text, "..");
    const size_t head = dots != NULL ? (size_t)(dots - text) : strlen(text);
    const char *tail = dots != NULL ? dots + 2 : text;
    const bool good = (head == 0 || of(text, head, false, from)) &&
                      (*tail == '\0' || of(tail, strlen(tail), true, to));
    return (good && (head > 0 || *tail != '\0')) ||
           wrong(d, key,
                 of == sm_of ? "expected a range such as \"90\", \"90..100\" or \"..90\""
                             : "expected a range such as \"9.14.0..9.25.1\", \"9.14.0..\", "
                               "\"..9.25.1\" or \"9.14.0\"");
}

static bool read_action(draft *d, const char *key, const json_t *value, fattn_action action)
{
#define AS_WORD(symbol, value, word) word,
    static const char *const backends[] = { FATTN_BACKEND_LIST(AS_WORD) };
#undef AS_WORD
    const char *text;
    d->to->rule.action = (int32_t)action;
    return read_text(d, key, value, &text) &&
           (word_of(text, backends, FATTN_BACKEND_COUNT, &d->to->rule.backend) ||
            wrong(d, key, "expected cudnn, math or cpu"));
}

static bool read_pass(draft *d, const json_t *value)
{
#define AS_WORD(symbol, value, word) word,
    static const char *const passes[] = { FATTN_PASS_LIST(AS_WORD) };
#undef AS_WORD
    const char *text;
    return read_text(d, "pass", value, &text) &&
           (word_of(text, passes, 2, &d->to->rule.pass) || wrong(d, "pass", "expected fwd or bwd"));
}

/* A predicate over the case. Keys that exist only in results are not allowed here. */
static bool read_when(draft *d, const char *text)
{
    facts_error error = { 0 };
    if (!facts_predicate_parse(&facts_attention_language, &d->to->when, text, &error)) {
        const char *words = strstr(error.text, ": "); /* after its place */
        return facts_fail(&d->error, "when: column %d: %.220s", error.column,
                          words ? words + 2 : error.text);
    }
    const char *unknown = facts_predicate_result(d->to->when);
    if (unknown == NULL)
        return true;
    return facts_fail(&d->error,
                      "when: %s is not a key of a case; the rule's own keys \"cudnn\", \"sm\" and "
                      "\"engine\" say where it holds",
                      unknown);
}

static bool read_key(draft *d, const char *key, json_t *value, int *actions)
{
    fattn_rule *rule = &d->to->rule;
    const char *when;
    const struct {
        const char *key;
        const char **to;
    } texts[] = { { "name", &rule->name },
                  { "why", &rule->why },
                  { "link", &rule->link },
                  { "remedy", &rule->remedy } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(texts[i].key, key) == 0)
            return read_text(d, key, value, texts[i].to);
    }
    if (strcmp(key, "when") == 0)
        return read_text(d, key, value, &when) && read_when(d, when);
    if (strcmp(key, "deny") == 0 || strcmp(key, "pin") == 0) {
        ++*actions;
        return read_action(d, key, value, *key == 'd' ? FATTN_DENY : FATTN_PIN);
    }
    if (strcmp(key, "pass") == 0)
        return read_pass(d, value);
    if (strcmp(key, "engine") == 0)
        return read_number(d, key, value, &rule->engine);
    if (strcmp(key, "knobs") == 0)
        return read_knobs(d, value);
    if (strcmp(key, "cudnn") == 0)
        return read_range(d, key, value, version_of, &rule->cudnn_from, &rule->cudnn_to);
    if (strcmp(key, "sm") == 0)
        return read_range(d, key, value, sm_of, &rule->sm_from, &rule->sm_to);
    if (strcmp(key, "unasked") == 0) {
        rule->unasked = json_is_true(value);
        return json_is_boolean(value) || wrong(d, key, "expected true or false");
    }
    return wrong(d, key, "no such key in a rule");
}

static bool read_ours(draft *d, json_t *object)
{
    const char *key;
    json_t *value;
    int actions = 0;
    json_object_foreach(object, key, value)
    {
        if (!read_key(d, key, value, &actions))
            return false;
    }
    if (d->to->rule.name == NULL)
        return wrong(d, "name", "is missing");
    return actions == 1 || wrong(d, "deny, pin", "expected exactly one of the two");
}

/* ---- cudnn-frontend's form
 * ----------------------------------------------------------------------------------------------------
 */

/* An operation is the tag of a whole graph, "Matmul_…_Matmul". Forward attention has two products,
 * backward attention has more. */
static bool read_operation(draft *d, const json_t *value)
{
    const char *text;
    int products = 0;
    if (!read_text(d, "operation", value, &text))
        return false;
    for (const char *at = strstr(text, "Matmul"); at != NULL; at = strstr(at + 1, "Matmul"))
        products++;
    d->left_out = products < 2;
    d->to->rule.pass = products == 2 ? FATTN_FORWARD : FATTN_BACKWARD;
    return true;
}

/* The first correct version. It is outside our range. */
static bool read_end(draft *d, const json_t *value)
{
    int64_t end;
    if (!read_number(d, "cudnn_version_end", value, &end))
        return false;
    if (end == 0)
        return wrong(d, "cudnn_version_end", "0 leaves no version in the range");
    d->to->rule.cudnn_to = end < 0 ? 0 : (int32_t)end - 1;
    return true;
}

static bool read_frontends(draft *d, json_t *object)
{
    json_t *knob = json_object_get(object, "knob"),
           *start = json_object_get(object, "cudnn_version_start"),
           *end = json_object_get(object, "cudnn_version_end"),
           *name = json_object_get(object, "rule_id");
    int64_t from = 0;
    d->to->rule.backend = FATTN_BACKEND_CUDNN;
    d->to->rule.name = "(no rule_id)";
    if ((name != NULL && !read_text(d, "rule_id", name, &d->to->rule.name)) ||
        !read_operation(d, json_object_get(object, "operation")) ||
        !read_number(d, "engine", json_object_get(object, "engine"), &d->to->rule.engine) ||
        (knob != NULL && !read_knobs(d, knob)) ||
        (start != NULL && !read_number(d, "cudnn_version_start", start, &from)) ||
        (end != NULL && !read_end(d, end)))
        return false;
    if (d->to->rule.engine < 0)
        return wrong(d, "engine", "expected the number of an engine");
    d->to->rule.cudnn_from = from < 0 ? 0 : (int32_t)from;
    d->to->rule.why = "an errata file blocks this engine";
    return true;
}

/* ---- the document
 * --------------------------------------------------------------------------------------------------------------
 */

/* The library checks what it would refuse when a case pushes the rules: ranges, knobs, what may be
 * unasked. */
static bool check_by_library(const facts_errata *errata, facts_error *error)
{
    fattn_rule *rules = calloc(errata->count + 1, sizeof *rules);
    fattn_policy policy = FATTN_POLICY_INIT;
    int depth = 0;
    if (!rules)
        return facts_fail(error, "no memory for %zu rules", errata->count);
    for (size_t i = 0; i < errata->count; i++)
        rules[i] = errata->at[i].rule;
    policy.rules = rules;
    policy.rule_count = errata->count;
    const fattn_status status = fattn_policy_push(&policy, &depth);
    if (status == FATTN_OK)
        fattn_policy_pop(depth);
    else
        facts_fail(error, "%.290s", fattn_last_error());
    free(rules);
    return status == FATTN_OK;
}

static bool read_rules(facts_errata *out, const json_t *list, facts_error *error)
{
    out->at = calloc(json_array_size(list) + 1, sizeof *out->at);
    if (!out->at)
        return facts_fail(error, "no memory for %zu rules", json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *object = json_array_get(list, i);
        draft d = { .to = &out->at[out->count++] };
        d.to->rule = (fattn_rule)FATTN_RULE_INIT;
        d.to->rule.knobs = d.to->knobs;
        const bool good = !json_is_object(object) ? wrong(&d, "a rule", "expected an object")
                          : json_object_get(object, "operation") ? read_frontends(&d, object)
                                                                 : read_ours(&d, object);
        if (!good)
            return facts_fail(error, "rule %zu (%.60s): %.200s", i,
                              d.to->rule.name ? d.to->rule.name : "no name", d.error.text);
        if (d.left_out)
            *d.to = (erratum){ .when = NULL }, out->count--;
    }
    return true;
}

static bool read_document(facts_errata *out, const char *json, facts_error *error)
{
    json_error_t place;
    if (strlen(json) > MOST_BYTES)
        return facts_fail(error, "the file has more than %d bytes", MOST_BYTES);
    out->document = json_loads(json, JSON_REJECT_DUPLICATES, &place);
    if (!out->document)
        return facts_fail(error, "line %d, column %d: %s", place.line, place.column, place.text);
    const json_t *version = json_object_get(out->document, "version"),
                 *list = json_object_get(out->document, "rules");
    if (!json_is_integer(version) || json_integer_value(version) != 1)
        return facts_fail(error, "\"version\" is not 1");
    if (!json_is_array(list) || json_array_size(list) > MOST_RULES) {
        return facts_fail(error, "\"rules\" is not a list of at most %d rules", MOST_RULES);
    }
    return read_rules(out, list, error) && check_by_library(out, error);
}

bool facts_errata_read(facts_errata **out, const char *json, facts_error *error)
{
    facts_errata *errata = calloc(1, sizeof *errata);
    *out = NULL;
    if (!errata)
        return facts_fail(error, "no memory");
    if (!read_document(errata, json, error)) {
        for (char *at = error->text; *at;
             at++) /* it contains words of the file, perhaps cut within a character */
            *at = *at >= ' ' && *at <= '~' ? *at : '?';
        facts_errata_destroy(errata);
        return false;
    }
    *out = errata;
    return true;
}

void facts_errata_destroy(facts_errata *errata)
{
    if (!errata)
        return;
    for (size_t i = 0; i < errata->count; i++)
        facts_predicate_destroy(errata->at[i].when);
    free(errata->at);
    json_decref(errata->document);
    free(errata);
}

size_t facts_errata_count(const facts_errata *errata)
{
    return errata->count;
}

size_t facts_errata_choose(const facts_errata *errata, const facts_case *c, fattn_rule *chosen)
{
    const facts_subject subject = { .c = c };
    size_t count = 0;
    for (size_t i = 0; i < errata->count; i++) {
        if (!errata->at[i].when || facts_predicate_holds(errata->at[i].when, &subject))
            chosen[count++] = errata->at[i].rule;
    }
    return count;
}
