#include "serve.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fattn/score_mod.h"
#include "keys/keys.h"
#include "numbers/fill/mod.h"
#include "problem/case_problem.h"
#include "words/worker_exit.h"
#include "worker/clock/spent.h"
#include "worker/exec/exec.h"
#include "worker/exec/trial.h"
#include "worker/gpu/measure_peak.h"
#include "worker/gpu/watch_gpu.h"
#include "worker/memory/further_plans.h"
#include "worker/reply.h"
#include "worker/row/dump.h"
#include "worker/row/pictures.h"
#include "worker/row/row.h"
#include "worker/row/row_trial.h"
#include "worker/row/standalone.h"
#include "worker/target/case_policy.h"
#include "worker/target/derived_layouts.h"
#include "worker/target/nearest_accepted.h"
#include "worker/timing/time_turn.h"

/* The current request. */
typedef struct facts_job {
    facts_worker *worker;
    facts_request request;
    facts_case asked;
    facts_problem problem;
    fattn_score_mod *mod; /* problem.ask.score_mod */
    int depth;            /* of the policies of this thread */
    fattn_decision *decision;
    double decide_us;
    facts_reference reference; /* prepared when the first configuration is run */
    bool again;             /* a dead context was found before anything was launched: no answer */
    int32_t config;         /* the current one; -1: none */
    facts_timed_plans kept; /* for a request with `keep`: the configurations that ran and passed */
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
    facts_reply_stage(j->request.id, word, j->config);
}

/* A file of plan_dir that could not be used is reported in the row of its case. */
static void reply(const job *j, json_t *row, bool last, bool bye)
{
    /* In a run with turns, the workers of all other builds need the memory while this one waits. */
    if (last && j->request.keep && j->worker->gpu && !j->worker->lost)
        (void)facts_gpu_trim(j->worker->gpu);
    char *why = j->worker->plans->not_loaded;
    if (why[0])
        json_object_set_new(row, "not_loaded", json_string(why));
    why[0] = '\0';
    facts_row_spent(row, facts_spent_ms());
    facts_spent_clear();
    facts_reply_row(j->request.id, row, last, bye);
}

/* The row of a request that ends here, with the decision if there is one. */
static json_t *ended(const job *j, facts_verdict verdict, const char *reason_class,
                     const char *text)
{
    json_t *row = facts_row(j->request.text, verdict);
    if (j->decision)
        facts_row_decision(row, j->decision);
    if (verdict == FACTS_VERDICT_UNSUPPORTED)
        json_object_set_new(row, "supported", json_false());
    facts_row_reason(row, reason_class, NULL, text, NULL);
    return row;
}

/* Each step on the way to a decision returns NULL, or the row that ends the request. */
static json_t *resolve(job *j)
{
    facts_error error = { 0 };
    if (!facts_case_parse(&j->asked, j->request.text, &error))
        return ended(j, FACTS_VERDICT_UNSUPPORTED, "bad_problem", error.text);
    const facts_resolve_status resolution = facts_problem_resolve(&j->problem, &j->asked, &error);
    if (resolution != FACTS_RESOLVED)
        return ended(j, FACTS_VERDICT_UNSUPPORTED,
                     resolution == FACTS_NOT_IMPLEMENTED ? "internal" : "bad_problem", error.text);
    if (j->problem.fill == FACTS_FILL_OTHER)
        return ended(j, FACTS_VERDICT_UNSUPPORTED, "internal",
                     "fill: this one is not implemented yet");
    return NULL;
}

/* Without a layout of an output, the library derives one. For inputs with stride 0, that layout is
 * checked here. */
static json_t *check_layouts(job *j)
{
    facts_error why;
    return facts_layouts_hold(&j->problem, &why)
               ? NULL
               : ended(j, FACTS_VERDICT_WRONG, "internal", why.text);
}

/* The score modification and the policy of the case: the question needs both. */
static json_t *furnish(job *j)
{
    facts_error error = { 0 };
    fattn_status status = facts_mod_create(&j->mod, &j->problem);
    if (status != FATTN_OK)
        return ended(j, FACTS_VERDICT_UNSUPPORTED, fattn_status_name(status), fattn_last_error());
    j->problem.ask.score_mod = j->mod;
    if (j->problem.exec >= FACTS_EXEC_GRAPH && j->problem.exec <= FACTS_EXEC_GRAPH_NATIVE)
        j->problem.ask.capture = 1;
    status = facts_policy_begin(&j->depth, j->worker, j->problem.policy, &error);
    if (status == FATTN_OK)
        return NULL;
    return ended(j, FACTS_VERDICT_UNSUPPORTED, fattn_status_name(status), error.text);
}

/* Sent before cuDNN is asked, because the question may end the process. */
static json_t *write_standalone(job *j)
{
    facts_error error = { 0 };
    if (!j->request.standalone[0] || facts_standalone(j->worker, &j->problem, &j->request, &error))
        return NULL;
    json_t *row = ended(j, FACTS_VERDICT_INCONCLUSIVE, "environment", error.text);
    json_object_set_new(row, "not_written", json_string(error.text));
    return row;
}

static void note_decision(const job *j)
{
    facts_error error = { 0 };
    if (j->request.standalone[0] && j->decision)
        (void)facts_standalone_decided(j->decision, j->request.standalone, &error);
}

/* Is the backend that answered allowed, and can it be called as the case demands? */
static json_t *check_backend(const job *j)
{
    const fattn_backend backend = fattn_decision_backend(j->decision);
    const char *text;
    if (!facts_policy_allows(j->worker, j->problem.policy, backend))
        return ended(j, FACTS_VERDICT_WRONG, "internal",
                     "policy: a backend answered that the policy does not name");
    text = facts_exec_refuses(&j->problem, backend, j->worker);
    return text ? ended(j, FACTS_VERDICT_UNSUPPORTED, "unsupported", text) : NULL;
}

/* The question was refused, but the call would have been accepted. Checked where compiling was
 * wanted; a refusal costs no compilation. */
static bool is_refused_in_vain(const job *j)
{
    fattn_reason reason = fattn_decision_reason(j->decision);
    bool target_refused = reason == FATTN_REASON_UNSUPPORTED || reason == FATTN_REASON_POLICY;
    fattn_plan *plan = NULL;
    if (!target_refused || j->request.what == FACTS_DO_DECIDE)
        return false;
    const facts_spent before = facts_spend(FACTS_SPENT_DECIDE);
    bool made = fattn_plan_create(&plan, j->worker->context, &j->problem.ask, NULL) == FATTN_OK;
    fattn_plan_destroy(plan);
    facts_spend(before);
    return made;
}

static json_t *decide(job *j)
{
    uint32_t ask = FATTN_ASK_A;
    if (j->request.explain)
        ask |= FATTN_ASK_B | FATTN_ASK_FALLBACK | FATTN_ASK_INSTANT;
    stage(j, "decide");
    const facts_spent before = facts_spend(FACTS_SPENT_DECIDE);
    double since = now_us();
    fattn_status status = fattn_decide(&j->decision, j->worker->context, &j->problem.ask, ask);
    j->decide_us = now_us() - since;
    facts_spend(before);
    if (!j->decision) {
        json_t *row = facts_row(j->request.text, facts_verdict_of(status));
        facts_row_failure(row, status);
        return row;
    }
    if (fattn_decision_supported(j->decision))
        return check_backend(j);
    bool unasked = fattn_decision_reason(j->decision) == FATTN_REASON_ENVIRONMENT;
    json_t *row = facts_row(j->request.text,
                            unasked ? FACTS_VERDICT_INCONCLUSIVE : FACTS_VERDICT_UNSUPPORTED);
    facts_row_decision(row, j->decision);
    if (is_refused_in_vain(j)) {
        facts_row_verdict(row, FACTS_VERDICT_WRONG);
        facts_row_reason(row, "internal", NULL,
                         "cuDNN refused the case in the decision but compiled a plan for it", NULL);
    }
    json_object_set_new(row, "decide_us", json_real(j->decide_us));
    if (j->request.explain && !unasked)
        facts_row_nearest(row, j->worker->context, &j->problem.ask);
    return row;
}

/* ---- one configuration
 * ------------------------------------------------------------------------------------------------------
 */

static facts_verdict run(job *j, json_t *row, const fattn_plan *plan)
{
    facts_error error = { 0 };
    facts_trial trial;
    facts_trial_options options = { .worker = j->worker,
                                    .problem = &j->problem,
                                    .once = j->request.trace,
                                    .stage = stage,
                                    .owner = j };
    facts_trial_run(&trial, &j->reference, plan, &options);
    j->again = trial.again;
    const facts_verdict verdict = facts_row_trial(row, &trial, &j->reference);
    const bool judged = trial.prepared && trial.status == FATTN_OK;
    if (j->request.explain && judged)
        json_object_set_new(row, "pictures", facts_pictures(&trial, &j->reference));
    if (j->request.dump[0] && judged)
        json_object_set_new(row, "dumped",
                            facts_dump(&j->reference, j->request.dump, j->request.text, &error));
    if (error.text[0])
        json_object_set_new(row, "not_written", json_string(error.text));
    return verdict;
}

/* The question was accepted and the call refused: they were not the same problem. */
static facts_verdict report_refused_plan(json_t *row, fattn_status status)
{
    char text[600];
    snprintf(text, sizeof text, "decided as supported, then refused (%s): %.500s",
             fattn_status_name(status), fattn_last_error());
    facts_row_reason(row, NULL, NULL, text, NULL);
    return FACTS_VERDICT_BUILD_FAIL;
}

/* A decision contains the configurations of the heuristics; a pin is outside them, and may be
 * refused on its own. */
static facts_verdict report_refused_pin(json_t *row, fattn_status status)
{
    json_object_set_new(row, "supported", json_false());
    facts_row_failure(row, status);
    return FACTS_VERDICT_UNSUPPORTED;
}

/* A plan needs no launch: an earlier case broke the device, or FACTS itself. */
static facts_verdict report_broken_device(job *j, json_t *row)
{
    char text[600];
    snprintf(text, sizeof text, "before an engine ran: %.550s", fattn_last_error());
    facts_row_reason(row, "internal", NULL, text, NULL);
    j->worker->lost = true;
    j->again = j->worker->ran;
    return FACTS_VERDICT_INCONCLUSIVE;
}

/* Is the compiled configuration the one that the decision has at this index? */
static bool is_as_decided(const job *j, const fattn_plan *plan)
{
    const fattn_engine *made = fattn_plan_engine(plan);
    if (j->problem.knob_count > 0) /* a pin: outside the offers of the heuristics */
        return true;
    if (fattn_plan_backend(plan) != FATTN_BACKEND_CUDNN || made->mode != FATTN_MODE_A ||
        made->config < 0)
        return true;
    const fattn_engine *offered =
        fattn_decision_engine(j->decision, FATTN_MODE_A, (size_t)made->config);
    return offered && offered->index == made->index && offered->knob_count == made->knob_count &&
           offered->workspace_bytes == made->workspace_bytes &&
           memcmp(offered->knobs, made->knobs, (size_t)made->knob_count * sizeof *made->knobs) == 0;
}

/* Is the case launched again? The speed of a wrong answer is not measured. */
static bool keeps(const job *j, facts_verdict verdict, const fattn_plan *plan)
{
    const bool plain = j->problem.exec == FACTS_EXEC_EAGER;
    return j->request.keep && plain && plan && verdict == FACTS_VERDICT_PASS && !j->worker->lost &&
           j->kept.count < FACTS_TIMED_PLANS;
}

static facts_verdict build_and_run(job *j, json_t *row, const fattn_plan_options *options,
                                   bool execute)
{
    fattn_plan *plan = NULL;
    stage(j, "build");
    bool loaded;
    facts_plans *plans = j->worker->plans;
    fattn_status status =
        facts_plan_get(&plan, plans, j->worker->context, &j->problem.ask, options, &loaded);
    if (status >= FATTN_BAD_PROBLEM && status <= FATTN_INTERNAL && status != FATTN_ENVIRONMENT)
        return j->problem.knob_count > 0 ? report_refused_pin(row, status)
                                         : report_refused_plan(row, status);
    if (status == FATTN_DEVICE_FAULT)
        return report_broken_device(j, row);
    if (status != FATTN_OK) {
        facts_row_failure(row, status);
        return facts_verdict_of(status);
    }
    const fattn_engine *engine = fattn_plan_engine(plan);
    if (engine)
        facts_row_engine(row, engine);
    facts_row_backend(row, fattn_plan_backend(plan));
    json_object_set_new(row, "plan_ms", json_real(fattn_plan_ms(plan)));
    if (loaded)
        json_object_set_new(row, "plan_loaded", json_true());
    json_object_set_new(row, "workspace_bytes",
                        json_integer((json_int_t)fattn_plan_workspace_bytes(plan)));
    facts_verdict verdict = FACTS_VERDICT_SUPPORTED;
    if (!is_as_decided(j, plan)) {
        verdict = FACTS_VERDICT_BUILD_FAIL;
        facts_row_reason(row, NULL, NULL,
                         "cuDNN compiled another configuration than it decided: engine, knob or "
                         "workspace differ",
                         NULL);
    } else if (execute) {
        verdict = run(j, row, plan);
    } else if (plans->folder >= 0) {
        facts_further_plans(j->worker, &j->problem, fattn_plan_backend(plan));
    }
    if (execute && keeps(j, verdict, plan)) {
        j->kept.at[j->kept.count++] = (facts_timed_plan){ .plan = plan, .config = j->config };
        return verdict;
    }
    const facts_spent before = facts_spend(FACTS_SPENT_RELEASE);
    fattn_plan_destroy(plan);
    facts_spend(before);
    return verdict;
}

/* A rule of FACTS removed this configuration from the list: a refusal, with the text of the rule.
 * This costs a question but no compilation. */
static facts_verdict report_removed(const job *j, json_t *row, const fattn_plan_options *options)
{
    fattn_plan *plan = NULL;
    fattn_status status = fattn_plan_create(&plan, j->worker->context, &j->problem.ask, options);
    const bool made = status == FATTN_OK,
               its_own = made && fattn_plan_backend(plan) == FATTN_BACKEND_CUDNN;
    json_object_set_new(row, "supported", json_false());
    if (its_own)
        facts_row_reason(row, "internal", NULL,
                         "a rule removed this configuration, but FACTS made a plan for it", NULL);
    else if (made) /* policy=any: the backend in the request may give the answer of another backend
                    */
        facts_row_reason(row, "policy", NULL,
                         "a rule removed this configuration; another backend answers in its place",
                         NULL);
    else
        facts_row_failure(row, status);
    fattn_plan_destroy(plan);
    return its_own ? FACTS_VERDICT_WRONG : FACTS_VERDICT_UNSUPPORTED;
}

/* Makes the row of one configuration; `engine` NULL: the configuration that the library chooses.
 * True if more may follow. */
static bool answer(job *j, const fattn_plan_options *options, const fattn_engine *engine, bool last)
{
    facts_verdict verdict = FACTS_VERDICT_SUPPORTED;
    json_t *row = facts_row(j->request.text, verdict);
    bool described = j->worker->device == FACTS_DEVICE_DESCRIBED;
    bool execute = j->request.what == FACTS_DO_RUN && !described;
    facts_row_decision(row, j->decision);
    facts_row_asked(row, &j->problem);
    json_object_set_new(row, "decide_us", json_real(j->decide_us));
    if (engine)
        facts_row_engine(row, engine);
    if (engine && engine->removed && !j->problem.ask.guards_off)
        verdict = report_removed(j, row, options);
    else if (execute || j->request.what == FACTS_DO_PLAN)
        verdict = build_and_run(j, row, options, execute);
    facts_row_verdict(row, verdict);
    if (j->again) {
        json_decref(row);
        facts_reply_again(j->request.id);
        return false;
    }
    last = last || (j->request.first_bad_only && !facts_verdict_is_good(verdict));
    reply(j, row, last, j->worker->lost);
    return !last && !j->worker->lost;
}

static void answer_all(job *j)
{
    int32_t count = (int32_t)fattn_decision_engine_count(j->decision, FATTN_MODE_A),
            from = j->request.from_config;
    if (from >= count) {
        facts_reply_none(j->request.id);
        return;
    }
    for (j->config = from; j->config < count; j->config++) {
        fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
        options.config = j->config;
        if (!answer(j, &options,
                    fattn_decision_engine(j->decision, FATTN_MODE_A, (size_t)j->config),
                    j->config + 1 == count))
            return;
    }
}

/* An engine with these knobs, even if the heuristics do not offer it. */
static void answer_pin(job *j)
{
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    options.engine = j->problem.engine;
    options.knobs = j->problem.knob;
    options.knob_count = j->problem.knob_count;
    answer(j, &options, NULL, true);
}

static json_t *answer_engine(job *j, int64_t index)
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
        return NULL;
    }
    json_t *row = ended(j, FACTS_VERDICT_UNSUPPORTED, "unsupported",
                        "engine: the heuristics do not offer this engine here");
    facts_row_reason(row, NULL, NULL, NULL, "engines[] lists the engines that they offer");
    return row;
}

/* The configuration that the library tries first: rules may have removed some. NULL: none is left.
 */
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

/* Replies with a row for each configuration and returns NULL, or returns the row with the reason
 * why there is none. */
static json_t *answer_configurations(job *j)
{
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    size_t count = fattn_decision_engine_count(j->decision, FATTN_MODE_A);
    /* The plan of a larger shape has its own list of engines: each entry of the case's list would
     * repeat the same run. */
    const bool own_list = j->problem.exec == FACTS_EXEC_OVERRIDE_SHAPE;
    if (j->problem.engine == FACTS_ENGINE_ALL && count > 0 && !own_list)
        answer_all(j);
    else if (j->problem.knob_count > 0)
        answer_pin(j);
    else if (j->problem.engine >= 0)
        return answer_engine(j, j->problem.engine);
    else
        answer(j, &options, first_left(j->decision), true);
    return NULL;
}

static void release(job *j)
{
    if (j->worker->lost)
        j->kept.count = 0; /* objects of a dead context are not touched */
    facts_timed_plans_destroy(&j->kept);
    facts_reference_destroy(&j->reference);
    fattn_decision_destroy(j->decision);
    fattn_score_mod_destroy(j->mod);
    free(j);
}

void facts_serve_forget(facts_worker *worker)
{
    if (worker->kept)
        release(worker->kept);
    worker->kept = NULL;
}

/* ---- a turn
 * -----------------------------------------------------------------------------------------------------------------
 */

static void add_gpu(json_t *turn, facts_worker *worker)
{
    if (worker->device != FACTS_DEVICE_GPU)
        return;
    if (!worker->watch)
        worker->watch = facts_watch_open(worker->info.device_uuid);
    if (worker->watch)
        json_object_set_new(
            turn, "gpu",
            facts_watch_read(worker->watch)); /* the GPU's clocks immediately after the launches */
    if (!worker->peak_measured)
        json_object_set_new(turn, "peak",
                            facts_measure_peak(worker->context, worker->stream, worker->cudnn_dir));
    worker->peak_measured = true;
}

static json_t *turn_of(const job *j)
{
    json_t *configs = json_array();
    for (int i = 0; i < j->kept.count; i++) {
        const facts_timed_plan *kept = &j->kept.at[i];
        json_t *us = json_array();
        for (int n = 0; n < FACTS_TURN_SAMPLES; n++)
            json_array_append_new(us, json_real(kept->us[n]));
        json_array_append_new(configs, json_pack("{s:i,s:i,s:o}", "config", kept->config,
                                                 "launches", kept->launches, "us", us));
    }
    return json_pack("{s:o,s:f,s:f}", "configs", configs, "flops", facts_flops(&j->problem),
                     "bytes", facts_bytes(&j->problem));
}

static void serve_turn(facts_worker *worker, const facts_request *request)
{
    job *j = worker->kept;
    if (!j || strcmp(j->request.text, request->text) != 0) {
        facts_reply_none(request->id);
        return;
    }
    facts_reply_stage(request->id, "exec", -1);
    const fattn_status status = facts_take_turn(&j->kept, &j->reference);
    worker->lost = worker->lost || status == FATTN_DEVICE_FAULT;
    if (status == FATTN_OK) {
        json_t *turn = turn_of(j);
        add_gpu(turn, worker);
        facts_reply_turn(request->id, turn, false);
    } else {
        facts_reply(json_pack("{s:I,s:b,s:b,s:b}", "id", (json_int_t)request->id, "none", 1, "last",
                              1, "bye", worker->lost));
    }
}

/* Below this size, one thread is as fast as two or faster: threads wait for each other about 50
 * times in a case. */
#define FLOPS_OF_ONE_THREAD 2e6

static void choose_threads(const facts_problem *problem)
{
    static int all;
    if (all == 0)
        all = omp_get_max_threads();
    omp_set_num_threads(facts_flops(problem) < FLOPS_OF_ONE_THREAD ? 1 : all);
}

/* ---- the request
 * ------------------------------------------------------------------------------------------------------------
 */

void facts_serve(facts_worker *worker, const facts_request *request)
{
    if (request->what == FACTS_DO_TIME) {
        serve_turn(worker, request);
        return;
    }
    facts_serve_forget(worker);
    job *j = calloc(1, sizeof *j);
    if (!j)
        _exit(FACTS_WORKER_NO_MEMORY); /* the supervisor writes a row */
    *j = (job){ .worker = worker, .request = *request, .config = -1, .depth = -1 };
    facts_spent_start();
    facts_plans_begin(worker->plans, request->plan_dir);
    json_t *row = resolve(j);
    row = row ? row : check_layouts(j);
    row = row ? row : furnish(j);
    if (!row)
        choose_threads(&j->problem);
    row = row ? row : write_standalone(j);
    row = row ? row : decide(j);
    note_decision(j);
    row = row ? row : answer_configurations(j);
    if (row)
        reply(j, row, true, worker->lost);
    facts_spend(FACTS_SPENT_RELEASE);
    facts_policy_end(j->depth);
    facts_plans_end(worker->plans);
    if (j->kept.count && !worker->lost)
        worker->kept = j;
    else
        release(j);
    facts_spend(FACTS_SPENT_OTHER);
}

static bool open_target(facts_worker **out, const facts_target_request *request, json_t **reply)
{
    static facts_worker worker;
    *out = &worker;
    return facts_target_open(&worker, request, reply);
}

static facts_health health(const facts_worker *worker)
{
    return worker->lost ? FACTS_HEALTH_LOST : worker->ran ? FACTS_HEALTH_USED : FACTS_HEALTH_FRESH;
}

const facts_worker_driver facts_attention_worker = { .language = &facts_attention_language,
                                                     .open = open_target,
                                                     .probe = facts_target_prove,
                                                     .close = facts_target_close,
                                                     .health = health,
                                                     .serve = facts_serve,
                                                     .forget = facts_serve_forget };
