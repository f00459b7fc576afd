/* Each fill makes one class of mistake visible: a kernel with that mistake stands out on it, and
 * less, or not at all, on ordinary noise. Ratios of what was measured to what is allowed; above 1
 * is caught. */
#include "checking.h"
#include "numbers/fill/scalars.h"

typedef enum gates {
    ALL_GATES,
    ELEMENTS /* T0, T1 and TL: what does not ask for dense data */
} gates;

static double ratio_of(const char *text, const facts_kernel *kernel, gates which)
{
    char whole[300];
    world w;
    bool own_bias = strstr(text, "bias=") != NULL, sized = strstr(text, " s=") != NULL;
    snprintf(whole, sizeof whole, "dtype=bf16 b=2 %s %s d=32 %s", own_bias ? "h=4" : "h=4/2",
             sized ? "" : "s=130/200", text);
    w = (world){ .p = case_of(whole) };
    world_fill(&w);
    world_given(&w);
    world_answer(&w, kernel);
    w.expectation.dense = w.expectation.dense && which == ALL_GATES;
    double ratio = world_ratio(&w);
    world_leave(&w);
    return ratio;
}

/* `more`: how many times the ratio on gauss the fill's has to be. */
static const struct {
    const char *fill, *text;
    facts_liar liar;
    gates gates;
    int64_t splits;
    double more;
} shown[] = {
    { "uniform", "pass=fwd want=stats", FACTS_LIAR_P_TRUNC, ALL_GATES, 0, 1.2 },
    { "spiky", "pass=bwd", FACTS_LIAR_B_NO_DELTA, ALL_GATES, 0, 100 },
    { "needle", "pass=fwd want=stats lens=130+77/200+123", FACTS_LIAR_LEN_PLUS_1, ELEMENTS, 0, 5 },
    { "needle", "pass=fwd want=stats mask=causal", FACTS_LIAR_CAUSAL_LOOSE, ELEMENTS, 0, 2 },
    { "neglse", "pass=fwd want=stats", FACTS_LIAR_MAX_INIT_0, ALL_GATES, 0, 1e6 },
    { "neglse", "pass=bwd", FACTS_LIAR_B_TAIL_EXP, ALL_GATES, 0, 1e6 },
    { "stair_up", "pass=fwd want=stats", FACTS_LIAR_O_NO_RESCALE, ELEMENTS, 0, 1.2 },
    { "stair_dn", "pass=fwd want=stats", FACTS_LIAR_SCALE_1E5, ELEMENTS, 3, 2 },
    { "biglogit", "pass=fwd want=stats", FACTS_LIAR_TILE_LOST, ELEMENTS, 0, 3 },
    { "hugelogit", "pass=bwd", FACTS_LIAR_B_SCALE_1PCT, ELEMENTS, 0, 100 },
    { "offset_k", "pass=fwd want=stats", FACTS_LIAR_TAIL_ZERO, ELEMENTS, 0, 5 },
    { "offset_k", "pass=fwd want=stats", FACTS_LIAR_SCALE_1E5, ELEMENTS, 0, 2 },
    { "unip", "pass=fwd want=stats", FACTS_LIAR_TAIL_ZERO, ELEMENTS, 0, 1.2 },
    { "gauss", "pass=fwd want=stats bias=1hss", FACTS_LIAR_BIAS_T, ELEMENTS, 0, 0.5 },
    { "gauss", "pass=fwd want=stats bias=bhss", FACTS_LIAR_BIAS_H0, ELEMENTS, 0, 0.5 },
};

Test(fill_shows, what_each_fill_is_there_for)
{
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char on_fill[200], on_gauss[200];
        facts_kernel kernel = { .tile = 64, .liar = shown[i].liar, .splits = shown[i].splits },
                     honest = { .tile = 64, .splits = shown[i].splits };
        snprintf(on_fill, sizeof on_fill, "%s fill=%s", shown[i].text, shown[i].fill);
        snprintf(on_gauss, sizeof on_gauss, "%s fill=gauss", shown[i].text);
        double caught = ratio_of(on_fill, &kernel, shown[i].gates),
               plain = ratio_of(on_gauss, &kernel, shown[i].gates),
               right = ratio_of(on_fill, &honest, ALL_GATES);
        cr_expect(caught > 1.0 && caught > shown[i].more * plain, "%s, %s: %g, and %g on gauss",
                  on_fill, facts_liar_words[shown[i].liar], caught, plain);
        cr_expect_leq(right, 1.0, "%s: a right kernel has %g", on_fill, right);
    }
}

/* Kept for comparison: what is small, coarse and mostly zero hides what noise shows. */
Test(fill_shows, sparse_int_hides_what_gauss_shows)
{
    const facts_kernel truncates = { .tile = 64, .liar = FACTS_LIAR_P_TRUNC };
    cr_expect_lt(ratio_of("pass=fwd want=stats fill=sparse_int", &truncates, ALL_GATES), 1.0);
    cr_expect_gt(ratio_of("pass=fwd want=stats fill=gauss", &truncates, ALL_GATES), 5.0);
}

/* A softmax that does not subtract the maximum, in fp32: right until a sum overflows. */
static double worst_without_maximum(const char *text)
{
    world w = { .p = case_of(text) };
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
        world w = { .p = case_of(text) };
        world_fill(&w);
        world_answer(&w, &(facts_kernel){ .tile = 64 });
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
