/* The kernel of lib/src/cpu that works as a GPU's: honest it is right, and each control is; a
 * planted fault is found by the gate that is there for it. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "cpu/kernels/cpu_kernels.h"
#include "numbers/judge/calibration.h"
#include "planted.h"
#include "self/self_survey.h"

static void expect_right(fattn__gpu_like like, const char *what)
{
    facts_self_end end;
    facts_self_case_run(&end, &planted_scene, &like, FATTN__LIAR_NONE);
    cr_expect_not(end.found, "%s: %s of %s, %g", what, end.gate, end.tensor, end.ratio);
}

#define EXPECT_RIGHT(right, what, ...)                                                             \
    do {                                                                                           \
        fattn__gpu_like like = right;                                                              \
        __VA_ARGS__;                                                                               \
        expect_right(like, what);                                                                  \
    } while (0)

#define FORWARD "pass=fwd b=2 h=4/2 s=75/140 d=64 want=stats+max+sum_exp fill="
#define BACKWARD "pass=bwd b=2 h=4/2 s=75/140 d=64 fill="

Test(kernel, is_right_however_it_works)
{
    static const char *const fills[] = { FORWARD "gauss check=identities", FORWARD "stair_up",
                                         FORWARD "neglse" };
    for (size_t n = 0; n < sizeof fills / sizeof *fills; n++) {
        const fattn__gpu_like right = planted_make(FACTS_SELF_BF16, fills[n]);
        EXPECT_RIGHT(right, "tiles of 64", like.tile = 64);
        EXPECT_RIGHT(right, "tiles of 256", like.tile = 256);
        EXPECT_RIGHT(right, "three parts", like.splits = 3);
        EXPECT_RIGHT(right, "more parts than tiles", like.tile = 64, like.splits = 7);
        EXPECT_RIGHT(right, "from the last tile to the first", like.reversed = true);
        EXPECT_RIGHT(right, "a lazy maximum", like.lazy = 8.0F);
        EXPECT_RIGHT(right, "truncating accumulators", like.adder = FATTN__HOPPER_16);
        EXPECT_RIGHT(right, "keys in another order", like.key_shift = 50);
        EXPECT_RIGHT(right, "a scale one step off", like.scale_factor = 1.0 + 0x1p-23);
    }
    const fattn__gpu_like right = planted_make(FACTS_SELF_F16, BACKWARD "gauss check=identities");
    EXPECT_RIGHT(right, "scale after the product", like.scale_last = true);
    EXPECT_RIGHT(right, "partial sums in fp32", like.partials_fp32 = true);
    planted_make(FACTS_SELF_BF16, FORWARD "gauss dropout=0.1 dropout_mask=1 check=keep");
    planted_make(FACTS_SELF_F16, BACKWARD "gauss dropout=0.1 dropout_mask=1 check=keep");
}

/* Each was called wrong once. */
Test(kernel, is_right_where_the_model_was_not)
{
    fattn__gpu_like right = planted_make(
        FACTS_SELF_BF16, "pass=fwd b=3 h=4/1 s=248/248 d=40/40 seed=314844559 mask=causal_br "
                         "want=stats layout=sbhd dropout=0.1");
    EXPECT_RIGHT(right, "the largest P of every row is 1/(1-p), which bf16 is off from",
                 like.tile = 64, like.splits = 3, like.lazy = 2.0F);
    right = planted_make(FACTS_SELF_BF16,
                         "pass=bwd b=3 h=4/1 s=129/63 d=8/8 seed=69477731 fill=stair_dn "
                         "mask=causal_br padding=one layout=sbhd softmax=sink dsink=1");
    EXPECT_RIGHT(right, "a sink far from the statistics", like.tile = 64, like.lazy = 2.0F);
    planted_make(FACTS_SELF_E4M3, "pass=fwd h=4/2 s=200 d=64 want=stats+max");
    planted_make(FACTS_SELF_E5M2, "pass=bwd h=2 s=130 d=64 stride=broadcast:v.s+k.b;sum:dv.s+dk.b");
    planted_make(FACTS_SELF_E4M3, "pass=bwd b=1 h=1 s=64/4096 d=32 window=4096:0 align=br");
}

/* One large product, `count` small ones behind it in the same chunk, and what the accumulator had.
 */
static float add(fattn__adder adder, double large, double small, int count, float before)
{
    float a[32] = { (float)large }, b[32 * 16] = { 1.0F }, c[16] = { before };
    for (int k = 1; k <= count; k++) {
        a[k] = (float)small;
        b[16 * k] = 1.0F;
    }
    fattn__like_gpu.adder = adder;
    fattn__gpu_kernels(FATTN_E4M3)
        ->multiply(&(fattn__product){ .c = c,
                                      .a = a,
                                      .b = b,
                                      .c_row = 16,
                                      .a_row = 32,
                                      .a_column = 1,
                                      .b_row = 16,
                                      .m = 1,
                                      .n = 16,
                                      .k = 32,
                                      .factor = 1.0F,
                                      .accumulate = true });
    return c[0];
}

Test(product, aligned_ends_what_is_small_beside_the_largest)
{
    const fattn__adder exact = { .chunk = 32, .truncates = true, .bits = 24 };
    fattn__adder one_run = FATTN__HOPPER_8;
    one_run.run = 0;
    cr_expect_eq(add(one_run, 1.0, 0x1p-13, 31, 0), 1.0F + 31 * 0x1p-13F);
    cr_expect_eq(add(one_run, 1.0, 0x1.fp-14, 31, 0), 1.0F, "each is cut, not their sum");
    cr_expect_eq(add(one_run, -1.0, -0x1.fp-13, 1, 0), -1.0F - 0x1p-13F, "toward zero");
    cr_expect_eq(add(one_run, 0.0, 0x1.fp-14, 31, 1.0F), 1.0F, "the accumulator is one of them");
    cr_expect_eq(add(one_run, 1.0, 0.0, 0, 0x1.fp-14F), 1.0F);
    cr_expect_eq(add(one_run, 1.0, 0x1p-13, 31, -1.0F), 31 * 0x1p-13F);
    cr_expect_eq(add(one_run, 1.0, 0x1p-13, 1, 1.0F), 2.0F, "and the sum has 14 bits");
    cr_expect_eq(add(FATTN__HOPPER_16, 1.0, 0x1p-25, 31, 0), 1.0F + 7 * 0x1p-23F,
                 "fifteen quarters of a step are three; then sixteen");
    cr_expect_eq(add(exact, 1.0, 0x1.fp-24, 31, 0), 1.0F + 30 * 0x1p-23F);
    cr_expect_eq(add(FATTN__HOPPER_8, 0.0, 0x1.fp-14, 31, 1.0F), 1.0F + 31 * 0x1.fp-14F,
                 "a run ends in fp32");
}

Test(kernel, adds_in_fewer_bits_as_its_constants_say)
{
    static const facts_self_type types[][2] = { { FACTS_SELF_E4M3, FACTS_SELF_E4M3_HOPPER },
                                                { FACTS_SELF_E5M2, FACTS_SELF_E5M2_HOPPER } };
    for (size_t n = 0; n < 2; n++) {
        facts_self_end end;
        const fattn__gpu_like hopper = planted_make(types[n][1], FORWARD "gauss");
        planted_make(types[n][0], FORWARD "gauss");
        facts_self_case_run(&end, &planted_scene, &hopper, FATTN__LIAR_NONE);
        cr_expect(end.found, "14 bits pass as fp32");
    }
}

/* Without one of these gates a fault of this list would live on its fill. */
Test(faults, are_found_by_the_gate_that_is_there_for_them)
{
    fattn__gpu_like right = planted_make(FACTS_SELF_BF16, FORWARD "gauss");
    planted_expect(right, FATTN__LIAR_SCALE_1E3, FACTS_GATE_TL);
    planted_expect(right, FATTN__LIAR_O_TRUNC, FACTS_GATE_TG);
    planted_expect(right, FATTN__LIAR_P_TRUNC, FACTS_GATE_TG);
    planted_expect(right, FATTN__LIAR_ONE_ELEMENT, FACTS_GATE_T2);
    planted_expect(right, FATTN__LIAR_TILE_LOST, FACTS_GATE_T3);
    planted_expect(right, FATTN__LIAR_Q_TILE_UNWRITTEN, FACTS_GATE_POISON);
    right = planted_make(FACTS_SELF_BF16, FORWARD "neglse");
    planted_expect(right, FATTN__LIAR_MAX_INIT_0, FACTS_GATE_T1);
    right = planted_make(FACTS_SELF_BF16, BACKWARD "gauss");
    planted_expect(right, FATTN__LIAR_WORKSPACE_DIRTY, FACTS_GATE_T1);
    right = planted_make(FACTS_SELF_E4M3, FORWARD "gauss scales=odd");
    planted_expect(right, FATTN__LIAR_AMAX_O_LATE, FACTS_GATE_AMAX);
    right = planted_make(FACTS_SELF_BF16, "pass=fwd b=2 h=2 s=75/140 d=64 stride=gap:8 want=stats");
    planted_expect(right, FATTN__LIAR_GAP_IGNORED, FACTS_GATE_GUARD);
}

/* On one key nothing is wrong with a last row that could read a key more. */
Test(faults, that_cannot_lie_here_are_right)
{
    facts_self_end end;
    const fattn__gpu_like right =
        planted_make(FACTS_SELF_BF16, "pass=fwd b=2 h=2 s=1/140 d=64 "
                                      "mask=causal_br want=stats fill=needle");
    facts_self_case_run(&end, &planted_scene, &right, FATTN__LIAR_CAUSAL_LOOSE);
    cr_expect_not(end.found, "bottom-right, one row");
}

/* ---- the limits of the constants
 * -----------------------------------------------------------------------------------------
 */

typedef struct near {
    fattn__liar fault;
    const char *text;
} near;

#define F200 "pass=fwd b=2 h=8/2 s=200 d=64 want=stats "
#define F500 "pass=fwd b=2 h=8/2 s=256/500 d=64 want=stats "
#define F4000 "pass=fwd b=2 h=8/2 s=64/4000 d=64 want=stats "
#define F2000 "pass=fwd b=2 h=8/2 s=1/2000 d=64 want=stats "
#define B200 "pass=bwd b=2 h=8/2 s=200 d=64 "
#define B500 "pass=bwd b=2 h=8/2 s=256/500 d=64 "

/* Judged by all limits at once, the fault is found and the right kernel is not: no row of the
 * calibration table may have constants by which a fault passes. */
static void expect_near(facts_self_type type, const near *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        facts_self_end end;
        facts_self_limits(true);
        const fattn__gpu_like right = planted_make(type, list[i].text);
        facts_self_case_run(&end, &planted_scene, &right, list[i].fault);
        cr_expect(end.found, "%s: fault %d lives, ratio %g", list[i].text, list[i].fault,
                  end.ratio);
    }
    facts_self_limits(false);
}

Test(limits, let_no_fault_live)
{
    static const near bf16[] = { { FATTN__LIAR_LOG2E_SHORT, F200 "fill=neglse" },
                                 { FATTN__LIAR_O_ACC_NARROW, F500 "fill=needle" },
                                 { FATTN__LIAR_B_DQ_NARROW, B500 "fill=spiky" } };
    static const near f16[] = { { FATTN__LIAR_LOG2E_SHORT, F200 "fill=neglse" },
                                { FATTN__LIAR_P_TRUNC, F4000 },
                                { FATTN__LIAR_O_ACC_NARROW, F200 "fill=needle" },
                                { FATTN__LIAR_O_ACC_NARROW, F2000 },
                                { FATTN__LIAR_B_P_TRUNC, B200 },
                                { FATTN__LIAR_B_DQ_NARROW, B500 "fill=spiky" } };
    static const near f32[] = { { FATTN__LIAR_SCALE_1E5, F200 "fill=neglse" } };
    static const near e4m3[] = { { FATTN__LIAR_O_TRUNC, F200 "scales=odd" },
                                 { FATTN__LIAR_P_SATURATES, F4000 "scales=odd fill=neglse" },
                                 { FATTN__LIAR_B_DQ_NARROW, B200 "scales=odd grad=bf16" },
                                 { FATTN__LIAR_B_P_TRUNC, B200 "scales=odd grad=bf16" } };
    expect_near(FACTS_SELF_BF16, bf16, sizeof bf16 / sizeof *bf16);
    expect_near(FACTS_SELF_F16, f16, sizeof f16 / sizeof *f16);
    expect_near(FACTS_SELF_F32, f32, sizeof f32 / sizeof *f32);
    expect_near(FACTS_SELF_E4M3_HOPPER, e4m3, sizeof e4m3 / sizeof *e4m3);
}

Test(clean, right_kernels_are_never_called_wrong)
{
    facts_clean c;
    facts_error error = { 0 };
    cr_assert_eq(facts_clean_run(&c, 1, 0, 150, &error), 0, "%s", error.text);
    cr_expect_eq(c.evaluations + c.refused, 150);
    cr_expect_lt(c.refused, 30);
    cr_expect_eq(c.false_alarms, 0, "%s", c.alarms);
    for (facts_gate gate = FACTS_GATE_T1; gate <= FACTS_GATE_AMAX; gate++)
        cr_expect_gt(c.worst[gate], 0.0, "%s never ran", facts_gate_words[gate]);
    /* One lane adds the keys of a row in which a sink or a key weighs most (TL); 1.111 becomes 1 in
     * e5m2 in all rows that one key dominates (T3); a sink leaves P less than a step (TG). */
    static const uint64_t rare[][2] = { { 77108, 1526 }, { 77109, 761 }, { 77111, 430 },
                                        { 79158, 191 },  { 80017, 840 }, { 80032, 697 },
                                        { 83012, 392 } };
    for (size_t i = 0; i < 7; i++) {
        cr_assert_eq(facts_clean_run(&c, rare[i][0], rare[i][1], 1, &error), 0);
        cr_expect(c.answers > 0 && c.false_alarms == 0, "%s", c.alarms);
    }
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
