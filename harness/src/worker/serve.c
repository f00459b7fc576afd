#include "serve.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "case/problem/case_problem.h"
#include "fattn/score_mod.h"
#include "numbers/fill/mod.h"
#include "reply.h"
#include "worker/exec/both_oracles.h"
#include "worker/exec/exec.h"
#include "worker/exec/runs.h"
#include "worker/exec/trial.h"
#include "worker/row/dump.h"
#include "worker/row/pictures.h"
#include "worker/row/row.h"
#include "worker/row/row_trial.h"
#include "worker/target/case_policy.h"
#include "worker/target/derived_layouts.h"
#include "worker/target/nearest_accepted.h"
#include "worker/target/plans.h"

/* One request in hand. */
typedef struct job {
    facts_worker *worker;
    const facts_request *request;
    facts_case asked;
    facts_problem problem;
    fattn_score_mod *mod; /* problem.ask.score_mod */
    int depth;            /* of the policies on this thread */
    fattn_decision *decision;
    double decide_us;
    facts_truth truth; /* made when the first configuration is run */
    bool has_truth;
    bool again;     /* a dead context was found before anything was launched: no answer */
    int32_t config; /* in hand; -1: none */
} job;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void stage(void *owner, const char *word)
{
    job *j = owner;
    facts_reply_stage(j->request->id, word, j->config);
}

static void refuse(job *j, const char *reason_class, const char *text)
{
    json_t *row = facts_row(j->request->text, FACTS_VERDICT_UNSUPPORTED);
    json_object_set_new(row, "supported", json_false());
    facts_row_reason(row, reason_class, NULL, text, NULL);
    facts_reply_row(j->request->id, row, true, false);
}

static bool resolve(job *j)
{
    facts_error error = { 0 };
    if (!facts_case_parse(&j->asked, j->request->text, &error)) {
        refuse(j, "bad_problem", error.text);
        return false;
    }
    switch (facts_problem_resolve(&j->problem, &j->asked, &error)) {
    case FACTS_RESOLVED:
        break;
    case FACTS_NOT_IMPLEMENTED:
        refuse(j, "internal", error.text);
        return false;
    default:
        refuse(j, "bad_problem", error.text);
        return false;
    }
    if (j->problem.fill == FACTS_FILL_OTHER) {
        refuse(j, "internal", "fill: this one is not implemented yet");
        return false;
    }
    return true;
}

/* A caller who gives no layout of an output gets the one that the library derives: of inputs with stride 0 it is checked here. */
static bool check_layouts(job *j)
{
    char why[300];
    if (facts_layouts_hold(&j->problem, why))
        return true;
    json_t *row = facts_row(j->request->text, FACTS_VERDICT_WRONG);
    facts_row_reason(row, "internal", NULL, why, NULL);
    facts_reply_row(j->request->id, row, true, false);
    return false;
}

/* What the case needs of the library before it can be asked: its recording, its policy. */
static bool furnish(job *j)
{
    char error[400] = "";
    fattn_status status = facts_mod_create(&j->mod, &j->problem);
    if (status != FATTN_OK) {
        refuse(j, fattn_status_name(status), fattn_last_error());
        return false;
    }
    j->problem.ask.score_mod = j->mod;
    if (j->problem.exec >= FACTS_EXEC_GRAPH && j->problem.exec <= FACTS_EXEC_GRAPH_AFTER_DESTROY)
        j->problem.ask.capture = 1;
    status = facts_policy_begin(&j->depth, j->worker, j->problem.policy, &j->asked, error);
    if (status == FATTN_OK)
        return true;
    json_t *row = facts_row(j->request->text, status == FATTN_ENVIRONMENT ? FACTS_VERDICT_INCONCLUSIVE : FACTS_VERDICT_UNSUPPORTED);
    facts_row_reason(row, fattn_status_name(status), NULL, error, NULL);
    facts_reply_row(j->request->id, row, true, false);
    return false;
}

static void answer_failure(job *j, fattn_status status)
{
    json_t *row = facts_row(j->request->text, facts_verdict_of(status));
    facts_row_failure(row, status);
    facts_reply_row(j->request->id, row, true, false);
}

/* Whoever answers was allowed to. */
static bool refuse_backend(job *j)
{
    fattn_backend backend = fattn_decision_backend(j->decision);
    if (facts_policy_allows(j->worker, j->problem.policy, backend))
        return false;
    json_t *row = facts_row(j->request->text, FACTS_VERDICT_WRONG);
    facts_row_decision(row, j->decision);
    facts_row_reason(row, "internal", NULL, "policy: a backend answered that the policy does not name", NULL);
    facts_reply_row(j->request->id, row, true, false);
    return true;
}

/* Says no when the backend that would answer cannot be called the way the case says. */
static bool refuse_exec(job *j)
{
    const char *reason_class;
    const char *text = facts_exec_refuses(&j->problem, fattn_decision_backend(j->decision), j->worker, &reason_class);
    if (!text)
        return false;
    json_t *row = facts_row(j->request->text, FACTS_VERDICT_UNSUPPORTED);
    facts_row_decision(row, j->decision);
    json_object_set_new(row, "supported", json_false());
    facts_row_reason(row, reason_class, NULL, text, NULL);
    facts_reply_row(j->request->id, row, true, false);
    return true;
}

/* Said no to, and the call would have been taken. Asked where compiling was wanted; a refusal costs no compile. */
static bool is_refused_in_vain(const job *j)
{
    fattn_reason reason = fattn_decision_reason(j->decision);
    bool target_said_so = reason == FATTN_REASON_UNSUPPORTED || reason == FATTN_REASON_POLICY;
    fattn_plan *plan = NULL;
    if (!target_said_so || j->request->what == FACTS_DO_DECIDE)
        return false;
    bool made = fattn_plan_create(&plan, j->worker->context, &j->problem.ask, NULL) == FATTN_OK;
    fattn_plan_destroy(plan);
    return made;
}

/* Asks; answers no by itself. */
static bool decide(job *j)
{
    uint32_t ask = FATTN_ASK_A;
    if (j->request->explain)
        ask |= FATTN_ASK_B | FATTN_ASK_FALLBACK | FATTN_ASK_INSTANT;
    stage(j, "decide");
    double since = now_us();
    fattn_status status = fattn_decide(&j->decision, j->worker->context, &j->problem.ask, ask);
    j->decide_us = now_us() - since;
    if (!j->decision) {
        answer_failure(j, status);
        return false;
    }
    if (fattn_decision_supported(j->decision))
        return !refuse_backend(j) && !refuse_exec(j);
    bool unasked = fattn_decision_reason(j->decision) == FATTN_REASON_ENVIRONMENT;
    json_t *row = facts_row(j->request->text, unasked ? FACTS_VERDICT_INCONCLUSIVE : FACTS_VERDICT_UNSUPPORTED);
    facts_row_decision(row, j->decision);
    if (is_refused_in_vain(j)) {
        facts_row_verdict(row, FACTS_VERDICT_WRONG);
        facts_row_reason(row, "internal", NULL,
                         "decided as not supported, and yet a plan of it was made: the question was not the call", NULL);
    }
    json_object_set_new(row, "decide_us", json_real(j->decide_us));
    if (j->request->explain && !unasked)
        facts_row_nearest(row, j->worker->context, &j->problem.ask);
    facts_reply_row(j->request->id, row, true, false);
    return false;
}

/* ---- one configuration ------------------------------------------------------------------------------------------------------ */

static bool prepare(job *j, json_t *row, const facts_who *who)
{
    char error[256] = "", text[300];
    if (j->has_truth)
        return true;
    fattn_status status = facts_truth_create_for(&j->truth, j->worker, &j->problem, who, error);
    if (status == FATTN_OK) {
        j->has_truth = true;
        return true;
    }
    /* Filling and the reference are ours, and nothing of this case ran before them: a fault is what an earlier case of this process
     * left behind, or our own. */
    const bool fault = status == FATTN_DEVICE_FAULT;
    j->worker->lost = fault;
    j->again = fault && j->worker->ran;
    facts_truth_destroy(&j->truth);
    snprintf(text, sizeof text, "%s%s", fault ? "before an engine ran: " : "", error);
    facts_row_verdict(row, fault ? FACTS_VERDICT_INCONCLUSIVE : facts_verdict_of(status));
    facts_row_reason(row, fault ? "internal" : fattn_status_name(status), NULL, text, NULL);
    return false;
}

/* What is due of this engine: its own constants, where they are known. */
static bool prepare_for(job *j, json_t *row, const fattn_plan *plan)
{
    const fattn_engine *engine = fattn_plan_engine(plan);
    const facts_who who = { .sm = j->worker->info.sm,
                            .backend = (int32_t)fattn_plan_backend(plan),
                            .dtype = j->problem.ask.dtype,
                            .pass = j->problem.ask.pass,
                            .engine = engine ? engine->index : -1 };
    stage(j, "reference"); /* others' constants make another one */
    if (!prepare(j, row, &who))
        return false;
    facts_trial trial = { .verdict = FACTS_VERDICT_PASS };
    facts_runs runs = { .out = &trial, .worker = j->worker };
    if (facts_runs_has_truth(&runs, facts_truth_judges(&j->truth, &who)))
        return true;
    j->again = j->worker->lost; /* by another configuration: of this one nothing has run */
    facts_row_outcome(row, &trial);
    return false;
}

/* Two oracles that disagree are our own mistake, whatever the answer is. */
static void report_both(job *j, json_t *row, const facts_trial *trial)
{
    char text[400];
    bool compared = j->truth.memory.gpu != NULL, agree = facts_both_agree(trial, &j->truth, text);
    json_object_set_new(row, "oracle", json_string(!compared ? "cpu" : agree ? "both" : "gpu"));
    if (agree)
        return;
    facts_row_verdict(row, FACTS_VERDICT_INCONCLUSIVE);
    facts_row_reason(row, "internal", NULL, text, NULL);
}

static void run(job *j, json_t *row, fattn_plan **plan)
{
    char error[256] = "";
    facts_trial trial;
    if (!prepare_for(j, row, *plan))
        return;
    facts_trial_options options = { .once = j->request->trace, .stage = stage, .owner = j };
    j->worker->ran = true;
    facts_trial_run(&trial, &j->truth, plan, &options);
    facts_row_trial(row, &trial, &j->truth);
    if (j->worker->oracle == FACTS_ORACLE_BOTH && trial.status == FATTN_OK)
        report_both(j, row, &trial);
    if (j->request->explain && trial.status == FATTN_OK)
        json_object_set_new(row, "pictures", facts_pictures(&trial, &j->truth));
    if (j->request->dump[0] && trial.status == FATTN_OK)
        json_object_set_new(row, "dumped", facts_dump(&j->truth, j->request->dump, error));
    /* What was written outside may have gone further than what we watch, into the next case's memory or into code. */
    if (trial.status == FATTN_OK && trial.verdict == FACTS_VERDICT_OVERRUN && j->worker->device == FACTS_DEVICE_GPU)
        j->worker->lost = true;
    if (error[0])
        facts_row_reason(row, NULL, NULL, error, NULL);
}

/* Said yes to, then refused: the question was not the call. */
static void report_refused_plan(json_t *row, fattn_status status)
{
    char text[600];
    snprintf(text, sizeof text, "decided as supported, then refused (%s): %.500s", fattn_status_name(status), fattn_last_error());
    facts_row_verdict(row, FACTS_VERDICT_BUILD_FAIL);
    facts_row_reason(row, NULL, NULL, text, NULL);
}

/* A decision knows what heuristics offer; a pin goes past them, and may be refused for itself. */
static void report_refused_pin(json_t *row, fattn_status status)
{
    facts_row_verdict(row, FACTS_VERDICT_UNSUPPORTED);
    json_object_set_new(row, "supported", json_false());
    facts_row_failure(row, status);
}

/* Is what was compiled what the decision had at that place? */
static bool is_as_decided(const job *j, const fattn_plan *plan)
{
    const fattn_engine *made = fattn_plan_engine(plan);
    if (j->problem.knob_count > 0) /* a pin: past what heuristics offered */
        return true;
    if (fattn_plan_backend(plan) != FATTN_BACKEND_CUDNN || made->mode != FATTN_MODE_A || made->config < 0)
        return true;
    const fattn_engine *said = fattn_decision_engine(j->decision, FATTN_MODE_A, (size_t)made->config);
    return said && said->index == made->index && said->knob_count == made->knob_count &&
           said->workspace_bytes == made->workspace_bytes &&
           memcmp(said->knobs, made->knobs, (size_t)made->knob_count * sizeof *made->knobs) == 0;
}

static void build_and_run(job *j, json_t *row, const fattn_plan_options *options, bool execute)
{
    fattn_plan *plan = NULL;
    stage(j, "build");
    bool loaded;
    fattn_status status = facts_plan_get(&plan, j->worker->context, &j->problem.ask, options, j->request, execute, &loaded);
    if (status >= FATTN_BAD_PROBLEM && status <= FATTN_INTERNAL && status != FATTN_ENVIRONMENT) {
        if (j->problem.knob_count > 0)
            report_refused_pin(row, status);
        else
            report_refused_plan(row, status);
        return;
    }
    if (status != FATTN_OK) {
        facts_row_verdict(row, facts_verdict_of(status));
        facts_row_failure(row, status);
        return;
    }
    const fattn_engine *engine = fattn_plan_engine(plan);
    if (engine)
        facts_row_engine(row, engine);
    facts_row_backend(row, fattn_plan_backend(plan));
    json_object_set_new(row, "plan_ms", json_real(fattn_plan_ms(plan)));
    if (loaded)
        json_object_set_new(row, "plan_loaded", json_true());
    json_object_set_new(row, "workspace_bytes", json_integer((json_int_t)fattn_plan_workspace_bytes(plan)));
    if (!is_as_decided(j, plan)) {
        facts_row_verdict(row, FACTS_VERDICT_BUILD_FAIL);
        facts_row_reason(row, NULL, NULL,
                         "what was compiled is not what was decided: another engine, knob or workspace at its place", NULL);
    } else if (execute)
        run(j, row, &plan);
    fattn_plan_destroy(plan);
}

/* A rule of ours took this configuration out of the list: a refusal, in the rule's words. Costs a question, no compile. */
static void report_removed(const job *j, json_t *row, const fattn_plan_options *options)
{
    fattn_plan *plan = NULL;
    fattn_status status = fattn_plan_create(&plan, j->worker->context, &j->problem.ask, options);
    const bool made = status == FATTN_OK, its_own = made && fattn_plan_backend(plan) == FATTN_BACKEND_CUDNN;
    facts_row_verdict(row, its_own ? FACTS_VERDICT_WRONG : FACTS_VERDICT_UNSUPPORTED);
    json_object_set_new(row, "supported", json_false());
    if (its_own)
        facts_row_reason(row, "internal", NULL, "a rule removed this configuration, and yet a plan of it was made", NULL);
    else if (made) /* policy=any: whoever is asked for it gets another backend's */
        facts_row_reason(row, "policy", NULL, "a rule removed this configuration; another backend answers in its place", NULL);
    else
        facts_row_failure(row, status);
    fattn_plan_destroy(plan);
}

/* Makes the row of one configuration; `engine` NULL: whichever the library takes. True when more may follow. */
static bool answer(job *j, const fattn_plan_options *options, const fattn_engine *engine, bool last)
{
    json_t *row = facts_row(j->request->text, FACTS_VERDICT_PASS);
    bool described = j->worker->device == FACTS_DEVICE_DESCRIBED;
    bool execute = j->request->what == FACTS_DO_RUN && !described;
    facts_row_decision(row, j->decision);
    facts_row_asked(row, &j->problem);
    json_object_set_new(row, "decide_us", json_real(j->decide_us));
    if (engine)
        facts_row_engine(row, engine);
    if (engine && engine->removed && !j->problem.ask.guards_off)
        report_removed(j, row, options);
    else if (execute || j->request->what == FACTS_DO_PLAN)
        build_and_run(j, row, options, execute);
    bool pass = strcmp(json_string_value(json_object_get(row, "verdict")), facts_verdict_name(FACTS_VERDICT_PASS)) == 0;
    if (j->again) {
        json_decref(row);
        facts_reply_again(j->request->id);
        return false;
    }
    last = last || (j->request->first_bad_only && !pass);
    facts_reply_row(j->request->id, row, last, j->worker->lost);
    return !last && !j->worker->lost;
}

static void answer_all(job *j)
{
    int32_t count = (int32_t)fattn_decision_engine_count(j->decision, FATTN_MODE_A), from = j->request->from_config;
    if (from >= count) {
        facts_reply_none(j->request->id);
        return;
    }
    for (j->config = from; j->config < count; j->config++) {
        fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
        options.config = j->config;
        if (!answer(j, &options, fattn_decision_engine(j->decision, FATTN_MODE_A, (size_t)j->config), j->config + 1 == count))
            return;
    }
}

/* An engine with these knobs, whether heuristics offer it or not. */
static void answer_pin(job *j)
{
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    options.engine = j->problem.engine;
    options.knobs = j->problem.knob;
    options.knob_count = j->problem.knob_count;
    answer(j, &options, NULL, true);
}

static void answer_engine(job *j, int64_t index)
{
    size_t count = fattn_decision_engine_count(j->decision, FATTN_MODE_A);
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    options.engine = index;
    for (size_t i = 0; i < count; i++) {
        const fattn_engine *engine = fattn_decision_engine(j->decision, FATTN_MODE_A, i);
        if (engine->index != index)
            continue;
        j->config = engine->config;
        answer(j, &options, engine, true);
        return;
    }
    json_t *row = facts_row(j->request->text, FACTS_VERDICT_UNSUPPORTED);
    facts_row_decision(row, j->decision);
    json_object_set_new(row, "supported", json_false());
    facts_row_reason(row, "unsupported", NULL, "engine: heuristics do not offer this one here", "engines[] lists those that are");
    facts_reply_row(j->request->id, row, true, false);
}

/* The configuration that the library tries first: rules may have removed some. NULL: none is left. */
static const fattn_engine *first_left(const fattn_decision *decision)
{
    const size_t count = fattn_decision_engine_count(decision, FATTN_MODE_A);
    for (size_t i = 0; i < count; i++) {
        const fattn_engine *engine = fattn_decision_engine(decision, FATTN_MODE_A, i);
        if (!engine->removed)
            return engine;
    }
    return NULL;
}

static void answer_configurations(job *j)
{
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    size_t count = fattn_decision_engine_count(j->decision, FATTN_MODE_A);
    /* The plan of a larger shape has a list of engines of its own: what this one lists would be the same run again. */
    const bool own_list = j->problem.exec == FACTS_EXEC_OVERRIDE_SHAPE;
    if (j->problem.engine == FACTS_ENGINE_ALL && count > 0 && !own_list)
        answer_all(j);
    else if (j->problem.knob_count > 0)
        answer_pin(j);
    else if (j->problem.engine >= 0)
        answer_engine(j, j->problem.engine);
    else
        answer(j, &options, first_left(j->decision), true);
}

void facts_serve(facts_worker *worker, const facts_request *request)
{
    job j = { .worker = worker, .request = request, .config = -1, .depth = -1 };
    if (resolve(&j) && check_layouts(&j) && furnish(&j) && decide(&j))
        answer_configurations(&j);
    if (j.has_truth)
        facts_truth_destroy(&j.truth);
    fattn_decision_destroy(j.decision);
    facts_policy_end(j.depth);
    fattn_score_mod_destroy(j.mod);
}
