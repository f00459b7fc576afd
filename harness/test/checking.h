/* A case in memory, answered by the emulated kernel: for tests of what must hold between runs. */
#ifndef FACTS_TEST_CHECKING_H
#define FACTS_TEST_CHECKING_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "emulation/kernel.h"
#include "numbers/check.h"
#include "numbers/dtype.h"
#include "numbers/fill.h"
#include "numbers/mod.h"
#include "numbers/oracle.h"

typedef struct world {
    facts_problem p;
    facts_expectation expectation;
    facts_view view;
    const uint8_t *keep; /* dropout by a mask; the caller's */
    double keep_scale;
} world;

static inline facts_problem case_of(const char *text)
{
    facts_problem p;
    facts_case c;
    facts_error error = { .text = "" };
    cr_assert(facts_case_parse(&c, text, &error), "%s: %s", text, error.text);
    cr_assert_eq(facts_problem_resolve(&p, &c, &error), FACTS_RESOLVED, "%s: %s", text, error.text);
    return p;
}

/* Every storage, filled; outputs NaN. w->p is set. */
static inline void world_fill(world *w)
{
    w->view = (facts_view){ .problem = &w->p, .expected = &w->expectation };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_tensor *t = &w->p.tensor[id];
        if (!t->present)
            continue;
        w->view.at[id] = malloc((size_t)t->elements * facts_dtype_bytes(t->dtype) + 1);
        memset(w->view.at[id], 0xFF, (size_t)t->elements * facts_dtype_bytes(t->dtype));
        bool given = id == FACTS_TENSOR_O || id == FACTS_TENSOR_STATS;
        cr_assert(given || facts_tensor_is_output(&w->p, id) || facts_fill_tensor(&w->p, id, w->view.at[id]));
    }
}

static inline facts_storages world_storages(const world *w)
{
    facts_storages in = { .at = { 0 } };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        in.at[id] = facts_tensor_is_output(&w->p, id) ? NULL : w->view.at[id];
    return in;
}

static inline fref_tensor world_tensor(const world *w, facts_tensor_id id)
{
    const facts_tensor *t = &w->p.tensor[id];
    fref_tensor out = { 0 };
    facts_oracle_type(&out.type, t->dtype);
    for (int d = 0; d < 4; d++)
        out.stride[d] = t->dim[d] > 1 ? t->stride[d] : 0;
    out.data = w->view.at[id] ? (unsigned char *)w->view.at[id] + t->first * (int64_t)facts_dtype_bytes(t->dtype) : NULL;
    return out;
}

/* Of a backward: O and Stats of the reference; call it before the kernel runs. */
static inline void world_given(world *w)
{
    facts_storages in = world_storages(w);
    if (w->p.ask.pass == FATTN_BACKWARD)
        cr_assert_eq(facts_expect_inputs(&w->p, &in, w->view.at[FACTS_TENSOR_O], w->view.at[FACTS_TENSOR_STATS]), 0);
}

static inline void world_slots(const world *w, facts_launch *launch)
{
    static const facts_tensor_id slots[] = { FACTS_TENSOR_O,  FACTS_TENSOR_STATS, FACTS_TENSOR_MAX, FACTS_TENSOR_SUM_EXP,
                                             FACTS_TENSOR_DQ, FACTS_TENSOR_DK,    FACTS_TENSOR_DV,  FACTS_TENSOR_DBIAS };
    for (int i = 0; i < 8; i++) {
        const facts_tensor *t = &w->p.tensor[slots[i]];
        facts_slot *out = &launch->out[i];
        if (!facts_tensor_is_output(&w->p, slots[i]))
            continue;
        *out = (facts_slot){ .data = (unsigned char *)w->view.at[slots[i]] + t->first * (int64_t)facts_dtype_bytes(t->dtype) };
        facts_oracle_type(&out->type, t->dtype);
        memcpy(out->dim, t->dim, sizeof out->dim);
        memcpy(out->stride, t->stride, sizeof out->stride);
    }
}

/* Asks the reference what is due, and the kernel for its answers. */
static inline void world_answer(world *w, const facts_kernel *kernel)
{
    facts_storages in = world_storages(w);
    bool backward = w->p.ask.pass == FATTN_BACKWARD;
    fref_problem asked;
    fref_tensor t[FACTS_TENSOR_COUNT], bias;
    facts_mod_owner owner = { &w->p, in.at[FACTS_TENSOR_MOD_A], in.at[FACTS_TENSOR_MOD_B] };
    cr_assert_eq(backward ? facts_expect_backward(&w->expectation, &w->p, &in) : facts_expect_forward(&w->expectation, &w->p, &in, 0), 0);
    facts_oracle_problem(&asked, &w->p);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        t[id] = world_tensor(w, id);
    bias = t[FACTS_TENSOR_BIAS];
    asked.bias = w->p.tensor[FACTS_TENSOR_BIAS].present ? &bias : NULL;
    if (w->p.mod != FACTS_MOD_NONE) {
        asked.modify = facts_mod_at;
        asked.modify_owner = &owner;
    }
    asked.keep = w->keep;
    asked.keep_scale = w->keep_scale;
    facts_launch launch = { .problem = &asked, .type = t[FACTS_TENSOR_Q].type, .q = &t[FACTS_TENSOR_Q], .k = &t[FACTS_TENSOR_K], .v = &t[FACTS_TENSOR_V],
                            .seed = w->p.seed };
    if (backward) {
        launch.o = &t[FACTS_TENSOR_O];
        launch.stats = &t[FACTS_TENSOR_STATS];
        launch.d_o = &t[FACTS_TENSOR_DO];
    }
    world_slots(w, &launch);
    size_t room = facts_emulation_workspace(&asked);
    launch.workspace = malloc(room + 1);
    memset(launch.workspace, 0x3C, room); /* ordinary numbers */
    cr_assert(backward ? facts_emulate_backward(kernel, &launch) : facts_emulate_forward(kernel, &launch));
    free(launch.workspace);
}

/* The largest ratio of all gates on what the kernel wrote. */
static inline double world_ratio(world *w)
{
    double worst = 0.0;
    if (facts_tensor_is_output(&w->p, FACTS_TENSOR_MAX)) /* a lazy kernel's Max may lie below the true one */
        facts_expect_pair(&w->expectation, &w->p, w->view.at[FACTS_TENSOR_MAX]);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!facts_tensor_is_output(&w->p, id))
            continue;
        facts_rule rule = facts_expectation_rule(&w->expectation, id, FACTS_PATTERN_A);
        facts_judgement j = facts_judge_tensor(&w->p.tensor[id], w->view.at[id], &rule);
        worst = j.ratio > worst ? j.ratio : worst;
    }
    return worst;
}

static inline void world_leave(world *w)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        free(w->view.at[id]);
    facts_expectation_destroy(&w->expectation);
}

typedef struct outcome {
    facts_held held;
    double judged; /* the largest ratio of a further run, judged for itself */
    double base;   /* of the case itself */
} outcome;

/* The check that the case names, as the worker makes it. */
static inline outcome check_case(const char *text, const facts_kernel *kernel)
{
    outcome out = { 0 };
    world base = { .p = case_of(text) }, *run = calloc(FACTS_CHECK_RUNS, sizeof *run);
    facts_view before[FACTS_CHECK_RUNS];
    world_fill(&base);
    world_given(&base);
    world_answer(&base, kernel);
    out.base = world_ratio(&base);
    int runs = facts_check_runs(&base.p);
    cr_assert(runs > 0 && runs <= FACTS_CHECK_RUNS);
    for (int i = 0; i < runs; i++) {
        facts_check_ask(&run[i].p, &base.p, i);
        world_fill(&run[i]);
        facts_check_write(&run[i].view, &base.view, before, i);
        run[i].p.fill = FACTS_FILL_OTHER;
        world_given(&run[i]);
        if (base.p.ask.pass == FATTN_BACKWARD)
            facts_check_give(&run[i].view, &base.view, before, i);
        world_answer(&run[i], kernel);
        before[i] = run[i].view;
        double ratio = world_ratio(&run[i]);
        out.judged = ratio > out.judged ? ratio : out.judged;
    }
    facts_check_hold(&out.held, &base.view, before);
    for (int i = 0; i < runs; i++)
        world_leave(&run[i]);
    free(run);
    world_leave(&base);
    return out;
}

#endif
