/* Claims: what may stand in a file of rules, where a bad line is, and that every rule of cases/claims has both sides of its edge.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "audit/claims.h"
#include "case/words/text_file.h"

#define HEAD "project: thing 1.0\nlink: https://example.org\nrule: t/1\nsays: file: \"message\"\nkind: decision\n"

static facts_error error;
static facts_claims claims;

static bool reads(const char *text)
{
    facts_claims_clear(&claims);
    return facts_claims_read(&claims, text, "x.claims", &error);
}

static facts_case case_of(const char *text)
{
    facts_case c;
    cr_assert(facts_case_parse(&c, text, &error), "%s", error.text);
    return c;
}

Test(claims, a_rule_has_its_source_its_kind_its_predicate_and_its_edge)
{
    cr_assert(reads(HEAD "refuse: d.qk%8!=0 # all of them\nnote: a note\nedge: pass=fwd,bwd dtype=bf16,f16 | d=100 | d=104\n"),
              "%s", error.text);
    cr_assert_eq(claims.count, 1);
    const facts_claim *c = &claims.claim[0];
    cr_expect_str_eq(c->id, "t/1");
    cr_expect_str_eq(c->says, "file: \"message\"");
    cr_expect_str_eq(c->refuses, "d.qk%8!=0");
    cr_expect_str_eq(c->note, "a note");
    cr_expect_eq(c->kind, FACTS_CLAIM_DECISION);
    cr_expect_str_eq(claims.project[c->project].version, "1.0");
    cr_assert_eq(c->edges, 4);
    char one[FACTS_NAME_MAX], two[FACTS_NAME_MAX];
    cr_expect_str_eq(facts_case_name(&c->edge[1].refused, one), "pass=fwd dtype=f16 d=100");
    cr_expect_str_eq(facts_case_name(&c->edge[1].other, two), "pass=fwd dtype=f16 d=104");
    facts_claims_clear(&claims);
}

Test(claims, a_rule_refuses_what_any_refuse_selects_and_no_unless)
{
    cr_assert(
        reads(HEAD "refuse: d.qk>128 & sm=90\nrefuse: dtype=f32\nunless: d.qk=256 & cudnn>=9.23\nedge: pass=fwd | d=136 | d=128\n"),
        "%s", error.text);
    facts_case wide = case_of("pass=fwd d=256"), odd = case_of("pass=fwd d=136"), single = case_of("pass=fwd dtype=f32");
    cr_expect(facts_claim_refuses(&claims.claim[0], &wide, "9.22.0", "90"));
    cr_expect_not(facts_claim_refuses(&claims.claim[0], &wide, "9.23.0", "90"));
    cr_expect_not(facts_claim_refuses(&claims.claim[0], &odd, "9.23.0", "100"));
    cr_expect(facts_claim_refuses(&claims.claim[0], &odd, "9.23.0", "90"));
    cr_expect(facts_claim_refuses(&claims.claim[0], &single, "9.23.0", "100"));
    facts_claims_clear(&claims);
}

Test(claims, a_bad_line_is_named_with_its_place)
{
    static const char *const wrong[][2] = {
        { "", "x.claims:1:1: no rule is in this file" },
        { "rule: t/1\n", "x.claims:1:1: belongs to a project" },
        { "project: thing\n", "x.claims:1:10: project: takes a name and a version" },
        { "project: thing 1\nsays: x\n", "x.claims:2:1: belongs to a rule" },
        { "project: thing 1\nrul: t/1\n", "x.claims:2:1: rul begins no line of claims; allowed: project: link: rule: says: kind: "
                                          "refuse: unless: edge: untestable: note:; did you "
                                          "mean rule?" },
        { "project: thing 1\nrule: t/1\nkind: decison\n",
          "x.claims:3:7: decison is not a kind; allowed: decision numbers caller; did you mean decision?" },
        { "project: thing 1\nrule:\n", "x.claims:2:6: something is due after the colon" },
        { HEAD "refuse: d.qk%8!=0 & mas=causal\n", "x.claims:6:21: mas is not a key; did you mean mask?" },
        { HEAD "refuse: sm=90 &\n", "x.claims:6:16: a key is due here" },
        { HEAD "refuse: sm=90\nedge: pass=fwd d=100 | d=104\n", "x.claims:7:7: edge: takes COMMON | REFUSED | LET THROUGH" },
        { HEAD "refuse: sm=90\nedge: pass=fwd | d=1 |\n", "x.claims:7:7: edge: takes COMMON | REFUSED | LET THROUGH" },
        { HEAD "refuse: sm=90\nedge: pass=fwd | d=100 | dd=104\n", "x.claims:7:26: dd is not a key" },
        { HEAD "refuse: d.qk%8!=0\nedge: pass=fwd | d=100,101 | d=104\n",
          "x.claims:7:1: the two sides of an edge have as many cases each" },
        { HEAD "refuse: d.qk%8!=0\nedge: pass=fwd | d=100 | d=104 s=64\n",
          "x.claims:7:1: the two sides of an edge differ in exactly one key" },
        { HEAD "refuse: d.qk%8!=0\nedge: pass=fwd s=1..65 | d=100 | d=104\n",
          "x.claims:7:1: a rule has at most 64 pairs of cases" },
        { HEAD "refuse: sm=90\nrule: t/2\n", "x.claims:3:1: the rule t/1 lacks edge:" },
        { HEAD "edge: pass=fwd | d=100 | d=104\n", "x.claims:3:1: the rule t/1 lacks refuse:" },
        { HEAD "untestable: why\nedge: pass=fwd | d=100 | d=104\n",
          "x.claims:3:1: the rule t/1 is untestable and has a predicate or an edge" },
        { HEAD "untestable: why\nrule: t/1\n", "x.claims:7:7: t/1 is there already: x.claims:3" },
        { "project: thing 1\nrule: t/1\nsays: x\nkind: caller\nrefuse: sm=90\nedge: pass=fwd\n",
          "x.claims:2:1: the rule t/1 lacks untestable:" },
        { "project: thing 1\nrule: t/1\nkind: decision\nuntestable: x\n", "x.claims:2:1: the rule t/1 lacks says:" },
        { "project: thing 1\nrule: t/1\nsays: x\nuntestable: x\n", "x.claims:2:1: the rule t/1 lacks kind:" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_not(reads(wrong[i][0]), "%s is taken", wrong[i][0]);
        cr_expect(strncmp(error.text, wrong[i][1], strlen(wrong[i][1])) == 0, "%s\n%s", wrong[i][0], error.text);
    }
    facts_claims_clear(&claims);
}

Test(claims, an_edge_that_is_none_is_an_error)
{
    static const char *const wrong[][2] = {
        { "refuse: d.qk%8!=0\nedge: pass=fwd | d=96 | d=104\n", "is never refused by the rule" },
        { "refuse: d.qk%8!=0\nedge: pass=fwd | d=100 | d=101\n", "is refused on both sides" },
        { "refuse: d.qk%8!=0\nedge: pass=fwd | d=104 | d=100\n", "is refused on the side that the rule is said to let through" },
        { "refuse: d.qk%8!=0\nedge: pass=fwd d=100\n", "is refused by every version for every device" },
        { "refuse: cudnn<8\nedge: pass=fwd\n", "is never refused by the rule" },
    };
    char text[512];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, HEAD "%s", wrong[i][0]);
        cr_expect_not(reads(text), "%s is taken", text);
        cr_expect(strncmp(error.text, "x.claims:7:1: t/1 has no edge here: ", 36) == 0 && strstr(error.text, wrong[i][1]), "%s",
                  error.text);
    }
    facts_claims_clear(&claims);
}

Test(claims, an_edge_between_versions_or_devices_needs_no_other_side)
{
    cr_expect(reads(HEAD "refuse: cudnn>=9.10.0 & cudnn<=9.10.1\nedge: pass=fwd\n"), "%s", error.text);
    cr_expect(reads(HEAD "refuse: sm<90\nedge: pass=fwd dtype=e4m3\n"), "%s", error.text);
    facts_claims_clear(&claims);
}

Test(claims, a_band_is_one_axis_however_it_is_spelled)
{
    cr_expect(
        reads(
            HEAD
            "refuse: align=br\nedge: pass=fwd | mask=causal_br | mask=none\nedge: pass=fwd | window=64:0 align=br | mask=causal\n"),
        "%s", error.text);
    cr_expect(reads(HEAD "refuse: layout=thd\nedge: pass=fwd | layout=thd | layout=bshd\n"), "%s",
              error.text); /* whose Stats follow */
    facts_claims_clear(&claims);
}

Test(claims, reach_says_where_a_rule_refuses)
{
    char out[200];
    cr_assert(reads(HEAD "refuse: sm>=100 & sm<110 & cudnn<9.9.1\nedge: pass=fwd\n"), "%s", error.text);
    cr_expect_str_eq(facts_claim_reach(&claims.claim[0], out), "cudnn 9.0.0..9.9.0, sm 100, 103, 107");
    cr_assert(reads(HEAD "refuse: sm=90 & cudnn>=9.10\nedge: pass=fwd\n"), "%s", error.text);
    cr_expect_str_eq(facts_claim_reach(&claims.claim[0], out), "cudnn 9.10.0.., sm 90");
    facts_claims_clear(&claims);
}

Test(claims, every_shipped_rule_is_read_and_straddles_its_edge)
{
    char folder[4096], **paths = NULL;
    snprintf(folder, sizeof folder, "%s/cases/claims", getenv("FACTS_SOURCE"));
    size_t count = facts_folder_files(folder, ".claims", &paths), untestable = 0;
    facts_claims_clear(&claims);
    for (size_t i = 0; i < count; i++) {
        char *text = facts_file_text(paths[i], &error);
        cr_assert(text && facts_claims_read(&claims, text, paths[i], &error), "%s", error.text);
        free(text);
    }
    cr_expect_eq(claims.projects, 3, "%s", folder);
    for (size_t i = 0; i < claims.count; i++)
        untestable += *claims.claim[i].untestable != '\0';
    cr_expect_geq(claims.count - untestable, 140);
    facts_claims_clear(&claims);
    facts_folder_free(paths, count);
}
