/* Bits of dropout against bits, and how many of them there are. */
#include <criterion/criterion.h>

#include "../numbers/numbers.h"
#include "numbers/check/judge_keep.h"

static facts_problem dropped(void)
{
    facts_problem p =
        problem_of((shape){ FATTN_BF16, 2, 2, 2, 2, 5, 7, 8, 8 }, BSHD, 0, true, FACTS_FILL_GAUSS);
    set_tensor(&p.tensor[FACTS_TENSOR_RNG_DUMP], FATTN_F32, BHSD, 2, 2, 5, 7, 0);
    p.ask.dropout = 0.5;
    return p;
}

Test(judge_keep, bits_are_held_where_a_row_has_keys)
{
    facts_problem p = dropped();
    float dump[2 * 2 * 5 * 7];
    uint8_t keep[2 * 2 * 5 * 7];
    for (int i = 0; i < 140; i++) {
        keep[i] = (uint8_t)(i % 3 == 0);
        dump[i] = (float)keep[i];
        if (i % 7 > i / 7 % 5) /* above the diagonal: nobody's */
            dump[i] = 12.0f;
    }
    facts_judgement j = facts_judge_keep(&p, dump, keep, FACTS_PATTERN_A);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    cr_expect_eq(j.checked, 4 * (1 + 2 + 3 + 4 + 5));
    dump[7] = 1.0f - dump[7];
    j = facts_judge_keep(&p, dump, keep, FACTS_PATTERN_A);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_WRONG);
    cr_expect(j.worst[2] == 1 && j.worst[3] == 0);
    const uint32_t poison = facts_pattern_code(FATTN_F32, FACTS_PATTERN_A, 7);
    memcpy(&dump[7], &poison, sizeof poison);
    j = facts_judge_keep(&p, dump, keep, FACTS_PATTERN_A);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_UNWRITTEN);
    dump[7] = 1.0f;
    keep[7] = 0;
    j = facts_judge_keep(&p, dump, NULL, FACTS_PATTERN_A);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_WRONG,
                 "without a mask all of them are kept");
}

Test(judge_keep, a_rate_is_as_asked_or_in_sixteenths_or_neither)
{
    cr_expect_eq(facts_rate_of(0.1, 900000, 1000000), FACTS_RATE_AS_ASKED);
    cr_expect_eq(facts_rate_of(0.1, 875000, 1000000), FACTS_RATE_QUANTISED, "2/16");
    cr_expect_eq(facts_rate_of(0.1, 890000, 1000000), FACTS_RATE_NEITHER);
    cr_expect_eq(facts_rate_of(0.0625, 981784, 1048576), FACTS_RATE_EITHER,
                 "cuDNN's draws in fours: 2.5 standard deviations");
    cr_expect_eq(facts_rate_of(0.0625, 980500, 1048576), FACTS_RATE_NEITHER);
    cr_expect_eq(facts_rate_of(0.1, 89, 100), FACTS_RATE_EITHER, "too few to tell");
    cr_expect_eq(facts_rate_of(0.125, 875000, 1000000), FACTS_RATE_EITHER);
}
