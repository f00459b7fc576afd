/* The gradient of a broadcast input is the sum over the broadcast dimensions. cuDNN writes the
 * gradient of every element, and a kernel of this library sums them. */
#include "math/math_sum.h"

#include <string.h>

#include "core/error.h"
#include "cudnn_plan.h"

static void *destination(const fattn__graph_sum *sum, const fattn_tensors *tensors)
{
    switch ((fattn__slot)sum->slot) {
    case FATTN__SLOT_DQ:
        return tensors->dq;
    case FATTN__SLOT_DK:
        return tensors->dk;
    case FATTN__SLOT_DV:
        return tensors->dv;
    case FATTN__SLOT_DBIAS:
        return tensors->dbias;
    default:
        return tensors->mod_gradients[sum->slot - FATTN__SLOT_DMOD_0];
    }
}

fattn_status fattn__cudnn_sums(const fattn_plan *plan, const fattn_tensors *tensors,
                               struct CUstream_st *stream)
{
    const fattn__compiled *compiled = plan->state;
    fattn_status st = FATTN_OK;
    for (int i = 0; i < compiled->sum_count && st == FATTN_OK; i++) {
        const fattn__graph_sum *sum = &compiled->sums[i];
        fattn__sum call = { .from = (const char *)tensors->workspace + sum->offset,
                            .to = destination(sum, tensors),
                            .dtype = sum->dtype,
                            .to_dtype = sum->out_dtype };
        memcpy(call.dim, sum->dim, sizeof call.dim);
        memcpy(call.strides, sum->strides, sizeof call.strides);
        memcpy(call.to_strides, sum->out_strides, sizeof call.to_strides);
        st = fattn__math_sum(plan->context, &call, stream);
    }
    return st;
}
