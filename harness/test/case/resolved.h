/* Problems of cases by their text, filled; for the tests of what resolves. */
#ifndef FACTS_TEST_RESOLVED_H
#define FACTS_TEST_RESOLVED_H

#include <stdlib.h>
#include <string.h>

#include "asked_problem.h"
#include "numbers/dtype.h"
#include "numbers/expect/expectation.h"
#include "numbers/fill/places.h"
#include "numbers/fill/recipe.h"

static inline facts_problem *resolved(const char *text)
{
    facts_problem *p = malloc(sizeof *p);
    *p = problem_asked(text);
    return p;
}

static inline facts_tensor_id owner_of(const facts_problem *p, facts_tensor_id id)
{
    return p->tensor[id].shares ? (facts_tensor_id)(p->tensor[id].shares - 1) : id;
}

/* Storages of what a call reads, gaps first; those that share one have one. Release with freed().
 */
static inline facts_storages stored(const facts_problem *p)
{
    facts_storages out = { .oracle = NULL };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_tensor *t = &p->tensor[id];
        if (!t->present || facts_tensor_is_output(p, id))
            continue;
        facts_tensor_id owner = owner_of(p, id);
        if (owner == id) {
            int64_t most = 0;
            for (facts_tensor_id other = id; other < FACTS_TENSOR_COUNT; other++)
                if (p->tensor[other].present && owner_of(p, other) == id &&
                    p->tensor[other].elements > most)
                    most = p->tensor[other].elements;
            out.at[id] = calloc((size_t)most + 1, facts_dtype_bytes(t->dtype));
            facts_fill_gaps(p, t->dtype, (void *)(uintptr_t)out.at[id], most);
        }
        out.at[id] = out.at[owner];
        if (id != FACTS_TENSOR_O && id != FACTS_TENSOR_STATS)
            cr_assert(facts_fill_tensor(p, id, (void *)(uintptr_t)out.at[id]));
    }
    return out;
}

static inline void freed(const facts_problem *p, facts_storages *storages)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (p->tensor[id].present && owner_of(p, id) == id)
            free((void *)(uintptr_t)storages->at[id]);
}

static inline uint32_t code_at(const facts_problem *p, facts_tensor_id id, const void *storage,
                               const int64_t at[4])
{
    const facts_tensor *t = &p->tensor[id];
    return facts_load(t->dtype, storage,
                      facts_row_at(p, id, at[0], at[2]) + at[1] * t->stride[1] +
                          at[3] * t->stride[3]);
}

static inline double number_at(const facts_problem *p, facts_tensor_id id, const void *storage,
                               const int64_t at[4])
{
    return facts_decode(p->tensor[id].dtype, code_at(p, id, storage, at));
}

/* An array of a call, made. Release with free(). */
static inline void *made(const facts_problem *p, facts_array_id id)
{
    void *out = malloc(facts_array_bytes(&p->array[id]) + 1);
    facts_array_fill(p, id, out);
    return out;
}

#endif
