/* How long one attention call takes, for a script that times somebody else's beside it (ci/bench_torch.py).
 *
 * usage: bench_device BACKEND PASS DTYPE MASK B H S D [CUDNN_DIR [NVRTC]]
 *        BACKEND cudnn, math or cpu; PASS fwd or bwd; DTYPE bf16, f16 or f32; MASK none or causal
 * Prints one JSON object: device_us is the mean of one call between two events, host_us what one call costs its thread (the best of several
 * batches), plan_ms, workspace_bytes, engine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fattn/fattn.h>

enum { BATCHES = 20, CALLS = 50 };

typedef struct call {
    fattn_plan *plan;
    fattn_tensors tensors;
    bool backward;
} call;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench_device: %s: %s\n", what, fattn_last_error());
    exit(3);
}

static fattn_status launch(void *argument, struct CUstream_st *stream)
{
    call *c = argument;
    return c->backward ? fattn_backward(c->plan, &c->tensors, stream) : fattn_forward(c->plan, &c->tensors, stream);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* About normal, standard deviation 0.5, as the other side's data: a GPU's clock depends on how many bits change. */
static float sample(uint32_t *state)
{
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        *state = *state * 1664525u + 1013904223u;
        sum += (float)(*state >> 8) * 0x1p-24F - 0.5F;
    }
    return sum * 0.866F;
}

/* Towards zero: good enough for a time. */
static void store(char *to, int32_t dtype, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (dtype == FATTN_F32) {
        memcpy(to, &bits, sizeof bits);
        return;
    }
    uint16_t half = (uint16_t)(bits >> 16);
    if (dtype == FATTN_F16) {
        const uint32_t magnitude = bits & 0x7fffffffu;
        half = (uint16_t)((bits >> 16 & 0x8000u) | (magnitude < 0x38800000u ? 0 : (magnitude >> 13) - (112u << 10)));
    }
    memcpy(to, &half, sizeof half);
}

static void *buffer(fattn_context *context, size_t bytes)
{
    void *device;
    if (fattn_buffer_create(&device, context, bytes) != FATTN_OK)
        fail("memory");
    return device;
}

/* A million samples, over and over. */
static void *filled(fattn_context *context, size_t bytes, int32_t dtype)
{
    const size_t element = dtype == FATTN_F32 ? 4 : 2, part = bytes < element << 20 ? bytes : element << 20;
    void *device = buffer(context, bytes);
    char *host = malloc(bytes);
    uint32_t state = 1;
    if (host == NULL)
        fail("memory");
    for (size_t at = 0; at < part; at += element)
        store(host + at, dtype, sample(&state));
    for (size_t at = part; at < bytes; at += part)
        memcpy(host + at, host, bytes - at < part ? bytes - at : part);
    if (fattn_buffer_write(context, device, host, bytes) != FATTN_OK)
        fail("write");
    free(host);
    return device;
}

static int word_of(const char *word, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    fprintf(stderr, "bench_device: '%s' is not known; see the head of the source\n", word);
    exit(2);
}

static fattn_problem problem_of(char **argv)
{
    static const char *const passes[] = { "fwd", "bwd" }, *const dtypes[] = { "", "bf16", "f16", "f32" }, *const masks[] = { "none", "causal" };
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.pass = word_of(argv[2], passes, 2);
    p.dtype = word_of(argv[3], dtypes, 4);
    p.has_right = word_of(argv[4], masks, 2);
    p.batch = atoll(argv[5]);
    p.heads_q = atoll(argv[6]);
    p.seq_q = p.seq_kv = atoll(argv[7]);
    p.dim_qk = atoll(argv[8]);
    return p;
}

static void bind(call *c, fattn_context *context, const fattn_problem *p)
{
    const int32_t type = p->dtype;
    const size_t bytes = (size_t)(p->batch * p->heads_q * p->seq_q * p->dim_qk) * (type == FATTN_F32 ? 4 : 2);
    fattn_tensors *t = &c->tensors;
    *t = (fattn_tensors)FATTN_TENSORS_INIT;
    t->q = filled(context, bytes, type), t->k = filled(context, bytes, type), t->v = filled(context, bytes, type);
    t->o = filled(context, bytes, type);
    c->backward = p->pass == FATTN_BACKWARD;
    if (c->backward) {
        t->stats = filled(context, (size_t)(p->batch * p->heads_q * p->seq_q) * 4, FATTN_F32);
        t->d_o = filled(context, bytes, type);
        t->dq = buffer(context, bytes), t->dk = buffer(context, bytes), t->dv = buffer(context, bytes);
    }
    t->workspace_bytes = fattn_plan_workspace_bytes(c->plan);
    if (t->workspace_bytes != 0)
        t->workspace = buffer(context, t->workspace_bytes);
}

/* The least of several batches: what the call itself costs, without what the machine did beside it. */
static double host_us(call *c, fattn_context *context, struct CUstream_st *stream)
{
    double best = 1e30;
    for (int batch = 0; batch < BATCHES; batch++) {
        const double since = now_us();
        for (int i = 0; i < CALLS; i++)
            if (launch(c, stream) != FATTN_OK)
                fail("launch");
        const double took = (now_us() - since) / CALLS;
        best = took < best ? took : best;
        if (fattn_stream_synchronize(context, stream) != FATTN_OK)
            fail("launch");
    }
    return best;
}

int main(int argc, char **argv)
{
    static const char *const backends[] = { "cudnn", "math", "cpu" };
    if (argc < 9) {
        fprintf(stderr, "usage: bench_device BACKEND PASS DTYPE MASK B H S D [CUDNN_DIR [NVRTC]]\n");
        return 2;
    }
    const int backend = word_of(argv[1], backends, 3);
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = backend == FATTN_BACKEND_CPU ? FATTN_DEVICE_CPU : FATTN_DEVICE_GPU;
    options.cudnn_dir = argc > 9 && backend != FATTN_BACKEND_CPU ? argv[9] : NULL;
    options.nvrtc = argc > 10 ? argv[10] : NULL;
    fattn_policy policy = FATTN_POLICY_INIT;
    policy.order[0] = backend;
    policy.order_count = 1;
    const fattn_problem p = problem_of(argv);
    fattn_context *context;
    struct CUstream_st *stream;
    call c = { 0 };
    int depth;
    if (fattn_context_create(&context, &options) != FATTN_OK || fattn_stream_create(&stream, context) != FATTN_OK)
        fail("context");
    if (fattn_policy_push(&policy, &depth) != FATTN_OK || fattn_plan_create(&c.plan, context, &p, NULL) != FATTN_OK)
        fail("plan");
    bind(&c, context, &p);
    double device_us;
    if (launch(&c, stream) != FATTN_OK || fattn_stream_time(context, stream, launch, &c, 3, &device_us) != FATTN_OK)
        fail("launch");
    /* As many as the other side: a GPU under load lowers its clock. */
    const int repeats = backend != FATTN_BACKEND_CUDNN ? 5 : device_us > 50 ? 20 : 200;
    if (fattn_stream_time(context, stream, launch, &c, repeats, &device_us) != FATTN_OK)
        fail("launch");
    const double host = device_us < 1e3 ? host_us(&c, context, stream) : 0;
    printf("{\"device_us\":%.3f,\"host_us\":%.3f,\"plan_ms\":%.1f,\"workspace_bytes\":%zu,\"engine\":%lld}\n", device_us, host, fattn_plan_ms(c.plan),
           fattn_plan_workspace_bytes(c.plan), (long long)fattn_plan_engine(c.plan)->index);
    fattn_policy_pop(depth);
    return 0;
}
