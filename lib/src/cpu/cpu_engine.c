/* The cpu as an engine: one configuration, host pointers, nothing to compile. */
#include <omp.h>
#include <stdlib.h>

#include "core/call_check.h"
#include "core/engine.h"
#include "cpu_attention.h"
#include "cpu_view.h"
#include "liars/lies.h"
#include "problem/layout.h"

static int threads_of(const fattn_context *context)
{
    return context->threads > 0 ? context->threads : omp_get_max_threads();
}

/* The reason why the cpu refuses; NULL: it accepts. Decisions and plans both call it. */
static const char *refusal_of(const fattn_problem *p)
{
    if (p->impl == FATTN_IMPL_UNIFIED || p->spelling == FATTN_SPELLING_SINGLE)
        return "the cpu backend has no cuDNN graph: impl unified and spelling single do not apply";
    const bool mx = fattn__dtype_is_mx(p->dtype);
    if (p->rope && (mx || fattn__dtype_is_fp8(p->dtype)))
        return "rope: what is rotated would lose its 8-bit scales; rotate before quantising";
    if (mx && (p->page_size_k != 0 || p->page_size_v != 0 || p->ragged_bits != 0))
        return "block-scaled types in pages or packed: nothing says where their scale factors lie";
    if (mx && p->scale_format != FATTN_FORMAT_UNSET && p->scale_format != FATTN_FORMAT_BHSD)
        return "scale_format: the cpu reads scale factors head by head (unset or bhsd)";
    return NULL;
}

static fattn_status can_do(fattn_context *context, const fattn_problem *problem, uint32_t ask,
                           fattn_decision *out)
{
    (void)context, (void)ask;
    const char *why = refusal_of(problem);
    if (why != NULL)
        return fattn__refuse(out, FATTN_BACKEND_CPU, FATTN_REASON_UNSUPPORTED, "", why,
                             "change what the sentence names, or ask cudnn");
    fattn__accept(out, FATTN_BACKEND_CPU);
    return fattn__add_engine(out, FATTN_MODE_A, &(fattn_engine){ .workspace_bytes = -1 });
}

static fattn_status setup(fattn_plan *plan, const fattn_plan_options *options)
{
    const char *why = refusal_of(&plan->problem);
    if (why != NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "%s", why);
    if (options->engine > 0 || options->config > 0)
        return fattn__fail(FATTN_UNSUPPORTED,
                           "the cpu backend has one engine, 0, with one configuration, 0");
    /* 64 bytes more: the caller's workspace is 16-byte aligned, the tiles want a cache line. */
    plan->workspace_bytes =
        (size_t)threads_of(plan->context) * fattn__cpu_scratch_bytes(&plan->problem) + 64;
    plan->config = (fattn_engine){ .workspace_bytes = (int64_t)plan->workspace_bytes };
    return FATTN_OK;
}

/* A liar: some calls leave out a tile. */
static void lose_tile(const fattn_problem *p, const fattn_tensors *t)
{
    enum { ROWS = 16, CALLS = 8 };
    static const float zeros[16];
    static _Atomic int calls;
    const bool forward = p->pass == FATTN_FORWARD;
    const fattn__view to = fattn__view_of(p, t, forward ? FATTN__ROLE_O : FATTN__ROLE_DK, NULL);
    const int64_t rows = forward ? p->seq_q : p->seq_kv, dim = forward ? p->dim_v : p->dim_qk;
    if (++calls % CALLS == 0)
        fattn__view_store(&to, 0, 0, 0, rows < ROWS ? rows : ROWS, dim < 16 ? dim : 16, zeros, 0);
}

static fattn_status run(const fattn_plan *plan, const fattn_tensors *tensors,
                        struct CUstream_st *stream)
{
    (void)stream;
    char *scratch = (char *)(((uintptr_t)tensors->workspace + 63) / 64 * 64);
    const fattn_problem *p = &plan->problem;
    TRY(fattn__call_values_check(plan, tensors, NULL));
    if (p->pass == FATTN_FORWARD)
        fattn__cpu_forward(p, tensors, threads_of(plan->context), scratch);
    else
        fattn__cpu_backward(p, tensors, threads_of(plan->context), scratch);
    if (FATTN__LIE(LAUNCH_RACE))
        lose_tile(p, tensors);
    return FATTN_OK;
}

static void done(fattn_plan *plan)
{
    plan->state = NULL;
}

/* impl unified is among them, so that this file's own sentence refuses it. */
#define FEATURES (FATTN__EVERY_FEATURE & ~FATTN__HAS(STATS_DTYPE))

const fattn__engine fattn__cpu_engine = { "cpu", FATTN_BACKEND_CPU, FEATURES, can_do, setup, run,
                                          done };
