/* Graphs on the emulated driver of lib/src/liars: every call of the driver fails once; nothing may
 * leak, and *out is NULL. */
#include <criterion/criterion.h>
#include <string.h>

#include "fattn/device.h"
#include "fattn/fattn.h"
#include "fattn/graph.h"
#include "liars/lies.h"

enum { B = 1, H = 2, S = 24, D = 16, ELEMENTS = B * H * S * D };

static float q[ELEMENTS], k[ELEMENTS], v[ELEMENTS];

/* Open in each test; a test that closes one itself leaves NULL. */
static struct {
    fattn_context *context;
    fattn_plan *plan;
    void *workspace;
} f;

static void open_fixture(void)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_problem problem = FATTN_PROBLEM_INIT;
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 1;
    problem.dtype = FATTN_F32;
    problem.batch = B;
    problem.heads_q = H;
    problem.seq_q = problem.seq_kv = S;
    problem.dim_qk = D;
    cr_assert_eq(fattn_context_create(&f.context, &options), FATTN_OK, "%s", fattn_last_error());
    cr_assert_eq(fattn_plan_create(&f.plan, f.context, &problem, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    cr_assert_eq(fattn_buffer_create(&f.workspace, f.context, fattn_plan_workspace_bytes(f.plan)),
                 FATTN_OK);
    for (int i = 0; i < ELEMENTS; i++) {
        q[i] = (float)(i % 7) - 3;
        k[i] = (float)(i % 5) - 2;
        v[i] = (float)(i % 11) - 5;
    }
}

static void close_fixture(void)
{
    if (f.context != NULL) {
        fattn_buffer_destroy(f.context, f.workspace);
        fattn_plan_destroy(f.plan);
        fattn_context_destroy(f.context);
    }
    cr_expect_eq(fattn__emulator_alive(), 0);
}

TestSuite(graph, .init = open_fixture, .fini = close_fixture);

static void *buffer(const float *values)
{
    void *out;
    cr_assert_eq(fattn_buffer_create(&out, f.context, ELEMENTS * sizeof(float)), FATTN_OK);
    if (values)
        memcpy(out, values, ELEMENTS * sizeof(float));
    else
        memset(out, 0xA5, ELEMENTS * sizeof(float));
    return out;
}

typedef struct buffers {
    float *q, *k, *v, *o;
    fattn_tensors call;
} buffers;

static buffers make(void)
{
    buffers b = { buffer(q), buffer(k), buffer(v), buffer(NULL), FATTN_TENSORS_INIT };
    b.call.q = b.q;
    b.call.k = b.k;
    b.call.v = b.v;
    b.call.o = b.o;
    b.call.workspace = f.workspace;
    b.call.workspace_bytes = fattn_plan_workspace_bytes(f.plan);
    return b;
}

static void drop(buffers *b)
{
    fattn_buffer_destroy(f.context, b->q);
    fattn_buffer_destroy(f.context, b->k);
    fattn_buffer_destroy(f.context, b->v);
    fattn_buffer_destroy(f.context, b->o);
}

static fattn_graph *record(const buffers *b)
{
    fattn_graph *graph;
    cr_assert_eq(fattn_capture_begin(f.context, NULL), FATTN_OK, "%s", fattn_last_error());
    cr_assert_eq(fattn_forward(f.plan, &b->call, NULL), FATTN_OK, "%s", fattn_last_error());
    cr_assert_eq(fattn_capture_end(&graph, f.context, NULL), FATTN_OK, "%s", fattn_last_error());
    return graph;
}

Test(graph, what_is_captured_runs_at_the_launch_and_not_before)
{
    buffers plain = make(), captured = make();
    cr_assert_eq(fattn_forward(f.plan, &plain.call, NULL), FATTN_OK);
    fattn_graph *graph = record(&captured);
    cr_expect_eq(fattn_graph_node_count(graph), 1);
    cr_expect(memcmp(captured.o, plain.o, ELEMENTS * sizeof(float)) != 0);
    cr_assert_eq(fattn_graph_launch(graph, NULL), FATTN_OK);
    cr_expect_eq(memcmp(captured.o, plain.o, ELEMENTS * sizeof(float)), 0);
    fattn_graph_destroy(graph);
    drop(&plain);
    drop(&captured);
}

Test(graph, an_update_moves_it_to_other_addresses)
{
    buffers old = make(), other = make();
    fattn_graph *graph = record(&old);
    cr_assert_eq(fattn_graph_capture_update(graph, record(&other)), FATTN_OK, "%s",
                 fattn_last_error());
    float before = old.o[0];
    cr_assert_eq(fattn_graph_launch(graph, NULL), FATTN_OK);
    cr_expect_eq(memcmp(&before, &old.o[0], sizeof before), 0);
    cr_expect(memcmp(old.o, other.o, ELEMENTS * sizeof(float)) != 0);
    fattn_graph_destroy(graph);
    drop(&old);
    drop(&other);
}

Test(graph, another_shape_of_graph_is_no_update)
{
    buffers b = make();
    fattn_graph *graph = record(&b), *longer;
    cr_assert_eq(fattn_capture_begin(f.context, NULL), FATTN_OK);
    cr_assert_eq(fattn_forward(f.plan, &b.call, NULL), FATTN_OK);
    cr_assert_eq(fattn_forward(f.plan, &b.call, NULL), FATTN_OK);
    cr_assert_eq(fattn_capture_end(&longer, f.context, NULL), FATTN_OK);
    cr_expect_eq(fattn_graph_capture_update(graph, longer), FATTN_UNSUPPORTED);
    cr_expect_eq(fattn_graph_capture_update(graph, graph), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_graph_launch(graph, NULL), FATTN_OK);
    fattn_graph_destroy(graph);
    drop(&b);
}

Test(graph, begin_twice_and_end_without_begin_are_the_callers_mistakes)
{
    fattn_graph *graph = (fattn_graph *)(void *)&f;
    cr_expect_eq(fattn_capture_end(&graph, f.context, NULL), FATTN_BAD_PROBLEM);
    cr_expect_null(graph);
    cr_assert_eq(fattn_capture_begin(f.context, NULL), FATTN_OK);
    cr_expect_eq(fattn_capture_begin(f.context, NULL), FATTN_BAD_PROBLEM);
    cr_assert_eq(fattn_capture_end(&graph, f.context, NULL), FATTN_OK);
    cr_expect_eq(fattn_graph_node_count(graph), 0, "nothing was captured");
    cr_expect_eq(fattn_graph_launch(graph, NULL), FATTN_OK);
    fattn_graph_destroy(graph);
    fattn_graph_destroy(NULL);
    cr_expect_eq(fattn_graph_launch(NULL, NULL), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_graph_node_count(NULL), 0);
}

/* create, end, instantiate, update's three, launch: each fails once. */
Test(graph, each_failure_of_the_driver_is_a_status_and_leaks_nothing)
{
    static const struct {
        int result;
        fattn_status status;
    } failures[] = { { 2, FATTN_NO_MEMORY },
                     { 901, FATTN_BAD_PROBLEM },
                     { 719, FATTN_DEVICE_FAULT },
                     { 910, FATTN_UNSUPPORTED } };
    buffers b = make();
    for (size_t kind = 0; kind < sizeof failures / sizeof *failures; kind++) {
        bool failed = true;
        for (int n = 0; failed; n++) {
            fattn_graph *graph = NULL, *newer = NULL;
            fattn__emulator_fail(n, failures[kind].result);
            fattn_status st = fattn_capture_begin(f.context, NULL);
            if (st == FATTN_OK && (st = fattn_forward(f.plan, &b.call, NULL)) == FATTN_OK)
                st = fattn_capture_end(&graph, f.context, NULL);
            cr_expect_eq(graph != NULL, st == FATTN_OK);
            if (st == FATTN_OK && (st = fattn_capture_begin(f.context, NULL)) == FATTN_OK) {
                st = fattn_capture_end(&newer, f.context, NULL);
                fattn_graph_destroy(newer);
            }
            if (st == FATTN_OK)
                st = fattn_graph_launch(graph, NULL);
            failed = st != FATTN_OK;
            if (failed) {
                cr_expect_eq(st, failures[kind].status, "call %d: %d", n, st);
                cr_expect(fattn_last_error()[0] != '\0');
            } else {
                cr_expect_eq(n, 7);
            }
            fattn__emulator_fail(0, 0);
            fattn_graph_destroy(graph);
            cr_expect_eq(fattn__emulator_alive(), 0, "call %d", n);
        }
    }
    drop(&b);
}

Test(graph, it_outlives_its_plan_and_its_context)
{
    buffers b = make();
    fattn_graph *graph = record(&b);
    fattn_plan_destroy(f.plan);
    cr_expect_eq(fattn_graph_launch(graph, NULL), FATTN_OK);
    drop(&b);
    fattn_buffer_destroy(f.context, f.workspace);
    fattn_context_destroy(f.context);
    f.context = NULL;
    fattn_graph_destroy(graph);
}

Test(graph, only_cudnn_has_native_ones)
{
    buffers b = make();
    fattn_graph *graph = (fattn_graph *)(void *)&f;
    cr_expect_eq(fattn_graph_native(&graph, f.plan, &b.call), FATTN_UNSUPPORTED);
    cr_expect_null(graph);
    cr_expect(strstr(fattn_last_error(), "cpu"));
    drop(&b);
}
