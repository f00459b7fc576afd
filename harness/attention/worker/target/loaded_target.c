#include "loaded_target.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fattn/device.h"
#include "fattn/graph.h"
#include "fattn/policy.h"
#include "numbers/judge/calibration.h"
#include "words/clock.h"
#include "worker/gpu/worker_gpu.h"

/* May b, h, s be in this order, outermost first? Dimensions with stride 0 in the input come first,
 * in the order b,h,s. The others follow by decreasing stride, equal strides in the order b,h,s. */
static bool is_order(const int order[3], const int64_t dim[4], const int64_t like[4])
{
    for (int i = 0; i + 1 < 3; i++) {
        int a = order[i], b = order[i + 1];
        bool loose_a = dim[a] == 1 || like[a] == 0, loose_b = dim[b] == 1 || like[b] == 0;
        if (loose_a != loose_b              ? loose_b
            : loose_a || like[a] == like[b] ? a > b
                                            : like[a] < like[b])
            return false;
    }
    return true;
}

/* The dense strides of the only order of six that the rule allows. */
static void expects(const int64_t dim[4], const int64_t like[4], int64_t out[4])
{
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                      { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    for (int i = 0; i < 6; i++) {
        if (!is_order(orders[i], dim, like))
            continue;
        out[3] = 1;
        out[orders[i][2]] = dim[3];
        out[orders[i][1]] = dim[3] * dim[orders[i][2]];
        out[orders[i][0]] = dim[3] * dim[orders[i][2]] * dim[orders[i][1]];
    }
}

bool facts_layouts_hold(const facts_problem *p, facts_error *error)
{
    static const struct {
        facts_tensor_id input;
        const char *words;
        bool of_v; /* has V's channels */
    } pairs[] = { { FACTS_TENSOR_Q, "O (and dO) behind Q", true },
                  { FACTS_TENSOR_Q, "dQ behind Q", false },
                  { FACTS_TENSOR_K, "dK behind K", false },
                  { FACTS_TENSOR_V, "dV behind V", false } };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const facts_tensor *input = &p->tensor[pairs[i].input];
        int64_t dim[4], got[4], want[4] = { 0 };
        memcpy(dim, input->dim, sizeof dim);
        if (pairs[i].of_v)
            dim[3] = p->ask.dim_v;
        if (input->stride[0] != 0 && input->stride[1] != 0 && input->stride[2] != 0)
            continue;
        fattn_match_layout(dim, input->stride, got);
        expects(dim, input->stride, want);
        if (memcmp(got, want, sizeof got) == 0)
            continue;
        return facts_fail(error,
                          "layout: %s has strides %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                          "; its rule gives %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
                          pairs[i].words, got[0], got[1], got[2], got[3], want[0], want[1], want[2],
                          want[3]);
    }
    return true;
}

static const struct {
    int32_t order[2], count;
} allowed[FACTS_POLICY_COUNT] = {
    [FACTS_POLICY_CUDNN] = { { FATTN_BACKEND_CUDNN }, 1 },
    [FACTS_POLICY_MATH] = { { FATTN_BACKEND_MATH }, 1 },
    [FACTS_POLICY_ANY] = { { FATTN_BACKEND_CUDNN, FATTN_BACKEND_MATH }, 2 },
};

bool facts_policy_allows(const facts_worker *worker, facts_policy policy, fattn_backend backend)
{
    if (worker->device == FACTS_DEVICE_CPU)
        return backend == FATTN_BACKEND_CPU;
    for (int32_t i = 0; i < allowed[policy].count; i++)
        if (allowed[policy].order[i] == (int32_t)backend)
            return true;
    return false;
}

fattn_status facts_policy_begin(int *depth, const facts_worker *worker, facts_policy policy,
                                facts_error *error)
{
    fattn_policy wanted = FATTN_POLICY_INIT;
    *depth = FACTS_NO_POLICY;
    if (worker->device == FACTS_DEVICE_CPU ||
        policy == FACTS_POLICY_CUDNN) /* the rules without a policy */
        return FATTN_OK;
    memcpy(wanted.order, allowed[policy].order, sizeof allowed[policy].order);
    wanted.order_count = allowed[policy].count;
    const fattn_status status = fattn_policy_push(&wanted, depth);
    if (status != FATTN_OK) {
        *depth = FACTS_NO_POLICY;
        facts_fail(error, "policy: %.350s", fattn_last_error());
    }
    return status;
}

void facts_policy_end(int depth)
{
    if (depth != FACTS_NO_POLICY)
        fattn_policy_pop(depth);
}

#define MOST_LIBRARIES 64

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

static json_t *failed(fattn_status status, const char *text, const char *remedy)
{
    const fattn_status class = status == FATTN_NO_MEMORY ? status : FATTN_ENVIRONMENT;
    return json_pack("{s:{s:s,s:s,s:s}}", "failed", "class", fattn_status_name(class), "text", text,
                     "remedy", remedy);
}

/* A target that refuses this problem is not usable: a missing NVRTC or driver looks like "no
 * engines". */
static json_t *ask_control(facts_worker *worker)
{
    fattn_problem control = FATTN_PROBLEM_INIT;
    fattn_decision *decision = NULL;
    control.dtype = FATTN_BF16;
    control.batch = control.heads_q = 1;
    control.seq_q = control.seq_kv = control.dim_qk = 128;
    json_t *reply = NULL;
    const fattn_status status = fattn_decide(&decision, worker->context, &control, FATTN_ASK_A);
    if (status != FATTN_OK) {
        reply = failed(status, fattn_last_error(), "");
    } else if (!fattn_decision_supported(decision)) {
        char text[600];
        snprintf(text, sizeof text, "the control case (bf16, d 128, no mask) was refused: %.500s",
                 fattn_decision_text(decision));
        reply = failed(FATTN_ENVIRONMENT, text, fattn_decision_remedy(decision));
    }
    fattn_decision_destroy(decision);
    return reply;
}

/* The description of the GPU as cuDNN sees it. NULL when this cuDNN cannot describe a GPU. */
static json_t *description(const facts_worker *worker)
{
    char text[8192];
    if (worker->device != FACTS_DEVICE_GPU ||
        fattn_context_describe(worker->context, text, sizeof text) != FATTN_OK)
        return NULL;
    return json_loads(text, 0, NULL);
}

/* Another file at the same path has another one of these. */
static json_t *identity(const char *path)
{
    struct stat now;
    char text[96] = "";
    if (stat(path, &now) == 0)
        snprintf(text, sizeof text, "%jx-%jx-%jx.%09ld", (uintmax_t)now.st_dev,
                 (uintmax_t)now.st_ino, (uintmax_t)now.st_mtim.tv_sec, now.st_mtim.tv_nsec);
    return json_string(text);
}

static json_t *ready(facts_worker *worker)
{
    const fattn_context_info *info = &worker->info;
    fattn_library library[MOST_LIBRARIES];
    size_t count = fattn_context_libraries(worker->context, library, MOST_LIBRARIES);
    json_t *libraries = json_array();
    for (size_t i = 0; i < count && i < MOST_LIBRARIES && library[i].path[0]; i++)
        json_array_append_new(libraries,
                              json_pack("{s:s,s:I,s:b,s:o}", "path", library[i].path, "bytes",
                                        (json_int_t)library[i].bytes, "in_build",
                                        library[i].in_build, "file", identity(library[i].path)));
    char version[32], nearest[16];
    snprintf(version, sizeof version, "%d.%d.%d", info->cudnn_version / 10000,
             info->cudnn_version / 100 % 100, info->cudnn_version % 100);
    const bool judged = worker->device == FACTS_DEVICE_GPU &&
                        facts_constants_nearest(nearest, info->sm, info->cudnn_version);
    json_t *out = json_pack(
        "{s:{s:s,s:i,s:i,s:s,s:s,s:i,s:b,s:s,s:o,s:f,s:o*,s:s*}}", "ready", "cudnn",
        info->cudnn_version ? version : "", "sm", info->sm, "driver", info->driver_version,
        "device_name", info->device_name, "uuid", info->device_uuid, "multiprocessors",
        info->multiprocessors, "math_kernels", info->math_kernels, "math_about", info->math_about,
        "libraries", libraries, "start_ms", facts_now_ms() - worker->since_ms, "description",
        description(worker), "calibration", judged ? nearest : NULL);
    if (worker->gpu)
        json_object_set_new(json_object_get(out, "ready"), "memory_free",
                            json_integer((json_int_t)facts_gpu_free_bytes(worker->gpu)));
    return out;
}

static json_t *open_context(facts_worker *worker, const facts_target_request *request)
{
    static const int32_t kinds[] = { FATTN_DEVICE_GPU, FATTN_DEVICE_DESCRIBED, FATTN_DEVICE_CPU };
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.cudnn_dir = or_null(request->cudnn_dir);
    options.nvrtc = or_null(request->nvrtc);
    options.driver = or_null(request->driver);
    options.device_json = request->device_json;
    options.device_kind = kinds[request->device];
    options.ordinal = request->ordinal;
    options.threads = request->threads;
    /* The hash of the libraries takes time, and only plans need it. It is computed now, because a new link to a library before
     * the hash would count as a change. */
    worker->info.struct_size =
        request->plans ? sizeof worker->info : offsetof(fattn_context_info, build_id);
    fattn_status status = fattn_context_create(&worker->context, &options);
    if (status != FATTN_OK)
        return failed(status, fattn_last_error(), "facts doctor shows what is here");
    status = fattn_context_info_get(worker->context, &worker->info);
    if (status == FATTN_OK)
        status = facts_plans_open(&worker->plans);
    if (status != FATTN_OK)
        return failed(status, fattn_last_error(), "");
    if (request->device == FACTS_DEVICE_CPU)
        return NULL;
    /* cuDNN refuses all attention on older GPUs, the control case too. */
    json_t *reply = worker->info.sm >= 80 ? ask_control(worker) : NULL;
    if (fattn_context_verify(worker->context) !=
        FATTN_OK) { /* the cause, if the control case was refused too */
        json_decref(reply);
        reply = failed(FATTN_ENVIRONMENT, fattn_last_error(),
                       "--nvrtc gives another NVRTC; or remove the other library from the loader's "
                       "path");
    }
    return reply;
}

static bool can_capture(const facts_worker *worker)
{
    fattn_graph *graph = NULL;
    if (worker->device != FACTS_DEVICE_CPU)
        return true; /* a GPU; functions that its driver lacks are reported when they are used */
    if (fattn_capture_begin(worker->context, worker->stream) != FATTN_OK)
        return false;
    bool ended = fattn_capture_end(&graph, worker->context, worker->stream) == FATTN_OK;
    fattn_graph_destroy(graph);
    return ended;
}

bool facts_target_open(facts_worker *out, const facts_target_request *request, json_t **reply)
{
    *out = (facts_worker){ .device = request->device,
                           .oracle = request->oracle,
                           .since_ms = facts_now_ms() };
    memcpy(out->cudnn_dir, request->cudnn_dir, sizeof out->cudnn_dir);
    *reply = open_context(out, request);
    const fattn_status status = *reply || out->device != FACTS_DEVICE_GPU
                                    ? FATTN_OK
                                    : fattn_stream_create(&out->stream, out->context);
    if (status != FATTN_OK)
        *reply = failed(status, fattn_last_error(), "");
    return *reply == NULL;
}

bool facts_target_prove(facts_worker *worker, json_t **reply)
{
    char text[400];
    if (worker->device == FACTS_DEVICE_GPU &&
        !facts_gpu_open(&worker->gpu, worker->context, worker->stream, worker->gpu_error))
        worker->gpu =
            NULL; /* inputs and comparisons are made on the host: slower, with the same result */
    if (worker->gpu && facts_gpu_prove(worker->gpu) != FATTN_OK) {
        snprintf(text, sizeof text, "the GPU does not work: %.300s", facts_gpu_error(worker->gpu));
        *reply = failed(FATTN_ENVIRONMENT, text, "restart the machine, or leave this GPU out");
        worker->lost = true;
        return false;
    }
    worker->has_graphs = can_capture(worker);
    *reply = ready(worker);
    return true;
}

void facts_target_close(facts_worker *worker)
{
    facts_watch_close(worker->watch);
    facts_gpu_close(worker->gpu, worker->lost);
    if (worker->lost) {
        fattn_context_abandon(worker->context);
    } else if (worker->context) {
        fattn_stream_destroy(worker->context, worker->stream);
        fattn_context_destroy(worker->context);
    }
    free(worker->plans);
    *worker = (facts_worker){ 0 };
}
