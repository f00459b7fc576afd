/* How a worker ends, and what its row says: deaths, hangs, starts that fail, lack of memory. The
 * worker is fake_worker.c. */
#include <sys/stat.h>

#include "../worker/running.h"

TestSuite(worker_ends, .init = set_up, .fini = tear_down, .timeout = 300);

/* Ways to die in the middle of a case, and how the row must read. */
static const struct {
    const char *fault;
    facts_verdict verdict;
    const char *reason;
} deaths[] = {
    { "crash@d=40", FACTS_VERDICT_CRASH, "SIGSEGV: fake worker: about to die" },
    { "kill@d=40", FACTS_VERDICT_CRASH, "SIGKILL" },
    { "exit@d=40", FACTS_VERDICT_CRASH, "status 7" },
    { "partial@d=40", FACTS_VERDICT_CRASH, "SIGABRT" },
    { "nonsense@d=40", FACTS_VERDICT_CRASH, "its reply was no row" },
    { "long@d=40", FACTS_VERDICT_CRASH, "longer than" },
};

Test(worker_ends, a_death_costs_the_row_in_flight_and_no_other)
{
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++) {
        setenv("FACTS_FAULT", deaths[i].fault, 1);
        cr_expect_eq(facts("decide '" FEW "' --device cpu -j 2 --overwrite -o r"), 1, "%s",
                     deaths[i].fault);
        summary s = sum_up("r");
        cr_expect_eq(s.rows, 12, "%s: %zu rows", deaths[i].fault, s.rows);
        cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 11, "%s", deaths[i].fault);
        cr_expect_eq(s.verdicts[deaths[i].verdict], 1, "%s", deaths[i].fault);
    }
}

Test(worker_ends, a_death_is_explained_by_its_signal_and_its_last_words)
{
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++) {
        setenv("FACTS_FAULT", deaths[i].fault, 1);
        cr_expect_eq(facts("decide 'pass=fwd d=40' --device cpu --overwrite -o r"), 1);
        summary s = sum_up("r");
        cr_expect(strstr(s.last_reason, deaths[i].reason) != NULL, "%s: %s", deaths[i].fault,
                  s.last_reason);
    }
}

Test(worker_ends, noise_and_floods_do_no_harm)
{
    setenv("FACTS_FAULT", "noise_at_start;noise;flood@d=16", 1);
    cr_expect_eq(facts("decide '" FEW "' --device cpu -o r"), 0);
    summary s = sum_up("r");
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 12);
    cr_expect_eq(s.bad, 0);
}

Test(worker_ends, a_hang_that_ignores_term_is_killed_and_becomes_a_row)
{
    setenv("FACTS_FAULT", "hang@d=40", 1);
    cr_expect_eq(facts("decide '" FEW "' --device cpu --timeout 3 -o r"), 1);
    summary s = sum_up("r");
    cr_expect_eq(s.verdicts[FACTS_VERDICT_HANG], 1);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 11);
}

/* For another threshold, or after a case found its context dead: the driver may be what fails. */
Test(worker_ends, a_worker_that_cannot_start_again_says_nothing_of_the_engine)
{
    setenv("FACTS_FAULT", "crash_start@d=40", 1);
    facts("decide 'pass=fwd d=40' --device cpu -o r");
    summary s = sum_up("r");
    cr_expect_eq(s.verdicts[FACTS_VERDICT_INCONCLUSIVE], 1);
    cr_expect_str_eq(s.last_reason, "the worker ended when it started again");
    unsetenv("FACTS_FAULT");
    facts("decide 'pass=fwd d=40' --device cpu --resume -o r");
    cr_expect_eq(sum_up("r").verdicts[FACTS_VERDICT_PASS], 1, "asked again");
}

Test(worker_ends, a_start_in_the_middle_has_the_time_of_a_start)
{
    setenv("FACTS_FAULT", "long_start@d=40", 1);
    cr_expect_eq(facts("decide 'pass=fwd d=40' --device cpu --timeout 3 -o r"), 0);
    cr_expect_eq(sum_up("r").verdicts[FACTS_VERDICT_PASS], 1);
}

Test(worker_ends,
     a_worker_that_lacks_memory_or_its_channel_says_nothing_of_the_engine_and_is_asked_again)
{
    static const char *const faults[][2] = {
        { "no_memory@d=40", "the worker ran out of memory" },
        { "no_channel@d=40",
          "a request or an answer of the worker could not be read or written" }
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        setenv("FACTS_FAULT", faults[i][0], 1);
        cr_expect_eq(facts("decide '" FEW "' --device cpu --overwrite -o r"), 3, "%s",
                     faults[i][0]);
        summary s = sum_up("r");
        cr_expect_eq(s.verdicts[FACTS_VERDICT_INCONCLUSIVE], 1);
        cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 11);
        cr_expect_eq(s.verdicts[FACTS_VERDICT_CRASH], 0);
        cr_expect(output_says(faults[i][1]));
        unsetenv("FACTS_FAULT");
        cr_expect_eq(facts("decide '" FEW "' --device cpu --resume -o r"), 0, "%s", faults[i][0]);
    }
}

Test(worker_ends, an_engine_has_all_of_its_time_after_a_reference_that_took_long)
{
    setenv("FACTS_FAULT", "long_reference@d=40", 1);
    cr_expect_eq(facts("decide 'pass=fwd d=40' --device cpu --timeout 6 -o r"), 0);
    summary s = sum_up("r");
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 1);
}

/* The libraries were replaced while the run goes on, and a worker ended: its successor loads the
 * new ones. */
Test(worker_ends, a_later_worker_of_another_cudnn_ends_the_target)
{
    static const char *const faults[][2] = {
        { "later_version;bye@d=40", "cuDNN changed during the run: from 9.20.0 to 9.19.1" },
        { "later_file;bye@d=40", "a library changed during the run: /a/libcudnn.so.9" }
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        char once[128];
        snprintf(once, sizeof once, "%s/ready.once", folder);
        unlink(once);
        setenv("FACTS_FAULT", faults[i][0], 1);
        cr_expect_eq(facts("decide '" FEW "' --device cpu -j 1 --overwrite -o r"), 3, "%s",
                     faults[i][0]);
        summary s = sum_up("r");
        cr_expect_eq(s.rows, 12);
        cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 5, "of the first worker");
        cr_expect_eq(s.verdicts[FACTS_VERDICT_INCONCLUSIVE], 7);
        cr_expect_str_eq(s.last_reason, faults[i][1]);
        cr_expect(output_says("leave a build as it is while it is asked"));
    }
}

Test(worker_ends, a_worker_that_never_is_ready_leaves_inconclusive_rows_with_its_words)
{
    setenv("FACTS_FAULT", "exit_before_ready", 1);
    cr_expect_eq(facts("decide '" FEW "' --device cpu -o r"), 3);
    summary s = sum_up("r");
    cr_expect_eq(s.verdicts[FACTS_VERDICT_INCONCLUSIVE], 12);
    cr_expect(strstr(s.last_reason, "fake worker: no library") != NULL, "%s", s.last_reason);
}

Test(worker_ends, a_worker_that_says_why_it_failed_is_quoted)
{
    setenv("FACTS_FAULT", "failed", 1);
    cr_expect_eq(facts("decide '" FEW "' --device cpu -o r"), 3);
    summary s = sum_up("r");
    cr_expect_eq(s.verdicts[FACTS_VERDICT_INCONCLUSIVE], 12);
    cr_expect_str_eq(s.last_reason, "no driver");
    cr_expect(output_says("install one"));
}

Test(worker_ends, a_bad_end_after_the_last_row_is_a_finding)
{
    static const char *const faults[] = { "exit_crash", "exit_status", "exit_hang" };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        setenv("FACTS_FAULT", faults[i], 1);
        cr_expect_eq(facts("decide '" FEW "' --device cpu -j 1 --timeout 3 --overwrite -o r"), 1,
                     "%s", faults[i]);
        summary s = sum_up("r");
        cr_expect_eq(s.rows, 12, "%s: %zu rows", faults[i], s.rows);
        cr_expect_eq(s.verdicts[FACTS_VERDICT_EXIT_CRASH], 1);
        cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 11);
    }
}

Test(worker_ends, a_bad_end_never_makes_a_finding_better)
{
    setenv("FACTS_FAULT", "exit_crash;wrong", 1);
    cr_expect_eq(facts("decide 'pass=fwd d=64' --device cpu -o r"), 1);
    cr_expect_eq(sum_up("r").verdicts[FACTS_VERDICT_WRONG], 1);
}

/* The fake worker has four configurations: each has its row, and so many have this verdict. */
static void expect_four_rows(const char *fault, int status, facts_verdict verdict, size_t count)
{
    setenv("FACTS_FAULT", fault, 1);
    cr_expect_eq(facts("decide 'pass=fwd d=64 engine=all' --device cpu --overwrite -o r"), status);
    summary s = sum_up("r");
    cr_expect_eq(s.rows, 4, "%s: %zu rows", fault, s.rows);
    cr_expect_eq(s.verdicts[verdict], count, "%s", fault);
    cr_expect(s.complete);
}

Test(worker_ends, with_engine_all_a_death_costs_one_configuration)
{
    static const char *const faults[] = { "crash_config0", "crash_config1", "crash_config3" };
    for (size_t i = 0; i < 3; i++)
        expect_four_rows(faults[i], 1, FACTS_VERDICT_CRASH, 1);
}

Test(worker_ends, with_engine_all_a_leave_costs_no_configuration)
{
    static const char *const faults[] = { "bye_config0", "bye_config1", "bye_config3",
                                          "bye_config0;bye_config1" };
    for (size_t i = 0; i < 4; i++)
        expect_four_rows(faults[i], 0, FACTS_VERDICT_PASS, 4);
}

Test(worker_ends, what_died_before_it_began_is_asked_of_another_worker)
{
    setenv("FACTS_FAULT", "again", 1);
    cr_expect_eq(facts("decide '" FEW "' --device cpu -j 1 -o r"), 0);
    summary s = sum_up("r");
    cr_expect_eq(s.rows, 12, "%zu rows", s.rows);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 12);
    cr_expect(s.complete);
}

/* A second worker that has run other cases would die as the first did, if the case itself is the
 * cause. The fake worker refuses each case whose request has "fresh". */
Test(worker_ends, a_case_after_again_and_no_other_is_asked_fresh)
{
    setenv("FACTS_FAULT", "again@d=40;refuse_fresh", 1);
    cr_expect_eq(facts("decide '" FEW "' --device cpu -j 1 -o r"), 0);
    summary s = sum_up("r");
    cr_expect_eq(s.starts, 13, "%zu starts", s.starts);
    cr_expect_eq(s.rows, 12, "%zu rows", s.rows);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_UNSUPPORTED], 1);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], 11);
    setenv("FACTS_FAULT", "again@d=40;refuse_fresh@d=40", 1);
    cr_expect_eq(facts("decide '" FEW "' --device cpu -j 1 --overwrite -o r"), 0);
    cr_expect_eq(sum_up("r").verdicts[FACTS_VERDICT_UNSUPPORTED], 1,
                 "the case that was asked again is the fresh one");
}

Test(worker_ends, a_worker_that_takes_its_leave_is_replaced)
{
    setenv("FACTS_FAULT", "bye@d=16;bye@d=48", 1);
    cr_expect_eq(facts("decide '" FEW "' --device cpu -j 1 -o r"), 0);
    cr_expect_eq(sum_up("r").verdicts[FACTS_VERDICT_PASS], 12);
}
