/* The rules of policy=guard: how they are read, and for which cases they are chosen. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/keys/keys.h"
#include "case/problem/case_problem.h"
#include "fattn/policy.h"
#include "worker/target/case_policy.h"
#include "worker/target/errata.h"

enum { MOST = 8 };

static facts_errata *taken(const char *json)
{
    facts_errata *errata;
    facts_error error = { 0 };
    cr_assert(facts_errata_read(&errata, json, &error), "%s", error.text);
    return errata;
}

static facts_case parsed(const char *text)
{
    facts_case c;
    facts_error error;
    cr_assert(facts_case_parse(&c, text, &error), "%s", error.text);
    return c;
}

static size_t chosen(const facts_errata *errata, const char *text, fattn_rule out[MOST])
{
    const facts_case c = parsed(text);
    cr_assert_leq(facts_errata_count(errata), MOST);
    return facts_errata_choose(errata, &c, out);
}

#define RULES(...) "{\"version\":1,\"rules\":[" __VA_ARGS__ "]}"

Test(errata, our_form_has_every_key)
{
    facts_errata *errata = taken(RULES(
        "{\"name\":\"n\",\"why\":\"w\",\"link\":\"l\",\"remedy\":\"r\",\"deny\":\"cudnn\",\"pass\":"
        "\"bwd\",\"engine\":7,"
        "\"knobs\":{\"TILE_M\":2,\"k3\":5},\"cudnn\":\"9.14.0..9.25.1\",\"sm\":\"90..100\","
        "\"when\":\"s.kv%128!=0\"},"
        "{\"name\":\"m\",\"pin\":\"math\",\"cudnn\":\"..9.15\",\"sm\":90},"
        "{\"name\":\"o\",\"deny\":\"cudnn\",\"cudnn\":\"9.26..\",\"sm\":\"..89\",\"unasked\":true},"
        "{\"name\":\"p\",\"deny\":\"cpu\",\"cudnn\":\"9.26.1\"}"));
    fattn_rule r[MOST];
    cr_assert_eq(facts_errata_count(errata), 4);
    cr_assert_eq(chosen(errata, "pass=bwd s=512/100", r), 4);
    cr_expect_str_eq(r[0].name, "n");
    cr_expect_str_eq(r[0].why, "w");
    cr_expect_str_eq(r[0].link, "l");
    cr_expect_str_eq(r[0].remedy, "r");
    cr_expect(!r[0].when && !r[0].holds && !r[0].say, "the condition was asked about the case");
    cr_expect(r[0].action == FATTN_DENY && r[0].backend == FATTN_BACKEND_CUDNN &&
              r[0].pass == FATTN_BACKWARD && r[0].engine == 7);
    cr_expect(r[0].cudnn_from == 91400 && r[0].cudnn_to == 92501 && r[0].sm_from == 90 &&
              r[0].sm_to == 100);
    cr_assert_eq(r[0].knob_count, 2);
    cr_expect(r[0].knobs[0].type == 40 && r[0].knobs[0].value == 2 && r[0].knobs[1].type == 3 &&
              r[0].knobs[1].value == 5);
    cr_expect(r[1].action == FATTN_PIN && r[1].backend == FATTN_BACKEND_MATH &&
              r[1].pass == FATTN_ANY && r[1].engine == FATTN_ANY);
    cr_expect(r[1].cudnn_from == 0 && r[1].cudnn_to == 91599 && r[1].sm_from == 90 &&
              r[1].sm_to == 90);
    cr_expect(r[2].cudnn_from == 92600 && r[2].cudnn_to == 0 && r[2].sm_from == 0 &&
              r[2].sm_to == 89 && r[2].unasked == 1);
    cr_expect(r[3].backend == FATTN_BACKEND_CPU && r[3].cudnn_from == 92601 &&
              r[3].cudnn_to == 92601);
    cr_assert_eq(chosen(errata, "pass=bwd s=512/128", r), 3);
    cr_expect_str_eq(r[0].name, "m");
    facts_errata_destroy(errata);
}

static bool holds(const fattn_rule *rule, int32_t pass, int32_t version)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 8, p.seq_q = p.seq_kv = 512, p.dim_qk = 128, p.pass = pass;
    return fattn_rule_holds(rule, &p, version, 90);
}

/* The end of cudnn-frontend's range is the first version that is right again. Graphs of other
 * operations do not concern attention.
 */
Test(errata, the_frontends_form_means_what_its_source_does)
{
    facts_errata *errata = taken(RULES(
        "{\"rule_id\":\"ConvFwd_eng999\",\"operation\":\"ConvFwd\",\"engine\":999,\"knob\":[],"
        "\"cudnn_"
        "version_start\":8000,\"cudnn_version_end\":-1},"
        "{\"rule_id\":\"mha\",\"operation\":\"Matmul_Mul_Matmul\",\"engine\":2,\"knob\":[\"k31=7\","
        "\"k3=1\"],\"cudnn_version_start\":91400,"
        "\"cudnn_version_end\":92600,\"arch\":\"90\",\"comment\":\"free text\"},"
        "{\"rule_id\":\"mha_bwd\",\"operation\":\"Matmul_Sub_Matmul_Mul_Matmul_Matmul_Matmul\","
        "\"engine\":\"6\",\"knob\":{\"k31\":\"7\"}}"));
    fattn_rule r[MOST];
    cr_assert_eq(facts_errata_count(errata), 2, "a convolution is left out");
    cr_assert_eq(chosen(errata, "pass=fwd", r), 2);
    cr_expect_str_eq(r[0].name, "mha");
    cr_expect(r[0].action == FATTN_DENY && r[0].backend == FATTN_BACKEND_CUDNN &&
              r[0].engine == 2 && r[0].pass == FATTN_FORWARD);
    cr_expect(r[1].engine == 6 && r[1].pass == FATTN_BACKWARD);
    cr_assert_eq(r[0].knob_count, 2);
    cr_expect(r[0].knobs[0].type == 31 && r[0].knobs[0].value == 7 && r[0].knobs[1].type == 3 &&
              r[0].knobs[1].value == 1);
    cr_expect(holds(&r[0], FATTN_FORWARD, 91400));
    cr_expect(holds(&r[0], FATTN_FORWARD, 92599));
    cr_expect_not(holds(&r[0], FATTN_FORWARD, 92600), "the end does not belong to the range");
    cr_expect_not(holds(&r[0], FATTN_FORWARD, 91399));
    cr_expect_not(holds(&r[0], FATTN_BACKWARD, 91400));
    facts_errata_destroy(errata);
}

/* Only the rules that hold for the case are pushed. */
Test(errata, a_case_pushes_the_rules_that_hold_for_it)
{
    facts_worker gpu = { .device = FACTS_DEVICE_GPU };
    gpu.errata = taken(RULES("{\"name\":\"short\",\"deny\":\"cudnn\",\"when\":\"s.q<128\"},{"
                             "\"name\":\"wide\",\"deny\":\"cudnn\","
                             "\"when\":\"d.qk>128\"}"));
    fattn_rule r[MOST];
    cr_assert_eq(chosen(gpu.errata, "pass=fwd s=64 d=64", r), 1);
    cr_expect_str_eq(r[0].name, "short");
    cr_assert_eq(chosen(gpu.errata, "pass=fwd s=512 d=256", r), 1);
    cr_expect_str_eq(r[0].name, "wide");
    cr_expect_eq(chosen(gpu.errata, "pass=fwd s=512 d=64", r), 0);
    const facts_case c = parsed("pass=fwd s=64 d=64");
    facts_error error = { 0 };
    int depth;
    cr_assert_eq(facts_policy_begin(&depth, &gpu, FACTS_POLICY_GUARD, &c, &error), FATTN_OK, "%s",
                 error.text);
    cr_expect_eq(fattn_policy_depth(), 1);
    facts_policy_end(depth);
    cr_expect_eq(fattn_policy_depth(), 0);
    facts_errata_destroy(gpu.errata);
}

/* The errata that the suites run with. */
Test(errata, the_projects_own_can_be_read)
{
    static char text[65536];
    char path[512];
    const char *source = getenv("FACTS_SOURCE");
    snprintf(path, sizeof path, "%s/cases/errata.json", source != NULL ? source : ".");
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    facts_errata *errata = taken(text);
    fattn_rule r[MOST];
    cr_assert_eq(chosen(errata, "pass=fwd h=8/2 d=256 bias=1hss", r), 1);
    cr_expect_str_eq(r[0].name, "d256-explicit-mask-eval");
    cr_expect(holds(&r[0], FATTN_FORWARD, 92000));
    cr_expect_not(holds(&r[0], FATTN_FORWARD, 92100));
    cr_expect_eq(chosen(errata, "pass=fwd h=8/2 d=256 bias=1hss padding=random", r), 2);
    cr_expect_eq(chosen(errata, "pass=fwd b=2 h=8/2 d=256 bias=1hss lens=7+9", r), 2);
    cr_expect_eq(chosen(errata, "pass=fwd h=8/2 d=256 bias=1hss want=stats", r), 0,
                 "training writes Stats");
    cr_expect_eq(chosen(errata, "pass=fwd h=8/2 d=256", r), 0);
    facts_errata_destroy(errata);
}
