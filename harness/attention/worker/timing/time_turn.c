#include "time_turn.h"

#include "fattn/device.h"
#include "numbers/dtype.h"
#include "worker/exec/seams.h"
#include "worker/gpu/worker_gpu.h"

#define SAMPLE_US                                                                                  \
    2000.0 /* a sample is about so long: launches of a few microseconds are measured together */
#define WARM_US 5000.0 /* at least, in each turn: another process had the GPU before */
#define MOST_LAUNCHES 500

static fattn_status sample(const facts_memory *memory, facts_call *call, int launches,
                           double *out_us)
{
    return fattn_stream_time(memory->worker->context, memory->worker->stream, facts_call_launch,
                             call, launches, out_us);
}

static fattn_status measure(facts_timed_plan *kept, const facts_memory *memory)
{
    facts_call call = { .plan = kept->plan,
                        .tensors = facts_memory_tensors(memory),
                        .backward = memory->problem->ask.pass == FATTN_BACKWARD };
    double us = 0, warm = 0;
    if (!kept->launches) {
        TRY(sample(memory, &call, 1, &us)); /* the first launch also loads code */
        TRY(sample(memory, &call, 1, &us));
        const double launches = us > 0 ? SAMPLE_US / us : MOST_LAUNCHES;
        kept->launches = launches < 1               ? 1
                         : launches > MOST_LAUNCHES ? MOST_LAUNCHES
                                                    : (int)launches;
    }
    do {
        TRY(sample(memory, &call, kept->launches, &us));
        warm += us * kept->launches + 1;
    } while (warm < WARM_US);
    for (int i = 0; i < FACTS_TURN_SAMPLES; i++)
        TRY(sample(memory, &call, kept->launches, &kept->us[i]));
    return FATTN_OK;
}

static fattn_status make_workspace(facts_timed_plans *plans, facts_memory *memory)
{
    size_t most = 0;
    for (int i = 0; i < plans->count; i++) {
        const size_t bytes = fattn_plan_workspace_bytes(plans->at[i].plan);
        most = bytes > most ? bytes : most;
    }
    TRY(facts_memory_workspace(memory, most));
    plans->ready = true;
    return FATTN_OK;
}

fattn_status facts_take_turn(facts_timed_plans *plans, facts_reference *reference)
{
    if (!plans->ready)
        TRY(make_workspace(plans, &reference->memory));
    for (int i = 0; i < plans->count; i++)
        TRY(measure(&plans->at[i], &reference->memory));
    return FATTN_OK;
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Keys that the queries of one batch entry see. */
static double pairs_of(const fattn_problem *ask, int64_t len_q, int64_t len_kv)
{
    const double shift = ask->align == FATTN_BOTTOM_RIGHT ? (double)(len_kv - len_q) : 0;
    double pairs = 0;
    for (int64_t row = 0; row < len_q; row++) {
        const double at = (double)row + shift;
        const double last = ask->has_right
                                ? clamp(at + (double)ask->window_right, -1, (double)len_kv - 1)
                                : (double)len_kv - 1;
        const double first =
            ask->has_left ? clamp(at - (double)ask->window_left + 1, 0, (double)len_kv) : 0;
        pairs += last >= first ? last - first + 1 : 0;
    }
    return pairs;
}

double facts_flops(const facts_problem *problem)
{
    const fattn_problem *ask = &problem->ask;
    const double qk = (double)ask->dim_qk, v = (double)(ask->dim_v ? ask->dim_v : ask->dim_qk);
    const double of_pair = ask->pass == FATTN_BACKWARD ? 2 * (3 * qk + 2 * v) : 2 * (qk + v);
    double pairs = 0;
    for (int64_t b = 0; b < ask->batch; b++)
        pairs += problem->has_lengths ? pairs_of(ask, problem->len_q[b], problem->len_kv[b])
                                      : pairs_of(ask, ask->seq_q, ask->seq_kv);
    return pairs * (double)ask->heads_q * of_pair;
}

static double bytes_of(const facts_tensor *tensor)
{
    return (double)facts_dtype_bytes(tensor->dtype);
}

double facts_bytes(const facts_problem *problem)
{
    const fattn_problem *ask = &problem->ask;
    const bool backward = ask->pass == FATTN_BACKWARD;
    const double heads_k = (double)(ask->heads_k ? ask->heads_k : ask->heads_q);
    const double heads_v = ask->heads_v ? (double)ask->heads_v : heads_k;
    const double qk = (double)ask->dim_qk, v = (double)(ask->dim_v ? ask->dim_v : ask->dim_qk);
    const facts_tensor *t = problem->tensor;
    double queries = 0, keys = 0;
    for (int64_t b = 0; b < ask->batch; b++) {
        queries += problem->has_lengths ? problem->len_q[b] : (double)ask->seq_q;
        keys += problem->has_lengths ? problem->len_kv[b] : (double)ask->seq_kv;
    }
    const double of_q = queries * (double)ask->heads_q * qk,
                 of_o = queries * (double)ask->heads_q * v;
    const double of_k = keys * heads_k * qk, of_v = keys * heads_v * v;
    double bytes = of_q * bytes_of(&t[FACTS_TENSOR_Q]) + of_k * bytes_of(&t[FACTS_TENSOR_K]) +
                   of_v * bytes_of(&t[FACTS_TENSOR_V]) + of_o * bytes_of(&t[FACTS_TENSOR_O]);
    if (backward)
        bytes += of_o * bytes_of(&t[FACTS_TENSOR_DO]) + of_q * bytes_of(&t[FACTS_TENSOR_DQ]) +
                 of_k * bytes_of(&t[FACTS_TENSOR_DK]) + of_v * bytes_of(&t[FACTS_TENSOR_DV]);
    return bytes;
}

void facts_timed_plans_destroy(facts_timed_plans *plans)
{
    for (int i = 0; i < plans->count; i++)
        fattn_plan_destroy(plans->at[i].plan);
    plans->count = 0;
}
