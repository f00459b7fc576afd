/* No row of the calibration table may have constants by which a liar passes: the liars that come
 * nearest, judged by all limits at once. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <string.h>

#include "emulation/emulated_trial.h"
#include "emulation/scenes.h"
#include "emulation/survey.h"
#include "numbers/judge/calibration.h"

typedef struct near {
    facts_liar liar;
    facts_size size;
    const char *fill;
    bool wide; /* 8 bit types: with gradients of 16 bits */
} near;

static int32_t dtype_of(fref_type type)
{
    return type == FREF_BF16  ? FATTN_BF16
           : type == FREF_F16 ? FATTN_F16
           : type == FREF_F32 ? FATTN_F32
                              : FATTN_E4M3;
}

/* Most engines are asked for Stats alone, and Max would find what is off in the logits by itself.
 */
static void leave_max_out(char text[FACTS_CASE_TEXT])
{
    static const char more[] = "+max+sum_exp";
    char *at = strstr(text, more);
    if (at)
        memmove(at, at + sizeof more - 1, strlen(at + sizeof more - 1) + 1);
}

/* Judged by the limits, the liar is found and the right kernel is not. */
static void expect_found(fref_type type, const near *n)
{
    const facts_scene_id id = facts_scene_of_liar(n->liar);
    const facts_constants limit = facts_constants_limit(dtype_of(type));
    const bool narrow = type == FREF_E4M3;
    const facts_adder fp32 = { 0 };
    facts_kernel kernel = { .lazy = narrow ? 4.0 : 0.0,
                            .splits = 1,
                            .adder = narrow ? FACTS_HOPPER_8 : fp32 };
    char text[FACTS_CASE_TEXT];
    facts_scene scene;
    facts_trial right, wrong;
    facts_error error = { 0 };
    facts_scene_text(text, id, n->size, n->fill, 1);
    leave_max_out(text);
    const facts_scene_plan plan = { text, type, n->wide ? FREF_BF16 : type,
                                    facts_scene_features(id) | (narrow ? FACTS_WITH_HOPPER : 0U),
                                    NULL };
    cr_assert_eq(facts_scene_create_by(&scene, &plan, &limit, &error), 0, "%s", error.text);
    cr_assert_eq(facts_trial_run_both(&right, &scene, &kernel), 0);
    kernel.liar = n->liar;
    cr_assert_eq(facts_trial_run_both(&wrong, &scene, &kernel), 0);
    cr_log_info("%s %s %s: %.3g", facts_liar_words[n->liar], facts_size_word(n->size, n->liar),
                n->fill, wrong.ratio);
    cr_expect_eq(right.verdict, FACTS_VERDICT_PASS, "right kernel, %s", text);
    cr_expect_neq(wrong.verdict, FACTS_VERDICT_PASS, "%s %s lives, ratio %g",
                  facts_liar_words[n->liar], text, wrong.ratio);
    facts_scene_destroy(&scene);
}

#define EXPECT_FOUND(type, ...)                                                                    \
    for (const near *n = (const near[]){ __VA_ARGS__, { .fill = NULL } }; n->fill; n++)            \
    expect_found(type, n)

Test(limits, of_bf16_let_no_liar_live)
{
    EXPECT_FOUND(FREF_BF16, { FACTS_LIAR_LOG2E_SHORT, FACTS_SIZE_S200, "neglse", false },
                 { FACTS_LIAR_O_ACC_NARROW, FACTS_SIZE_S500, "needle", false },
                 { FACTS_LIAR_B_DQ_NARROW, FACTS_SIZE_S500, "spiky", false });
}

Test(limits, of_f16_let_no_liar_live)
{
    EXPECT_FOUND(FREF_F16, { FACTS_LIAR_LOG2E_SHORT, FACTS_SIZE_S200, "neglse", false },
                 { FACTS_LIAR_P_TRUNC, FACTS_SIZE_LONG, "gauss", false },
                 { FACTS_LIAR_O_ACC_NARROW, FACTS_SIZE_S200, "needle", false },
                 { FACTS_LIAR_O_ACC_NARROW, FACTS_SIZE_DECODE, "gauss", false },
                 { FACTS_LIAR_B_P_TRUNC, FACTS_SIZE_S200, "gauss", false },
                 { FACTS_LIAR_B_DQ_NARROW, FACTS_SIZE_S500, "spiky", false });
}

Test(limits, of_f32_let_no_liar_live)
{
    EXPECT_FOUND(FREF_F32, { FACTS_LIAR_SCALE_1E5, FACTS_SIZE_S200, "neglse", false });
}

/* As an engine that adds in 14 bits: the liars that it hides from the start are listed blind. */
Test(limits, of_8_bits_let_no_liar_live)
{
    EXPECT_FOUND(FREF_E4M3, { FACTS_LIAR_SCALE_1E3, FACTS_SIZE_LONG, "neglse", false },
                 { FACTS_LIAR_O_TRUNC, FACTS_SIZE_S200, "stair_up", false },
                 { FACTS_LIAR_P_SATURATES, FACTS_SIZE_LONG, "neglse", false },
                 { FACTS_LIAR_B_DQ_NARROW, FACTS_SIZE_S200, "gauss", true },
                 { FACTS_LIAR_B_P_TRUNC, FACTS_SIZE_S200, "gauss", true },
                 { FACTS_LIAR_B_DQ_NARROW, FACTS_SIZE_LONG, "spiky", true });
}

/* Without constants a survey takes the table's: a row that is too wide shows as a liar that lives.
 */
Test(limits, a_survey_judges_by_constants)
{
    facts_constants wide = facts_constants_start(FATTN_F16);
    facts_survey_choice choice = {
        .liar = "fwd.o_acc_narrow", .type = "f16", .quick = true, .seed = 1
    };
    facts_survey s;
    facts_error error = { 0 };
    cr_assert_eq(facts_survey_run(&s, &choice, &error), 0, "%s", error.text);
    cr_expect_eq(s.found[0].end, FACTS_END_KILLED);
    facts_survey_free(&s);
    wide.acc_pv = 0.001;
    choice.constants = &wide;
    cr_assert_eq(facts_survey_run(&s, &choice, &error), 0, "%s", error.text);
    cr_expect_eq(s.found[0].end, FACTS_END_SURVIVED);
    facts_survey_free(&s);
}
