#include "row.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

/* JSON has no NaN and no infinity. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value)
                           : json_string(isnan(value) ? "nan"
                                         : value > 0  ? "inf"
                                                      : "-inf");
}

static json_t *member(json_t *row, const char *key)
{
    json_t *object = json_object_get(row, key);
    if (!object) {
        object = json_object();
        set(row, key, object);
    }
    return object;
}

static const char *mode_word(int32_t mode)
{
#define AS_WORD(symbol, value, word) [value] = word,
    static const char *const words[] = { FATTN_MODE_LIST(AS_WORD) };
    return mode >= 0 && (size_t)mode < sizeof words / sizeof *words ? words[mode] : "?";
}

static const char *backend_word(fattn_backend backend)
{
    static const char *const words[] = { FATTN_BACKEND_LIST(AS_WORD) };
#undef AS_WORD
    return (size_t)backend < sizeof words / sizeof *words ? words[backend] : "?";
}

static json_t *notes_of(const fattn_engine *engine)
{
    json_t *notes = json_array();
    for (int32_t bit = 0; bit < 32; bit++) {
        if (engine->numerical_notes >> bit & 1)
            json_array_append_new(notes, json_string(fattn_numerical_note_name(bit)));
        if (engine->behavior_notes >> bit & 1)
            json_array_append_new(notes, json_string(fattn_behavior_note_name(bit)));
    }
    return notes;
}

static json_t *knobs_json(const fattn_knob *knob, int32_t count)
{
    json_t *knobs = json_object();
    for (int32_t i = 0; i < count && i < FATTN_MAX_KNOBS; i++) {
        char number_name[32];
        const char *name = fattn_knob_name(knob[i].type);
        if (strcmp(name, "?") == 0) {
            snprintf(number_name, sizeof number_name, "KNOB_%d", knob[i].type);
            name = number_name;
        }
        set(knobs, name, json_integer(knob[i].value));
    }
    return knobs;
}

void facts_row_asked(json_t *row, const facts_problem *p)
{
    static const char *const words[] = {
#define AS_IMPL(symbol, value, word) [value] = word,
        FATTN_IMPL_LIST(AS_IMPL)
#undef AS_IMPL
    };
    if (p->ask.impl >= 0 && (size_t)p->ask.impl < sizeof words / sizeof *words)
        facts_put_text(row, "impl", words[p->ask.impl]);
    if (p->knob_count > 0)
        set(row, "pins",
            json_pack("{s:I,s:o}", "engine", (json_int_t)p->engine, "knobs",
                      knobs_json(p->knob, p->knob_count)));
}

static json_t *engine_json(const fattn_engine *engine)
{
    json_t *knobs = knobs_json(engine->knobs, engine->knob_count);
    json_t *out = json_pack("{s:s,s:I,s:i,s:o,s:o}", "mode", mode_word(engine->mode), "index",
                            (json_int_t)engine->index, "config", engine->config, "knobs", knobs,
                            "notes", notes_of(engine));
    if (engine->workspace_bytes >= 0)
        set(out, "workspace_bytes", json_integer(engine->workspace_bytes));
    if (engine->removed)
        set(out, "removed", json_true());
    return out;
}

void facts_row_engine(json_t *row, const fattn_engine *engine)
{
    set(row, "engine", json_integer(engine->index));
    if (!json_object_get(row, "pins")) /* a pin is not in the list */
        set(row, "config", json_integer(engine->config));
    if (engine->workspace_bytes >= 0)
        set(row, "workspace_bytes", json_integer(engine->workspace_bytes));
}

static void decision_reason(json_t *row, const fattn_decision *decision)
{
    facts_put_reason(row, "class",
                     fattn_status_name((fattn_status)fattn_decision_reason(decision)));
    facts_put_reason(row, "status", fattn_decision_status(decision));
    facts_put_reason(row, "text", fattn_decision_text(decision));
    facts_put_reason(row, "remedy", fattn_decision_remedy(decision));
    json_t *chain = json_array();
    for (size_t i = 0; i < fattn_decision_refusal_count(decision); i++) {
        const fattn_refusal *refusal = fattn_decision_refusal(decision, i);
        json_t *link = json_object();
        if (refusal->engine >= 0)
            set(link, "engine", json_integer(refusal->engine));
        facts_put_text(link, "status", refusal->status);
        facts_put_text(link, "text", refusal->text);
        facts_put_text(link, "condition", refusal->condition);
        json_array_append_new(chain, link);
    }
    set(member(row, "reason"), "chain", chain);
}

void facts_row_backend(json_t *row, fattn_backend backend)
{
    set(row, "backend", json_string(backend_word(backend)));
}

static json_t *answer_json(const fattn_answer *answer)
{
    json_t *out = json_pack("{s:s,s:b}", "backend", backend_word((fattn_backend)answer->backend),
                            "supported", answer->reason == FATTN_REASON_NONE);
    if (answer->reason != FATTN_REASON_NONE)
        facts_put_text(out, "class", fattn_status_name((fattn_status)answer->reason));
    facts_put_text(out, "status", answer->status);
    facts_put_text(out, "text", answer->text);
    facts_put_text(out, "remedy", answer->remedy);
    facts_put_text(out, "rule", answer->rule);
    return out;
}

/* The answer of each backend if several were asked, and the rule that decided. */
static void set_answers(json_t *row, const fattn_decision *decision)
{
    size_t count = fattn_decision_answer_count(decision);
    const char *rule = "";
    json_t *answers = json_array();
    for (size_t i = 0; i < count; i++) {
        const fattn_answer *answer = fattn_decision_answer(decision, i);
        json_array_append_new(answers, answer_json(answer));
        if (rule[0] == '\0' && answer->rule)
            rule = answer->rule;
    }
    if (count > 1)
        set(row, "answers", answers);
    else
        json_decref(answers);
    if (rule[0] != '\0')
        facts_put_reason(row, "rule", rule);
}

void facts_row_decision(json_t *row, const fattn_decision *decision)
{
    bool supported = fattn_decision_supported(decision);
    facts_row_backend(row, fattn_decision_backend(decision));
    set(row, "supported", json_boolean(supported));
    json_t *engines = json_array();
    for (fattn_mode mode = FATTN_MODE_A; mode <= FATTN_MODE_INSTANT; mode++)
        for (size_t i = 0; i < fattn_decision_engine_count(decision, mode); i++)
            json_array_append_new(engines, engine_json(fattn_decision_engine(decision, mode, i)));
    set(row, "engines", engines);
    if (!supported)
        decision_reason(row, decision);
    set_answers(row, decision);
}

/* The ratio of each gate that gave a result. */
static json_t *gates_json(const facts_judgement *j)
{
    json_t *gates = json_object();
    for (int gate = FACTS_GATE_T1; gate <= FACTS_GATE_TL; gate++)
        if (j->gates[gate] > 0)
            set(gates, facts_gate_words[gate], number(j->gates[gate]));
    return gates;
}

void facts_row_judgement(json_t *row, const char *tensor, const facts_judgement *j, uint64_t bits)
{
    json_t *error =
        json_pack("{s:o,s:s,s:o,s:[I,I,I,I],s:o,s:o,s:o,s:I}", "ratio", number(j->ratio), "gate",
                  facts_gate_words[j->gate], "rms", number(j->rms), "worst_index",
                  (json_int_t)j->worst[0], (json_int_t)j->worst[1], (json_int_t)j->worst[2],
                  (json_int_t)j->worst[3], "got", number(j->got), "want", number(j->want), "bound",
                  number(j->bound), "checked", (json_int_t)j->checked);
    const struct {
        const char *key;
        int64_t count;
    } counts[] = { { "wrong", j->wrong },
                   { "not_finite", j->not_finite },
                   { "unwritten", j->unwritten },
                   { "overrun", j->overrun } };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].count)
            set(error, counts[i].key, json_integer(counts[i].count));
    if (bits) {
        char text[17];
        snprintf(text, sizeof text, "%016" PRIx64, bits);
        facts_put_text(error, "bits", text);
    }
    set(error, "gates", gates_json(j));
    set(member(row, "errors"), tensor, error);
    if (j->padded_poison + j->padded_zero + j->padded_other)
        set(member(row, "padded"), tensor,
            json_pack("{s:I,s:I,s:I}", "poison", (json_int_t)j->padded_poison, "zero",
                      (json_int_t)j->padded_zero, "other", (json_int_t)j->padded_other));
}
