/* Work that is made as the answers come, against a worker that misbehaves on demand: nothing is lost, asked twice or waited for in
 * vain. */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/reader.h"
#include "record/verdicts.h"

static char folder[64];

static void set_up(void)
{
    const char *bin = getenv("FACTS_BIN");
    char worker[1024];
    snprintf(worker, sizeof worker, "%s/facts-fake-worker", bin ? bin : "bin");
    setenv("FACTS_WORKER", worker, 1);
    unsetenv("FACTS_FAULT");
    strcpy(folder, "/tmp/facts-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    char path[128];
    snprintf(path, sizeof path, "%s/w", folder);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("b: 1 {1..9}\nh: 1 {1..4}\ns: 1 {1..200}\nd: 1 {1..64}\nmask: 2 default, 1 causal\nfill: 3 gauss, 1 uniform, 1 needle\n",
          file);
    fclose(file);
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(hunt, .init = set_up, .fini = tear_down, .timeout = 120);

static int facts(const char *format, ...)
{
    char arguments[1024], command[2560];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    const char *bin = getenv("FACTS_BIN");
    snprintf(command, sizeof command, "cd %s && exec %s/facts %s >out 2>&1", folder, bin ? bin : "bin", arguments);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool says(const char *words)
{
    char path[256], text[65536];
    snprintf(path, sizeof path, "%s/out", folder);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    return strstr(text, words) != NULL;
}

typedef struct summary {
    size_t drawn, rows, starts, verdicts[FACTS_VERDICT_COUNT + 1];
    char names[400][200]; /* drawn */
    bool complete;
} summary;

static bool sum_line(void *context, const facts_line *line)
{
    summary *s = context;
    char name[1500];
    if (line->kind == FACTS_LINE_END)
        facts_slice_bool(facts_line_get(line, "complete"), &s->complete);
    s->starts += line->kind == FACTS_LINE_START;
    if (line->kind != FACTS_LINE_ROW)
        return true;
    s->rows++;
    s->verdicts[facts_verdict_parse(facts_line_get(line, "verdict"))]++;
    cr_assert(facts_slice_string(facts_line_get(line, "case"), name, sizeof name));
    if (!facts_slice_is(facts_line_get(line, "group"), "fuzz/drawn") || facts_line_get(line, "verdict_before").at)
        return true; /* the second: its worker ended badly after the row was told */
    for (size_t i = 0; i < s->drawn; i++)
        cr_assert_str_neq(s->names[i], name, "drawn twice");
    cr_assert_lt(s->drawn, 400);
    snprintf(s->names[s->drawn++], sizeof s->names[0], "%.199s", name);
    return true;
}

static const summary *sum_up(void)
{
    static summary s;
    facts_read_counts counts;
    char path[256];
    s = (summary){ 0 };
    snprintf(path, sizeof path, "%s/r.jsonl", folder);
    cr_assert(facts_record_read(path, sum_line, &s, &counts));
    cr_assert_eq(counts.bad, 0);
    return &s;
}

#define FUZZ "fuzz --device cpu --weights w -o r.jsonl "

Test(hunt, every_drawn_case_is_asked_once_by_any_number_of_workers)
{
    setenv("FACTS_FAULT", "slow@fill=uniform", 1);
    cr_expect_eq(facts(FUZZ "--cases 150 -j4"), 0);
    const summary *s = sum_up();
    cr_expect_eq(s->drawn, 150);
    cr_expect_eq(s->rows, 150);
    cr_expect(s->complete);
    cr_expect(says("150 cases drawn with seed 1: 150 pass"));
}

Test(hunt, a_case_that_kills_its_worker_is_shrunk_while_others_go_on)
{
    setenv("FACTS_FAULT", "crash@fill=needle", 1);
    cr_expect_eq(facts(FUZZ "--cases 60 -j3"), 1);
    const summary *s = sum_up();
    cr_expect_eq(s->drawn, 60);
    cr_expect_eq(s->starts, s->rows);
    cr_expect(s->complete);
    cr_expect(says("facts repro 'pass=fwd dtype=bf16 b=1 h=1 s=1 d=1 fill=needle' --device cpu"));
    cr_expect(says("1 finding;"));
}

Test(hunt, the_last_worker_may_die_of_the_last_case)
{
    setenv("FACTS_FAULT", "crash", 1);
    cr_expect_eq(facts(FUZZ "--cases 1 -j1 --where 'fill=gauss & mask=none'"), 1);
    cr_expect(says("pass=fwd dtype=bf16 b=1 h=1 s=1 d=1'"));
    cr_expect(sum_up()->complete);
}

Test(hunt, a_worker_that_leaves_by_itself_is_replaced)
{
    setenv("FACTS_FAULT", "bye@mask=causal", 1);
    cr_expect_eq(facts(FUZZ "--cases 60 -j2"), 0);
    cr_expect_eq(sum_up()->drawn, 60);
}

Test(hunt, a_bad_end_is_found_though_workers_wait_for_more)
{
    setenv("FACTS_FAULT", "exit_crash", 1);
    cr_expect_eq(facts(FUZZ "--cases 3 -j1 --where 'fill=gauss & mask=none' --steps 12"), 1);
    cr_expect(says("exit_crash"));
    const summary *s = sum_up();
    cr_expect_eq(s->verdicts[FACTS_VERDICT_PASS], 3, "those before the end was seen: %zu", s->verdicts[FACTS_VERDICT_PASS]);
    cr_expect_gt(s->verdicts[FACTS_VERDICT_EXIT_CRASH], 2);
}

Test(hunt, with_engine_all_a_death_costs_one_configuration)
{
    setenv("FACTS_FAULT", "crash_config2@fill=needle", 1);
    cr_expect_eq(facts(FUZZ "--cases 20 -j2 --with engine=all"), 1);
    cr_expect(says("crash"));
    cr_expect(says("fill=needle engine=all' --device cpu") || says("engine=all fill=needle' --device cpu"));
}

Test(hunt, a_target_that_cannot_be_asked_is_exit_3)
{
    setenv("FACTS_FAULT", "failed", 1);
    cr_expect_eq(facts(FUZZ "--cases 50"), 3);
    cr_expect(says("no driver"));
    cr_expect_eq(facts("shrink 'pass=fwd' --device cpu"), 3);
    setenv("FACTS_FAULT", "exit_before_ready", 1);
    cr_expect_eq(facts(FUZZ "--cases 50 --overwrite"), 3);
    setenv("FACTS_FAULT", "", 1);
    cr_expect_eq(facts(FUZZ "--cases 50 --resume"), 0, "what could not be asked is asked now");
    cr_expect(says("50 cases drawn with seed 1: 50 pass"));
}

Test(hunt, nothing_new_to_draw_is_said)
{
    char command[256];
    snprintf(command, sizeof command, "echo 'b: 1 {1..5}' >%s/w", folder);
    cr_assert_eq(system(command), 0);
    cr_expect_eq(facts(FUZZ "--cases 1000000"), 0);
    cr_expect_eq(sum_up()->drawn, 5);
    cr_expect(says("give nothing new any more"));
}
