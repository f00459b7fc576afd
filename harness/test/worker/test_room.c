/* Several workers on one GPU that has not memory for all of them. */
#include "running.h"

static void begin(void)
{
    set_up();
    put_build();
}

TestSuite(room, .init = begin, .fini = tear_down, .timeout = 60);

/* A worker alone has room. With company most are refused at first; each is asked again when the others have gone. */
Test(room, what_has_no_room_on_a_shared_gpu_is_asked_again_alone)
{
    static const char *const faults[] = { "room_for_one;slow", "room_for_one;slow;bye@d=40" };
    for (size_t i = 0; i < 2; i++) {
        setenv("FACTS_FAULT", faults[i], 1);
        cr_expect_eq(facts("decide '" FEW "' --device 0 --cudnn ./build -j 3 --overwrite -o r"), 0, "%s", faults[i]);
        summary s = sum_up("r");
        cr_expect_eq(s.rows, 12, "%s: %zu rows", faults[i], s.rows);
        cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 12, "%s: %zu", faults[i], s.verdicts[FACTS_VERDICT_PASS]);
        cr_expect(s.complete);
    }
}

Test(room, what_has_no_room_alone_either_is_inconclusive)
{
    setenv("FACTS_FAULT", "no_room@d=40;slow", 1);
    cr_expect_eq(facts("decide '" FEW "' --device 0 --cudnn ./build -j 3 -o r"), 3);
    summary s = sum_up("r");
    cr_expect_eq(s.rows, 12);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_INCONCLUSIVE], 1);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 11);
    cr_expect_leq(s.starts, 13);
}

/* Memory comes back when the others have gone. */
Test(room, a_worker_without_memory_to_start_in_costs_the_target_nothing)
{
    static const char *const faults[] = { "start_for_one;slow", "start_for_one;slow;bye@d=40" };
    for (size_t i = 0; i < 2; i++) {
        setenv("FACTS_FAULT", faults[i], 1);
        cr_expect_eq(facts("decide '" FEW "' --device 0 --cudnn ./build -j 3 --overwrite -o r"), 0, "%s", faults[i]);
        summary s = sum_up("r");
        cr_expect_eq(s.rows, 12, "%s: %zu rows", faults[i], s.rows);
        cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 12, "%s: %zu", faults[i], s.verdicts[FACTS_VERDICT_PASS]);
    }
}

Test(room, a_worker_without_memory_to_start_in_alone_gives_the_target_up)
{
    setenv("FACTS_FAULT", "start_for_none", 1);
    cr_expect_eq(facts("decide '" FEW "' --device 0 --cudnn ./build -j 3 -o r"), 3);
    summary s = sum_up("r");
    cr_expect_eq(s.verdicts[FACTS_VERDICT_INCONCLUSIVE], 12);
    cr_expect_str_eq(s.last_reason, "no GPU 0: out of memory");
}

/* Without -j a GPU has as many workers as its free memory allows: here one, so that no case finds company. With -j it has what is
 * asked for. */
Test(room, a_small_gpu_has_few_workers)
{
    const char *cases = "pass=fwd d=8..400:8"; /* so many that a second worker pays, however long one starts */
    setenv("FACTS_FAULT", "small_gpu;room_for_one;slow", 1);
    cr_expect_eq(facts("decide '%s' --device 0 --cudnn ./build -o r", cases), 0);
    summary s = sum_up("r");
    cr_expect_eq(s.starts, 50, "%zu", s.starts);
    cr_expect_eq(facts("decide '%s' --device 0 --cudnn ./build -j 2 --overwrite -o r", cases), 0);
    s = sum_up("r");
    cr_expect_gt(s.starts, 50, "%zu", s.starts);
}
