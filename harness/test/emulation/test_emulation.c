/* The kernel that lies on demand: honest it is right, and each control is; a lie is found by the
 * gate that is there for it. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "emulation/clean.h"
#include "emulation/emulated_trial.h"
#include "emulation/scenes.h"
#include "flash/flash_cast.h"
#include "night.h"
#include "numbers/dtype.h"

static facts_scene scene;

static void make(const char *text, fref_type type, unsigned features)
{
    facts_error error = { 0 };
    cr_assert_eq(
        facts_scene_create(&scene, &(facts_scene_plan){ text, type, type, features, NULL }, &error),
        0, "%s", error.text);
}

static facts_trial try(facts_kernel kernel)
{
    facts_trial t;
    cr_assert_eq(facts_trial_run_both(&t, &scene, &kernel), 0);
    return t;
}

static void expect_right(facts_kernel kernel, const char *what)
{
    facts_trial t = try(kernel);
    cr_expect_eq(t.verdict, FACTS_VERDICT_PASS, "%s: %s of %s, %g", what, facts_gate_words[t.gate],
                 facts_slot_words[t.slot], t.ratio);
}

Test(casts, are_those_of_the_codes)
{
    static const struct {
        fref_type type;
        int32_t dtype;
    } types[] = { { FREF_F32, FATTN_F32 },
                  { FREF_F16, FATTN_F16 },
                  { FREF_BF16, FATTN_BF16 },
                  { FREF_E4M3, FATTN_E4M3 },
                  { FREF_E5M2, FATTN_E5M2 } };
    static const double edges[] = { 0.0,     1.0,       1.0625,  1.1875,  65519.0,
                                    65520.0, 465.0,     61440.0, 0x1p-10, 0x1.8p-10,
                                    0x1p-17, 0x1.8p-25, 3.4e38,  INFINITY };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t i = 0; i < 2000; i++) {
            double x = i < sizeof edges / sizeof *edges
                           ? edges[i]
                           : sin((double)i) * exp2((double)(i % 60) - 30.0);
            double want = facts_decode(types[t].dtype, facts_encode(types[t].dtype, x)),
                   got = facts_cast(facts_grid_of(types[t].type), x);
            cr_expect(got == want, "type %zu: %a becomes %a, not %a", t, x, got, want);
            double cut = facts_truncate(facts_grid_of(types[t].type), x);
            cr_expect(fabs(cut) <= fabs(x) && fabs(cut) <= fabs(want), "type %zu: %a is cut to %a",
                      t, x, cut);
        }
}

#define FORWARD "pass=fwd b=2 h=4/2 s=75/140 d=64 want=stats+max+sum_exp fill="
#define BACKWARD "pass=bwd b=2 h=4/2 s=75/140 d=64 fill="

Test(kernel, is_right_however_it_works)
{
    static const char *const fills[] = { FORWARD "gauss", FORWARD "stair_up", FORWARD "neglse" };
    for (size_t n = 0; n < sizeof fills / sizeof *fills; n++) {
        make(fills[n], FREF_BF16, 0);
        expect_right((facts_kernel){ .tile = 64 }, "tiles of 64");
        expect_right((facts_kernel){ .tile = 256 }, "tiles of 256");
        expect_right((facts_kernel){ .splits = 3 }, "three parts");
        expect_right((facts_kernel){ .tile = 64, .splits = 7 }, "more parts than tiles");
        expect_right((facts_kernel){ .reversed = true }, "from the last tile to the first");
        expect_right((facts_kernel){ .lazy = 8.0 }, "a lazy maximum");
        expect_right((facts_kernel){ .adder = FACTS_HOPPER_16 }, "truncating accumulators");
        expect_right((facts_kernel){ .key_shift = 50 }, "keys in another order");
        expect_right((facts_kernel){ .scale_factor = 1.0 + 0x1p-23 }, "a scale one step off");
        facts_scene_destroy(&scene);
    }
    make(BACKWARD "gauss", FREF_F16, 0);
    expect_right((facts_kernel){ .scale_last = true }, "scale after the product");
    expect_right((facts_kernel){ .partials_fp32 = true }, "partial sums in fp32");
    facts_scene_destroy(&scene);
}

/* One large product, `count` small ones behind it in the same chunk, and what the accumulator had.
 */
static float add(facts_adder adder, double large, double small, int count, float before)
{
    double a[32] = { large }, b[32 * 8] = { 1.0 };
    float c[8] = { before };
    for (int k = 1; k <= count; k++) {
        a[k] = small;
        b[8 * k] = 1.0;
    }
    facts_add_product(&(facts_operands){ 1, 8, 32, a, 32, 1, b, 8, c, 8 }, adder);
    return c[0];
}

/* Each was called wrong once. */
Test(kernel, is_right_where_the_model_was_not)
{
    make("pass=fwd b=3 h=4/1 s=248/248 d=40/40 seed=314844559 fill=gauss mask=causal_br want=stats "
         "layout=sbhd",
         FREF_BF16, FACTS_WITH_DROPOUT);
    expect_right((facts_kernel){ .tile = 64, .splits = 3, .lazy = 2.0 },
                 "the largest P of every row is 1/(1-p), which bf16 is off from");
    facts_scene_destroy(&scene);
    make("pass=bwd b=3 h=4/1 s=129/63 d=8/8 seed=69477731 fill=stair_dn mask=causal_br padding=one "
         "layout=sbhd",
         FREF_BF16, FACTS_WITH_SINK);
    expect_right((facts_kernel){ .tile = 64, .lazy = 2.0 }, "a sink far from the statistics");
    facts_scene_destroy(&scene);
}

Test(product, aligned_ends_what_is_small_beside_the_largest)
{
    const facts_adder exact = { .chunk = 32, .truncates = true, .bits = 24 };
    facts_adder one_run = FACTS_HOPPER_8;
    one_run.run = 0;
    cr_expect_eq(add(one_run, 1.0, 0x1p-13, 31, 0), 1.0F + 31 * 0x1p-13F);
    cr_expect_eq(add(one_run, 1.0, 0x1.fp-14, 31, 0), 1.0F, "each is cut, not their sum");
    cr_expect_eq(add(one_run, -1.0, -0x1.fp-13, 1, 0), -1.0F - 0x1p-13F, "toward zero");
    cr_expect_eq(add(one_run, 0.0, 0x1.fp-14, 31, 1.0F), 1.0F, "the accumulator is one of them");
    cr_expect_eq(add(one_run, 1.0, 0.0, 0, 0x1.fp-14F), 1.0F);
    cr_expect_eq(add(one_run, 1.0, 0x1p-13, 31, -1.0F), 31 * 0x1p-13F);
    cr_expect_eq(add(one_run, 1.0, 0x1p-13, 1, 1.0F), 2.0F, "and the sum has 14 bits");
    cr_expect_eq(add(FACTS_HOPPER_16, 1.0, 0x1p-25, 31, 0), 1.0F + 7 * 0x1p-23F,
                 "fifteen quarters of a step are three; then sixteen");
    cr_expect_eq(add(exact, 1.0, 0x1.fp-24, 31, 0), 1.0F + 30 * 0x1p-23F);
    cr_expect_eq(add(FACTS_HOPPER_8, 0.0, 0x1.fp-14, 31, 1.0F), 1.0F + 31 * 0x1.fp-14F,
                 "a run ends in fp32");
}

Test(kernel, adds_in_fewer_bits_as_its_constants_say)
{
    static const fref_type types[] = { FREF_E4M3, FREF_E5M2 };
    const facts_kernel hopper = { .lazy = 4.0, .adder = FACTS_HOPPER_8 };
    for (size_t n = 0; n < 2; n++) {
        make(FORWARD "gauss", types[n], FACTS_WITH_HOPPER);
        expect_right(hopper, "14 bits");
        facts_scene_destroy(&scene);
        make(FORWARD "gauss", types[n], 0);
        cr_expect_eq(try(hopper).verdict, FACTS_VERDICT_WRONG, "14 bits pass as fp32");
        facts_scene_destroy(&scene);
    }
}

/* Amax_S of engine 2 of 9.14.0, 9.19.0 and 9.28.0 on an H200, alike: rising scores near 42, one
 * large product beside many small ones. */
Test(kernel, adds_8_bits_as_a_gpu_does)
{
    static const struct {
        fref_type type;
        int s, d, seed;
        double amax;
    } seen[] = {
        { FREF_E4M3, 128, 64, 11, 0.181180596 },  { FREF_E4M3, 128, 128, 12, 0.109560028 },
        { FREF_E4M3, 300, 64, 12, 0.0896418765 }, { FREF_E5M2, 128, 64, 11, 0.103179954 },
        { FREF_E5M2, 300, 64, 11, 0.0496456549 }, { FREF_E5M2, 300, 128, 12, 0.0970733389 }
    };
    for (size_t n = 0; n < sizeof seen / sizeof *seen; n++) {
        char text[120];
        snprintf(text, sizeof text, "pass=fwd b=1 h=4 s=%d d=%d want=stats fill=stair_up seed=%d",
                 seen[n].s, seen[n].d, seen[n].seed);
        make(text, seen[n].type, FACTS_WITH_HOPPER);
        double amax = try((facts_kernel){ .lazy = 4.0, .adder = FACTS_HOPPER_8 })
                          .judgement[FACTS_SLOT_AMAX_S]
                          .got;
        cr_expect_float_eq(amax / seen[n].amax, 1.0, 2e-6, "%s: %.9g, a GPU has %.9g", text, amax,
                           seen[n].amax);
        facts_scene_destroy(&scene);
    }
}

static void expect_found(facts_kernel kernel, facts_gate gate, facts_slot_id slot)
{
    facts_trial t = try(kernel);
    const double *gates = t.judgement[slot].gates;
    cr_expect_neq(t.verdict, FACTS_VERDICT_PASS, "%s passes", facts_liar_words[kernel.liar]);
    cr_expect(gates[gate] > 1.0 || t.judgement[slot].gate == gate, "%s: %s of %s is %g",
              facts_liar_words[kernel.liar], facts_gate_words[gate], facts_slot_words[slot],
              gates[gate]);
}

/* Without one of these gates a lie of this list would live on its fill. */
Test(liars, are_found_by_the_gate_that_is_there_for_them)
{
    make(FORWARD "gauss", FREF_BF16, 0);
    expect_found((facts_kernel){ .liar = FACTS_LIAR_SCALE_1E3 }, FACTS_GATE_TL, FACTS_SLOT_STATS);
    expect_found((facts_kernel){ .liar = FACTS_LIAR_O_TRUNC }, FACTS_GATE_TG, FACTS_SLOT_O);
    expect_found((facts_kernel){ .liar = FACTS_LIAR_P_TRUNC }, FACTS_GATE_TG, FACTS_SLOT_O);
    expect_found((facts_kernel){ .liar = FACTS_LIAR_ONE_ELEMENT }, FACTS_GATE_T2, FACTS_SLOT_O);
    expect_found((facts_kernel){ .liar = FACTS_LIAR_TILE_LOST }, FACTS_GATE_T3, FACTS_SLOT_O);
    expect_found((facts_kernel){ .liar = FACTS_LIAR_Q_TILE_UNWRITTEN }, FACTS_GATE_POISON,
                 FACTS_SLOT_O);
    facts_scene_destroy(&scene);
    make(FORWARD "neglse", FREF_BF16, 0);
    expect_found((facts_kernel){ .liar = FACTS_LIAR_MAX_INIT_0 }, FACTS_GATE_T1, FACTS_SLOT_O);
    facts_scene_destroy(&scene);
    make(BACKWARD "gauss", FREF_BF16, 0);
    expect_found((facts_kernel){ .liar = FACTS_LIAR_WORKSPACE_DIRTY }, FACTS_GATE_T1,
                 FACTS_SLOT_DQ);
    facts_scene_destroy(&scene);
    make(FORWARD "gauss", FREF_E4M3, 0);
    expect_found((facts_kernel){ .liar = FACTS_LIAR_AMAX_O_LATE, .lazy = 4.0 }, FACTS_GATE_AMAX,
                 FACTS_SLOT_AMAX_O);
    facts_scene_destroy(&scene);
    make("pass=fwd b=2 h=2 s=75/140 d=64 stride=gap:8 want=stats fill=gauss", FREF_BF16, 0);
    expect_found((facts_kernel){ .liar = FACTS_LIAR_GAP_IGNORED }, FACTS_GATE_GUARD, FACTS_SLOT_O);
    facts_scene_destroy(&scene);
}

/* On one key nothing is wrong with a last row that could read a key more. */
Test(liars, that_cannot_lie_here_are_right)
{
    make("pass=fwd b=2 h=2 s=1/140 d=64 mask=causal_br want=stats+max+sum_exp fill=needle",
         FREF_BF16, 0);
    expect_right((facts_kernel){ .liar = FACTS_LIAR_CAUSAL_LOOSE }, "bottom-right, one row");
    facts_scene_destroy(&scene);
}

Test(scenes, every_liar_has_one_or_a_reason)
{
    char text[FACTS_CASE_TEXT];
    for (facts_liar liar = 1; liar < FACTS_LIAR_COUNT; liar++)
        for (facts_survey_type type = 0; type < FACTS_SURVEY_TYPES; type++)
            for (facts_size size = 0; size < FACTS_SIZE_COUNT; size++)
                cr_expect(facts_not_applicable(liar, type, size) ||
                              facts_scene_text(text, facts_scene_of_liar(liar), size, "gauss", 1),
                          "%s", facts_liar_words[liar]);
}

Test(survey, finds_every_liar_of_a_type_in_the_smallest_size)
{
    facts_survey s;
    facts_error error = { 0 };
    cr_assert_eq(
        facts_survey_run(&s, &(facts_survey_choice){ .type = "bf16", .quick = true, .seed = 1 },
                         &error),
        0, "%s", error.text);
    cr_expect_gt(s.count, 60);
    cr_expect_eq(s.false_alarms, 0, "%s", s.alarms);
    for (size_t i = 0; i < s.count; i++)
        cr_expect(s.found[i].end != FACTS_END_SURVIVED && !s.found[i].news, "%s %s, ratio %g",
                  facts_liar_words[s.found[i].liar], facts_end_word(s.found[i].end),
                  s.found[i].ratio);
    facts_survey_free(&s);
}

Test(survey, says_what_it_does_not_know)
{
    facts_survey s;
    facts_error error = { 0 };
    cr_expect_neq(
        facts_survey_run(&s, &(facts_survey_choice){ .liar = "fwd.nonsense", .seed = 1 }, &error),
        0);
    cr_expect_str_eq(error.text, "no liar has \"fwd.nonsense\" in its id");
    facts_survey_free(&s);
}

Test(clean, right_kernels_are_never_called_wrong)
{
    facts_clean c;
    facts_error error = { 0 };
    const uint64_t count = night() ? 500 : 150;
    cr_assert_eq(facts_clean_run(&c, 1, 0, count, &error), 0, "%s", error.text);
    cr_expect_eq(c.evaluations, count);
    cr_expect_eq(c.false_alarms, 0, "%s", c.alarms);
    for (facts_gate gate = FACTS_GATE_T1; gate <= FACTS_GATE_AMAX; gate++)
        cr_expect_gt(c.worst[gate], 0.0, "%s never ran", facts_gate_words[gate]);
}

Test(clean, an_evaluation_is_the_same_in_any_company)
{
    facts_clean all, one;
    facts_error error = { 0 };
    cr_assert_eq(facts_clean_run(&all, 7, 0, 3, &error), 0);
    double worst = 0.0;
    for (uint64_t n = 0; n < 3; n++) {
        cr_assert_eq(facts_clean_run(&one, 7, n, 1, &error), 0);
        worst = fmax(worst, one.worst[FACTS_GATE_T1]);
    }
    cr_expect(worst == all.worst[FACTS_GATE_T1]);
}
