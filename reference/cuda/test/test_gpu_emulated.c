/* The kernels of the oracle on a GPU, run without one (emulate.h), against the oracle in C. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "comparison.h"
#include "drawn.h"
#include "emulated_driver.h"
#include "gpu/gpu_run.h"
#include "night.h"

static fref_gpu *open_gpu(void)
{
    char error[256];
    fref_gpu *gpu;
    gpu_driver_replace(emulated_driver());
    cr_assert_eq(fref__gpu_create(&gpu, &emulated_image, error), 0, "%s", error);
    return gpu;
}

static void close_gpu(fref_gpu *gpu)
{
    fref_gpu_destroy(gpu);
    gpu_driver_replace(NULL);
}

static int forward_of(fref_gpu *gpu, const drawn *x, const fref_forward_out *out)
{
    const data *of = &x->data;
    char error[256];
    const int status = fref_gpu_forward(gpu, &of->problem, NULL, &of->q, &of->k, &of->v,
                                        &x->rounding, out, NULL, error);
    if (status)
        printf("%s\n", error);
    return status;
}

static int backward_of(fref_gpu *gpu, const drawn *x, const fref_backward_out *out, uint64_t scores)
{
    const data *of = &x->data;
    char error[256];
    return fref_gpu_backward(gpu, &of->problem, NULL, &of->q, &of->k, &of->v, &of->o, &of->stats,
                             &of->d_o, &x->rounding, out, scores, NULL, error);
}

/* The first of `count` problems are the night's. */
static void sweep(feature with, int skipped, int count, const size_limits *most, size_t budget)
{
    const char *more = getenv("FACTS_TEST_GPU_PROBLEMS"), *first = getenv("FACTS_TEST_GPU_SEED");
    tally t = { 0 };
    fref_gpu *gpu = open_gpu();
    gpu->budget = budget;
    const int busy = gpu->busy;
    const int seed = first ? atoi(first) : 1;
    const size_limits large = {
        .batch = 2, .heads = 4, .seq = 200, .dim = 128
    }; /* test_gpu.c's, so that its problems can be looked at here */
    most = getenv("FACTS_TEST_GPU_LARGE") ? &large : most;
    for (int n = more || night() ? 0 : skipped; n < (more ? atoi(more) : count); n++) {
        gpu->busy = (seed + n) % 2 ? busy : 1; /* the keys of a tile in parts, and in one */
        compare_problem(gpu, emulated_driver(), with, (uint64_t)(seed + n), most, &t);
    }
    printf("%s: %d problems, %d refused, %d arrays wrong, largest difference %.3f of what is "
           "allowed\n",
           feature_words[with], t.problems, t.refused, t.wrong, t.worst);
    close_gpu(gpu);
    cr_assert_eq(t.wrong, 0);
    cr_assert_eq(t.refused, 0);
}

static int memory_answer;

static int no_host_memory(void **out, size_t bytes, unsigned flags)
{
    (void)out, (void)bytes, (void)flags;
    return memory_answer;
}

/* The first call that a broken context fails may be this one. */
Test(emulated, memory_that_a_broken_device_does_not_give_is_no_lack_of_memory)
{
    static const int answers[] = { GPU_OUT_OF_MEMORY, 719 };
    gpu_driver broken = *emulated_driver();
    broken.host_alloc = no_host_memory;
    for (int i = 0; i < 2; i++) {
        char error[256] = "";
        fref_gpu *gpu;
        memory_answer = answers[i];
        gpu_driver_replace(&broken);
        cr_expect_eq(fref__gpu_create(&gpu, &emulated_image, error), i ? EIO : ENOMEM, "%s", error);
    }
    gpu_driver_replace(NULL);
}

static const size_limits small = { .batch = 2, .heads = 4, .seq = 70, .dim = 72 };
static const size_limits little = { .batch = 1, .heads = 1, .seq = 8, .dim = 8 };

#define FEATURE_TEST(name, symbol)                                                                 \
    Test(emulated, name)                                                                           \
    {                                                                                              \
        sweep(symbol, 0, 3, &small, 0);                                                            \
    }
FEATURE_TEST(no_mask, FEATURE_PLAIN)
FEATURE_TEST(bands, FEATURE_BAND)
FEATURE_TEST(lengths, FEATURE_LENGTHS)
FEATURE_TEST(groups_of_heads, FEATURE_GROUPS)
FEATURE_TEST(a_bias, FEATURE_BIAS)
FEATURE_TEST(modifications, FEATURE_MOD)
FEATURE_TEST(a_sink, FEATURE_SINK)
FEATURE_TEST(alibi, FEATURE_ALIBI)
FEATURE_TEST(ragged_queries_and_paged_keys, FEATURE_APART)
FEATURE_TEST(everything, FEATURE_ANY)

/* Rows whose keys are all dropped: nothing weighs in them. */
Test(emulated, dropout)
{
    sweep(FEATURE_DROPOUT, 0, 4, &small, 0);
}

Test(emulated, masks_of_elements_and_of_tiles)
{
    const size_limits tiles = { .batch = 2, .heads = 2, .seq = 150, .dim = 40 }; /* more than one */
    sweep(FEATURE_MASK, 0, 3, &tiles, 0);
}

/* Each row of keys comes in several turns, and a later one may hold what the first does not reach.
 * In the ninth, dS saturates. */
Test(emulated, scores_far_apart)
{
    const size_limits more = { .batch = 2, .heads = 4, .seq = 200, .dim = 128 };
    sweep(FEATURE_STEEP, 7, 9, &more, 0);
}

/* So many numbers of one run beside another's, whose sums were made by other blocks. */
static void agree(const char *word, const double *a, const double *b, int64_t count,
                  double tolerance)
{
    for (int64_t n = 0; n < count; n++)
        cr_assert(fabs(a[n] - b[n]) <= tolerance * (1.0 + fabs(b[n])), "%s[%lld]: %.17g and %.17g",
                  word, (long long)n, a[n], b[n]);
}

Test(emulated, it_does_not_matter_how_many_blocks_share_rows_and_keys)
{
    const size_limits long_ = { .batch = 1, .heads = 1, .seq = 900, .dim = 72 };
    fref_gpu *gpu = open_gpu();
    const int busy[2] = { gpu->busy, 1 };
    for (uint64_t seed = night() ? 1 : 3; seed <= 4; seed++) {
        drawn x;
        drawn_create(&x, FEATURE_PLAIN, seed, &long_);
        const data *of = &x.data;
        const int64_t rows = of->problem.rows, count = rows * of->problem.dim_v;
        double *found[2];
        for (int n = 0; n < 2; n++) {
            found[n] = calloc((size_t)(3 * count + rows), sizeof **found);
            const fref_forward_out out = { .o = found[n],
                                           .o_sigma = found[n] + count,
                                           .o_bound = found[n] + 2 * count,
                                           .o_nu = found[n] + 3 * count };
            gpu->busy = busy[n];
            cr_assert_eq(forward_of(gpu, &x, &out), 0);
        }
        agree("o", found[0], found[1], count, 1e-13);
        agree("o_sigma and o_bound", found[0] + count, found[1] + count, 2 * count, 1e-13);
        agree("o_nu", found[0] + 3 * count, found[1] + 3 * count, rows, 1e-12);
        free(found[0]);
        free(found[1]);
        drawn_destroy(&x);
    }
    close_gpu(gpu);
}

Test(emulated, chunks_of_rows_and_lots_of_heads_add_up)
{
    const size_limits more = { .batch = 2, .heads = 4, .seq = 300, .dim = 40 };
    sweep(FEATURE_ANY, 3, 4, &more, 1); /* the last: what is flushed in a later chunk alone */
}

/* What a forward found that did not wait is said once, by the call after it. */
Test(emulated, a_backward_says_what_its_forward_owes)
{
    drawn x;
    drawn_create(&x, FEATURE_PLAIN, 1, &little);
    const data *of = &x.data;
    double *answer = calloc(
        (size_t)(of->problem.batch * of->problem.heads_q * of->problem.rows * 64), sizeof *answer);
    const fref_forward_out o = { .o = answer };
    const fref_backward_out dq = { .dq = answer };
    unsigned char first[4];
    fref_gpu *gpu = open_gpu();
    for (int bad = 1; bad >= 0; bad--) {
        memcpy(first, of->q.data, bytes_of(of->type));
        if (bad)
            memset((void *)(uintptr_t)of->q.data, 0xff, bytes_of(of->type));
        fref_gpu_run_ahead(gpu, true);
        cr_expect_eq(forward_of(gpu, &x, &o), 0);
        memcpy((void *)(uintptr_t)of->q.data, first, bytes_of(of->type));
        for (int again = 0; again < 2; again++)
            cr_expect_eq(backward_of(gpu, &x, &dq, 0), bad && !again ? ENOTSUP : 0);
    }
    close_gpu(gpu);
    free(answer);
    drawn_destroy(&x);
}

/* Scores that were given back are computed again. */
Test(emulated, what_is_given_back_is_made_again)
{
    drawn x;
    drawn_create(&x, FEATURE_PLAIN, 1, &little);
    const data *of = &x.data;
    const size_t count = (size_t)(of->problem.batch * of->problem.heads_q * of->problem.rows * 64);
    double *answer = calloc(3 * count, sizeof *answer);
    const fref_forward_out o = { .o = answer };
    fref_gpu *gpu = open_gpu();
    cr_expect_not(fref_gpu_trim(gpu));
    for (int trimmed = 0; trimmed < 2; trimmed++) {
        const fref_backward_out dq = { .dq = answer + (trimmed ? 2 : 1) * count };
        cr_expect_eq(forward_of(gpu, &x, &o), 0);
        const uint64_t scores = fref_gpu_scores(gpu);
        cr_expect_neq(scores, 0);
        if (trimmed) {
            cr_expect(fref_gpu_trim(gpu) && !fref_gpu_trim(gpu));
            cr_expect_eq(fref_gpu_scores(gpu), 0);
        }
        cr_expect_eq(backward_of(gpu, &x, &dq, scores), 0);
    }
    cr_expect_arr_eq(answer + count, answer + 2 * count, count * sizeof *answer);
    close_gpu(gpu);
    free(answer);
    drawn_destroy(&x);
}

Test(emulated, lots_may_split_groups_of_heads)
{
    sweep(FEATURE_GROUPS, 2, 4, &small, 1);
}

/* A launch that fails is a fault of the device; what no grid can hold is the C oracle's. */
Test(emulated, more_entries_of_dbias_than_a_grid_has_blocks_are_refused)
{
    enum { BATCH = 65536 };
    const float one[8] = { 1 };
    const fref_tensor same = { .data = one, .type = FREF_F32, .stride = { 0, 0, 0, 1 } };
    const fref_problem p = { .batch = BATCH,
                             .heads_q = 1,
                             .heads_k = 1,
                             .heads_v = 1,
                             .rows = 1,
                             .keys = 2,
                             .dim_qk = 8,
                             .dim_v = 8,
                             .scale = 1.0,
                             .bias = &same };
    const fref_rounding rounding = fref_rounding_of(FREF_F32, FREF_F32);
    double *dbias = calloc(2 * BATCH, sizeof *dbias);
    const fref_backward_out out = { .dbias = dbias, .dbias_dim = { BATCH, 1, 1, 2 } };
    char error[256];
    fref_gpu *gpu = open_gpu();
    gpu->budget = 1; /* a head at a time: the first is enough */
    cr_expect_eq(fref_gpu_backward(gpu, &p, NULL, &same, &same, &same, &same, &same, &same,
                                   &rounding, &out, 0, NULL, error),
                 ENOTSUP, "%s", error);
    cr_expect(strstr(error, "65536 blocks") != NULL, "%s", error);
    close_gpu(gpu);
    free(dbias);
}
