/* The time of one attention call, for a script that also times another program (ci/bench.py torch, frontend).
 *
 * usage: bench_device BACKEND PASS DTYPE MASK B H S D [WORD=VALUE...] [CUDNN_DIR [NVRTC]]
 *        BACKEND cudnn, math or cpu; PASS fwd or bwd; DTYPE bf16, f16 or f32; MASK none, causal or causal_br (bottom right)
 * Words  h_k=N      heads of K and V
 *        s_kv=N     keys of an entry, or the largest number of them
 *        lens=N,…   B lengths. Ragged (THD): each entry has as many rows as keys. With page=, lengths of keys only: each entry
 *        has S rows.
 *        page=N     K and V in pages of N keys, scattered in a pool of which half is used
 *        engine=N   the first configuration of that engine, instead of the first of all
 *        turns=1    prints an empty object when ready, then measures once for every line on standard input
 *        out=PATH   writes the first call's O to PATH, or its dQ, dK and dV one after the other
 * Prints one JSON object for each measurement.
 *  device_us: the mean time of one call between two events. host_us: the host time of one call, the best of several batches (not
 *  with turns).
 *  plan_ms, workspace_bytes, engine, and the plan's knobs by number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fattn/device.h>
#include <fattn/fattn.h>
#include <fattn/policy.h>

enum { BATCHES = 20, CALLS = 50, MAX_BATCH = 256 };

/* A problem, and what its numbers alone do not say. */
typedef struct question {
    fattn_problem problem;
    int32_t lens[MAX_BATCH];
    int64_t engine;
    bool packed, turns;
    const char *lens_given; /* NULL: not given */
    const char *out;        /* NULL: nowhere */
} question;

typedef struct call {
    fattn_plan *plan;
    fattn_tensors tensors;
    size_t of_q, of_k; /* bytes of O and of dQ, of dK and of dV */
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
    return c->backward ? fattn_backward(c->plan, &c->tensors, stream)
                       : fattn_forward(c->plan, &c->tensors, stream);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* About normal, standard deviation 0.5, as the other side's data: a GPU's clock depends on how many
 * bits change. */
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
        half = (uint16_t)((bits >> 16 & 0x8000u) |
                          (magnitude < 0x38800000u ? 0 : (magnitude >> 13) - (112u << 10)));
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
    const size_t element = dtype == FATTN_F32 ? 4 : 2,
                 part = bytes < element << 20 ? bytes : element << 20;
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

static int64_t number_of(const char *value, const char *word)
{
    char *end;
    const long long n = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || n < 1) {
        fprintf(stderr, "bench_device: '%s' wants a number from 1\n", word);
        exit(2);
    }
    return n;
}

static void read_lens(question *q, const char *list)
{
    const fattn_problem *p = &q->problem;
    const int64_t most = p->seq_kv;
    int64_t count = 0;
    for (const char *at = list; count < MAX_BATCH; at++, count++) {
        char *end;
        const long long n = strtoll(at, &end, 10);
        if (end == at || n < 1 || n > most)
            break;
        q->lens[count] = (int32_t)n;
        if (*(at = end) == '\0') {
            count++;
            break;
        }
    }
    if (count != p->batch) {
        fprintf(stderr, "bench_device: 'lens=%s' wants %lld lengths from 1 to %lld\n", list,
                (long long)p->batch, (long long)most);
        exit(2);
    }
}

static bool read_word(question *q, const char *word)
{
    enum { H_K, S_KV, PAGE, ENGINE, TURNS, LENS, OUT, WORDS };
    static const char *const words[WORDS] = { "h_k",   "s_kv", "page", "engine",
                                              "turns", "lens", "out" };
    const char *equals = strchr(word, '=');
    char name[16];
    if (equals == NULL || (size_t)(equals - word) >= sizeof name ||
        memchr(word, '/', (size_t)(equals - word)) != NULL)
        return false;
    const char *value = equals + 1;
    snprintf(name, sizeof name, "%.*s", (int)(equals - word), word);
    switch (word_of(name, words, WORDS)) {
    case H_K:
        q->problem.heads_k = number_of(value, word);
        break;
    case S_KV:
        q->problem.seq_kv = number_of(value, word);
        break;
    case PAGE:
        q->problem.page_size_k = q->problem.page_size_v = number_of(value, word);
        break;
    case ENGINE:
        q->engine = number_of(value, word);
        break;
    case TURNS:
        q->turns = number_of(value, word) > 0;
        break;
    case LENS:
        q->lens_given = value; /* read when the most of them is known */
        break;
    default:
        q->out = value;
    }
    return true;
}

/* Lengths make the sequences packed, or, with pages, the keys' lengths. */
static void shape_lengths(question *q)
{
    fattn_problem *p = &q->problem;
    const char *lens = q->lens_given;
    for (int64_t b = 0; b < p->batch; b++)
        q->lens[b] = (int32_t)p->seq_kv;
    if (lens != NULL)
        read_lens(q, lens);
    p->padding = lens != NULL || p->page_size_k != 0;
    q->packed = lens != NULL && p->page_size_k == 0;
    if (q->packed) {
        p->ragged_bits = 32;
        for (int64_t b = 0; b < p->batch; b++)
            p->total_q += q->lens[b];
        p->total_kv = p->total_q;
    }
    if (p->page_size_k != 0) {
        p->table_k = p->table_v = (p->seq_kv + p->page_size_k - 1) / p->page_size_k;
        p->pages_k = p->pages_v = 2 * p->batch * p->table_k;
    }
}

/* Takes the words out of the arguments; what is left are folders. */
static question question_of(char **argv, int *argc)
{
    static const char *const passes[] = { "fwd", "bwd" }, *const dtypes[] = { "", "bf16", "f16",
                                                                              "f32" };
    static const char *const masks[] = { "none", "causal", "causal_br" };
    question q = { .problem = FATTN_PROBLEM_INIT, .engine = FATTN_ENGINE_AUTO };
    fattn_problem *p = &q.problem;
    p->pass = word_of(argv[2], passes, 2);
    p->dtype = word_of(argv[3], dtypes, 4);
    const int mask = word_of(argv[4], masks, 3);
    p->has_right = mask > 0;
    p->align = mask == 2 ? FATTN_BOTTOM_RIGHT : FATTN_TOP_LEFT;
    p->batch = number_of(argv[5], argv[5]);
    p->heads_q = p->heads_k = number_of(argv[6], argv[6]);
    p->seq_q = p->seq_kv = number_of(argv[7], argv[7]);
    p->dim_qk = number_of(argv[8], argv[8]);
    if (p->batch > MAX_BATCH) {
        fprintf(stderr, "bench_device: a batch of at most %d\n", MAX_BATCH);
        exit(2);
    }
    int left = 9;
    for (int i = 9; i < *argc; i++)
        if (!read_word(&q, argv[i]))
            argv[left++] = argv[i];
    *argc = left;
    shape_lengths(&q);
    return q;
}

static void *given(fattn_context *context, const int32_t *numbers, size_t count)
{
    void *device = buffer(context, count * sizeof *numbers);
    if (fattn_buffer_write(context, device, numbers, count * sizeof *numbers) != FATTN_OK)
        fail("write");
    return device;
}

/* Where each entry starts, when a token has so many elements. */
static void *offsets(fattn_context *context, const question *q, int64_t token)
{
    int32_t at[MAX_BATCH + 1] = { 0 };
    for (int64_t b = 0; b < q->problem.batch; b++)
        at[b + 1] = at[b] + (int32_t)(q->lens[b] * token);
    return given(context, at, (size_t)q->problem.batch + 1);
}

/* Every other page of the pool, in an order that jumps. */
static void *page_table(fattn_context *context, const fattn_problem *p)
{
    const int64_t count = p->batch * p->table_k;
    int32_t *pages = malloc((size_t)count * sizeof *pages);
    if (pages == NULL)
        fail("memory");
    for (int64_t i = 0; i < count; i++)
        pages[i] =
            (int32_t)(2 * (i * 7919 % count)); /* a prime that divides no count here: each once */
    void *device = given(context, pages, (size_t)count);
    free(pages);
    return device;
}

static void bind_lengths(fattn_tensors *t, fattn_context *context, const question *q)
{
    const fattn_problem *p = &q->problem;
    int32_t rows[MAX_BATCH];
    for (int64_t b = 0; b < p->batch; b++)
        rows[b] = q->packed ? q->lens[b] : (int32_t)p->seq_q;
    t->seq_len_q = given(context, rows, (size_t)p->batch);
    t->seq_len_kv = given(context, q->lens, (size_t)p->batch);
    if (p->page_size_k != 0)
        t->page_table_k = t->page_table_v = page_table(context, p);
    if (!q->packed)
        return;
    t->q_offsets = t->o_offsets = t->do_offsets = t->dq_offsets =
        offsets(context, q, p->heads_q * p->dim_qk);
    t->k_offsets = t->v_offsets = t->dk_offsets = t->dv_offsets =
        offsets(context, q, p->heads_k * p->dim_qk);
    t->stats_offsets = offsets(context, q, p->heads_q);
}

static void bind(call *c, fattn_context *context, const question *asked)
{
    const fattn_problem *p = &asked->problem;
    const int32_t type = p->dtype;
    const int64_t rows = asked->packed ? p->total_q : p->batch * p->seq_q;
    const int64_t keys = p->page_size_k != 0 ? p->pages_k * p->page_size_k
                         : asked->packed     ? p->total_kv
                                             : p->batch * p->seq_kv;
    const size_t element = type == FATTN_F32 ? 4 : 2;
    const size_t of_q = (size_t)(rows * p->heads_q * p->dim_qk) * element,
                 of_k = (size_t)(keys * p->heads_k * p->dim_qk) * element;
    fattn_tensors *t = &c->tensors;
    *t = (fattn_tensors)FATTN_TENSORS_INIT;
    t->q = filled(context, of_q, type), t->k = filled(context, of_k, type),
    t->v = filled(context, of_k, type);
    t->o = filled(context, of_q, type);
    c->of_q = of_q, c->of_k = of_k;
    c->backward = p->pass == FATTN_BACKWARD;
    if (c->backward) {
        t->stats = filled(context, (size_t)(rows * p->heads_q) * 4, FATTN_F32);
        t->d_o = filled(context, of_q, type);
        t->dq = buffer(context, of_q), t->dk = buffer(context, of_k), t->dv = buffer(context, of_k);
    }
    if (p->padding)
        bind_lengths(t, context, asked);
    t->workspace_bytes = fattn_plan_workspace_bytes(c->plan);
    if (t->workspace_bytes != 0)
        t->workspace = buffer(context, t->workspace_bytes);
}

static void keep(FILE *file, fattn_context *context, const void *device, size_t bytes)
{
    void *host = malloc(bytes);
    if (host == NULL || fattn_buffer_read(context, host, device, bytes) != FATTN_OK ||
        fwrite(host, 1, bytes, file) != bytes)
        fail("out");
    free(host);
}

/* What the call has written. */
static void keep_outputs(const call *c, fattn_context *context, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        fail(path);
    keep(file, context, c->backward ? c->tensors.dq : c->tensors.o, c->of_q);
    if (c->backward) {
        keep(file, context, c->tensors.dk, c->of_k);
        keep(file, context, c->tensors.dv, c->of_k);
    }
    if (fclose(file) != 0)
        fail(path);
}

/* The least of several batches: what the call itself costs, without what the machine did beside it.
 */
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

static double measure(call *c, fattn_context *context, struct CUstream_st *stream, int repeats)
{
    double us;
    if (fattn_stream_time(context, stream, launch, c, repeats, &us) != FATTN_OK)
        fail("launch");
    return us;
}

static void report(const call *c, double device, double host)
{
    const fattn_engine *engine = fattn_plan_engine(c->plan);
    printf("{\"device_us\":%.3f,\"host_us\":%.3f,\"plan_ms\":%.1f,\"workspace_bytes\":%zu,"
           "\"engine\":%lld,\"knobs\":{",
           device, host, fattn_plan_ms(c->plan), fattn_plan_workspace_bytes(c->plan),
           (long long)engine->index);
    for (int32_t i = 0; i < engine->knob_count; i++)
        printf("%s\"%d\":%lld", i == 0 ? "" : ",", (int)engine->knobs[i].type,
               (long long)engine->knobs[i].value);
    printf("}}\n");
    fflush(stdout);
}

static void time_it(call *c, fattn_context *context, struct CUstream_st *stream, const question *q,
                    int backend)
{
    char line[64];
    if (launch(c, stream) != FATTN_OK || fattn_stream_synchronize(context, stream) != FATTN_OK)
        fail("launch");
    if (q->out != NULL)
        keep_outputs(c, context, q->out);
    const double first = measure(c, context, stream, 3);
    /* As many as the other side: a GPU under load lowers its clock. */
    const int repeats = backend != FATTN_BACKEND_CUDNN ? 5 : first > 50 ? 20 : 200;
    if (!q->turns) {
        const double device = measure(c, context, stream, repeats);
        report(c, device, device < 1e3 ? host_us(c, context, stream) : 0);
        return;
    }
    printf("{}\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL)
        report(c, measure(c, context, stream, repeats), 0);
}

int main(int argc, char **argv)
{
    static const char *const backends[] = { "cudnn", "math", "cpu" };
    if (argc < 9) {
        fprintf(stderr, "usage: bench_device BACKEND PASS DTYPE MASK B H S D [WORD=VALUE...] "
                        "[CUDNN_DIR [NVRTC]]\n");
        return 2;
    }
    const int backend = word_of(argv[1], backends, 3);
    const question q = question_of(argv, &argc);
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = backend == FATTN_BACKEND_CPU ? FATTN_DEVICE_CPU : FATTN_DEVICE_GPU;
    options.cudnn_dir = argc > 9 && backend != FATTN_BACKEND_CPU ? argv[9] : NULL;
    options.nvrtc = argc > 10 ? argv[10] : NULL;
    fattn_policy policy = FATTN_POLICY_INIT;
    policy.order[0] = backend;
    policy.order_count = 1;
    fattn_plan_options plan = FATTN_PLAN_OPTIONS_INIT;
    plan.engine = q.engine;
    fattn_context *context;
    struct CUstream_st *stream;
    call c = { 0 };
    int depth;
    if (fattn_context_create(&context, &options) != FATTN_OK ||
        fattn_stream_create(&stream, context) != FATTN_OK)
        fail("context");
    if (fattn_policy_push(&policy, &depth) != FATTN_OK ||
        fattn_plan_create(&c.plan, context, &q.problem, &plan) != FATTN_OK)
        fail("plan");
    bind(&c, context, &q);
    time_it(&c, context, stream, &q, backend);
    fattn_policy_pop(depth);
    return 0;
}
