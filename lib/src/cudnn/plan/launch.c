/* One call of a plan. The library allocates nothing; cuDNN makes one small descriptor for addresses
 * that are new to a handle. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/error.h"
#include "cudnn_plan.h"

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

static fattn_status launch_failed(const fattn__cudnn *api, int status)
{
    enum { FIRST_UNSUPPORTED = 3000, LAST_UNSUPPORTED = 3999 };
    char last[512] = "";
    const bool refused =
        status >= FIRST_UNSUPPORTED && status <= LAST_UNSUPPORTED; /* nothing was launched */
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
    enum { FIRST_UNSUPPORTED = 3000, LAST_UNSUPPORTED = 3999, GRAPH_MISMATCH = 2011 };
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
        bool refused =
            (status >= FIRST_UNSUPPORTED && status <= LAST_UNSUPPORTED) || status == GRAPH_MISMATCH;
        st = fattn__fail(refused ? FATTN_UNSUPPORTED : FATTN_INTERNAL,
                         "the native graph cannot be %s: %s %s", update ? "updated" : "made",
                         fattn__cudnn_status_name(api, status), last);
    }
    fattn__desc_destroy(api, pack);
    fattn__handles_give(plan->context->handles, slot);
    return st;
}
