/* A call of the cudnn engine, seen from cuDNN's side: a library and a driver that only count. */
#include <pthread.h>
#include <string.h>

#include "core/context.h"
#include "core/plan.h"
#include "cudnn/plan/cudnn_plan.h"
#include "support/described_h100.h"

static _Atomic int made, destroyed, executed, handles_made, streams_set,
    busy[FATTN__MAX_HANDLES + 1];
static _Atomic bool shared; /* one handle in two calls at once */
static _Atomic int create_fails;

typedef struct pack {
    void *addresses[FATTN__MAX_BINDINGS];
    int64_t uids[FATTN__MAX_BINDINGS];
    void *workspace;
    int count;
    bool finalized;
} pack;

static int fake_create(int type, fattn__desc *out)
{
    cr_assert_eq(type, DNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    if (create_fails > 0 && --create_fails == 0)
        return 4003;
    made++;
    *out = calloc(1, sizeof(pack));
    return 0;
}

static int fake_set(fattn__desc desc, int name, int type, int64_t count, const void *elements)
{
    pack *p = desc;
    (void)type;
    cr_assert_not(p->finalized);
    if (name == DNN_ATTR_VARIANT_PACK_UNIQUE_IDS)
        memcpy(p->uids, elements, (size_t)count * sizeof *p->uids);
    else if (name == DNN_ATTR_VARIANT_PACK_DATA_POINTERS)
        memcpy(p->addresses, elements, (size_t)count * sizeof *p->addresses), p->count = (int)count;
    else
        memcpy(&p->workspace, elements, sizeof p->workspace);
    return 0;
}

static int fake_finalize(fattn__desc desc)
{
    ((pack *)desc)->finalized = true;
    return 0;
}

static int fake_destroy(fattn__desc desc)
{
    destroyed++;
    free(desc);
    return 0;
}

static int fake_handle(fattn__handle *out)
{
    *out = (void *)(uintptr_t)++handles_made;
    return 0;
}

static int fake_handle_destroy(fattn__handle handle)
{
    (void)handle;
    return 0;
}

static int fake_stream(fattn__handle handle, void *stream)
{
    (void)handle, (void)stream;
    streams_set++;
    return 0;
}

/* What the last execute of this thread was given. */
static _Thread_local pack last;
static _Thread_local fattn__desc last_plan;

static int fake_execute(fattn__handle handle, fattn__desc plan, fattn__desc desc)
{
    const uintptr_t at = (uintptr_t)handle;
    if (busy[at]++ > 0)
        shared = true;
    executed++;
    last = *(pack *)desc;
    last_plan = plan;
    busy[at]--;
    return 0;
}

static const char *fake_text(int status)
{
    (void)status;
    return "A_STATUS";
}

static const char *last_words = "its words";

static void fake_last(char *out, size_t capacity)
{
    snprintf(out, capacity, "%s", last_words);
}

static int fake_get(struct CUctx_st **out)
{
    *out = NULL;
    return 0;
}

static int fake_put(struct CUctx_st *context)
{
    (void)context;
    return 0;
}

static int fake_ordinal(void *out, int attribute, gpu_address address)
{
    (void)attribute, (void)address;
    *(int *)out = 0;
    return 0;
}

static fattn__cudnn api;
static gpu_driver cuda;
static struct fattn_context context;
static fattn__handles *handles;

static void open_fakes(void)
{
    api.cudnnBackendCreateDescriptor = fake_create;
    api.cudnnBackendSetAttribute = fake_set;
    api.cudnnBackendFinalize = fake_finalize;
    api.cudnnBackendDestroyDescriptor = fake_destroy;
    api.cudnnBackendExecute = fake_execute;
    api.cudnnCreate = fake_handle;
    api.cudnnDestroy = fake_handle_destroy;
    api.cudnnSetStream = fake_stream;
    api.cudnnGetErrorString = fake_text;
    api.cudnnGetLastErrorString = fake_last;
    cuda.context_get = fake_get;
    cuda.context_set = fake_put;
    cuda.pointer_attribute = fake_ordinal;
    handles = calloc(1, sizeof *handles);
    context.references = 1;
    context.api = &api;
    context.cuda = &cuda;
    context.handles = handles;
    cr_assert_eq(fattn__handles_init(handles, &api), FATTN_OK);
}

/* A plan of four tensors, 1 KiB of scratch and a constant. */
static fattn_plan *open_plan(uint64_t id)
{
    static const int32_t slots[] = { FATTN__SLOT_Q, FATTN__SLOT_K,       FATTN__SLOT_V,
                                     FATTN__SLOT_O, FATTN__SLOT_SCRATCH, FATTN__SLOT_VALUE };
    fattn_problem problem = control_problem();
    fattn_plan *plan = calloc(1, sizeof *plan);
    fattn__compiled *compiled = calloc(1, sizeof *compiled);
    cr_assert_eq(fattn_problem_resolve(&problem, &plan->problem), FATTN_OK);
    plan->context = &context;
    plan->engine = &fattn__cudnn_engine;
    plan->id = id;
    plan->state = compiled;
    plan->workspace_bytes = 2048;
    fattn__arguments_of(&plan->arguments, &plan->problem, plan->workspace_bytes);
    compiled->scratch_bytes = 1024;
    compiled->desc = compiled;
    compiled->binding_count = 6;
    for (int i = 0; i < 6; i++) {
        compiled->uids[i] = i + 1;
        compiled->bindings[i] =
            (fattn__binding){ .uid = i + 1, .slot = slots[i], .offset = i == 4 ? 256 : 0 };
    }
    return plan;
}

static void close_plan(fattn_plan *plan)
{
    free(plan->state);
    free(plan);
}

static fattn_tensors tensors_at(uintptr_t base)
{
    fattn_tensors t = FATTN_TENSORS_INIT;
    const uintptr_t step = (uintptr_t)1 << 24;
    t.q = (void *)(base + step), t.k = (void *)(base + 2 * step), t.v = (void *)(base + 3 * step),
    t.o = (void *)(base + 4 * step);
    t.workspace = (void *)(base + 5 * step);
    t.workspace_bytes = 2048;
    return t;
}

static bool launched(const fattn_plan *plan, const fattn_tensors *t)
{
    const fattn__compiled *compiled = plan->state;
    return last_plan == compiled->desc && last.count == 6 && last.addresses[0] == t->q &&
           last.addresses[1] == t->k && last.addresses[2] == t->v && last.addresses[3] == t->o &&
           last.addresses[4] == (char *)t->workspace + 256 &&
           last.addresses[5] == &compiled->bindings[5].value &&
           last.workspace == (char *)t->workspace + 1024 && last.uids[5] == 6;
}

TestSuite(launch, .init = open_fakes);

static void expect_launch(const fattn_plan *plan, const fattn_tensors *t)
{
    cr_assert_eq(fattn_forward(plan, t, NULL), FATTN_OK, "%s", fattn_last_error());
    cr_assert(launched(plan, t));
}

Test(launch, a_call_with_known_addresses_makes_nothing)
{
    fattn_plan *plan = open_plan(1);
    const fattn_tensors t = tensors_at(0x100000000);
    for (int i = 0; i < 100; i++)
        expect_launch(plan, &t);
    cr_expect_eq(executed, 100);
    cr_expect_eq(made, 1);
    close_plan(plan);
}

Test(launch, any_other_address_gets_a_pack_of_its_own)
{
    fattn_plan *plan = open_plan(1);
    fattn_tensors all[6];
    for (int i = 0; i < 6; i++)
        all[i] = tensors_at(0x100000000);
    all[1].q = (const char *)all[1].q + 64;
    all[2].k = (const char *)all[2].k + 64;
    all[3].v = (const char *)all[3].v + 64;
    all[4].o = (char *)all[4].o + 64;
    all[5].workspace = (char *)all[5].workspace + 256;
    for (int i = 0; i < 18; i++)
        expect_launch(plan, &all[i % 6]);
    close_plan(plan);
}

Test(launch, a_plan_at_a_freed_plans_address_never_gets_the_freed_plans_pack)
{
    const fattn_tensors t = tensors_at(0x100000000);
    for (uint64_t id = 1; id <= 50; id++) {
        fattn_plan *plan = open_plan(id);
        expect_launch(plan, &t);
        close_plan(plan);
    }
    cr_expect_eq(made, 50);
}

Test(launch, packs_are_bounded_and_go_with_the_handles)
{
    fattn_plan *plan = open_plan(1);
    for (uintptr_t i = 0; i < 5000; i++) {
        const fattn_tensors t = tensors_at((i + 1) << 32);
        expect_launch(plan, &t);
        cr_assert_leq(made - destroyed, FATTN__PACKS);
    }
    close_plan(plan);
    fattn__handles_destroy(handles, &api);
    cr_expect_eq(made, destroyed);
}

Test(launch, a_pack_that_could_not_be_made_is_a_fault_unless_the_gpu_has_no_memory)
{
    fattn_plan *plan = open_plan(1);
    const fattn_tensors t = tensors_at(0x100000000);
    create_fails = 1;
    cr_expect_eq(fattn_forward(plan, &t, NULL), FATTN_DEVICE_FAULT);
    cr_expect_not_null(strstr(fattn_last_error(), "A_STATUS its words"), "%s", fattn_last_error());
    expect_launch(plan, &t);
    cr_expect_eq(executed, 1);
    close_plan(plan);
    plan = open_plan(2);
    create_fails = 1; /* as 9.19.0 said it on an H200 beside 13 other workers */
    last_words =
        "err 2 != CUDA_SUCCESS :: shimCuLaunchKernelEx(&config, func, kernelParams, nullptr)";
    cr_expect_eq(fattn_forward(plan, &t, NULL), FATTN_NO_MEMORY, "%s", fattn_last_error());
    create_fails = 1;
    last_words = "err 2 out of memory != cudaSuccess :: cudaGetFuncBySymbol(&func, (void *)symbol) "
                 " at: err != cudaSuccess"; /* 9.28.1 */
    cr_expect_eq(fattn_forward(plan, &t, NULL), FATTN_NO_MEMORY, "%s", fattn_last_error());
    close_plan(plan);
}

static fattn_plan *plans[2];

static void *hammer(void *argument)
{
    const uintptr_t me = (uintptr_t)argument;
    for (uintptr_t i = 0; i < 5000; i++) {
        const fattn_tensors t = tensors_at((me * 4 + i % 3) << 32);
        const fattn_plan *plan = plans[i & 1];
        if (fattn_forward(plan, &t, (struct CUstream_st *)(me << 8)) != FATTN_OK ||
            !launched(plan, &t))
            return "another call's addresses";
    }
    return NULL;
}

Test(launch, threads_never_share_a_handle_or_see_each_others_addresses)
{
    pthread_t threads[8];
    for (int i = 0; i < 2; i++)
        plans[i] = open_plan((uint64_t)i + 1);
    for (uintptr_t i = 0; i < 8; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, hammer, (void *)(i + 1)), 0);
    for (int i = 0; i < 8; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        cr_expect_null(wrong, "%s", (const char *)wrong);
    }
    cr_expect_not(shared);
    cr_expect_leq(handles_made, 8);
    cr_expect_eq(executed, 8 * 5000);
    for (int i = 0; i < 2; i++)
        close_plan(plans[i]);
    fattn__handles_destroy(handles, &api);
    cr_expect_eq(made, destroyed);
}
