/* Rules out of JSON, in our form and in cudnn-frontend's. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "rules.h"

enum { MOST_RULES = 4096, MOST_BYTES = 4 * 1024 * 1024, MOST_KNOB_TYPE = 256 };

struct fattn_rules {
    fattn__rule_list list;
};

/* One rule while it is read. Its strings are the document's. */
typedef struct draft {
    fattn_rule rule;
    fattn_knob knobs[FATTN_MAX_KNOBS];
    const char *wrong; /* NULL: nothing is */
    const char *about;
    bool left_out;
} draft;

static bool wrong(draft *d, const char *about, const char *what)
{
    d->wrong = d->wrong != NULL ? d->wrong : what;
    d->about = d->about != NULL ? d->about : about;
    return false;
}

/* ---- values -------------------------------------------------------------------------------------------------------------------
 */

static bool read_text(draft *d, const char *key, const json_t *value, const char **out)
{
    *out = json_string_value(value);
    return *out != NULL || wrong(d, key, "want a text");
}

/* All of `text` as a whole number of at most nine digits. */
static bool whole_number(const char *text, int64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9' || strlen(text) > 9)
        return false;
    *out = strtoll(text, &end, 10);
    return *end == '\0';
}

/* A number, or one in quotes: the frontend's documentation says the one, its source the other. */
static bool read_number(draft *d, const char *key, const json_t *value, int64_t *out)
{
    const char *text = json_string_value(value);
    if (text != NULL)
        return whole_number(text, out) || wrong(d, key, "want a number");
    *out = json_integer_value(value);
    return (json_is_integer(value) && *out >= -1 && *out <= INT32_MAX) || wrong(d, key, "want a number");
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
    const char *bare = strncmp(word, prefix, sizeof prefix - 1) == 0 ? word + sizeof prefix - 1 : word;
    for (*out = 0; *out < MOST_KNOB_TYPE; ++*out) {
        if (strcmp(fattn_knob_name(*out), bare) == 0)
            return true;
    }
    return false;
}

static bool add_knob(draft *d, const char *name, size_t length, int64_t value)
{
    fattn_rule *rule = &d->rule;
    if (rule->knob_count == FATTN_MAX_KNOBS)
        return wrong(d, "knobs", "too many");
    fattn_knob *knob = &d->knobs[rule->knob_count];
    if (!knob_type(name, length, &knob->type))
        return wrong(d, "knobs", "a name that is no knob: want k40 or TILE_M");
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
        int64_t number;
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
        return wrong(d, "knobs", "want a list or an object");
    json_array_foreach(value, i, each)
    {
        const char *text = json_string_value(each), *equal = text != NULL ? strchr(text, '=') : NULL;
        int64_t number;
        if (equal == NULL || !whole_number(equal + 1, &number))
            return wrong(d, "knob", "want \"k40=2\"");
        if (!add_knob(d, text, (size_t)(equal - text), number))
            return false;
    }
    return true;
}

/* ---- our form -----------------------------------------------------------------------------------------------------------------
 */

/* 9.14.0 as cudnnGetVersion() says it; 9.14 is the first or the last of its patches. */
static bool version_of(const char *text, size_t length, bool last, int32_t *out)
{
    int64_t part[3] = { 0, 0, last ? 99 : 0 };
    char word[16];
    int count = 0;
    for (size_t at = 0; at <= length && count < 3; count++) {
        const char *dot = memchr(text + at, '.', length - at);
        const size_t letters = dot != NULL ? (size_t)(dot - text) - at : length - at;
        if (letters >= 3)
            return false;
        memcpy(word, text + at, letters);
        word[letters] = '\0';
        if (!whole_number(word, &part[count]))
            return false;
        at += letters + 1;
        if (at > length) {
            *out = (int32_t)(part[0] * 10000 + part[1] * 100 + part[2]);
            return count >= 1 && part[0] >= 9;
        }
    }
    return false;
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
static bool read_range(draft *d, const char *key, const json_t *value, bool (*of)(const char *, size_t, bool, int32_t *),
                       int32_t *from, int32_t *to)
{
    const char *text;
    if (json_is_integer(value) && of == sm_of) {
        *from = *to = (int32_t)json_integer_value(value);
        return *from > 0 || wrong(d, key, "want a range: \"90\", \"90..100\", \"..90\"");
    }
    if (!read_text(d, key, value, &text))
        return false;
    const char *dots = strstr(text, "..");
    const size_t head = dots != NULL ? (size_t)(dots - text) : strlen(text);
    const char *tail = dots != NULL ? dots + 2 : text;
    const bool good = (head == 0 || of(text, head, false, from)) && (*tail == '\0' || of(tail, strlen(tail), true, to));
    return (good && (head > 0 || *tail != '\0')) ||
           wrong(d, key, "want a range: \"9.14.0..9.25.1\", \"9.14.0..\", \"..9.25.1\", \"9.14.0\"");
}

static bool read_action(draft *d, const char *key, const json_t *value, fattn_action action)
{
#define AS_WORD(symbol, value, word) word,
    static const char *const backends[] = { FATTN_BACKEND_LIST(AS_WORD) };
#undef AS_WORD
    const char *text;
    d->rule.action = (int32_t)action;
    return read_text(d, key, value, &text) &&
           (word_of(text, backends, FATTN_BACKEND_COUNT, &d->rule.backend) || wrong(d, key, "want cudnn, math or cpu"));
}

static bool read_pass(draft *d, const json_t *value)
{
#define AS_WORD(symbol, value, word) word,
    static const char *const passes[] = { FATTN_PASS_LIST(AS_WORD) };
#undef AS_WORD
    const char *text;
    return read_text(d, "pass", value, &text) && (word_of(text, passes, 2, &d->rule.pass) || wrong(d, "pass", "want fwd or bwd"));
}

static bool read_key(draft *d, const char *key, json_t *value, int *actions)
{
    fattn_rule *rule = &d->rule;
    const struct {
        const char *key;
        const char **to;
    } texts[] = { { "name", &rule->name },
                  { "why", &rule->why },
                  { "link", &rule->link },
                  { "when", &rule->when },
                  { "remedy", &rule->remedy } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(key, texts[i].key) == 0)
            return read_text(d, key, value, texts[i].to);
    }
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
        return json_is_boolean(value) || wrong(d, key, "want true or false");
    }
    return wrong(d, key, "is not known");
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
    if (d->rule.name == NULL)
        return wrong(d, "name", "is missing");
    return actions == 1 || wrong(d, "deny, pin", "want one of them");
}

/* ---- cudnn-frontend's form ----------------------------------------------------------------------------------------------------
 */

/* Its operations are the tags of whole graphs, "Matmul_…_Matmul": attention's forward multiplies twice, its backward more often. */
static bool read_operation(draft *d, const json_t *value)
{
    const char *text;
    int products = 0;
    if (!read_text(d, "operation", value, &text))
        return false;
    for (const char *at = strstr(text, "Matmul"); at != NULL; at = strstr(at + 1, "Matmul"))
        products++;
    d->left_out = products < 2;
    d->rule.pass = products == 2 ? FATTN_FORWARD : FATTN_BACKWARD;
    return true;
}

/* The first version that is right again: not of our range any more. */
static bool read_end(draft *d, const json_t *value)
{
    int64_t end;
    if (!read_number(d, "cudnn_version_end", value, &end))
        return false;
    if (end == 0)
        return wrong(d, "cudnn_version_end", "0 leaves no version");
    d->rule.cudnn_to = end < 0 ? 0 : (int32_t)end - 1;
    return true;
}

static bool read_frontends(draft *d, json_t *object)
{
    json_t *knob = json_object_get(object, "knob"), *start = json_object_get(object, "cudnn_version_start"),
           *end = json_object_get(object, "cudnn_version_end"), *name = json_object_get(object, "rule_id");
    int64_t from = 0;
    d->rule.backend = FATTN_BACKEND_CUDNN;
    d->rule.name = "(no rule_id)";
    if ((name != NULL && !read_text(d, "rule_id", name, &d->rule.name)) ||
        !read_operation(d, json_object_get(object, "operation")) ||
        !read_number(d, "engine", json_object_get(object, "engine"), &d->rule.engine) || (knob != NULL && !read_knobs(d, knob)) ||
        (start != NULL && !read_number(d, "cudnn_version_start", start, &from)) || (end != NULL && !read_end(d, end)))
        return false;
    if (d->rule.engine < 0)
        return wrong(d, "engine", "want an engine's number");
    d->rule.cudnn_from = from < 0 ? 0 : (int32_t)from;
    d->rule.why = "an errata file blocks this engine";
    return true;
}

/* ---- the document --------------------------------------------------------------------------------------------------------------
 */

static fattn_status read_rules(fattn_rules *out, const json_t *list)
{
    const size_t count = json_array_size(list);
    fattn_status st = FATTN_OK;
    draft *drafts = calloc(count + 1, sizeof *drafts);
    fattn_rule *rules = calloc(count + 1, sizeof *rules);
    size_t kept = 0;
    if (drafts == NULL || rules == NULL)
        st = fattn__fail(FATTN_NO_MEMORY, "no memory for %zu rules", count);
    for (size_t i = 0; i < count && st == FATTN_OK; i++) {
        json_t *object = json_array_get(list, i);
        draft *d = &drafts[i];
        d->rule = (fattn_rule)FATTN_RULE_INIT;
        d->rule.knobs = d->knobs;
        const bool good = !json_is_object(object)                        ? wrong(d, "a rule", "want an object")
                          : json_object_get(object, "operation") != NULL ? read_frontends(d, object)
                                                                         : read_ours(d, object);
        if (!good)
            st = fattn__fail(FATTN_BAD_PROBLEM, "rules: rule %zu (%s): %.40s: %s", i,
                             d->rule.name != NULL ? d->rule.name : "no name", d->about, d->wrong);
        else if (!d->left_out)
            rules[kept++] = d->rule;
    }
    if (st == FATTN_OK)
        st = fattn__rules_copy(&out->list, rules, kept);
    free(drafts);
    free(rules);
    return st;
}

fattn_status fattn_rules_read(fattn_rules **out, const char *json)
{
    if (out == NULL || json == NULL)
        return fattn__fail(FATTN_BAD_PROBLEM, "%s: NULL is not allowed", out == NULL ? "out" : "json");
    *out = NULL;
    json_error_t error;
    if (strlen(json) > MOST_BYTES)
        return fattn__fail(FATTN_BAD_PROBLEM, "rules: longer than %d bytes", MOST_BYTES);
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return fattn__fail(FATTN_BAD_PROBLEM, "rules: line %d, column %d: %s", error.line, error.column, error.text);
    const json_t *version = json_object_get(root, "version"), *list = json_object_get(root, "rules");
    fattn_rules *rules = calloc(1, sizeof *rules);
    fattn_status st = FATTN_OK;
    if (rules == NULL)
        st = fattn__fail(FATTN_NO_MEMORY, "no memory for rules");
    else if (!json_is_integer(version) || json_integer_value(version) != 1)
        st = fattn__fail(FATTN_BAD_PROBLEM, "rules: \"version\" is not 1");
    else if (!json_is_array(list) || json_array_size(list) > MOST_RULES)
        st = fattn__fail(FATTN_BAD_PROBLEM, "rules: \"rules\" is not a list of at most %d", MOST_RULES);
    else
        st = read_rules(rules, list);
    json_decref(root);
    if (st == FATTN_OK)
        *out = rules;
    else
        free(rules);
    return st;
}

size_t fattn_rules_count(const fattn_rules *rules)
{
    return rules->list.count;
}

const fattn_rule *fattn_rules_at(const fattn_rules *rules, size_t i)
{
    return i < rules->list.count ? &rules->list.at[i] : NULL;
}

void fattn_rules_destroy(fattn_rules *rules)
{
    if (rules == NULL)
        return;
    fattn__rules_free(&rules->list);
    free(rules);
}
