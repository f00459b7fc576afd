/* The math backend: unfused attention by the library's own kernels, for problems that cuDNN
 * refuses. One configuration, nothing to compile, nothing to save. Always deterministic: no two
 * blocks add to one result, and every sum has one order. */
#include "core/engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "math_program.h"
#include "math_run.h"
#include "math_sum.h"
#include "problem/layout.h"

/* X(what is wrong, why not). The kernels count rows, keys and heads in 32 bits. */
#define LIMITS(X)                                                                                  \
    X(p->impl == FATTN_IMPL_UNIFIED || p->spelling == FATTN_SPELLING_SINGLE,                       \
      "the math backend has no cuDNN graph: impl unified and spelling single do not apply")        \
    X(is_short(p->dtype) || is_short(p->o_dtype) ||                                                \
          (p->pass == FATTN_BACKWARD && is_short(p->grad_dtype)),                                  \
      "the math backend computes bf16, f16 and f32; only cuDNN has 8-bit types")                   \
    X(p->has_bias &&is_short(p->bias_dtype) && p->bias_dtype != FATTN_BOOL,                        \
      "the math backend reads a bias of bf16, f16 or f32, or a boolean mask")                      \
    X(p->scaling != FATTN_SCALING_NONE, "the math backend scales no 8-bit types")                  \
    X(p->stats_dtype != FATTN_F32, "the math backend writes Stats in f32")                         \
    X(p->rope, "the math backend has no rope: rotate Q and K before the call")                     \
    X(p->unfuse_fma,                                                                               \
      "the math backend has no unfuse_fma: it is an attribute of cuDNN's operation")               \
    X(p->seq_q > most_seq || p->seq_kv > most_seq, "the math backend takes sequences up to 2^24")  \
    X(p->dim_qk > most_dim || p->dim_v > most_dim,                                                 \
      "the math backend takes head dimensions up to 65536")                                        \
    X(p->batch > most_heads / p->heads_q, "the math backend takes batch * heads_q up to 2^31 - 1")

static const int64_t most_seq = (int64_t)1 << 24, most_dim = 65536, most_heads = INT32_MAX;
static const size_t most_workspace = (size_t)1 << 48;

static bool is_short(int32_t dtype)
{
    return fattn__dtype_bytes(dtype) < 2;
}

static const char *limit_of(const fattn_problem *p)
{
#define AS_LIMIT(wrong, why)                                                                       \
    if (wrong)                                                                                     \
        return why;
    LIMITS(AS_LIMIT)
#undef AS_LIMIT
    return NULL;
}

/* Counts in double, before anything is multiplied in integers. */
static bool fits(const fattn_problem *p)
{
    const double rows = (double)p->batch * (double)p->heads_q,
                 seq = (double)(p->seq_q > p->seq_kv ? p->seq_q : p->seq_kv);
    const double dim = (double)(p->dim_qk > p->dim_v ? p->dim_qk : p->dim_v);
    const double bias = (double)p->bias_dim[0] * (double)p->bias_dim[1] * (double)p->bias_dim[2] *
                        (double)p->bias_dim[3];
    return rows * seq * dim < (double)most_workspace / 64 &&
           (!p->dbias || bias < (double)most_workspace / 64);
}

static bool pack(fattn__math_state *state, const fattn_problem *p)
{
    if (p->score_mod == NULL)
        return true;
    const fattn__mod_program *score = fattn__score_mod_program(p->score_mod),
                             *gradient = fattn__score_mod_gradient(p->score_mod);
    if (!fattn__program_pack(&state->score, score, score->result))
        return false;
    if (p->pass == FATTN_FORWARD)
        return true;
    if (!fattn__program_pack(&state->gradient, gradient, gradient->result))
        return false;
    for (int32_t i = 0; i < state->tensor_count; i++) {
        fattn__program *out = &state->tensors[i];
        if ((p->mod_gradients >> i & 1) == 0)
            continue;
        if (gradient->tensor_results[i] < 0) /* the score does not depend on it */
            *out = (fattn__program){ .count = 1, .node = { { .op = FATTN__MOD_CONSTANT } } };
        else if (!fattn__program_pack(out, gradient, gradient->tensor_results[i]))
            return false;
    }
    return true;
}

/* A plan's state, or why there is none. */
static fattn_status prepare(fattn__math_state **out, const fattn_context *context,
                            const fattn_problem *p)
{
    *out = NULL;
    const char *why = fattn__math_lacks(context);
    if (why != NULL && fattn__math_image.bytes ==
                           0) /* nothing was asked: this build of the library has no kernels */
        return fattn__fail(FATTN_ENVIRONMENT, "%s: %s", why, fattn__math_image.about);
    if (why == NULL)
        why = limit_of(p);
    if (why == NULL && !fits(p))
        why = "the math backend's workspace would be larger than any GPU's memory";
    if (why != NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "%s", why);
    const size_t count = p->score_mod != NULL ? fattn_score_mod_tensor_count(p->score_mod) : 0;
    fattn__math_state *state = calloc(1, sizeof *state + count * sizeof state->tensors[0]);
    if (state == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a plan");
    state->tensor_count = (int32_t)count;
    fattn__chunks_of(&state->chunks, p);
    if (!pack(state, p)) {
        free(state);
        return fattn__fail(
            FATTN_UNSUPPORTED,
            "the score_mod needs more than %d values at one time, more than the math backend keeps",
            FATTN__PROGRAM_SLOTS);
    }
    *out = state;
    return FATTN_OK;
}

static fattn_status can_do(fattn_context *context, const fattn_problem *problem, uint32_t ask,
                           fattn_decision *out)
{
    (void)ask;
    fattn__math_state *state;
    const fattn_status st = prepare(&state, context, problem);
    if (st == FATTN_UNSUPPORTED)
        return fattn__refuse(out, FATTN_BACKEND_MATH, FATTN_REASON_UNSUPPORTED, "",
                             fattn_last_error(), NULL);
    if (st == FATTN_ENVIRONMENT)
        return fattn__refuse(out, FATTN_BACKEND_MATH, FATTN_REASON_ENVIRONMENT, "",
                             fattn_last_error(), "build it with nvcc: ./facts setup fetches one");
    if (st != FATTN_OK)
        return st;
    const fattn_engine engine = { .workspace_bytes = (int64_t)state->chunks.bytes };
    free(state);
    fattn__accept(out, FATTN_BACKEND_MATH);
    return fattn__add_engine(out, FATTN_MODE_A, &engine);
}

static fattn_status setup(fattn_plan *plan, const fattn_plan_options *options)
{
    fattn__math_state *state;
    if (options->engine > 0 || options->config > 0)
        return fattn__fail(FATTN_UNSUPPORTED,
                           "the math backend has one engine, 0, with one configuration, 0");
    TRY(prepare(&state, plan->context, &plan->problem));
    const fattn_status st = fattn__math_open(plan->context);
    if (st != FATTN_OK) {
        free(state);
        return st;
    }
    plan->state = state;
    plan->workspace_bytes = state->chunks.bytes;
    plan->config = (fattn_engine){ .workspace_bytes = (int64_t)state->chunks.bytes };
    plan->host_bytes += sizeof *state + (size_t)state->tensor_count * sizeof state->tensors[0];
    return FATTN_OK;
}

static void done(fattn_plan *plan)
{
    free(plan->state);
    plan->state = NULL;
}

/* Every feature. Features that it lacks are refused above, with a sentence each. */
const fattn__engine fattn__math_engine = {
    "math", FATTN_BACKEND_MATH, FATTN__EVERY_FEATURE, can_do, setup, fattn__math_run_plan, done
};
