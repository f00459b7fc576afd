#include <criterion/criterion.h>

#include "numbers.h"
#include "numbers/fill/recipe.h"
#include "problem/philox.h"

static const shape small = { FATTN_BF16, 2, 4, 2, 2, 48, 72, 64, 32 };

Test(philox, the_published_answers)
{
    const uint32_t zero[4] = { 0 }, ones[4] = { ~0u, ~0u, ~0u, ~0u };
    facts_draw a = facts_philox(zero, zero), b = facts_philox(ones, ones);
    const facts_draw want_a = { { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } };
    const facts_draw want_b = { { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } };
    cr_expect_arr_eq(a.r, want_a.r, sizeof a.r);
    cr_expect_arr_eq(b.r, want_b.r, sizeof b.r);
}

Test(philox, the_known_sums_of_seed_1)
{
    const int32_t want[4] = { -229926, 79108, -66480, 130046 };
    for (uint64_t e = 0; e < 4; e++)
        cr_expect_eq(facts_normal_sum(facts_draw_at(1, FACTS_STREAM_K, FACTS_LANE_VALUE, e)),
                     want[e]);
}

Test(philox, near_normal_has_mean_0_and_variance_1)
{
    double sum = 0, squares = 0, n = 400000;
    for (uint64_t e = 0; e < (uint64_t)n; e++) {
        double x = (double)facts_normal(facts_draw_at(7, FACTS_STREAM_Q, FACTS_LANE_VALUE, e));
        sum += x;
        squares += x * x;
    }
    cr_expect_lt(fabs(sum / n), 0.01);
    cr_expect_lt(fabs(squares / n - 1), 0.01);
}

Test(fill, a_broadcast_place_holds_the_first_of_those_that_share_it)
{
    facts_problem p = problem_of(small, BHSD, 0, false, FACTS_FILL_GAUSS), b = p;
    b.tensor[FACTS_TENSOR_K].stride[0] = 0;
    b.tensor[FACTS_TENSOR_K].stride[1] = 0;
    void *plain = filled(&p, FACTS_TENSOR_K), *shared = filled(&b, FACTS_TENSOR_K);
    for (int64_t s = 0; s < small.skv; s++)
        cr_assert_float_eq(value_at(&b.tensor[FACTS_TENSOR_K], shared, 1, 1, s, 3),
                           value_at(&p.tensor[FACTS_TENSOR_K], plain, 0, 0, s, 3), 0);
    free(plain);
    free(shared);
}

static double score(const facts_problem *p, const void *q, const void *k, int64_t b, int64_t h,
                    int64_t i, int64_t j)
{
    double sum = 0;
    int64_t group = p->ask.heads_q / p->ask.heads_k;
    for (int64_t d = 0; d < p->ask.dim_qk; d++)
        sum += value_at(&p->tensor[FACTS_TENSOR_Q], q, b, h, i, d) *
               value_at(&p->tensor[FACTS_TENSOR_K], k, b, h / group, j, d);
    return sum * p->ask.attn_scale;
}

static void needle_dominates(facts_problem *p)
{
    void *q = filled(p, FACTS_TENSOR_Q), *k = filled(p, FACTS_TENSOR_K);
    for (int64_t b = 0; b < p->ask.batch; b++)
        for (int64_t h = 0; h < p->ask.heads_q; h++)
            for (int64_t i = 0; i < p->ask.seq_q; i++) {
                int64_t best = 0, t = facts_needle_key(p, b, h, i);
                for (int64_t j = 1; j < p->ask.seq_kv; j++)
                    best = score(p, q, k, b, h, i, j) > score(p, q, k, b, h, i, best) ? j : best;
                cr_assert_eq(best, t, "b %d h %d row %d: key %d is largest, needle at %d", (int)b,
                             (int)h, (int)i, (int)best, (int)t);
            }
    free(q);
    free(k);
}

Test(fill, needle_is_the_largest_score_of_its_row)
{
    facts_problem p = problem_of(small, BSHD, 0, true, FACTS_FILL_NEEDLE);
    needle_dominates(&p);
    p.tensor[FACTS_TENSOR_K].stride[0] =
        0; /* shared keys: the needle points at what is really there */
    needle_dominates(&p);
    p = problem_of(small, BHSD, 0, false, FACTS_FILL_NEEDLE);
    p.has_lengths = true;
    p.len_q[0] = 48, p.len_kv[0] = 20, p.len_q[1] = 7, p.len_kv[1] = 0;
    needle_dominates(&p);
}

Test(fill, no_two_heads_or_batches_have_the_same_keys)
{
    for (facts_fill fill = FACTS_FILL_GAUSS; fill < FACTS_FILL_OTHER; fill++) {
        facts_problem p = problem_of(small, BSHD, 0, false, fill);
        const facts_tensor *t = &p.tensor[FACTS_TENSOR_K];
        void *k = filled(&p, FACTS_TENSOR_K);
        int heads = 0, batches = 0;
        for (int64_t d = 0; d < small.dqk; d++) {
            heads += value_at(t, k, 0, 0, 9, d) != value_at(t, k, 0, 1, 9, d);
            batches += value_at(t, k, 0, 0, 9, d) != value_at(t, k, 1, 0, 9, d);
        }
        cr_expect(heads > 10 && batches > 10, "fill %d: %d %d", (int)fill, heads, batches);
        free(k);
    }
}

Test(fill, needles_point_at_both_edges_of_the_mask_and_over_them)
{
    facts_problem p = problem_of(small, BSHD, 0, true, FACTS_FILL_NEEDLE);
    int at_edge = 0, over = 0, first = 0, elsewhere = 0;
    for (int64_t h = 0; h < p.ask.heads_q; h++)
        for (int64_t i = 2; i < p.ask.seq_q; i++) {
            int64_t t = facts_needle_key(&p, 0, h, i);
            at_edge += t == i;
            over += t == i + 1;
            first += t == 0;
            elsewhere += t > 0 && t != i && t != i + 1;
        }
    cr_expect(at_edge > 30 && over > 10 && first > 20 && elsewhere > 10, "%d %d %d %d", at_edge,
              over, first, elsewhere);
}

Test(fill, the_needle_gain_is_the_least_that_lifts_it_by_5)
{
    double scale = 1 / sqrt(128.0), a = facts_needle_gain(128, 4096, scale);
    double lift = a * 128 * scale - (log(4096) + a * a * 128 * scale * scale / 2);
    cr_expect_geq(lift, 5);
    cr_expect_float_eq(facts_needle_gain(128, 2, scale), 1.0, 0);
}

Test(fill, neglse_has_every_far_score_between_minus_200_and_minus_490)
{
    for (int64_t d = 32; d <= 256; d *= 2) {
        facts_problem p = problem_of((shape){ FATTN_F16, 1, 2, 1, 1, 40, 50, d, d }, BSHD, 0, false,
                                     FACTS_FILL_NEGLSE);
        void *q = filled(&p, FACTS_TENSOR_Q), *k = filled(&p, FACTS_TENSOR_K);
        int far = 0;
        for (int64_t i = 0; i < 40; i++) {
            bool is_far = score(&p, q, k, 0, 1, i, 0) < -100;
            far += is_far;
            cr_assert(is_far || (i != 0 && i != 39), "the first and the last row are far");
            for (int64_t j = 0; is_far && j < 50; j++) {
                double x = score(&p, q, k, 0, 1, i, j);
                cr_assert(x < -200 && x > -490, "d %d: %g", (int)d, x);
            }
        }
        cr_expect(far >= 5 && far <= 25, "%d of 40 rows are far", far);
        free(q);
        free(k);
    }
}

static void stair_rises(facts_fill fill, int32_t dtype, double scale, double sign)
{
    facts_problem p =
        problem_of((shape){ dtype, 1, 1, 1, 1, 4, 200, 64, 64 }, BSHD, 0, false, fill);
    p.ask.attn_scale = scale;
    void *q = filled(&p, FACTS_TENSOR_Q), *k = filled(&p, FACTS_TENSOR_K);
    double climb = (score(&p, q, k, 0, 0, 1, 199) - score(&p, q, k, 0, 0, 1, 0)) * sign;
    cr_expect(climb > 30 && climb < 50, "dtype %d scale %g: %g", dtype, scale, climb);
    free(q);
    free(k);
}

Test(fill, stairs_climb_40_from_end_to_end)
{
    stair_rises(FACTS_FILL_STAIR_UP, FATTN_BF16, 0.125, 1);
    stair_rises(FACTS_FILL_STAIR_DN, FATTN_F16, 0.125, -1);
    stair_rises(FACTS_FILL_STAIR_UP, FATTN_F16, 0.0005, 1);
    stair_rises(FACTS_FILL_STAIR_UP, FATTN_E4M3, 0.125, 1);
}
