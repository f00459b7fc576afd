#include "reported.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/reader.h"

/* A value as text: strings without quotes, other values unchanged. A character that cannot be
 * printed is a blank. */
static void copy(char *out, size_t capacity, facts_span value)
{
    out[0] = '\0';
    if (value.at && !facts_json_string(value, out, capacity))
        snprintf(out, capacity, "%.*s",
                 (int)(value.length < capacity ? value.length : capacity - 1), value.at);
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
}

#define MEMBERS 24

static const char *const count_keys[] = { "wrong", "not_finite", "unwritten", "overrun" };
#define COUNTS (sizeof count_keys / sizeof *count_keys)

static bool at_fault(facts_span error)
{
    char ratio[32];
    copy(ratio, sizeof ratio, facts_json_member(error, "ratio"));
    for (size_t i = 0; i < COUNTS; i++)
        if (facts_json_member(error, count_keys[i]).at)
            return true;
    return strcmp(ratio, "inf") == 0 || strtod(ratio, NULL) > 1.0;
}

static void read_errors(facts_symptom *out, facts_span errors)
{
    facts_member tensors[MEMBERS];
    size_t count, used = 0;
    if (!errors.at || !facts_scan_object(errors.at, errors.length, tensors, MEMBERS, &count))
        return;
    for (size_t i = 0; i < count && i < MEMBERS; i++) {
        const facts_member *m = &tensors[i];
        if (!at_fault(m->value) || used + m->key.length + 2 >= sizeof out->tensors)
            continue;
        if (used == 0)
            copy(out->gate, sizeof out->gate, facts_json_member(m->value, "gate"));
        used += (size_t)snprintf(out->tensors + used, sizeof out->tensors - used, "%s%.*s",
                                 used ? " " : "", (int)m->key.length, m->key.at);
    }
}

bool facts_symptom_read(facts_symptom *out, const facts_line *row, facts_verdict *verdict)
{
    *out = (facts_symptom){ .engine = -1 };
    out->verdict = *verdict = facts_verdict_parse(facts_line_get(row, "verdict"));
    if (!facts_verdict_is_finding(*verdict) && *verdict != FACTS_VERDICT_MISTRUSTED)
        return false;
    copy(out->backend, sizeof out->backend, facts_line_get(row, "backend"));
    bool numbered = strcmp(out->backend, "cudnn") == 0; /* the other backends have one engine */
    if (!numbered || !facts_json_int(facts_line_get(row, "engine"), &out->engine) ||
        out->engine < 0)
        out->engine = -1;
    facts_json_bool(facts_json_member(facts_line_get(row, "expectation"), "met"), &out->known);
    copy(out->class_word, sizeof out->class_word,
         facts_json_member(facts_line_get(row, "reason"), "class"));
    if (!out->class_word[0])
        copy(out->class_word, sizeof out->class_word, facts_line_get(row, "stage"));
    read_errors(out, facts_line_get(row, "errors"));
    return true;
}

/* "dq" of "dq dk". */
static void first_tensor(const facts_symptom *symptom, char out[FACTS_TENSORS_TEXT])
{
    size_t n = strcspn(symptom->tensors, " ");
    memcpy(out, symptom->tensors, n);
    out[n] = '\0';
}

static bool has_tensor(const char *tensors, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = tensors; (at = strstr(at, name)) != NULL; at++)
        if ((at == tensors || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

bool facts_symptom_same(const facts_symptom *wanted, const facts_symptom *other)
{
    char tensor[FACTS_TENSORS_TEXT];
    if (wanted->value)
        return wanted->value == other->value;
    first_tensor(wanted, tensor);
    return wanted->verdict == other->verdict && wanted->engine == other->engine &&
           strcmp(wanted->backend, other->backend) == 0 && (wanted->known || !other->known) &&
           (tensor[0] == '\0' || has_tensor(other->tensors, tensor));
}

const facts_symptom *facts_answer_find(const facts_answer *answer, const facts_symptom *wanted)
{
    for (size_t i = 0; i < answer->count; i++)
        if (facts_symptom_same(wanted, &answer->failing[i]))
            return &answer->failing[i];
    return NULL;
}

const char *facts_symptom_text(const facts_symptom *symptom, char out[FACTS_SYMPTOM_TEXT])
{
    char tensor[FACTS_TENSORS_TEXT], engine[40] = "", gate[24] = "";
    first_tensor(symptom, tensor);
    if (symptom->engine >= 0)
        snprintf(engine, sizeof engine, ", engine %lld", (long long)symptom->engine);
    else if (symptom->backend[0])
        snprintf(engine, sizeof engine, ", backend %s", symptom->backend);
    if (tensor[0] && symptom->gate[0])
        snprintf(gate, sizeof gate, " (%s)", symptom->gate);
    snprintf(out, FACTS_SYMPTOM_TEXT, "%s%s%s%s%s", facts_verdict_name(symptom->verdict),
             tensor[0] ? " " : "", tensor, gate, engine);
    return out;
}

#define AS_WORD(symbol, word) [FACTS_BY_##symbol] = word,
static const char *const words[FACTS_BY_COUNT] = { FACTS_BY_LIST(AS_WORD) };
#undef AS_WORD

const char *facts_by_word(facts_by by)
{
    return words[by];
}

facts_by facts_by_parse(const char *word)
{
    facts_by by = 0;
    while (by < FACTS_BY_COUNT && strcmp(words[by], word) != 0)
        by++;
    return by;
}

int facts_reported_weight(facts_verdict verdict)
{
    if (verdict == FACTS_VERDICT_COUNT)
        return -1;
    if (facts_verdict_is_finding(verdict))
        return 5;
    return verdict == FACTS_VERDICT_INCONCLUSIVE  ? 4
           : verdict == FACTS_VERDICT_MISTRUSTED  ? 3
           : facts_verdict_is_good(verdict)       ? 2
           : verdict == FACTS_VERDICT_UNSUPPORTED ? 1
                                                  : 0;
}

/* "8 8 10" becomes "8 10": configurations of one engine are not distinguished. */
static void keep_once(char *out, size_t capacity, char *list)
{
    size_t used = 0;
    out[0] = '\0';
    for (char *number; (number = strsep(&list, " ")) != NULL;) {
        char find[32], among[256];
        snprintf(find, sizeof find, " %s ", number);
        snprintf(among, sizeof among, " %s ", out);
        if (strstr(among, find) || used + strlen(number) + 2 > capacity)
            continue;
        used += (size_t)snprintf(out + used, capacity - used, "%s%s", used ? " " : "", number);
    }
}

static void read_known(facts_reported *reported, facts_span list)
{
    json_t *known = list.at ? json_loadb(list.at, list.length, 0, NULL) : NULL;
    const json_t *first = json_array_get(known, 0);
    const char *title = json_string_value(json_object_get(first, "title")),
               *id = json_string_value(json_object_get(first, "id"));
    if (title && id && json_is_true(json_object_get(first, "such_data"))) {
        const char *remedy = json_string_value(json_object_get(first, "remedy"));
        snprintf(reported->known, sizeof reported->known, "%.*s (%s)",
                 (int)strlen(title) - (*title && title[strlen(title) - 1] == '.'), title, id);
        if (remedy)
            snprintf(reported->remedy, sizeof reported->remedy, "%s", remedy);
    }
    json_decref(known);
}

static void read_forward(facts_reported *reported, facts_span object)
{
    json_t *forward = object.at ? json_loadb(object.at, object.length, 0, NULL) : NULL;
    const json_t *reason = json_object_get(forward, "reason");
    const char *text = json_string_value(json_object_get(reason, "text"));
    snprintf(reported->forward, sizeof reported->forward, "%s", text ? text : "");
    facts_plain(reported->forward);
    json_decref(forward);
}

void facts_reported_row(facts_reported *reported, const facts_line *row)
{
    char engines[512];
    facts_verdict verdict = facts_verdict_parse(facts_line_get(row, "verdict"));
    if (facts_reported_weight(verdict) <= facts_reported_weight(reported->verdict))
        return;
    *reported = FACTS_REPORTED_NOTHING;
    reported->verdict = verdict;
    if (!facts_json_int(facts_line_get(row, "engine"), &reported->engine) || reported->engine < 0)
        reported->engine = -1;
    facts_json_string(facts_line_get(row, "backend"), reported->backend, sizeof reported->backend);
    facts_row_engines(row, engines, sizeof engines);
    reported->has_knobs = facts_row_knobs(row, reported->knobs, sizeof reported->knobs);
    keep_once(reported->engines, sizeof reported->engines, engines);
    facts_row_text(row, "class", reported->class_word, sizeof reported->class_word);
    facts_row_text(row, "text", reported->text, sizeof reported->text);
    const facts_span reason = facts_line_get(row, "reason");
    if (reason.at &&
        memmem(reason.at, reason.length, "\"chain\":[{", 10)) /* of cuDNN, not of ours */
        facts_row_text(row, "meaning", reported->meaning, sizeof reported->meaning);
    read_forward(reported, facts_line_get(row, "forward"));
    facts_row_text(row, "remedy", reported->remedy, sizeof reported->remedy);
    facts_row_text(row, "rule", reported->rule, sizeof reported->rule);
    read_known(reported, facts_line_get(row, "known"));
}

bool facts_reported_answers(const facts_reported *reported)
{
    return reported->verdict != FACTS_VERDICT_COUNT &&
           reported->verdict != FACTS_VERDICT_INCONCLUSIVE &&
           reported->verdict != FACTS_VERDICT_MISTRUSTED;
}

/* Other backends than cuDNN have only a name. */
static bool is_of_cudnn(const facts_reported *reported)
{
    return !reported->backend[0] || strcmp(reported->backend, "cudnn") == 0;
}

bool facts_reported_has(const facts_reported *reported, facts_by by)
{
    return by != FACTS_BY_KNOBS || reported->has_knobs ||
           !facts_verdict_is_good(reported->verdict) || !is_of_cudnn(reported);
}

const char *facts_reported_value(const facts_reported *reported, facts_by by,
                                 char out[FACTS_REPORTED_VALUE])
{
    const char *word = facts_verdict_name(reported->verdict);
    bool served = reported->verdict != FACTS_VERDICT_UNSUPPORTED;
    if (by == FACTS_BY_CLASS && reported->class_word[0])
        snprintf(out, FACTS_REPORTED_VALUE, "%s %s", word, reported->class_word);
    else if ((by == FACTS_BY_ENGINE || by == FACTS_BY_ENGINES || by == FACTS_BY_KNOBS) && served &&
             !is_of_cudnn(reported))
        snprintf(out, FACTS_REPORTED_VALUE, "%s", reported->backend);
    else if (by == FACTS_BY_ENGINE && served && reported->engine >= 0)
        snprintf(out, FACTS_REPORTED_VALUE, "engine %lld", (long long)reported->engine);
    else if (by == FACTS_BY_KNOBS && served && reported->has_knobs)
        snprintf(out, FACTS_REPORTED_VALUE, "engine %lld %s", (long long)reported->engine,
                 reported->knobs[0] ? reported->knobs : "without knobs");
    else if (by == FACTS_BY_ENGINES && served && reported->engines[0])
        snprintf(out, FACTS_REPORTED_VALUE, "engines %s", reported->engines);
    else if (by == FACTS_BY_REASON && !facts_verdict_is_good(reported->verdict) &&
             reported->text[0])
        snprintf(out, FACTS_REPORTED_VALUE, "%s: %s", word, reported->text);
    else
        snprintf(out, FACTS_REPORTED_VALUE, "%s", word);
    return out;
}
