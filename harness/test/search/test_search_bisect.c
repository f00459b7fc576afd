/* Bisecting: the edge of a row of made-up answers must be found, whatever is silent or fickle on
 * the way, with as few questions as a binary search needs, and the same with answers that come
 * late. */
#include <criterion/criterion.h>
#include <stdio.h>
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

static const facts_bisect_order by_verdict = { .good = 'p' },
                                by_engine = { .good = FACTS_BISECT_NO_VALUE },
                                every = { .good = 'p', .all = true };

/* The edges: "5-6" lies between versions 5 and 6. */
static const char *edges_of(const facts_bisect_result *r)
{
    static char out[200];
    int n = sprintf(out, "%s",
                    r->outcome == FACTS_BISECT_EQUAL     ? "equal"
                    : r->outcome == FACTS_BISECT_NOTHING ? "nothing"
                                                         : "");
    for (size_t i = 0; r->outcome == FACTS_BISECT_FOUND && i < r->edges; i++)
        n += sprintf(out + n, "%s%zu-%zu", i ? " " : "", r->edge[i].before, r->edge[i].after);
    sprintf(out + n, "%s", r->whole ? "" : ", not whole");
    return out;
}

Test(search_bisect, every_single_edge_is_found_with_few_questions)
{
    char row[34], expects[16];
    for (size_t edge = 1; edge < 33; edge++) {
        memset(row, 'u', sizeof row);
        memset(row, 'p', edge);
        row[33] = '\0';
        world w = { .first = row };
        facts_bisect_result r = bisect(&w, by_verdict);
        sprintf(expects, "%zu-%zu", edge - 1, edge);
        cr_assert_str_eq(edges_of(&r), expects);
        cr_assert_leq(w.questions[0], 2 + 6);
        cr_assert_eq(w.questions[1], 2, "only the two sides are asked again");
    }
}

Test(search_bisect, silent_and_fickle_versions_are_no_edge_and_what_became_good_is)
{
    static const struct {
        const char *first, *second;
        const facts_bisect_order *order;
        const char *edges, *states; /* states: silent, fickle; NULL: none */
    } rows[] = {
        { "uuuuuwpppp", NULL, &by_verdict, "5-6", NULL },
        /* Without a good end the older answer is held against the rest. */
        { "uuuuuwwww", NULL, &by_verdict, "4-5", NULL },
        { "1123", NULL, &by_engine, "1-2", NULL },
        { "ppp--uuu", NULL, &by_verdict, "2-5, not whole", "...ss..." },
        { "pp-ppppu", NULL, &by_verdict, "6-7", NULL },
        { "--ppppuuu-", NULL, &by_verdict, "5-6, not whole", NULL },
        { "ppppwwww", "ppppuwww", &by_verdict, "3-5, not whole", "....f..." },
        { "ppppppw", "ppppppp", &by_verdict, "equal, not whole", "......f" },
        { "ppww", "pp-w", &by_verdict, "1-3, not whole", NULL },
        { "ppuuupppp", NULL, &by_verdict, "equal", NULL },
        { "uuppp-uupp", NULL, &every, "1-2 4-6 7-8, not whole", NULL },
        { "pppp", NULL, &every, "equal", NULL },
        { "ppwpp", "ppppp", &every, "equal, not whole", NULL },
        { "", NULL, &every, "nothing, not whole", NULL },
        { "p", NULL, &every, "nothing, not whole", NULL },
        { "-", NULL, &by_verdict, "nothing, not whole", NULL },
        { "--p-", NULL, &by_verdict, "nothing, not whole", NULL },
        { "----", NULL, &by_verdict, "nothing, not whole", NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w = { .first = rows[i].first, .second = rows[i].second };
        facts_bisect_result r = bisect(&w, *rows[i].order);
        cr_expect_str_eq(edges_of(&r), rows[i].edges, "%s: %s", rows[i].first, edges_of(&r));
        for (size_t v = 0; rows[i].states && rows[i].states[v]; v++) {
            cr_expect_eq(r.state[v] == FACTS_BISECT_SILENT, rows[i].states[v] == 's');
            cr_expect_eq(r.state[v] == FACTS_BISECT_FLAKY, rows[i].states[v] == 'f');
        }
        if (strcmp(rows[i].first, "ppuuupppp") == 0)
            cr_expect_eq(w.questions[0], 2, "ends that are equal are all that is asked");
    }
}

Test(search_bisect, late_answers_lead_to_the_same_edge_and_no_more_are_open_than_allowed)
{
    static const char *const rows[] = {
        "pppppppppppppppppppppppuuuuuuuuuu",
        "puuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu",
        "ppp--uu-u-upp-uuw--uu",
        "uuwwpp",
        "pppp",
        "--p-u-",
        "pppppppppppppppppppppppppppppppppppppppppppppppppppppppuuuu"
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world prompt = { .first = rows[i] };
        const facts_bisect_result at_once = bisect(&prompt, by_verdict);
        char expects[200];
        snprintf(expects, sizeof expects, "%s", edges_of(&at_once));
        for (int lookahead = 1; lookahead <= 8; lookahead++) {
            world w = { .first = rows[i], .late = true };
            facts_bisect_order order = by_verdict;
            order.lookahead = lookahead;
            facts_bisect_result r = bisect(&w, order);
            cr_assert_leq(w.most_open, lookahead);
            cr_assert_str_eq(edges_of(&r), expects);
        }
    }
}

Test(search_bisect, what_is_dear_is_asked_only_where_nothing_else_is_left)
{
    world w = { .first = "ppppppuuuuuu" };
    bool dear[12] = { [5] = true, [8] = true };
    facts_bisect_order order = by_verdict;
    order.dear = dear;
    facts_bisect_result r = bisect(&w, order);
    cr_expect_str_eq(edges_of(&r), "5-6");
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

#define ROW(rest) "{\"case\":\"a\",\"backend\":\"cudnn\"," rest "}"
#define YES                                                                                        \
    ROW("\"verdict\":\"pass\",\"engine\":8,\"engines\":[{\"mode\":\"A\",\"index\":8},"             \
        "{\"mode\":\"A\",\"index\":8},{\"mode\":\"A\",\"index\":10},{\"mode\":\"B\",\"index\":3}"  \
        "]")
#define NO                                                                                         \
    ROW("\"verdict\":\"unsupported\",\"reason\":{\"class\":\"policy\",\"text\":\"why\\nnot\"}")
#define MATH "{\"case\":\"a\",\"verdict\":\"pass\",\"backend\":\"math\",\"engine\":0}"

/* Knobs are those of the configuration, and in one order. */
Test(reported, names_what_is_known_for_the_data_of_the_case)
{
#define KNOWN(such)                                                                                \
    ROW("\"verdict\":\"pass\",\"known\":[{\"id\":\"a-b\",\"title\":\"T.\",\"such_data\":" such "}" \
        "]")
    cr_expect_str_eq(read_row(KNOWN("true")).known, "T (a-b)");
    cr_expect_str_eq(read_row(KNOWN("false")).known, "");
}

Test(search_said, what_is_compared_is_what_by_names)
{
    static const struct {
        const char *row;
        facts_by by;
        const char *value;
    } rows[] = {
        { YES, FACTS_BY_VERDICT, "pass" },
        { YES, FACTS_BY_CLASS, "pass" },
        { YES, FACTS_BY_ENGINE, "engine 8" },
        { YES, FACTS_BY_ENGINES, "engines 8 10" },
        { YES, FACTS_BY_REASON, "pass" },
        { NO, FACTS_BY_CLASS, "unsupported policy" },
        { NO, FACTS_BY_ENGINES, "unsupported" },
        { NO, FACTS_BY_KNOBS, "unsupported" },
        { NO, FACTS_BY_REASON, "unsupported: why not" },
        { MATH, FACTS_BY_ENGINE, "math" },
        { MATH, FACTS_BY_KNOBS, "math" },
        { ROW("\"verdict\":\"pass\",\"engine\":8,\"engines\":[{\"mode\":\"A\",\"index\":8,"
              "\"config\":0,"
              "\"knobs\":{\"TILE_N\":2,\"KERNEL_CFG\":-1,\"TILE\":0}},{\"mode\":\"A\",\"index\":8,"
              "\"config\":1,\"knobs\":{}}]"),
          FACTS_BY_KNOBS, "engine 8 KERNEL_CFG=-1 TILE=0 TILE_N=2" },
        { ROW("\"verdict\":\"pass\",\"engine\":9,\"config\":1,\"engines\":[{\"mode\":\"A\","
              "\"index\":8,"
              "\"config\":0,\"knobs\":{\"TILE_N\":2}},{\"mode\":\"A\",\"index\":9,\"config\":1,"
              "\"knobs\":{}}]"),
          FACTS_BY_KNOBS, "engine 9 without knobs" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char value[FACTS_REPORTED_VALUE];
        facts_reported r = read_row(rows[i].row);
        cr_expect_str_eq(facts_reported_value(&r, rows[i].by, value), rows[i].value);
        cr_expect(rows[i].by != FACTS_BY_KNOBS || facts_reported_has(&r, FACTS_BY_KNOBS));
    }
    facts_reported lacks = read_row(YES);
    cr_expect_not(facts_reported_has(&lacks, FACTS_BY_KNOBS));
    cr_expect(facts_reported_has(&lacks, FACTS_BY_ENGINES));
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
