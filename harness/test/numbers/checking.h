/* A case in memory, answered by the reference: for tests of checks. */
#ifndef FACTS_TEST_CHECKING_H
#define FACTS_TEST_CHECKING_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../case/asked_problem.h"
#include "numbers/check/check.h"
#include "numbers/dtype.h"
#include "numbers/fill/recipe.h"

typedef struct world {
    facts_problem p;
    facts_expectation expectation;
    facts_view view;
    uint8_t *given; /* what the case's own mask of dropout keeps */
} world;

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
    in.keep = w->given;
    return in;
}

/* What dropout keeps by the case's own mask, once it is filled. */
static inline void world_keep(world *w)
{
    const int64_t *dim = w->p.tensor[FACTS_TENSOR_DROPOUT_MASK].dim;
    if (!w->p.ask.dropout_mask)
        return;
    w->given = calloc((size_t)(dim[0] * dim[1] * dim[2] * dim[3]) + 1, 1);
    uint8_t *bit = w->given;
    for (facts_walk at = facts_walk_of(dim); facts_walk_on(&at);)
        *bit++ = facts_view_get(&w->view, FACTS_TENSOR_DROPOUT_MASK, at.at) != 0;
}

/* Call it once all else is written, before the answers: what the case's mask keeps; of a backward
 * O and Stats of the reference. */
static inline void world_given(world *w)
{
    world_keep(w);
    facts_storages in = world_storages(w);
    if (w->p.ask.pass == FATTN_BACKWARD)
        cr_assert_eq(facts_expect_inputs(&w->p, &in, w->view.at[FACTS_TENSOR_O],
                                         w->view.at[FACTS_TENSOR_STATS]),
                     0);
}

/* Asks the reference what is due, and answers so: each output as its type rounds it. */
static inline void world_answer(world *w)
{
    const facts_storages in = world_storages(w);
    cr_assert_eq(w->p.ask.pass == FATTN_BACKWARD
                     ? facts_expect_backward(&w->expectation, &w->p, &in)
                     : facts_expect_forward(&w->expectation, &w->p, &in, 0),
                 0);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(&w->p, id))
            facts_round_into(&w->p.tensor[id], w->expectation.answer[id].want, 1.0, w->view.at[id]);
}

static inline void world_leave(world *w)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        free(w->view.at[id]);
    free(w->given);
    facts_expectation_destroy(&w->expectation);
}

#endif
