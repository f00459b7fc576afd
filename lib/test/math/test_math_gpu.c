/* The math backend's kernels against the cpu backend, over random problems: on a GPU, skipped where
 * there is none; and, in the program lib_math_emulated, as C++ on the host (lib/gpu/test). */
#include "fattn/device.h"
#include "fattn/score_mod.h"
#include "math_calls.h"
#include "support/described_h100.h"

#ifdef FATTN_EMULATED
#include "emulated_driver.h"
#include "math/math_sum.h"

static fattn_context *open_device(void)
{
    fattn_context *context = calloc(1, sizeof *context);
    context->kind = FATTN_DEVICE_GPU;
    context->cuda = emulated_driver();
    context->info.sm = 80;
    pthread_mutex_init(&context->lock, NULL);
    return context;
}

static void close_device(fattn_context *context)
{
    fattn__math_close(context);
    pthread_mutex_destroy(&context->lock);
    free(context);
}
#define ON(of_gpu, emulated) emulated
#else
static fattn_context *open_device(void)
{
    return open_gpu();
}

static void close_device(fattn_context *context)
{
    fattn_context_destroy(context);
}
#define ON(of_gpu, emulated) of_gpu
#endif

static fattn_context *gpu, *host;

static void open_both(void)
{
    if (fattn__math_image.bytes == 0)
        cr_skip_test("this library was built without a CUDA compiler");
    gpu = open_device();
    host = open_cpu();
}

static void close_both(void)
{
    close_device(gpu);
    fattn_context_destroy(host);
}

TestSuite(math_gpu, .init = open_both, .fini = close_both);

typedef struct limits {
    uint64_t seed;
    int first, count; /* FACTS_TEST_MATH_PROBLEMS: another number */
    int64_t most_seq, most_dim, score_bytes, most_keys;
} limits;

static side on_host(void)
{
    return (side){ .context = host, .engine = &fattn__cpu_engine };
}

static side on_gpu(void)
{
    return (side){ .context = gpu, .engine = &fattn__math_engine };
}

static void sweep(fattn_problem (*drawn)(generator *), limits l)
{
    const char *count = getenv("FACTS_TEST_MATH_PROBLEMS");
    const side cpu = on_host();
    side math = on_gpu();
    math.score_bytes = l.score_bytes, math.most_keys = l.most_keys;
    tally t = { 0 };
    for (int i = l.first; i < l.first + (count != NULL ? atoi(count) : l.count); i++) {
        generator g = { .state = l.seed * 1000 + (uint64_t)i,
                        .most_seq = l.most_seq,
                        .most_dim = l.most_dim };
        const int wrong = t.wrong;
        const fattn_problem p = drawn(&g);
        compare_problem(&cpu, &math, p, &g, &t);
        if (t.wrong > wrong)
            printf("seed %llu, problem %d\n", (unsigned long long)l.seed, i);
        fattn_score_mod_destroy((fattn_score_mod *)(uintptr_t)p.score_mod);
    }
    printf("up to %lld: %d problems, forward and backward: %d tensors wrong, largest difference "
           "%.2f of what is allowed\n",
           (long long)l.most_seq, t.problems, t.wrong, t.worst);
}

enum { FEW = 3 * 128 * 128 * 4 }; /* bytes of scores: several chunks */
/* clang-format off */
#define SWEEP_LIST(X)                                                                              \
    X(small_problems_of_every_kind, draw_problem,                                                  \
      ON(((limits){ 11, 0, 80, 200, 256, 0, 0 }), ((limits){ 1, 0, 10, 60, 100, 0, 0 })))          \
    X(chunks_of_rows_keys_and_heads_add_up, draw_problem,                                          \
      ON(((limits){ 12, 0, 50, 600, 130, FEW, 128 }), ((limits){ 2, 0, 5, 300, 40, FEW, 128 })))   \
    X(what_a_problem_may_ask_for, draw_features,                                                   \
      ON(((limits){ 14, 0, 120, 200, 256, 0, 0 }), ((limits){ 3, 0, 30, 60, 100, 0, 0 })))         \
    X(so_it_is_in_chunks, draw_features,                                                           \
      ON(((limits){ 15, 0, 40, 600, 130, FEW, 128 }), ((limits){ 4, 0, 8, 300, 40, FEW, 128 })))   \
    X(longer_sequences_and_wide_heads, draw_problem,                                               \
      ON(((limits){ 13, 0, 20, 1500, 1024, 0, 0 }), ((limits){ 17, 34, 1, 300, 130, 0, 0 })))
/* clang-format on */
#define AS_TEST(name, drawn, ...)                                                                  \
    Test(math_gpu, name)                                                                           \
    {                                                                                              \
        sweep(drawn, __VA_ARGS__);                                                                 \
    }
SWEEP_LIST(AS_TEST)

/* The largest difference, in parts of the tensor's largest element. */
static double compare_one_problem(fattn_problem p, uint64_t seed, int times)
{
    const side cpu = on_host(), math = on_gpu();
    tally t = { 0 };
    for (int n = 0; n < times; n++) {
        generator g = { .state = seed + (uint64_t)n };
        compare_problem(&cpu, &math, p, &g, &t);
    }
    return t.of_largest;
}

Test(math_gpu, f32_keeps_its_24_bits)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.dtype = FATTN_F32, p.batch = 1, p.heads_q = 2, p.seq_q = p.seq_kv = 256, p.dim_qk = 24,
    p.dim_v = 72;
    const double worst = compare_one_problem(p, 7, 1);
    cr_expect_lt(worst, 4e-6, "TF32 leaves 2^-11: %g", worst);
}

/* Of 9 tiles a row. */
Test(math_gpu, a_block_mask_may_have_more_than_a_byte_a_row)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 1, p.heads_q = 2, p.seq_q = 130, p.seq_kv = 1100, p.dim_qk = 8, p.block_mask = 1,
    p.outputs = FATTN_WANT_MAX;
    compare_one_problem(p, 8, 1);
}

/* Packed K and V of one head that all heads read: their gradients go to their places as sums. */
Test(math_gpu, a_packed_gradient_may_be_a_sum_over_heads)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 3, p.heads_q = 2, p.seq_q = 9, p.seq_kv = 20, p.dim_qk = 8, p.padding = 1,
    p.ragged_bits = 32, p.ragged_tokens = 1;
    const int64_t shared[4] = { 160, 0, 8, 1 }, rows[4] = { 144, 8, 16, 1 },
                  stats[4] = { 18, 1, 2, 1 };
    int64_t *const of_keys[] = { p.k_strides, p.v_strides, p.dk_strides, p.dv_strides };
    int64_t *const of_rows[] = { p.q_strides, p.o_strides, p.do_strides, p.dq_strides };
    for (int i = 0; i < 4; i++) {
        memcpy(of_keys[i], shared, sizeof shared);
        memcpy(of_rows[i], rows, sizeof rows);
    }
    memcpy(p.stats_strides, stats, sizeof stats);
    compare_one_problem(p, 12, 4); /* other lengths */
}

/* ---- every field */

#include "test_math_fields.h"
