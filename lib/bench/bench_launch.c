/* The host time of fattn_forward beside a bare cudnnBackendExecute of the same plan with a ready variant pack. Two loops of one
 * process alternate, so that the machine's speed cancels out.
 *
 * usage: bench_launch CUDNN_DIR [NVRTC|-]
 * Prints one JSON object, microseconds of host time for one call, the best of several batches. Each batch is waited for before
 * the next one.
 *   bare             cudnnBackendExecute
 *   call             fattn_forward, the same addresses at every call; ratio = call / bare
 *   call_alternating fattn_forward, 16 sets of addresses in turn, as the layers of a model
 *   call_new         fattn_forward, new addresses at each call: includes making a variant pack
 *   checks           the part of a call before the launch */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/arguments.h"
#include "core/context.h"
#include "core/plan.h"
#include "cudnn/plan/cudnn_plan.h"
#include "fattn/device.h"

enum { BATCHES = 40, CALLS = 200, SETS = 16, STEP = 1 << 16, ROOM = 64 << 20 };

static fattn_context *context;
static fattn_plan *plan;
static struct CUstream_st *stream;
static char *memory;
static fattn__handle handle;
static fattn__desc pack;
static uintptr_t next_place;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench_launch: %s: %s\n", what, fattn_last_error());
    exit(3);
}

/* Small tensors: the GPU must keep up with the host. Each 8 KiB; sets lie apart by multiples of 256
 * bytes. */
static fattn_tensors tensors_at(size_t place)
{
    fattn_tensors t = FATTN_TENSORS_INIT;
    char *at = memory + place * 256 % (ROOM - 8 * STEP);
    t.q = at, t.k = at + STEP, t.v = at + 2 * STEP, t.o = at + 3 * STEP;
    t.workspace = at + 4 * STEP;
    t.workspace_bytes = fattn_plan_workspace_bytes(plan);
    return t;
}

static void *address_of(const fattn__binding *b, const fattn_tensors *t)
{
    switch ((fattn__slot)b->slot) {
    case FATTN__SLOT_Q:
        return (void *)(uintptr_t)t->q;
    case FATTN__SLOT_K:
        return (void *)(uintptr_t)t->k;
    case FATTN__SLOT_V:
        return (void *)(uintptr_t)t->v;
    case FATTN__SLOT_O:
        return t->o;
    case FATTN__SLOT_SCRATCH:
        return (char *)t->workspace + b->offset;
    case FATTN__SLOT_VALUE:
        return (void *)(uintptr_t)&b->value;
    default:
        fprintf(stderr, "bench_launch: a tensor that is not expected\n");
        exit(3);
    }
}

static void open_bare(void)
{
    const fattn__cudnn *api = context->api;
    const fattn__compiled *compiled = plan->state;
    const fattn_tensors t = tensors_at(0);
    void *addresses[FATTN__MAX_BINDINGS],
        *workspace = (char *)t.workspace + compiled->scratch_bytes;
    for (int i = 0; i < compiled->binding_count; i++)
        addresses[i] = address_of(&compiled->bindings[i], &t);
    int status = api->cudnnCreate(&handle);
    status |= api->cudnnSetStream(handle, stream);
    status |= api->cudnnBackendCreateDescriptor(DNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    status |= api->cudnnBackendSetAttribute(pack, DNN_ATTR_VARIANT_PACK_UNIQUE_IDS, DNN_TYPE_INT64,
                                            compiled->binding_count, compiled->uids);
    status |= api->cudnnBackendSetAttribute(pack, DNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                            DNN_TYPE_VOID_PTR, compiled->binding_count, addresses);
    status |= api->cudnnBackendSetAttribute(pack, DNN_ATTR_VARIANT_PACK_WORKSPACE,
                                            DNN_TYPE_VOID_PTR, 1, &workspace);
    status |= api->cudnnBackendFinalize(pack);
    if (status != DNN_STATUS_SUCCESS)
        fail("bare");
}

static void do_bare(int i)
{
    (void)i;
    if (context->api->cudnnBackendExecute(handle, ((const fattn__compiled *)plan->state)->desc,
                                          pack) != DNN_STATUS_SUCCESS)
        fail("execute");
}

static void forward(size_t place)
{
    const fattn_tensors t = tensors_at(place);
    if (fattn_forward(plan, &t, stream) != FATTN_OK)
        fail("forward");
}

static void do_call(int i)
{
    (void)i;
    forward(0);
}

static void do_alternating(int i)
{
    forward((size_t)(i % SETS) * 1000);
}

static void do_new(int i)
{
    (void)i;
    forward(++next_place);
}

static void do_checks(int i)
{
    fattn_tensors out;
    const fattn_tensors t = tensors_at(0);
    (void)i;
    if (fattn__check_call(plan, FATTN_FORWARD, &t, &out) != FATTN_OK)
        fail("checks");
}

static double batch_us(void (*body)(int))
{
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < CALLS; i++)
        body(i);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (fattn_stream_synchronize(context, stream) != FATTN_OK)
        fail("synchronize");
    return ((double)(end.tv_sec - start.tv_sec) * 1e6 +
            (double)(end.tv_nsec - start.tv_nsec) * 1e-3) /
           CALLS;
}

static void open_all(int argc, char **argv)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_problem problem = FATTN_PROBLEM_INIT;
    void *buffer;
    options.cudnn_dir = argv[1];
    options.nvrtc = argc > 2 && strcmp(argv[2], "-") != 0 ? argv[2] : NULL;
    problem.batch = problem.heads_q = 1;
    problem.seq_q = problem.seq_kv = 64;
    problem.dim_qk = 64;
    if (fattn_context_create(&context, &options) != FATTN_OK ||
        fattn_plan_create(&plan, context, &problem, NULL) != FATTN_OK ||
        fattn_stream_create(&stream, context) != FATTN_OK ||
        fattn_buffer_create(&buffer, context, ROOM) != FATTN_OK)
        fail("open");
    memory = buffer;
    if (fattn_plan_workspace_bytes(plan) > 2 * STEP)
        fail("the workspace is larger than expected");
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: bench_launch CUDNN_DIR [NVRTC|-]\n");
        return 2;
    }
    open_all(argc, argv);
    open_bare();
    static void (*const bodies[])(int) = { do_bare, do_call, do_alternating, do_new, do_checks };
    double best[5] = { 1e300, 1e300, 1e300, 1e300, 1e300 };
    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 0; i < 5; i++) {
            const double us = batch_us(bodies[i]);
            best[i] = us < best[i] ? us : best[i];
        }
    }
    fattn_context_info info = { .struct_size = sizeof info };
    fattn_context_info_get(context, &info);
    printf("{\"cudnn\": %d, \"device\": \"%s\", \"bare\": %.3f, \"call\": %.3f, \"ratio\": %.3f, "
           "\"call_alternating\": %.3f, \"call_new\": %.3f, "
           "\"checks\": %.3f}\n",
           info.cudnn_version, info.device_name, best[0], best[1], best[1] / best[0], best[2],
           best[3], best[4]);
    context->api->cudnnBackendDestroyDescriptor(pack);
    context->api->cudnnDestroy(handle);
    fattn_buffer_destroy(context, memory);
    fattn_stream_destroy(context, stream);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
    return 0;
}
