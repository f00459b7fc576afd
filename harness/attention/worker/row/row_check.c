#include "row_check.h"

#include <math.h>

#include "numbers/check/judge_keep.h"

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
