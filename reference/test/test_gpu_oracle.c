/* The oracle on a GPU against the oracle in C: every feature, random problems. Skipped, with the
 * reason, where there is no GPU. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "comparison.h"
#include "gpu/gpu_run.h"
#include "primary.h"

static void sweep(feature with, int count, const size_limits *most, size_t budget)
{
    const char *more = getenv("FACTS_TEST_GPU_PROBLEMS"), *first = getenv("FACTS_TEST_GPU_SEED");
    char error[256] = "";
    fref_gpu *gpu = NULL;
    tally t = { 0 };
    const gpu_driver *driver = open_gpu(error);
    if (!driver)
        cr_skip_test("no GPU: %s", error);
    const int status = fref_gpu_create(&gpu, error);
    if (status == ENOEXEC)
        cr_skip_test("%s", error);
    cr_assert_eq(status, 0, "%s", error);
    gpu->budget = budget;
    const int busy = gpu->busy;
    const int seed = first ? atoi(first) : 1;
    for (int n = 0; n < (more ? atoi(more) : count); n++) {
        gpu->busy = (seed + n) % 2 ? busy : 1; /* the keys of a tile in parts, and in one */
        compare_problem(gpu, driver, with, (uint64_t)(seed + n), most, &t);
    }
    printf("%s: %d problems, %d refused, %d arrays wrong, largest difference %.3f of what is "
           "allowed\n",
           feature_words[with], t.problems, t.refused, t.wrong, t.worst);
    fref_gpu_destroy(gpu);
    cr_assert_eq(t.wrong, 0);
    cr_assert_eq(t.refused, 0);
}

static const size_limits middling = { .batch = 2, .heads = 4, .seq = 200, .dim = 128 };

#define FEATURE_TEST(name, symbol)                                                                 \
    Test(gpu, name)                                                                                \
    {                                                                                              \
        sweep(symbol, 20, &middling, 0);                                                           \
    }
FEATURE_TEST(no_mask, FEATURE_PLAIN)
FEATURE_TEST(bands, FEATURE_BAND)
FEATURE_TEST(lengths, FEATURE_LENGTHS)
FEATURE_TEST(groups_of_heads, FEATURE_GROUPS)
FEATURE_TEST(a_bias, FEATURE_BIAS)
FEATURE_TEST(modifications, FEATURE_MOD)
FEATURE_TEST(dropout, FEATURE_DROPOUT)
FEATURE_TEST(a_sink, FEATURE_SINK)
FEATURE_TEST(alibi, FEATURE_ALIBI)
FEATURE_TEST(ragged_queries_and_paged_keys, FEATURE_APART)
FEATURE_TEST(masks, FEATURE_MASK)
FEATURE_TEST(scores_far_apart, FEATURE_STEEP)
FEATURE_TEST(everything, FEATURE_ANY)

Test(gpu, chunks_of_rows_and_lots_of_heads_add_up)
{
    const size_limits more = { .batch = 2, .heads = 4, .seq = 400, .dim = 128 };
    sweep(FEATURE_ANY, 10, &more, 1);
}
