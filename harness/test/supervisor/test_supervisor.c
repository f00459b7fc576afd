/* The promises of the supervisor, kept against a worker that misbehaves on demand (fake_worker.c).
 */
#include <signal.h>

#include "../worker/running.h"

TestSuite(supervisor, .init = set_up, .fini = tear_down, .timeout = 300);

Test(supervisor, every_planned_case_has_exactly_one_row)
{
    cr_expect_eq(facts("decide '" MANY "' --device cpu -j 3 -o r"), 0);
    summary s = sum_up("r");
    cr_expect_eq(s.rows, 200);
    cr_expect_eq(s.names, 200);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 200);
    cr_expect_eq(s.starts, 200);
    cr_expect(s.ended && s.complete);
}

#define DECIDE_FEW "decide '" FEW "' --device cpu "

/* A reference that is late is no hang of the engine. */
Test(supervisor, resume_asks_again_what_was_late_through_us_and_nothing_more)
{
    check_run(&(faulty_run){ "late_reference@d=40", DECIDE_FEW "-j 1 --timeout 3", 3, 12, 1,
                             FACTS_VERDICT_INCONCLUSIVE, "the reference was not ready in time" });
    setenv("FACTS_FAULT", "refuse@d=40", 1);
    cr_expect_eq(facts(DECIDE_FEW "--resume -o r"), 0, "what was asked again counts alone");
    summary s = sum_up("r");
    cr_expect(s.rows == 13 && s.names == 12 && s.complete, "%zu rows", s.rows);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_UNSUPPORTED], 1);
    setenv("FACTS_FAULT", "exit_before_ready", 1);
    cr_expect_eq(facts(DECIDE_FEW "--resume -o r"), 0);
    cr_expect_eq(sum_up("r").rows, 13, "it has its answer");
}

/* Changes FOLDER/r, or makes it, with a line of shell. */
static void change(const char *line)
{
    char command[256];
    snprintf(command, sizeof command, "cd %s && %s", folder, line);
    cr_assert_eq(system(command), 0);
}

Test(supervisor, a_row_with_an_unknown_verdict_is_asked_again)
{
    cr_expect_eq(facts(DECIDE_FEW "-o r"), 0);
    change("sed -i '0,/\"verdict\":\"pass\"/s//\"verdict\":\"banana\"/' r");
    cr_expect_eq(sum_up("r").verdicts[FACTS_VERDICT_COUNT], 1);
    cr_expect_eq(facts(DECIDE_FEW "--resume -o r"), 0);
    summary s = sum_up("r");
    cr_expect(s.rows == 13 && s.names == 12 && s.verdicts[FACTS_VERDICT_PASS] == 12, "%zu rows",
              s.rows);
}

/* Has this process handled each SIGINT that it got? */
static bool has_handled_signals(pid_t pid)
{
    char path[64], line[256];
    unsigned long long pending = ~0ull;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "ShdPnd: %llx", &pending);
    if (file)
        fclose(file);
    return !(pending >> (SIGINT - 1) & 1);
}

/* If it waited for what is in flight, the suite's time-out would end it: a case has 1000 seconds
 * here. */
Test(supervisor, a_second_signal_ends_it_at_once)
{
    setenv("FACTS_FAULT", "hang", 1);
    pid_t child = start(DECIDE_FEW "-j 2 --timeout 1000 -o r");
    until_a_case_starts("r");
    kill(child, SIGINT);
    while (!has_handled_signals(child))
        nap_ms(5);
    nap_ms(200);
    cr_expect_eq(waitpid(child, NULL, WNOHANG), 0, "the first signal waits for what is in flight");
    kill(child, SIGINT);
    cr_expect_eq(finish(child), 130);
    cr_expect_eq(sum_up("r").rows, 0, "no verdict on what we killed ourselves");
}

static int facts_on_40_kB(void)
{
    char command[1024];
    snprintf(command, sizeof command,
             "cd %s && ulimit -f 40 && exec %s/facts decide '" MANY
             "' --device cpu -o r >/dev/null 2>&1",
             folder, getenv("FACTS_BIN"));
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(supervisor, what_no_record_can_take_is_not_asked)
{
    put("go", "");
    setenv("FACTS_FAULT", "hold@d=1600", 1);
    cr_expect_eq(facts_on_40_kB(), 3);
    cr_expect_eq(lines_with("held", "d=1600"), 0, "it went on to a case whose row has no place");
}

/* A record that is there is neither overwritten unasked, nor asked again, nor gone on with by
 * another suite. */
Test(supervisor, what_cannot_be_asked_is_one_line_and_its_exit)
{
    static const struct {
        const char *command;
        int status;
        const char *says;
    } rows[] = {
        { DECIDE_FEW "-o r", 0, "" },
        { DECIDE_FEW "-o r", 2, "--resume continues it" },
        { DECIDE_FEW "--resume -o r", 0, "" },
        { "decide 'pass=bwd d=64' --device cpu --resume -o r", 2, "holds another suite" },
        { DECIDE_FEW "-o /nowhere/r", 3, "/nowhere/r: its folder does not exist" },
        { "decide 'pass=fwd d=64' --where 'd.qk>100' --device cpu -o s", 5, "" },
        { "decide 'pass=fwd dd=64' --device cpu -o s", 2, "" },
        { "decide 'pass=fwd d=64' --device nowhere -o s", 2, "" },
        { "frobnicate", 2, "" },
        { "compile 'pass=fwd d=64' --device cpu -o s", 2, "--plan-dir DIR is missing" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(facts("%s", rows[i].command), rows[i].status, "%s", rows[i].command);
        cr_expect(output_says(rows[i].says), "%s", rows[i].command);
        setenv("FACTS_FAULT", "exit_before_ready", 1);
    }
    cr_expect_eq(sum_up("r").rows, 12);
    setenv("FACTS_WORKER", "/nowhere/worker", 1);
    cr_expect_eq(facts("decide 'pass=fwd d=64' --device cpu -o s"), 3);
    cr_expect(output_says("/nowhere/worker"));
}

Test(supervisor, two_runs_never_write_one_record)
{
    char who[32];
    setenv("FACTS_FAULT", "hang", 1);
    pid_t first = start("decide '" MANY "' --device cpu -j 1 -o r");
    until_a_case_starts("r");
    snprintf(who, sizeof who, "(process %d)", (int)first);
    unsetenv("FACTS_FAULT");
    cr_expect_eq(facts("decide '" MANY "' --device cpu --resume -o r"), 3);
    cr_expect(output_says("another run is writing this record"));
    cr_expect(output_says(who));
    kill(first, SIGKILL);
    finish(first);
}

Test(supervisor, fail_fast_stops_at_the_first_finding)
{
    setenv("FACTS_FAULT", "wrong@d=48;slow", 1);
    cr_expect_eq(facts("decide '" MANY "' --device cpu -j 1 --fail-fast -o r"), 1);
    summary s = sum_up("r");
    cr_expect_lt(s.rows, 10);
    cr_expect_not(s.complete);
}

Test(supervisor, a_record_of_a_newer_facts_is_refused_in_one_line)
{
    put("newer", "{\"run\":{\"id\":\"x\",\"facts\":\"9.0.0\",\"format\":2}}\n{\"case\":\"pass=fwd "
                 "dtype=bf16\",\"verdict\":\"splendid\"}\n");
    cr_expect_eq(facts(DECIDE_FEW "-o newer --resume"), 2);
    cr_expect_eq(facts("calibrate --from newer"), 2);
    cr_expect(output_says("newer: was written by a newer FACTS (format 2; this version reads 1)"));
    cr_expect_eq(facts(DECIDE_FEW "-o a"), 0);
    put("same", "{\"run\":{\"id\":\"x\",\"facts\":\"9.0.0\",\"format\":1}}\n{\"end\":{\"run\":"
                "\"x\",\"complete\":true}}\n");
    cr_expect_eq(facts("merge -o both same a --force"), 0,
                 "a newer program that writes the same lines is read");
}

Test(supervisor, a_half_written_record_is_not_called_whole)
{
    cr_expect_eq(facts(DECIDE_FEW "-o torn"), 0);
    change("truncate -s -150 torn");
    cr_expect_eq(facts("merge -o out2 torn"), 4);
    cr_expect(output_says("could not be parsed"));
    cr_expect_eq(facts(DECIDE_FEW "-o torn --resume"), 0);
    summary s = sum_up("torn");
    cr_expect(s.names == 12 && s.bad == 0, "%zu names, %zu bad", s.names, s.bad);
    cr_expect_eq(facts("merge -o out3 torn"), 0);
}

static bool find_groups(void *context, const facts_line *line)
{
    facts_span groups = facts_line_get(line, "groups");
    if (line->kind == FACTS_LINE_RUN && groups.at)
        snprintf(context, 256, "%.*s", (int)groups.length, groups.at);
    return true;
}

Test(supervisor, the_run_says_why_each_group_exists)
{
    char path[256], reported[256] = "";
    facts_read_counts counts;
    put("two.cases", "name: one\nwhy: the \"first\"\npass=fwd d=8,16\nname: two\npass=fwd d=24\n");
    cr_expect_eq(facts("decide two.cases --device cpu -o r"), 0);
    snprintf(path, sizeof path, "%s/r", folder);
    cr_assert(facts_record_read(path, find_groups, reported, &counts));
    cr_expect_str_eq(reported, "{\"one\":\"the \\\"first\\\"\",\"two\":\"\"}");
}

/* ---- thresholds
 * ------------------------------------------------------------------------------------------------------------------
 */

typedef struct changes {
    char last[16];
    size_t rows, changes;
} changes;

static bool see_threshold(void *context, const facts_line *line)
{
    changes *c = context;
    char name[1500], now[16] = "";
    if (line->kind != FACTS_LINE_ROW ||
        !facts_json_string(facts_line_get(line, "case"), name, sizeof name))
        return true;
    const char *at = strstr(name, " rescale=");
    if (at)
        snprintf(now, sizeof now, "%.*s", (int)strcspn(at + 9, " "), at + 9);
    c->changes += c->rows++ > 0 && strcmp(now, c->last) != 0;
    memcpy(c->last, now, sizeof now);
    return true;
}

static changes run_thresholds(int jobs, const char *cases)
{
    char path[128];
    facts_read_counts counts;
    changes c = { .rows = 0 };
    facts("decide 'pass=fwd d=8..64:8 %s' --device cpu -j %d --overwrite -o r", cases, jobs);
    snprintf(path, sizeof path, "%s/r", folder);
    cr_assert(facts_record_read(path, see_threshold, &c, &counts));
    cr_expect(sum_up("r").complete);
    return c;
}

/* A worker starts again for another threshold of rescale=: whatever their order, cases of one
 * threshold are asked together. */
Test(supervisor, a_worker_keeps_its_threshold_as_long_as_it_has_cases)
{
    const changes few = run_thresholds(1, "rescale=auto,8,2"),
                  many = run_thresholds(1, "rescale=1,2,3,4,5,6,7,8,9,10,11,auto");
    cr_expect(few.rows == 24 && few.changes == 2, "%zu rows, %zu changes", few.rows, few.changes);
    cr_expect(many.rows == 96 && many.changes >= 2, "%zu rows", many.rows);
}

/* Also of those that are asked again, as their worker died. */
Test(supervisor, every_case_of_every_threshold_has_its_row)
{
    setenv("FACTS_FAULT", "crash_config1@d=40", 1);
    for (int jobs = 1; jobs <= 3; jobs++)
        cr_expect_eq(run_thresholds(jobs, "engine=all rescale=auto,8,2").rows, 24 * 4, "%d", jobs);
}
