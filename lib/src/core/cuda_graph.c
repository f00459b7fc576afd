/* CUDA graphs: thin wrappers of the driver's functions, and cuDNN's native graphs. */
#include <stdlib.h>

#include "cudnn/plan/cudnn_plan.h"
#include "engine.h"
#include "error.h"
#include "fattn/graph.h"
#include "liars/lies.h"

struct fattn_graph {
    fattn_context *context; /* a reference */
    const gpu_driver *driver;
    struct CUgraph_st *recorded; /* kept, because it holds the objects that its nodes refer to
                                    (cuDNN's plans, from 9.28 on) */
    struct CUgraphExec_st *executable;
    bool native;
};

/* The functions that capture and replay on this device. The tests' library, which can lie, records
 * calls of the cpu backend. Returns FATTN_OK; FATTN_UNSUPPORTED (the cpu, a described device);
 * FATTN_ENVIRONMENT (the driver is too old: names what it lacks). */
static fattn_status driver_of(const gpu_driver **out, const fattn_context *context)
{
    *out = context->cuda;
    if (context->kind == FATTN_DEVICE_DESCRIBED)
        return fattn__fail(FATTN_UNSUPPORTED,
                           "a described device runs nothing, and has no CUDA graphs");
#ifdef FATTN_LIARS
    if (*out == NULL)
        *out = fattn__emulator_functions();
#endif
    if (*out == NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "the cpu has no CUDA graphs");
    const char *missing = gpu_driver_lacks_graphs(*out);
    if (missing != NULL)
        return fattn__fail(FATTN_ENVIRONMENT,
                           "the CUDA driver has no %s: it is too old for CUDA graphs", missing);
    return FATTN_OK;
}

/* Keeps "what: the driver's words". A call that is not allowed while a stream is captured is the
 * program's own mistake and harms nothing (FATTN_BAD_PROBLEM); an executable that cannot take an
 * update is FATTN_UNSUPPORTED; without memory it is FATTN_NO_MEMORY; the rest is
 * FATTN_DEVICE_FAULT. */
static fattn_status failure(const fattn_context *context, int result, const char *what)
{
    enum { ILLEGAL_STATE = 401, CAPTURE_FIRST = 900, CAPTURE_LAST = 908, UPDATE_FAILURE = 910 };
    const char *text = context->cuda != NULL ? gpu_driver_text(context->cuda, result) : "no driver";
    const bool misused = result == ILLEGAL_STATE || result == GPU_INVALID_VALUE ||
                         (result >= CAPTURE_FIRST && result <= CAPTURE_LAST);
    return fattn__fail(misused                       ? FATTN_BAD_PROBLEM
                       : result == UPDATE_FAILURE    ? FATTN_UNSUPPORTED
                       : result == GPU_OUT_OF_MEMORY ? FATTN_NO_MEMORY
                                                     : FATTN_DEVICE_FAULT,
                       "%s: %s", what, text);
}

static fattn_status instantiate(fattn_graph *graph)
{
    int result = graph->driver->graph_instantiate(&graph->executable, graph->recorded, 0);
    return result == 0 ? FATTN_OK
                       : failure(graph->context, result, "the graph cannot be made executable");
}

static void forget(fattn_graph *graph)
{
    fattn__context_release(graph->context);
    free(graph);
}

/* The device's context is current. */
static void release(fattn_graph *graph)
{
    if (graph->executable != NULL)
        graph->driver->executable_destroy(graph->executable);
    if (graph->recorded != NULL)
        graph->driver->graph_destroy(graph->recorded);
    forget(graph);
}

static fattn_graph *allocate(fattn_context *context, const gpu_driver *driver)
{
    fattn_graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL) {
        fattn__keep_sentence("no memory for a graph");
        return NULL;
    }
    graph->context = fattn__context_retain(context);
    graph->driver = driver;
    return graph;
}

/* ---- stream capture
 * --------------------------------------------------------------------------------------------------------
 */

static fattn_status check_stream(const fattn_context *context, const struct CUstream_st *stream)
{
    enum { LEGACY = 1 }; /* CU_STREAM_LEGACY */
    if (context->cuda == NULL)
        return FATTN_OK; /* no streams there */
    if (stream == NULL || (uintptr_t)stream == LEGACY)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "stream: the NULL stream cannot be captured; give one of your own");
    return FATTN_OK;
}

/* Making a cuDNN handle allocates, which would end a capture. So the handle of this stream is made
 * before. */
static fattn_status prepare_handle(fattn_context *context, struct CUstream_st *stream)
{
    fattn__handle_slot *slot;
    if (context->handles == NULL)
        return FATTN_OK;
    fattn_status st = fattn__handles_take(context->handles, context->api, stream, &slot);
    if (st == FATTN_OK)
        fattn__handles_give(context->handles, slot);
    return st;
}

/* The needs of both ends of a capture: the driver's functions, a stream that can be captured, and
 * the GPU's context, which is left again. */
static fattn_status enter_capture(const gpu_driver **driver, struct CUctx_st **previous,
                                  fattn_context *context, const struct CUstream_st *stream)
{
    fattn_status st = driver_of(driver, context);
    if (st == FATTN_OK)
        st = check_stream(context, stream);
    return st == FATTN_OK ? fattn__enter(context, previous) : st;
}

fattn_status fattn_capture_begin(fattn_context *context, struct CUstream_st *stream)
{
    NEED(context);
    const gpu_driver *driver;
    struct CUctx_st *previous;
    TRY(enter_capture(&driver, &previous, context, stream));
    fattn_status st = prepare_handle(context, stream);
    int result = st == FATTN_OK ? driver->capture_begin(stream, GPU_CAPTURE_THREAD_LOCAL) : 0;
    fattn__leave(context, previous);
    return result == 0 ? st : failure(context, result, "the capture cannot begin");
}

fattn_status fattn_capture_end(fattn_graph **out, fattn_context *context,
                               struct CUstream_st *stream)
{
    NEED(out);
    const gpu_driver *driver;
    struct CUctx_st *previous;
    *out = NULL;
    NEED(context);
    fattn_status st = enter_capture(&driver, &previous, context, stream);
    if (st != FATTN_OK)
        return st;
    struct CUgraph_st *recorded = NULL;
    int result = driver->capture_end(stream, &recorded);
    fattn_graph *graph = NULL;
    if (result != 0 || recorded == NULL)
        st = failure(context, result, "the capture failed");
    else if ((graph = allocate(context, driver)) == NULL)
        st = FATTN_NO_MEMORY;
    if (graph != NULL) {
        graph->recorded = recorded;
        st = instantiate(graph);
        if (st == FATTN_OK)
            *out = graph;
        else
            release(graph);
    } else if (recorded != NULL) {
        driver->graph_destroy(recorded);
    }
    fattn__leave(context, previous);
    return st;
}

/* The executable takes the addresses of `recorded`. */
static fattn_status lay_over(fattn_graph *graph, struct CUgraph_st *recorded)
{
    gpu_graph_update found = { 0 };
    if (FATTN__LIE(CAPTURE_STALE))
        return FATTN_OK;
    int result = graph->driver->graph_update(graph->executable, recorded, &found);
    return result == 0
               ? FATTN_OK
               : failure(graph->context, result, "the executable cannot take the new graph");
}

fattn_status fattn_graph_capture_update(fattn_graph *graph, fattn_graph *newer)
{
    NEED(graph, newer);
    struct CUctx_st *previous;
    if (graph == NULL || newer == NULL || graph == newer || graph->context != newer->context ||
        graph->native || newer->native) {
        if (newer != graph)
            fattn_graph_destroy(newer);
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "newer: an update needs two captured graphs of one context");
    }
    fattn_status st = fattn__enter(graph->context, &previous);
    if (st == FATTN_OK) {
        st = lay_over(graph, newer->recorded);
        if (st == FATTN_OK) {
            graph->driver->graph_destroy(graph->recorded);
            graph->recorded = newer->recorded;
            newer->recorded = NULL;
        }
        release(newer);
        fattn__leave(graph->context, previous);
    }
    return st;
}

/* ---- cuDNN's own
 * -----------------------------------------------------------------------------------------------------------
 */

static fattn_status check_native(const fattn_plan *plan)
{
    if (plan->engine != &fattn__cudnn_engine)
        return fattn__fail(FATTN_UNSUPPORTED,
                           "the %s backend has no native graphs: capture a stream",
                           plan->engine->name);
    return FATTN_OK;
}

fattn_status fattn_graph_native(fattn_graph **out, const fattn_plan *plan,
                                const fattn_tensors *tensors)
{
    NEED(out);
    const gpu_driver *driver;
    struct CUctx_st *previous;
    fattn_tensors checked;
    *out = NULL;
    NEED(plan, tensors);
    fattn_status st = check_native(plan);
    if (st == FATTN_OK)
        st = driver_of(&driver, plan->context);
    if (st == FATTN_OK)
        st = fattn__check_call(plan, (fattn_pass)plan->problem.pass, tensors, &checked);
    if (st != FATTN_OK)
        return st;
    fattn_graph *graph = allocate(plan->context, driver);
    if (graph == NULL)
        return FATTN_NO_MEMORY;
    graph->native = true;
    st = fattn__enter(plan->context, &previous);
    if (st != FATTN_OK) {
        forget(graph);
        return st;
    }
    int result = driver->graph_create(&graph->recorded, 0);
    if (result != 0)
        st = failure(plan->context, result, "create a graph");
    if (st == FATTN_OK)
        st = fattn__cudnn_fill_graph(plan, &checked, graph->recorded, false);
    if (st == FATTN_OK)
        st = instantiate(graph);
    if (st == FATTN_OK)
        *out = graph;
    else
        release(graph);
    fattn__leave(plan->context, previous);
    return st;
}

fattn_status fattn_graph_native_update(fattn_graph *graph, const fattn_plan *plan,
                                       const fattn_tensors *tensors)
{
    NEED(graph, plan, tensors);
    struct CUctx_st *previous;
    fattn_tensors checked;
    if (graph == NULL || !graph->native || graph->context != plan->context)
        return fattn__fail(FATTN_BAD_PROBLEM, "graph: not a native graph of the plan's context");
    fattn_status st = check_native(plan);
    if (st == FATTN_OK)
        st = fattn__check_call(plan, (fattn_pass)plan->problem.pass, tensors, &checked);
    if (st == FATTN_OK)
        st = fattn__enter(graph->context, &previous);
    if (st != FATTN_OK)
        return st;
    st = fattn__cudnn_fill_graph(plan, &checked, graph->recorded, true);
    if (st == FATTN_OK)
        st = lay_over(graph, graph->recorded);
    fattn__leave(graph->context, previous);
    return st;
}

/* ---- use
 * -------------------------------------------------------------------------------------------------------------------
 */

fattn_status fattn_graph_launch(const fattn_graph *graph, struct CUstream_st *stream)
{
    NEED(graph);
    struct CUctx_st *previous;
    if (graph == NULL)
        return fattn__fail(FATTN_BAD_PROBLEM, "graph: is NULL");
    TRY(fattn__enter(graph->context, &previous));
    int result = graph->driver->graph_launch(graph->executable, stream);
    fattn__leave(graph->context, previous);
    return result == 0 ? FATTN_OK : failure(graph->context, result, "the graph's launch failed");
}

size_t fattn_graph_node_count(const fattn_graph *graph)
{
    size_t count = 0;
    if (graph == NULL || graph->driver->graph_nodes(graph->recorded, NULL, &count) != 0)
        return 0;
    return count;
}

void fattn_graph_destroy(fattn_graph *graph)
{
    struct CUctx_st *previous;
    if (graph == NULL)
        return;
    if (!fattn__context_alive(graph->context) ||
        fattn__enter(graph->context, &previous) != FATTN_OK) {
        forget(graph); /* the device's context is gone, with all objects that were made in it */
        return;
    }
    fattn_context *context = fattn__context_retain(graph->context);
    release(graph);
    fattn__leave(context, previous);
    fattn__context_release(context);
}
