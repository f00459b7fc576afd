/* How a worker ends, and what its row says: deaths, hangs, starts that fail, lack of memory. The
 * worker is fake_worker.c. */
#include "../worker/running.h"

TestSuite(worker_ends, .init = set_up, .fini = tear_down, .timeout = 300);

#define DECIDE_FEW "decide '" FEW "' --device cpu "
#define DECIDE_ONE "decide 'pass=fwd d=40' --device cpu "
#define DECIDE_ALL "decide 'pass=fwd d=64 engine=all' --device cpu " /* four configurations */
#define CRASH FACTS_VERDICT_CRASH
#define INCONCLUSIVE FACTS_VERDICT_INCONCLUSIVE
#define EXIT_CRASH FACTS_VERDICT_EXIT_CRASH

Test(worker_ends, a_death_costs_the_row_in_flight_and_is_explained_by_its_last_words)
{
    static const faulty_run runs[] = {
        { "crash@d=40", DECIDE_FEW "-j 2", 1, 12, 1, CRASH, "SIGSEGV: fake worker: about to die" },
        { "kill@d=40", DECIDE_FEW "-j 2", 1, 12, 1, CRASH, "SIGKILL" },
        { "exit@d=40", DECIDE_FEW "-j 2", 1, 12, 1, CRASH, "status 7" },
        { "partial@d=40", DECIDE_FEW "-j 2", 1, 12, 1, CRASH, "SIGABRT" },
        { "nonsense@d=40", DECIDE_FEW "-j 2", 1, 12, 1, CRASH, "its reply was no row" },
        { "long@d=40", DECIDE_FEW "-j 2", 1, 12, 1, CRASH, "longer than" },
        { "crash_config0", DECIDE_ALL, 1, 4, 1, CRASH },
        { "crash_config1", DECIDE_ALL, 1, 4, 1, CRASH },
        { "crash_config3", DECIDE_ALL, 1, 4, 1, CRASH },
    };
    CHECK_RUNS(runs);
}

/* Noise, a leave, a start in the middle that has the time of a start, an engine that has all of its
 * time after a reference that took long; what died before it began is asked of another worker. */
Test(worker_ends, what_is_no_fault_of_the_engine_costs_nothing)
{
    static const faulty_run runs[] = {
        { "noise_at_start;noise;flood@d=16", DECIDE_FEW, 0, 12 },
        { "bye@d=16;bye@d=48", DECIDE_FEW "-j 1", 0, 12 },
        { "again", DECIDE_FEW "-j 1", 0, 12 },
        { "bye_config0", DECIDE_ALL, 0, 4 },
        { "bye_config1", DECIDE_ALL, 0, 4 },
        { "bye_config3", DECIDE_ALL, 0, 4 },
        { "bye_config0;bye_config1", DECIDE_ALL, 0, 4 },
        { "long_start@d=40", DECIDE_ONE "--timeout 3", 0, 1 },
        { "long_reference@d=40", DECIDE_ONE "--timeout 6", 0, 1 },
    };
    CHECK_RUNS(runs);
}

Test(worker_ends, a_hang_is_killed_and_a_bad_end_after_the_last_row_is_a_finding)
{
    static const faulty_run runs[] = {
        { "hang@d=40", DECIDE_FEW "--timeout 3", 1, 12, 1, FACTS_VERDICT_HANG },
        { "exit_crash", DECIDE_FEW "-j 1 --timeout 3", 1, 12, 1, EXIT_CRASH },
        { "exit_status", DECIDE_FEW "-j 1 --timeout 3", 1, 12, 1, EXIT_CRASH },
        { "exit_hang", DECIDE_FEW "-j 1 --timeout 3", 1, 12, 1, EXIT_CRASH },
        { "exit_crash;wrong", DECIDE_ONE, 1, 1, 1, FACTS_VERDICT_WRONG }, /* no better */
    };
    CHECK_RUNS(runs);
}

/* A driver that is stuck after a hang stops everybody: what cannot be killed then is no hang of its own. */
Test(worker_ends, a_worker_that_cannot_be_killed_after_a_hang_is_no_second_hang)
{
    setenv("FACTS_FAULT", "hang@d=16;undead@d=40", 1);
    cr_expect_eq(facts(DECIDE_FEW "-j 1 --timeout 3 -o r"), 1);
    cr_expect_eq(sum_up("r").verdicts[FACTS_VERDICT_HANG], 1);
    cr_expect(lines_with("r", "after a hang of another case") == 1);
}

/* Lack of memory, a channel that breaks, and a worker that cannot start again, where the driver may
 * be what fails. */
Test(worker_ends, a_worker_that_lacks_something_says_nothing_of_the_engine_and_is_asked_again)
{
    static const faulty_run runs[] = {
        { "no_memory@d=40", DECIDE_FEW, 3, 12, 1, INCONCLUSIVE, NULL,
          "the worker ran out of memory" },
        { "no_channel@d=40", DECIDE_FEW, 3, 12, 1, INCONCLUSIVE, NULL,
          "a request or an answer of the worker could not be read or written" },
        { "crash_start@d=40", DECIDE_FEW, 3, 12, 1, INCONCLUSIVE,
          "the worker ended when it started again" },
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        check_run(&runs[i]);
        unsetenv("FACTS_FAULT");
        cr_expect_eq(facts(DECIDE_FEW "--resume -o r"), 0, "%s", runs[i].fault);
        cr_expect_eq(sum_up("r").verdicts[FACTS_VERDICT_PASS], 12);
    }
}

/* The libraries were replaced while the run goes on, and a worker ended: its successor loads the
 * new ones. A worker that never is ready leaves its words. */
Test(worker_ends, a_target_that_cannot_be_asked_further_is_given_up_with_its_reason)
{
    static const faulty_run runs[] = {
        { "later_version;bye@d=40", DECIDE_FEW "-j 1", 3, 12, 7, INCONCLUSIVE,
          "cuDNN changed during the run: from 9.20.0 to 9.19.1",
          "leave a build as it is while it is asked" },
        { "later_file;bye@d=40", DECIDE_FEW "-j 1", 3, 12, 7, INCONCLUSIVE,
          "a library changed during the run: /a/libcudnn.so.9",
          "leave a build as it is while it is asked" },
        { "exit_before_ready", DECIDE_FEW, 3, 12, 12, INCONCLUSIVE, "fake worker: no library" },
        { "failed", DECIDE_FEW, 3, 12, 12, INCONCLUSIVE, "no driver", "install one" },
    };
    CHECK_RUNS(runs);
}

/* A second worker that has run other cases would die as the first did, if the case itself is the
 * cause. The fake worker refuses each case whose request has "fresh". */
Test(worker_ends, a_case_after_again_and_no_other_is_asked_fresh)
{
    static const faulty_run runs[] = {
        { "again@d=40;refuse_fresh", DECIDE_FEW "-j 1", 0, 12, 1, FACTS_VERDICT_UNSUPPORTED },
        { "again@d=40;refuse_fresh@d=40", DECIDE_FEW "-j 1", 0, 12, 1, FACTS_VERDICT_UNSUPPORTED },
    };
    cr_expect_eq(check_run(&runs[0]).starts, 13);
    check_run(&runs[1]);
}
