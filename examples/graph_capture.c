/* A call captured in a CUDA graph and replayed with new data.
 *
 * A graph refers to addresses, not to their contents: the program refills the same buffers between
 * the replays. fattn_forward allocates nothing and never synchronises, so this library's functions
 * or any other stream capture may capture it. */
#include "loops.h"
#include <fattn/graph.h>

static naive shape = { .batch = 2, .heads = 4, .seq = 128, .dim = 64, .modify = naive_causal };

static fattn_plan *make_plan(example e)
{
    fattn_problem problem = FATTN_PROBLEM_INIT;
    fattn_plan *plan;
    problem.batch = shape.batch;
    problem.heads_q = shape.heads;
    problem.seq_q = problem.seq_kv = shape.seq;
    problem.dim_qk = shape.dim;
    problem.has_right = 1; /* causal */
    problem.capture = 1;   /* part of the question: engines of some versions cannot be captured */
    CHECK(fattn_plan_create(&plan, e.context, &problem, NULL));
    return plan;
}

/* Launched once for each set of data: only the buffers' contents change. */
static int replay(example e, const fattn_graph *graph, naive_call *call, struct CUstream_st *stream)
{
    const size_t count = naive_count(&shape);
    int status = 0;
    for (uint32_t round = 0; round < 3; round++) {
        char what[32];
        free(call->q);
        call->q = example_noise(count, 100 + round);
        example_write(e, (void *)(uintptr_t)call->tensors.q, call->q, count);
        CHECK(fattn_graph_launch(graph, stream));
        CHECK(fattn_stream_synchronize(e.context, stream));
        snprintf(what, sizeof what, "replay %u", (unsigned)round + 1);
        status |= naive_call_check(&shape, e, call, what);
    }
    return status;
}

int main(int argc, char **argv)
{
    example e = example_open(argc, argv);
    fattn_plan *plan = make_plan(e);
    if (e.kind == FATTN_DEVICE_DESCRIBED) {
        printf("a plan that may be captured was compiled; a described device has no streams\n");
        fattn_plan_destroy(plan);
        fattn_context_destroy(e.context);
        return 0;
    }

    naive_call call = naive_call_create(&shape, e, plan);
    struct CUstream_st *stream;
    fattn_graph *graph = NULL;
    int status = 0;
    CHECK(fattn_stream_create(&stream, e.context));

    const fattn_status begun = fattn_capture_begin(e.context, stream);
    if (begun == FATTN_UNSUPPORTED && e.kind == FATTN_DEVICE_CPU) {
        printf("the CPU has no CUDA graphs: %s\nrun without one instead\n", fattn_last_error());
        CHECK(fattn_forward(plan, &call.tensors, stream));
        status = naive_call_check(&shape, e, &call, "eager");
    } else {
        example_check(begun, "fattn_capture_begin");
        /* Recorded, not run. The capture must be ended even after a failure. */
        const fattn_status inside = fattn_forward(plan, &call.tensors, stream);
        CHECK(fattn_capture_end(&graph, e.context, stream));
        example_check(inside, "fattn_forward");
        printf("captured: %zu nodes\n", fattn_graph_node_count(graph));
        status = replay(e, graph, &call, stream);
    }

    fattn_graph_destroy(graph); /* before the plan: the graph refers to it */
    fattn_stream_destroy(e.context, stream);
    naive_call_destroy(e, &call);
    fattn_plan_destroy(plan);
    fattn_context_destroy(e.context);
    return status;
}
