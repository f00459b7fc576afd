#include "sum.h"

#include "../error.h"

/* Takes part in no launch yet: decisions and plans for described devices need no kernel. */
fattn_status fattn__math_open(fattn_context *context)
{
    if (context->kind == FATTN_DEVICE_DESCRIBED)
        return FATTN_OK;
    return fattn__fail(FATTN_UNSUPPORTED, "this library was built without a CUDA compiler");
}

void fattn__math_close(fattn_context *context)
{
    (void)context;
}

fattn_status fattn__math_sum(const fattn_context *context, const fattn__sum *sum, struct CUstream_st *stream)
{
    (void)context, (void)sum, (void)stream;
    return fattn__fail(FATTN_INTERNAL, "this library was built without a CUDA compiler");
}
