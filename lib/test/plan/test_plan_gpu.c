/* What only a GPU can show. Skipped where there is none. What plans compute there is the suites'
 * subject. */
#include "core/engine.h"

#include <pthread.h>

#include "fattn/device.h"
#include "support/described_h100.h"

enum {
    BATCH = 2,
    HEADS = 4,
    SEQ = 256,
    DIM = 64,
    COUNT = BATCH * HEADS * SEQ * DIM,
    ROWS = BATCH * HEADS * SEQ
};

static fattn_problem small(fattn_pass pass)
{
    fattn_problem problem = FATTN_PROBLEM_INIT;
    problem.pass = pass;
    problem.batch = BATCH;
    problem.heads_q = HEADS;
    problem.seq_q = problem.seq_kv = SEQ;
    problem.dim_qk = DIM;
    problem.has_right = 1;
    problem.outputs = pass == FATTN_FORWARD ? FATTN_WANT_STATS : 0;
    return problem;
}

static uint16_t to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

typedef struct results {
    uint16_t o[COUNT], dq[COUNT], dk[COUNT], dv[COUNT];
} results;

static void *put(fattn_context *context, const void *from, size_t bytes)
{
    void *buffer;
    cr_assert_eq(fattn_buffer_create(&buffer, context, bytes), FATTN_OK, "%s", fattn_last_error());
    if (from != NULL)
        cr_assert_eq(fattn_buffer_write(context, buffer, from, bytes), FATTN_OK, "%s",
                     fattn_last_error());
    return buffer;
}

static fattn_plan *create(fattn_context *context, const fattn_problem *problem)
{
    fattn_plan *plan;
    cr_assert_eq(fattn_plan_create(&plan, context, problem, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    return plan;
}

static fattn_tensors inputs(fattn_context *context)
{
    static uint16_t values[4][COUNT];
    uint32_t state = 1;
    fattn_tensors t = FATTN_TENSORS_INIT;
    for (int n = 0; n < 4; n++) {
        for (int i = 0; i < COUNT; i++) {
            state = state * 1664525u + 1013904223u;
            values[n][i] = to_bf16((float)(state >> 8) / 0x1p23f - 1);
        }
    }
    t.q = put(context, values[0], sizeof values[0]);
    t.k = put(context, values[1], sizeof values[1]);
    t.v = put(context, values[2], sizeof values[2]);
    t.d_o = put(context, values[3], sizeof values[3]);
    t.o = put(context, NULL, sizeof values[0]);
    t.dq = put(context, NULL, sizeof values[0]);
    t.dk = put(context, NULL, sizeof values[0]);
    t.dv = put(context, NULL, sizeof values[0]);
    t.stats = put(context, NULL, ROWS * sizeof(float));
    return t;
}

static void run(fattn_context *context, const fattn_plan *plan, fattn_tensors *t, bool backward)
{
    struct CUstream_st *stream;
    t->workspace_bytes = fattn_plan_workspace_bytes(plan);
    t->workspace = put(context, NULL, t->workspace_bytes);
    cr_assert_eq(fattn_stream_create(&stream, context), FATTN_OK);
    fattn_status st = backward ? fattn_backward(plan, t, stream) : fattn_forward(plan, t, stream);
    cr_assert_eq(st, FATTN_OK, "%s", fattn_last_error());
    cr_assert_eq(fattn_stream_synchronize(context, stream), FATTN_OK, "%s", fattn_last_error());
    fattn_stream_destroy(context, stream);
    fattn_buffer_destroy(context, t->workspace);
}

static void read_results(results *out, fattn_context *context, const fattn_tensors *t)
{
    cr_assert_eq(fattn_buffer_read(context, out->o, t->o, sizeof out->o), FATTN_OK);
    cr_assert_eq(fattn_buffer_read(context, out->dq, t->dq, sizeof out->dq), FATTN_OK);
    cr_assert_eq(fattn_buffer_read(context, out->dk, t->dk, sizeof out->dk), FATTN_OK);
    cr_assert_eq(fattn_buffer_read(context, out->dv, t->dv, sizeof out->dv), FATTN_OK);
}

/* Forward, then backward from its results. `plans` NULL: compiled here. */
static void compute(results *out, fattn_context *context, fattn_plan *const plans[2])
{
    const fattn_problem forward = small(FATTN_FORWARD), backward = small(FATTN_BACKWARD);
    fattn_plan *own[2] = { plans != NULL ? plans[0] : create(context, &forward),
                           plans != NULL ? plans[1] : create(context, &backward) };
    fattn_tensors t = inputs(context);
    run(context, own[0], &t, false);
    run(context, own[1], &t, true);
    read_results(out, context, &t);
    for (int i = 0; i < 2; i++)
        fattn_plan_destroy(own[i]);
}

Test(gpu, a_plan_made_for_its_own_description_computes_the_same_bits)
{
    static results compiled, loaded;
    static char json[16384];
    fattn_context *context = open_gpu(), *described;
    fattn_context_options options = h100_options();
    cr_assert_eq(fattn_context_describe(context, json, sizeof json), FATTN_OK, "%s",
                 fattn_last_error());
    options.driver = NULL;
    options.device_json = json;
    described = open_options(&options);
    fattn_plan *plans[2];
    for (int i = 0; i < 2; i++) {
        const fattn_problem problem = small((fattn_pass)i);
        char *bytes;
        size_t count;
        fattn_plan *plan = create(described, &problem);
        cr_assert_eq(fattn_plan_save(plan, &bytes, &count), FATTN_OK, "%s", fattn_last_error());
        fattn_plan_destroy(plan);
        cr_assert_eq(fattn_plan_load(&plans[i], context, &problem, bytes, count), FATTN_OK, "%s",
                     fattn_last_error());
        fattn_free(bytes);
    }
    compute(&loaded, context, plans);
    compute(&compiled, context, NULL);
    cr_expect(!memcmp(loaded.o, compiled.o, sizeof loaded.o) &&
              !memcmp(loaded.dk, compiled.dk, sizeof loaded.dk) &&
              !memcmp(loaded.dv, compiled.dv, sizeof loaded.dv));
    fattn_context_destroy(described);
    fattn_context_destroy(context);
}

/* Forward, backward, forward, backward, one after another on a stream, without a wait. */
Test(gpu, plans_take_turns_in_one_workspace)
{
    static results alone, in_turn;
    fattn_context *context = open_gpu();
    compute(&alone, context, NULL);
    const fattn_problem forward = small(FATTN_FORWARD), backward = small(FATTN_BACKWARD);
    fattn_plan *plans[2] = { create(context, &forward), create(context, &backward) };
    struct CUstream_st *stream;
    fattn_tensors t = inputs(context);
    for (int i = 0; i < 2; i++)
        if (t.workspace_bytes < fattn_plan_workspace_bytes(plans[i]))
            t.workspace_bytes = fattn_plan_workspace_bytes(plans[i]);
    t.workspace = put(context, NULL, t.workspace_bytes);
    cr_assert_eq(fattn_stream_create(&stream, context), FATTN_OK);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(i % 2 ? fattn_backward(plans[1], &t, stream)
                           : fattn_forward(plans[0], &t, stream),
                     FATTN_OK, "%s", fattn_last_error());
    cr_assert_eq(fattn_stream_synchronize(context, stream), FATTN_OK, "%s", fattn_last_error());
    read_results(&in_turn, context, &t);
    cr_expect_eq(memcmp(&alone, &in_turn, offsetof(results, dq)), 0, "O");
    cr_expect_eq(memcmp(alone.dk, in_turn.dk, sizeof alone.dk), 0);
    cr_expect_eq(memcmp(alone.dv, in_turn.dv, sizeof alone.dv), 0);
    fattn_stream_destroy(context, stream);
    fattn_plan_destroy(plans[0]), fattn_plan_destroy(plans[1]);
    fattn_context_destroy(context);
}

typedef struct launcher {
    const fattn_plan *plan;
    fattn_tensors tensors;
    fattn_status status;
} launcher;

static fattn_status launch(void *argument, struct CUstream_st *stream)
{
    launcher *l = argument;
    return l->status = fattn_forward(l->plan, &l->tensors, stream);
}

static void *launch_many(void *argument)
{
    launcher *l = argument;
    struct CUstream_st *stream;
    fattn_context *context = l->plan->context;
    l->status = fattn_stream_create(&stream, context);
    for (int i = 0; i < 200 && l->status == FATTN_OK; i++)
        launch(l, stream);
    if (l->status == FATTN_OK)
        l->status = fattn_stream_synchronize(context, stream);
    fattn_stream_destroy(context, stream);
    return NULL;
}

Test(gpu, one_plan_is_launched_from_many_threads_at_once)
{
    fattn_context *context = open_gpu();
    const fattn_problem problem = small(FATTN_FORWARD);
    fattn_plan *plan = create(context, &problem);
    launcher launchers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        launchers[i] = (launcher){ .plan = plan, .tensors = inputs(context) };
        launchers[i].tensors.workspace_bytes = fattn_plan_workspace_bytes(plan);
        launchers[i].tensors.workspace = put(context, NULL, launchers[i].tensors.workspace_bytes);
        cr_assert_eq(pthread_create(&threads[i], NULL, launch_many, &launchers[i]), 0);
    }
    static uint16_t first[COUNT], other[COUNT];
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(launchers[i].status, FATTN_OK);
        cr_assert_eq(fattn_buffer_read(context, i == 0 ? first : other, launchers[i].tensors.o,
                                       sizeof first),
                     FATTN_OK);
        cr_expect(i == 0 || memcmp(first, other, sizeof first) == 0, "thread %d", i);
    }
    double mean_us = 0;
    cr_assert_eq(fattn_stream_time(context, NULL, launch, &launchers[0], 100, &mean_us), FATTN_OK);
    cr_expect_gt(mean_us, 0);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}
