#include "row.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"
#include "numbers/check/judge_keep.h"
#include "numbers/expect/expectation.h"
#include "numbers/fill/score_inputs.h"

#define AS_WORD(symbol, value, word) [value] = word,
static const char *const dtype_words[] = { "", FATTN_DTYPE_LIST(AS_WORD)[FATTN_BOOL] = "bool" };
static const char *const pass_words[] = { FATTN_PASS_LIST(AS_WORD) };
#undef AS_WORD

static void put_integer(json_t *out, const char *key, int64_t value)
{
    json_object_set_new(out, key, json_integer(value));
}

static void put_text(json_t *out, const char *key, const char *value)
{
    json_object_set_new(out, key, json_string(value));
}

static json_t *four(const int64_t at[4])
{
    return json_pack("[I, I, I, I]", (json_int_t)at[0], (json_int_t)at[1], (json_int_t)at[2],
                     (json_int_t)at[3]);
}

static json_t *bound(bool there, int64_t value)
{
    return there ? json_integer(value) : json_null();
}

static json_t *tensor_json(const facts_problem *p, facts_tensor_id id)
{
    static const char *const packings[] = { "", "q", "kv" };
    const facts_tensor *t = &p->tensor[id];
    json_t *out = json_object();
    put_text(out, "dtype", dtype_words[t->dtype]);
    json_object_set_new(out, "dim", four(t->dim));
    json_object_set_new(out, "stride", four(t->stride));
    put_integer(out, "first", t->first);
    put_integer(out, "elements", t->elements);
    put_integer(out, "skew_bytes", t->skew_bytes);
    put_text(out, "packed", packings[t->packed]);
    put_integer(out, "tokens", t->tokens);
    put_integer(out, "page", t->page);
    put_integer(out, "pages", t->pages);
    put_text(out, "storage_of",
             facts_tensor_word(t->shares ? (facts_tensor_id)(t->shares - 1) : id));
    json_object_set_new(out, "output", json_boolean(facts_tensor_is_output(p, id)));
    return out;
}

static void put_tensors(json_t *out, const facts_problem *p)
{
    json_t *tensors = json_object(), *arrays = json_object();
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (p->tensor[id].present)
            json_object_set_new(tensors, facts_tensor_word(id), tensor_json(p, id));
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (p->array[id].count > 0)
            json_object_set_new(arrays, facts_array_words[id],
                                json_pack("{s:I, s:b}", "count", (json_int_t)p->array[id].count,
                                          "output", p->array[id].output));
    json_object_set_new(out, "tensors", tensors);
    json_object_set_new(out, "arrays", arrays);
}

static void put_extents(json_t *out, const fattn_problem *ask)
{
    put_integer(out, "batch", ask->batch);
    put_integer(out, "heads_q", ask->heads_q);
    put_integer(out, "heads_k", ask->heads_k);
    put_integer(out, "heads_v", ask->heads_v);
    put_integer(out, "seq_q", ask->seq_q);
    put_integer(out, "seq_kv", ask->seq_kv);
    put_integer(out, "dim_qk", ask->dim_qk);
    put_integer(out, "dim_v", ask->dim_v);
}

static void put_masks(json_t *out, const fattn_problem *ask)
{
    json_object_set_new(out, "window_left", bound(ask->has_left != 0, ask->window_left));
    json_object_set_new(out, "window_right", bound(ask->has_right != 0, ask->window_right));
    put_text(out, "align", ask->align == FATTN_BOTTOM_RIGHT ? "br" : "tl");
    put_integer(out, "padding", ask->padding);
    json_object_set_new(out, "cumulative_q",
                        json_boolean((ask->cumulative & FATTN_CUMULATIVE_Q) != 0));
    json_object_set_new(out, "cumulative_kv",
                        json_boolean((ask->cumulative & FATTN_CUMULATIVE_KV) != 0));
    put_integer(out, "ragged_tokens", ask->ragged_tokens);
    put_integer(out, "table_k", ask->table_k);
    put_integer(out, "table_v", ask->table_v);
    put_integer(out, "packed_table", ask->packed_table);
    put_integer(out, "total_q", ask->total_q);
    put_integer(out, "total_kv", ask->total_kv);
}

/* The name of a modification, without the letters that stand for its parameters. */
static json_t *mod_word(facts_mod mod)
{
#define AS_WORD(symbol, word) word,
    static const char *const words[] = { FACTS_MOD_LIST(AS_WORD) };
#undef AS_WORD
    return json_stringn(words[mod], strcspn(words[mod], ":"));
}

/* An absent bound of a window is null. */
static json_t *parameter(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void put_scores(json_t *out, const facts_problem *p)
{
    const fattn_problem *ask = &p->ask;
    json_object_set_new(out, "scale", json_real(facts_oracle_scale(p)));
    json_object_set_new(out, "mod", mod_word(p->mod));
    json_object_set_new(
        out, "mod_parameters",
        json_pack("[o, o]", parameter(p->mod_parameter[0]), parameter(p->mod_parameter[1])));
    put_integer(out, "alibi", ask->alibi);
    json_object_set_new(out, "usual_slopes", json_boolean(ask->alibi && !p->given_slopes));
    put_integer(out, "sink", ask->sink);
    put_integer(out, "block_mask", ask->block_mask);
    put_integer(out, "rope_dim", ask->rope ? ask->rope_dim : 0);
    json_object_set_new(out, "dropout", json_real(p->drop));
    json_object_set_new(out, "keep_scale", json_real(facts_keep_scale_of(p)));
    json_object_set_new(out, "stats_log2",
                        json_boolean((ask->outputs & FATTN_WANT_STATS_LOG2) != 0));
}

static void put_call(json_t *out, const facts_problem *p)
{
#define AS_WORD(symbol, word) word,
    static const char *const ways[] = { FACTS_EXEC_LIST(AS_WORD) }, *const checks[] = {
        FACTS_CHECK_LIST(AS_WORD)
    };
#undef AS_WORD
    put_text(out, "exec", ways[p->exec]);
    put_text(out, "check", checks[p->check]);
    put_integer(out, "repeat", p->repeat);
    put_integer(out, "deterministic", p->ask.deterministic);
}

json_t *facts_problem_json(const facts_problem *p, const char *text)
{
    json_t *out = json_object();
    put_text(out, "case", text);
    put_text(out, "pass", pass_words[p->ask.pass]);
    put_text(out, "dtype", dtype_words[p->ask.dtype]);
    put_text(out, "do_dtype", dtype_words[p->ask.do_dtype]);
    put_extents(out, &p->ask);
    put_masks(out, &p->ask);
    put_scores(out, p);
    put_call(out, p);
    put_tensors(out, p);
    return out;
}

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

/* impl (what the case asks for) and pins{engine,knobs{}} (of a case that names them). */
static void facts_row_asked(json_t *row, const facts_problem *p)
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

/* engine, config, and workspace_bytes as cuDNN states it. */
static void facts_row_engine(json_t *row, const fattn_engine *engine)
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

/* The backend that really answered. */
static void facts_row_backend(json_t *row, fattn_backend backend)
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

/* errors.<tensor>, and padded.<tensor> if there are padded rows. `bits`: hash of the answer's
 * bytes; 0: none. */
static void facts_row_judgement(json_t *row, const char *tensor, const facts_judgement *j,
                                uint64_t bits)
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

/* Adds dropout{asked,kept,of,quantised,repeat{what,pairs,agree,chance,ratio}}: how many of the
 * scores that a row may see were kept, and the comparison of an engine's bits that is furthest from
 * chance. Adds nothing without dropout. */
static void facts_row_dropout(json_t *row, const facts_problem *problem, const facts_kept *keep)
{
    if (!keep->here || keep->of == 0)
        return;
    json_t *dropout = json_pack("{s:f,s:I,s:I}", "asked", problem->drop, "kept",
                                (json_int_t)keep->kept, "of", (json_int_t)keep->of);
    if (problem->ask.dropout > 0)
        json_object_set_new(
            dropout, "quantised",
            json_string(
                facts_rate_words[facts_rate_of(problem->ask.dropout, keep->kept, keep->of)]));
    if (keep->repeat.pairs > 0)
        json_object_set_new(dropout, "repeat",
                            json_pack("{s:s,s:I,s:f,s:f,s:f}", "what", keep->repeat.what, "pairs",
                                      (json_int_t)keep->repeat.pairs, "agree", keep->repeat.agree,
                                      "chance", keep->repeat.chance, "ratio", keep->repeat.ratio));
    json_object_set_new(row, "dropout", dropout);
}

void facts_row_check(json_t *row, const facts_check_report *report)
{
    const facts_held *held = &report->held;
    if (!report->done)
        return;
    json_t *check =
        json_pack("{s:i,s:I,s:s,s:s}", "runs", report->runs, "compared", (json_int_t)held->compared,
                  "law", held->law, "tensor", facts_tensor_word(held->id));
    json_object_set_new(check, "ratio",
                        isfinite(held->ratio) ? json_real(held->ratio) : json_string("inf"));
    if (isfinite(held->got) && isfinite(held->want) && isfinite(held->bound) && held->ratio > 0)
        json_object_update_new(check, json_pack("{s:f,s:f,s:f}", "got", held->got, "want",
                                                held->want, "bound", held->bound));
    json_object_set_new(row, "check", check);
}

/* The version of cuDNN of the calibrated constants, if the table has them: this version, or another
 * one. */
static void set_calibration(json_t *row, const facts_constants *c)
{
    char text[40] = "measured";
    if (c->assumed)
        snprintf(text, sizeof text, "assumed %d.%d.%d", c->assumed / 10000, c->assumed / 100 % 100,
                 c->assumed % 100);
    if (c->calibrated || c->assumed)
        json_object_set_new(row, "calibration", json_string(text));
}

void facts_row_trial(json_t *row, const facts_trial *trial, const facts_reference *reference)
{
    const facts_problem *problem = reference->memory.problem;
    if (!trial->prepared)
        return;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (trial->judged[id])
            facts_row_judgement(row, facts_tensor_word(id), &trial->judgement[id], trial->bits[id]);
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (trial->array[id].checked)
            facts_row_judgement(row, facts_array_words[id], &trial->array[id], 0);
    facts_row_dropout(row, problem, &reference->keep);
    facts_row_check(row, &trial->check);
    if (trial->ran_other)
        facts_row_engine(row, &trial->ran);
    if (trial->exec_us > 0)
        json_object_set_new(row, "exec_us", json_real(trial->exec_us));
    json_object_set_new(row, "oracle", json_string(trial->oracle));
    set_calibration(row, &reference->constants);
    json_object_set_new(row, "fill_ms", json_real(reference->fill_ms));
    json_object_set_new(row, "oracle_ms", json_real(reference->oracle_ms));
    json_object_set_new(row, "judge_ms", json_real(trial->judge_ms));
    if (problem->ask.pass == FATTN_BACKWARD)
        json_object_set_new(row, "inputs_from",
                            json_string(trial->own_forward ? "forward" : "reference"));
    if (trial->no_forward[0])
        json_object_set_new(row, "inputs_why", json_string(trial->no_forward));
}

static void describe_plan(json_t *row, const facts_content *content)
{
    const fattn_engine *engine = fattn_plan_engine(content->plan);
    if (engine)
        facts_row_engine(row, engine);
    facts_row_backend(row, fattn_plan_backend(content->plan));
    json_object_set_new(row, "plan_ms", json_real(fattn_plan_ms(content->plan)));
    if (content->loaded)
        json_object_set_new(row, "plan_loaded", json_true());
    json_object_set_new(row, "workspace_bytes",
                        json_integer((json_int_t)fattn_plan_workspace_bytes(content->plan)));
}

void facts_row_describe(json_t *row, const facts_content *content)
{
    if (content->decision) {
        facts_row_decision(row, content->decision);
        json_object_set_new(row, "decide_us", json_real(content->decide_us));
    }
    if (content->asked)
        facts_row_asked(row, content->asked);
    if (content->offer)
        facts_row_engine(row, content->offer);
    if (content->plan)
        describe_plan(row, content);
    if (content->trial)
        facts_row_trial(row, content->trial, content->reference);
}
