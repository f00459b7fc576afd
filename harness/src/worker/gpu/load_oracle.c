/* The oracle on the GPU, in the worker's context. */
#include <errno.h>
#include <stdio.h>

#include "fattn/device.h"
#include "gpu_launch.h"

/* Its first use loads it. */
static int open_oracle(facts_gpu *gpu)
{
    return gpu->oracle ? 0 : fref_gpu_create(&gpu->oracle, gpu->text);
}

/* The oracle had too little memory. Releases what the pool and the oracle keep; false: they kept
 * none. */
static bool had_some(facts_gpu *gpu, int status)
{
    if (status != ENOMEM || !gpu->oracle || !facts_gpu_trim(gpu))
        return false;
    gpu->text[0] = '\0';
    return true;
}

int facts_gpu_forward(facts_gpu *gpu, const fref_problem *problem, const fref_gpu_mod *mod,
                      const fref_tensor *q, const fref_tensor *k, const fref_tensor *v,
                      const fref_rounding *rounding, const fref_forward_out *out, bool ahead,
                      uint64_t *scores)
{
    struct CUctx_st *previous;
    if (facts_gpu_keep_error(gpu, fattn_context_enter(&previous, gpu->context)) != FATTN_OK)
        return EIO;
    int status = open_oracle(gpu);
    if (status == 0)
        fref_gpu_run_ahead(gpu->oracle, ahead);
    if (status == 0)
        status = fref_gpu_forward(gpu->oracle, problem, mod, q, k, v, rounding, out, gpu->stream,
                                  gpu->text);
    if (had_some(gpu, status))
        status = fref_gpu_forward(gpu->oracle, problem, mod, q, k, v, rounding, out, gpu->stream,
                                  gpu->text);
    *scores = status == 0 ? fref_gpu_scores(gpu->oracle) : 0;
    fattn_context_leave(gpu->context, previous);
    return status;
}

int facts_gpu_backward(facts_gpu *gpu, const fref_problem *problem, const fref_gpu_mod *mod,
                       const fref_tensor *q, const fref_tensor *k, const fref_tensor *v,
                       const fref_tensor *o, const fref_tensor *stats, const fref_tensor *d_o,
                       const fref_rounding *rounding, const fref_backward_out *out, uint64_t scores)
{
    struct CUctx_st *previous;
    if (facts_gpu_keep_error(gpu, fattn_context_enter(&previous, gpu->context)) != FATTN_OK)
        return EIO;
    int status = open_oracle(gpu);
    if (status == 0)
        status = fref_gpu_backward(gpu->oracle, problem, mod, q, k, v, o, stats, d_o, rounding, out,
                                   scores, gpu->stream, gpu->text);
    if (had_some(gpu, status))
        status = fref_gpu_backward(gpu->oracle, problem, mod, q, k, v, o, stats, d_o, rounding, out,
                                   scores, gpu->stream, gpu->text);
    fattn_context_leave(gpu->context, previous);
    return status;
}

void facts_gpu_forget(facts_gpu *gpu)
{
    fref_gpu_destroy(gpu->oracle);
    gpu->oracle = NULL;
}
