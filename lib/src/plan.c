/* Plans and calls: what is common to every engine. */
#include <stdlib.h>
#include <string.h>

#include "cudnn/plan.h"
#include "engine.h"
#include "layout.h"
#include "plan_file.h"
#include "problem.h"
#include "sized.h"

/* A plan without its engine's part. */
static fattn_status begin(fattn_plan **out, fattn_context *context, const fattn_problem *problem)
{
    *out = NULL;
    fattn_problem resolved;
    fattn_status st = fattn_problem_resolve(problem, &resolved);
    if (st != FATTN_OK)
        return st;
    const char *missing = fattn__problem_not_implemented(&resolved);
    if (missing != NULL)
        return fattn__fail(FATTN_INTERNAL, "not implemented: %s", missing);
    fattn_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a plan");
    plan->engine = fattn__engine_of(context);
    plan->context = context;
    plan->problem = resolved;
    *out = plan;
    return FATTN_OK;
}

fattn_status fattn_plan_create(fattn_plan **out, fattn_context *context, const fattn_problem *problem,
                               const fattn_plan_options *options)
{
    fattn_plan_options o = FATTN_PLAN_OPTIONS_INIT;
    fattn_plan *plan;
    *out = NULL;
    if (options != NULL && (!fattn__read_sized(&o, sizeof o, options) || o.reserved != 0))
        return fattn__fail(FATTN_BAD_PROBLEM, "fattn_plan_options: struct_size is wrong or an unknown field is set");
    if (o.engine < FATTN_ENGINE_AUTO || o.config < FATTN_ENGINE_AUTO)
        return fattn__fail(FATTN_BAD_PROBLEM, "fattn_plan_options: engine and config must not be below -1");
    fattn_status st = begin(&plan, context, problem);
    if (st != FATTN_OK)
        return st;
    st = plan->engine->setup(plan, &o);
    if (st == FATTN_OK)
        *out = plan;
    else
        free(plan);
    return st;
}

void fattn_plan_destroy(fattn_plan *plan)
{
    if (plan == NULL)
        return;
    plan->engine->done(plan);
    free(plan);
}

size_t fattn_plan_workspace_bytes(const fattn_plan *plan)
{
    return plan->workspace_bytes;
}

const fattn_engine *fattn_plan_engine(const fattn_plan *plan)
{
    return &plan->config;
}

double fattn_plan_ms(const fattn_plan *plan)
{
    return plan->ms;
}

bool fattn_plan_covers(const fattn_plan *plan, const fattn_problem *problem)
{
    fattn_problem resolved;
    if (fattn_problem_resolve(problem, &resolved) != FATTN_OK)
        return false;
    resolved.capture = plan->problem.capture; /* the one field that no graph bakes in */
    return fattn__problem_same(&plan->problem, &resolved);
}

/* ---- saved --------------------------------------------------------------------------------------------------------------------
 */

fattn_status fattn_plan_save(const fattn_plan *plan, char **bytes, size_t *count)
{
    *bytes = NULL;
    *count = 0;
    if (plan->engine != &fattn__cudnn_engine)
        return fattn__fail(FATTN_UNSUPPORTED, "the %s backend has nothing to save", plan->engine->name);
    char *text;
    size_t size;
    fattn_status st = fattn__cudnn_write(plan, &text, &size);
    if (st != FATTN_OK)
        return st;
    fattn__plan_header header = {
        .cudnn_version = plan->context->info.cudnn_version,
        .sm = plan->context->info.sm,
        .problem = fattn__problem_key_of(&plan->problem),
        .bindings = fattn__cudnn_bindings(plan),
        .config = plan->config,
    };
    st = fattn__plan_pack(&header, text, size, bytes, count);
    free(text);
    return st;
}

static fattn_status check_header(const fattn__plan_header *header, const fattn_plan *plan)
{
    const fattn_context_info *info = &plan->context->info;
    fattn__problem_key key = fattn__problem_key_of(&plan->problem);
    if (header->cudnn_version != info->cudnn_version)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan is of cuDNN %d, this is %d", header->cudnn_version, info->cudnn_version);
    if (header->sm != info->sm)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan is for sm_%d, this is sm_%d", header->sm, info->sm);
    if (header->problem.low != key.low || header->problem.high != key.high)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan is of another problem");
    if (header->config.knob_count < 0 || header->config.knob_count > FATTN_MAX_KNOBS)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan's header is damaged");
    return FATTN_OK;
}

fattn_status fattn_plan_load(fattn_plan **out, fattn_context *context, const fattn_problem *problem, const char *bytes,
                             size_t count)
{
    fattn__plan_header header;
    const char *payload;
    fattn_plan *plan;
    *out = NULL;
    fattn_status st = begin(&plan, context, problem);
    if (st != FATTN_OK)
        return st;
    if (plan->engine != &fattn__cudnn_engine)
        st = fattn__fail(FATTN_UNSUPPORTED, "the %s backend has nothing to load", plan->engine->name);
    if (st == FATTN_OK)
        st = fattn__plan_unpack(&header, &payload, bytes, count);
    if (st == FATTN_OK)
        st = check_header(&header, plan);
    if (st == FATTN_OK) {
        plan->config = header.config;
        st = fattn__cudnn_read(plan, payload, (size_t)header.payload_bytes, header.bindings);
    }
    if (st == FATTN_OK)
        *out = plan;
    else
        free(plan);
    return st;
}

/* ---- call ---------------------------------------------------------------------------------------------------------------------
 */

/* The addresses that a problem needs. X(field, when) */
#define NEEDED_LIST(X)                                                                                                             \
    X(q, true)                                                                                                                     \
    X(k, true)                                                                                                                     \
    X(v, true)                                                                                                                     \
    X(o, true)                                                                                                                     \
    X(stats, p->pass == FATTN_BACKWARD || (p->outputs & FATTN_WANT_STATS) != 0)                                                    \
    X(max, p->pass == FATTN_FORWARD && (p->outputs & FATTN_WANT_MAX) != 0)                                                         \
    X(sum_exp, p->pass == FATTN_FORWARD && (p->outputs & FATTN_WANT_SUM_EXP) != 0)                                                 \
    X(seq_len_q, p->padding != 0)                                                                                                  \
    X(seq_len_kv, p->padding != 0)                                                                                                 \
    X(d_o, p->pass == FATTN_BACKWARD)                                                                                              \
    X(dq, p->pass == FATTN_BACKWARD)                                                                                               \
    X(dk, p->pass == FATTN_BACKWARD)                                                                                               \
    X(dv, p->pass == FATTN_BACKWARD)                                                                                               \
    X(workspace, plan->workspace_bytes > 0)

/* NULL is refused always; the rest unless the guards are off. */
static fattn_status check_address(const fattn_plan *plan, const char *name, const void *address)
{
    if (address == NULL)
        return fattn__fail(FATTN_BAD_PROBLEM, "%s is NULL", name);
    if (plan->problem.guards_off)
        return FATTN_OK;
    if (!fattn__pointer_aligned(address))
        return fattn__fail(FATTN_BAD_PROBLEM, "%s is not aligned to 16 bytes: its address is %u past a multiple", name,
                           (unsigned)((uintptr_t)address % 16));
    const fattn__cuda *cuda = plan->context->cuda;
    if (cuda != NULL) {
        int ordinal = -1;
        if (cuda->pointer_attribute(&ordinal, CU_POINTER_DEVICE_ORDINAL, (fattn__device_address)(uintptr_t)address) != 0 ||
            ordinal != plan->context->device)
            return fattn__fail(FATTN_BAD_PROBLEM, "%s is not an address of the plan's GPU", name);
    }
    return FATTN_OK;
}

static fattn_status check_tensors(const fattn_plan *plan, const fattn_tensors *t)
{
    const fattn_problem *p = &plan->problem;
    fattn_status st = FATTN_OK;
#define AS_CHECK(field, when)                                                                                                      \
    if (st == FATTN_OK && (when))                                                                                                  \
        st = check_address(plan, #field, t->field);
    NEEDED_LIST(AS_CHECK)
#undef AS_CHECK
    if (st == FATTN_OK && t->workspace_bytes < plan->workspace_bytes)
        st = fattn__fail(FATTN_BAD_PROBLEM, "the workspace has %zu bytes, the plan needs %zu", t->workspace_bytes,
                         plan->workspace_bytes);
    return st;
}

fattn_status fattn__check_call(const fattn_plan *plan, fattn_pass pass, const fattn_tensors *tensors, fattn_tensors *out)
{
    *out = (fattn_tensors)FATTN_TENSORS_INIT;
    if (plan->problem.pass != (int32_t)pass)
        return fattn__fail(FATTN_BAD_PROBLEM, "the plan is for the %s pass", pass == FATTN_FORWARD ? "backward" : "forward");
    if (tensors == NULL || !fattn__read_sized(out, sizeof *out, tensors))
        return fattn__fail(FATTN_BAD_PROBLEM, "fattn_tensors: struct_size is wrong or an unknown field is set");
    if (plan->context->kind == FATTN_DEVICE_DESCRIBED)
        return fattn__fail(FATTN_UNSUPPORTED, "a described device runs nothing: save the plan and load it on a GPU");
    return check_tensors(plan, out);
}

static fattn_status call(const fattn_plan *plan, fattn_pass pass, const fattn_tensors *tensors, struct CUstream_st *stream)
{
    fattn_tensors t;
    fattn_status st = fattn__check_call(plan, pass, tensors, &t);
    return st == FATTN_OK ? plan->engine->run(plan, &t, stream) : st;
}

fattn_status fattn_forward(const fattn_plan *plan, const fattn_tensors *tensors, struct CUstream_st *stream)
{
    return call(plan, FATTN_FORWARD, tensors, stream);
}

fattn_status fattn_backward(const fattn_plan *plan, const fattn_tensors *tensors, struct CUstream_st *stream)
{
    return call(plan, FATTN_BACKWARD, tensors, stream);
}
