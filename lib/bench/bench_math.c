/* bench_math: device time of the math backend. For each type and shape the forward and the backward
 * pass, in ms and TFLOP/s (2 and 5 products; backward computes the scores again). usage: bench_math
 * CUDNN_DIR [NVRTC [SHAPE TYPE]], one shape and type by number */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "fattn/device.h"
#include "problem/layout.h"

typedef struct shape {
    int64_t batch, heads, seq, dim;
    int32_t causal;
} shape;

typedef struct run {
    const fattn_plan *plan;
    fattn_tensors tensors;
} run;

static fattn_status launch(void *argument, struct CUstream_st *stream)
{
    run *r = argument;
    return r->plan->engine->run(r->plan, &r->tensors, stream);
}

static void *buffer(fattn_context *context, size_t bytes, bool filled)
{
    void *at;
    if (fattn_buffer_create(&at, context, bytes) != FATTN_OK) {
        fprintf(stderr, "%s\n", fattn_last_error());
        exit(3);
    }
    if (filled) { /* numbers below 2 in every type: 0x38 to 0x3f in the upper byte, with either sign
                   */
        const size_t part = bytes < (1 << 20) ? bytes : 1 << 20;
        unsigned char *host = malloc(bytes);
        for (size_t i = 0; i < bytes; i++)
            host[i] =
                i < part ? (unsigned char)(rand() % 2 * 0x80 + 0x38 + rand() % 8) : host[i - part];
        fattn_buffer_write(context, at, host, bytes);
        free(host);
    }
    return at;
}

static double time_pass(fattn_context *context, const shape *s, int32_t dtype, fattn_pass pass,
                        fattn_tensors *t)
{
    fattn_problem given = FATTN_PROBLEM_INIT;
    fattn_plan plan = { .engine = &fattn__math_engine, .context = context };
    const fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    given.pass = (int32_t)pass, given.dtype = dtype, given.outputs = FATTN_WANT_STATS;
    given.batch = s->batch, given.heads_q = s->heads, given.seq_q = given.seq_kv = s->seq,
    given.dim_qk = s->dim, given.has_right = s->causal;
    double us = 0;
    struct CUstream_st *stream;
    if (fattn_problem_resolve(&given, &plan.problem) != FATTN_OK ||
        plan.engine->setup(&plan, &options) != FATTN_OK ||
        fattn_stream_create(&stream, context) != FATTN_OK) {
        fprintf(stderr, "%s\n", fattn_last_error());
        exit(3);
    }
    t->workspace_bytes = plan.workspace_bytes;
    t->workspace = buffer(context, plan.workspace_bytes, false);
    run r = { &plan, *t };
    if (fattn_stream_time(context, stream, launch, &r, 2, &us) != FATTN_OK ||
        fattn_stream_time(context, stream, launch, &r, 10, &us) != FATTN_OK) {
        fprintf(stderr, "%s\n", fattn_last_error());
        exit(1);
    }
    fattn_stream_destroy(context, stream);
    fattn_buffer_destroy(context, t->workspace);
    plan.engine->done(&plan);
    return us / 1000;
}

static void bench(fattn_context *context, const shape *s, int32_t dtype)
{
    static const char *const names[] = { "", "bf16", "f16", "f32" };
    const size_t elements = (size_t)(s->batch * s->heads * s->seq * s->dim),
                 bytes = elements * (size_t)fattn__dtype_bytes(dtype);
    fattn_tensors t = FATTN_TENSORS_INIT;
    void *all[9];
    for (int i = 0; i < 8; i++)
        all[i] = buffer(context, bytes, i < 4);
    all[8] = buffer(context, elements / (size_t)s->dim * 4, false);
    t.q = all[0], t.k = all[1], t.v = all[2], t.d_o = all[3], t.o = all[4], t.dq = all[5],
    t.dk = all[6], t.dv = all[7], t.stats = all[8];
    const double product = 2.0 * (double)elements * (double)s->seq / 1e9 * (s->causal ? 0.5 : 1);
    const double forward = time_pass(context, s, dtype, FATTN_FORWARD, &t),
                 backward = time_pass(context, s, dtype, FATTN_BACKWARD, &t);
    printf("math %s b%lld h%lld s%lld d%lld%s: forward %.3f ms (%.1f TFLOP/s), backward %.3f ms "
           "(%.1f TFLOP/s)\n",
           names[dtype], (long long)s->batch, (long long)s->heads, (long long)s->seq,
           (long long)s->dim, s->causal ? " causal" : "", forward, 2 * product / forward, backward,
           5 * product / backward);
    for (int i = 0; i < 9; i++)
        fattn_buffer_destroy(context, all[i]);
}

int main(int argc, char **argv)
{
    static const shape shapes[] = { { 4, 16, 4096, 128, 0 }, { 4, 16, 4096, 128, 1 },
                                    { 2, 8, 512, 128, 0 },   { 4, 16, 4096, 64, 0 },
                                    { 4, 16, 4096, 100, 0 }, { 4, 16, 2048, 75, 0 } };
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *context;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_math CUDNN_DIR [NVRTC [SHAPE TYPE]]\n");
        return 2;
    }
    options.cudnn_dir = argv[1];
    options.nvrtc = argc > 2 ? argv[2] : NULL;
    if (fattn_context_create(&context, &options) != FATTN_OK) {
        fprintf(stderr, "%s\n", fattn_last_error());
        return 3;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int32_t dtype = FATTN_BF16; dtype <= FATTN_F32; dtype++) {
            if (argc > 4 && (atoi(argv[3]) != (int)i || atoi(argv[4]) != dtype))
                continue;
            bench(context, &shapes[i], dtype);
            fflush(stdout);
        }
    fattn_context_destroy(context);
    return 0;
}
