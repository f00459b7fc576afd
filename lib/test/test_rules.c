/* Rules: where they hold, and how they are read out of JSON. */
#include "rules.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fattn_problem control(void)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 8, p.seq_q = p.seq_kv = 512, p.dim_qk = 128;
    return p;
}

Test(holds, in_its_versions_architectures_pass_and_predicate)
{
    fattn_rule rule = FATTN_RULE_INIT;
    rule.cudnn_from = 91400, rule.cudnn_to = 92599, rule.sm_from = 90, rule.sm_to = 100;
    rule.pass = FATTN_FORWARD, rule.when = "dim_qk=128";
    fattn_problem p = control();
    cr_expect(fattn_rule_holds(&rule, &p, 91400, 90));
    cr_expect(fattn_rule_holds(&rule, &p, 92599, 100));
    cr_expect_not(fattn_rule_holds(&rule, &p, 91399, 90));
    cr_expect_not(fattn_rule_holds(&rule, &p, 92600, 90));
    cr_expect_not(fattn_rule_holds(&rule, &p, 91400, 89));
    cr_expect_not(fattn_rule_holds(&rule, &p, 91400, 103));
    p.pass = FATTN_BACKWARD;
    cr_expect_not(fattn_rule_holds(&rule, &p, 91400, 90));
    p = control(), p.dim_qk = 64;
    cr_expect_not(fattn_rule_holds(&rule, &p, 91400, 90));
}

Test(holds, never_for_what_is_no_rule_or_no_problem)
{
    fattn_rule rule = FATTN_RULE_INIT;
    fattn_problem p = control();
    cr_expect(fattn_rule_holds(&rule, &p, 92000, 90));
    cr_expect_not(fattn_rule_holds(NULL, &p, 92000, 90));
    cr_expect_not(fattn_rule_holds(&rule, NULL, 92000, 90));
    p.batch = 0;
    cr_expect_not(fattn_rule_holds(&rule, &p, 92000, 90));
    p = control();
    rule.when = "nosuch=1";
    cr_expect_not(fattn_rule_holds(&rule, &p, 92000, 90));
    rule.when = NULL, rule.struct_size = 4;
    cr_expect_not(fattn_rule_holds(&rule, &p, 92000, 90));
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------------------
 */

static fattn_rules *read(const char *json)
{
    fattn_rules *rules;
    cr_assert_eq(fattn_rules_read(&rules, json), FATTN_OK, "%s", fattn_last_error());
    return rules;
}

#define RULES(...) "{\"version\":1,\"rules\":[" __VA_ARGS__ "]}"

Test(json, our_form_has_every_field)
{
    fattn_rules *rules = read(RULES(
        "{\"name\":\"n\",\"why\":\"w {seq_kv}\",\"link\":\"l\",\"remedy\":\"r\",\"deny\":\"cudnn\",\"pass\":\"bwd\",\"engine\":7,"
        "\"knobs\":{\"TILE_M\":2,\"k3\":5},\"cudnn\":\"9.14.0..9.25.1\",\"sm\":\"90..100\",\"when\":\"seq_kv%128!=0\"},"
        "{\"name\":\"m\",\"pin\":\"math\",\"cudnn\":\"..9.15\",\"sm\":90},"
        "{\"name\":\"o\",\"deny\":\"cudnn\",\"cudnn\":\"9.26..\",\"sm\":\"..89\",\"unasked\":true},"
        "{\"name\":\"p\",\"deny\":\"cpu\",\"cudnn\":\"9.26.1\"}"));
    cr_assert_eq(fattn_rules_count(rules), 4);
    const fattn_rule *r = fattn_rules_at(rules, 0);
    cr_expect_str_eq(r->name, "n");
    cr_expect_str_eq(r->why, "w {seq_kv}");
    cr_expect_str_eq(r->link, "l");
    cr_expect_str_eq(r->remedy, "r");
    cr_expect_str_eq(r->when, "seq_kv%128!=0");
    cr_expect(r->action == FATTN_DENY && r->backend == FATTN_BACKEND_CUDNN && r->pass == FATTN_BACKWARD && r->engine == 7);
    cr_expect(r->cudnn_from == 91400 && r->cudnn_to == 92501 && r->sm_from == 90 && r->sm_to == 100);
    cr_assert_eq(r->knob_count, 2);
    cr_expect(r->knobs[0].type == 40 && r->knobs[0].value == 2 && r->knobs[1].type == 3 && r->knobs[1].value == 5);
    r = fattn_rules_at(rules, 1);
    cr_expect(r->action == FATTN_PIN && r->backend == FATTN_BACKEND_MATH && r->pass == FATTN_ANY && r->engine == FATTN_ANY);
    cr_expect(r->cudnn_from == 0 && r->cudnn_to == 91599 && r->sm_from == 90 && r->sm_to == 90);
    r = fattn_rules_at(rules, 2);
    cr_expect(r->cudnn_from == 92600 && r->cudnn_to == 0 && r->sm_from == 0 && r->sm_to == 89 && r->unasked == 1);
    r = fattn_rules_at(rules, 3);
    cr_expect(r->backend == FATTN_BACKEND_CPU && r->cudnn_from == 92601 && r->cudnn_to == 92601);
    cr_expect_null(fattn_rules_at(rules, 4));
    fattn_rules_destroy(rules);
}

/* The end of cudnn-frontend's range is the first version that is right again; every knob must match; graphs of other things do not
 * concern us. */
Test(json, the_frontends_form_means_what_its_source_does)
{
    fattn_rules *rules = read(RULES("{\"rule_id\":\"ConvFwd_eng999\",\"operation\":\"ConvFwd\",\"engine\":999,\"knob\":[],\"cudnn_"
                                    "version_start\":8000,\"cudnn_version_end\":-1},"
                                    "{\"rule_id\":\"mha\",\"operation\":\"Matmul_Mul_Matmul\",\"engine\":2,\"knob\":[\"k31=7\","
                                    "\"k3=1\"],\"cudnn_version_start\":91400,"
                                    "\"cudnn_version_end\":92600,\"arch\":\"90\",\"comment\":\"free text\"},"
                                    "{\"rule_id\":\"mha_bwd\",\"operation\":\"Matmul_Sub_Matmul_Mul_Matmul_Matmul_Matmul\","
                                    "\"engine\":\"6\",\"knob\":{\"k31\":\"7\"}}"));
    cr_assert_eq(fattn_rules_count(rules), 2, "a convolution is left out");
    const fattn_rule *forward = fattn_rules_at(rules, 0), *backward = fattn_rules_at(rules, 1);
    cr_expect_str_eq(forward->name, "mha");
    cr_expect(forward->action == FATTN_DENY && forward->backend == FATTN_BACKEND_CUDNN && forward->engine == 2);
    cr_expect_eq(forward->pass, FATTN_FORWARD);
    cr_expect_eq(backward->pass, FATTN_BACKWARD);
    cr_expect_eq(backward->engine, 6);
    fattn_problem p = control();
    cr_expect(fattn_rule_holds(forward, &p, 91400, 90));
    cr_expect(fattn_rule_holds(forward, &p, 92599, 90));
    cr_expect_not(fattn_rule_holds(forward, &p, 92600, 90), "the end does not belong to the range");
    cr_expect_not(fattn_rule_holds(forward, &p, 91399, 90));
    const fattn_engine blocked = { .index = 2, .knob_count = 2, .knobs = { { 3, 0, 1 }, { 31, 0, 7 } } },
                       longer = { .index = 2, .knob_count = 2, .knobs = { { 3, 0, 1 }, { 31, 0, 77 } } },
                       fewer = { .index = 2, .knob_count = 1, .knobs = { { 31, 0, 7 } } };
    cr_expect(fattn__rule_means(forward, &blocked));
    cr_expect_not(fattn__rule_means(forward, &longer));
    cr_expect_not(fattn__rule_means(forward, &fewer));
    fattn_rules_destroy(rules);
}

Test(json, what_is_wrong_is_said_with_the_rule)
{
    static const struct {
        const char *json, *wrong;
    } rows[] = {
        { "{", "rules: line 1, column 1: " },
        { "[]", "rules: \"version\" is not 1" },
        { "{\"version\":2,\"rules\":[]}", "rules: \"version\" is not 1" },
        { "{\"version\":1}", "rules: \"rules\" is not a list" },
        { RULES("3"), "rules: rule 0 (no name): a rule: want an object" },
        { RULES("{\"deny\":\"cudnn\"}"), "rules: rule 0 (no name): name: is missing" },
        { RULES("{\"name\":\"n\"}"), "rules: rule 0 (n): deny, pin: want one of them" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"pin\":\"math\"}"), "rules: rule 0 (n): deny, pin: want one of them" },
        { RULES("{\"name\":\"n\",\"deny\":\"cuda\"}"), "rules: rule 0 (n): deny: want cudnn, math or cpu" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"cudnn\":\"9.x\"}"), "rules: rule 0 (n): cudnn: want a range" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"cudnn\":\"9.1.2.3\"}"), "rules: rule 0 (n): cudnn: want a range" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"cudnn\":\"..\"}"), "rules: rule 0 (n): cudnn: want a range" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"cudnn\":\"9\"}"), "rules: rule 0 (n): cudnn: want a range" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"cudnn\":\"9.20.0..9.14.0\"}"),
          "rule 0 (n): cudnn_from, cudnn_to: not a range" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"pass\":\"both\"}"), "rules: rule 0 (n): pass: want fwd or bwd" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"engine\":\"two\"}"), "rules: rule 0 (n): engine: want a number" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"knobs\":{\"TILE_X\":1}}"),
          "rules: rule 0 (n): knobs: a name that is no knob" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"knob\":[]}"), "rules: rule 0 (n): knob: is not known" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"when\":\"s=1\"}"), "rule 0 (n): when: column 1: \"s\" is not a field" },
        { RULES("{\"name\":\"a\",\"deny\":\"cudnn\"},{\"name\":\"n\",\"deny\":1}"), "rules: rule 1 (n): deny: want a text" },
        { RULES("{\"name\":\"n\",\"deny\":\"cudnn\",\"name\":\"m\"}"), "rules: line 1, column " },
        { RULES("{\"operation\":\"Matmul_Matmul\"}"), "rules: rule 0 ((no rule_id)): engine: want a number" },
        { RULES("{\"operation\":\"Matmul_Matmul\",\"engine\":1,\"knob\":[\"31=7\"]}"),
          "rules: rule 0 ((no rule_id)): knobs: a name that is no knob" },
        { RULES("{\"operation\":\"Matmul_Matmul\",\"engine\":1,\"knob\":[\"k31\"]}"),
          "rules: rule 0 ((no rule_id)): knob: want \"k40=2\"" },
        { RULES("{\"operation\":7,\"engine\":1}"), "rules: rule 0 ((no rule_id)): operation: want a text" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fattn_rules *rules = (fattn_rules *)&rows;
        cr_expect_eq(fattn_rules_read(&rules, rows[i].json), FATTN_BAD_PROBLEM, "%s", rows[i].json);
        cr_expect_null(rules);
        cr_expect_eq(strncmp(fattn_last_error(), rows[i].wrong, strlen(rows[i].wrong)), 0, "%s\n  '%s'", rows[i].json,
                     fattn_last_error());
    }
    fattn_rules *rules;
    cr_expect_eq(fattn_rules_read(&rules, NULL), FATTN_BAD_PROBLEM);
    fattn_rules_destroy(NULL);
}

Test(json, no_rules_are_fine)
{
    fattn_rules *rules = read(RULES());
    cr_expect_eq(fattn_rules_count(rules), 0);
    fattn_rules_destroy(rules);
}

/* The errata that the suites run with. */
Test(json, the_projects_own_errata_can_be_read)
{
    static char text[65536];
    char path[512];
    const char *source = getenv("FACTS_SOURCE");
    snprintf(path, sizeof path, "%s/cases/errata.json", source != NULL ? source : ".");
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    fattn_rules *rules = read(text);
    fattn_problem p = control();
    p.heads_k = 2, p.dim_qk = 256, p.has_bias = 1;
    cr_assert_gt(fattn_rules_count(rules), 0);
    const fattn_rule *rule = fattn_rules_at(rules, 0);
    cr_expect(fattn_rule_holds(rule, &p, 92000, 90));
    cr_expect_not(fattn_rule_holds(rule, &p, 92100, 90));
    cr_expect_not(fattn_rule_holds(rule, &p, 92000, 100));
    p.training = 1;
    cr_expect_not(fattn_rule_holds(rule, &p, 92000, 90), "training writes Stats");
    fattn_rules_destroy(rules);
}
