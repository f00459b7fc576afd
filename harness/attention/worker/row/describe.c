#include "describe.h"

#include "row_trial.h"

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
