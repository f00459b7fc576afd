#include <criterion/criterion.h>

#include "../numbers/numbers.h"
#include "numbers/judge/picture.h"

#define B 2
#define H 4
#define S 200
#define D 96

static unsigned char marked[B * H * S * D];

typedef bool where(int64_t b, int64_t h, int64_t s, int64_t d);

static facts_marks marks_of(where *is_wrong)
{
    for (int64_t i = 0; i < B * H * S * D; i++)
        marked[i] =
            is_wrong(i / (H * S * D), i / (S * D) % H, i / D % S, i % D) ? FACTS_OFF : FACTS_RIGHT;
    return (facts_marks){ { B, H, S, D }, marked, false };
}

static void expect_name(where *is_wrong, const char *name)
{
    char got[FACTS_PICTURE_TEXT];
    facts_marks m = marks_of(is_wrong);
    (void)facts_picture(&m, got);
    *strchr(got, '\n') = '\0';
    cr_expect_str_eq(got, name, "%s", got);
}

/* X(where, the condition, what it is called) */
/* clang-format off */
#define WHERE_LIST(X) \
    X(nowhere, false, "none") \
    X(everywhere, true, "all") \
    X(at_one_element, b == 1 && h == 2 && s == 33 && d == 7, "one element") \
    X(in_one_batch, b == 1, "one batch (1)") \
    X(in_one_head, h == 2, "one head (2)") \
    X(in_one_head_of_one_batch, b == 0 && h == 3, "one batch (0), one head (3)") \
    X(in_one_row, b == 0 && h == 3 && s == 33, "one batch (0), one head (3), one row (33)") \
    X(in_that_row_of_all_heads, s == 33, "one row (33)") \
    X(in_a_tile, s >= 64 && s < 128, "a tile of 64 (rows 64 to 127)") \
    X(in_the_large_tile, s < 128, "a tile of 128 (rows 0 to 127)") \
    X(in_the_last_tile, s >= 128, "the last, partial tile of 128 (rows 128 to 199)") \
    X(in_the_last_small_tile, s >= 192, "the last, partial tile of 64 (rows 192 to 199)") \
    X(below_a_row, s >= 100, "from row 100 on") \
    X(above_a_row, s < 50, "rows 0 to 49") \
    X(from_a_column, d >= 64, "from column 64 on") \
    X(in_every_third_row, s % 3 == 1, "one row in 3, from 1 on") \
    X(in_every_other_column, d % 2 == 0, "one column in 2, from 0 on") \
    X(in_a_corner, h == 1 && d >= 64, "one head (1), from column 64 on") \
    X(in_half_of_a_head, h == 1 && (s * 7 + d) % 3 == 0, "one head (1): 33 % of it") \
    X(here_and_there, (((b * H + h) * S + s) * D + d) % 997 == 5, "scattered") \
    X(in_some_heads, h == 0 || h == 3, "2 of 4 heads, 0 to 3")
/* clang-format on */
#define AS_FUNCTION(name, condition, called)                                                       \
    static bool name(int64_t b, int64_t h, int64_t s, int64_t d)                                   \
    {                                                                                              \
        (void)b, (void)h, (void)s, (void)d;                                                        \
        return condition;                                                                          \
    }
WHERE_LIST(AS_FUNCTION)

Test(picture, a_pattern_has_a_name)
{
#define EXPECT(name, condition, called) expect_name(name, called);
    WHERE_LIST(EXPECT)
}

Test(picture, keys_and_kinds_are_named)
{
    char text[FACTS_PICTURE_TEXT];
    facts_marks m = marks_of(in_the_last_tile);
    m.keys = true;
    marked[128 * D] = FACTS_NOT_FINITE, marked[128 * D + 1] = FACTS_UNWRITTEN;
    cr_expect_str_eq(facts_picture(&m, text),
                     "the last, partial tile of 128 (keys 128 to 199)\n  55296 of 153600 elements, "
                     "1 of them NaN or Inf, 1 never written\n");
}

Test(picture, elements_are_marked_as_they_are_judged)
{
    facts_tensor t;
    float got[8] = { 1, 2, 3, 4, 5, NAN, 7, 8 };
    double want[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, sigma[8], bound[8];
    unsigned char at[8];
    facts_marks m = { .at = at };
    const facts_row_expects expects[2] = { FACTS_EXPECTS_VALUE, FACTS_EXPECTS_VALUE };
    set_tensor(&t, FATTN_F32, BHSD, 1, 2, 2, 2, 0);
    for (int i = 0; i < 8; i++)
        sigma[i] = 0.01, bound[i] = 0.1;
    facts_rule rule = { .expected = { .want = want, .sigma = sigma, .bound = bound },
                        .expects = expects };
    uint32_t poison = facts_pattern_code(FATTN_F32, FACTS_PATTERN_A, 6);
    memcpy(&got[6], &poison, sizeof poison);
    got[1] = 2.5f;
    facts_judge_marks(&t, got, &rule, &m);
    const unsigned char expected[8] = {
        FACTS_RIGHT, FACTS_OFF,        FACTS_RIGHT,     FACTS_RIGHT,
        FACTS_RIGHT, FACTS_NOT_FINITE, FACTS_UNWRITTEN, FACTS_RIGHT
    };
    cr_expect(memcmp(at, expected, 8) == 0);
}
