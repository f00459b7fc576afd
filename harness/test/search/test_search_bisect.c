/* Bisecting: the edge of a row of made-up answers must be found, whatever is silent or fickle on
 * the way, with as few questions as a binary search needs, and the same with answers that come
 * late. */
#include <criterion/criterion.h>
#include <string.h>

#include "search/bisect.h"
#include "search/reported.h"

#define WAIT_ROUNDS 1000

/* One letter a version: what it says the first time and the second; '-' says nothing. */
typedef struct world {
    const char *first, *second; /* second NULL: as the first */
    bool late;
    bool asked[2][FACTS_BISECT_MOST], delivered[2][FACTS_BISECT_MOST];
    int questions[2], open;
    int most_open;
} world;

static bool ask(void *context, size_t version, int attempt, int *value)
{
    world *w = context;
    const char *reported = attempt == 2 && w->second ? w->second : w->first;
    cr_assert_lt(version, strlen(w->first));
    if (!w->asked[attempt - 1][version]) {
        w->asked[attempt - 1][version] = true;
        w->questions[attempt - 1]++;
        w->open++;
    }
    if (w->open > w->most_open)
        w->most_open = w->open;
    if (w->late && !w->delivered[attempt - 1][version])
        return false;
    *value = reported[version] == '-' ? FACTS_BISECT_NO_VALUE : reported[version];
    return true;
}

static facts_bisect_result bisect(world *w, facts_bisect_order order)
{
    facts_bisect_result result;
    order.versions = strlen(w->first);
    order.context = w;
    order.ask = ask;
    for (int round = 0; round < WAIT_ROUNDS; round++) {
        w->open = 0;
        facts_bisect(&result, &order);
        if (result.outcome != FACTS_BISECT_WAITING)
            return result;
        cr_assert(w->late, "nothing is late and it waits");
        memcpy(w->delivered, w->asked, sizeof w->asked);
    }
    cr_assert_fail("it waits for ever");
    return result;
}

static void expect_edge(const facts_bisect_result *r, size_t before, size_t after, bool whole)
{
    cr_assert_eq(r->outcome, FACTS_BISECT_FOUND);
    cr_assert_eq(r->edges, 1);
    cr_assert_eq(r->edge[0].before, before, "edge after %zu", r->edge[0].before);
    cr_assert_eq(r->edge[0].after, after, "edge before %zu", r->edge[0].after);
    cr_assert_eq(r->whole, whole);
}

static const facts_bisect_order by_verdict = { .good = 'p' },
                                by_engine = { .good = FACTS_BISECT_NO_VALUE },
                                every = { .good = 'p', .all = true };

Test(search_bisect, every_single_edge_is_found_with_few_questions)
{
    char row[34];
    for (size_t edge = 1; edge < 33; edge++) {
        memset(row, 'u', sizeof row);
        memset(row, 'p', edge);
        row[33] = '\0';
        world w = { .first = row };
        facts_bisect_result r = bisect(&w, by_verdict);
        expect_edge(&r, edge - 1, edge, true);
        cr_assert_leq(w.questions[0], 2 + 6);
        cr_assert_eq(w.questions[1], 2, "only the two sides are asked again");
    }
}

Test(search_bisect, what_became_good_is_an_edge_too)
{
    world w = { .first = "uuuuuwpppp" };
    facts_bisect_result r = bisect(&w, by_verdict);
    expect_edge(&r, 5, 6, true);
}

Test(search_bisect, without_a_good_end_the_older_answer_is_held_against_the_rest)
{
    world refused = { .first = "uuuuuwwww" }, engines = { .first = "1123" };
    facts_bisect_result r = bisect(&refused, by_verdict);
    expect_edge(&r, 4, 5, true);
    r = bisect(&engines, by_engine);
    expect_edge(&r, 1, 2, true);
}

Test(search_bisect, silent_versions_are_passed_over_and_named)
{
    world w = { .first = "ppp--uuu" };
    facts_bisect_result r = bisect(&w, by_verdict);
    expect_edge(&r, 2, 5, false);
    cr_assert_eq(r.state[3], FACTS_BISECT_SILENT);
    cr_assert_eq(r.state[4], FACTS_BISECT_SILENT);
    world beside = { .first = "pp-ppppu" };
    r = bisect(&beside, by_verdict);
    expect_edge(&r, 6, 7, true);
}

Test(search_bisect, silent_ends_give_way_to_their_neighbours)
{
    world w = { .first = "--ppppuuu-" };
    facts_bisect_result r = bisect(&w, by_verdict);
    expect_edge(&r, 5, 6, false);
    cr_assert_eq(r.first, 2);
    cr_assert_eq(r.last, 8);
}

Test(search_bisect, a_version_that_changes_its_mind_is_never_an_edge)
{
    world w = { .first = "ppppwwww", .second = "ppppuwww" };
    facts_bisect_result r = bisect(&w, by_verdict);
    expect_edge(&r, 3, 5, false);
    cr_assert_eq(r.state[4], FACTS_BISECT_FLAKY);
    world end = { .first = "ppppppw", .second = "ppppppp" };
    r = bisect(&end, by_verdict);
    cr_assert_eq(r.outcome, FACTS_BISECT_EQUAL);
    cr_assert_eq(r.state[6], FACTS_BISECT_FLAKY);
    cr_assert_not(r.whole);
}

Test(search_bisect, an_edge_that_cannot_be_repeated_is_none)
{
    world w = { .first = "ppww", .second = "pp-w" };
    facts_bisect_result r = bisect(&w, by_verdict);
    expect_edge(&r, 1, 3, false);
}

Test(search_bisect, equal_ends_are_said_and_nothing_more_is_asked)
{
    world w = { .first = "ppuuupppp" };
    facts_bisect_result r = bisect(&w, by_verdict);
    cr_assert_eq(r.outcome, FACTS_BISECT_EQUAL);
    cr_assert(r.whole);
    cr_assert_eq(w.questions[0], 2);
}

Test(search_bisect, all_finds_every_edge)
{
    world w = { .first = "uuppp-uupp" };
    facts_bisect_result r = bisect(&w, every);
    cr_assert_eq(r.outcome, FACTS_BISECT_FOUND);
    cr_assert_eq(r.edges, 3);
    cr_assert_eq(r.edge[0].before, 1);
    cr_assert_eq(r.edge[1].before, 4);
    cr_assert_eq(r.edge[1].after, 6);
    cr_assert_eq(r.edge[2].after, 8);
    cr_assert_not(r.whole, "one version did not answer");
    world alike = { .first = "pppp" };
    r = bisect(&alike, every);
    cr_assert_eq(r.outcome, FACTS_BISECT_EQUAL);
    cr_assert(r.whole);
    world fickle = { .first = "ppwpp", .second = "ppppp" };
    r = bisect(&fickle, every);
    cr_assert_eq(r.outcome, FACTS_BISECT_EQUAL, "the only edges were one version's whim");
    cr_assert_not(r.whole);
}

Test(search_bisect, with_one_answer_or_none_there_is_nothing_to_compare)
{
    const char *rows[] = { "", "p", "-", "--p-", "----" };
    for (size_t i = 0; i < 5; i++)
        for (int all = 0; all < 2; all++) {
            world w = { .first = rows[i] };
            facts_bisect_result r = bisect(&w, all ? every : by_verdict);
            cr_assert_eq(r.outcome, FACTS_BISECT_NOTHING, "\"%s\"", rows[i]);
            cr_assert_not(r.whole);
        }
}

Test(search_bisect, late_answers_lead_to_the_same_edge)
{
    static const char *const rows[] = { "pppppppppppppppppppppppuuuuuuuuuu",
                                        "puuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu",
                                        "ppp--uu-u-upp-uuw--uu",
                                        "uuwwpp",
                                        "pppp",
                                        "--p-u-" };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world prompt = { .first = rows[i] };
        facts_bisect_result expects = bisect(&prompt, by_verdict);
        for (int lookahead = 1; lookahead <= 8; lookahead++) {
            world w = { .first = rows[i], .late = true };
            facts_bisect_order order = by_verdict;
            order.lookahead = lookahead;
            facts_bisect_result r = bisect(&w, order);
            cr_assert_eq(r.outcome, expects.outcome);
            cr_assert_eq(r.edges, expects.edges);
            cr_assert_eq(r.edge[0].before, expects.edge[0].before);
            cr_assert_eq(r.edge[0].after, expects.edge[0].after);
            cr_assert_eq(r.whole, expects.whole);
        }
    }
}

Test(search_bisect, no_more_questions_are_open_than_allowed)
{
    char row[130];
    memset(row, 'p', 100);
    memset(row + 100, 'u', 29);
    row[129] = '\0';
    for (int lookahead = 1; lookahead <= 8; lookahead++) {
        world w = { .first = row, .late = true };
        facts_bisect_order order = by_verdict;
        order.lookahead = lookahead;
        bisect(&w, order);
        cr_assert_leq(w.most_open, lookahead);
    }
}

Test(search_bisect, what_is_dear_is_asked_only_where_nothing_else_is_left)
{
    world w = { .first = "ppppppuuuuuu" };
    bool dear[12] = { [5] = true, [8] = true };
    facts_bisect_order order = by_verdict;
    order.dear = dear;
    facts_bisect_result r = bisect(&w, order);
    expect_edge(&r, 5, 6, true);
    cr_assert_not(w.asked[0][8]);
    cr_assert(w.asked[0][5], "between 4 and 6 there is no other");
}

static facts_reported read_row(const char *text)
{
    facts_line line;
    facts_reported reported = FACTS_REPORTED_NOTHING;
    facts_line_parse(&line, text, strlen(text));
    facts_reported_row(&reported, &line);
    return reported;
}

static void expect_value(const facts_reported *reported, facts_by by, const char *expects)
{
    char value[FACTS_REPORTED_VALUE];
    cr_expect_str_eq(facts_reported_value(reported, by, value), expects);
}

Test(search_said, what_is_compared_is_what_by_names)
{
    facts_reported yes = read_row("{\"case\":\"a\",\"verdict\":\"pass\",\"backend\":\"cudnn\","
                                  "\"engine\":8,\"engines\":[{\"mode\":\"A\",\"index\":8},"
                                  "{\"mode\":\"A\",\"index\":8},{\"mode\":\"A\",\"index\":10},{"
                                  "\"mode\":\"B\",\"index\":3}]}");
    expect_value(&yes, FACTS_BY_VERDICT, "pass");
    expect_value(&yes, FACTS_BY_CLASS, "pass");
    expect_value(&yes, FACTS_BY_ENGINE, "engine 8");
    expect_value(&yes, FACTS_BY_ENGINES, "engines 8 10");
    expect_value(&yes, FACTS_BY_REASON, "pass");
    facts_reported no = read_row("{\"case\":\"a\",\"verdict\":\"unsupported\",\"backend\":"
                                 "\"cudnn\",\"reason\":{\"class\":\"policy\","
                                 "\"text\":\"why\\nnot\"}}");
    expect_value(&no, FACTS_BY_CLASS, "unsupported policy");
    expect_value(&no, FACTS_BY_ENGINES, "unsupported");
    expect_value(&no, FACTS_BY_REASON, "unsupported: why not");
    facts_reported math =
        read_row("{\"case\":\"a\",\"verdict\":\"pass\",\"backend\":\"math\",\"engine\":0}");
    expect_value(&math, FACTS_BY_ENGINE, "math");
}

Test(search_said, knobs_are_those_of_the_configuration_and_in_one_order)
{
    facts_reported first = read_row(
        "{\"case\":\"a\",\"verdict\":\"pass\",\"backend\":\"cudnn\",\"engine\":8,\"engines\":["
        "{\"mode\":\"A\",\"index\":8,\"config\":0,\"knobs\":{\"TILE_N\":2,\"KERNEL_CFG\":-1,"
        "\"TILE\":0}},"
        "{\"mode\":\"A\",\"index\":8,\"config\":1,\"knobs\":{}}]}");
    expect_value(&first, FACTS_BY_KNOBS, "engine 8 KERNEL_CFG=-1 TILE=0 TILE_N=2");
    facts_reported second =
        read_row("{\"case\":\"a\",\"verdict\":\"pass\",\"backend\":\"cudnn\",\"engine\":9,"
                 "\"config\":1,\"engines\":["
                 "{\"mode\":\"A\",\"index\":8,\"config\":0,\"knobs\":{\"TILE_N\":2}},"
                 "{\"mode\":\"A\",\"index\":9,\"config\":1,\"knobs\":{}}]}");
    expect_value(&second, FACTS_BY_KNOBS, "engine 9 without knobs");
    cr_expect(facts_reported_has(&second, FACTS_BY_KNOBS));
    facts_reported lacks = read_row("{\"case\":\"a\",\"verdict\":\"pass\",\"backend\":\"cudnn\","
                                    "\"engine\":8,\"engines\":[{\"mode\":\"A\",\"index\":8}]}");
    cr_expect_not(facts_reported_has(&lacks, FACTS_BY_KNOBS));
    cr_expect(facts_reported_has(&lacks, FACTS_BY_ENGINES));
    facts_reported no =
        read_row("{\"case\":\"a\",\"verdict\":\"unsupported\",\"backend\":\"cudnn\"}");
    expect_value(&no, FACTS_BY_KNOBS, "unsupported");
    facts_reported math =
        read_row("{\"case\":\"a\",\"verdict\":\"pass\",\"backend\":\"math\",\"engine\":0}");
    expect_value(&math, FACTS_BY_KNOBS, "math");
    cr_expect(facts_reported_has(&no, FACTS_BY_KNOBS) && facts_reported_has(&math, FACTS_BY_KNOBS));
}

Test(search_said, what_could_not_be_asked_or_told_is_no_answer)
{
    static const struct {
        const char *row;
        bool answers;
    } rows[] = { { "{\"case\":\"a\",\"verdict\":\"pass\"}", true },
                 { "{\"case\":\"a\",\"verdict\":\"crash\"}", true },
                 { "{\"case\":\"a\",\"verdict\":\"inconclusive\"}", false },
                 { "{\"case\":\"a\",\"verdict\":\"mistrusted\"}", false },
                 { "{\"case\":\"a\"}", false } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        facts_reported reported = read_row(rows[i].row);
        cr_expect_eq(facts_reported_answers(&reported), rows[i].answers, "%s", rows[i].row);
    }
}
