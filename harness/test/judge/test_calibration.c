#include <criterion/criterion.h>

#include "../numbers/numbers.h"
#include "numbers/judge/calibration.h"

static facts_calibration *read_table(const char *rows)
{
    char text[4000];
    facts_error error = { 0 };
    facts_calibration *table;
    snprintf(text, sizeof text, "{\"version\":1,\"rows\":[%s]}", rows);
    cr_assert(facts_calibration_read(&table, text, &error), "%s", error.text);
    return table;
}

static void refuse(const char *text, const char *word)
{
    facts_error error = { 0 };
    facts_calibration *table;
    cr_expect_not(facts_calibration_read(&table, text, &error), "%s", text);
    cr_expect(strstr(error.text, word), "%s: %s", text, error.text);
    facts_calibration_destroy(table);
}

Test(calibration, the_table_in_the_program_can_be_read)
{
    facts_error error = { 0 };
    facts_calibration *table;
    cr_expect(facts_calibration_read(&table, facts_calibration_text(), &error), "%s", error.text);
    facts_calibration_destroy(table);
}

Test(calibration, what_is_not_in_the_table_starts_as_the_reference_does)
{
    const facts_who nobody = {
        .sm = 12, .backend = FATTN_BACKEND_CUDNN, .dtype = FATTN_BF16, .engine = 77
    };
    facts_constants c = facts_constants_of(&nobody);
    fref_rounding start = fref_rounding_of(FREF_BF16, FREF_BF16), applied = start;
    applied.ua = applied.chunk = applied.cw = applied.cl = applied.acc_pv = applied.eps_exp =
        applied.thr = 99;
    applied.partials_cast = !start.partials_cast, applied.p_normalised = !start.p_normalised;
    facts_constants_apply(&applied, &c);
    cr_expect(applied.ua == start.ua && applied.chunk == start.chunk && applied.cw == start.cw &&
              applied.cl == start.cl);
    cr_expect(applied.acc_pv == start.acc_pv && applied.eps_exp == start.eps_exp &&
              applied.thr == start.thr);
    cr_expect(applied.partials_cast == start.partials_cast &&
              applied.p_normalised == start.p_normalised);
    cr_expect_not(c.calibrated);
}

Test(calibration, the_first_row_that_fits_counts)
{
    facts_calibration *table = read_table(
        "{\"sm\":90,\"backend\":\"cudnn\",\"dtype\":\"bf16\",\"pass\":\"fwd\",\"engine\":5,"
        "\"constants\":{\"eps_exp\":5e-6,\"partials_cast\":false}},"
        "{\"sm\":90,\"dtype\":\"bf16\",\"constants\":{\"cl\":2}}");
    facts_who who = { .sm = 90,
                      .backend = FATTN_BACKEND_CUDNN,
                      .dtype = FATTN_BF16,
                      .pass = FATTN_FORWARD,
                      .engine = 5 };
    facts_constants c = facts_calibration_find(table, &who),
                    start = facts_constants_start(FATTN_BF16);
    cr_expect_float_eq(c.eps_exp, 5e-6, 0);
    cr_expect(!c.partials_cast && c.cl == start.cl);
    cr_expect_not(facts_constants_agree(&c, &start));
    who.engine = 6;
    c = facts_calibration_find(table, &who);
    cr_expect(c.eps_exp == start.eps_exp && c.cl == 2);
    who.sm = 100;
    c = facts_calibration_find(table, &who);
    cr_expect(facts_constants_agree(&c, &start));
    facts_calibration_destroy(table);
}

Test(calibration, a_case_sets_the_threshold_where_it_is_read)
{
    const facts_who blackwell = { .sm = 103, .backend = FATTN_BACKEND_CUDNN, .dtype = FATTN_E4M3 };
    facts_who other[3] = { blackwell, blackwell, blackwell };
    facts_constants c = facts_constants_start(FATTN_E4M3);
    const double start = c.thr;
    other[0].sm = 90, other[1].backend = FATTN_BACKEND_CPU, other[2].dtype = FATTN_BF16;
    for (int i = 0; i < 3; i++)
        facts_constants_rescale(&c, &other[i], 0);
    facts_constants_rescale(&c, &blackwell, -1);
    cr_expect(c.thr == start && start != 0);
    facts_constants_rescale(&c, &blackwell, 0);
    cr_expect(c.thr == 0);
    facts_constants_rescale(&c, &blackwell, 64); /* no further than a calibration may */
    cr_expect(c.thr == 8);
}

Test(calibration, a_row_says_where_it_comes_from_and_stays_below_what_a_liar_needs)
{
    refuse("", "");
    refuse("{\"version\":2,\"rows\":[]}", "version");
    refuse("{\"version\":1,\"rows\":[{\"dtype\":\"bf17\"}]}", "dtype");
    refuse("{\"version\":1,\"rows\":[{\"engine\":\"5\"}]}", "engine");
    refuse("{\"version\":1,\"rows\":[{\"constants\":{\"eps\":1}}]}", "eps");
    refuse("{\"version\":1,\"rows\":[{},{\"constants\":{\"eps_exp\":0.1}}]}", "row 2: eps_exp");
    refuse("{\"version\":1,\"rows\":[{\"dtype\":\"bf16\",\"constants\":{\"acc_pv\":0.005}}]}",
           "acc_pv");
    refuse("{\"version\":1,\"rows\":[{\"constants\":{\"acc_pv\":0.005}}]}",
           "acc_pv"); /* of any type is of 16 bits too */
    refuse("{\"version\":1,\"rows\":[{\"dtype\":\"bf16\",\"constants\":{\"chunk\":8}}]}", "chunk");
    refuse("{\"version\":1,\"rows\":[{\"dtype\":\"e4m3\",\"constants\":{\"partials_cast\":true}}]}",
           "partials_cast");
    facts_calibration_destroy(read_table(
        "{\"dtype\":\"e4m3\",\"constants\":{\"acc_pv\":0.0001,\"partials_cast\":false}}"));
    refuse("{\"version\":1,\"rows\":[{\"constants\":{\"partials_cast\":1}}]}", "partials_cast");
    refuse("{\"version\":1,\"rows\":[{\"dtype\":\"bf16\",\"calibrated\":true}]}", "cudnn");
    facts_calibration *table = read_table("{\"dtype\":\"bf16\",\"calibrated\":true,\"cudnn\":[\"9."
                                          "19.0\"],\"device\":\"h100\",\"date\":\"2026-11-21\","
                                          "\"cases\":200,\"rms\":{},\"largest\":{}}");
    const facts_who who = { .dtype = FATTN_BF16, .backend = FATTN_BACKEND_CUDNN, .cudnn = 91900 };
    cr_expect(facts_calibration_find(table, &who).calibrated);
    facts_calibration_destroy(table);
}

Test(calibration, a_row_is_assumed_for_a_version_that_was_not_measured)
{
    facts_calibration *table = read_table(
        "{\"dtype\":\"bf16\",\"calibrated\":true,\"cudnn\":[\"9.14.0\",\"9.28.0\"],\"device\":"
        "\"x\",\"date\":\"x\",\"cases\":1,"
        "\"rms\":{},\"largest\":{},\"constants\":{\"cl\":2}},"
        "{\"dtype\":\"f16\",\"calibrated\":false,\"cudnn\":[\"9.14.0\"],\"constants\":{\"cl\":2}}");
    facts_who who = { .dtype = FATTN_BF16, .backend = FATTN_BACKEND_CUDNN, .cudnn = 91400 };
    facts_constants c = facts_calibration_find(table, &who);
    cr_expect(c.calibrated && c.assumed == 0 && c.cl == 2);
    who.cudnn = 92801;
    const facts_constants other = facts_calibration_find(table, &who);
    cr_expect(!other.calibrated && other.assumed == 92800, "%d", other.assumed);
    cr_expect(facts_constants_agree(&c, &other),
              "what is judged stays the same but for T1's factor");
    who.cudnn = 91600;
    cr_expect_eq(facts_calibration_find(table, &who).assumed, 91400);
    who.backend = FATTN_BACKEND_MATH;
    c = facts_calibration_find(table, &who);
    cr_expect(c.calibrated && c.assumed == 0, "no kernel of cuDNN's computes there");
    who = (facts_who){ .dtype = FATTN_F16, .backend = FATTN_BACKEND_CUDNN, .cudnn = 92801 };
    c = facts_calibration_find(table, &who);
    cr_expect(!c.calibrated && c.assumed == 0 && c.cl == 2, "nothing was calibrated there");
    facts_calibration_destroy(table);
}

Test(calibration, what_no_row_says_lies_within_the_limits)
{
    static const int32_t types[] = { FATTN_BF16, FATTN_F16, FATTN_F32, FATTN_E4M3, FATTN_E5M2 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const facts_constants start = facts_constants_start(types[i]),
                              limit = facts_constants_limit(types[i]);
#define AS_TEST(field, narrowest, ...)                                                             \
    cr_expect(start.field >= fmin(narrowest, limit.field) &&                                       \
                  start.field <= fmax(narrowest, limit.field),                                     \
              #field);
        FACTS_CONSTANT_LIST(AS_TEST)
#undef AS_TEST
#define AS_TEST(field, ...) cr_expect(limit.field || !start.field, #field);
        FACTS_TRAIT_LIST(AS_TEST)
#undef AS_TEST
    }
}

Test(calibration, the_widest_of_a_type_is_each_constant_where_it_is_widest)
{
    facts_calibration *table = read_table("{\"dtype\":\"bf16\",\"engine\":5,\"constants\":{\"cl\":"
                                          "2,\"chunk\":32,\"partials_cast\":false}},"
                                          "{\"dtype\":\"bf16\",\"constants\":{\"eps_exp\":5e-6}},{"
                                          "\"dtype\":\"e4m3\",\"constants\":{\"ua\":1e-6}}");
    const facts_constants c = facts_calibration_widest(table, FATTN_BF16),
                          start = facts_constants_start(FATTN_BF16);
    cr_expect(c.cl == 2 && c.eps_exp == 5e-6);
    cr_expect(c.chunk == start.chunk && c.ua == start.ua && c.partials_cast,
              "what the other row leaves");
    const facts_constants f16 = facts_calibration_widest(table, FATTN_F16),
                          start_f16 = facts_constants_start(FATTN_F16);
    cr_expect(facts_constants_agree(&f16, &start_f16));
    facts_calibration_destroy(table);
}

Test(calibration, a_version_that_was_not_measured_gets_the_nearest_on_its_architecture)
{
    static const char ROWS[] = "{\"sm\":90,\"backend\":\"cudnn\",\"engine\":5,\"calibrated\":true,"
                               "\"cudnn\":[\"9.14.0\",\"9.28.0\"],\"device\":\"x\","
                               "\"date\":\"x\",\"cases\":1,\"rms\":{},\"largest\":{}},"
                               "{\"sm\":90,\"backend\":\"math\",\"calibrated\":true,\"cudnn\":[\"9."
                               "20.0\"],\"device\":\"x\",\"date\":\"x\",\"cases\":1,"
                               "\"rms\":{},\"largest\":{}},"
                               "{\"sm\":90,\"backend\":\"cudnn\",\"engine\":6,\"calibrated\":false,"
                               "\"cudnn\":[\"9.19.0\"]}";
    facts_calibration *table = read_table(ROWS);
    char used[16];
    cr_expect(facts_calibration_nearest(used, table, 90, 92801) && strcmp(used, "9.28.0") == 0,
              "%s", used);
    cr_expect(facts_calibration_nearest(used, table, 90, 91400) && strcmp(used, "9.14.0") == 0,
              "%s", used);
    cr_expect(facts_calibration_nearest(used, table, 90, 92000) && strcmp(used, "9.14.0") == 0,
              "rows of another backend, and rows that are not calibrated, do not count: %s", used);
    cr_expect(!facts_calibration_nearest(used, table, 100, 92801) && !used[0]);
    facts_calibration_destroy(table);
}
