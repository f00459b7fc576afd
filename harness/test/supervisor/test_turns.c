/* Targets that take turns (facts bench), against a worker that misbehaves on demand. */
#include "../worker/running.h"
#include "commands/bench/rounds.h"

TestSuite(turns, .init = set_up, .fini = tear_down, .timeout = 300);

/* The turns of a record, in order: side and round of each, and the case's head dim. */
typedef struct turns {
    size_t count, rows;
    struct {
        int64_t side, round;
        int dim;
    } at[4096];
    size_t row_before[4096]; /* rows that stood before this turn */
} turns;

static bool add_turn(void *context, const facts_line *line)
{
    turns *t = context;
    char name[1500];
    t->rows += line->kind == FACTS_LINE_ROW;
    if (line->kind != FACTS_LINE_TIME || t->count == 4096)
        return true;
    t->row_before[t->count] = t->rows;
    facts_json_int(facts_line_get(line, "side"), &t->at[t->count].side);
    facts_json_int(facts_line_get(line, "round"), &t->at[t->count].round);
    facts_json_string(facts_line_get(line, "case"), name, sizeof name);
    t->at[t->count++].dim = dim_of(name);
    return true;
}

static const turns *turns_of(const char *name)
{
    static turns t;
    char path[256];
    facts_read_counts counts;
    t = (turns){ 0 };
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert(facts_record_read(path, add_turn, &t, &counts));
    cr_expect_eq(counts.bad, 0);
    return &t;
}

Test(turns, two_targets_are_timed_in_turns_and_in_the_opposite_order_every_other_round)
{
    cr_expect_eq(facts("bench 'pass=fwd d=40,64' --with engine=auto --device cpu --twice -o r"), 0);
    const turns *t = turns_of("r");
    cr_expect_eq(t->rows, 4, "a row of each case and side: %zu", t->rows);
    cr_assert_geq(t->count, 2 * 2 * FACTS_ROUNDS_LEAST);
    for (size_t i = 0; i < t->count; i++) {
        const size_t place = i % 2;
        cr_expect_eq(t->at[i].side, t->at[i].round % 2 ? 1 - (int64_t)place : (int64_t)place,
                     "turn %zu", i);
        cr_expect_eq(t->at[i].dim, t->row_before[i] == 2 ? 40 : 64,
                     "turn %zu: the case's rows are there first, the next one's not", i);
    }
    cr_expect(sum_up("r").complete);
}

Test(turns, rounds_can_be_counted)
{
    cr_expect_eq(
        facts("bench 'pass=fwd d=40,64' --with engine=auto --device cpu --twice --rounds 3 -o r"),
        0);
    cr_expect_eq(turns_of("r")->count, 2 * 2 * 3);
}

Test(turns, a_death_in_a_turn_is_a_row_and_the_others_go_on)
{
    setenv("FACTS_FAULT", "crash_turn@d=40", 1);
    facts("bench 'pass=fwd d=40,64' --with engine=auto --device cpu --twice -o r");
    const turns *t = turns_of("r");
    cr_expect_eq(t->rows, 6,
                 "two rows of each case, and of the first the deaths of both sides: %zu", t->rows);
    cr_assert_geq(t->count, 2 * FACTS_ROUNDS_LEAST);
    for (size_t i = 0; i < t->count; i++)
        cr_expect_eq(t->at[i].dim, 64);
    cr_expect_eq(sum_up("r").verdicts[FACTS_VERDICT_CRASH], 2);
}

Test(turns, nothing_that_can_be_timed_is_exit_3)
{
    setenv("FACTS_FAULT", "no_turn", 1);
    cr_expect_eq(facts("bench 'pass=fwd d=40' --with engine=auto --device cpu -o r"), 3);
    cr_expect(output_says("nothing was timed"));
    put_build();
    cr_expect_eq(facts("bench 'pass=fwd d=40' --device h100-sxm --cudnn ./build --overwrite -o r"),
                 2);
    cr_expect(output_says("a described device runs nothing"));
}

Test(turns, the_interval_of_a_median_is_of_order_statistics)
{
    double few[5] = { 1, 2, 3, 4, 5 }, six[6] = { 6, 1, 5, 2, 4, 3 }, many[16], same[16];
    for (int i = 0; i < 16; i++) {
        many[i] = 100 + (i * 7 % 16);
        same[i] = 100;
    }
    cr_expect_float_eq(facts_median_uncertainty(few, 5), 1, 0,
                       "5 values have no interval of 95 %%");
    cr_expect_float_eq(facts_median_uncertainty(six, 6), 2.5 / 3.5, 1e-12, "6 have: all of them");
    cr_expect_float_eq(facts_median_uncertainty(many, 16), 4.5 / 107.5, 1e-12,
                       "16: from the fourth to the thirteenth");
    cr_expect_float_eq(facts_median_uncertainty(same, 16), 0, 0);
}
