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

/* The engines of mode A, each once, in order: "2,1"; or "class: text" of a refusal. Valid until the
 * next call. */
static inline const char *answer(fattn_problem p)
{
    static char text[1024];
    fattn_decision *decision = NULL;
    p.struct_size = sizeof p;
    const fattn_status st = fattn_decide(&decision, context, &p, FATTN_ASK_A);
    cr_assert_not_null(decision, "%s: %s", fattn_status_name(st), fattn_last_error());
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

/* The bytes of workspace of a plan. `options` may be NULL. */
static inline size_t compiled(const char *name, fattn_problem p, const fattn_plan_options *options)
{
    fattn_plan *plan = NULL;
    p.struct_size = sizeof p;
    cr_assert_eq(fattn_plan_create(&plan, context, &p, options), FATTN_OK, "%s: %s", name,
                 fattn_last_error());
    const size_t bytes = fattn_plan_workspace_bytes(plan);
    fattn_plan_destroy(plan);
    return bytes;
}

/* A plan that only the night compiles; by day it is recognised. */
static inline void compile(const char *name, fattn_problem p)
{
    if (compiling_all())
        compiled(name, p, NULL);
    else
        cr_expect(*answer(p) >= '0' && *answer(p) <= '9', "%s: %s", name, answer(p));
}

#endif
