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

#define RUN "run '" FEW "' --device 0 --cudnn ./build "
#define DECIDE "decide '" FEW "' --device 0 --cudnn ./build "

/* A worker alone has room. With company most are refused at first; each is asked again when the
 * others have gone, also each configuration of a case, and also if the memory was that of a worker
 * which has ended when the refusal is read. */
Test(room, what_has_no_room_on_a_shared_gpu_is_asked_again_alone)
{
    static const faulty_run runs[] = {
        { "room_for_one;meet", RUN "-j 3", 0, 12 },
        { "room_for_one;meet;bye@d=40", RUN "-j 3", 0, 12 },
        { "refuse_late@d=40", RUN "-j 2", 0, 12 },
    };
    for (size_t i = 0; i < 3; i++)
        cr_expect_gt(check_run(&runs[i]).starts, 12, "%s", runs[i].fault);
    check_run(&(faulty_run){ "refuse_late@d=40",
                             "run '" FEW " engine=all' --device 0 --cudnn ./build -j 2", 0, 48 });
}

Test(room, a_case_that_needs_the_gpu_alone_meets_nobody)
{
    const summary s = check_run(&(faulty_run){
        "room_for_one;slow", "run 'pass=fwd d=8..96:8 memory=8' --device 0 --cudnn ./build -j 3", 0,
        12 });
    cr_expect_eq(s.starts, 12, "%zu", s.starts);
}

Test(room, what_has_no_room_alone_either_is_inconclusive)
{
    const summary s = check_run(
        &(faulty_run){ "no_room@d=40;meet", RUN "-j 3", 3, 12, 1, FACTS_VERDICT_INCONCLUSIVE });
    cr_expect_eq(s.starts, 13, "%zu", s.starts);
}

/* Memory comes back when the others have gone, or another process has: it is waited for, for less
 * than a minute. */
Test(room, a_worker_without_memory_to_start_in_costs_the_target_nothing_unless_it_is_alone)
{
    static const faulty_run runs[] = {
        { "start_for_one;slow", DECIDE "-j 3", 0, 12 },
        { "start_for_one;slow;bye@d=40", DECIDE "-j 3", 0, 12 },
        { "start_after_pauses;bye@d=40", DECIDE "-j 1", 0, 12 },
        { "start_for_none", DECIDE "-j 3", 3, 12, 12, FACTS_VERDICT_INCONCLUSIVE,
          "no GPU 0: out of memory" },
    };
    CHECK_RUNS(runs);
}

/* Without -j a GPU has as many workers as its free memory allows: here one, so that no case finds
 * company. With -j it has what is asked for. */
Test(room, a_small_gpu_has_few_workers)
{
    static const faulty_run few = { "small_gpu;room_for_one;slow",
                                    "decide 'pass=fwd d=8..400:8' --device 0 --cudnn ./build", 0,
                                    50 },
                            two = { "small_gpu;room_for_one;slow_first;bye@d=16;meet_later",
                                    "decide '" MANY "' --device 0 --cudnn ./build -j 2", 0, 200 };
    cr_expect_eq(check_run(&few).starts, 50);
    cr_expect_gt(check_run(&two).starts, 200, "there was one worker at a time");
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

#define RUN_ALL "run '" FEW "' --device all --cudnn ./build "

Test(gpus, all_gpus_share_the_cases_of_one_target)
{
    summary s = check_run(&(faulty_run){ "in_step;gpu1_late", RUN_ALL "-j 2", 0, 12 });
    cr_expect_eq(s.names, 12, "no case is asked on each of them");
    cr_expect(s.on_gpu[0] == 6 && s.on_gpu[1] == 6, "%zu %zu", s.on_gpu[0], s.on_gpu[1]);
    cr_expect_eq(facts(RUN "-j 2 --resume -o r"), 0);
    cr_expect_eq(sum_up("r").rows, 12, "rows of all are those of one GPU");
}

Test(gpus, the_next_free_worker_takes_the_next_case)
{
    const summary s = check_run(&(faulty_run){ "gpu1_last", RUN_ALL "-j 2", 0, 12 });
    cr_expect(s.on_gpu[0] == 11 && s.on_gpu[1] == 1, "%zu %zu", s.on_gpu[0], s.on_gpu[1]);
}

Test(gpus, workers_are_spread_over_all_of_them)
{
    const summary s = check_run(&(faulty_run){ "room_for_one;in_step", RUN_ALL "-j 2", 0, 12 });
    cr_expect_eq(s.starts, 12, "%zu: nobody finds company", s.starts);
    cr_expect_eq(s.on_gpu[1], 6);
}

Test(gpus, what_has_no_room_is_asked_again_alone_on_one_of_them)
{
    static const faulty_run runs[] = {
        { "room_for_one;meet", RUN_ALL "-j 5", 0, 12 },
        { "room_for_one;meet;bye@d=40", RUN_ALL "-j 5", 0, 12 },
    };
    for (size_t i = 0; i < 2; i++)
        cr_expect_gt(check_run(&runs[i]).starts, 12, "%s", runs[i].fault);
    check_run(&(faulty_run){ "start_for_one;slow",
                             "decide '" FEW "' --device all --cudnn ./build -j 5", 0, 12 });
}

Test(gpus, gpus_of_different_kinds_are_refused_before_anything_is_asked)
{
    const faulty_run run = { "gpu1_other;gpu1_late",
                             RUN_ALL "-j 2",
                             3,
                             12,
                             12,
                             FACTS_VERDICT_INCONCLUSIVE,
                             "--device all: the GPUs are of different kinds, GPU 1 is fake-80",
                             "on fake-90: --device all: the GPUs are of different kinds, GPU 1 is "
                             "fake-80; give numbers" };
    cr_expect_eq(check_run(&run).starts, 0);
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
