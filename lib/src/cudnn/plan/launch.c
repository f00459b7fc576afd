/* One call of a plan. The library allocates nothing; cuDNN makes one small descriptor for addresses
 * that are new to a handle. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/error.h"
#include "cudnn_plan.h"
#include "math/math_sum.h"
#include "problem/resolved_problem.h"

static void *address_of(const fattn__binding *binding, const fattn_tensors *tensors)
{
    const void *address = NULL;
    switch ((fattn__slot)binding->slot) {
#define AS_CASE(symbol, field)                                                                     \
    case FATTN__SLOT_##symbol:                                                                     \
        address = tensors->field;                                                                  \
        break;
        FATTN__CALL_SLOT_LIST(AS_CASE)
#undef AS_CASE
#define AS_CASE(symbol, field, written)                                                            \
    case FATTN__SLOT_##symbol:                                                                     \
        address = tensors->field;                                                                  \
        break;
        FATTN__AUXILIARY_LIST(AS_CASE)
#undef AS_CASE
    case FATTN__SLOT_SCRATCH:
        address = (const char *)tensors->workspace + binding->offset;
        break;
    case FATTN__SLOT_VALUE:
        address = &binding->value;
        break;
    }
    return (void *)(uintptr_t)address;
}

/* The gradient of a broadcast input is the sum over the broadcast dimensions. cuDNN writes the
 * gradient of every element, and a kernel of this library sums them. */
fattn_status fattn__cudnn_sums(const fattn_plan *plan, const fattn_tensors *tensors,
                               struct CUstream_st *stream)
{
    const fattn__compiled *compiled = plan->state;
    fattn_status st = FATTN_OK;
    for (int i = 0; i < compiled->sum_count && st == FATTN_OK; i++) {
        const fattn__graph_sum *sum = &compiled->sums[i];
        fattn__sum call = { .from = (const char *)tensors->workspace + sum->offset,
                            .to = address_of(&(fattn__binding){ .slot = sum->slot }, tensors),
                            .dtype = sum->dtype,
                            .to_dtype = sum->out_dtype };
        memcpy(call.dim, sum->dim, sizeof call.dim);
        memcpy(call.strides, sum->strides, sizeof call.strides);
        memcpy(call.to_strides, sum->out_strides, sizeof call.to_strides);
        st = fattn__math_sum(plan->context, &call, stream);
    }
    return st;
}

/* Extents and strides that are given at the call. cuDNN's C API takes them as the address of a C++
 * object, a vector of vectors of int64. This file builds that object by hand, in the layout of the
 * C++ library of every Linux compiler. */

typedef struct vector {
    const void *begin, *end, *limit;
} vector;

enum { MOST = 32 };

typedef struct overrides {
    int count;
    int64_t uids[MOST];
    int64_t dims[MOST][4], strides[MOST][4];
} overrides;

static fattn__role role_of(fattn__slot slot)
{
    switch (slot) {
    case FATTN__SLOT_Q:
        return FATTN__ROLE_Q;
    case FATTN__SLOT_K:
        return FATTN__ROLE_K;
    case FATTN__SLOT_V:
        return FATTN__ROLE_V;
    case FATTN__SLOT_O:
        return FATTN__ROLE_O;
    case FATTN__SLOT_BIAS:
        return FATTN__ROLE_BIAS;
    case FATTN__SLOT_STATS:
    case FATTN__SLOT_MAX:
    case FATTN__SLOT_SUM_EXP:
        return FATTN__ROLE_STATS;
    default:
        return FATTN__ROLE_COUNT;
    }
}

/* Lengths and offsets: as many as there are entries, or one more. 0: no such tensor. */
static int64_t count_of(fattn__slot slot, const fattn_problem *p)
{
    if (slot == FATTN__SLOT_SEQ_LEN_Q)
        return p->batch + ((p->cumulative & FATTN_CUMULATIVE_Q) != 0);
    if (slot == FATTN__SLOT_SEQ_LEN_KV)
        return p->batch + ((p->cumulative & FATTN_CUMULATIVE_KV) != 0);
    return slot >= FATTN__SLOT_Q_OFFSETS && slot <= FATTN__SLOT_DV_OFFSETS ? p->batch + 1 : 0;
}

static void add(overrides *out, const fattn__binding *binding, const fattn_problem *p)
{
    const fattn__slot slot = (fattn__slot)binding->slot;
    const fattn__role role = role_of(slot);
    const int64_t count = count_of(slot, p),
                  step = p->len_broadcast && slot < FATTN__SLOT_Q_OFFSETS ? 0 : 1;
    if (out->count == MOST || (role == FATTN__ROLE_COUNT && count == 0))
        return;
    const fattn__shape shape =
        role != FATTN__ROLE_COUNT
            ? fattn__problem_shape(p, role)
            : (fattn__shape){ .dim = { count, 1, 1, 1 }, .strides = { step, 1, 1, 1 } };
    out->uids[out->count] = binding->uid;
    memcpy(out->dims[out->count], shape.dim, sizeof shape.dim);
    memcpy(out->strides[out->count], shape.strides, sizeof shape.strides);
    out->count++;
}

static vector of_rows(vector *rows, const int64_t at[][4], int count)
{
    for (int i = 0; i < count; i++)
        rows[i] = (vector){ at[i], at[i] + 4, at[i] + 4 };
    return (vector){ rows, rows + count, rows + count };
}

void fattn__overrides_give(fattn__steps *steps, fattn__desc pack, const fattn__compiled *compiled,
                           const fattn_problem *problem)
{
    overrides given = { .count = 0 };
    vector dims[MOST], strides[MOST];
    for (int i = 0; i < compiled->binding_count; i++)
        add(&given, &compiled->bindings[i], problem);
    const vector all_dims = of_rows(dims, (const int64_t (*)[4])given.dims, given.count);
    const vector all_strides = of_rows(strides, (const int64_t (*)[4])given.strides, given.count);
    fattn__step_set(steps, pack, DNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, DNN_TYPE_INT64,
                    given.count, given.uids);
    fattn__step_set(steps, pack, DNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, DNN_TYPE_VOID_PTR, 1,
                    &all_dims);
    fattn__step_set(steps, pack, DNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, DNN_TYPE_VOID_PTR, 1,
                    &all_strides);
}

static void *engine_workspace(const fattn__compiled *compiled, const fattn_tensors *tensors)
{
    return tensors->workspace != NULL ? (char *)tensors->workspace + compiled->scratch_bytes : NULL;
}

/* `as` is NULL where the plan's own extents and strides hold. */
static int make_pack(fattn__desc *out, const fattn__cudnn *api, const fattn__compiled *compiled,
                     const fattn_tensors *tensors, const fattn_problem *as)
{
    void *addresses[FATTN__MAX_BINDINGS], *workspace = engine_workspace(compiled, tensors);
    for (int i = 0; i < compiled->binding_count; i++)
        addresses[i] = address_of(&compiled->bindings[i], tensors);
    fattn__steps s = { .api = api };
    fattn__step_create(&s, DNN_BACKEND_VARIANT_PACK_DESCRIPTOR, out);
    fattn__step_set(&s, *out, DNN_ATTR_VARIANT_PACK_UNIQUE_IDS, DNN_TYPE_INT64,
                    compiled->binding_count, compiled->uids);
    fattn__step_set(&s, *out, DNN_ATTR_VARIANT_PACK_DATA_POINTERS, DNN_TYPE_VOID_PTR,
                    compiled->binding_count, addresses);
    fattn__step_set(&s, *out, DNN_ATTR_VARIANT_PACK_WORKSPACE, DNN_TYPE_VOID_PTR, 1, &workspace);
    if (as != NULL)
        fattn__overrides_give(&s, *out, compiled, as);
    fattn__step_finalize(&s, *out);
    return s.status;
}

/* The addresses of a call that make its variant pack; the constants belong to the plan. Returns how
 * many, 0 when they are too many to keep. */
static int list_addresses(void **out, const fattn__compiled *compiled, const fattn_tensors *tensors)
{
    int count = 0;
    for (int i = 0; i < compiled->binding_count; i++) {
        const fattn__binding *binding = &compiled->bindings[i];
        if (binding->slot == FATTN__SLOT_VALUE || binding->slot == FATTN__SLOT_SCRATCH)
            continue;
        if (count == FATTN__PACK_ADDRESSES - 1)
            return 0;
        out[count++] = address_of(binding, tensors);
    }
    out[count++] = tensors->workspace;
    return count;
}

/* The pack of these addresses: the one that this handle had at an earlier call, or a new one in its
 * place. */
static int borrow_pack(fattn__desc *out, fattn__handle_slot *slot, const fattn_plan *plan,
                       const fattn_tensors *tensors)
{
    const fattn__cudnn *api = plan->context->api;
    void *addresses[FATTN__PACK_ADDRESSES];
    const int count = list_addresses(addresses, plan->state, tensors);
    const size_t bytes = (size_t)count * sizeof *addresses;
    fattn__pack *pack =
        &slot->packs[XXH3_64bits_withSeed(addresses, bytes, plan->id) % FATTN__PACKS];
    int status = DNN_STATUS_SUCCESS;
    if (count == 0 || pack->plan != plan->id || pack->count != count ||
        memcmp(pack->addresses, addresses, bytes) != 0) {
        fattn__desc_destroy(api, pack->desc);
        pack->desc = NULL;
        pack->plan = 0;
        status = make_pack(&pack->desc, api, plan->state, tensors, NULL);
        if (status == DNN_STATUS_SUCCESS && count > 0) {
            pack->plan = plan->id;
            pack->count = count;
            memcpy(pack->addresses, addresses, bytes);
        }
    }
    *out = pack->desc;
    return status;
}

/* A launch with a pack that is not kept. */
static int run_once(const fattn__handle_slot *slot, const fattn__cudnn *api,
                    const fattn__compiled *compiled, const fattn_tensors *tensors,
                    const fattn_problem *as)
{
    fattn__desc pack = NULL;
    int status = make_pack(&pack, api, compiled, tensors, as);
    if (status == DNN_STATUS_SUCCESS)
        status = api->cudnnBackendExecute(slot->handle, compiled->desc, pack);
    fattn__desc_destroy(api, pack);
    return status;
}

/* A launch of the plan's own extents: first the graph in front of it, then the plan with a pack
 * that may be known. */
static int run_plan(fattn__handle_slot *slot, const fattn_plan *plan, const fattn_tensors *tensors)
{
    const fattn__cudnn *api = plan->context->api;
    const fattn__compiled *compiled = plan->state;
    fattn__desc pack = NULL;
    int status = compiled->before != NULL ? run_once(slot, api, compiled->before, tensors, NULL)
                                          : DNN_STATUS_SUCCESS;
    if (status == DNN_STATUS_SUCCESS)
        status = borrow_pack(&pack, slot, plan, tensors);
    return status == DNN_STATUS_SUCCESS
               ? api->cudnnBackendExecute(slot->handle, compiled->desc, pack)
               : status;
}

/* Nothing was launched. */
static bool is_refusal(int status)
{
    enum { FIRST_UNSUPPORTED = 3000, LAST_UNSUPPORTED = 3999 };
    return status >= FIRST_UNSUPPORTED && status <= LAST_UNSUPPORTED;
}

static fattn_status launch_failed(const fattn__cudnn *api, int status)
{
    char last[512] = "";
    const bool refused = is_refusal(status);
    api->cudnnGetLastErrorString(last, sizeof last);
    /* "err 2 != CUDA_SUCCESS" of the driver, "err 2 out of memory != cudaSuccess" of the runtime: other processes on the GPU
     * held the memory */
    const bool no_memory = strstr(last, "err 2 ") != NULL;
    return fattn__fail(refused     ? FATTN_UNSUPPORTED
                       : no_memory ? FATTN_NO_MEMORY
                                   : FATTN_DEVICE_FAULT,
                       "the launch %s: %s %s", refused ? "is refused" : "failed",
                       fattn__cudnn_status_name(api, status), last);
}

/* `as` is NULL where the plan's own extents and strides hold. */
static fattn_status launch(const fattn_plan *plan, const fattn_problem *as,
                           const fattn_tensors *tensors, struct CUstream_st *stream)
{
    fattn_context *context = plan->context;
    const fattn__compiled *compiled = plan->state;
    struct CUctx_st *previous;
    fattn__handle_slot *slot;
    TRY(fattn__enter(context, &previous));
    fattn_status st = fattn__handles_take(context->handles, context->api, stream, &slot);
    if (st == FATTN_OK) {
        const int status = as != NULL ? run_once(slot, context->api, compiled, tensors, as)
                                      : run_plan(slot, plan, tensors);
        if (status != DNN_STATUS_SUCCESS)
            st = launch_failed(context->api, status);
        else if (compiled->sum_count > 0)
            st = fattn__cudnn_sums(plan, tensors, stream);
        fattn__handles_give(context->handles, slot);
    }
    fattn__leave(context, previous);
    return st;
}

fattn_status fattn__cudnn_run(const fattn_plan *plan, const fattn_tensors *tensors,
                              struct CUstream_st *stream)
{
    return launch(plan, NULL, tensors, stream);
}

fattn_status fattn__cudnn_run_as(const fattn_plan *plan, const fattn_problem *problem,
                                 const fattn_tensors *tensors, struct CUstream_st *stream)
{
    return launch(plan, problem, tensors, stream);
}

fattn_status fattn__cudnn_fill_graph(const fattn_plan *plan, const fattn_tensors *tensors,
                                     void *graph, bool update)
{
    enum { GRAPH_MISMATCH = 2011 };
    const fattn__cudnn *api = plan->context->api;
    const fattn__compiled *compiled = plan->state;
    int (*fill)(fattn__handle, fattn__desc, fattn__desc, void *) =
        update ? api->cudnnBackendUpdateCudaGraph : api->cudnnBackendPopulateCudaGraph;
    fattn__handle_slot *slot;
    fattn__desc pack = NULL;
    if (fill == NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "cuDNN %d has no native CUDA graphs", api->version);
    if (compiled->before != NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "a native graph holds one graph of cuDNN's: a "
                                              "backward with rope is two; capture the call");
    if (compiled->sum_count > 0)
        return fattn__fail(FATTN_UNSUPPORTED, "a native graph holds cuDNN's part alone: this plan "
                                              "sums gradients after it; capture the call");
    fattn_status st = fattn__handles_take(plan->context->handles, api, NULL, &slot);
    if (st != FATTN_OK)
        return st;
    int status = make_pack(&pack, api, compiled, tensors, NULL);
    if (status == DNN_STATUS_SUCCESS)
        status = fill(slot->handle, compiled->desc, pack, graph);
    if (status != DNN_STATUS_SUCCESS) {
        char last[512] = "";
        api->cudnnGetLastErrorString(last, sizeof last);
        const bool refused = is_refusal(status) || status == GRAPH_MISMATCH;
        st = fattn__fail(refused ? FATTN_UNSUPPORTED : FATTN_INTERNAL,
                         "the native graph cannot be %s: %s %s", update ? "updated" : "made",
                         fattn__cudnn_status_name(api, status), last);
    }
    fattn__desc_destroy(api, pack);
    fattn__handles_give(plan->context->handles, slot);
    return st;
}
