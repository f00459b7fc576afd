#include <criterion/criterion.h>

#include "case/keys/keys.h"
#include "case/problem/case_problem.h"
#include "case/words/fail.h"
#include "random_case.h"

static const char *name_of(const char *text)
{
    static char name[FACTS_NAME_MAX];
    facts_case c;
    facts_error error = { 0 };
    cr_assert(facts_case_parse(&c, text, &error), "%s: %s", text, error.text);
    return facts_case_name(&c, name);
}

static const char *error_of(const char *text)
{
    static facts_error error;
    facts_case c;
    cr_assert_not(facts_case_parse(&c, text, &error), "%s is taken", text);
    return error.text;
}

Test(case, the_default_case_is_named_by_pass_and_dtype)
{
    cr_expect_str_eq(name_of(""), "pass=fwd dtype=bf16");
}

Test(case, a_value_has_one_spelling)
{
    static const char *const same[][2] = {
        { "h=8/8/8", "pass=fwd dtype=bf16" },
        { "h=8/2/2", "pass=fwd dtype=bf16 h=8/2" },
        { "h=8/2/4", "pass=fwd dtype=bf16 h=8/2/4" },
        { "s=512/512 d=128/128 b=2", "pass=fwd dtype=bf16" },
        { "s=007", "pass=fwd dtype=bf16 s=7" },
        { "mask=causal window=inf:inf", "pass=fwd dtype=bf16 mask=causal" },
        { "window=inf:0", "pass=fwd dtype=bf16 mask=causal" },
        { "window=inf:0 align=br", "pass=fwd dtype=bf16 mask=causal_br" },
        { "mask=causal align=br", "pass=fwd dtype=bf16 mask=causal_br" },
        { "mask=causal window=128:0", "pass=fwd dtype=bf16 window=128:0" },
        { "mask=causal window=128:64", "pass=fwd dtype=bf16 window=128:0" },
        { "mask=causal_br window=128:0", "pass=fwd dtype=bf16 window=128:0 align=br" },
        { "align=br", "pass=fwd dtype=bf16" },
        { "want=sum_exp+max+stats", "pass=fwd dtype=bf16 want=stats+max+sum_exp" },
        { "want=stats pass=bwd", "pass=bwd dtype=bf16" },
        { "want=none", "pass=fwd dtype=bf16" },
        { "lens=256+256+0/256+256+0", "pass=fwd dtype=bf16 lens=256x2+0" },
        { "lens=3+-1+-1/4+-1x2", "pass=fwd dtype=bf16 lens=3+-1x2/4+-1x2" },
        { "lens=3x2/4x2", "pass=fwd dtype=bf16 lens=3x2/4x2" },
        { "layout=bshd_bshd", "pass=fwd dtype=bf16" },
        { "layout=sbhd_sbhd_sbhd", "pass=fwd dtype=bf16 layout=sbhd" },
        { "q=sbhd", "pass=fwd dtype=bf16 layout=sbhd_bshd" },
        { "k=bs2hd v=bs2hd", "pass=fwd dtype=bf16 layout=bshd_bs2hd" },
        { "out=bf16 grad=bf16 bias_dtype=bf16", "pass=fwd dtype=bf16" },
        { "dtype=mxe4m3 out=bf16", "pass=fwd dtype=mxe4m3" },
        { "layout=thd stats=th1", "pass=fwd dtype=bf16 layout=thd" },
        { "layout=thd stats=bhs1", "pass=fwd dtype=bf16 layout=thd stats=bhs1" },
        { "stride=broadcast:v.b+k.b;gap:8", "pass=fwd dtype=bf16 stride=gap:8;broadcast:k.b+v.b" },
        { "stride=gap:0", "pass=fwd dtype=bf16" },
        { "knob=tile_n:4+tile_m:02", "pass=fwd dtype=bf16 knob=tile_m:2+tile_n:4" },
        { "scale=0.1250 dropout=.10", "pass=fwd dtype=bf16 dropout=0.1 scale=0.125" },
        { "mod=softcap:30.0", "pass=fwd dtype=bf16 mod=softcap:30" },
        { "mod=window:064:inf", "pass=fwd dtype=bf16 mod=window:64:inf" },
        { "mod=document:03 policy=cudnn", "pass=fwd dtype=bf16 mod=document:3" },
        { "policy=guard guards=off", "pass=fwd dtype=bf16 guards=off policy=guard" },
        { "bias=1hss bias_fill=window:8:inf",
          "pass=fwd dtype=bf16 bias=1hss bias_fill=window:8:inf" },
        { "stride=sum:dv.b+dk.b;broadcast:v.b+k.b",
          "pass=fwd dtype=bf16 stride=broadcast:k.b+v.b;sum:dk.b+dv.b" },
        { "s=64  \t b=1", "pass=fwd dtype=bf16 b=1 s=64" },
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        cr_expect_str_eq(name_of(same[i][0]), same[i][1], "%s: %s", same[i][0],
                         name_of(same[i][0]));
}

Test(case, an_error_says_where_what_is_allowed_and_what_was_meant)
{
    static const char *const wrong[][2] = {
        { "msk=causal", "case:1:1: msk is not a key; did you mean mask?" },
        { "b=1 mask=causl", "case:1:10: mask=causl is not a value; allowed: none causal causal_br; "
                            "did you mean causal?" },
        { "pass=fwd zzzzzz=1", "case:1:10: zzzzzz is not a key" },
        { "b=1 b=2", "case:1:5: b= is there twice" },
        { "b", "case:1:1: b is not key=value" },
        { "b=", "case:1:3: b= has no value" },
        { "b=-1", "case:1:3: b=-1 is not a value" },
        { "b=1,2", "case:1:1: b= lists several values, but this must be one case" },
        { "want=stats+foo", "case:1:12: want=foo is not a value" },
        { "lens=3+", "case:1:6: lens takes" },
        { "lens=-2", "case:1:6: lens takes" },
        { "lens=3x0", "case:1:6: lens takes" },
        { "lens=3x4097", "case:1:6: lens takes" },
        { "lens=3/x", "case:1:8: lens: lengths of the keys" },
        { "lens=3 padding=full", "case:1:1: lens= and padding= both set the lengths" },
        { "mask=causal_br align=tl", "case:1:16: align=tl contradicts mask=causal_br" },
        { "stride=gap:q.x.4", "case:1:12: stride: not understood: q.x.4" },
        { "stride=gap:4;gap:8", "case:1:18: stride: given twice: 8" },
        { "stride=gap", "case:1:8: stride: not a form: gap" },
        { "stride=sum:k.b", "case:1:12: stride: not understood: k.b" },
        { "mod=softcap", "case:1:5: mod=softcap is not a value" },
        { "mod=document:0", "case:1:5: mod=document:0 is not a value" },
        { "policy=gard", "case:1:8: policy=gard is not a value; allowed: cudnn math any guard; did "
                         "you mean guard?" },
        { "layout=bshd_bs3hd", "case:1:8: layout=bshd_bs3hd is not a value" },
        { "dropout=1.5", "case:1:9: dropout=1.5 is not a value" },
        { "scale=nan", "case:1:7: scale=nan is not a value" },
        { "scale=0x10", "case:1:7: scale=0x10 is not a value" },
        { "seed=99999999999999999999", "case:1:6: seed=99999999999999999999 is not a value" },
        { "knob=a:1+a:2", "case:1:10: knob: a is there twice" },
        { "\x01=3", "case:1:1: ? is not a key" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect(strncmp(error_of(wrong[i][0]), wrong[i][1], strlen(wrong[i][1])) == 0,
                  "%s gives %s", wrong[i][0], error_of(wrong[i][0]));
}

Test(case, the_default_of_a_key_follows_from_others)
{
    facts_case c;
    cr_assert(facts_case_parse(&c, "dtype=f16 layout=sbhd_sb2hd mask=causal_br pass=bwd", NULL));
    cr_expect_str_eq(facts_case_get(&c, FACTS_KEY_OUT), "f16");
    cr_expect_str_eq(facts_case_get(&c, FACTS_KEY_Q), "sbhd");
    cr_expect_str_eq(facts_case_get(&c, FACTS_KEY_V), "sb2hd");
    cr_expect_str_eq(facts_case_get(&c, FACTS_KEY_WINDOW), "inf:0");
    cr_expect_str_eq(facts_case_get(&c, FACTS_KEY_ALIGN), "br");
    cr_expect_str_eq(facts_case_get(&c, FACTS_KEY_WANT), "stats");
    cr_expect_str_eq(facts_case_get(&c, FACTS_KEY_O), "auto");
    cr_assert(facts_case_parse(&c, "pass=bwd dtype=e4m3 out=bf16", NULL));
    cr_expect_str_eq(facts_case_get(&c, FACTS_KEY_DO_DTYPE), "bf16");
    cr_assert(facts_case_parse(&c, "pass=bwd dtype=mxe5m2 out=f16", NULL));
    cr_expect_str_eq(facts_case_get(&c, FACTS_KEY_DO_DTYPE), "mxe5m2");
    char name[FACTS_NAME_MAX];
    cr_assert(facts_case_parse(&c, "dtype=e4m3 pass=bwd do_dtype=e5m2 out=e5m2 d=64", NULL));
    cr_expect_str_eq(facts_case_name(&c, name), "pass=bwd dtype=e4m3 out=e5m2 d=64");
}

Test(case, setting_what_get_says_changes_nothing)
{
    for (int i = 0; i < 2000; i++) {
        char text[2048];
        facts_case c;
        random_case_text(text, 6);
        if (!facts_case_parse(&c, text, NULL))
            continue;
        for (facts_key key = 0; key < FACTS_KEY_COUNT; key++) {
            facts_case copy = c;
            char value[FACTS_CASE_TEXT];
            snprintf(value, sizeof value, "%s", facts_case_get(&c, key));
            bool conflicts =
                (key == FACTS_KEY_PADDING || key == FACTS_KEY_LENS) && strcmp(value, "none") == 0;
            cr_assert(facts_case_set(&copy, key, value, NULL) || conflicts, "%s: %s=%s", text,
                      facts_keys[key].word, value);
            cr_assert_eq(memcmp(&copy, &c, sizeof c), 0, "%s: %s=%s", text, facts_keys[key].word,
                         value);
        }
    }
}

Test(case, setting_one_key_keeps_what_the_others_said)
{
    facts_case c;
    facts_error error;
    char name[FACTS_NAME_MAX];
    cr_assert(facts_case_parse(&c, "mask=causal_br s=64", NULL));
    cr_assert(facts_case_set(&c, FACTS_KEY_WINDOW, "32:0", &error), "%s", error.text);
    cr_expect_str_eq(facts_case_name(&c, name), "pass=fwd dtype=bf16 s=64 window=32:0 align=br");
    cr_assert(facts_case_set(&c, FACTS_KEY_ALIGN, "tl", &error));
    cr_assert(facts_case_set(&c, FACTS_KEY_WINDOW, "inf:inf", &error));
    cr_expect_str_eq(facts_case_name(&c, name), "pass=fwd dtype=bf16 s=64");
    cr_expect_not(facts_case_set(&c, FACTS_KEY_B, "x", &error));
    cr_expect_str_eq(facts_case_name(&c, name), "pass=fwd dtype=bf16 s=64",
                     "a failure leaves the case as it was");
}

Test(case, a_name_parses_to_the_same_case)
{
    int parsed = 0;
    for (int i = 0; i < 20000; i++) {
        char text[2048], name[FACTS_NAME_MAX], again[FACTS_NAME_MAX];
        facts_case c, d;
        facts_error error = { 0 };
        random_case_text(text, 1 + random_below(12));
        if (!facts_case_parse(&c, text, NULL))
            continue;
        parsed++;
        facts_case_name(&c, name);
        cr_assert(facts_case_parse(&d, name, &error), "%s -> %s: %s", text, name, error.text);
        cr_assert_eq(memcmp(&c, &d, sizeof c), 0, "%s -> %s", text, name);
        cr_assert_str_eq(facts_case_name(&d, again), name);
    }
    cr_expect_gt(parsed, 15000, "%d of 20000 random texts are cases", parsed);
}

Test(case, what_is_too_long_is_refused_and_not_cut)
{
    char text[8192] = "lens=";
    for (int i = 0; i < 500; i++)
        sprintf(text + strlen(text), "%s%d", i > 0 ? "+" : "", 1000 + i);
    cr_expect(strstr(error_of(text), "longer than a case may be") != NULL, "%s", error_of(text));
}

Test(case, every_default_is_a_value)
{
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++) {
        facts_case c = { .used = 1 };
        facts_error error = { 0 };
        cr_assert(facts_case_parse(&c, "", NULL));
        cr_expect(facts_case_set(&c, key, facts_case_get(&c, key), &error), "%s", error.text);
    }
}

static char *help_text(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    facts_keys_help(&facts_attention_language, FACTS_NO_KEY, file);
    fclose(file);
    return text;
}

Test(case, the_help_names_every_key)
{
    char *text = help_text();
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++) {
        char line[64];
        snprintf(line, sizeof line, "\n  %s ", facts_keys[key].word);
        cr_expect(key == 0 || strstr(text, line) != NULL, "%s", facts_keys[key].word);
    }
    free(text);
}

/* docs/cases.md holds the table between two marks; FACTS_RENEW=1 writes it anew. */
Test(case, the_documentation_holds_the_table_that_the_program_prints)
{
    static const char open_mark[] = "<!-- keys -->\n", close_mark[] = "<!-- /keys -->\n";
    static char page[1 << 17];
    char path[4096], *table = NULL, *text = help_text();
    snprintf(path, sizeof path, "%s/docs/cases.md", getenv("FACTS_SOURCE"));
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    char *from = strstr(page, open_mark), *to = strstr(page, close_mark);
    cr_assert(from != NULL && to != NULL);
    cr_assert(asprintf(&table, "%s```text\n%s```\n", open_mark, text) > 0);
    bool same = strncmp(from, table, strlen(table)) == 0 && from + strlen(table) == to;
    if (!same && getenv("FACTS_RENEW") != NULL) {
        file = fopen(path, "w");
        fprintf(file, "%.*s%s%s", (int)(from - page), page, table, to);
        fclose(file);
    } else {
        cr_expect(same, "docs/cases.md is old; FACTS_RENEW=1 renews it");
    }
    free(table);
    free(text);
}

Test(case, what_a_terminal_obeys_does_not_reach_it)
{
    char text[] = "a\x1b[31m\x7f\tb \xc2\x9b c \xe2\x80\xae d \xe2\x81\xa6 e \xd8\x9c f "
                  "\xef\xbb\xbf \xc3\xa4 \xe2\x80\x93 \xd8\xa8";
    facts_plain(text);
    cr_expect_str_eq(text, "a?[31m??b ?? c ??? d ??? e ?? f ??? \xc3\xa4 \xe2\x80\x93 \xd8\xa8");
    char unseen[] = "a\xc2\xad\xe2\x80\x8b\xe2\x81\xa0\xef\xbf\xb9\xf3\xa0\x80\x81\xf3\xa0\x81\xbf "
                    "b \xe2\x80\x8d \xef\xbf\xbd";
    facts_plain(unseen);
    cr_expect_str_eq(unseen, "a??"
                             "???"
                             "???"
                             "???"
                             "????"
                             "????"
                             " b \xe2\x80\x8d \xef\xbf\xbd");
    char cut[] = "\xe2\x80";
    facts_plain(cut);
    cr_expect_str_eq(cut, "??");
    char stray[] =
        "\x9b"
        "2J \xc0\x80 \xe0\x80\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xf0\x9f\x98\x80 \xf0\x9f";
    facts_plain(stray);
    cr_expect_str_eq(stray, "?2J ?? ??? ??? ???? \xf0\x9f\x98\x80 ??");
}
