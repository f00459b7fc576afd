/* facts calibrate: what rows of a record say about constants. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/calibrate.h"
#include "numbers/judge/calibration.h"

#define WHO "\"cudnn\":\"9.19.0\",\"device\":\"h100\",\"sm\":90,\"backend\":\"cudnn\",\"engine\":5,\"verdict\":\"pass\""

static void add(facts_measured *m, const char *name, const char *rest)
{
    char row[2000];
    snprintf(row, sizeof row, "{\"case\":\"%s\"," WHO ",%s}", name, rest);
    cr_assert(facts_measured_add(m, row, strlen(row)), "%s", row);
}

static void add_error(facts_measured *m, const char *name, const char *tensor, double rms, double t1)
{
    char rest[400];
    snprintf(rest, sizeof rest,
             "\"errors\":{\"%s\":{\"ratio\":%g,\"gate\":\"t1\",\"rms\":%g,\"checked\":1000,\"got\":1,\"want\":1,\"bound\":1,"
             "\"gates\":{\"t1\":%g}}}",
             tensor, t1, rms, t1);
    add(m, name, rest);
}

static void add_stats(facts_measured *m, const char *name, double tl, double off)
{
    char rest[400];
    snprintf(rest, sizeof rest,
             "\"errors\":{\"stats\":{\"ratio\":%g,\"gate\":\"tl\",\"rms\":0,\"checked\":9,\"got\":%.12g,\"want\":5,\"bound\":1e-6,"
             "\"gates\":{\"tl\":%g}}}",
             tl, 5 + off, tl);
    add(m, name, rest);
}

/* `count` rows of O or a gradient. */
static void add_many(facts_measured *m, const char *name, const char *tensor, double rms, int count)
{
    for (int i = 0; i < count; i++)
        add_error(m, name, tensor, rms, 0.5);
}

static json_t *only_row(const facts_measured *m)
{
    json_t *table = facts_measured_table(m, "2026-11-21"), *row = json_incref(json_array_get(json_object_get(table, "rows"), 0));
    cr_assert_eq(json_array_size(json_object_get(table, "rows")), 1);
    char *text = json_dumps(table, 0), error[300] = "";
    facts_calibration *read;
    cr_expect(facts_calibration_read(&read, text, error), "the table reads what is proposed: %s", error);
    facts_calibration_destroy(read);
    free(text);
    json_decref(table);
    return row;
}

static bool calibrated(const facts_measured *m)
{
    json_t *row = only_row(m);
    bool is = json_is_true(json_object_get(row, "calibrated"));
    json_decref(row);
    return is;
}

static const json_t *proposed(const json_t *row, const char *constant)
{
    size_t i;
    json_t *p;
    json_array_foreach(json_object_get(row, "proposed"), i,
                       p) if (strcmp(json_string_value(json_object_get(p, "constant")), constant) == 0) return p;
    return NULL;
}

#define FWD "pass=fwd dtype=bf16 s=128 want=stats"
#define BWD "pass=bwd dtype=bf16 s=128"
#define GROUPED "pass=bwd dtype=bf16 h=8/2 s=128"

Test(calibrate, many_rows_as_the_model_says_are_calibrated)
{
    facts_measured *m = facts_measured_create();
    add_many(m, FWD, "o", 0.74, 49);
    cr_expect_not(calibrated(m), "49 are few");
    add_many(m, FWD, "o", 0.72, 1);
    cr_expect(calibrated(m));
    json_t *row = only_row(m);
    cr_expect_float_eq(json_number_value(json_object_get(json_object_get(row, "rms"), "o")), 0.74, 1e-3);
    cr_expect_eq(json_integer_value(json_object_get(row, "engine")), 5);
    cr_expect_str_eq(json_string_value(json_array_get(json_object_get(row, "cudnn"), 0)), "9.19.0");
    cr_expect_eq(json_object_size(json_object_get(row, "constants")), 0);
    cr_expect_null(json_object_get(row, "proposed"));
    json_decref(row);
    facts_measured_destroy(m);
}

Test(calibrate, a_kernel_that_rounds_elsewhere_is_not)
{
    const double rms[] = { 0.5, 0.6, 0.9, 1.1 };
    for (size_t i = 0; i < sizeof rms / sizeof *rms; i++) {
        facts_measured *m = facts_measured_create();
        add_many(m, FWD, "o", rms[i], 60);
        cr_expect_not(calibrated(m), "rms %g", rms[i]);
        facts_measured_destroy(m);
    }
}

Test(calibrate, an_answer_that_needs_the_factor_is_not)
{
    facts_measured *m = facts_measured_create();
    add_many(m, FWD, "o", 0.74, 60);
    add_error(m, FWD, "o", 0.74, 0.96);
    cr_expect_not(calibrated(m));
    facts_measured_destroy(m);
}

Test(calibrate, a_row_that_is_wrong_does_not_calibrate)
{
    facts_measured *m = facts_measured_create();
    add_many(m, FWD, "o", 0.74, 60);
    add_error(m, FWD, "o", 100, 500);
    cr_expect_eq(facts_measured_rows(m), 60);
    cr_expect_not(calibrated(m), "and an engine that has one is not believed");
    add(m, FWD, "\"errors\":{\"o\":{\"ratio\":\"inf\",\"gate\":\"t0\",\"rms\":0.7,\"checked\":9,\"not_finite\":1,\"gates\":{}}}");
    cr_expect_eq(facts_measured_rows(m), 60);
    facts_measured_destroy(m);
}

Test(calibrate, partial_sums_in_fp32_show_in_grouped_heads)
{
    facts_measured *m = facts_measured_create();
    add_many(m, BWD, "dk", 0.74, 60);
    add_many(m, GROUPED, "dk", 0.5, 20);
    json_t *row = only_row(m);
    cr_expect(json_is_false(json_object_get(json_object_get(row, "constants"), "partials_cast")),
              "it makes the bound narrower: set");
    cr_expect_not(json_is_true(json_object_get(row, "calibrated")), "once more, with it");
    json_decref(row);
    facts_measured_destroy(m);
    m = facts_measured_create();
    add_many(m, BWD, "dk", 0.74, 60);
    add_many(m, GROUPED, "dk", 0.73, 20);
    row = only_row(m);
    cr_expect_null(json_object_get(json_object_get(row, "constants"), "partials_cast"));
    cr_expect(json_is_true(json_object_get(row, "calibrated")));
    json_decref(row);
    facts_measured_destroy(m);
}

Test(calibrate, what_would_widen_a_bound_is_proposed_with_its_record)
{
    facts_measured *m = facts_measured_create();
    add_many(m, FWD, "o", 0.74, 60);
    add_stats(m, FWD " seed=1", 0.9, 1e-6);
    cr_expect(calibrated(m));
    add_stats(m, FWD " seed=2", 186, 1e-4);
    json_t *row = only_row(m);
    const json_t *p = proposed(row, "eps_exp");
    cr_assert(p);
    cr_expect_float_eq(json_number_value(json_object_get(p, "value")), 2e-4, 1e-8);
    cr_expect(json_number_value(json_object_get(p, "limit")) == facts_constants_limit(FATTN_BF16).eps_exp);
    cr_expect_str_eq(json_string_value(json_object_get(json_object_get(p, "because"), "case")), FWD " seed=2");
    cr_expect_null(json_object_get(json_object_get(row, "constants"), "eps_exp"), "nothing widens by itself");
    cr_expect_not(json_is_true(json_object_get(row, "calibrated")));
    json_decref(row);
    add_stats(m, FWD " seed=3", 1e5, 0.7);
    row = only_row(m);
    cr_expect_float_eq(json_number_value(json_object_get(proposed(row, "eps_exp"), "value")), 2e-4, 1e-8,
                       "0.7 is no exponential's error");
    json_decref(row);
    facts_measured_destroy(m);
}

Test(calibrate, what_the_accumulator_lost_is_read_where_v_is_1)
{
    facts_measured *m = facts_measured_create();
    add(m, FWD " fill=unip check=sum_rows",
        "\"errors\":{\"o\":{\"ratio\":0.5,\"rms\":0.7,\"checked\":9,\"gates\":{\"t1\":0.5}}},"
        "\"check\":{\"runs\":1,\"compared\":9,\"ratio\":2,\"law\":\"rows of P sum to "
        "1\",\"tensor\":\"o\",\"got\":0.99,\"want\":1,\"bound\":0.005}");
    json_t *row = only_row(m);
    const json_t *p = proposed(row, "acc_pv");
    cr_assert(p);
    cr_expect_float_eq(json_number_value(json_object_get(p, "value")), 0.01, 1e-8);
    json_decref(row);
    facts_measured_destroy(m);
}

Test(calibrate, engines_types_and_passes_are_rows_of_their_own)
{
    facts_measured *m = facts_measured_create();
    add_many(m, FWD, "o", 0.74, 2);
    add_many(m, BWD, "dq", 0.74, 2);
    add_many(m, "pass=fwd dtype=f16 s=128", "o", 0.74, 2);
    const char *other = "{\"case\":\"" FWD "\",\"cudnn\":\"9.27.0\",\"sm\":90,\"backend\":\"cudnn\",\"engine\":6,\"errors\":{\"o\":"
                                           "{\"rms\":0.7,\"checked\":5,\"gates\":{}}}}";
    cr_expect(facts_measured_add(m, other, strlen(other)));
    cr_expect_eq(facts_measured_engines(m), 4);
    cr_expect_not(facts_measured_add(m, "{\"case\":", 8));
    cr_expect(facts_measured_add(m, "{}", 2));
    cr_expect_eq(facts_measured_engines(m), 4);
    facts_measured_destroy(m);
}
