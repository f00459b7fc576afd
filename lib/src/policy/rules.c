#include "rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/sized.h"
#include "liars/lies.h"

/* The strings of a rule. X(field) */
#define STRING_FIELDS(X) X(name) X(why) X(link) X(remedy) X(when)

static const char *name_of(const fattn_rule *rule)
{
    return rule->name != NULL ? rule->name : "(no name)";
}

/* ---- asked
 * -----------------------------------------------------------------------------------------------------------------
 */

static bool in_range(int32_t value, int32_t from, int32_t to)
{
    return (from == 0 || value >= from) && (to == 0 || value <= to);
}

bool fattn__rule_holds(const fattn_rule *rule, const fattn_problem *resolved, int32_t cudnn_version,
                       int32_t sm)
{
    const int32_t to =
        rule->cudnn_to == 0 && FATTN__LIE(GUARD_END) ? rule->cudnn_from : rule->cudnn_to;
    return in_range(cudnn_version, rule->cudnn_from, to) &&
           in_range(sm, rule->sm_from, rule->sm_to) &&
           (rule->pass == FATTN_ANY || rule->pass == resolved->pass) &&
           (rule->holds == NULL || rule->holds(rule->when, resolved));
}

bool fattn__rule_means(const fattn_rule *rule, const fattn_engine *engine)
{
    if (rule->engine != FATTN_ANY && rule->engine != engine->index)
        return false;
    for (int32_t i = 0; i < rule->knob_count; i++) {
        bool found = false;
        for (int32_t k = 0; k < engine->knob_count; k++)
            found = found || (engine->knobs[k].type == rule->knobs[i].type &&
                              engine->knobs[k].value == rule->knobs[i].value);
        if (!found)
            return false;
    }
    return true;
}

void fattn__rule_text(char *out, size_t capacity, const fattn_rule *rule,
                      const fattn_problem *resolved)
{
    char sentence[512] = "";
    if (rule->say != NULL)
        rule->say(sentence, sizeof sentence, rule->why, resolved);
    snprintf(out, capacity, "rule %s: %s%s%s%s", rule->name,
             rule->say != NULL ? sentence : rule->why, rule->link != NULL ? " (" : "",
             rule->link != NULL ? rule->link : "", rule->link != NULL ? ")" : "");
}

bool fattn_rule_holds(const fattn_rule *rule, const fattn_problem *problem, int32_t cudnn_version,
                      int32_t sm)
{
    fattn_problem resolved;
    fattn__rule_list own;
    if (rule == NULL || fattn__rules_copy(&own, rule, 1) != FATTN_OK)
        return false;
    const bool holds = fattn_problem_resolve(problem, &resolved) == FATTN_OK &&
                       fattn__rule_holds(own.at, &resolved, cudnn_version, sm);
    fattn__rules_free(&own);
    return holds;
}

/* ---- kept
 * ------------------------------------------------------------------------------------------------------------------
 */

static fattn_status check(const fattn_rule *rule, size_t place)
{
    const char *wrong = NULL;
    if (rule->action != FATTN_DENY && rule->action != FATTN_PIN)
        wrong = "action: want 0 (deny) or 1 (pin)";
    else if (rule->backend < 0 || rule->backend >= FATTN_BACKEND_COUNT)
        wrong = "backend: want 0 (cudnn), 1 (math) or 2 (cpu)";
    else if (rule->pass != FATTN_ANY && rule->pass != FATTN_FORWARD && rule->pass != FATTN_BACKWARD)
        wrong = "pass: want FATTN_ANY, 0 (fwd) or 1 (bwd)";
    else if (rule->engine < FATTN_ANY)
        wrong = "engine: want FATTN_ANY or an engine's number";
    else if (rule->knob_count < 0 || rule->knob_count > FATTN_MAX_KNOBS ||
             (rule->knob_count > 0 && rule->knobs == NULL))
        wrong = "knobs: want at most FATTN_MAX_KNOBS of them, and their address";
    else if (rule->cudnn_from < 0 || rule->cudnn_to < 0 ||
             (rule->cudnn_to != 0 && rule->cudnn_to < rule->cudnn_from))
        wrong = "cudnn_from, cudnn_to: not a range";
    else if (rule->sm_from < 0 || rule->sm_to < 0 ||
             (rule->sm_to != 0 && rule->sm_to < rule->sm_from))
        wrong = "sm_from, sm_to: not a range";
    else if (rule->reserved != 0)
        wrong = "reserved: want 0";
    else if (rule->unasked != 0 && (rule->unasked != 1 || rule->action != FATTN_DENY ||
                                    rule->engine != FATTN_ANY || rule->knob_count != 0))
        wrong = "unasked: want 0, or 1 in a deny of a whole backend";
    else if (rule->holds == NULL && rule->when != NULL)
        wrong =
            "when: a rule with a condition in words needs the function `holds` that asks for it";
    if (wrong != NULL)
        return fattn__fail(FATTN_BAD_PROBLEM, "rule %zu (%s): %s", place, name_of(rule), wrong);
    return FATTN_OK;
}

/* Completes a rule of an older struct. `at` is the position of the rule in an array of its own
 * size. */
static fattn_status widen(fattn_rule *out, const fattn_rule *rules, size_t place)
{
    size_t size;
    memcpy(&size, rules, sizeof size);
    *out = (fattn_rule)FATTN_RULE_INIT;
    const char *at = (const char *)rules + place * size;
    if (size < offsetof(fattn_rule, unasked) || size > FATTN__STRUCT_SIZE_LIMIT ||
        memcmp(at, &size, sizeof size) != 0 || !fattn__read_sized(out, sizeof *out, at))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "rule %zu: struct_size is wrong, or an unknown field is set; start from "
                           "FATTN_RULE_INIT",
                           place);
    return check(out, place);
}

static size_t text_bytes(const fattn_rule *rule)
{
    size_t bytes = 0;
#define AS_BYTES(field) bytes += rule->field != NULL ? strlen(rule->field) + 1 : 0;
    STRING_FIELDS(AS_BYTES)
#undef AS_BYTES
    return bytes;
}

static char *move_text(const char **field, char *to)
{
    if (*field == NULL)
        return to;
    const size_t bytes = strlen(*field) + 1;
    memcpy(to, *field, bytes);
    *field = to;
    return to + bytes;
}

fattn_status fattn__rules_copy(fattn__rule_list *out, const fattn_rule *rules, size_t count)
{
    size_t bytes = 0, knobs = 0;
    *out = (fattn__rule_list){ 0 };
    for (size_t i = 0; i < count; i++) {
        fattn_rule rule;
        TRY(widen(&rule, rules, i));
        bytes += text_bytes(&rule);
        knobs += (size_t)rule.knob_count;
    }
    if (count == 0)
        return FATTN_OK;
    out->at = malloc(count * sizeof *out->at + knobs * sizeof(fattn_knob) + bytes);
    if (out->at == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for %zu rules", count);
    fattn_knob *knob = (fattn_knob *)(out->at + count);
    char *text = (char *)(knob + knobs);
    for (size_t i = 0; i < count; i++) {
        fattn_rule *rule = &out->at[i];
        widen(rule, rules, i);
        if (rule->knob_count > 0)
            memcpy(knob, rule->knobs, (size_t)rule->knob_count * sizeof *knob);
        rule->knobs = knob;
        knob += rule->knob_count;
#define AS_MOVE(field) text = move_text(&rule->field, text);
        STRING_FIELDS(AS_MOVE)
#undef AS_MOVE
        rule->name = name_of(rule);
        rule->why = rule->why != NULL ? rule->why : "refused by this rule";
    }
    out->count = count;
    return FATTN_OK;
}

void fattn__rules_free(fattn__rule_list *list)
{
    free(list->at);
    *list = (fattn__rule_list){ 0 };
}
