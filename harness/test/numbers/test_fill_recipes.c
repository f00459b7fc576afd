/* What the fills beside the usual four promise: the numbers themselves. What each shows of a lying
 * kernel is in test_fill_shows.c.
 */
#include <criterion/criterion.h>

#include "numbers.h"
#include "numbers/fill/score_inputs.h"

static const shape small = { FATTN_BF16, 2, 4, 2, 2, 300, 270, 64, 64 };

typedef struct inputs {
    facts_problem p;
    void *q, *k, *v, *d_o;
} inputs;

static inputs make(shape n, facts_fill fill, uint64_t seed)
{
    inputs in = { .p = problem_of(n, BSHD, 0, false, fill) };
    in.p.seed = seed;
    in.q = filled(&in.p, FACTS_TENSOR_Q);
    in.k = filled(&in.p, FACTS_TENSOR_K);
    in.v = filled(&in.p, FACTS_TENSOR_V);
    in.d_o = filled(&in.p, FACTS_TENSOR_DO);
    return in;
}

static void leave(inputs *in)
{
    free(in->q);
    free(in->k);
    free(in->v);
    free(in->d_o);
}

static double q_at(const inputs *in, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return value_at(&in->p.tensor[FACTS_TENSOR_Q], in->q, b, h, s, d);
}

static double k_at(const inputs *in, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return value_at(&in->p.tensor[FACTS_TENSOR_K], in->k, b, h, s, d);
}

static double v_at(const inputs *in, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return value_at(&in->p.tensor[FACTS_TENSOR_V], in->v, b, h, s, d);
}

static double score(const inputs *in, int64_t b, int64_t h, int64_t i, int64_t j)
{
    double sum = 0.0;
    for (int64_t d = 0; d < in->p.ask.dim_qk; d++)
        sum += q_at(in, b, h, i, d) * k_at(in, b, h / 2, j, d);
    return sum * facts_oracle_scale(&in->p);
}

Test(fill_recipes, logits_are_as_large_as_their_name_says)
{
    static const struct {
        facts_fill fill;
        double size;
    } expects[] = { { FACTS_FILL_GAUSS, 1.0 },
                    { FACTS_FILL_BIGLOGIT, 8.0 },
                    { FACTS_FILL_HUGELOGIT, 1000.0 } };
    for (size_t k = 0; k < sizeof expects / sizeof *expects; k++) {
        inputs in = make(small, expects[k].fill, 1);
        double squares = 0.0;
        for (int64_t j = 0; j < 270; j++)
            squares += score(&in, 0, 1, j % 40, j) * score(&in, 0, 1, j % 40, j);
        double size = sqrt(squares / 270);
        cr_expect(size > 0.8 * expects[k].size && size < 1.25 * expects[k].size,
                  "fill %d: %g, not %g", (int)expects[k].fill, size, expects[k].size);
        leave(&in);
    }
}

Test(fill_recipes, offset_keys_have_a_mean_and_twice_the_direction_is_taken_off_exactly)
{
    inputs in = make(small, FACTS_FILL_OFFSET_K, 1), plain = make(small, FACTS_FILL_GAUSS, 1);
    for (int64_t d = 0; d < 64; d++) {
        double mean = 0.0;
        for (int64_t j = 0; j < 270; j++)
            mean += k_at(&in, 1, 1, j, d) / 270;
        cr_expect(fabs(fabs(mean) - 2.0) < 0.3, "channel %d: %g", (int)d, mean);
        double moved = k_at(&plain, 1, 1, 7, d) + copysign(2.0, mean);
        cr_expect_eq(k_at(&in, 1, 1, 7, d),
                     facts_decode(FATTN_BF16, facts_encode(FATTN_BF16, moved)));
    }
    leave(&in);
    leave(&plain);
}

Test(fill_recipes, offset_values_have_a_mean_of_their_own_in_each_channel)
{
    inputs in = make(small, FACTS_FILL_OFFSET_V, 1), plain = make(small, FACTS_FILL_GAUSS, 1);
    double least = 9.0, most = 0.0;
    for (int64_t d = 0; d < 64; d++) {
        double mean = 0.0;
        for (int64_t j = 0; j < 270; j++)
            mean += v_at(&in, 1, 1, j, d) / 270;
        least = fmin(least, fabs(mean));
        most = fmax(most, fabs(mean));
        cr_expect_eq(k_at(&in, 1, 1, 7, d), k_at(&plain, 1, 1, 7, d), "keys stay");
    }
    cr_expect(least > 0.7 && least < 1.4 && most > 2.6 && most < 3.3, "%g to %g", least, most);
    leave(&in);
    leave(&plain);
}

Test(fill_recipes, sparse_int_is_four_fifths_zeros_and_whole_numbers)
{
    inputs in = make(small, FACTS_FILL_SPARSE_INT, 1);
    int zeros = 0, all = 0;
    for (int64_t j = 0; j < 270; j++)
        for (int64_t d = 0; d < 64; d++, all++) {
            double x = v_at(&in, 0, 0, j, d);
            zeros += x == 0;
            cr_assert(x == rint(x) && fabs(x) <= 2);
        }
    /* One in five of the others is 0 too. */
    cr_expect(fabs((double)zeros / all - 0.84) < 0.02, "%g", (double)zeros / all);
    leave(&in);
}

Test(fill_recipes, unip_asks_every_key_alike)
{
    inputs in = make(small, FACTS_FILL_UNIP, 1);
    for (int64_t d = 0; d < 64; d++)
        cr_assert(q_at(&in, 1, 3, 299, d) == 0 && k_at(&in, 1, 1, 269, d) != 0);
    leave(&in);
}

Test(fill_recipes, amax_plant_plants_in_turn_with_either_sign_and_padding_is_larger)
{
    static const struct {
        int64_t b, h, row, channel;
    } expects[5] = {
        { 0, 0, 249, 0 }, { 0, 3, 249, 0 }, { 1, 0, 99, 0 }, { 0, 0, 249, 63 }, { 0, 0, 0, 0 }
    };
    for (uint64_t seed = 0; seed < 10; seed++) {
        facts_problem p = problem_of(small, BSHD, 0, true, FACTS_FILL_AMAX_PLANT);
        p.seed = seed;
        p.has_lengths = true;
        p.len_q[0] = 250, p.len_kv[0] = 200, p.len_q[1] = 100, p.len_kv[1] = 270;
        int64_t b = expects[seed / 2].b, h = expects[seed / 2].h, row = expects[seed / 2].row,
                first, last;
        facts_oracle_keys_of_row(&p, b, row, &first, &last);
        void *q = filled(&p, FACTS_TENSOR_Q), *k = filled(&p, FACTS_TENSOR_K),
             *v = filled(&p, FACTS_TENSOR_V);
        inputs in = { .p = p, .q = q, .k = k, .v = v };
        cr_expect_eq(v_at(&in, b, h / 2, last - 1, expects[seed / 2].channel), seed % 2 ? -16 : 16,
                     "seed %d", (int)seed);
        double best = score(&in, b, h, row, last - 1), padded = 0.0;
        for (int64_t j = first; j < last - 1; j++)
            cr_assert(score(&in, b, h, row, j) < best - 1, "seed %d key %d", (int)seed, (int)j);
        for (int64_t d = 0; d < 64; d++)
            padded = fmax(padded, fabs(v_at(&in, 0, 0, 260, d)));
        cr_expect_gt(padded, 64, "padding would be the maximum if it counted");
        free(q);
        free(k);
        free(v);
    }
}
