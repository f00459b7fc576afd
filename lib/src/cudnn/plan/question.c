#include "question.h"

#include <stdio.h>
#include <string.h>

#include "builders.h"
#include "core/error.h"
#include "math/math_sum.h"
#include "policy/policy_stack.h"

static const int heuristic_modes[] = {
    [FATTN_MODE_A] = DNN_HEUR_MODE_A,
    [FATTN_MODE_B] = DNN_HEUR_MODE_B,
    [FATTN_MODE_FALLBACK] = DNN_HEUR_MODE_FALLBACK,
    [FATTN_MODE_INSTANT] = DNN_HEUR_MODE_INSTANT,
};

void fattn__offer_init(fattn__offer *out, const fattn__cudnn *api)
{
    memset(out, 0, offsetof(fattn__offer, configs));
    out->steps.api = api;
}

void fattn__offer_ask(fattn__offer *out, const fattn__cudnn *api, fattn__desc operation_graph,
                      fattn__desc description, fattn_mode mode)
{
    fattn__offer_init(out, api);
    fattn__steps *s = &out->steps;
    fattn__step_create(s, DNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &out->heuristics);
    fattn__step_set(s, out->heuristics, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                    DNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation_graph);
    fattn__step_set(s, out->heuristics, DNN_ATTR_ENGINEHEUR_MODE, DNN_TYPE_HEUR_MODE, 1,
                    &heuristic_modes[mode]);
    fattn__step_set_desc(s, out->heuristics, DNN_ATTR_ENGINEHEUR_DEVICEPROP, description);
    fattn__step_finalize(s, out->heuristics);
    if (s->status != DNN_STATUS_SUCCESS)
        return;
    int64_t count = 0;
    s->status =
        api->cudnnBackendGetAttribute(out->heuristics, DNN_ATTR_ENGINEHEUR_RESULTS,
                                      DNN_TYPE_BACKEND_DESCRIPTOR, 0, &out->candidates, NULL);
    int64_t wanted = out->candidates < FATTN__MAX_CONFIGS ? out->candidates : FATTN__MAX_CONFIGS;
    while (s->status == DNN_STATUS_SUCCESS && out->made < wanted) {
        fattn__step_create(s, DNN_BACKEND_ENGINECFG_DESCRIPTOR, &out->configs[out->made]);
        out->made += s->status == DNN_STATUS_SUCCESS;
    }
    if (s->status != DNN_STATUS_SUCCESS || out->made == 0)
        return;
    s->status =
        api->cudnnBackendGetAttribute(out->heuristics, DNN_ATTR_ENGINEHEUR_RESULTS,
                                      DNN_TYPE_BACKEND_DESCRIPTOR, out->made, &count, out->configs);
    if (s->status == DNN_STATUS_SUCCESS)
        out->count = count < out->made ? (int)count : out->made;
}

/* ---- a pin
 * -----------------------------------------------------------------------------------------------------------------
 */

static void pin_knob(fattn__offer *out, const fattn_knob *knob)
{
    fattn__steps *s = &out->steps;
    fattn__desc *choice = &out->knobs[out->knob_count];
    fattn__step_create(s, DNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, choice);
    if (s->status != DNN_STATUS_SUCCESS)
        return;
    out->knob_count++;
    fattn__step_set(s, *choice, DNN_ATTR_KNOB_CHOICE_KNOB_TYPE, DNN_TYPE_KNOB_TYPE, 1, &knob->type);
    fattn__step_set(s, *choice, DNN_ATTR_KNOB_CHOICE_KNOB_VALUE, DNN_TYPE_INT64, 1, &knob->value);
    fattn__step_finalize(s, *choice);
}

void fattn__offer_pin(fattn__offer *out, const fattn__cudnn *api, fattn__desc operation_graph,
                      fattn__desc description, int64_t engine, const fattn_knob *knobs,
                      int knob_count)
{
    fattn__offer_init(out, api);
    fattn__steps *s = &out->steps;
    fattn__step_create(s, DNN_BACKEND_ENGINE_DESCRIPTOR, &out->engine);
    fattn__step_set(s, out->engine, DNN_ATTR_ENGINE_OPERATION_GRAPH, DNN_TYPE_BACKEND_DESCRIPTOR, 1,
                    &operation_graph);
    fattn__step_set(s, out->engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64, 1, &engine);
    fattn__step_set_desc(s, out->engine, DNN_ATTR_ENGINE_DEVICEPROP, description);
    fattn__step_finalize(s, out->engine);
    for (int i = 0; i < knob_count && i < FATTN_MAX_KNOBS; i++)
        pin_knob(out, &knobs[i]);
    fattn__step_create(s, DNN_BACKEND_ENGINECFG_DESCRIPTOR, &out->configs[0]);
    if (s->status != DNN_STATUS_SUCCESS)
        return;
    out->made = 1;
    fattn__step_set(s, out->configs[0], DNN_ATTR_ENGINECFG_ENGINE, DNN_TYPE_BACKEND_DESCRIPTOR, 1,
                    &out->engine);
    if (out->knob_count > 0)
        fattn__step_set(s, out->configs[0], DNN_ATTR_ENGINECFG_KNOB_CHOICES,
                        DNN_TYPE_BACKEND_DESCRIPTOR, out->knob_count, out->knobs);
    fattn__step_finalize(s, out->configs[0]);
    out->candidates = 1;
    out->count = s->status == DNN_STATUS_SUCCESS ? 1 : 0;
}

void fattn__offer_release(fattn__offer *offer)
{
    const fattn__cudnn *api = offer->steps.api;
    while (offer->made > 0)
        api->cudnnBackendDestroyDescriptor(offer->configs[--offer->made]);
    while (offer->knob_count > 0)
        api->cudnnBackendDestroyDescriptor(offer->knobs[--offer->knob_count]);
    fattn__desc_destroy(api, offer->engine);
    fattn__desc_destroy(api, offer->heuristics);
    offer->engine = offer->heuristics = NULL;
    offer->count = 0;
}

/* ---- one configuration
 * -----------------------------------------------------------------------------------------------------
 */

void fattn__config_reader_init(fattn__config_reader *reader, const fattn__cudnn *api)
{
    memset(reader, 0, sizeof *reader);
    reader->api = api;
    if (api->cudnnBackendCreateDescriptor(DNN_BACKEND_ENGINE_DESCRIPTOR, &reader->engine) !=
        DNN_STATUS_SUCCESS)
        reader->engine = NULL;
    while (reader->knob_count < FATTN_MAX_KNOBS &&
           api->cudnnBackendCreateDescriptor(DNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                             &reader->knobs[reader->knob_count]) ==
               DNN_STATUS_SUCCESS)
        reader->knob_count++;
}

void fattn__config_reader_release(fattn__config_reader *reader)
{
    while (reader->knob_count > 0)
        reader->api->cudnnBackendDestroyDescriptor(reader->knobs[--reader->knob_count]);
    fattn__desc_destroy(reader->api, reader->engine);
    reader->engine = NULL;
}

/* Notes as bits; those past bit 31 are not known to any version. */
static uint32_t read_notes(const fattn__cudnn *api, fattn__desc engine, int name, int type)
{
    int notes[32];
    int64_t count = 0;
    uint32_t bits = 0;
    if (api->cudnnBackendGetAttribute(engine, name, type, 32, &count, notes) != DNN_STATUS_SUCCESS)
        return 0;
    for (int64_t i = 0; i < count && i < 32; i++) {
        if (notes[i] >= 0 && notes[i] < 32)
            bits |= 1u << notes[i];
    }
    return bits;
}

static void read_knobs(fattn__config_reader *reader, fattn__desc config, fattn_engine *out)
{
    const fattn__cudnn *api = reader->api;
    int64_t count = 0, one = 0;
    if (api->cudnnBackendGetAttribute(config, DNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                      DNN_TYPE_BACKEND_DESCRIPTOR, reader->knob_count, &count,
                                      reader->knobs) != DNN_STATUS_SUCCESS)
        return;
    for (int64_t i = 0; i < count && i < reader->knob_count; i++) {
        fattn_knob *knob = &out->knobs[out->knob_count];
        if (api->cudnnBackendGetAttribute(reader->knobs[i], DNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                          DNN_TYPE_KNOB_TYPE, 1, &one,
                                          &knob->type) == DNN_STATUS_SUCCESS &&
            api->cudnnBackendGetAttribute(reader->knobs[i], DNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                          DNN_TYPE_INT64, 1, &one,
                                          &knob->value) == DNN_STATUS_SUCCESS)
            out->knob_count++;
    }
}

bool fattn__config_read(fattn__config_reader *reader, fattn__desc config, fattn_engine *out)
{
    const fattn__cudnn *api = reader->api;
    int64_t count = 0;
    *out = (fattn_engine){ .index = -1, .workspace_bytes = -1 };
    if (reader->engine == NULL ||
        api->cudnnBackendGetAttribute(config, DNN_ATTR_ENGINECFG_ENGINE,
                                      DNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                      &reader->engine) != DNN_STATUS_SUCCESS ||
        api->cudnnBackendGetAttribute(reader->engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64,
                                      1, &count, &out->index) != DNN_STATUS_SUCCESS)
        return false;
    out->numerical_notes =
        read_notes(api, reader->engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE);
    out->behavior_notes =
        read_notes(api, reader->engine, DNN_ATTR_ENGINE_BEHAVIOR_NOTE, DNN_TYPE_BEHAVIOR_NOTE);
    read_knobs(reader, config, out);
    int64_t bytes = -1;
    if (api->cudnnBackendGetAttribute(config, DNN_ATTR_ENGINECFG_WORKSPACE_SIZE, DNN_TYPE_INT64, 1,
                                      &count, &bytes) == DNN_STATUS_SUCCESS &&
        count == 1)
        out->workspace_bytes = bytes;
    return true;
}

/* Statuses that are about this process and this machine, not about the problem. */
fattn_reason fattn__reason_of(const char *status)
{
    static const char *const environment[] = {
        "RUNTIME_PREREQUISITE_MISSING", "CUDA_DRIVER",
        "SUBLIBRARY_LOADING_FAILED",    "SUBLIBRARY_VERSION_MISMATCH",
        "INCOMPATIBLE_CUDART",          "COMPILATION_FAILED",
        "HOST_ALLOCATION_FAILED",       "DEVICE_ALLOCATION_FAILED",
    };
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++) {
        if (strstr(status, environment[i]) != NULL)
            return FATTN_REASON_ENVIRONMENT;
    }
    return FATTN_REASON_UNSUPPORTED;
}

/* Up to 9.12 an engine for another device says "sm_80 instructions or cuda TK < 12.0", and later
 * lines only repeat its status. The builds are for CUDA 12 and later. */
static bool is_of_another_device(const fattn_decision *of, int64_t engine)
{
    for (size_t i = 0; i < of->refusal_count; i++)
        if (of->refusals[i].engine == engine &&
            strstr(of->refusals[i].text, "sm_80 instructions or cuda TK") != NULL)
            return true;
    return false;
}

static fattn_reason reason_of(const fattn_decision *of, const fattn_refusal *refusal)
{
    if (strstr(refusal->status, "INCOMPATIBLE_CUDART") != NULL &&
        is_of_another_device(of, refusal->engine))
        return FATTN_REASON_UNSUPPORTED;
    return fattn__reason_of(refusal->status);
}

static const char *remedy_of(fattn_reason reason, const char *status, const char *text,
                             const char *condition)
{
    if (reason != FATTN_REASON_ENVIRONMENT)
        return "";
    if (strstr(text, "nvrtc") != NULL || strstr(condition, "nvrtc") != NULL)
        return "give the NVRTC of the build's own CUDA major";
    if (strstr(text, "libcuda") != NULL || strstr(status, "CUDA_DRIVER") != NULL)
        return "give a CUDA driver; for a described device, the null driver";
    if (strstr(status, "SUBLIBRARY") != NULL)
        return "use a folder that holds one whole build; with a three-library set, "
               "CUDNN_LIB_CONFIG=GRAPH_JIT_ONLY";
    if (strstr(status, "COMPILATION_FAILED") != NULL)
        return "use a newer NVRTC, with its libnvrtc-builtins beside it";
    return "ask the control case first: this target cannot be asked";
}

/* cuDNN refused: reads the reason from its log. `status` is that of the step; 0: every step
 * succeeded and nothing was offered. */
static fattn_status refuse(fattn_decision *out, const fattn__cudnn *api, int status,
                           const char *log)
{
    int first;
    TRY(fattn__log_refusals(out, log, &first));
    /* A line about the environment counts more than every other: with all libraries present, that
     * engine might have accepted. */
    for (size_t i = 0; i < out->refusal_count; i++) {
        if (reason_of(out, &out->refusals[i]) == FATTN_REASON_ENVIRONMENT) {
            first = (int)i;
            break;
        }
    }
    const char *name = status != DNN_STATUS_SUCCESS ? fattn__cudnn_status_name(api, status) : "";
    const char *text = "cuDNN offers no engine and gives no reason", *condition = "";
    if (first >= 0) {
        const fattn_refusal *refusal = &out->refusals[first];
        name = refusal->status[0] != '\0' ? refusal->status : name;
        text = refusal->text[0] != '\0' ? refusal->text : refusal->condition;
        condition = refusal->condition;
    }
    fattn_reason reason = first >= 0 && out->refusals[first].status[0] != '\0'
                              ? reason_of(out, &out->refusals[first])
                              : fattn__reason_of(name);
    /* The graph was accepted, so a bad parameter of the heuristics is the device description. */
    if (status / 1000 == DNN_STATUS_BAD_PARAM / 1000)
        reason = FATTN_REASON_ENVIRONMENT;
    return fattn__refuse(out, FATTN_BACKEND_CUDNN, reason, name, text,
                         remedy_of(reason, name, text, condition));
}

/* The graph itself was refused, by its builder or by cuDNN. */
static fattn_status refuse_graph(fattn_decision *out, const fattn__graph *g, const char *log)
{
    int first = -1;
    const char *name = "", *text = g->text;
    if (g->cudnn_status != DNN_STATUS_SUCCESS) {
        name = fattn__cudnn_status_name(g->api, g->cudnn_status);
        TRY(fattn__log_refusals(out, log, &first));
    }
    if (first >= 0)
        text = out->refusals[first].text;
    return fattn__refuse(out, FATTN_BACKEND_CUDNN, (fattn_reason)g->status, name, text, "");
}

static void init(fattn__question *q, const fattn_context *context)
{
    q->context = NULL;
    q->slot = NULL;
    q->graph_id = 0;
    fattn__offer_init(&q->offer, context->api);
    fattn__graph_init(&q->graph, context->api, context->info.sm);
}

fattn_status fattn__question_build(fattn__question *q, fattn_context *context,
                                   const fattn_problem *problem)
{
    init(q, context);
    fattn_status st = fattn__enter(context, &q->previous);
    if (st != FATTN_OK)
        return st;
    q->context = context;
    if (context->handles != NULL)
        st = fattn__handles_take(context->handles, context->api, NULL, &q->slot);
    if (st != FATTN_OK)
        return st;
    st = fattn__build(&q->graph, problem);
    q->graph_id = fattn__graph_id(&q->graph);
    return st;
}

void fattn__question_close(fattn__question *q)
{
    fattn__offer_release(&q->offer);
    fattn__graph_release(&q->graph);
    if (q->context == NULL)
        return;
    if (q->slot != NULL)
        fattn__handles_give(q->context->handles, q->slot);
    fattn__leave(q->context, q->previous);
}

/* Mode A, or the engine that the caller or the way to repeat names. */
static void ask_engines(fattn__question *q, const fattn_context *context,
                        const fattn_plan_options *options)
{
    const fattn__repeat *repeat = q->graph.repeat;
    if (options != NULL && options->knobs != NULL)
        fattn__offer_pin(&q->offer, context->api, q->graph.operation_graph, context->description,
                         options->engine, options->knobs, options->knob_count);
    else if (repeat != NULL && repeat->engine >= 0)
        fattn__offer_pin(&q->offer, context->api, q->graph.operation_graph, context->description,
                         repeat->engine, repeat->knobs, repeat->knob_count);
    else
        fattn__offer_ask(&q->offer, context->api, q->graph.operation_graph, context->description,
                         FATTN_MODE_A);
}

enum { OVERRIDES_FROM = 92100 };

static fattn_status allow_overrides(fattn__graph *g, const fattn_problem *p)
{
    const int version = fattn__graph_version(g);
    if (p->pass != FATTN_FORWARD || !fattn__is_unified(p))
        return fattn__graph_refuse(g, FATTN_UNSUPPORTED,
                                   "override_shapes: only the unified forward supports them");
    if (version < OVERRIDES_FROM)
        return fattn__graph_refuse(
            g, FATTN_UNSUPPORTED,
            "override_shapes: cuDNN supports them from 9.21 on; this is %d.%d.%d", version / 10000,
            version / 100 % 100, version % 100);
    g->overrides = true;
    return FATTN_OK;
}

/* ---- asked
 * -----------------------------------------------------------------------------------------------------------------------
 */

/* Mode A, or the engine that was pinned, offers a configuration. */
static bool offers_engine(fattn__question *q, const fattn_plan_options *options)
{
    ask_engines(q, q->context, options);
    return q->offer.steps.status == DNN_STATUS_SUCCESS && q->offer.count > 0;
}

/* The graph is built. */
static fattn_status put(fattn__question *q, const fattn_problem *problem,
                        const fattn_plan_options *options, fattn_decision *out,
                        const fattn__log_buffer *log)
{
    fattn_context *context = q->context;
    char last[16384]; /* cuDNN's words where it logged none */
    if (fattn__graph_finalize(&q->graph, fattn__question_handle(q)) != FATTN_OK)
        return refuse_graph(out, &q->graph, log->text != NULL ? log->text : "");
    if (q->graph.sum_count > 0) {
        fattn_status st = fattn__math_open(context);
        if (st != FATTN_OK)
            return fattn__refuse(out, FATTN_BACKEND_CUDNN, (fattn_reason)st, "", fattn_last_error(),
                                 "");
    }
    if (!offers_engine(q, options)) {
        if (log->text == NULL)
            context->api->cudnnGetLastErrorString(last, sizeof last);
        return refuse(out, context->api, q->offer.steps.status,
                      log->text != NULL ? log->text : last);
    }
    const fattn_rule *rule = fattn__policy_denies(context, problem, FATTN_BACKEND_CUDNN);
    if (rule != NULL)
        return fattn__refuse_by_rule(out, FATTN_BACKEND_CUDNN, rule, problem);
    fattn__accept(out, FATTN_BACKEND_CUDNN);
    return FATTN_OK;
}

static fattn_status ask(fattn__question *q, fattn_context *context, const fattn_problem *problem,
                        const fattn_plan_options *options, fattn_decision *out,
                        const fattn__log_buffer *log)
{
    fattn_status st = fattn__question_build(q, context, problem);
    if (st != FATTN_OK && fattn__graph_status(&q->graph) == FATTN_OK)
        return st;
    if (st == FATTN_OK && options != NULL && options->override_shapes)
        st = allow_overrides(&q->graph, problem);
    if (st != FATTN_OK)
        return refuse_graph(out, &q->graph, log->text != NULL ? log->text : "");
    fattn__count_asked((fattn_pass)problem->pass);
    return put(q, problem, options, out, log);
}

fattn_status fattn__question_ask(fattn__question *q, fattn_context *context,
                                 const fattn_problem *problem, const fattn_plan_options *options,
                                 fattn_decision *out)
{
    fattn__log_buffer log;
    /* Below 9.21 cuDNN would look for NVRTC by itself and take what the loader finds. */
    if (context->nvrtc == NULL && context->api->version < FATTN__NVRTC_INSIDE) {
        init(q, context);
        return fattn__refuse(out, FATTN_BACKEND_CUDNN, FATTN_REASON_ENVIRONMENT, "",
                             "this cuDNN needs NVRTC and none was given",
                             "give the NVRTC of the build's own CUDA major");
    }
    const fattn_rule *rule = fattn__policy_denies(context, problem, FATTN_BACKEND_CUDNN);
    if (rule != NULL && rule->unasked) {
        init(q, context);
        return fattn__refuse_by_rule(out, FATTN_BACKEND_CUDNN, rule, problem);
    }
    fattn__log_open(&log);
    fattn_status st = ask(q, context, problem, options, out, &log);
    fattn__log_close(&log);
    fattn__log_free(&log);
    return st;
}
