/* Several workers on one GPU that has not memory for all of them. */
#include "running.h"

static void begin(void)
{
    set_up();
    put_build();
}

TestSuite(room, .init = begin, .fini = tear_down, .timeout = 300);

/* Several workers of a `run` start at once, for its cases are expected to be long. The second of a
 * `decide` starts when the first is ready, if that was soon: such a test may not wait for company.
 */

static void remove_marks(void)
{
    char command[192];
    snprintf(command, sizeof command, "cd %s && rm -f born.* met.* asked.* lost", folder);
    cr_assert_eq(system(command), 0);
}

/* Every configuration has its row and passes, whatever the fault. The number of questions. */
static size_t expect_rows_pass(const char *fault, const char *command, size_t rows)
{
    remove_marks();
    setenv("FACTS_FAULT", fault, 1);
    cr_expect_eq(facts(command), 0, "%s", fault);
    summary s = sum_up("r");
    cr_expect_eq(s.rows, rows, "%s: %zu rows", fault, s.rows);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], rows, "%s: %zu", fault,
                 s.verdicts[FACTS_VERDICT_PASS]);
    cr_expect(s.complete);
    return s.starts;
}

static void expect_all_pass(const char *fault, const char *command)
{
    expect_rows_pass(fault, command, 12);
}

/* Some found no room at first. */
static void expect_all_pass_at_last(const char *fault, const char *command)
{
    const size_t starts = expect_rows_pass(fault, command, 12);
    cr_expect_gt(starts, 12, "%s: %zu", fault, starts);
}

/* A worker alone has room. With company most are refused at first; each is asked again when the
 * others have gone. */
Test(room, what_has_no_room_on_a_shared_gpu_is_asked_again_alone)
{
    static const char *const faults[] = { "room_for_one;meet", "room_for_one;meet;bye@d=40" };
    for (size_t i = 0; i < 2; i++)
        expect_all_pass_at_last(faults[i],
                                "run '" FEW "' --device 0 --cudnn ./build -j 3 --overwrite -o r");
}

/* The memory was another worker's, which has ended when the refusal is read. */
Test(room, what_had_no_room_beside_a_worker_that_has_gone_is_asked_again)
{
    expect_all_pass_at_last("refuse_late@d=40",
                            "run '" FEW "' --device 0 --cudnn ./build -j 2 -o r");
}

/* The first of a case's configurations may find no room where the last one does. */
Test(room, every_configuration_of_a_case_without_room_is_asked_again_alone)
{
    expect_rows_pass("refuse_late@d=40",
                     "run '" FEW " engine=all' --device 0 --cudnn ./build -j 2 -o r", 48);
}

Test(room, what_has_no_room_alone_either_is_inconclusive)
{
    setenv("FACTS_FAULT", "no_room@d=40;meet", 1);
    cr_expect_eq(facts("run '" FEW "' --device 0 --cudnn ./build -j 3 -o r"), 3);
    summary s = sum_up("r");
    cr_expect_eq(s.rows, 12);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_INCONCLUSIVE], 1);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 11);
    cr_expect_eq(s.starts, 13, "%zu", s.starts);
}

/* Memory comes back when the others have gone. */
Test(room, a_worker_without_memory_to_start_in_costs_the_target_nothing)
{
    static const char *const faults[] = { "start_for_one;slow", "start_for_one;slow;bye@d=40" };
    for (size_t i = 0; i < 2; i++)
        expect_all_pass(faults[i],
                        "decide '" FEW "' --device 0 --cudnn ./build -j 3 --overwrite -o r");
}

Test(room, a_worker_without_memory_to_start_in_alone_gives_the_target_up)
{
    setenv("FACTS_FAULT", "start_for_none", 1);
    cr_expect_eq(facts("decide '" FEW "' --device 0 --cudnn ./build -j 3 -o r"), 3);
    summary s = sum_up("r");
    cr_expect_eq(s.verdicts[FACTS_VERDICT_INCONCLUSIVE], 12);
    cr_expect_str_eq(s.last_reason, "no GPU 0: out of memory");
}

/* Another process takes the memory between two workers, for less than a minute. */
Test(room, a_gpu_that_others_fill_for_a_while_is_waited_for)
{
    expect_all_pass("start_after_pauses;bye@d=40",
                    "decide '" FEW "' --device 0 --cudnn ./build -j 1 -o r");
}

/* Without -j a GPU has as many workers as its free memory allows: here one, so that no case finds
 * company. With -j it has what is asked for. */
Test(room, a_small_gpu_has_few_workers)
{
    setenv("FACTS_FAULT", "small_gpu;room_for_one;slow", 1);
    cr_expect_eq(facts("decide 'pass=fwd d=8..400:8' --device 0 --cudnn ./build -o r"), 0);
    summary s = sum_up("r");
    cr_expect_eq(s.starts, 50, "%zu", s.starts);
    setenv("FACTS_FAULT", "small_gpu;room_for_one;slow_first;bye@d=16;meet_later",
           1); /* two workers follow the first */
    remove_marks();
    cr_expect_eq(facts("decide '" MANY "' --device 0 --cudnn ./build -j 2 --overwrite -o r"), 0);
    s = sum_up("r");
    cr_expect_gt(s.starts, 200, "%zu: there was one worker at a time", s.starts);
}

/* ---- several GPUs, one target
 * ---------------------------------------------------------------------------------------------- */

/* Two, as far as CUDA_VISIBLE_DEVICES says. */
static void begin_two(void)
{
    begin();
    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
}

TestSuite(gpus, .init = begin_two, .fini = tear_down, .timeout = 300);

Test(gpus, all_gpus_share_the_cases_of_one_target)
{
    setenv("FACTS_FAULT", "in_step;gpu1_late", 1);
    cr_expect_eq(facts("run '" FEW "' --device all --cudnn ./build -j 2 -o r"), 0);
    summary s = sum_up("r");
    cr_expect_eq(s.rows, 12);
    cr_expect_eq(s.names, 12, "no case is asked on each of them");
    cr_expect(s.complete);
    cr_expect(s.on_gpu[0] == 6 && s.on_gpu[1] == 6, "%zu %zu", s.on_gpu[0], s.on_gpu[1]);
    cr_expect_eq(facts("run '" FEW "' --device 0 --cudnn ./build -j 2 --resume -o r"), 0);
    s = sum_up("r");
    cr_expect_eq(s.rows, 12, "rows of all are those of one GPU");
}

Test(gpus, the_next_free_worker_takes_the_next_case)
{
    setenv("FACTS_FAULT", "gpu1_last", 1);
    cr_expect_eq(facts("run '" FEW "' --device all --cudnn ./build -j 2 -o r"), 0);
    summary s = sum_up("r");
    cr_expect_eq(s.names, 12);
    cr_expect(s.on_gpu[0] == 11 && s.on_gpu[1] == 1, "%zu %zu", s.on_gpu[0], s.on_gpu[1]);
}

Test(gpus, workers_are_spread_over_all_of_them)
{
    setenv("FACTS_FAULT", "room_for_one;in_step", 1);
    cr_expect_eq(facts("run '" FEW "' --device all --cudnn ./build -j 2 -o r"), 0);
    summary s = sum_up("r");
    cr_expect_eq(s.starts, 12, "%zu: nobody finds company", s.starts);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 12);
    cr_expect_eq(s.on_gpu[1], 6);
}

Test(gpus, what_has_no_room_is_asked_again_alone_on_one_of_them)
{
    static const char *const faults[] = { "room_for_one;meet", "room_for_one;meet;bye@d=40" };
    for (size_t i = 0; i < 2; i++)
        expect_all_pass_at_last(faults[i],
                                "run '" FEW "' --device all --cudnn ./build -j 5 --overwrite -o r");
    expect_all_pass("start_for_one;slow",
                    "decide '" FEW "' --device all --cudnn ./build -j 5 --overwrite -o r");
}

Test(gpus, gpus_of_different_kinds_are_refused_before_anything_is_asked)
{
    setenv("FACTS_FAULT", "gpu1_other;gpu1_late", 1);
    cr_expect_eq(facts("run '" FEW "' --device all --cudnn ./build -j 2 -o r"), 3);
    summary s = sum_up("r");
    cr_expect_eq(s.starts, 0, "%zu", s.starts);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_INCONCLUSIVE], 12);
    cr_expect_str_eq(s.last_reason,
                     "--device all: the GPUs are of different kinds, GPU 1 is fake-80");
    cr_expect(output_says("on fake-90: --device all: the GPUs are of different kinds, GPU 1 is "
                          "fake-80; give numbers"));
}

Test(gpus, one_visible_gpu_is_all_of_them)
{
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    cr_expect_eq(facts("decide '" FEW "' --device all --cudnn ./build -o r"), 0);
    cr_expect_eq(sum_up("r").rows, 12);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    cr_expect_eq(facts("decide '" FEW "' --device all --cudnn ./build --overwrite -o r"), 3);
    cr_expect(output_says("--device all: no GPU here"));
    setenv("CUDA_VISIBLE_DEVICES", "0,1,-1,2", 1);
    cr_expect_eq(facts("decide '" FEW "' --device all,0 --cudnn ./build --overwrite -o r"), 2);
    cr_expect(output_says("--device: all is every GPU already; leave the numbers out"));
}
