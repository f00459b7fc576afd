/* Whole cases with everything on an emulated GPU: the cpu backend answers, kernels fill, poison,
 * compare and judge. What comes out must be what comes out where everything is here. */
#include <errno.h>

#include "../../../test/judge/outcomes.h"
#include "hidden_memory.h"
#include "night.h"
#include "numbers/fill/places.h"
#include "worker/exec/judging.h"
#include "worker/gpu/worker_gpu.h"

static void open_shown(void)
{
    show_memory();
    open_emulated();
}

TestSuite(emulated, .init = open_emulated, .fini = close_emulated);
TestSuite(shown, .init = open_shown, .fini = close_emulated); /* the test plays the kernel */

#define SMALL "b=2 h=2 s=20 d=16 "
#define SHAPE "dtype=bf16 b=2 h=2/1 s=20/28 d=8 "

/* By its own oracle there, where that knows the case; a check changes data, and looks at answers,
 * on the host. */
Test(emulated, cases_end_as_they_do_here)
{
    static const char *const cases[] = {
        "pass=fwd dtype=f16 b=2 h=2 s=24/40 d=16 mask=causal layout=sbhd want=max+sum_exp",
        "pass=fwd dtype=bf16 b=3 h=2 s=20 d=16 lens=7+20+1 poison=nan stride=gap:o.s.8",
        "pass=fwd dtype=f32 b=1 h=2 s=33 d=8 bias=1hss fill=needle",
        "pass=bwd dtype=f16 " SMALL "mask=causal bias=1hss dbias=1 deterministic=1",
        "pass=bwd dtype=bf16 b=2 h=4/2 s=20 d=16 bias=11ss dbias=1 stride=broadcast:do.s "
        "fill=needle",
        "pass=fwd dtype=f16 b=3 h=2 s=20 d=16 layout=t3hd padding=random stats=ht1 "
        "want=max+sum_exp",
        "pass=fwd dtype=bf16 b=2 h=4/2 s=12/50 d=16 padding=random paged=16 poison=nan",
        "pass=bwd dtype=bf16 b=2 h=4 s=20 d=16 softmax=sink dsink=1",
        "pass=fwd dtype=bf16 " SMALL "scale=tensor want=stats2",
        "pass=fwd dtype=e4m3 " SMALL "scales=odd",
        "pass=bwd dtype=e4m3 " SMALL "scales=odd",
        "pass=bwd dtype=bf16 " SMALL "bias=bool:1hss",
        "pass=fwd dtype=bf16 b=2 h=2 s=150/280 d=8 blockmask=random want=stats",
        "pass=bwd " SHAPE "check=identities",
        "pass=bwd " SHAPE "check=nonfinite",
        "pass=bwd " SHAPE "dropout=0.25 check=keep",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        compare_case(worker_with(NULL), gpu, cases[i], "gpu");
    /* Some read their own forward's O and Stats. */
    for (int seed = 1; seed <= (night() ? 6 : 2); seed++)
        for (int packed = 0; packed < 2; packed++) {
            char text[200];
            snprintf(text, sizeof text, "pass=bwd dtype=bf16 %s d=16 seed=%d",
                     packed ? "b=3 h=4/2 s=20/28 layout=thd padding=random" : "b=2 h=4/2 s=20/28",
                     seed);
            compare_case(worker_with(NULL), gpu, text, "gpu");
        }
}

Test(emulated, what_the_oracle_there_lacks_is_computed_here)
{
    static const char *const cases[] = {
        "pass=fwd dtype=bf16 b=2 h=2 s=24 d=16 mod=softcap:5",
        "pass=bwd dtype=bf16 b=2 h=2 s=24 d=16 stride=broadcast:k.b;sum:dk.b",
        "pass=bwd " SHAPE "fill=uniform mod=softcap:5 check=identities"
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        compare_case(worker_with(NULL), gpu, cases[i], "cpu");
}

/* Returns the problem. Destroy the reference. */
static const facts_problem *prepared(facts_reference *out, facts_worker *worker, const char *text)
{
    const facts_problem *p = asked_by(text);
    facts_error error = { 0 };
    cr_assert_eq(
        facts_trial_prepare(out, &(facts_making){ .worker = worker, .problem = p }, NULL, &error),
        FATTN_OK, "%s: %s", text, error.text);
    return p;
}

/* The O and Stats of a backward's own forward over two poisons, none of them written: what of it is
 * called different. */
static void compare_unwritten(facts_worker worker, const char *text, int64_t live_rows)
{
    facts_reference reference;
    int64_t overrun[FACTS_PLACES];
    facts_rerun repeats = { .asked = { [FACTS_TENSOR_O] = true, [FACTS_TENSOR_STATS] = true } };
    prepared(&reference, &worker, text);
    cr_assert_eq(facts_memory_workspace(&reference.memory, 64), FATTN_OK);
    cr_assert_eq(facts_memory_produce(&reference.memory), FATTN_OK);
    for (facts_pattern pattern = FACTS_PATTERN_A; pattern <= FACTS_PATTERN_B; pattern++) {
        cr_assert_eq(facts_memory_arm(&reference.memory, pattern, 0), FATTN_OK);
        cr_assert_eq(facts_memory_fetch(&reference.memory, pattern, overrun), FATTN_OK);
    }
    cr_assert_eq(facts_judging_repeat(&repeats, &reference), FATTN_OK);
    cr_expect_eq(repeats.different[FACTS_TENSOR_O], live_rows * 2 * 16, "%s", text);
    cr_expect_eq(repeats.different[FACTS_TENSOR_STATS], live_rows * 2, "%s", text);
    facts_reference_destroy(&reference);
}

Test(emulated, only_live_rows_of_an_own_forward_have_to_be_the_same)
{
    static const struct {
        const char *text;
        int64_t live;
    } rows[] = { { "pass=bwd dtype=bf16 " SMALL, 40 },
                 { "pass=bwd dtype=bf16 " SMALL "lens=7+20", 27 },
                 { "pass=bwd dtype=bf16 " SMALL "lens=7+20/20+0", 7 },
                 { "pass=bwd dtype=bf16 " SMALL "mask=causal_br lens=20+20/20+13", 33 } };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++)
        compare_unwritten(worker_with(i % 2 ? gpu : NULL), rows[i / 2].text, rows[i / 2].live);
}

/* A later failure outside the oracle must not be reported as its failure. */
Test(emulated, what_the_oracle_said_is_forgotten_when_another_truth_is_made)
{
    static const int answers[] = { ENOTSUP, ENOMEM, 0 };
    const facts_problem *p = asked_by("pass=bwd dtype=bf16 b=1 h=2 s=24 d=16");
    facts_worker worker = worker_with(gpu);
    const facts_making making = { .worker = &worker, .problem = p };
    for (int i = 0; i < 3; i++) {
        facts_reference reference;
        facts_error error = { 0 };
        emulated_oracle_fails = answers[i];
        fattn_status status = facts_trial_prepare(&reference, &making, NULL, &error);
        cr_expect_eq(status, answers[i] == ENOMEM ? FATTN_NO_MEMORY : FATTN_OK, "%s", error.text);
        if (status == FATTN_OK)
            cr_expect_str_empty(facts_gpu_error(gpu), "after %d", answers[i]);
        facts_reference_destroy(&reference);
    }
}

/* Not as memory that is missing: no smaller case would mend it. */
Test(emulated, a_fault_while_answers_are_judged_is_the_devices)
{
    facts_worker worker = worker_with(gpu);
    facts_reference reference;
    facts_judgement found[FACTS_TENSOR_COUNT];
    uint64_t bits[FACTS_TENSOR_COUNT];
    emulated_kernel_fails = "facts_kernel_judge";
    prepared(&reference, &worker, "pass=fwd dtype=bf16 b=1 h=2 s=24 d=16");
    cr_expect_eq(facts_judging_all(found, bits, &reference), FATTN_DEVICE_FAULT);
    cr_expect(found[FACTS_TENSOR_O].no_memory && strstr(facts_gpu_error(gpu), "emulated"));
    facts_reference_destroy(&reference);
    emulated_kernel_fails = NULL;
}

/* What is judged, walked over and looked at again is one launch each. */
static void weigh_at_once(facts_worker *worker, const char *text, int launches)
{
    facts_reference reference;
    facts_judgement found[FACTS_TENSOR_COUNT];
    uint64_t bits[FACTS_TENSOR_COUNT];
    const facts_problem *p = prepared(&reference, worker, text);
    const int before = emulated_launches;
    cr_assert_eq(facts_judging_all(found, bits, &reference), FATTN_OK);
    cr_expect_eq(emulated_launches - before, launches, "%s: %d launches", text,
                 emulated_launches - before);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(p, id) && reference.expectation.answer[id].at) { /* it is here */
            const facts_tensor tensor = facts_tensor_seen(p, id);
            const facts_rule rule =
                facts_expectation_rule(&reference.expectation, id, FACTS_PATTERN_A);
            cr_expect_eq(reference.untrusted[id], !facts_judge_trusts(&tensor, &rule), "%s: %s",
                         text, facts_tensor_word(id));
        }
    facts_reference_destroy(&reference);
}

Test(shown, lies_about_small_answers_need_no_second_round)
{
    static const struct {
        const char *text;
        int launches;
    } rows[] = {
        { "pass=fwd dtype=bf16 b=2 h=4/2 s=1/40 d=16", 3 },
        { "pass=fwd dtype=bf16 b=2 h=2 s=1/900 d=8 want=stats", 3 },
        { "pass=fwd dtype=e5m2 b=2 h=2 s=1/900 d=8", 3 },
        { "pass=fwd dtype=bf16 b=2 h=2 s=24 d=16", 3 },
        { "pass=bwd dtype=bf16 b=1 h=2 s=24/1 d=16", 3 },
        /* Its rows are alike, and together say nothing. */
        { "pass=fwd dtype=bf16 b=2 h=4 s=24/40 d=16 stride=broadcast:q.s", 4 },
        /* The first head shows it. */
        { "pass=fwd dtype=bf16 b=1 h=3 s=1100/8 d=32", 3 },
    };
    facts_worker worker = worker_with(gpu);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        weigh_at_once(&worker, rows[i].text, rows[i].launches);
}

/* What lies in memory reaches those who look at it here, and what they write reaches the run. */
Test(shown, storages_are_fetched_and_pushed)
{
    const facts_problem *p = asked_by("pass=fwd dtype=bf16 b=2 h=2 s=24 d=16 stride=gap:q.s.8");
    facts_worker worker = worker_with(gpu);
    facts_memory there, here;
    facts_error error = { 0 };
    cr_assert_eq(facts_memory_create(&there, &worker, p, false, &error), FATTN_OK);
    cr_assert_eq(facts_memory_create(&here, &worker, p, true, &error), FATTN_OK);
    cr_assert_eq(facts_memory_fill(&there, &error), FATTN_OK);
    cr_assert_eq(facts_memory_fill(&here, &error), FATTN_OK);
    size_t bytes = (size_t)p->tensor[FACTS_TENSOR_Q].elements * 2;
    unsigned char *q = facts_memory_storage(&there, FACTS_TENSOR_Q, FACTS_PATTERN_A);
    cr_expect(memcmp(q, facts_memory_storage(&here, FACTS_TENSOR_Q, FACTS_PATTERN_A), bytes) == 0,
              "gaps included");
    q[6] ^= 1;
    cr_expect_eq(facts_memory_push(&there), FATTN_OK);
    cr_expect_eq(facts_memory_workspace(&there, 64), FATTN_OK);
    cr_expect_eq(facts_memory_arm(&there, FACTS_PATTERN_B, 0), FATTN_OK);
    unsigned char *device =
        facts_image_storage(&there.block[FACTS_TENSOR_Q].image, there.set->device[FACTS_TENSOR_Q]);
    cr_expect(memcmp(device, q, bytes) == 0);
    int64_t overrun[FACTS_PLACES];
    device[7] ^= 1;                                               /* an input */
    ((unsigned char *)there.set->device[FACTS_TENSOR_O])[3] ^= 1; /* a guard */
    ((unsigned char *)there.set->workspace)[64] ^= 1;
    cr_expect_eq(facts_memory_fetch(&there, FACTS_PATTERN_B, overrun), FATTN_OK);
    cr_expect(overrun[FACTS_TENSOR_Q] == 1 && overrun[FACTS_TENSOR_O] == 1 &&
              overrun[FACTS_TENSOR_COUNT] == 1 && overrun[FACTS_TENSOR_K] == 0);
    facts_memory_destroy(&there);
    facts_memory_destroy(&here);
}

Test(emulated, memory_that_was_given_back_is_handed_out_again)
{
    void *first, *second, *small;
    cr_assert_eq(facts_gpu_make(gpu, &first, 1 << 20), FATTN_OK);
    facts_gpu_free(gpu, first);
    cr_assert_eq(facts_gpu_make(gpu, &small, 1000), FATTN_OK);
    cr_expect_neq(small, first, "it is far too large");
    cr_assert_eq(facts_gpu_make(gpu, &second, 700000), FATTN_OK);
    cr_expect_eq(second, first);
    cr_expect_not(facts_gpu_trim(gpu), "all is in use");
    facts_gpu_free(gpu, second);
    facts_gpu_free(gpu, small);
    cr_expect(facts_gpu_trim(gpu));
}

/* What the driver reports as free, in MiB, one call after another; the last for ever. */
static const int64_t *free_mib;

static int told_memory(size_t *free_bytes, size_t *all_bytes)
{
    *free_bytes = *all_bytes = (size_t)*free_mib << 20;
    free_mib += free_mib[1] != 0;
    return 0;
}

Test(emulated, memory_is_taken_until_so_much_is_free)
{
    static const struct {
        int64_t free_mib[5];
        int pieces;
        const char *why;
    } rows[] = { { { 10, 8 }, 1, "" },
                 { { 16, 12, 10, 8 }, 3, "" },
                 { { 7 }, 0, "" },
                 { { 10, 90 }, -1, "memory: 90 MiB of the GPU stayed free" } };
    facts_ballast ballast;
    char why[160];
    emulated_driver()->memory_info = told_memory;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        free_mib = rows[i].free_mib, why[0] = '\0';
        cr_expect_eq(facts_ballast_take(&ballast, gpu, 8, why), !*rows[i].why, "row %zu", i);
        cr_expect(rows[i].pieces < 0 || ballast.pieces == rows[i].pieces, "row %zu: %d", i,
                  ballast.pieces);
        cr_expect_str_eq(why, rows[i].why);
        facts_ballast_drop(&ballast, gpu);
    }
}

Test(emulated, a_launch_that_lacks_the_memory_left_free_is_an_answer)
{
    static const int64_t fits[] = { 10, 8, 0 }, stays[] = { 10, 90, 0 };
    static const struct {
        const char *memory;
        const int64_t *free_mib;
        fattn_status launch, status;
        facts_verdict verdict;
        const char *text;
    } rows[] = {
        { "memory=8", fits, 0, FATTN_OK, FACTS_VERDICT_PASS, "" },
        { "memory=8", fits, FATTN_NO_MEMORY, FATTN_OK, FACTS_VERDICT_EXEC_FAIL,
          "with 8 MiB free: " },
        { "", fits, FATTN_NO_MEMORY, FATTN_NO_MEMORY, FACTS_VERDICT_PASS, "" },
        { "memory=8", stays, 0, FATTN_ENVIRONMENT, FACTS_VERDICT_PASS, "memory: 90 MiB of the" },
    };
    facts_worker worker = worker_with(gpu);
    emulated_driver()->memory_info = told_memory;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[100];
        snprintf(text, sizeof text, "pass=fwd dtype=bf16 b=1 h=1 s=20 d=8 %s", rows[i].memory);
        free_mib = rows[i].free_mib, hidden_launch = rows[i].launch;
        outcome found = run_on(&worker, asked_by(text));
        hidden_launch = FATTN_OK;
        cr_expect(found.trial.status == rows[i].status && found.trial.verdict == rows[i].verdict,
                  "row %zu: %d %s", i, found.trial.status, facts_verdict_name(found.trial.verdict));
        cr_expect(strncmp(found.trial.text, rows[i].text, strlen(rows[i].text)) == 0, "%s",
                  found.trial.text);
        facts_reference_destroy(&found.reference);
    }
}

static int waits;
static int (*wait_for)(struct CUstream_st *stream);

static int counted_wait(struct CUstream_st *stream)
{
    waits++;
    return wait_for(stream);
}

/* Other workers use the GPU between two waits, so that each wait can cost a time slice of theirs.
 */
Test(shown, a_run_is_read_back_with_one_wait_and_compared_with_another)
{
    facts_worker worker = worker_with(gpu);
    facts_reference reference;
    int64_t overrun[FACTS_PLACES];
    facts_rerun rerun = { .asked = { [FACTS_TENSOR_O] = true, [FACTS_TENSOR_STATS] = true } };
    prepared(&reference, &worker,
             "pass=fwd dtype=bf16 b=2 h=2 s=24 d=16 padding=random want=stats");
    cr_assert_eq(facts_memory_workspace(&reference.memory, 64), FATTN_OK);
    gpu_driver *driver = emulated_driver();
    wait_for = driver->stream_synchronize;
    driver->stream_synchronize = counted_wait;
    cr_expect_eq(facts_memory_arm(&reference.memory, FACTS_PATTERN_A, 0), FATTN_OK);
    cr_expect_eq(waits, 0, "the call follows on the same stream");
    cr_expect_eq(facts_memory_fetch(&reference.memory, FACTS_PATTERN_A, overrun), FATTN_OK);
    cr_expect_eq(waits, 1, "%d waits", waits);
    cr_expect_eq(facts_memory_arm(&reference.memory, FACTS_PATTERN_B, 0), FATTN_OK);
    ((unsigned char *)reference.memory.set->workspace)[64] ^= 1;
    ((unsigned char *)facts_memory_array_address(&reference.memory, FACTS_ARRAY_SEQ_LEN_KV))[-1] ^=
        1;
    cr_expect_eq(facts_memory_fetch(&reference.memory, FACTS_PATTERN_B, overrun), FATTN_OK);
    cr_expect_eq(waits, 2, "%d waits", waits);
    cr_expect_eq(overrun[FACTS_PLACE_WORKSPACE], 1);
    cr_expect_eq(overrun[FACTS_PLACE_ARRAYS + FACTS_ARRAY_SEQ_LEN_KV], 1);
    cr_expect_eq(facts_judging_repeat(&rerun, &reference), FATTN_OK);
    cr_expect_eq(waits, 3, "%d waits", waits);
    cr_expect(rerun.different[FACTS_TENSOR_O] > 0 && rerun.different[FACTS_TENSOR_STATS] > 0,
              "two poisons");
    driver->stream_synchronize = wait_for;
    facts_reference_destroy(&reference);
}
