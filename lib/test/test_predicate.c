/* The predicates of rules: what holds, and what is said of what cannot be read. */
#include <criterion/criterion.h>
#include <string.h>

#include "fattn/fattn.h"
#include "field.h"
#include "predicate.h"

static fattn_problem backward(void)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.pass = FATTN_BACKWARD;
    p.batch = 2, p.heads_q = 8, p.heads_k = 2;
    p.seq_q = 96, p.seq_kv = 1000;
    p.dim_qk = 64;
    p.has_right = 1, p.align = FATTN_BOTTOM_RIGHT;
    p.has_bias = 1;
    fattn_problem out;
    cr_assert_eq(fattn_problem_resolve(&p, &out), FATTN_OK, "%s", fattn_last_error());
    return out;
}

Test(predicate, holds_or_not)
{
    static const struct {
        const char *text;
        bool holds;
    } rows[] = {
        { "pass=bwd", true },
        { "pass=fwd", false },
        { "pass!=fwd", true },
        { "dtype=bf16 & align=br", true },
        { "dtype in (f16, bf16)", true },
        { "dtype in (e4m3,e5m2)", false },
        { "seq_kv%128!=0", true },
        { "seq_kv % 8 = 0", true },
        { "seq_kv%128=104", true },
        { "seq_q<96 | seq_q>96", false },
        { "seq_q<=96 & seq_q>=96", true },
        { "seq_q<seq_kv", true },
        { "heads_q=heads_k", false },
        { "!(heads_q=heads_k)", true },
        { "!heads_q=8", false },
        { "heads_q%heads_k=0", false }, /* refused below; here: false */
        { "seq_q in (1, 96)", true },
        { "seq_q%64 in (0, 32)", true },
        { "seq_q in (1, 2)", false },
        { "attn_scale=0.125", true },
        { "attn_scale<=0", false },
        { "attn_scale>-0.5", true },
        { "window_left=0 & has_left=0", true },
        { "causal=1", true },
        { "bias_dim.b=1 & bias_dim.h=8 & bias_dim.q=96 & bias_dim.kv=1000", true },
        { "q_format=bshd", true },
        { "q_format=bhsd", false },
        { "q_format!=bhsd", true },
        { "q_format in (sbhd, bshd)", true },
        { "stats_format=bhsd", true },
        { "misaligned=none", true },
        { "broadcast=0 & sums=0 & has_score_mod=0", true },
        { "want_stats=1", false },
        { "pass=fwd & batch=2 | seq_q=96", true }, /* & binds closer */
        { "pass=fwd & (batch=2 | seq_q=96)", false },
        { "  pass = bwd  ", true },
    };
    const fattn_problem p = backward();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(fattn__predicate_holds(rows[i].text, &p), rows[i].holds, "%s", rows[i].text);
    cr_expect(fattn__predicate_holds(NULL, &p));
}

Test(predicate, says_where_and_what_is_wrong)
{
    static const struct {
        const char *text, *wrong;
    } rows[] = {
        { "", "when: column 1: the name of a field is missing" },
        { "seq=1", "when: column 1: \"seq\" is not a field of a problem" },
        { "pass=bwd & sek_kv=1", "when: column 12: \"sek_kv\" is not a field of a problem" },
        { "pass=backward", "when: column 6: pass is never \"backward\"; want one of fwd bwd" },
        { "dtype in (bf16, half)", "when: column 17: dtype is never \"half\"; want one of bf16 f16 f32 e4m3 e5m2" },
        { "pass<bwd", "when: column 6: pass has words: want = or !=" },
        { "pass%2=0", "when: column 1: pass is not a whole number" },
        { "attn_scale%2=0", "when: column 1: attn_scale is not a whole number" },
        { "seq_q%0=0", "when: column 7: a remainder needs a whole number above 0" },
        { "heads_q%heads_k=0", "when: column 9: a number of at most 18 digits is missing" },
        { "seq_q=pass", "when: column 7: pass has words, seq_q is a number" },
        { "seq_q", "when: column 6: a comparison is missing" },
        { "1=seq_q", "when: column 2: a test begins with a field" },
        { "(seq_q=1", "when: column 9: a ) is missing" },
        { "seq_q in 1", "when: column 10: a list in ( ) is missing" },
        { "seq_q in (1", "when: column 12: a ) is missing" },
        { "seq_q=1 seq_kv=2", "when: column 9: \"seq_kv=2\" is too much" },
        { "seq_q=1 &", "when: column 10: the name of a field is missing" },
        { "seq_q=1234567890123456789", "when: column 7: a number of at most 18 digits" },
        { "seq_q=12x", "when: column 7: a number of at most 18 digits" },
        { "pass=fwd | nosuch=1", "when: column 12: \"nosuch\" is not" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(fattn__predicate_check(rows[i].text), FATTN_BAD_PROBLEM, "%s", rows[i].text);
        cr_expect_eq(strncmp(fattn_last_error(), rows[i].wrong, strlen(rows[i].wrong)), 0, "%s: '%s'", rows[i].text,
                     fattn_last_error());
    }
}

Test(predicate, deep_or_long_text_is_refused_and_harmless)
{
    char text[4096];
    memset(text, '(', sizeof text);
    text[sizeof text - 1] = '\0';
    cr_expect_eq(fattn__predicate_check(text), FATTN_BAD_PROBLEM);
    memset(text, '!', sizeof text - 1);
    cr_expect_eq(fattn__predicate_check(text), FATTN_BAD_PROBLEM);
    memset(text, 'a', sizeof text - 1);
    cr_expect_eq(fattn__predicate_check(text), FATTN_BAD_PROBLEM);
    const char *const good = "((((((((pass=bwd))))))))";
    cr_expect_eq(fattn__predicate_check(good), FATTN_OK);
}

Test(predicate, a_format_is_an_order_and_gaps_do_not_count)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 4, p.seq_q = p.seq_kv = 32, p.dim_qk = 64;
    memcpy(p.q_strides, (int64_t[4]){ 3 * 4 * 64 * 32, 64, 3 * 4 * 64, 1 }, 32); /* interleaved with K and V */
    memcpy(p.k_strides, (int64_t[4]){ 4 * 64, 64, 2 * 4 * 64, 1 }, 32);
    memcpy(p.v_strides, (int64_t[4]){ 0, 64, 4 * 64, 1 }, 32);
    cr_assert_eq(fattn_problem_resolve(&p, &p), FATTN_OK);
    cr_expect(fattn__predicate_holds("q_format=bshd & k_format=sbhd & v_format=unset & broadcast=1", &p));
    p = (fattn_problem)FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 1, p.seq_q = p.seq_kv = 32, p.dim_qk = 64;
    cr_assert_eq(fattn_problem_resolve(&p, &p), FATTN_OK);
    cr_expect(fattn__predicate_holds("q_format=bshd & q_format=bhsd & q_format!=sbhd", &p), "with one head the two are one");
}

Test(predicate, fills_a_sentence_with_values)
{
    const fattn_problem p = backward();
    char text[96];
    fattn__predicate_fill(text, sizeof text, "{pass} {seq_kv} {attn_scale} {q_format} {misaligned} {nosuch} {", &p);
    cr_expect_str_eq(text, "bwd 1000 0.125 bshd none {nosuch} {");
    char narrow[8];
    fattn__predicate_fill(narrow, sizeof narrow, "seq {seq_kv} and more", &p);
    cr_expect_str_eq(narrow, "seq 100");
}
