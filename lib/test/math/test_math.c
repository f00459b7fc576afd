/* The math backend where no GPU is: what it says yes and no to, what workspace it asks for, how
 * programs are packed. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "fattn/score_mod.h"
#include "math/math_program.h"
#include "math/math_run.h"
#include "math/math_sum.h"
#include "problem/dropout.h"
#include "problem/feature_set.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

/* A described device: the backend looks at nothing else. */
static fattn_context described(int sm)
{
    return (fattn_context){ .kind = FATTN_DEVICE_DESCRIBED,
                            .info = { .sm = sm, .multiprocessors = 132 } };
}

static void need_image(void)
{
    if (fattn__math_image.bytes == 0)
        cr_skip_test("no kernels: %s", fattn__math_image.about);
}

static fattn_problem usual(void)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 8, p.seq_q = p.seq_kv = 512, p.dim_qk = 128;
    return p;
}

static fattn_problem resolve(const fattn_problem *p)
{
    fattn_problem out;
    cr_assert_eq(fattn_problem_resolve(p, &out), FATTN_OK, "%s", fattn_last_error());
    return out;
}

/* The reason, or "" when the backend says yes; *workspace_bytes is the engine's. */
static const char *ask(int sm, const fattn_problem *given, int64_t *workspace_bytes)
{
    static fattn_decision decision;
    fattn_context context = described(sm);
    const fattn_problem p = resolve(given);
    memset(&decision, 0, sizeof decision);
    cr_assert_eq(fattn__math_engine.can_do(&context, &p, FATTN_ASK_A, &decision), FATTN_OK, "%s",
                 fattn_last_error());
    cr_assert_eq(decision.backend, FATTN_BACKEND_MATH);
    if (decision.reason == FATTN_REASON_NONE) {
        cr_assert_eq(decision.modes[FATTN_MODE_A].count, 1);
        cr_assert_eq(decision.modes[FATTN_MODE_A].at[0].index, 0);
        if (workspace_bytes != NULL)
            *workspace_bytes = decision.modes[FATTN_MODE_A].at[0].workspace_bytes;
        free(decision.modes[FATTN_MODE_A].at);
        return "";
    }
    cr_expect_eq(decision.reason, FATTN_REASON_UNSUPPORTED);
    return fattn_decision_text(&decision);
}

Test(math, every_type_and_head_dimension_is_taken_on_every_device_since_sm_80)
{
    static const int sms[] = { 80, 86, 89, 90, 100, 103, 120 };
    need_image();
    for (size_t i = 0; i < sizeof sms / sizeof *sms; i++)
        for (int32_t dtype = FATTN_BF16; dtype <= FATTN_F32; dtype++)
            for (int32_t pass = FATTN_FORWARD; pass <= FATTN_BACKWARD; pass++)
                for (int64_t dim = 1; dim <= 1024; dim += dim < 16 ? 1 : 63) {
                    fattn_problem p = usual();
                    int64_t bytes = 0;
                    p.pass = pass, p.dtype = dtype, p.dim_qk = dim, p.dim_v = 1025 - dim;
                    p.o_dtype = dtype % 3 + 1, p.grad_dtype = FATTN_F32;
                    cr_expect_str_eq(ask(sms[i], &p, &bytes), "");
                    cr_expect_gt(bytes, 0);
                }
}

Test(math, what_it_cannot_do_has_a_reason)
{
    static const struct {
        const char *word;
        fattn_problem p;
    } rows[] = {
        { "bf16, f16 and f32", { .dtype = FATTN_E4M3 } },
        { "unified", { .impl = FATTN_IMPL_UNIFIED } },
        { "single", { .spelling = FATTN_SPELLING_SINGLE } },
        { "Stats in f32", { .stats_dtype = FATTN_F16 } },
        { "rotate", { .rope = 1 } },
        { "unfuse_fma", { .unfuse_fma = 1 } },
        { "boolean mask", { .has_bias = 1, .bias_dtype = FATTN_E5M2 } },
        { "2^24", { .seq_kv = ((int64_t)1 << 24) + 1 } },
        { "65536", { .dim_qk = 65537 } },
        { "2^31", { .batch = INT32_MAX, .seq_q = 1, .seq_kv = 1, .dim_qk = 8 } },
        { "memory", { .batch = 1 << 20, .heads_q = 1 << 10, .seq_q = 1 << 15, .seq_kv = 1 << 15 } },
    };
    need_image();
    fattn_problem p = usual();
    cr_expect_not_null(strstr(ask(75, &p, NULL), "sm_80"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        p = rows[i].p, p.struct_size = sizeof p;
        p.batch = p.batch ? p.batch : 2, p.heads_q = p.heads_q ? p.heads_q : 8;
        p.seq_q = p.seq_q ? p.seq_q : 512, p.seq_kv = p.seq_kv ? p.seq_kv : 512;
        p.dim_qk = p.dim_qk ? p.dim_qk : 128;
        const char *said = ask(90, &p, NULL);
        cr_expect_not_null(strstr(said, rows[i].word), "'%s' has no %s", said, rows[i].word);
    }
    /* Every clause of feature_set.h is this engine's to answer. */
    cr_expect_eq(fattn__math_engine.features, (UINT64_C(1) << FATTN__FEATURE_COUNT) - 1);
}

/* ---- workspace
 * --------------------------------------------------------------------------------------------------------------------
 */

static int64_t scores_of(const fattn__chunks *c)
{
    return c->batches * c->heads * c->rows * c->keys;
}

static void check_chunks(const fattn_problem *given, int64_t score_bytes)
{
    static const fattn__math_part parts[] = { FATTN__MATH_S, FATTN__MATH_P, FATTN__MATH_DS,
                                              FATTN__MATH_DP, FATTN__MATH_EXTRA };
    const fattn_problem p = resolve(given);
    fattn__chunks c, again;
    fattn__chunks_within(&c, &p, score_bytes, 4096);
    fattn__chunks_within(&again, &p, score_bytes, 4096);
    cr_expect_eq(memcmp(&c, &again, sizeof c), 0);
    cr_expect_eq(c.rows % FATTN__TILE, 0);
    cr_expect_eq(c.keys % FATTN__TILE, 0);
    cr_expect(c.heads >= 1 && c.heads <= p.heads_q && c.batches >= 1 && c.batches <= p.batch);
    cr_expect(c.batches == 1 || c.heads == p.heads_q, "several batch entries have all their heads");
    int64_t beside = 0; /* bytes for each score: no part ends behind the begin of another */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        beside +=
            c.offset[parts[i]] == SIZE_MAX                                                    ? 0
            : parts[i] == FATTN__MATH_P && c.offset[FATTN__MATH_P] == c.offset[FATTN__MATH_S] ? 0
            : parts[i] == FATTN__MATH_P || parts[i] == FATTN__MATH_DS ? fattn__dtype_bytes(p.dtype)
                                                                      : 4;
    const bool one_tile = c.rows == FATTN__TILE && c.batches * c.heads == 1;
    cr_expect(scores_of(&c) * beside <= score_bytes || one_tile, "%lld scores of %lld bytes",
              (long long)scores_of(&c), (long long)beside);
    for (int part = 0; part < FATTN__MATH_PARTS; part++)
        cr_expect(c.offset[part] == SIZE_MAX ||
                  (c.offset[part] < c.bytes && c.offset[part] % 256 == 0));
}

Test(math, scores_stay_within_their_bound)
{
    static const int64_t extents[] = { 1, 127, 129, 4096, 4097, 65536, 1 << 20 },
                         limits[] = { 1 << 16, 1 << 24, FATTN__MATH_SCORE_BYTES };
    const size_t count = sizeof extents / sizeof *extents;
    for (size_t i = 0; i < count * count * 3 * 6; i++) {
        fattn_problem p = usual();
        p.seq_q = extents[i % count], p.seq_kv = extents[i / count % count];
        p.heads_q = 12, p.heads_k = 4, p.heads_v = 3, p.dim_qk = 40;
        p.dtype = (int32_t)(i / count / count % 3) + 1;
        p.pass = i / count / count / 3 % 2 == 0 ? FATTN_FORWARD : FATTN_BACKWARD;
        p.has_bias = p.dbias = 1, p.bias_dim[0] = p.bias_dim[1] = p.bias_dim[2] = p.bias_dim[3] = 1;
        check_chunks(&p, limits[i / count / count / 6 % 3]);
    }
}

Test(math, workspace_is_scores_and_what_several_chunks_add_up_to)
{
    fattn_problem p = usual();
    int64_t bytes = 0, most = FATTN__MATH_SCORE_BYTES;
    need_image();
    p.batch = 4, p.heads_q = 16, p.seq_q = p.seq_kv = 4096;
    cr_expect_str_eq(ask(90, &p, &bytes), "");
    cr_expect(bytes <= most + most / 32, "%lld", (long long)bytes); /* and a few numbers a row */
    p.pass = FATTN_BACKWARD;
    cr_expect_str_eq(ask(90, &p, &bytes), "");
    cr_expect(bytes <= most + most / 32, "%lld", (long long)bytes);
    p.batch = p.heads_q = 1, p.seq_q = p.seq_kv = 1 << 20;
    cr_expect_str_eq(ask(90, &p, &bytes), "");
    /* Pages are laid out for the batch entries of a chunk, here one, however many there are. */
    fattn_problem paged = usual();
    paged.batch = 256, paged.heads_q = 32, paged.heads_k = 8, paged.seq_q = 1,
    paged.seq_kv = 1 << 17, paged.padding = 1;
    paged.page_size_k = paged.page_size_v = 64, paged.pages_k = paged.pages_v = 1 << 20;
    int64_t with_pages = 0;
    cr_expect_str_eq(ask(90, &paged, &with_pages), "");
    const int64_t entry = 2 * paged.heads_k * paged.seq_kv * paged.dim_qk * 2;
    cr_expect(with_pages <= most + most / 16 + entry, "%lld", (long long)with_pages);
    const int64_t sums =
        (2 * p.seq_kv + 16384) * p.dim_qk * 4; /* dK and dV of a head, dQ of a chunk's rows */
    cr_expect(bytes <= most + most / 32 + sums, "%lld", (long long)bytes);
}

Test(math, plans_for_a_described_device_need_no_module)
{
    need_image();
    fattn_context context = described(90);
    const fattn_problem given = usual();
    fattn_plan plan = { .engine = &fattn__math_engine,
                        .context = &context,
                        .problem = resolve(&given) };
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    char *saved;
    size_t count;
    cr_assert_eq(fattn__math_engine.setup(&plan, &options), FATTN_OK, "%s", fattn_last_error());
    cr_expect_gt(plan.workspace_bytes, 0);
    cr_expect_eq(plan.config.index, 0);
    cr_expect_eq(plan.config.workspace_bytes, (int64_t)plan.workspace_bytes);
    cr_expect_eq(fattn_plan_save(&plan, &saved, &count), FATTN_UNSUPPORTED);
    fattn__math_engine.done(&plan);
    cr_expect_null(plan.state);
    options.engine = 1;
    cr_expect_eq(fattn__math_engine.setup(&plan, &options), FATTN_UNSUPPORTED);
    fattn__sum sum = { .dim = { 1, 1, 1, 1 }, .dtype = FATTN_F32, .to_dtype = FATTN_F32 };
    cr_expect_eq(fattn__math_sum(&context, &sum, NULL), FATTN_INTERNAL, "nothing is loaded");
}

/* ---- dropout
 * ----------------------------------------------------------------------------------------------------------------------
 */

/* The known answers of Philox4x32-10, of its authors. */
Test(math, the_generator_is_philox)
{
    static const uint32_t given[3][6] = { { 0, 0, 0, 0, 0, 0 },
                                          { ~0u, ~0u, ~0u, ~0u, ~0u, ~0u },
                                          { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344,
                                            0xa4093822, 0x299f31d0 } };
    static const uint32_t want[3][4] = { { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
                                         { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd },
                                         { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } };
    for (int i = 0; i < 3; i++) {
        uint32_t x[4];
        memcpy(x, given[i], sizeof x);
        fattn__philox(x, given[i][4], given[i][5]);
        cr_expect_eq(memcmp(x, want[i], sizeof x), 0, "%d", i);
    }
}
