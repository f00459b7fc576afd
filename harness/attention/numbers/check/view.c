#include "view.h"

#include <string.h>

#include "numbers/dtype.h"
#include "numbers/fill/places.h"

/* Also for ragged and paged tensors: rows at any place. */
static int64_t place_of(const facts_problem *p, facts_tensor_id id, const int64_t at[4])
{
    return facts_row_at(p, id, at[0], at[2]) + at[1] * p->tensor[id].stride[1] +
           at[3] * p->tensor[id].stride[3];
}

static int64_t dense_of(const facts_tensor *t, const int64_t at[4])
{
    return ((at[0] * t->dim[1] + at[1]) * t->dim[2] + at[2]) * t->dim[3] + at[3];
}

static uint32_t facts_view_bits(const facts_view *v, facts_tensor_id id, const int64_t at[4])
{
    return facts_load(v->problem->tensor[id].dtype, v->at[id], place_of(v->problem, id, at));
}

double facts_view_get(const facts_view *v, facts_tensor_id id, const int64_t at[4])
{
    return facts_decode(v->problem->tensor[id].dtype, facts_view_bits(v, id, at));
}

void facts_view_put(const facts_view *v, facts_tensor_id id, const int64_t at[4], double value)
{
    const facts_tensor *t = &v->problem->tensor[id];
    facts_store(t->dtype, v->at[id], place_of(v->problem, id, at), facts_encode(t->dtype, value));
}

bool facts_view_owes(const facts_view *v, facts_tensor_id id, const int64_t at[4])
{
    const facts_row_expects *expects = v->expected ? v->expected->expects[id] : NULL;
    return !expects ||
           expects[at[0] * v->problem->tensor[id].dim[2] + at[2]] == FACTS_EXPECTS_VALUE;
}

double facts_view_want(const facts_view *v, facts_tensor_id id, const int64_t at[4])
{
    return v->expected->answer[id].want[dense_of(&v->problem->tensor[id], at)];
}

int64_t facts_key_head(const facts_problem *p, int64_t h)
{
    return h / (p->ask.heads_q / p->ask.heads_k);
}

int64_t facts_value_head(const facts_problem *p, int64_t h)
{
    return h / (p->ask.heads_q / p->ask.heads_v);
}

int64_t facts_head_unit(const facts_problem *p)
{
    int64_t k = p->ask.heads_q / p->ask.heads_k, v = p->ask.heads_q / p->ask.heads_v, unit = k;
    while (unit % v != 0)
        unit += k;
    return unit;
}

facts_walk facts_walk_of(const int64_t dim[4])
{
    facts_walk w = { .left = 1 };
    memcpy(w.dim, dim, sizeof w.dim);
    for (int d = 0; d < 4; d++)
        w.left *= dim[d];
    return w;
}

bool facts_walk_on(facts_walk *w)
{
    if (w->left <= 0)
        return false;
    w->left--;
    if (!w->begun) {
        w->begun = true;
        return true;
    }
    for (int d = 3; ++w->at[d] == w->dim[d]; d--)
        w->at[d] = 0;
    return true;
}
