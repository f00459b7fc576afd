/* A case in memory, answered by the emulated kernel: for tests of checks. */
#ifndef FACTS_TEST_CHECKING_H
#define FACTS_TEST_CHECKING_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "flash/flash.h"
#include "numbers/check/check.h"
#include "numbers/dtype.h"
#include "numbers/expect/expect_whole.h"
#include "numbers/fill/fill.h"
#include "numbers/fill/oracle_view.h"
#include "numbers/fill/places.h"
#include "numbers/fill/seen.h"

typedef struct world {
    const facts_constants *constants; /* NULL: the starting values */
    facts_problem p;
    facts_expectation expectation;
    facts_view view;
    const uint8_t *keep; /* dropout by a mask that the case does not name; the caller's */
    double keep_scale;
    uint8_t *given;                       /* what the case's own mask keeps */
    int64_t first[FACTS_TENSOR_COUNT][8]; /* packed: where each entry starts */
} world;

static inline facts_problem case_of(const char *text)
{
    facts_problem p;
    facts_case c;
    facts_error error = { 0 };
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
        cr_assert(given || facts_tensor_is_output(&w->p, id) ||
                  facts_fill_tensor(&w->p, id, w->view.at[id]));
    }
}

static inline facts_storages world_storages(const world *w)
{
    facts_storages in = { .at = { 0 } };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        in.at[id] = facts_tensor_is_output(&w->p, id) ? NULL : w->view.at[id];
    in.constants = w->constants;
    in.keep = w->given;
    return in;
}

/* What dropout keeps by the case's own mask, once it is filled. */
static inline void world_keep(world *w)
{
    const int64_t *dim = w->p.tensor[FACTS_TENSOR_DROPOUT_MASK].dim;
    if (!w->p.ask.dropout_mask)
        return;
    w->given = malloc((size_t)(dim[0] * dim[1] * dim[2] * dim[3]));
    uint8_t *bit = w->given;
    for (facts_walk at = facts_walk_of(dim); facts_walk_on(&at);)
        *bit++ = facts_view_get(&w->view, FACTS_TENSOR_DROPOUT_MASK, at.at) != 0;
}

/* Call it once all else is written, before the kernel runs: what the case's mask keeps; of a
 * backward O and Stats of the reference.
 */
static inline void world_given(world *w)
{
    world_keep(w);
    facts_storages in = world_storages(w);
    if (w->p.ask.pass == FATTN_BACKWARD)
        cr_assert_eq(facts_expect_inputs(&w->p, &in, w->view.at[FACTS_TENSOR_O],
                                         w->view.at[FACTS_TENSOR_STATS]),
                     0);
}

static inline void world_slots(world *w, facts_launch *launch)
{
    static const facts_tensor_id slots[] = { FACTS_TENSOR_O,   FACTS_TENSOR_STATS,
                                             FACTS_TENSOR_MAX, FACTS_TENSOR_SUM_EXP,
                                             FACTS_TENSOR_DQ,  FACTS_TENSOR_DK,
                                             FACTS_TENSOR_DV,  FACTS_TENSOR_DBIAS };
    for (int i = 0; i < 8; i++) {
        const facts_tensor *t = &w->p.tensor[slots[i]];
        facts_slot *out = &launch->out[i];
        if (!facts_tensor_is_output(&w->p, slots[i]))
            continue;
        *out = (facts_slot){ .data = (unsigned char *)w->view.at[slots[i]] +
                                     t->first * (int64_t)facts_dtype_bytes(t->dtype) };
        facts_oracle_type(&out->type, t->dtype);
        memcpy(out->dim, t->dim, sizeof out->dim);
        memcpy(out->stride, t->stride, sizeof out->stride);
        for (int64_t b = 0; t->packed != FACTS_PACKED_NOT && b < w->p.ask.batch; b++)
            w->first[slots[i]][b] = facts_row_at(&w->p, slots[i], b, 0) - t->first;
        out->first = t->packed != FACTS_PACKED_NOT ? w->first[slots[i]] : NULL;
    }
}

/* Asks the reference what is due, and the kernel for its answers. */
static inline void world_answer(world *w, const facts_kernel *kernel)
{
    facts_storages in = world_storages(w);
    bool backward = w->p.ask.pass == FATTN_BACKWARD;
    facts_whole whole;
    cr_assert_eq(backward ? facts_expect_backward(&w->expectation, &w->p, &in)
                          : facts_expect_forward(&w->expectation, &w->p, &in, 0),
                 0);
    cr_assert_eq(facts_whole_make(&whole, &w->p, &in), 0);
    fref_tensor *t = whole.tensor;
    if (w->keep) {
        whole.problem.keep = w->keep;
        whole.problem.keep_scale = w->keep_scale;
    }
    facts_launch launch = { .problem = &whole.problem,
                            .type = t[FACTS_TENSOR_Q].type,
                            .q = &t[FACTS_TENSOR_Q],
                            .k = &t[FACTS_TENSOR_K],
                            .v = &t[FACTS_TENSOR_V],
                            .seed = w->p.seed };
    if (backward) {
        launch.o = &t[FACTS_TENSOR_O];
        launch.stats = &t[FACTS_TENSOR_STATS];
        launch.d_o = &t[FACTS_TENSOR_DO];
    }
    world_slots(w, &launch);
    size_t room = facts_emulation_workspace(&whole.problem);
    launch.workspace = malloc(room + 1);
    memset(launch.workspace, 0x3C, room); /* ordinary numbers */
    cr_assert(backward ? facts_emulate_backward(kernel, &launch)
                       : facts_emulate_forward(kernel, &launch));
    free(launch.workspace);
    facts_whole_destroy(&whole);
}

/* The largest ratio of all gates on what the kernel wrote. */
static inline double world_ratio(world *w)
{
    double worst = 0.0;
    if (facts_tensor_is_output(
            &w->p, FACTS_TENSOR_MAX)) /* a lazy kernel's Max may lie below the true one */
        facts_expect_pair(&w->expectation, &w->p, w->view.at[FACTS_TENSOR_MAX]);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!facts_tensor_is_output(&w->p, id))
            continue;
        facts_rule rule = facts_expectation_rule(&w->expectation, id, FACTS_PATTERN_A);
        facts_tensor seen = facts_tensor_seen(&w->p, id);
        facts_judgement j = facts_judge_tensor(&seen, w->view.at[id], &rule);
        worst = j.ratio > worst ? j.ratio : worst;
    }
    return worst;
}

static inline void world_leave(world *w)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        free(w->view.at[id]);
    free(w->given);
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
    facts_view done[FACTS_CHECK_RUNS];
    world_fill(&base);
    world_given(&base);
    world_answer(&base, kernel);
    out.base = world_ratio(&base);
    int runs = facts_check_runs(&base.p);
    cr_assert(runs > 0 && runs <= FACTS_CHECK_RUNS);
    for (int i = 0; i < runs; i++) {
        facts_check_ask(&run[i].p, &base.p);
        world_fill(&run[i]);
        facts_check_write(&run[i].view, base.p.check, i);
        run[i].p.fill = FACTS_FILL_OTHER;
        world_given(&run[i]);
        if (base.p.ask.pass == FATTN_BACKWARD)
            facts_check_give(&run[i].view, &base.view);
        world_answer(&run[i], kernel);
        done[i] = run[i].view;
        double ratio = world_ratio(&run[i]);
        out.judged = ratio > out.judged ? ratio : out.judged;
    }
    facts_check_hold(&out.held, &base.view, done);
    for (int i = 0; i < runs; i++)
        world_leave(&run[i]);
    free(run);
    world_leave(&base);
    return out;
}

#endif
