/* Fills that make a mistake visible without a kernel. The others: harness/test/self. */
#include <math.h>

#include "checking.h"
#include "numbers/fill/score_inputs.h"

/* A softmax that does not subtract the maximum, in fp32: right until a sum overflows. */
static double worst_without_maximum(const char *text)
{
    world w = { .p = problem_asked(text) };
    world_fill(&w);
    facts_storages in = world_storages(&w);
    cr_assert_eq(facts_expect_forward(&w.expectation, &w.p, &in, 0), 0);
    const int64_t rows[4] = { w.p.ask.batch, w.p.ask.heads_q, w.p.ask.seq_q, 1 };
    double worst = 0.0;
    for (facts_walk at = facts_walk_of(rows); facts_walk_on(&at);) {
        float sum = 0.0F;
        for (int64_t j = 0; j < w.p.ask.seq_kv; j++) {
            double s = 0.0;
            for (int64_t c = 0; c < w.p.ask.dim_qk; c++)
                s += facts_view_get(&w.view, FACTS_TENSOR_Q,
                                    (const int64_t[4]){ at.at[0], at.at[1], at.at[2], c }) *
                     facts_view_get(
                         &w.view, FACTS_TENSOR_K,
                         (const int64_t[4]){ at.at[0], facts_key_head(&w.p, at.at[1]), j, c });
            sum += expf((float)(s * facts_oracle_scale(&w.p)));
        }
        worst = fmax(worst,
                     fabs((double)logf(sum) - facts_view_want(&w.view, FACTS_TENSOR_STATS, at.at)));
    }
    world_leave(&w);
    return worst;
}

Test(fill_shows, hugelogit_overflows_a_softmax_without_its_maximum)
{
    cr_expect_lt(worst_without_maximum("pass=fwd b=1 h=2 s=40/50 d=32 want=stats fill=gauss"),
                 1e-5);
    cr_expect_eq(worst_without_maximum("pass=fwd b=1 h=2 s=40/50 d=32 want=stats fill=hugelogit"),
                 INFINITY);
}

/* The largest answer is where it was planted, in each of the places in turn, and no amax that
 * leaves the place out can have found it. */
Test(fill_shows, amax_plant_puts_the_largest_answer_where_it_was_planted)
{
    static const struct {
        int64_t b, h, row, channel;
    } expects[5] = {
        { 0, 0, 129, 0 }, { 0, 3, 129, 0 }, { 1, 0, 76, 0 }, { 0, 0, 129, 31 }, { 0, 0, 0, 0 }
    };
    for (int seed = 0; seed < 10; seed++) {
        char text[200];
        snprintf(text, sizeof text,
                 "pass=fwd b=2 h=4/2 s=130/200 d=32 lens=130+77/200+123 fill=amax_plant seed=%d",
                 seed);
        world w = { .p = problem_asked(text) };
        world_fill(&w);
        world_answer(&w);
        int64_t at[4] = { 0 };
        double most = 0.0, second = 0.0;
        for (facts_walk k = facts_walk_of(w.p.tensor[FACTS_TENSOR_O].dim); facts_walk_on(&k);) {
            double x = facts_view_want(&w.view, FACTS_TENSOR_O, k.at);
            if (fabs(x) > fabs(most)) {
                second = fabs(most);
                most = x;
                memcpy(at, k.at, sizeof at);
            } else if (fabs(x) > second) {
                second = fabs(x);
            }
        }
        cr_expect(most * (seed % 2 ? -1 : 1) > 12 && second < 8, "seed %d: %g, then %g", seed, most,
                  second);
        cr_expect(at[0] == expects[seed / 2].b && at[1] == expects[seed / 2].h &&
                      at[2] == expects[seed / 2].row && at[3] == expects[seed / 2].channel,
                  "seed %d: at %d %d %d %d", seed, (int)at[0], (int)at[1], (int)at[2], (int)at[3]);
        world_leave(&w);
    }
}
