#include "cudnn_plan.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "builders.h"
#include "core/error.h"
#include "math/math_sum.h"
#include "policy/policy_stack.h"
#include "policy/rules.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"
#include "question.h"

enum { WORKSPACE_ALIGNMENT = 256 };

/* From this version on a CUDA graph may hold the plan that it was recorded from. cuDNN's default is
 * one for each graph. The library sets it anyway, because the environment can change it and a saved
 * plan does not contain it. */
enum { RETENTION_FROM = 92800, RETENTION = DNN_CUDA_GRAPH_RETENTION_PER_GRAPH };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* NVRTC older than this decides yes for sm_100 and sm_120 and cannot compile. */
enum { OLDEST_GOOD_NVRTC = 12090 };

/* An offered configuration does not compile; `last` is cuDNN's sentence. Finds the cause. */
static fattn_status build_failed(const fattn__cudnn *api, int status, const char *last,
                                 const fattn_engine *engine)
{
    const char *name = fattn__cudnn_status_name(api, status);
    fattn_status st =
        fattn__reason_of(name) == FATTN_REASON_ENVIRONMENT ? FATTN_ENVIRONMENT : FATTN_BUILD_FAILED;
    const bool compiling = status == DNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED,
               inside = api->version >= FATTN__NVRTC_INSIDE;
    if (compiling && !inside && fattn__nvrtc_prove(&api->nvrtc) != FATTN_OK)
        return FATTN_ENVIRONMENT;
    if (compiling && (inside || api->nvrtc.version >= OLDEST_GOOD_NVRTC))
        st = FATTN_BUILD_FAILED;
    return fattn__fail(st, "engine %lld (configuration %d) was offered and cannot be built: %s%s%s",
                       (long long)engine->index, engine->config, name, last[0] != '\0' ? ": " : "",
                       last);
}

/* A finalized plan: of a configuration, or where `config` is NULL of a text. On failure *out may
 * still have to be destroyed. */
static int make_plan(fattn__desc *out, const fattn_context *context, fattn__handle handle,
                     fattn__desc config, const char *text, size_t count)
{
    const int retention = RETENTION;
    fattn__steps s = { .api = context->api };
    fattn__step_create(&s, DNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, out);
    if (handle != NULL)
        fattn__step_set(&s, *out, DNN_ATTR_EXECUTION_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &handle);
    fattn__step_set_desc(&s, *out, DNN_ATTR_EXECUTION_PLAN_DEVICEPROP, context->description);
    if (context->api->version >= RETENTION_FROM)
        fattn__step_set(&s, *out, DNN_ATTR_EXECUTION_PLAN_CUDA_GRAPH_RETENTION,
                        DNN_TYPE_CUDA_GRAPH_RETENTION, 1, &retention);
    fattn__step_set_desc(&s, *out, DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (config == NULL)
        fattn__step_set(&s, *out, DNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, DNN_TYPE_CHAR,
                        (int64_t)count, text);
    fattn__step_finalize(&s, *out);
    return s.status;
}

/* An estimate of the memory that cuDNN holds for a plan: the size of its text, which is mostly the
 * compiled kernels (0.3 ms). */
static size_t text_bytes(const fattn__cudnn *api, fattn__desc desc)
{
    int64_t count = 0;
    int status = api->cudnnBackendGetAttribute(desc, DNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                               DNN_TYPE_CHAR, 0, &count, NULL);
    return status == DNN_STATUS_SUCCESS && count > 0 ? (size_t)count : 0;
}

static void free_compiled(const fattn__cudnn *api, fattn__compiled *compiled, bool alive)
{
    if (compiled == NULL)
        return;
    free_compiled(api, compiled->before, alive);
    if (alive)
        fattn__desc_destroy(api, compiled->desc);
    free(compiled);
}

/* Takes a finalized descriptor, which the plan owns from then on (also after a failure), with the
 * bindings of its graph. *bytes: of workspace. */
static fattn_status take(fattn__compiled **out, size_t *bytes, const fattn__cudnn *api,
                         fattn__desc desc, const fattn__graph *g)
{
    int64_t engine_bytes = 0, count = 0;
    int status = api->cudnnBackendGetAttribute(desc, DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                               DNN_TYPE_INT64, 1, &count, &engine_bytes);
    fattn__compiled *compiled = calloc(1, sizeof *compiled);
    *out = NULL;
    if (status != DNN_STATUS_SUCCESS || engine_bytes < 0 || compiled == NULL) {
        fattn__desc_destroy(api, desc);
        free(compiled);
        return compiled == NULL ? fattn__fail(FATTN_NO_MEMORY, "no memory for a plan")
                                : fattn__fail(FATTN_INTERNAL,
                                              "cuDNN does not give the workspace size of the plan");
    }
    compiled->desc = desc;
    compiled->binding_count = g->binding_count;
    memcpy(compiled->bindings, g->bindings, (size_t)g->binding_count * sizeof *g->bindings);
    compiled->overrides = g->overrides;
    compiled->sum_count = g->sum_count;
    memcpy(compiled->sums, g->sums, (size_t)g->sum_count * sizeof *g->sums);
    for (int i = 0; i < g->binding_count; i++)
        compiled->uids[i] = g->bindings[i].uid;
    /* Memory that the caller aligned stays aligned for the engine. */
    compiled->scratch_bytes =
        (g->scratch_bytes + WORKSPACE_ALIGNMENT - 1) / WORKSPACE_ALIGNMENT * WORKSPACE_ALIGNMENT;
    *bytes = compiled->scratch_bytes + (size_t)engine_bytes;
    *out = compiled;
    return FATTN_OK;
}

static fattn_status adopt(fattn_plan *plan, fattn__desc desc, const fattn__question *q)
{
    fattn__compiled *compiled;
    TRY(take(&compiled, &plan->workspace_bytes, plan->context->api, desc, &q->graph));
    compiled->graph = q->graph_id;
    plan->state = compiled;
    plan->host_bytes += sizeof *compiled + text_bytes(plan->context->api, desc);
    return FATTN_OK;
}

static fattn_status compile(fattn_plan *plan, const fattn__question *q, int config,
                            const fattn_engine *engine)
{
    const fattn__cudnn *api = plan->context->api;
    fattn__desc desc = NULL;
    char last[512] = "";
    const int status = make_plan(&desc, plan->context, fattn__question_handle(q),
                                 q->offer.configs[config], NULL, 0);
    if (status == DNN_STATUS_SUCCESS) {
        plan->config = *engine;
        return adopt(plan, desc, q);
    }
    api->cudnnGetLastErrorString(last, sizeof last);
    fattn_status st = build_failed(api, status, last, engine);
    fattn__desc_destroy(api, desc);
    return st;
}

static fattn_status removed(const fattn_plan *plan, const fattn_engine *engine,
                            const fattn_rule *rule)
{
    char text[512];
    fattn__rule_text(text, sizeof text, rule, &plan->problem);
    return fattn__fail(FATTN_POLICY, "engine %lld (configuration %d) is removed by %s",
                       (long long)engine->index, engine->config, text);
}

/* Tries the offered configurations that the options allow, in the order of mode A. */
static fattn_status compile_first(fattn_plan *plan, const fattn__question *q,
                                  const fattn_plan_options *options)
{
    fattn__config_reader reader;
    fattn_status st = FATTN_OK;
    bool tried = false;
    fattn__config_reader_init(&reader, plan->context->api);
    for (int i = 0; i < q->offer.count && plan->state == NULL; i++) {
        fattn_engine engine;
        fattn__config_read(&reader, q->offer.configs[i], &engine);
        engine.mode = FATTN_MODE_A;
        engine.config = i;
        bool any = options->config == FATTN_ENGINE_AUTO && options->engine == FATTN_ENGINE_AUTO;
        bool this_one = options->config != FATTN_ENGINE_AUTO ? options->config == i
                                                             : options->engine == engine.index;
        if (!any && !this_one)
            continue;
        tried = true;
        const fattn_rule *rule =
            fattn__policy_removes(plan->context, &plan->problem, FATTN_BACKEND_CUDNN, &engine);
        if (rule != NULL)
            st = removed(plan, &engine, rule);
        else
            st = compile(plan, q, i, &engine);
        if (!any)
            break;
    }
    fattn__config_reader_release(&reader);
    if (!tried && options->config != FATTN_ENGINE_AUTO)
        return fattn__fail(FATTN_UNSUPPORTED, "mode A offers %d configurations, no number %d",
                           q->offer.count, options->config);
    if (!tried)
        return fattn__fail(FATTN_UNSUPPORTED, "mode A does not offer engine %lld",
                           (long long)options->engine);
    return st;
}

/* ---- what is rotated before a backward
 * ------------------------------------------------------------------------------------- */

/* No engine only rotates, and the unified backward takes rotated tensors. So the unified forward of
 * the same tensors writes them to the front of the workspace, and the backward reads them there.
 * Its O goes to the workspace too. */
static fattn_status build_rotations(fattn__graph *g, const fattn_problem *p)
{
    fattn_problem forward = FATTN_PROBLEM_INIT, resolved;
    forward.dtype = p->dtype, forward.impl = FATTN_IMPL_UNIFIED, forward.rope = 1,
    forward.rope_dim = p->rope_dim;
    forward.batch = p->batch, forward.seq_q = p->seq_q, forward.seq_kv = p->seq_kv;
    forward.heads_q = p->heads_q, forward.heads_k = p->heads_k, forward.heads_v = p->heads_v;
    forward.dim_qk = p->dim_qk, forward.dim_v = p->dim_v;
    memcpy(forward.q_strides, p->q_strides, sizeof forward.q_strides);
    memcpy(forward.k_strides, p->k_strides, sizeof forward.k_strides);
    memcpy(forward.v_strides, p->v_strides, sizeof forward.v_strides);
    fattn_status st = fattn_problem_resolve(&forward, &resolved);
    if (st == FATTN_OK)
        st = fattn__build(g, &resolved);
    for (int i = 0; i < g->binding_count && st == FATTN_OK; i++) {
        if (g->bindings[i].slot != FATTN__SLOT_O)
            continue;
        const fattn__shape o = fattn__problem_shape(&resolved, FATTN__ROLE_O);
        g->bindings[i].slot = FATTN__SLOT_SCRATCH;
        g->bindings[i].offset = g->scratch_bytes;
        g->scratch_bytes +=
            (size_t)(o.dim[0] * o.dim[1] * o.dim[2] * o.dim[3] * fattn__dtype_bytes(o.dtype) + 15) /
            16 * 16;
    }
    return st;
}

/* The first configuration that compiles. */
static fattn_status compile_rotations(fattn__compiled **out, size_t *bytes, const fattn_plan *plan,
                                      fattn__handle handle, fattn__graph *g)
{
    const fattn__cudnn *api = plan->context->api;
    fattn__offer offer;
    fattn_status st =
        fattn__fail(FATTN_BUILD_FAILED, "rope: no engine rotates Q and K before the backward");
    fattn__offer_ask(&offer, api, g->operation_graph, plan->context->description, FATTN_MODE_A);
    for (int i = 0; i < offer.count && st != FATTN_OK; i++) {
        fattn__desc desc = NULL;
        const int status = make_plan(&desc, plan->context, handle, offer.configs[i], NULL, 0);
        if (status == DNN_STATUS_SUCCESS)
            st = take(out, bytes, api, desc, g);
        else
            fattn__desc_destroy(api, desc);
    }
    fattn__offer_release(&offer);
    return st;
}

static fattn_status put_rotations_before(fattn_plan *plan, fattn__handle handle)
{
    fattn__compiled *compiled = plan->state;
    fattn__graph *g = malloc(sizeof *g);
    size_t bytes = 0;
    if (g == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a graph");
    fattn__graph_init(g, plan->context->api, plan->context->info.sm);
    fattn_status st = build_rotations(g, &plan->problem);
    if (st == FATTN_OK)
        st = fattn__graph_finalize(g, handle);
    if (st == FATTN_OK)
        st = compile_rotations(&compiled->before, &bytes, plan, handle, g);
    if (st == FATTN_OK && bytes > plan->workspace_bytes)
        plan->workspace_bytes = bytes;
    fattn__graph_release(g);
    free(g);
    return st;
}

fattn_status fattn__cudnn_setup(fattn_plan *plan, const fattn_plan_options *options)
{
    double start = now_ms();
    fattn__question q;
    fattn_decision *answer = calloc(1, sizeof *answer);
    if (answer == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a plan");
    fattn_status st = fattn__question_ask(&q, plan->context, &plan->problem, options, answer);
    if (st == FATTN_OK && !fattn_decision_supported(answer))
        st = fattn__fail((fattn_status)answer->reason, "%s%s%s", answer->message.status,
                         answer->message.status[0] != '\0' ? ": " : "", answer->message.text);
    if (st == FATTN_OK)
        st = compile_first(plan, &q, options);
    if (st == FATTN_OK && plan->problem.rope && plan->problem.pass == FATTN_BACKWARD)
        st = put_rotations_before(plan, fattn__question_handle(&q));
    if (st != FATTN_OK && plan->state != NULL) {
        free_compiled(plan->context->api, plan->state, true);
        plan->state = NULL;
    }
    fattn__question_close(&q);
    fattn_decision_destroy(answer);
    plan->ms = now_ms() - start;
    return st;
}

bool fattn__cudnn_overrides(const fattn_plan *plan)
{
    return ((const fattn__compiled *)plan->state)->overrides;
}

void fattn__cudnn_done(fattn_plan *plan)
{
    fattn__compiled *compiled = plan->state;
    struct CUctx_st *previous;
    if (compiled == NULL)
        return;
    const bool alive =
        fattn__context_alive(plan->context) && fattn__enter(plan->context, &previous) == FATTN_OK;
    free_compiled(plan->context->api, compiled, alive);
    if (alive)
        fattn__leave(plan->context, previous);
    plan->state = NULL;
}

/* ---- written and read
 * ------------------------------------------------------------------------------------------------------
 */

fattn_status fattn__cudnn_write(const fattn_plan *plan, char **text, size_t *count)
{
    const fattn__cudnn *api = plan->context->api;
    const fattn__compiled *compiled = plan->state;
    int64_t size = 0, got = 0;
    *text = NULL;
    *count = 0;
    if (compiled->before != NULL)
        return fattn__fail(FATTN_UNSUPPORTED,
                           "a backward with rope is two graphs: it is not saved");
    int status = api->cudnnBackendGetAttribute(
        compiled->desc, DNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, DNN_TYPE_CHAR, 0, &size, NULL);
    if (status != DNN_STATUS_SUCCESS || size <= 0)
        return fattn__fail(FATTN_INTERNAL, "cuDNN cannot save this plan: %s",
                           fattn__cudnn_status_name(api, status));
    char *json = malloc((size_t)size + 1);
    if (json == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a plan of %lld bytes", (long long)size);
    status =
        api->cudnnBackendGetAttribute(compiled->desc, DNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                      DNN_TYPE_CHAR, size, &got, json);
    if (status != DNN_STATUS_SUCCESS || got <= 0 || got > size) {
        free(json);
        return fattn__fail(FATTN_INTERNAL, "cuDNN cannot save this plan: %s",
                           fattn__cudnn_status_name(api, status));
    }
    *text = json;
    *count = (size_t)got;
    return FATTN_OK;
}

uint64_t fattn__cudnn_graph(const fattn_plan *plan)
{
    return ((const fattn__compiled *)plan->state)->graph;
}

static fattn_status read_json(fattn_plan *plan, const fattn__question *q, const char *text,
                              size_t count)
{
    const fattn__cudnn *api = plan->context->api;
    fattn__desc desc = NULL;
    const int status =
        make_plan(&desc, plan->context, fattn__question_handle(q), NULL, text, count);
    if (status == DNN_STATUS_SUCCESS)
        return adopt(plan, desc, q);
    char last[512] = "";
    api->cudnnGetLastErrorString(last, sizeof last);
    fattn__desc_destroy(api, desc);
    return fattn__fail(FATTN_BAD_PLAN, "cuDNN refuses the saved plan: %s %s",
                       fattn__cudnn_status_name(api, status), last);
}

fattn_status fattn__cudnn_read(fattn_plan *plan, const char *text, size_t count, uint64_t graph)
{
    double start = now_ms();
    fattn__question q;
    if (plan->problem.rope && plan->problem.pass == FATTN_BACKWARD)
        return fattn__fail(FATTN_BAD_PLAN, "a backward with rope is never saved");
    fattn_status st = fattn__question_build(&q, plan->context, &plan->problem);
    if (st == FATTN_OK && q.graph_id != graph)
        st = fattn__fail(
            FATTN_BAD_PLAN,
            "the saved plan was made by a library that builds this graph in another way");
    if (st == FATTN_OK && q.graph.sum_count > 0)
        st = fattn__math_open(plan->context);
    if (st == FATTN_OK)
        st = read_json(plan, &q, text, count);
    fattn__question_close(&q);
    plan->ms = now_ms() - start;
    return st;
}
