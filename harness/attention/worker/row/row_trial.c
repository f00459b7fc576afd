#include "row_trial.h"

#include <stdio.h>

#include "row.h"
#include "row_check.h"

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
