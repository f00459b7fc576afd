/* Plans and calls: the parts that all engines share. */
#include "plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "error.h"

static const char magic[8] = { 'F', 'A', 'T', 'T', 'N', 'P', 'L', 'N' };
enum { FORMAT = 2 };

_Static_assert(sizeof(fattn__plan_header) ==
                   8 + 4 * 4 + 2 * 8 + 64 + 16 + 3 * 8 + sizeof(fattn_engine) + 8,
               "a header without padding");

static uint64_t hash_header(const fattn__plan_header *header)
{
    return XXH3_64bits(header, offsetof(fattn__plan_header, header_hash));
}

fattn_status fattn__plan_pack(fattn__plan_header *header, const char *payload, size_t payload_bytes,
                              char **bytes, size_t *count)
{
    *count = 0;
    *bytes = malloc(sizeof *header + payload_bytes);
    if (*bytes == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a plan of %zu bytes", payload_bytes);
    memcpy(header->magic, magic, sizeof magic);
    header->format = FORMAT;
    header->header_bytes = sizeof *header;
    header->payload_bytes = payload_bytes;
    header->payload_hash = XXH3_64bits(payload, payload_bytes);
    header->header_hash = hash_header(header);
    memcpy(*bytes, header, sizeof *header);
    memcpy(*bytes + sizeof *header, payload, payload_bytes);
    *count = sizeof *header + payload_bytes;
    return FATTN_OK;
}

fattn_status fattn__plan_unpack(fattn__plan_header *out, const char **payload, const char *bytes,
                                size_t count)
{
    *payload = NULL;
    if (bytes == NULL || count < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return fattn__fail(FATTN_BAD_PLAN, "these bytes are not a saved plan");
    if (count < sizeof *out)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan is cut off: %zu bytes", count);
    memcpy(out, bytes, sizeof *out);
    if (out->format != FORMAT || out->header_bytes != sizeof *out)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan has format %u, this library reads %d",
                           (unsigned)out->format, (int)FORMAT);
    if (out->header_hash != hash_header(out))
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan's header is damaged");
    if (out->payload_bytes != count - sizeof *out)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan holds %zu bytes of %llu",
                           count - sizeof *out, (unsigned long long)out->payload_bytes);
    if (out->payload_hash != XXH3_64bits(bytes + sizeof *out, count - sizeof *out))
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan is damaged");
    *payload = bytes + sizeof *out;
    return FATTN_OK;
}

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cudnn/backend/build_id.h"
#include "cudnn/plan/cudnn_plan.h"
#include "liars/lies.h"
#include "policy/policy_stack.h"
#include "problem/resolved_problem.h"
#include "score_mod/mod_program.h"
#include "sized.h"

static uint64_t next_id(void)
{
    static _Atomic uint64_t last;
    return ++last;
}

/* A plan without its engine's part. `problem` is resolved. */
static fattn_status begin(fattn_plan **out, fattn_context *context, const fattn_problem *problem,
                          const fattn__engine *engine)
{
    fattn_plan *plan = calloc(1, sizeof *plan);
    *out = plan;
    if (plan == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a plan");
    plan->references = 1;
    plan->engine = engine;
    plan->context = fattn__context_retain(context);
    plan->problem = *problem;
    fattn__score_mod_retain(problem->score_mod);
    plan->id = next_id();
    plan->host_bytes = sizeof *plan;
    return FATTN_OK;
}

static void release(fattn_plan *plan)
{
    fattn__score_mod_release(plan->problem.score_mod);
    fattn__context_release(plan->context);
    free(plan);
}

/* The engine has made its part, or `st` says why not. */
static fattn_status settle(fattn_plan **out, fattn_plan *plan, fattn_status st)
{
    *out = st == FATTN_OK ? plan : NULL;
    if (st == FATTN_OK)
        fattn__arguments_of(&plan->arguments, &plan->problem, plan->workspace_bytes);
    else
        release(plan);
    return st;
}

static fattn_status check_pin(const fattn_plan_options *o)
{
    if (o->knob_count < 0 || o->knob_count > FATTN_MAX_KNOBS ||
        (o->knobs == NULL && o->knob_count != 0))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "fattn_plan_options: knob_count: %d is not allowed; want 0 to %d knobs",
                           o->knob_count, FATTN_MAX_KNOBS);
    if (o->knobs != NULL && (o->engine == FATTN_ENGINE_AUTO || o->config != FATTN_ENGINE_AUTO))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "fattn_plan_options: knobs need an engine, and no config");
    for (int i = 0; i < o->knob_count; i++)
        for (int j = 0; j < i; j++)
            if (o->knobs[i].type == o->knobs[j].type)
                return fattn__fail(FATTN_BAD_PROBLEM,
                                   "fattn_plan_options: knobs: %s is given twice",
                                   fattn_knob_name(o->knobs[i].type));
    return FATTN_OK;
}

fattn_status fattn__plan_options_read(fattn_plan_options *out, const fattn_plan_options *given)
{
    *out = (fattn_plan_options)FATTN_PLAN_OPTIONS_INIT;
    if (given != NULL && (!fattn__read_sized(out, sizeof *out, given) || out->reserved != 0))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "fattn_plan_options: struct_size is wrong or an unknown field is set");
    if (out->engine < FATTN_ENGINE_AUTO || out->config < FATTN_ENGINE_AUTO)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "fattn_plan_options: engine and config must not be below -1");
    if (out->override_shapes != 0 && out->override_shapes != 1)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "fattn_plan_options: override_shapes: %d is not allowed; want 0 or 1",
                           out->override_shapes);
    return check_pin(out);
}

/* ---- along the policy's order
 * ---------------------------------------------------------------------------------------------- */

static fattn_status build_with(fattn_plan **out, fattn_context *context,
                               const fattn_problem *resolved, fattn_backend backend,
                               const fattn_plan_options *options)
{
    fattn_plan *plan;
    const fattn__engine *engine = fattn__engine_for(context, backend);
    *out = NULL;
    if (engine == NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "the context's device has no such backend");
    /* The cuDNN engine asks the rules itself, because its own refusal comes before most rules. */
    const fattn_rule *rule =
        engine != &fattn__cudnn_engine ? fattn__policy_denies(context, resolved, backend) : NULL;
    if (rule != NULL)
        return fattn__fail(FATTN_POLICY, "%s: the rule %s denies it: %s", engine->name, rule->name,
                           rule->why);
    if (engine != &fattn__cudnn_engine && (options->knobs != NULL || options->override_shapes))
        return fattn__fail(FATTN_UNSUPPORTED,
                           "the %s backend has neither knobs nor override_shapes", engine->name);
    const char *missing = fattn__features_missing(resolved, engine->features);
    if (missing != NULL)
        return fattn__fail(FATTN_INTERNAL, "not implemented: %s", missing);
    fattn_status st = begin(&plan, context, resolved, engine);
    return st == FATTN_OK ? settle(out, plan, engine->setup(plan, options)) : st;
}

/* Failures that another backend cannot avoid. */
static bool is_final(fattn_status st)
{
    return st == FATTN_OK || st == FATTN_NO_MEMORY || st == FATTN_DEVICE_FAULT;
}

fattn_status fattn__plan_build(fattn_plan **out, fattn_context *context,
                               const fattn_problem *resolved, const fattn_plan_options *options)
{
    int32_t order[FATTN_BACKEND_COUNT];
    const int count = fattn__policy_order(context, order);
    fattn_status first = build_with(out, context, resolved, (fattn_backend)order[0], options),
                 st = first;
    char why[1024];
    snprintf(why, sizeof why, "%s", fattn_last_error());
    for (int i = 1; i < count && !is_final(st); i++)
        st = build_with(out, context, resolved, (fattn_backend)order[i], options);
    if (is_final(st))
        return st;
    return fattn__fail(first, "%s", why);
}

fattn_status fattn_plan_create(fattn_plan **out, fattn_context *context,
                               const fattn_problem *problem, const fattn_plan_options *options)
{
    NEED(out);
    fattn_plan_options o;
    fattn_problem resolved;
    *out = NULL;
    NEED(context);
    fattn_status st = fattn__plan_options_read(&o, options);
    if (st == FATTN_OK)
        st = fattn_problem_resolve(problem, &resolved);
    return st == FATTN_OK ? fattn__plan_build(out, context, &resolved, &o) : st;
}

fattn_plan *fattn__plan_retain(fattn_plan *plan)
{
    plan->references++;
    return plan;
}

void fattn_plan_destroy(fattn_plan *plan)
{
    if (plan == NULL || --plan->references > 0)
        return;
    plan->engine->done(plan);
    release(plan);
}

fattn_backend fattn_plan_backend(const fattn_plan *plan)
{
    return plan->engine->backend;
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

/* Fields that the pass of the problem does not read are taken from the plan, so they make no
 * difference. */
static void overlook_unread(fattn_problem *p, const fattn_problem *plan)
{
    const uint32_t backward_alone =
        FATTN_RAGGED_DO | FATTN_RAGGED_DQ | FATTN_RAGGED_DK | FATTN_RAGGED_DV;
#define OVERLOOK(symbol, name)                                                                     \
    if (!fattn__problem_shape(p, FATTN__ROLE_##symbol).used)                                       \
        memcpy(p->name##_strides, plan->name##_strides, sizeof p->name##_strides);
    FATTN__ROLE_LIST(OVERLOOK)
#undef OVERLOOK
    if (p->pass == FATTN_FORWARD) {
        p->grad_dtype = plan->grad_dtype;
        p->do_dtype = plan->do_dtype;
        p->training = plan->training; /* it has become a bit of outputs */
        p->total_q = plan->total_q;   /* a forward does not use totals */
        p->total_kv = plan->total_kv;
        if (p->ragged_bits != 0 && plan->ragged_bits != 0)
            p->ragged = (p->ragged & ~backward_alone) | (plan->ragged & backward_alone);
    }
}

bool fattn_plan_covers(const fattn_plan *plan, const fattn_problem *problem)
{
    fattn_problem resolved;
    if (fattn_problem_resolve(problem, &resolved) != FATTN_OK ||
        resolved.pass != plan->problem.pass)
        return false;
    overlook_unread(&resolved, &plan->problem);
    resolved.capture = plan->problem.capture;
    if (!resolved
             .deterministic) { /* a plan that repeats may serve a problem that need not repeat */
        resolved.deterministic = plan->problem.deterministic;
        resolved.determinism = plan->problem.determinism;
    }
    return fattn__problem_same(&plan->problem, &resolved);
}

/* ---- saved
 * -----------------------------------------------------------------------------------------------------------------
 */

/* 0 for the cpu. */
static fattn_status build_of(uint64_t *out, const fattn_context *context)
{
    *out = context->api != NULL ? fattn__cudnn_build(context->api) : 0;
    if (*out == 0 && context->api != NULL)
        return fattn__fail(FATTN_ENVIRONMENT,
                           "the libraries of %s were changed after this process had mapped them",
                           context->api->dir);
    return FATTN_OK;
}

fattn_status fattn_plan_key(fattn_context *context, const fattn_problem *problem,
                            const fattn_plan_options *options, char key[33])
{
    NEED(context, key);
    fattn_plan_options o;
    fattn_problem resolved;
    TRY(fattn__plan_options_read(&o, options));
    TRY(fattn_problem_resolve(problem, &resolved));
    uint64_t build;
    TRY(build_of(&build, context));
    const struct {
        fattn__problem_key problem;
        uint64_t build, code, device, choice;
        int64_t engine, config, overrides, pinned;
        XXH128_hash_t knobs;
    } whole = { fattn__problem_key_of(&resolved),
                build,
                fattn__code_id(),
                context->info.device_id,
                fattn__policy_choice(context, &resolved),
                o.config == FATTN_ENGINE_AUTO
                    ? o.engine
                    : FATTN_ENGINE_AUTO, /* not read beside a configuration */
                o.config,
                o.override_shapes,
                o.knobs != NULL,
                XXH3_128bits(o.knobs, (size_t)o.knob_count * sizeof *o.knobs) };
    const XXH128_hash_t hash = XXH3_128bits(&whole, sizeof whole);
    snprintf(key, 33, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
    return FATTN_OK;
}

fattn_status fattn_plan_save(const fattn_plan *plan, char **bytes, size_t *count)
{
    NEED(plan, bytes, count);
    *bytes = NULL;
    *count = 0;
    if (plan->engine != &fattn__cudnn_engine)
        return fattn__fail(FATTN_UNSUPPORTED, "the %s backend has nothing to save",
                           plan->engine->name);
    char *text;
    size_t size;
    uint64_t build;
    TRY(build_of(&build, plan->context));
    TRY(fattn__cudnn_write(plan, &text, &size));
    const fattn_context_info *info = &plan->context->info;
    fattn__plan_header header = {
        .cudnn_version = info->cudnn_version,
        .sm = info->sm,
        .problem = fattn__problem_key_of(&plan->problem),
        .graph = fattn__cudnn_graph(plan),
        .config = plan->config,
        .build = build,
        .device = info->device_id,
    };
    snprintf(header.device_name, sizeof header.device_name, "%.63s", info->device_name);
    fattn_status st = fattn__plan_pack(&header, text, size, bytes, count);
    free(text);
    return st;
}

static fattn_status check_header(const fattn__plan_header *header, const fattn_plan *plan)
{
    const fattn_context_info *info = &plan->context->info;
    fattn__problem_key key = fattn__problem_key_of(&plan->problem);
    if (header->cudnn_version != info->cudnn_version)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan is of cuDNN %d, this is %d",
                           header->cudnn_version, info->cudnn_version);
    if (header->build != fattn__cudnn_build(plan->context->api))
        return fattn__fail(FATTN_BAD_PLAN,
                           "the saved plan is of another build of cuDNN %d: its libraries are not "
                           "those of this one",
                           header->cudnn_version);
    if (header->sm != info->sm)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan is for sm_%d; this device is sm_%d",
                           header->sm, info->sm);
    if (header->device != info->device_id)
        return fattn__fail(
            FATTN_BAD_PLAN,
            "the saved plan is for another device: %.63s; this is %s, %d multiprocessors",
            header->device_name, info->device_name, info->multiprocessors);
    if (header->problem.low != key.low || header->problem.high != key.high)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan is of another problem");
    if (header->config.knob_count < 0 || header->config.knob_count > FATTN_MAX_KNOBS)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan's header is damaged");
    const fattn_rule *rule =
        fattn__policy_removes(plan->context, &plan->problem, FATTN_BACKEND_CUDNN, &header->config);
    if (rule != NULL)
        return fattn__fail(FATTN_BAD_PLAN, "the rule %s removes engine %lld of the saved plan",
                           rule->name, (long long)header->config.index);
    return FATTN_OK;
}

fattn_status fattn_plan_load(fattn_plan **out, fattn_context *context, const fattn_problem *problem,
                             const char *bytes, size_t count)
{
    NEED(out);
    fattn__plan_header header;
    const char *payload;
    fattn_plan *plan;
    fattn_problem resolved;
    *out = NULL;
    NEED(context);
    fattn_status st = fattn_problem_resolve(problem, &resolved);
    if (st == FATTN_OK)
        st = begin(&plan, context, &resolved, fattn__engine_of(context));
    if (st != FATTN_OK)
        return st;
    if (plan->engine != &fattn__cudnn_engine)
        st = fattn__fail(FATTN_UNSUPPORTED, "the %s backend has nothing to load",
                         plan->engine->name);
    if (st == FATTN_OK)
        st = fattn__plan_unpack(&header, &payload, bytes, count);
    if (st == FATTN_OK)
        st = check_header(&header, plan);
    if (st == FATTN_OK) {
        plan->config = header.config;
        st = fattn__cudnn_read(plan, payload, (size_t)header.payload_bytes, header.graph);
    }
    return settle(out, plan, st);
}

/* ---- call
 * ------------------------------------------------------------------------------------------------------------------
 */

fattn_status fattn__check_tensors(const fattn_plan *plan, fattn_pass pass,
                                  const fattn_tensors *tensors, fattn_tensors *out)
{
    const fattn_context *context = plan->context;
    *out = (fattn_tensors)FATTN_TENSORS_INIT;
    if (plan->problem.pass != (int32_t)pass)
        return fattn__fail(FATTN_BAD_PROBLEM, "the plan is for the %s pass",
                           pass == FATTN_FORWARD ? "backward" : "forward");
    if (tensors == NULL || !fattn__read_sized(out, sizeof *out, tensors))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "fattn_tensors: struct_size is wrong or an unknown field is set");
    if (context->kind == FATTN_DEVICE_DESCRIBED)
        return fattn__fail(FATTN_UNSUPPORTED,
                           "a described device runs nothing: save the plan and load it on a GPU");
    return FATTN_OK;
}

fattn_status fattn__check_call(const fattn_plan *plan, fattn_pass pass,
                               const fattn_tensors *tensors, fattn_tensors *out)
{
    const fattn_context *context = plan->context;
    TRY(fattn__check_tensors(plan, pass, tensors, out));
    fattn__arguments *arguments =
        (fattn__arguments *)(uintptr_t)&plan->arguments; /* addresses that passed the checks */
    return fattn__arguments_check(arguments, out, plan->problem.guards_off != 0, context->cuda,
                                  context->device);
}

static fattn_status call(const fattn_plan *plan, fattn_pass pass, const fattn_tensors *tensors,
                         struct CUstream_st *stream)
{
    fattn_tensors t;
    fattn_status st = fattn__check_call(plan, pass, tensors, &t);
    if (st == FATTN_OK && !fattn__emulator_records(plan, &t))
        st = plan->engine->run(plan, &t, stream);
    return st;
}

fattn_status fattn_forward(const fattn_plan *plan, const fattn_tensors *tensors,
                           struct CUstream_st *stream)
{
    NEED(plan, tensors);
    return call(plan, FATTN_FORWARD, tensors, stream);
}

fattn_status fattn_backward(const fattn_plan *plan, const fattn_tensors *tensors,
                            struct CUstream_st *stream)
{
    NEED(plan, tensors);
    return call(plan, FATTN_BACKWARD, tensors, stream);
}
