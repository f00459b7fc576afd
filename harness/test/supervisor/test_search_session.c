/* Work that is made as the answers come, against a worker that misbehaves on demand: nothing is
 * lost, asked twice or waited for in vain. */
#include "../worker/running.h"

static void begin(void)
{
    set_up();
    put("w", "draw 100\nb=1..9 h=1..4 s=1..200 d=1..64\nmask=default@2,causal\n"
             "fill=gauss@3,uniform,needle\n");
}

TestSuite(search, .init = begin, .fini = tear_down, .timeout = 300);

typedef struct search {
    summary all;
    size_t drawn;
    char names[400][200]; /* drawn */
} search;

static bool hunt_line(void *context, const facts_line *line)
{
    search *h = context;
    char name[1500];
    sum_line(&h->all, line);
    if (line->kind != FACTS_LINE_ROW ||
        !facts_json_is(facts_line_get(line, "group"), "fuzz/drawn") ||
        facts_line_get(line, "verdict_before").at)
        return true; /* the second of a case: its worker ended badly after the row was told */
    cr_assert(facts_json_string(facts_line_get(line, "case"), name, sizeof name));
    for (size_t i = 0; i < h->drawn; i++)
        cr_assert_str_neq(h->names[i], name, "drawn twice");
    cr_assert_lt(h->drawn, 400);
    snprintf(h->names[h->drawn++], sizeof h->names[0], "%.199s", name);
    return true;
}

static const search *hunted(void)
{
    static search h;
    facts_read_counts counts;
    char path[256];
    h = (search){ 0 };
    snprintf(path, sizeof path, "%s/r.jsonl", folder);
    cr_assert(facts_record_read(path, hunt_line, &h, &counts));
    cr_assert_eq(counts.bad, 0);
    return &h;
}

#define FUZZ "fuzz --device cpu --draws w -o r.jsonl "

/* A search with a fault, how it ends, how many cases it drew, and what it says. */
typedef struct faulty_search {
    const char *fault, *options;
    int status;
    size_t drawn;
    const char *says, *too;
} faulty_search;

static const search *check_search(const faulty_search *x)
{
    forget_runs();
    setenv("FACTS_FAULT", x->fault, 1);
    cr_expect_eq(facts(FUZZ "%s --overwrite", x->options), x->status, "%s", x->fault);
    const search *h = hunted();
    cr_expect_eq(h->drawn, x->drawn, "%s: %zu drawn", x->fault, h->drawn);
    cr_expect(h->all.complete, "%s", x->fault);
    cr_expect(!x->says || output_says(x->says), "%s", x->fault);
    cr_expect(!x->too || output_says(x->too), "%s", x->fault);
    return h;
}

/* Also by a worker that dies of the last case, or leaves by itself, while others go on. */
Test(search, every_drawn_case_is_asked_once_and_what_kills_its_worker_is_shrunk)
{
    static const faulty_search searches[] = {
        { "slow@fill=uniform", "--cases 150 -j4", 0, 150, "150 cases drawn with seed 1: 150 pass" },
        { "bye@mask=causal", "--cases 60 -j2", 0, 60 },
        { "crash", "--cases 1 -j1 --where 'fill=gauss & mask=none'", 1, 1,
          "pass=fwd dtype=bf16 b=1 h=1 s=1 d=1'" },
        { "crash@fill=needle", "--cases 60 -j3", 1, 60,
          "facts repro 'pass=fwd dtype=bf16 b=1 h=1 s=1 d=1 fill=needle' --device cpu",
          "1 finding, " },
    };
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
        const search *h = check_search(&searches[i]);
        cr_expect(i > 0 || h->all.rows == 150);
        cr_expect_eq(h->all.starts, h->all.rows, "%s", searches[i].fault);
    }
}

Test(search, a_bad_end_is_found_though_workers_wait_for_more)
{
    const search *h = check_search(
        &(faulty_search){ "exit_crash", "--cases 3 -j1 --where 'fill=gauss & mask=none' --steps 12",
                          1, 3, "exit_crash" });
    cr_expect_eq(h->all.verdicts[FACTS_VERDICT_PASS], 3, "those before the end was seen: %zu",
                 h->all.verdicts[FACTS_VERDICT_PASS]);
    cr_expect_gt(h->all.verdicts[FACTS_VERDICT_EXIT_CRASH], 2);
}

Test(search, with_engine_all_a_death_costs_one_configuration)
{
    static const char *const faults[] = { "crash_config2@fill=needle",
                                          "crash_config3@fill=needle" }; /* the last one */
    for (size_t i = 0; i < 2; i++) {
        setenv("FACTS_FAULT", faults[i], 1);
        cr_expect_eq(facts(FUZZ "--cases 20 -j2 --with engine=all --overwrite"), 1, "%s",
                     faults[i]);
        cr_expect(output_says("crash"));
        cr_expect(output_says("fill=needle engine=all' --device cpu") ||
                  output_says("engine=all fill=needle' --device cpu"));
    }
}

Test(search, a_target_that_cannot_be_asked_is_exit_3)
{
    setenv("FACTS_FAULT", "failed", 1);
    cr_expect_eq(facts(FUZZ "--cases 50"), 3);
    cr_expect(output_says("no driver"));
    cr_expect_eq(facts("shrink 'pass=fwd' --device cpu"), 3);
    setenv("FACTS_FAULT", "exit_before_ready", 1);
    cr_expect_eq(facts(FUZZ "--cases 50 --overwrite"), 3);
    setenv("FACTS_FAULT", "", 1);
    cr_expect_eq(facts(FUZZ "--cases 50 --resume"), 0, "what could not be asked is asked now");
    cr_expect(output_says("50 cases drawn with seed 1: 50 pass"));
}

Test(search, nothing_new_to_draw_is_said)
{
    put("w", "draw 5\nb=1..5\n");
    check_search(&(faulty_search){ "", "--cases 1000000", 0, 5, "allows no further new case" });
}
