/* The oracle on a GPU against the oracle in C: every feature, random problems. On a GPU, skipped with
 * the reason where there is none; and, in the program reference_test_gpu_emulated, as C++ on the
 * host (lib/gpu/test). */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comparison.h"
#include "drawn.h"
#include "gpu/gpu_run.h"
#include "night.h"

static const gpu_driver *in_use;
static fref_gpu *gpu;

#ifdef FREF_EMULATED
#include "emulated_driver.h"

static void open_oracle(void)
{
    char error[256];
    in_use = emulated_driver();
    gpu_driver_replace(emulated_driver());
    cr_assert_eq(fref__gpu_create(&gpu, &emulated_image, error), 0, "%s", error);
}
#define ON(of_gpu, emulated) emulated
#else
#include "primary.h"

static void open_oracle(void)
{
    char error[256] = "";
    in_use = open_gpu(error);
    if (!in_use)
        cr_skip_test("no GPU: %s", error);
    const int status = fref_gpu_create(&gpu, error);
    if (status == ENOEXEC)
        cr_skip_test("%s", error);
    cr_assert_eq(status, 0, "%s", error);
}
#define ON(of_gpu, emulated) of_gpu
#endif

static void close_oracle(void)
{
    fref_gpu_destroy(gpu);
    gpu_driver_replace(NULL);
}

TestSuite(gpu, .init = open_oracle, .fini = close_oracle);

/* The first problems are the night's. */
static void sweep(feature with, int skipped, int count, const size_limits *most, size_t budget)
{
    const char *more = getenv("FACTS_TEST_GPU_PROBLEMS"), *first = getenv("FACTS_TEST_GPU_SEED");
    tally t = { 0 };
    const int seed = first ? atoi(first) : 1, busy = gpu->busy;
    gpu->budget = budget;
    for (int n = more || night() ? 0 : skipped; n < (more ? atoi(more) : count); n++) {
        gpu->busy = (seed + n) % 2 ? busy : 1; /* the keys of a tile in parts, and in one */
        compare_problem(gpu, in_use, with, (uint64_t)(seed + n), most, &t);
    }
    printf("%s: %d problems, %d refused, %d arrays wrong, largest difference %.3f of what is "
           "allowed\n",
           feature_words[with], t.problems, t.refused, t.wrong, t.worst);
    cr_assert_eq(t.wrong, 0);
    cr_assert_eq(t.refused, 0);
}

static const size_limits large = { .batch = 2, .heads = 4, .seq = 200, .dim = 128 },
                         usual = { .batch = 2, .heads = 4, .seq = ON(200, 70), .dim = ON(128, 72) };

/* X(name, feature, problems on an emulated GPU) */
#define FEATURE_LIST(X)                                                                            \
    X(no_mask, PLAIN, 3)                                                                           \
    X(bands, BAND, 3)                                                                              \
    X(lengths, LENGTHS, 3)                                                                         \
    X(groups_of_heads, GROUPS, 3)                                                                  \
    X(a_bias, BIAS, 3)                                                                             \
    X(modifications, MOD, 3)                                                                       \
    X(dropout, DROPOUT, 4) /* rows whose keys are all dropped */                                   \
    X(a_sink, SINK, 3)                                                                             \
    X(alibi, ALIBI, 3)                                                                             \
    X(ragged_queries_and_paged_keys, APART, 3)                                                     \
    X(everything, ANY, 3)
#define AS_TEST(name, symbol, emulated)                                                            \
    Test(gpu, name)                                                                                \
    {                                                                                              \
        sweep(FEATURE_##symbol, 0, ON(20, emulated), &usual, 0);                                   \
    }
FEATURE_LIST(AS_TEST)

Test(gpu, masks_of_elements_and_of_tiles)
{
    const size_limits tiles = { .batch = 2, .heads = 2, .seq = 150, .dim = 40 }; /* more than one */
    sweep(FEATURE_MASK, 0, ON(20, 3), &tiles, 0);
}

/* Each row of keys comes in several turns, and a later one may hold what the first does not reach.
 * In the ninth, dS saturates. */
Test(gpu, scores_far_apart)
{
    sweep(FEATURE_STEEP, ON(0, 7), ON(20, 9), &large, 0);
}

Test(gpu, chunks_of_rows_and_lots_of_heads_add_up)
{
    const size_limits more = { .batch = 2, .heads = 4, .seq = ON(400, 300), .dim = ON(128, 40) };
    sweep(FEATURE_ANY, ON(0, 3), ON(10, 4), &more, 1);
    sweep(FEATURE_GROUPS, 2, 4, &usual, 1); /* lots may split groups of heads */
}

#ifdef FREF_EMULATED /* device memory is the host's */
static const size_limits little = { .batch = 1, .heads = 1, .seq = 8, .dim = 8 };

static int forward_of(const drawn *x, const fref_forward_out *out)
{
    const data *of = &x->data;
    char error[256];
    const int status = fref_gpu_forward(gpu, &of->problem, NULL, &of->q, &of->k, &of->v,
                                        &x->rounding, out, NULL, error);
    if (status)
        printf("%s\n", error);
    return status;
}

static int backward_of(const drawn *x, const fref_backward_out *out, uint64_t scores)
{
    const data *of = &x->data;
    char error[256];
    return fref_gpu_backward(gpu, &of->problem, NULL, &of->q, &of->k, &of->v, &of->o, &of->stats,
                             &of->d_o, &x->rounding, out, scores, NULL, error);
}

/* What a forward found that did not wait is said once, by the call after it. */
Test(gpu, a_backward_says_what_its_forward_owes)
{
    drawn x;
    drawn_create(&x, FEATURE_PLAIN, 1, &little);
    const data *of = &x.data;
    double *answer = calloc(
        (size_t)(of->problem.batch * of->problem.heads_q * of->problem.rows * 64), sizeof *answer);
    const fref_forward_out o = { .o.value = answer };
    const fref_backward_out dq = { .dq.value = answer };
    unsigned char first[4];
    for (int bad = 1; bad >= 0; bad--) {
        memcpy(first, of->q.data, bytes_of(of->type));
        if (bad)
            memset((void *)(uintptr_t)of->q.data, 0xff, bytes_of(of->type));
        fref_gpu_run_ahead(gpu, true);
        cr_expect_eq(forward_of(&x, &o), 0);
        memcpy((void *)(uintptr_t)of->q.data, first, bytes_of(of->type));
        for (int again = 0; again < 2; again++)
            cr_expect_eq(backward_of(&x, &dq, 0), bad && !again ? ENOTSUP : 0);
    }
    free(answer);
    drawn_destroy(&x);
}

/* Scores that were given back are computed again. */
Test(gpu, what_is_given_back_is_made_again)
{
    drawn x;
    drawn_create(&x, FEATURE_PLAIN, 1, &little);
    const data *of = &x.data;
    const size_t count = (size_t)(of->problem.batch * of->problem.heads_q * of->problem.rows * 64);
    double *answer = calloc(3 * count, sizeof *answer);
    const fref_forward_out o = { .o.value = answer };
    cr_expect_not(fref_gpu_trim(gpu));
    for (int trimmed = 0; trimmed < 2; trimmed++) {
        const fref_backward_out dq = { .dq.value = answer + (trimmed ? 2 : 1) * count };
        cr_expect_eq(forward_of(&x, &o), 0);
        const uint64_t scores = fref_gpu_scores(gpu);
        cr_expect_neq(scores, 0);
        if (trimmed) {
            cr_expect(fref_gpu_trim(gpu) && !fref_gpu_trim(gpu));
            cr_expect_eq(fref_gpu_scores(gpu), 0);
        }
        cr_expect_eq(backward_of(&x, &dq, scores), 0);
    }
    cr_expect_arr_eq(answer + count, answer + 2 * count, count * sizeof *answer);
    free(answer);
    drawn_destroy(&x);
}

static int memory_answer;

static int no_host_memory(void **out, size_t bytes, unsigned flags)
{
    (void)out, (void)bytes, (void)flags;
    return memory_answer;
}

/* The first call that a broken context fails may be this one. */
Test(broken, memory_that_a_broken_device_does_not_give_is_no_lack_of_memory)
{
    static const int answers[] = { GPU_OUT_OF_MEMORY, 719 };
    gpu_driver broken = *emulated_driver();
    broken.host_alloc = no_host_memory;
    for (int i = 0; i < 2; i++) {
        char error[256] = "";
        fref_gpu *made;
        memory_answer = answers[i];
        gpu_driver_replace(&broken);
        cr_expect_eq(fref__gpu_create(&made, &emulated_image, error), i ? EIO : ENOMEM, "%s",
                     error);
    }
    gpu_driver_replace(NULL);
}

/* A launch that fails is a fault of the device; what no grid can hold is the C oracle's. */
Test(gpu, more_entries_of_dbias_than_a_grid_has_blocks_are_refused)
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
    const fref_backward_out out = { .dbias.value = dbias, .dbias_dim = { BATCH, 1, 1, 2 } };
    char error[256];
    gpu->budget = 1; /* a head at a time: the first is enough */
    cr_expect_eq(fref_gpu_backward(gpu, &p, NULL, &same, &same, &same, &same, &same, &same,
                                   &rounding, &out, 0, NULL, error),
                 ENOTSUP, "%s", error);
    cr_expect(strstr(error, "65536 blocks") != NULL, "%s", error);
    free(dbias);
}
#endif
