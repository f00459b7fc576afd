/* Runs a plan with other extents and strides than it was made for. */
#include <inttypes.h>
#include <string.h>

#include "cudnn/plan/cudnn_plan.h"
#include "engine.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

/* The members that a call may change. X(field) */
#define EXTENT_LIST(X) X(batch) X(seq_q) X(seq_kv)

static fattn_status check_extents(const fattn_problem *plan, const fattn_problem *p)
{
#define CHECK(field)                                                                               \
    if (p->field > plan->field)                                                                    \
        return fattn__fail(FATTN_BAD_PROBLEM,                                                      \
                           #field ": %" PRId64 " is more than the plan's %" PRId64, p->field,      \
                           plan->field);
    EXTENT_LIST(CHECK)
#undef CHECK
    for (int axis = 0; axis < 4; axis++)
        if (p->has_bias && (p->bias_dim[axis] == 1) != (plan->bias_dim[axis] == 1))
            return fattn__fail(
                FATTN_BAD_PROBLEM,
                "bias_dim: the bias must broadcast in the same dimensions as the plan's");
    return FATTN_OK;
}

/* The fields that a graph fixes, apart from the tensors that a call may change. */
static const char *baked(const fattn_problem *p)
{
    if ((p->has_left || p->has_right) && p->align == FATTN_BOTTOM_RIGHT && !p->padding)
        return "align: without lengths, the shift of a band to the bottom right is";
    if (p->page_size_k != 0 || p->page_size_v != 0)
        return "page_size: the page table is";
    if (p->block_mask)
        return "block_mask: the mask's extents are";
    if (p->rope)
        return "rope: the rotated tensors are";
    if ((p->outputs & FATTN_WANT_RNG_DUMP) != 0)
        return "outputs: the extents of rng_dump are";
    if (p->score_mod != NULL && fattn_score_mod_tensor_count(p->score_mod) > 0)
        return "score_mod: its tensors are";
    return fattn__dtype_is_mx(p->dtype) ? "dtype: the extents of scale factors are" : NULL;
}

/* Up to 9.28.0 kernels use new extents and ignore new strides: they read and write entry 1 of a
 * batch at its place in the plan. */
static fattn_status check_strides(const fattn_problem *plan, const fattn_problem *p)
{
    for (fattn__role which = 0; which < FATTN__ROLE_COUNT; which++) {
        const int64_t *made = fattn__problem_strides((fattn_problem *)(uintptr_t)plan, which);
        const int64_t *now = fattn__problem_strides((fattn_problem *)(uintptr_t)p, which);
        const fattn__shape shape = fattn__problem_shape(p, which);
        for (int axis = 0; axis < 4; axis++)
            if (shape.dim[axis] > 1 && now[axis] != made[axis])
                return fattn__fail(
                    FATTN_POLICY,
                    "%s_strides: cuDNN keeps the plan's, %" PRId64 " and not %" PRId64
                    "; give the plan's strides, or set guards_off to ask cuDNN anyway",
                    fattn__role_name(which), made[axis], now[axis]);
    }
    return FATTN_OK;
}

static fattn_status check(const fattn_plan *plan, const fattn_problem *p)
{
    fattn_problem same = *p;
    if (plan->engine != &fattn__cudnn_engine)
        return fattn__fail(FATTN_UNSUPPORTED, "the %s backend's plans have one shape",
                           plan->engine->name);
    if (!fattn__cudnn_overrides(plan))
        return fattn__fail(FATTN_BAD_PROBLEM, "the plan was not made with override_shapes");
    if (baked(p) != NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "%s part of the plan", baked(p));
    const fattn__role misaligned = fattn__problem_misaligned(p);
    if (misaligned != FATTN__ROLE_COUNT && !p->guards_off)
        return fattn__fail(FATTN_POLICY, "%s_strides: a stride is not a multiple of 16 bytes",
                           fattn__role_name(misaligned));
    TRY(check_extents(&plan->problem, p));
#define TAKE(field) same.field = plan->problem.field;
    EXTENT_LIST(TAKE)
#undef TAKE
    for (fattn__role which = 0; which < FATTN__ROLE_COUNT; which++)
        memcpy(fattn__problem_strides(&same, which),
               fattn__problem_strides((fattn_problem *)(uintptr_t)&plan->problem, which),
               4 * sizeof(int64_t));
    memcpy(same.bias_dim, plan->problem.bias_dim, sizeof same.bias_dim);
    if (!fattn_plan_covers(plan, &same))
        return fattn__fail(
            FATTN_BAD_PROBLEM,
            "the problem differs from the plan's in more than batch, seq_q, seq_kv and strides");
    return p->guards_off ? FATTN_OK : check_strides(&plan->problem, p);
}

fattn_status fattn_forward_as(const fattn_plan *plan, const fattn_problem *problem,
                              const fattn_tensors *tensors, struct CUstream_st *stream)
{
    NEED(plan, tensors);
    fattn_problem resolved;
    fattn_tensors t;
    fattn__arguments arguments;
    fattn_status st = fattn_problem_resolve(problem, &resolved);
    if (st == FATTN_OK)
        st = check(plan, &resolved);
    if (st == FATTN_OK)
        st = fattn__check_tensors(plan, FATTN_FORWARD, tensors, &t);
    if (st != FATTN_OK)
        return st;
    fattn__arguments_of(&arguments, &resolved, plan->workspace_bytes);
    st = fattn__arguments_check(&arguments, &t, resolved.guards_off != 0, plan->context->cuda,
                                plan->context->device);
    return st == FATTN_OK ? fattn__cudnn_run_as(plan, &resolved, &t, stream) : st;
}
