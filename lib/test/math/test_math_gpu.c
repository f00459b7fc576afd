/* The math backend on a GPU against the cpu backend and the reference, over random problems.
 * Skipped where there is no GPU. */
#include "fattn/device.h"
#include "fattn/graph.h"
#include "fattn/score_mod.h"
#include "math_oracle.h"
#include "math_runs.h"
#include "support/described_h100.h"

static fattn_context *open_math(void)
{
    fattn_context *context = open_gpu();
    if (fattn__math_image.bytes == 0)
        cr_skip_test("this library was built without a CUDA compiler");
    return context;
}

static int problems(int otherwise)
{
    const char *count = getenv("FACTS_TEST_MATH_PROBLEMS");
    return count != NULL ? atoi(count) : otherwise;
}

/* draw_problem's problems and draw_features' against the cpu backend; the latter without a
 * score_mod against the reference. */
enum { MODIFIED, COMBINED, FEATURED };

static void sweep(int kind, uint64_t seed, int count, int64_t most_seq, int64_t most_dim,
                  int64_t score_bytes, int64_t most_keys)
{
    static const char *const words[] = { "modified", "combined", "featured" };
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *host, *gpu = open_math();
    options.device_kind = FATTN_DEVICE_CPU;
    cr_assert_eq(fattn_context_create(&host, &options), FATTN_OK);
    const side cpu = { .context = host, .engine = &fattn__cpu_engine },
               oracle = { .compute = compute_reference };
    const side math = { .context = gpu,
                        .engine = &fattn__math_engine,
                        .score_bytes = score_bytes,
                        .most_keys = most_keys };
    tally t = { 0 };
    for (int i = 0; i < count; i++) {
        generator g = { .state = seed * 1000 + (uint64_t)i,
                        .most_seq = most_seq,
                        .most_dim = most_dim };
        const fattn_problem p =
            kind == MODIFIED ? draw_problem(&g) : draw_features(&g, kind == COMBINED);
        compare_problem(kind != FEATURED ? &cpu : &oracle, &math, p, &g, &t);
        fattn_score_mod_destroy((fattn_score_mod *)(uintptr_t)p.score_mod);
    }
    printf("%s, up to %lld: %d problems, forward and backward: %d tensors wrong, largest "
           "difference %.2f of what is allowed\n",
           words[kind], (long long)most_seq, t.problems, t.elements_wrong, t.worst);
    fattn_context_destroy(gpu);
    fattn_context_destroy(host);
}

Test(math_gpu, small_problems_of_every_kind)
{
    sweep(MODIFIED, 11, problems(80), 200, 256, 0, 0);
}

Test(math_gpu, chunks_of_rows_keys_and_heads_add_up)
{
    sweep(MODIFIED, 12, problems(50), 600, 130, 3 * 128 * 128 * 4, 128);
}

Test(math_gpu, wide_heads_and_longer_sequences)
{
    sweep(MODIFIED, 13, problems(20), 1500, 1024, 0, 0);
}

Test(math_gpu, what_a_problem_may_ask_for_is_what_the_reference_says)
{
    sweep(FEATURED, 14, problems(80), 200, 256, 0, 0);
}

Test(math_gpu, so_it_is_in_chunks)
{
    sweep(FEATURED, 15, problems(40), 600, 130, 3 * 128 * 128 * 4, 128);
}

Test(math_gpu, so_it_is_of_longer_sequences)
{
    sweep(FEATURED, 16, problems(10), 1500, 256, 0, 0);
}

Test(math_gpu, score_mods_go_with_all_of_it)
{
    sweep(COMBINED, 17, problems(60), 300, 130, 0, 0);
}

Test(math_gpu, more_heads_than_a_grid_is_high)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *host, *gpu = open_math();
    options.device_kind = FATTN_DEVICE_CPU;
    cr_assert_eq(fattn_context_create(&host, &options), FATTN_OK);
    const side cpu = { .context = host, .engine = &fattn__cpu_engine },
               math = { .context = gpu, .engine = &fattn__math_engine };
    generator g = { .state = 5 };
    tally t = { 0 };
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 8200, p.heads_q = 8, p.heads_k = 2, p.seq_q = 3, p.seq_kv = 5, p.dim_qk = 8;
    compare_problem(&cpu, &math, p, &g, &t);
    printf("65600 heads: %d tensors wrong, largest difference %.2f of what is allowed\n",
           t.elements_wrong, t.worst);
    fattn_context_destroy(gpu);
    fattn_context_destroy(host);
}

Test(math_gpu, f32_keeps_its_24_bits)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *host, *gpu = open_math();
    options.device_kind = FATTN_DEVICE_CPU;
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
    fattn_context_destroy(gpu);
    fattn_context_destroy(host);
}

/* Element offsets beyond 2^31, without the memory for it in between: two batch entries far apart.
 */
Test(math_gpu, offsets_beyond_2_to_the_31)
{
    enum { SEQ = 64, DIM = 64, BATCHES = 2 };
    const int64_t far = ((int64_t)1 << 31) + 64;
    fattn_context *gpu = open_math();
    fattn_problem given = FATTN_PROBLEM_INIT, p;
    given.batch = BATCHES, given.heads_q = 1, given.seq_q = given.seq_kv = SEQ, given.dim_qk = DIM;
    const int64_t strides[4] = { far, DIM, DIM, 1 };
    memcpy(given.k_strides, strides, sizeof strides);
    memcpy(given.o_strides, strides, sizeof strides);
    cr_assert_eq(fattn_problem_resolve(&given, &p), FATTN_OK, "%s", fattn_last_error());
    const side math = { .context = gpu, .engine = &fattn__math_engine };
    fattn_plan plan = plan_of(&math, &p);
    uint16_t ones[BATCHES * SEQ * DIM], out[SEQ * DIM];
    for (int i = 0; i < BATCHES * SEQ * DIM; i++)
        ones[i] = 0x3f80;
    void *q, *k, *v, *o, *workspace;
    const size_t small = sizeof ones, large = (size_t)(far + SEQ * DIM) * 2;
    if (fattn_buffer_create(&k, gpu, large) != FATTN_OK ||
        fattn_buffer_create(&o, gpu, large) != FATTN_OK)
        cr_skip_test("not enough memory on the GPU");
    cr_assert_eq(fattn_buffer_create(&q, gpu, small), FATTN_OK);
    cr_assert_eq(fattn_buffer_create(&v, gpu, small), FATTN_OK);
    cr_assert_eq(fattn_buffer_create(&workspace, gpu, plan.workspace_bytes), FATTN_OK);
    cr_assert_eq(fattn_buffer_write(gpu, q, ones, small), FATTN_OK);
    cr_assert_eq(fattn_buffer_write(gpu, v, ones, small), FATTN_OK);
    cr_assert_eq(fattn_buffer_write(gpu, k, ones, small / BATCHES), FATTN_OK);
    cr_assert_eq(fattn_buffer_write(gpu, (char *)k + far * 2, ones, small / BATCHES), FATTN_OK);
    fattn_tensors t = FATTN_TENSORS_INIT;
    t.q = q, t.k = k, t.v = v, t.o = o, t.workspace = workspace,
    t.workspace_bytes = plan.workspace_bytes;
    cr_assert_eq(math.engine->run(&plan, &t, NULL), FATTN_OK, "%s", fattn_last_error());
    cr_assert_eq(fattn_stream_synchronize(gpu, NULL), FATTN_OK, "%s", fattn_last_error());
    for (int b = 0; b < BATCHES; b++) {
        cr_assert_eq(fattn_buffer_read(gpu, out, (char *)o + b * far * 2, sizeof out), FATTN_OK);
        cr_expect_eq(memcmp(out, ones, sizeof out), 0, "batch entry %d", b);
    }
    math.engine->done(&plan);
    fattn_context_destroy(gpu);
}

/* A seed is read when the graph runs, not when it was recorded. */
Test(math_gpu, a_replayed_graph_drops_by_the_seed_of_then)
{
    enum { BATCH = 1, HEADS = 2, SEQ = 40, DIM = 16, SCORES = BATCH * HEADS * SEQ * SEQ };
    fattn_context *gpu = open_math();
    fattn_problem given = FATTN_PROBLEM_INIT, p;
    given.batch = BATCH, given.heads_q = HEADS, given.seq_q = given.seq_kv = SEQ,
    given.dim_qk = DIM, given.dropout = 0.25;
    given.outputs = FATTN_WANT_RNG_DUMP;
    cr_assert_eq(fattn_problem_resolve(&given, &p), FATTN_OK, "%s", fattn_last_error());
    const side math = { .context = gpu, .engine = &fattn__math_engine };
    fattn_plan plan = plan_of(&math, &p);
    static float kept[SCORES];
    void *tensors[4], *numbers[2], *dump, *workspace;
    for (int i = 0; i < 4; i++)
        cr_assert_eq(fattn_buffer_create(&tensors[i], gpu, BATCH * HEADS * SEQ * DIM * 2),
                     FATTN_OK);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(fattn_buffer_create(&numbers[i], gpu, 8), FATTN_OK);
    cr_assert_eq(fattn_buffer_create(&dump, gpu, sizeof kept), FATTN_OK);
    cr_assert_eq(fattn_buffer_create(&workspace, gpu, plan.workspace_bytes), FATTN_OK);
    fattn_tensors t = FATTN_TENSORS_INIT;
    t.q = tensors[0], t.k = tensors[1], t.v = tensors[2], t.o = tensors[3], t.seed = numbers[0],
    t.offset = numbers[1], t.rng_dump = dump;
    t.workspace = workspace, t.workspace_bytes = plan.workspace_bytes;
    struct CUstream_st *stream;
    fattn_graph *graph;
    cr_assert_eq(fattn_stream_create(&stream, gpu), FATTN_OK);
    cr_assert_eq(fattn_capture_begin(gpu, stream), FATTN_OK, "%s", fattn_last_error());
    cr_assert_eq(math.engine->run(&plan, &t, stream), FATTN_OK, "%s", fattn_last_error());
    cr_assert_eq(fattn_capture_end(&graph, gpu, stream), FATTN_OK, "%s", fattn_last_error());
    for (int64_t seed = 1; seed < 4; seed++) {
        const int64_t offset = seed << 33;
        int64_t wrong = 0;
        cr_assert_eq(fattn_buffer_write(gpu, numbers[0], &seed, 8), FATTN_OK);
        cr_assert_eq(fattn_buffer_write(gpu, numbers[1], &offset, 8), FATTN_OK);
        cr_assert_eq(fattn_graph_launch(graph, stream), FATTN_OK, "%s", fattn_last_error());
        cr_assert_eq(fattn_stream_synchronize(gpu, stream), FATTN_OK, "%s", fattn_last_error());
        cr_assert_eq(fattn_buffer_read(gpu, kept, dump, sizeof kept), FATTN_OK);
        const fattn__dropout drops =
            fattn__dropout_of(seed, offset, fattn__dropout_threshold(0.25));
        for (int i = 0; i < SCORES; i++)
            wrong += kept[i] != (float)fattn__dropout_keeps(&drops, 0, i / (SEQ * SEQ),
                                                            i / SEQ % SEQ, i % SEQ);
        cr_expect_eq(wrong, 0, "seed %lld: %lld scores", (long long)seed, (long long)wrong);
    }
    fattn_graph_destroy(graph);
    fattn_stream_destroy(gpu, stream);
    math.engine->done(&plan);
    fattn_context_destroy(gpu);
}
