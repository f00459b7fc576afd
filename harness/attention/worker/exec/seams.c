#include "seams.h"

#include "fattn/device.h"
#include "fattn/graph.h"
#include "worker/gpu/worker_gpu.h"

fattn_status facts_call_launch(void *argument, struct CUstream_st *stream)
{
    const facts_call *call = argument;
    fattn_status status = FATTN_OK;
    if (call->forward)
        status = fattn_forward(call->forward, &call->forward_tensors, stream);
    if (status != FATTN_OK)
        return status;
    if (call->as)
        return fattn_forward_as(call->plan, call->as, &call->tensors, stream);
    return call->backward ? fattn_backward(call->plan, &call->tensors, stream)
                          : fattn_forward(call->plan, &call->tensors, stream);
}

fattn_status facts_seam_run(facts_memory *memory, facts_call *call)
{
    TRY(facts_call_launch(call, memory->worker->stream));
    return fattn_stream_synchronize(memory->worker->context, memory->worker->stream);
}

fattn_status facts_seam_mislead(facts_memory *memory)
{
    return facts_memory_mislead(memory);
}

fattn_status facts_seam_replay(facts_memory *memory, const fattn_graph *graph)
{
    TRY(fattn_graph_launch(graph, memory->worker->stream));
    return fattn_stream_synchronize(memory->worker->context, memory->worker->stream);
}

fattn_status facts_seam_fetch(facts_memory *memory, facts_pattern pattern,
                              int64_t overrun[FACTS_PLACES])
{
    return facts_memory_fetch(memory, pattern, overrun);
}
