/* The promises of the supervisor, kept against a worker that misbehaves on demand (fake_worker.c).
 */
#include <fcntl.h>
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

/* Process ids of the children of `parent`. */
static size_t children_of(pid_t parent, pid_t *out, size_t capacity)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    size_t n = 0;
    char *end = text;
    for (long pid; n < capacity && (pid = strtol(end, &end, 10)) > 0;)
        out[n++] = (pid_t)pid;
    return n;
}

/* Each kill meets a worker in the middle of a case, and a second one wherever it is. */
Test(supervisor, kill_9_of_workers_costs_one_row_each)
{
    setenv("FACTS_FAULT", "hold@d=160;hold@d=480;hold@d=800;hold@d=1120;hold@d=1440", 1);
    pid_t child = start("run '" MANY "' --device cpu -j 2 -o r");
    pid_t workers[8];
    size_t kills = 0;
    for (int d = 160; d <= 1440; d += 320) {
        char held[16], row[64];
        snprintf(held, sizeof held, "d=%d.", d);
        snprintf(row, sizeof row, "{\"case\":\"pass=fwd dtype=bf16 d=%d\"", d);
        while (!lines_with("held", held) &&
               !lines_with("r", row)) /* a row: the kill before met it */
            nap_ms(5);
        for (size_t n = children_of(child, workers, 8); n > 0; n--)
            kills += kill(workers[n - 1], SIGKILL) == 0;
    }
    put("go", "");
    cr_expect_eq(finish(child), 1);
    summary s = sum_up("r");
    const size_t dead = s.verdicts[FACTS_VERDICT_CRASH] + s.verdicts[FACTS_VERDICT_EXIT_CRASH];
    cr_expect_eq(s.rows, 200, "%zu rows", s.rows);
    cr_expect_eq(s.names, 200);
    cr_expect(dead >= 5 && dead <= kills, "%zu rows of %zu kills", dead, kills);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS] + dead, 200);
}

/* Gone, or a zombie that nobody has buried yet. */
static bool is_dead(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return true;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    const char *state = got > 0 ? strrchr(text, ')') : NULL;
    return !state || state[2] == 'Z' || state[2] == 'X';
}

Test(supervisor, kill_9_of_the_supervisor_then_resume_gives_the_rows_of_an_unbroken_run)
{
    setenv("FACTS_FAULT", "slow;hold@d=1600", 1);
    pid_t workers[8];
    for (size_t i = 0; i < 4; i++) {
        pid_t child = start("decide '" MANY "' --device cpu -j 2 %s -o r", i ? "--resume" : "");
        until_lines("r", "\"verdict\"", 3 + 17 * i);
        size_t n = children_of(child, workers, 8);
        kill(child, SIGKILL);
        finish(child);
        for (size_t w = 0; w < n; w++)
            while (!is_dead(workers[w])) /* one that lives on is the suite's time-out */
                nap_ms(5);
    }
    cr_expect_lt(sum_up("r").rows, 200);
    setenv("FACTS_FAULT", "slow", 1);
    cr_expect_eq(facts("decide '" MANY "' --device cpu -j 2 --resume -o r"), 0);
    summary s = sum_up("r");
    cr_expect_eq(s.rows, 200, "%zu rows", s.rows);
    cr_expect_eq(s.names, 200);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 200);
    cr_expect(s.complete);
    cr_expect_eq(s.bad, 0);
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

Test(supervisor, an_interrupt_keeps_what_is_there_and_resume_does_the_rest)
{
    static const int signals[] = { SIGINT, SIGTERM };
    static const char *const records[] = { "r0", "r1" };
    for (int i = 0; i < 2; i++) {
        char go[128];
        snprintf(go, sizeof go, "%s/go", folder);
        unlink(go);
        setenv("FACTS_FAULT", "slow;hold@d=64", 1);
        pid_t child = start("decide '" MANY "' --device cpu -j 2 -o r%d", i);
        until_lines(records[i], "d=64\"", 1);
        kill(child, signals[i]);
        put("go", "");
        cr_expect_eq(finish(child), 130);
        summary s = sum_up(records[i]);
        cr_expect_eq(s.rows, s.starts, "%zu rows of %zu starts", s.rows, s.starts);
        cr_expect_lt(s.rows, 200);
        cr_expect(s.ended && !s.complete);
        unsetenv("FACTS_FAULT");
        cr_expect_eq(facts("decide '" MANY "' --device cpu -j 2 --resume -o r%d", i), 0);
        cr_expect_eq(sum_up(records[i]).rows, 200);
    }
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

Test(supervisor, a_full_disk_stops_it_with_the_path_and_loses_nothing)
{
    cr_expect_eq(facts_on_40_kB(), 3);
    summary s = sum_up("r");
    cr_expect(s.rows > 10 && s.rows < 200, "%zu rows", s.rows);
    cr_expect_leq(s.bad, 1, "only the last line may be torn");
    cr_expect_eq(facts("decide '" MANY "' --device cpu --resume -o r"), 0);
    s = sum_up("r");
    cr_expect(s.rows == 200 && s.names == 200, "%zu rows", s.rows);
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

Test(supervisor, shards_are_disjoint_and_merge_to_the_whole)
{
    cr_expect_eq(facts("decide '" MANY "' --device cpu --shard 1/3 -o r1"), 0);
    cr_expect_eq(facts("decide '" MANY "' --device cpu --shard 2/3 -o r2"), 0);
    cr_expect_eq(facts("merge -o early r1 r2"), 4);
    cr_expect(output_says("shard 3/3 of none on cpu"));
    cr_expect_eq(facts("decide '" MANY "' --device cpu --shard 3/3 -o r3"), 0);
    cr_expect_eq(facts("merge -o all r1 r2 r3"), 0);
    summary s = sum_up("all");
    cr_expect_eq(s.rows, 200);
    cr_expect_eq(s.names, 200);
    cr_expect(s.complete);
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
