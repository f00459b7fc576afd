/* One case of attention: start to read at the table below. Each step fills `content` and the result; describe() makes the row. */
#include "attention_job.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "fattn/score_mod.h"
#include "numbers/fill/score_inputs.h"
#include "problem/case_problem.h"
#include "words/clock.h"
#include "worker/exec/runs.h"
#include "worker/gpu/worker_gpu.h"
#include "worker/row/row.h"
#include "worker/row/standalone.h"
#include "worker/target/loaded_target.h"
#include "worker/timing/time_turn.h"

typedef struct attention_job {
    facts_job job;
    facts_problem problem;
    bool begun;
    int depth; /* of the policies of this thread */
    fattn_score_mod *mod;
    fattn_decision *decision;
    facts_reference reference;  /* prepared when the first configuration is run */
    fattn_plan_options options; /* of the configuration in hand, as its plan, trial and content */
    fattn_plan *plan;
    facts_trial_options trial_options;
    facts_runs runs;
    facts_trial trial;
    facts_content content;
    facts_error not_written; /* why a file of the user is missing */
    facts_timed_plans kept;
} attention_job;

static attention_job *of(facts_job *job)
{
    return (attention_job *)job;
}

/* A failed call. A failed build, launch or plan is the verdict: only a refusal has a class, and a lack of memory, because it may
 * be asked again. */
static bool fail(facts_job *job, fattn_status status)
{
    const bool classed = status >= FATTN_BAD_PROBLEM && status <= FATTN_NO_MEMORY;
    return facts_job_end(job, facts_verdict_of(status), classed ? fattn_status_name(status) : NULL,
                         fattn_last_error());
}

static bool refuse_call(facts_job *job, fattn_status status)
{
    fail(job, status);
    return facts_job_refuse(job, job->result.reason_class, fattn_last_error());
}

/* ---- begin
 * ------------------------------------------------------------------------------------------------------------------
 */

/* The score modification and the policy of the case: the question needs both. */
static bool furnish(attention_job *j)
{
    facts_error error = { 0 };
    fattn_status status = facts_mod_create(&j->mod, &j->problem);
    if (status != FATTN_OK)
        return facts_job_refuse(&j->job, fattn_status_name(status), fattn_last_error());
    j->problem.ask.score_mod = j->mod;
    if (j->problem.exec >= FACTS_EXEC_GRAPH && j->problem.exec <= FACTS_EXEC_GRAPH_NATIVE)
        j->problem.ask.capture = 1;
    status = facts_policy_begin(&j->depth, j->job.worker, j->problem.policy, &error);
    return status == FATTN_OK || facts_job_refuse(&j->job, fattn_status_name(status), error.text);
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

/* The files of a program are written before cuDNN is asked, because the question may end the process. */
static bool begin(facts_job *job, const facts_case *c)
{
    attention_job *j = of(job);
    facts_error error = { 0 };
    *j = (attention_job){ .job = *job, .begun = true, .depth = FACTS_NO_POLICY };
    facts_plans_begin(job->worker->plans, job->request.plan_dir);
    const facts_resolve_status resolution = facts_problem_resolve(&j->problem, c, &error);
    if (resolution != FACTS_RESOLVED)
        return facts_job_refuse(
            job, resolution == FACTS_NOT_IMPLEMENTED ? "internal" : "bad_problem", error.text);
    if (j->problem.fill == FACTS_FILL_OTHER)
        return facts_job_refuse(job, "internal", "fill: this one is not implemented yet");
    /* Without a layout of an output, the library derives one; for inputs with stride 0 it is checked here. */
    if (!facts_layouts_hold(&j->problem, &error))
        return facts_job_end(job, FACTS_VERDICT_WRONG, "internal", error.text);
    if (!furnish(j))
        return false;
    choose_threads(&j->problem);
    if (!job->request.standalone[0] ||
        facts_standalone(job->worker, &j->problem, &job->request, &j->not_written))
        return true;
    return facts_job_end(job, FACTS_VERDICT_INCONCLUSIVE, "environment", j->not_written.text);
}

/* ---- decide
 * -----------------------------------------------------------------------------------------------------------------
 */

/* Is the backend that answered allowed, and can it be called as the case demands? */
static bool check_backend(attention_job *j)
{
    const fattn_backend backend = fattn_decision_backend(j->decision);
    if (!facts_policy_allows(j->job.worker, j->problem.policy, backend))
        return facts_job_end(&j->job, FACTS_VERDICT_WRONG, "internal",
                             "policy: a backend answered that the policy does not name");
    const char *text = facts_exec_refuses(&j->problem, backend, j->job.worker);
    return !text || facts_job_refuse(&j->job, "unsupported", text);
}

/* The question was refused, but the call would have been accepted. Checked where compiling was
 * wanted; a refusal costs no compilation. */
static bool is_refused_in_vain(const attention_job *j)
{
    fattn_reason reason = fattn_decision_reason(j->decision);
    bool target_refused = reason == FATTN_REASON_UNSUPPORTED || reason == FATTN_REASON_POLICY;
    fattn_plan *plan = NULL;
    if (!target_refused || j->job.request.what == FACTS_DO_DECIDE)
        return false;
    bool made = fattn_plan_create(&plan, j->job.worker->context, &j->problem.ask, NULL) == FATTN_OK;
    fattn_plan_destroy(plan);
    return made;
}

static bool is_too_old(const facts_worker *worker)
{
    return worker->device != FACTS_DEVICE_CPU && worker->info.sm < 80;
}

static bool decide(facts_job *job)
{
    attention_job *j = of(job);
    facts_error error = { 0 };
    uint32_t ask = FATTN_ASK_A;
    if (job->request.explain)
        ask |= FATTN_ASK_B | FATTN_ASK_FALLBACK | FATTN_ASK_INSTANT;
    const double since = facts_now_ms();
    fattn_status status = fattn_decide(&j->decision, job->worker->context, &j->problem.ask, ask);
    j->content.decide_us = (facts_now_ms() - since) * 1e3;
    if (!j->decision)
        return fail(job, status);
    j->content.decision = j->decision;
    if (job->request.standalone[0])
        (void)facts_standalone_decided(j->decision, job->request.standalone, &error);
    if (fattn_decision_supported(j->decision))
        return check_backend(j);
    if (is_refused_in_vain(j))
        return facts_job_end(job, FACTS_VERDICT_WRONG, "internal",
                             "cuDNN refused the case in the decision but compiled a plan for it");
    job->result.verdict = fattn_decision_reason(j->decision) == FATTN_REASON_ENVIRONMENT
                              ? FACTS_VERDICT_INCONCLUSIVE
                              : FACTS_VERDICT_UNSUPPORTED;
    if (is_too_old(job->worker) && job->result.verdict == FACTS_VERDICT_UNSUPPORTED) {
        snprintf(job->result.text, sizeof job->result.text,
                 "cuDNN's attention needs sm_80 or newer; this GPU is sm_%d (cuDNN: %.400s)",
                 job->worker->info.sm, fattn_decision_text(j->decision));
        job->result.remedy = "use a newer GPU";
    }
    return false;
}

/* ---- one configuration
 * ------------------------------------------------------------------------------------------------------
 */

static bool is_pinned(const attention_job *j)
{
    return j->problem.knob_count > 0;
}

/* The entry of mode A with this number; index < 0: the first that no rule has removed, which the library tries first. NULL: there
 * is none. */
static const fattn_engine *offered(const attention_job *j, int64_t index)
{
    const size_t count = fattn_decision_engine_count(j->decision, FATTN_MODE_A);
    for (size_t i = 0; i < count; i++) {
        const fattn_engine *engine = fattn_decision_engine(j->decision, FATTN_MODE_A, i);
        if (index < 0 ? !engine->removed : engine->index == index)
            return engine;
    }
    return NULL;
}

/* With engine=all each entry of the list; but the plan of a larger shape has a list of its own, and each entry of the case's list
 * would repeat the same run. */
static int32_t configurations(facts_job *job, int32_t *first)
{
    attention_job *j = of(job);
    const size_t count = fattn_decision_engine_count(j->decision, FATTN_MODE_A);
    *first = 0;
    if (j->problem.engine == FACTS_ENGINE_ALL && count > 0 &&
        j->problem.exec != FACTS_EXEC_OVERRIDE_SHAPE)
        return (int32_t)count;
    *first = -1;
    if (is_pinned(j) || j->problem.engine < 0)
        return 1;
    const fattn_engine *engine = offered(j, j->problem.engine);
    if (engine) {
        *first = engine->config;
        return 1;
    }
    facts_job_refuse(job, "unsupported", "engine: the heuristics do not offer this engine here");
    job->result.remedy = "engines[] lists the engines that they offer";
    return 0;
}

/* A rule of FACTS removed this configuration from the list: a refusal, with the text of the rule.
 * This costs a question but no compilation. */
static bool report_removed(attention_job *j)
{
    fattn_plan *plan = NULL;
    const fattn_status status =
        fattn_plan_create(&plan, j->job.worker->context, &j->problem.ask, &j->options);
    const bool made = status == FATTN_OK,
               its_own = made && fattn_plan_backend(plan) == FATTN_BACKEND_CUDNN;
    fattn_plan_destroy(plan);
    if (!made)
        return refuse_call(&j->job, status);
    if (!its_own) /* policy=any: the backend in the request may give the answer of another backend */
        return facts_job_refuse(
            &j->job, "policy",
            "a rule removed this configuration; another backend answers in its place");
    j->job.result.refused = true;
    return facts_job_end(&j->job, FACTS_VERDICT_WRONG, "internal",
                         "a rule removed this configuration, but FACTS made a plan for it");
}

static bool choose(facts_job *job)
{
    attention_job *j = of(job);
    const fattn_engine *engine = NULL;
    j->options = (fattn_plan_options)FATTN_PLAN_OPTIONS_INIT;
    if (is_pinned(j)) { /* an engine with these knobs, even if the heuristics do not offer it */
        j->options.engine = j->problem.engine;
        j->options.knobs = j->problem.knob;
        j->options.knob_count = j->problem.knob_count;
    } else if (j->problem.engine >= 0) {
        j->options.engine = j->problem.engine;
        engine = offered(j, j->problem.engine);
    } else if (job->config >= 0) {
        j->options.config = job->config;
        engine = fattn_decision_engine(j->decision, FATTN_MODE_A, (size_t)job->config);
    } else {
        engine = offered(j, -1);
    }
    j->content.asked = &j->problem;
    j->content.offer = engine;
    return !(engine && engine->removed && !j->problem.ask.guards_off) || report_removed(j);
}

/* Is the compiled configuration the one that the decision has at this index? */
static bool is_as_decided(const attention_job *j)
{
    const fattn_engine *made = fattn_plan_engine(j->plan);
    if (is_pinned(j)) /* outside the offers of the heuristics */
        return true;
    if (fattn_plan_backend(j->plan) != FATTN_BACKEND_CUDNN || made->mode != FATTN_MODE_A ||
        made->config < 0)
        return true;
    const fattn_engine *offer =
        fattn_decision_engine(j->decision, FATTN_MODE_A, (size_t)made->config);
    return offer && offer->index == made->index && offer->knob_count == made->knob_count &&
           offer->workspace_bytes == made->workspace_bytes &&
           memcmp(offer->knobs, made->knobs, (size_t)made->knob_count * sizeof *made->knobs) == 0;
}

static bool report_refused_plan(attention_job *j, fattn_status status)
{
    char text[600];
    if (is_pinned(j)) /* outside the offers of the heuristics: it may be refused on its own */
        return refuse_call(&j->job, status);
    /* The question was accepted and the call refused: they were not the same problem. */
    snprintf(text, sizeof text, "decided as supported, then refused (%s): %.500s",
             fattn_status_name(status), fattn_last_error());
    return facts_job_end(&j->job, FACTS_VERDICT_BUILD_FAIL, NULL, text);
}

/* A plan needs no launch: an earlier case broke the device, or FACTS itself. */
static bool report_broken_device(facts_job *job)
{
    char text[600];
    snprintf(text, sizeof text, "before an engine ran: %.550s", fattn_last_error());
    job->worker->lost = true;
    job->result.again = job->worker->ran;
    return facts_job_end(job, FACTS_VERDICT_INCONCLUSIVE, "internal", text);
}

static bool prepare(facts_job *job)
{
    attention_job *j = of(job);
    facts_plans *plans = job->worker->plans;
    const fattn_status status = facts_plan_get(&j->plan, plans, job->worker->context,
                                               &j->problem.ask, &j->options, &j->content.loaded);
    if (status >= FATTN_BAD_PROBLEM && status <= FATTN_INTERNAL && status != FATTN_ENVIRONMENT)
        return report_refused_plan(j, status);
    if (status == FATTN_DEVICE_FAULT)
        return report_broken_device(job);
    if (status != FATTN_OK)
        return fail(job, status);
    j->content.plan = j->plan;
    if (!is_as_decided(j))
        return facts_job_end(
            job, FACTS_VERDICT_BUILD_FAIL, NULL,
            "cuDNN compiled another configuration than it decided: engine, knob or "
            "workspace differ");
    if (job->request.what == FACTS_DO_PLAN && plans->folder >= 0)
        facts_further_plans(job->worker, &j->problem, fattn_plan_backend(j->plan));
    return true;
}

static void end_trial(attention_job *j)
{
    const facts_trial *trial = &j->trial;
    facts_trial_end(&j->runs);
    facts_job_end(&j->job, facts_trial_verdict(trial),
                  trial->facts_failed         ? "internal"
                  : trial->status != FATTN_OK ? fattn_status_name(trial->status)
                                              : NULL,
                  trial->text);
    j->job.result.again = trial->again;
    j->content.trial = trial;
    j->content.reference = &j->reference;
}

static bool execute(facts_job *job)
{
    attention_job *j = of(job);
    j->trial_options = (facts_trial_options){ .worker = job->worker,
                                              .problem = &j->problem,
                                              .once = job->request.trace,
                                              .stage = job->say,
                                              .owner = job };
    if (facts_trial_execute(&j->runs, &j->trial, &j->reference, j->plan, &j->trial_options))
        return true;
    end_trial(j);
    return false;
}

static void judge(facts_job *job)
{
    attention_job *j = of(job);
    facts_trial_judge(&j->runs);
    end_trial(j);
}

/* ---- the reply
 * ---------------------------------------------------------------------------------------------------------------
 */

/* Training needs the forward, too. */
static void describe_forward(json_t *row, fattn_context *context, const facts_case *backward)
{
    char name[FACTS_NAME_MAX];
    fattn_decision *decision = facts_decide_forward(name, context, backward);
    if (decision && !fattn_decision_supported(decision)) {
        json_t *forward = json_pack("{s:s}", "case", name);
        facts_row_decision(forward, decision);
        json_object_set_new(row, "forward", forward);
    }
    fattn_decision_destroy(decision);
}

static void describe(facts_job *job, json_t *row)
{
    attention_job *j = of(job);
    const facts_request *request = &job->request;
    facts_plans *plans = job->worker->plans;
    facts_row_describe(row, &j->content);
    facts_case c;
    facts_error error;
    if (request->explain && j->decision && job->result.verdict != FACTS_VERDICT_INCONCLUSIVE &&
        !is_too_old(job->worker) && facts_case_parse(&c, request->text, &error)) {
        if (!fattn_decision_supported(j->decision))
            facts_row_nearest(row, job->worker->context, &c, &j->problem.ask);
        else if (j->problem.ask.pass == FATTN_BACKWARD)
            describe_forward(row, job->worker->context, &c);
    }
    if (j->content.trial && j->trial.prepared && j->trial.status == FATTN_OK) {
        if (request->explain)
            json_object_set_new(row, "pictures", facts_pictures(&j->trial, &j->reference));
        if (request->dump[0])
            json_object_set_new(
                row, "dumped",
                facts_dump(&j->reference, request->dump, request->text, &j->not_written));
    }
    facts_put_text(row, "not_written", j->not_written.text);
    facts_put_text(row, "not_loaded",
                   plans->not_loaded); /* a file of plan_dir that could not be used */
    facts_put_text(row, "not_kept", plans->not_kept);
    plans->not_loaded[0] = plans->not_kept[0] = '\0';
}

/* ---- the end
 * -----------------------------------------------------------------------------------------------------------------
 */

static void finish(attention_job *j)
{
    if (!j->begun)
        return;
    facts_policy_end(j->depth);
    facts_plans_end(j->job.worker->plans);
    j->begun = false;
}

static bool leave(facts_job *job, bool keep, bool last)
{
    attention_job *j = of(job);
    facts_worker *worker = job->worker;
    const bool kept =
        keep && j->plan && j->problem.exec == FACTS_EXEC_EAGER && j->kept.count < FACTS_TIMED_PLANS;
    if (kept)
        j->kept.at[j->kept.count++] = (facts_timed_plan){ .plan = j->plan, .config = job->config };
    else
        fattn_plan_destroy(j->plan);
    j->plan = NULL;
    j->not_written = (facts_error){ 0 };
    j->content = (facts_content){ .decision = j->decision, .decide_us = j->content.decide_us };
    /* In a run with turns, the workers of all other builds need the memory while this one waits. */
    if (last && job->request.keep && worker->gpu && !worker->lost)
        (void)facts_gpu_trim(worker->gpu);
    if (last)
        finish(j);
    return kept;
}

static void end(facts_job *job)
{
    attention_job *j = of(job);
    finish(j);
    if (job->worker->lost)
        j->kept.count = 0; /* objects of a dead context are not touched */
    facts_timed_plans_destroy(&j->kept);
    facts_reference_destroy(&j->reference);
    fattn_decision_destroy(j->decision);
    fattn_score_mod_destroy(j->mod);
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

static json_t *turn(facts_job *job)
{
    attention_job *j = of(job);
    const fattn_status status = facts_take_turn(&j->kept, &j->reference);
    job->worker->lost = job->worker->lost || status == FATTN_DEVICE_FAULT;
    if (status != FATTN_OK)
        return NULL;
    json_t *configs = json_array();
    for (int i = 0; i < j->kept.count; i++) {
        const facts_timed_plan *kept = &j->kept.at[i];
        json_t *us = json_array();
        for (int n = 0; n < FACTS_TURN_SAMPLES; n++)
            json_array_append_new(us, json_real(kept->us[n]));
        json_array_append_new(configs, json_pack("{s:i,s:i,s:o}", "config", kept->config,
                                                 "launches", kept->launches, "us", us));
    }
    json_t *out = json_pack("{s:o,s:f,s:f}", "configs", configs, "flops", facts_flops(&j->problem),
                            "bytes", facts_bytes(&j->problem));
    add_gpu(out, job->worker);
    return out;
}

/* ---- the driver
 * --------------------------------------------------------------------------------------------------------------
 */

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

const facts_worker_driver facts_attention_worker = {
    .language = &facts_attention_language,
    .job_bytes = sizeof(attention_job),
    .open = open_target,
    .probe = facts_target_prove,
    .health = health,
    .close = facts_target_close,
    .begin = begin,
    .decide = decide,
    .configurations = configurations,
    .choose = choose,
    .prepare = prepare,
    .execute = execute,
    .judge = judge,
    .describe = describe,
    .leave = leave,
    .turn = turn,
    .end = end,
};
