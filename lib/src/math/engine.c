/* Our own kernels as an engine. */
#include "../engine.h"

static fattn_status can_do(fattn_context *context, const fattn_problem *problem, uint32_t ask, fattn_decision *out)
{
    (void)context, (void)problem, (void)ask;
    return fattn__refuse(out, FATTN_BACKEND_MATH, FATTN_REASON_INTERNAL, "", "this library was built without a CUDA compiler", NULL);
}

static fattn_status setup(fattn_plan *plan, const fattn_plan_options *options)
{
    (void)plan, (void)options;
    return fattn__fail(FATTN_INTERNAL, "this library was built without a CUDA compiler");
}

static fattn_status run(const fattn_plan *plan, const fattn_tensors *tensors, struct CUstream_st *stream)
{
    (void)plan, (void)tensors, (void)stream;
    return fattn__fail(FATTN_INTERNAL, "this library was built without a CUDA compiler");
}

static void done(fattn_plan *plan)
{
    plan->state = NULL;
}

const fattn__engine fattn__math_engine = { "math", can_do, setup, run, done };
