/* Probes, laws and identities: honest kernels keep them, and each catches the mistake that it is
 * there for, with the judge left aside. */
#include "case/problem/valid_checks.h"
#include "checking.h"

#ifdef __SANITIZE_ADDRESS__ /* every check once and every fourth lie: the numbers are the same     \
                             * there, and take ten times as long                                   \
                             */
enum { STEP = 2, STEP_OF_LIES = 4 };
#else
enum { STEP = 1, STEP_OF_LIES = 1 };
#endif

/* Shapes that make tails, groups and two batch entries. X(pass, check, what else) */
static const char *const forward_cases[] = {
    "check=count",
    "check=count mask=causal_br",
    "check=count window=33:7 padding=random",
    "check=count mod=document:3",
    "check=readout",
    "check=readout mask=causal bias=1hss",
    "check=readout d=24 window=20:5 align=br padding=random",
    "check=readout mod=softcap:5",
    "check=pow2 mask=causal",
    "check=pow2 padding=random bias=1hss",
    "check=permute bias=bhss",
    "check=permute mod=relpos padding=random",
    "check=sum_rows mask=causal",
    "check=sum_rows fill=stair_up bias=b1ss",
    "check=linear window=33:7",
    "check=linear mod=post_scale_bias",
    "check=shift mask=causal_br",
    "check=shift mod=temperature:0.7 bias=11ss",
    "check=repeat_heads mask=causal",
    "check=repeat_heads bias=1hss mod=relpos",
    "check=others mask=causal",
    "check=others padding=random",
    "check=others mod=causal fill=needle",
    "check=key_order",
    "check=key_order padding=random bias=1hss",
    "check=key_order mod=softcap:5",
    "check=split",
    "check=split bias=1hss mod=post_scale_bias",
    "check=prefix mask=causal",
    "check=prefix mod=causal bias=1hss",
    "check=prefix window=40:0 mod=softcap:5",
    "check=length padding=random mask=causal_br",
    "check=length padding=random bias=1hss mod=relpos",
    "check=length padding=zero:kv",
    "check=window",
    "check=window mask=causal mod=softcap:5",
    "check=off_by_one softmax=off_by_one",
    "check=off_by_one softmax=sink mask=causal_br padding=random",
    "check=off_by_one softmax=sink bias=1hss mod=softcap:5 padding=zero:kv",
    "check=dropout_zero dropout=0.3 dropout_mask=1",
    "check=dropout_zero dropout=0.1 dropout_mask=1 mask=causal softmax=sink",
    "check=ragged layout=thd padding=random",
    "check=ragged layout=thd padding=zero:kv mask=causal_br softmax=sink alibi=1",
    "check=ragged layout=thd_bshd padding=random bias=1hss slots=+3 tail=8",
    "check=paged paged=16 padding=random",
    "check=paged paged=16 table=shared mask=causal_br padding=random softmax=sink",
    "check=paged paged=64 table=packed layout=thd_bshd padding=random",
    "check=identities",
    "check=identities mask=causal bias=1hss",
};
static const char *const backward_cases[] = {
    "check=ds",
    "check=ds mask=causal_br padding=random",
    "check=ds bias=1hss dbias=1",
    "check=pow2 mask=causal",
    "check=pow2 bias=1hss dbias=1 deterministic=1",
    "check=permute padding=random bias=bhss dbias=1",
    "check=linear mask=causal bias=1hss dbias=1",
    "check=shift padding=random",
    "check=repeat_heads mask=causal",
    "check=others mask=causal padding=random",
    "check=key_order bias=1hss dbias=1 padding=random",
    "check=split bias=1hss dbias=1",
    "check=prefix mask=causal",
    "check=length padding=random mask=causal_br",
    "check=window mask=causal",
    "check=off_by_one softmax=sink dsink=1",
    "check=off_by_one softmax=off_by_one mask=causal_br padding=random bias=1hss dbias=1",
    "check=dropout_zero dropout=0.3 dropout_mask=1 mask=causal",
    "check=ragged layout=thd padding=random mask=causal",
    "check=ragged layout=thd padding=zero:q softmax=sink",
    "check=identities mask=causal padding=random",
    "check=identities mod=softcap:5",
};

static const facts_kernel honest[] = { { .tile = 128 },
                                       { .tile = 64, .reversed = true, .lazy = 8 },
                                       { .tile = 64, .splits = 3 } };

static void keeps(const char *pass, const char *what, const char *dtype, const facts_kernel *kernel)
{
    char text[300];
    bool size_given = strstr(what, "d=24") != NULL;
    snprintf(text, sizeof text, "pass=%s dtype=%s b=2 h=4/2 s=66/136 %s %s %s", pass, dtype,
             size_given ? "" : "d=32", strcmp(pass, "fwd") == 0 ? "want=stats+max+sum_exp" : "",
             what);
    outcome o = check_case(text, kernel);
    cr_expect(o.held.wrong == 0 && o.held.compared > 50,
              "%s: %s: %s at %d %d %d %d: %.9g, not %.9g within %g (%d of %d)", text, o.held.law,
              facts_tensor_word(o.held.id), (int)o.held.at[0], (int)o.held.at[1], (int)o.held.at[2],
              (int)o.held.at[3], o.held.got, o.held.want, o.held.bound, (int)o.held.wrong,
              (int)o.held.compared);
    cr_expect(o.judged <= 1.0 && o.base <= 1.0, "%s: judged %g and %g", text, o.base, o.judged);
}

Test(checks, honest_forwards_keep_every_law)
{
    for (size_t i = 0; i < sizeof forward_cases / sizeof *forward_cases; i += STEP)
        keeps("fwd", forward_cases[i], i % 2 ? "f16" : "bf16", &honest[i % 3]);
}

Test(checks, honest_backwards_keep_every_law)
{
    for (size_t i = 0; i < sizeof backward_cases / sizeof *backward_cases; i += STEP)
        keeps("bwd", backward_cases[i], i % 2 ? "bf16" : "f16", &honest[i % 2]);
}

Test(checks, f32_keeps_them_too)
{
    for (size_t i = 0; i < sizeof forward_cases / sizeof *forward_cases; i += 3 * STEP)
        keeps("fwd", forward_cases[i], "f32", &honest[0]);
    for (size_t i = 0; i < sizeof backward_cases / sizeof *backward_cases; i += 3 * STEP)
        keeps("bwd", backward_cases[i], "f32", &honest[0]);
}

/* A lie, and a case whose check must find it by what holds between its runs. */
static const struct {
    facts_liar liar;
    const char *text;
} found[] = {
    { FACTS_LIAR_CAUSAL_LOOSE, "pass=fwd mask=causal check=count" },
    { FACTS_LIAR_LEFT_LOOSE, "pass=fwd window=33:7 check=count" },
    { FACTS_LIAR_LEN_PLUS_1, "pass=fwd padding=random check=count" },
    { FACTS_LIAR_TILE_TWICE, "pass=fwd check=count" },
    { FACTS_LIAR_TAIL_ZERO, "pass=fwd check=count" },
    { FACTS_LIAR_CAUSAL_LOOSE, "pass=fwd mask=causal_br check=readout" },
    { FACTS_LIAR_TILE_LOST, "pass=fwd check=readout" },
    { FACTS_LIAR_O_NO_RESCALE, "pass=fwd check=readout fill=stair_up" },
    { FACTS_LIAR_B_CAUSAL_LOOSE, "pass=bwd mask=causal check=ds" },
    { FACTS_LIAR_B_LEFT_LOOSE, "pass=bwd window=33:7 check=ds" },
    { FACTS_LIAR_B_LEN_PLUS_1, "pass=bwd padding=random check=ds" },
    { FACTS_LIAR_WORKSPACE_DIRTY, "pass=bwd check=pow2 deterministic=1" },
    { FACTS_LIAR_BIAS_H0, "pass=fwd bias=bhss check=permute" },
    { FACTS_LIAR_ONE_ELEMENT, "pass=fwd check=permute" },
    { FACTS_LIAR_O_NO_RESCALE, "pass=fwd check=sum_rows fill=stair_up" },
    { FACTS_LIAR_WORKSPACE_DIRTY, "pass=bwd check=linear" },
    { FACTS_LIAR_SCALE_1E3, "pass=fwd check=shift" },
    { FACTS_LIAR_LSE_LOG2, "pass=fwd check=shift" },
    { FACTS_LIAR_GQA_MOD, "pass=fwd check=repeat_heads" },
    { FACTS_LIAR_B_GQA_LAST, "pass=bwd check=repeat_heads" },
    { FACTS_LIAR_LEN_PLUS_1, "pass=fwd padding=random check=others" },
    { FACTS_LIAR_CAUSAL_LOOSE, "pass=fwd mask=causal check=others" },
    { FACTS_LIAR_GQA_MOD, "pass=fwd check=others" },
    { FACTS_LIAR_TILE_LOST, "pass=fwd check=key_order" },
    { FACTS_LIAR_BIAS_TILE, "pass=fwd bias=1hss check=key_order" },
    { FACTS_LIAR_B_DQ_TWICE, "pass=bwd check=key_order" },
    { FACTS_LIAR_LSE_LOG2, "pass=fwd check=split" },
    { FACTS_LIAR_TILE_LOST, "pass=fwd check=split" },
    { FACTS_LIAR_B_TILE_LOST, "pass=bwd check=split" },
    { FACTS_LIAR_ALIGN_SWAP, "pass=fwd mask=causal check=prefix" },
    { FACTS_LIAR_CAUSAL_LOOSE, "pass=fwd mask=causal check=prefix" },
    { FACTS_LIAR_BR_MAX_LEN, "pass=fwd mask=causal_br padding=random check=length" },
    { FACTS_LIAR_LEN_IGNORED, "pass=fwd padding=random check=length" },
    { FACTS_LIAR_B_LEN_IGNORED, "pass=bwd padding=random check=length" },
    { FACTS_LIAR_B_DQ_NOSCALE, "pass=bwd check=window" },
    { FACTS_LIAR_BIAS_SCALED, "pass=fwd bias=1hss check=window" },
    { FACTS_LIAR_NO_SINK, "pass=fwd softmax=off_by_one check=off_by_one" },
    { FACTS_LIAR_NO_SINK, "pass=fwd softmax=sink mask=causal_br padding=random check=off_by_one" },
    { FACTS_LIAR_TAIL_ZERO, "pass=fwd softmax=sink check=off_by_one" },
    { FACTS_LIAR_DROPOUT_NOSCALE, "pass=fwd dropout=0.3 dropout_mask=1 check=dropout_zero" },
    { FACTS_LIAR_DROPOUT_8BIT, "pass=fwd dropout=0.3 dropout_mask=1 check=dropout_zero" },
    { FACTS_LIAR_RAGGED_PLUS_1, "pass=fwd layout=thd padding=random check=ragged" },
    { FACTS_LIAR_STATS_STRIDE, "pass=fwd layout=thd padding=random check=ragged" },
    { FACTS_LIAR_PAGE_LAST, "pass=fwd paged=16 padding=random check=paged" },
    { FACTS_LIAR_PAGE_COUNT, "pass=fwd paged=16 padding=random check=paged" },
    { FACTS_LIAR_O_NO_RESCALE, "pass=fwd check=identities fill=spiky" },
    { FACTS_LIAR_B_NO_DELTA, "pass=bwd check=identities" },
    { FACTS_LIAR_B_DQ_NOSCALE, "pass=bwd check=identities" },
    { FACTS_LIAR_B_DQ_TWICE, "pass=bwd check=identities" },
};

Test(checks, each_finds_its_lie_between_its_runs)
{
    for (size_t i = 0; i < sizeof found / sizeof *found; i += STEP_OF_LIES) {
        char text[300];
        facts_kernel kernel = { .tile = 64, .liar = found[i].liar };
        snprintf(text, sizeof text, "%s dtype=bf16 b=2 h=4/2 s=66/136 d=32 %s", found[i].text,
                 strstr(found[i].text, "fwd") ? "want=stats" : "");
        outcome o = check_case(text, &kernel);
        cr_expect(o.held.wrong > 0, "%s: %s is not found: ratio %g, %s", text,
                  facts_liar_words[found[i].liar], o.held.ratio, o.held.law);
    }
}

Test(checks, every_check_finds_a_lie)
{
    for (facts_check check = FACTS_CHECK_NONE + 1; check < FACTS_CHECKS; check++) {
        bool listed = check == FACTS_CHECK_KEEP ||
                      check == FACTS_CHECK_NONFINITE; /* test_probe.c; records alone */
        for (size_t i = 0; i < sizeof found / sizeof *found && !listed; i++) {
            char expects[40];
            snprintf(expects, sizeof expects, "check=%s", facts_check_words[check]);
            const char *at = strstr(found[i].text, expects);
            listed = at && strchr(" ", at[strlen(expects)]) != NULL;
        }
        cr_expect(listed, "%s", facts_check_words[check]);
    }
}

Test(checks, what_says_nothing_is_refused_by_name)
{
    static const char *const texts[] = {
        "pass=bwd check=count",
        "pass=fwd check=ds",
        "pass=fwd check=count bias=1hss",
        "pass=fwd check=shift mod=softcap:5",
        "pass=bwd check=shift stats_dtype=f16",
        "pass=fwd check=window scale=tensor",
        "pass=fwd check=repeat_heads",
        "pass=fwd check=key_order mask=causal",
        "pass=fwd check=split",
        "pass=fwd want=stats check=split mask=causal",
        "pass=fwd check=prefix",
        "pass=fwd check=length",
        "pass=fwd check=identities fill=needle",
        "pass=bwd check=sum_rows",
        "pass=fwd check=off_by_one",
        "pass=fwd softmax=sink mask=causal check=off_by_one",
        "pass=fwd softmax=sink alibi=1 check=off_by_one",
        "pass=fwd softmax=sink s=40/1 check=off_by_one",
        "pass=fwd check=dropout_zero",
        "pass=fwd check=ragged",
        "pass=fwd check=paged",
        "pass=fwd layout=thd padding=random check=paged",
        "pass=fwd layout=thd padding=random dropout=0.1 check=ragged",
        "pass=fwd dtype=e4m3 layout=thd padding=random check=ragged",
        "pass=fwd softmax=sink check=nonfinite",
        "pass=fwd layout=thd padding=random check=count",
        "pass=fwd b=1 h=1 check=others",
        "pass=fwd b=1 h=4/1 check=permute",
        "pass=fwd check=linear stride=broadcast:k.b"
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        static facts_problem p;
        facts_case c;
        facts_error error = { 0 };
        cr_assert(facts_case_parse(&c, texts[i], &error), "%s: %s", texts[i], error.text);
        cr_expect_eq(facts_problem_resolve(&p, &c, &error), FACTS_BAD_PROBLEM, "%s: %s", texts[i],
                     error.text);
        cr_expect_eq(strncmp(error.text, "check: ", 7), 0, "%s: %s", texts[i], error.text);
    }
}

/* 0 times Inf is NaN: a kernel that multiplies what a mask hides by a P or dS of 0 spreads it to
 * rows that do not read it. That is recorded. */
Test(checks, a_row_shows_what_it_reads_that_is_not_finite)
{
    for (int pass = 0; pass < 2; pass++) {
        char text[200];
        snprintf(text, sizeof text,
                 "pass=%s dtype=bf16 b=2 h=4/2 s=130/200 d=32 mask=causal padding=random "
                 "check=nonfinite",
                 pass ? "bwd" : "fwd");
        outcome o = check_case(text, &honest[0]);
        const facts_spread *key = &o.held.spread[0], *value = &o.held.spread[1];
        cr_expect(o.held.wrong == 0 && o.held.compared > 0 && o.held.ratio == 0.0, "%s", text);
        cr_expect(key->readers > 100 && key->reached == key->readers, "%s: NaN reached %d of %d",
                  text, (int)key->reached, (int)key->readers);
        cr_expect(key->others > 100 && key->strayed == (pass ? key->others : 0),
                  "%s: NaN strayed into %d of %d", text, (int)key->strayed, (int)key->others);
        cr_expect(value->readers == key->readers && value->reached == value->readers,
                  "%s: Inf reached %d of %d", text, (int)value->reached, (int)value->readers);
        cr_expect(value->others == key->others && value->strayed == (pass ? 0 : value->others),
                  "%s: Inf strayed into %d of %d", text, (int)value->strayed, (int)value->others);
    }
}

/* The case's own answers, which are finite, in the place of those that a NaN and an Inf were
 * planted in. */
static facts_held finite_answers(const char *text)
{
    world w = { .p = case_of(text) };
    facts_held held;
    world_fill(&w);
    world_given(&w);
    world_answer(&w, &honest[0]);
    facts_check_hold(&held, &w.view, (facts_view[]){ w.view, w.view });
    world_leave(&w);
    return held;
}

Test(checks, a_row_that_swallows_what_is_not_finite_is_wrong)
{
    for (int pass = 0; pass < 2; pass++) {
        char text[200];
        snprintf(text, sizeof text,
                 "pass=%s dtype=f16 b=2 h=4/2 s=40/56 d=32 mask=causal check=nonfinite",
                 pass ? "bwd" : "fwd");
        facts_held held = finite_answers(text);
        cr_expect_eq(held.wrong, held.spread[0].readers + held.spread[1].readers, "%s", text);
        cr_expect(held.wrong > 100 && isinf(held.ratio) && isnan(held.want), "%s", text);
        strcat(text, " fill=hugelogit"); /* a weight may be 0: of Inf nothing is due */
        held = finite_answers(text);
        cr_expect_eq(held.wrong, held.spread[0].readers, "%s", text);
        strcat(text, " bias=1hss"); /* or -inf may hide the key */
        held = finite_answers(text);
        cr_expect(held.wrong == 0 && held.spread[0].readers > 50, "%s", text);
    }
}
