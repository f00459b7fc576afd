/* For suites that put problems to one described device: its context, opened before each test and
 * closed behind it, and what it answers. */
#ifndef FATTN_TEST_ASKED_H
#define FATTN_TEST_ASKED_H

#include "described_h100.h"

static fattn_context *context;
static int version;

static inline void open_context(void)
{
    context = open_described("h100-sxm", &version);
}

static inline void close_context(void)
{
    fattn_context_destroy(context);
}

/* The versions that `./facts test` asks are 9.20.0 and 9.27.0. Nothing is skipped that one of them
 * shows: the test returns without a result where the other one is asked. What neither shows is
 * skipped; the night asks 9.28.0. */
static inline bool has(int least)
{
    if (version < least && least > 92700)
        cr_skip_test("needs a build of the night: cuDNN %d.%d", least / 10000, least / 100 % 100);
    return version >= least;
}

static inline fattn_decision *ask_modes(const fattn_problem *problem, uint32_t modes)
{
    fattn_decision *decision = NULL;
    const fattn_status st = fattn_decide(&decision, context, problem, modes);
    cr_assert(st == FATTN_OK || st == FATTN_BAD_PROBLEM, "%s", fattn_last_error());
    cr_assert_not_null(decision, "%s: %s", fattn_status_name(st), fattn_last_error());
    return decision;
}

static inline fattn_decision *ask(const fattn_problem *problem)
{
    return ask_modes(problem, FATTN_ASK_A);
}

static inline fattn_plan *plan_with(const fattn_problem *problem, const fattn_plan_options *options)
{
    fattn_plan *plan = NULL;
    cr_assert_eq(fattn_plan_create(&plan, context, problem, options), FATTN_OK, "%s",
                 fattn_last_error());
    return plan;
}

static inline fattn_plan *plan_of(const fattn_problem *problem)
{
    return plan_with(problem, NULL);
}

/* No plan, with this status, and these words in the last error. */
static inline void expect_no_plan(const fattn_problem *problem, const fattn_plan_options *options,
                                  fattn_status want, const char *words)
{
    fattn_plan *plan = NULL;
    const fattn_status st = fattn_plan_create(&plan, context, problem, options);
    cr_expect_eq(st, want, "%s, not %s: %s", fattn_status_name(st), fattn_status_name(want), words);
    cr_expect_not_null(strstr(fattn_last_error(), words), "got '%s', want '%s'", fattn_last_error(),
                       words);
    cr_expect_null(plan);
    fattn_plan_destroy(plan);
}

/* Extents that a row of a table does not name are the control problem's. */
static inline fattn_problem completed(fattn_problem p)
{
    const fattn_problem usual = control_problem();
    p.struct_size = sizeof p;
    p.batch = p.batch ? p.batch : usual.batch;
    p.heads_q = p.heads_q ? p.heads_q : usual.heads_q;
    p.seq_q = p.seq_q ? p.seq_q : usual.seq_q;
    p.seq_kv = p.seq_kv ? p.seq_kv : usual.seq_kv;
    p.dim_qk = p.dim_qk ? p.dim_qk : usual.dim_qk;
    return p;
}

/* The engines of mode A, each once, in order: "2,1"; or "class: text" of a refusal. Valid until the
 * next call. */
static inline const char *answer(fattn_problem p)
{
    static char text[1024];
    p = completed(p);
    fattn_decision *decision = ask(&p);
    text[0] = '\0';
    if (!fattn_decision_supported(decision))
        snprintf(text, sizeof text, "%s: %s",
                 fattn_status_name((fattn_status)fattn_decision_reason(decision)),
                 fattn_decision_text(decision));
    for (size_t i = 0; i < fattn_decision_engine_count(decision, FATTN_MODE_A); i++) {
        const long index = (long)fattn_decision_engine(decision, FATTN_MODE_A, i)->index;
        bool seen = false;
        for (size_t j = 0; j < i; j++)
            seen |= fattn_decision_engine(decision, FATTN_MODE_A, j)->index == index;
        if (!seen)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%ld", i == 0 ? "" : ",",
                     index);
    }
    fattn_decision_destroy(decision);
    return text;
}

/* A GPU's own cuDNN (ci/gpu_tests.sh) may be older than the builds that the rows are about. */
static inline bool is_for_newer(const char *said)
{
    return version < 92000 && strstr(said, "cuDNN 9.20") != NULL;
}

/* `start`: of the answer; "yes": any engine. */
static inline void expect_answer(const char *name, fattn_problem p, const char *start)
{
    const char *said = answer(p), *got = *said >= '0' && *said <= '9' ? "yes" : said;
    if (is_for_newer(said))
        return;
    if (strcmp(start, "yes") != 0)
        got = said;
    cr_expect_eq(strncmp(got, start, strlen(start)), 0, "%s, pass %d: got '%s', want '%s'", name,
                 p.pass, said, start);
}

/* The bytes of workspace of a plan. */
static inline size_t compiled(const char *name, fattn_problem p)
{
    fattn_plan *plan = NULL;
    p = completed(p);
    cr_assert_eq(fattn_plan_create(&plan, context, &p, NULL), FATTN_OK, "%s: %s", name,
                 fattn_last_error());
    const size_t bytes = fattn_plan_workspace_bytes(plan);
    fattn_plan_destroy(plan);
    return bytes;
}

/* A plan that only the night compiles; by day it is recognised. */
static inline void compile(const char *name, fattn_problem p)
{
    if (compiling_all())
        compiled(name, p);
    else
        expect_answer(name, p, "yes");
}

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

#endif
