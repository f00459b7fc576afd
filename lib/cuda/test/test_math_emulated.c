/* The math backend's kernels, run without a GPU (lib/cuda/test/emulate.h), against the cpu backend over random problems. */
#include "math_emulated.h"

static void sweep(uint64_t seed, int count, int64_t most_seq, int64_t most_dim, int64_t score_bytes, int64_t most_keys)
{
    if (!fattn__math_image_present())
        cr_skip_test("this library was built without a CUDA compiler");
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *host;
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 2;
    cr_assert_eq(fattn_context_create(&host, &options), FATTN_OK);
    fattn_context *gpu = open_emulated();
    const side cpu = { .context = host, .engine = &fattn__cpu_engine };
    const side math = { .context = gpu, .engine = &fattn__math_engine, .score_bytes = score_bytes, .most_keys = most_keys };
    generator g = { .state = seed, .most_seq = most_seq, .most_dim = most_dim };
    tally t = { 0 };
    for (int i = 0; i < count; i++) {
        generator own = { .state = seed * 1000 + (uint64_t)i, .most_seq = g.most_seq, .most_dim = g.most_dim };
        const fattn_problem p = draw_problem(&own);
        compare_problem(&cpu, &math, p, &own, &t);
        fattn_score_mod_destroy((fattn_score_mod *)(uintptr_t)p.score_mod);
    }
    printf("%d problems, forward and backward: %d tensors wrong, largest difference %.2f of what is allowed\n", t.problems, t.elements_wrong, t.worst);
    close_emulated(gpu);
    fattn_context_destroy(host);
}

Test(emulated, small_problems_of_every_kind)
{
    const char *count = getenv("FACTS_TEST_MATH_PROBLEMS");
    sweep(1, count != NULL ? atoi(count) : 10, 60, 100, 0, 0);
}

Test(emulated, chunks_of_rows_keys_and_heads_add_up)
{
    const char *count = getenv("FACTS_TEST_MATH_PROBLEMS");
    sweep(2, count != NULL ? atoi(count) : 5, 300, 40, 3 * 128 * 128 * 4, 128);
}

Test(emulated, f32_keeps_its_24_bits)
{
    if (!fattn__math_image_present())
        cr_skip_test("this library was built without a CUDA compiler");
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *host, *gpu = open_emulated();
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 2;
    cr_assert_eq(fattn_context_create(&host, &options), FATTN_OK);
    const side cpu = { .context = host, .engine = &fattn__cpu_engine }, math = { .context = gpu, .engine = &fattn__math_engine };
    generator g = { .state = 7 };
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.dtype = FATTN_F32, p.batch = 1, p.heads_q = 2, p.seq_q = p.seq_kv = 256, p.dim_qk = 24, p.dim_v = 72;
    const double worst = worst_of_f32(&cpu, &math, p, &g);
    cr_expect_lt(worst, 4e-6, "%g", worst);
    printf("f32: largest difference 2^%.1f\n", log2(worst));
    close_emulated(gpu);
    fattn_context_destroy(host);
}
