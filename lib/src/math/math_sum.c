#include "math_sum.h"

#include <string.h>

#include "core/error.h"
#include "math_kernels.h"
#include "math_params.h"

enum { THREADS = 256 };

fattn_status fattn__math_reduce(const fattn_context *context, const fattn__sum *sum, bool first,
                                struct CUstream_st *stream)
{
    fattn__sum_call call = { .from = { .at = (char *)(uintptr_t)sum->from, .dtype = sum->dtype },
                             .to = { .at = sum->to, .dtype = sum->to_dtype },
                             .kept = 1,
                             .terms = 1,
                             .lanes = 1,
                             .first = first,
                             .lengths = sum->lengths,
                             .length_step = sum->length_step,
                             .length_sums = sum->length_sums };
    call.to.starts = sum->to_starts;
    call.to.start_step = sum->to_start_step;
    call.to.start_bits = sum->to_start_bits;
    for (int axis = 0; axis < 4; axis++) {
        call.dim[axis] = sum->dim[axis];
        call.from.stride[axis] = sum->strides[axis];
        const bool packed = axis == 0 && sum->to_starts != NULL;
        call.to.stride[axis] = packed ? 0 : sum->to_strides[axis];
        call.summed[axis] = sum->dim[axis] > 1 && sum->to_strides[axis] == 0 && !packed;
        *(call.summed[axis] ? &call.terms : &call.kept) *= sum->dim[axis];
    }
    /* The threads of a warp read neighbours: neighbouring results if the innermost dimension stays, neighbouring terms if it is
     * summed. */
    const int64_t enough = call.summed[3] ? THREADS : THREADS / 32;
    while (call.lanes < call.terms && call.lanes < THREADS &&
           (call.lanes < enough || THREADS / call.lanes > call.kept))
        call.lanes *= 2;
    const int64_t results = THREADS / call.lanes;
    return fattn__math_launch(context, FATTN__KERNEL_sum, (call.kept + results - 1) / results,
                              THREADS, (void *[]){ &call }, stream);
}

fattn_status fattn__math_sum(const fattn_context *context, const fattn__sum *sum,
                             struct CUstream_st *stream)
{
    return fattn__math_reduce(context, sum, true, stream);
}
