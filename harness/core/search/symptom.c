#include "symptom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
