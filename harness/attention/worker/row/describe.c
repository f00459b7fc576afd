#include "describe.h"

#include <math.h>
#include <stdio.h>

#include "numbers/check/judge_keep.h"
#include "row.h"

void facts_row_dropout(json_t *row, const facts_problem *problem, const facts_kept *keep)
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
