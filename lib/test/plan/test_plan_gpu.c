/* What only a GPU can show. Skipped where there is none. The cpu backend is the other opinion: same
 * problem, same bits of input. */
#include "core/engine.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

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

static float from_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

typedef struct results {
    uint16_t o[COUNT], dq[COUNT], dk[COUNT], dv[COUNT];
    float stats[ROWS];
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

/* Forward, then backward from its results. `plans` NULL: compiled here. */
static void compute(results *out, fattn_context *context, fattn_plan *const plans[2])
{
    const fattn_problem forward = small(FATTN_FORWARD), backward = small(FATTN_BACKWARD);
    fattn_plan *own[2] = { plans != NULL ? plans[0] : create(context, &forward),
                           plans != NULL ? plans[1] : create(context, &backward) };
    fattn_tensors t = inputs(context);
    run(context, own[0], &t, false);
    run(context, own[1], &t, true);
    cr_assert_eq(fattn_buffer_read(context, out->o, t.o, sizeof out->o), FATTN_OK);
    cr_assert_eq(fattn_buffer_read(context, out->stats, t.stats, sizeof out->stats), FATTN_OK);
    cr_assert_eq(fattn_buffer_read(context, out->dq, t.dq, sizeof out->dq), FATTN_OK);
    cr_assert_eq(fattn_buffer_read(context, out->dk, t.dk, sizeof out->dk), FATTN_OK);
    cr_assert_eq(fattn_buffer_read(context, out->dv, t.dv, sizeof out->dv), FATTN_OK);
    for (int i = 0; i < 2; i++)
        fattn_plan_destroy(own[i]);
}

static double largest_difference(const uint16_t *a, const uint16_t *b)
{
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
        double difference = fabs((double)from_bf16(a[i]) - (double)from_bf16(b[i]));
        worst = difference > worst || isnan(difference) ? difference : worst;
    }
    return worst;
}

Test(gpu, forward_and_backward_agree_with_the_cpu)
{
    static results gpu, cpu;
    fattn_context *context = open_gpu(), *host = open_cpu();
    compute(&gpu, context, NULL);
    compute(&cpu, host, NULL);
    /* Values are below 1 in O and of order 1 in the gradients: a lost tile or a wrong mask is off by more than 0.05, rounding by
     * less. */
    cr_expect_lt(largest_difference(gpu.o, cpu.o), 0.02);
    cr_expect_lt(largest_difference(gpu.dq, cpu.dq), 0.05);
    cr_expect_lt(largest_difference(gpu.dk, cpu.dk), 0.05);
    cr_expect_lt(largest_difference(gpu.dv, cpu.dv), 0.05);
    for (int i = 0; i < ROWS; i++)
        cr_assert_float_eq(gpu.stats[i], cpu.stats[i], 1e-3, "row %d", i);
    fattn_context_destroy(context);
    fattn_context_destroy(host);
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
        printf("loaded in %.2f ms\n", fattn_plan_ms(plans[i]));
        fattn_free(bytes);
    }
    compute(&loaded, context, plans);
    compute(&compiled, context, NULL);
    cr_expect_eq(memcmp(loaded.o, compiled.o, sizeof loaded.o), 0);
    cr_expect_eq(memcmp(loaded.dk, compiled.dk, sizeof loaded.dk), 0);
    cr_expect_eq(memcmp(loaded.dv, compiled.dv, sizeof loaded.dv), 0);
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
    cr_assert_eq(fattn_buffer_read(context, in_turn.o, t.o, sizeof alone.o), FATTN_OK);
    cr_assert_eq(fattn_buffer_read(context, in_turn.dk, t.dk, sizeof alone.dk), FATTN_OK);
    cr_assert_eq(fattn_buffer_read(context, in_turn.dv, t.dv, sizeof alone.dv), FATTN_OK);
    cr_expect_eq(memcmp(alone.o, in_turn.o, sizeof alone.o), 0);
    cr_expect_eq(memcmp(alone.dk, in_turn.dk, sizeof alone.dk), 0);
    cr_expect_eq(memcmp(alone.dv, in_turn.dv, sizeof alone.dv), 0);
    fattn_stream_destroy(context, stream);
    fattn_plan_destroy(plans[0]), fattn_plan_destroy(plans[1]);
    fattn_context_destroy(context);
}

Test(gpu, an_address_of_the_host_is_refused_before_anything_is_launched)
{
    fattn_context *context = open_gpu();
    const fattn_problem problem = small(FATTN_FORWARD);
    fattn_plan *plan = create(context, &problem);
    _Alignas(256) static uint16_t host[COUNT];
    fattn_tensors t = inputs(context);
    t.workspace_bytes = fattn_plan_workspace_bytes(plan);
    t.workspace = put(context, NULL, t.workspace_bytes);
    t.v = host;
    cr_expect_eq(fattn_forward(plan, &t, NULL), FATTN_BAD_PROBLEM);
    cr_expect_not_null(strstr(fattn_last_error(), "v is not an address"), "%s", fattn_last_error());
    fattn_plan_destroy(plan);
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

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
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
    double mean_us = 0, start = now_us();
    for (int i = 0; i < 1000; i++)
        launch(&launchers[0], NULL);
    printf("host time of one call: %.2f us\n", (now_us() - start) / 1000);
    cr_assert_eq(fattn_stream_synchronize(context, NULL), FATTN_OK);
    cr_assert_eq(fattn_stream_time(context, NULL, launch, &launchers[0], 100, &mean_us), FATTN_OK);
    cr_expect_gt(mean_us, 0);
    int ordinal;
    start = now_us();
    for (int i = 0; i < 100000; i++)
        context->cuda->pointer_attribute(&ordinal, GPU_ORDINAL_OF_POINTER,
                                         (uintptr_t)launchers[0].tensors.o);
    printf("one question about a pointer: %.0f ns; on the GPU %.2f us a call\n",
           (now_us() - start) / 100, mean_us);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}

static void *destroy(void *context)
{
    fattn_context_destroy(context);
    return NULL;
}

Test(gpu, a_context_may_end_on_another_thread)
{
    fattn_context *context = open_gpu();
    fattn_context_info info = { .struct_size = sizeof info };
    cr_expect_eq(fattn_context_info_get(context, &info), FATTN_OK);
    cr_expect_gt(info.sm, 0);
    cr_expect_eq(strncmp(info.device_uuid, "GPU-", 4), 0);
    cr_expect_eq(fattn_context_verify(context), FATTN_OK, "%s", fattn_last_error());
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, destroy, context), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    context = open_gpu();
    fattn_context_abandon(context);
}
