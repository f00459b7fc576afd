/* The store of answers behind `facts decide`: what is the same is not asked again, what differs in anything is. */
#include "../worker/running.h"

#include <sys/stat.h>

#define COUNT 12

static void shell(const char *format, ...)
{
    char command[2048], line[2304];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    snprintf(line, sizeof line, "cd %s && %s", folder, command);
    cr_assert_eq(system(line), 0, "%s", command);
}

#define DEVICE(multiprocessors)                                                                                                    \
    "{\"name\":\"some-gpu\",\"source\":\"a test\",\"read_with\":\"\",\"date\":\"2026-11-21\",\"device\":{\"deviceVer\":900,"       \
    "\"multiProcessorCount\":" multiprocessors "}}"

static void begin(void)
{
    char worker[256], store[256];
    set_up();
    shell("cp %s facts-worker", getenv("FACTS_WORKER"));
    snprintf(worker, sizeof worker, "%s/facts-worker", folder);
    setenv("FACTS_WORKER", worker, 1);
    snprintf(store, sizeof store, "%s/answers.sqlite", folder);
    setenv("FACTS_STORE", store, 1);
    put("device.json", DEVICE("132"));
    put_build();
}

static void end(void)
{
    unsetenv("FACTS_STORE");
    tear_down();
}

TestSuite(stored, .init = begin, .fini = end, .timeout = 60);

/* How many rows of a record came from the store; all rows are there and it is whole, whoever answered. */
static size_t stored_in(const char *record)
{
    char path[256], line[8192];
    size_t stored = 0;
    summary s = sum_up(record);
    cr_expect(s.complete && s.names == COUNT && s.bad == 0, "%s: %zu rows", record, s.rows);
    snprintf(path, sizeof path, "%s/%s", folder, record);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof line, file))
        stored += strstr(line, "\"stored\":\"2") != NULL;
    fclose(file);
    cr_expect_eq(stored + s.starts, s.rows, "%s: %zu stored, %zu started, %zu rows", record, stored, s.starts, s.rows);
    return stored;
}

/* Decides FEW; how many of them were asked of a worker. */
static size_t asked(const char *record, const char *arguments)
{
    cr_expect_eq(facts("decide '" FEW "' --cudnn ./build --device ./device.json --overwrite -o %s %s", record, arguments), 0);
    return COUNT - stored_in(record);
}

Test(stored, what_was_answered_is_not_asked_again)
{
    cr_expect_eq(asked("a", ""), COUNT);
    cr_expect_eq(asked("b", ""), 0);
    shell("grep '^{\"case\"' a | sed 's/,\"run\":\"[^\"]*\"//' >rows-a");
    shell("grep '^{\"case\"' b | sed 's/,\"run\":\"[^\"]*\"//; s/,\"stored\":\"[^\"]*\"//' >rows-b");
    shell("sort rows-a >sorted-a && sort rows-b | cmp - sorted-a");
    shell("grep -q '^{\"target\":' b");
}

Test(stored, fresh_asks_again_and_keeps_it)
{
    cr_expect_eq(asked("a", ""), COUNT);
    cr_expect_eq(asked("b", "--fresh"), COUNT);
    cr_expect_eq(asked("c", ""), 0);
}

Test(stored, another_task_device_worker_or_library_is_another_question)
{
    cr_expect_eq(asked("a", ""), COUNT);
    cr_expect_eq(asked("plan", "--plan"), COUNT);
    cr_expect_eq(asked("explain", "--explain"), COUNT);
    put("device.json", DEVICE("114"));
    cr_expect_eq(asked("device", ""), COUNT);
    put("device.json", DEVICE("132"));
    cr_expect_eq(asked("same", ""), 0, "the description as it was");
    shell("printf x >>facts-worker");
    cr_expect_eq(asked("worker", ""), COUNT);
    put("build/libcudnn_graph.so.9", "other");
    cr_expect_eq(asked("library", ""), COUNT);
    put("build/libcudnn_graph.so.9", "graph");
    cr_expect_eq(asked("as-it-was", ""), 0);
}

Test(stored, a_build_is_known_by_what_it_holds)
{
    cr_expect_eq(asked("a", ""), COUNT);
    shell("cp -r build other && mv build gone && mv other build");
    cr_expect_eq(asked("b", ""), 0);
}

Test(stored, what_is_new_is_asked_beside_what_is_kept)
{
    cr_expect_eq(facts("decide 'pass=fwd d=8..48:8' --cudnn ./build --device ./device.json -o few"), 0);
    cr_expect_eq(asked("all", ""), COUNT - 6);
}

Test(stored, a_fault_or_a_script_is_never_kept)
{
    setenv("FACTS_FAULT", "unsupported@d=16", 1);
    cr_expect_eq(asked("fault", ""), COUNT);
    unsetenv("FACTS_FAULT");
    cr_expect_eq(asked("a", ""), COUNT);
    put("script", "#!/bin/sh\nexec ./facts-worker\n");
    shell("chmod +x script");
    setenv("FACTS_WORKER", "./script", 1);
    cr_expect_eq(asked("b", ""), COUNT);
}

Test(stored, a_broken_store_is_set_aside_and_costs_one_line)
{
    shell("printf 'no database at all, but long enough to be looked at as one' >answers.sqlite");
    cr_expect_eq(asked("a", ""), COUNT);
    cr_expect(output_says("answers.sqlite.aside"));
    shell("test -f answers.sqlite.aside");
    cr_expect_eq(asked("b", ""), 0);
}

Test(stored, without_a_place_for_it_everything_is_asked)
{
    setenv("FACTS_STORE", "/proc/nothing/answers.sqlite", 1);
    cr_expect_eq(asked("a", ""), COUNT);
    cr_expect_eq(asked("b", ""), COUNT);
    cr_expect(!output_says("sqlite"));
}

Test(stored, expectations_are_judged_anew)
{
    cr_expect_eq(asked("a", ""), COUNT);
    put("refused.cases", "name: refused\nwhy: a test\nexpect: unsupported a reason\n" FEW "\n");
    cr_expect_eq(facts("decide refused.cases --cudnn ./build --device ./device.json -o b"), 1);
    cr_expect_eq(stored_in("b"), COUNT);
    shell("test $(grep -c '\"met\":false' b) = 12");
}

Test(stored, a_record_of_a_newer_facts_is_refused_in_one_line)
{
    put("newer",
        "{\"run\":{\"id\":\"x\",\"facts\":\"9.0.0\",\"format\":2}}\n{\"case\":\"pass=fwd dtype=bf16\",\"verdict\":\"splendid\"}\n");
    cr_expect_eq(facts("merge -o out2 newer"), 2);
    cr_expect_eq(facts("decide '" FEW "' --cudnn ./build --device ./device.json -o newer --resume"), 2);
    cr_expect_eq(facts("calibrate --from newer"), 2);
    shell("test $(grep -c 'newer: was written by a newer FACTS (format 2; this one reads 1)' out) = 3");
    cr_expect_eq(asked("a", ""), COUNT);
    shell("grep -q '\"format\":1,' a");
    put("same", "{\"run\":{\"id\":\"x\",\"facts\":\"9.0.0\",\"format\":1}}\n{\"end\":{\"run\":\"x\",\"complete\":true}}\n");
    cr_expect_eq(facts("merge -o out3 same a --force"), 0, "a newer program that writes the same lines is read");
}

Test(stored, a_half_written_record_is_not_called_whole)
{
    cr_expect_eq(asked("a", ""), COUNT);
    shell("head -c $(($(wc -c <a) - 150)) a >torn");
    cr_expect_eq(facts("merge -o out2 torn"), 4);
    cr_expect(output_says("could not be parsed"));
    cr_expect_eq(facts("decide '" FEW "' --cudnn ./build --device ./device.json -o torn --resume"), 0);
    summary s = sum_up("torn");
    cr_expect(s.names == COUNT && s.bad == 1, "%zu names, %zu bad", s.names, s.bad);
}

Test(stored, a_killed_run_goes_on_from_record_and_store)
{
    cr_expect_eq(facts("decide 'pass=fwd d=8..48:8' --cudnn ./build --device ./device.json -o few"), 0);
    shell("printf '' >a");
    cr_expect_eq(facts("decide '" FEW "' --cudnn ./build --device ./device.json -o a --resume"), 0);
    cr_expect_eq(stored_in("a"), 6);
    cr_expect_eq(facts("decide '" FEW "' --cudnn ./build --device ./device.json -o a --resume"), 0);
    cr_expect_eq(sum_up("a").rows, COUNT, "nothing twice");
}
