/* The math backend's kernels, run without a GPU (lib/gpu/test), against the cpu backend over random
 * problems. */
#include "../../test/math/math_oracle.h"
#include "fattn/score_mod.h"
#include "math_emulated.h"

/* draw_problem's problems and draw_features' against the cpu backend; the latter without a
 * score_mod against the reference. */
enum { MODIFIED, COMBINED, FEATURED };

static void sweep_from(int begin, int end, int kind, uint64_t seed, int64_t most_seq,
                       int64_t most_dim, int64_t score_bytes, int64_t most_keys)
{
    if (fattn__math_image.bytes == 0)
        cr_skip_test("this library was built without a CUDA compiler");
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *host;
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 2;
    cr_assert_eq(fattn_context_create(&host, &options), FATTN_OK);
    fattn_context *gpu = open_emulated();
    const side cpu = { .context = host, .engine = &fattn__cpu_engine },
               oracle = { .compute = compute_reference };
    const side math = { .context = gpu,
                        .engine = &fattn__math_engine,
                        .score_bytes = score_bytes,
                        .most_keys = most_keys };
    tally t = { 0 };
    for (int i = begin; i < end; i++) {
        generator g = { .state = seed * 1000 + (uint64_t)i,
                        .most_seq = most_seq,
                        .most_dim = most_dim };
        const fattn_problem p =
            kind == MODIFIED ? draw_problem(&g) : draw_features(&g, kind == COMBINED);
        compare_problem(kind != FEATURED ? &cpu : &oracle, &math, p, &g, &t);
        fattn_score_mod_destroy((fattn_score_mod *)(uintptr_t)p.score_mod);
    }
    printf("%d problems, forward and backward: %d tensors wrong, largest difference %.2f of what "
           "is allowed\n",
           t.problems, t.elements_wrong, t.worst);
    close_emulated(gpu);
    fattn_context_destroy(host);
}

static void sweep(int kind, uint64_t seed, int otherwise, int64_t most_seq, int64_t most_dim,
                  int64_t score_bytes, int64_t most_keys)
{
    const char *count = getenv("FACTS_TEST_MATH_PROBLEMS"),
               *first = getenv("FACTS_TEST_MATH_FIRST");
    const int begin = first != NULL ? atoi(first) : 0,
              end = begin + (count != NULL ? atoi(count) : otherwise);
    sweep_from(begin, end, kind, seed, most_seq, most_dim, score_bytes, most_keys);
}

/* Two keys that are the same, of 256 values; a relative position's one number for 98 rows of 240
 * keys. */
Test(emulated, of_sums_that_cancel_the_roundings_stay)
{
    sweep_from(63, 64, FEATURED, 14, 200, 256, 0, 0);
    sweep_from(34, 35, COMBINED, 17, 300, 130, 0, 0);
}

Test(emulated, small_problems_of_every_kind)
{
    sweep(MODIFIED, 1, 10, 60, 100, 0, 0);
}

Test(emulated, chunks_of_rows_keys_and_heads_add_up)
{
    sweep(MODIFIED, 2, 5, 300, 40, 3 * 128 * 128 * 4, 128);
}

Test(emulated, what_a_problem_may_ask_for_is_what_the_reference_says)
{
    sweep(FEATURED, 3, 25, 60, 100, 0, 0);
}

Test(emulated, score_mods_go_with_all_of_it)
{
    sweep(COMBINED, 5, 10, 60, 100, 0, 0);
}

Test(emulated, so_it_is_in_chunks)
{
    sweep(FEATURED, 4, 8, 300, 40, 3 * 128 * 128 * 4, 128);
}

Test(emulated, f32_keeps_its_24_bits)
{
    if (fattn__math_image.bytes == 0)
        cr_skip_test("this library was built without a CUDA compiler");
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *host, *gpu = open_emulated();
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 2;
    cr_assert_eq(fattn_context_create(&host, &options), FATTN_OK);
    const side cpu = { .context = host, .engine = &fattn__cpu_engine },
               math = { .context = gpu, .engine = &fattn__math_engine };
    generator g = { .state = 7 };
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.dtype = FATTN_F32, p.batch = 1, p.heads_q = 2, p.seq_q = p.seq_kv = 256, p.dim_qk = 24,
    p.dim_v = 72;
    const double worst = worst_of_f32(&cpu, &math, p, &g);
    cr_expect_lt(worst, 4e-6, "%g", worst);
    printf("f32: largest difference 2^%.1f\n", log2(worst));
    close_emulated(gpu);
    fattn_context_destroy(host);
}

/* Of 9 tiles a row. */
Test(emulated, a_block_mask_may_have_more_than_a_byte_a_row)
{
    if (fattn__math_image.bytes == 0)
        cr_skip_test("this library was built without a CUDA compiler");
    fattn_context *gpu = open_emulated();
    const side oracle = { .compute = compute_reference },
               math = { .context = gpu, .engine = &fattn__math_engine };
    generator g = { .state = 8 };
    tally t = { 0 };
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 1, p.heads_q = 2, p.seq_q = 130, p.seq_kv = 1100, p.dim_qk = 8, p.block_mask = 1,
    p.outputs = FATTN_WANT_MAX;
    compare_problem(&oracle, &math, p, &g, &t);
    close_emulated(gpu);
}

/* Packed K and V of one head that all heads read: their gradients go to their places as sums. */
Test(emulated, a_packed_gradient_may_be_a_sum_over_heads)
{
    if (fattn__math_image.bytes == 0)
        cr_skip_test("this library was built without a CUDA compiler");
    fattn_context *gpu = open_emulated();
    const side oracle = { .compute = compute_reference },
               math = { .context = gpu, .engine = &fattn__math_engine };
    generator g = { .state = 12 };
    tally t = { 0 };
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
    for (int n = 0; n < 4; n++) /* other lengths */
        compare_problem(&oracle, &math, p, &g, &t);
    close_emulated(gpu);
}
