/* A part of a problem as a problem of its own. */
#include <string.h>

#include "case/language/stride.h"
#include "case/problem/storage.h"
#include "check.h"
#include "numbers/fill/places.h"

/* Dense, in the tensor's own order of memory; a ragged or paged tensor is no longer so. */
static void place(facts_tensor *out, const facts_tensor *like, const int64_t dim[4])
{
    static const facts_stride_form nothing = { 0 };
    facts_place_request request = { .form = &nothing, .order = "bshd" };
    if (like->packed == FACTS_PACKED_NOT)
        facts_order_of(like, request.order);
    memcpy(request.dim, dim, sizeof request.dim);
    out->packed = FACTS_PACKED_NOT;
    out->tokens = out->page = out->pages = 0;
    out->shares = 0;
    facts_place_tensor(&request, out);
}

static void extents_of(const fattn_problem *ask, facts_tensor_id id, int64_t dim[4])
{
    switch (id) {
    case FACTS_TENSOR_K:
    case FACTS_TENSOR_DK:
    case FACTS_TENSOR_V:
    case FACTS_TENSOR_DV:
        dim[1] = id == FACTS_TENSOR_K || id == FACTS_TENSOR_DK ? ask->heads_k : ask->heads_v;
        dim[2] = ask->seq_kv;
        break;
    case FACTS_TENSOR_BIAS:
    case FACTS_TENSOR_DBIAS:
    case FACTS_TENSOR_MOD_A:
    case FACTS_TENSOR_MOD_B:
        dim[2] = dim[2] > 1 ? ask->seq_q : 1;
        dim[3] = dim[3] > 1 ? ask->seq_kv : 1;
        break;
    default:
        dim[2] = ask->seq_q;
    }
    dim[0] = dim[0] > 1 ? ask->batch : dim[0];
}

void facts_resize(facts_problem *out, const facts_problem *base, facts_extents to)
{
    fattn_problem *ask = &out->ask;
    ask->batch = to.batch ? to.batch : base->ask.batch;
    ask->seq_q = to.rows ? to.rows : base->ask.seq_q;
    ask->seq_kv = to.keys ? to.keys : base->ask.seq_kv;
    if (to.heads_kv)
        ask->heads_k = ask->heads_v = to.heads_kv;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        int64_t dim[4];
        if (!base->tensor[id].present)
            continue;
        memcpy(dim, base->tensor[id].dim, sizeof dim);
        extents_of(ask, id, dim);
        place(&out->tensor[id], &base->tensor[id], dim);
        if (id == FACTS_TENSOR_BIAS)
            memcpy(ask->bias_dim, dim, sizeof dim);
    }
    facts_ask_strides(out);
}

/* The call has none of these arrays. */
static void forget(facts_problem *out, facts_array_id first, facts_array_id last)
{
    for (facts_array_id id = first; id <= last; id++)
        out->array[id].count = 0;
}

void facts_unpack(facts_problem *out)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_tensor like = out->tensor[id];
        if (like.present && like.packed != FACTS_PACKED_NOT)
            place(&out->tensor[id], &like, like.dim);
    }
    out->ask.ragged = 0;
    out->ask.ragged_tokens = 0;
    out->ask.ragged_bits = 0;
    out->ask.total_q = out->ask.total_kv = 0;
    forget(out, FACTS_ARRAY_Q_OFFSETS, FACTS_ARRAY_DV_OFFSETS);
    out->array[FACTS_ARRAY_TABLE_OFFSETS_K].type = out->array[FACTS_ARRAY_TABLE_OFFSETS_V].type =
        FACTS_ARRAY_I32; /* had ragged_bits before */
    facts_ask_strides(out);
}

void facts_unpage(facts_problem *out)
{
    fattn_problem *ask = &out->ask;
    for (facts_tensor_id id = FACTS_TENSOR_K; id <= FACTS_TENSOR_V; id++) {
        const facts_tensor like = out->tensor[id];
        if (like.page != 0)
            place(&out->tensor[id], &like, like.dim);
    }
    ask->page_size_k = ask->page_size_v = ask->table_k = ask->table_v = ask->pages_k =
        ask->pages_v = 0;
    ask->packed_table = 0;
    forget(out, FACTS_ARRAY_PAGE_TABLE_K, FACTS_ARRAY_TABLE_OFFSETS_V);
    facts_ask_strides(out);
}

/* Which axes of a tensor are rows, and which keys. */
static void axes_of(facts_tensor_id id, int *rows, int *keys)
{
    bool keyed = id == FACTS_TENSOR_K || id == FACTS_TENSOR_V || id == FACTS_TENSOR_DK ||
                 id == FACTS_TENSOR_DV,
         scored = id >= FACTS_TENSOR_BIAS;
    *rows = keyed ? -1 : 2;
    *keys = keyed ? 2 : scored ? 3 : -1;
}

/* There are no elements past the length of a ragged tensor, or in a pool of pages. */
static bool lies_somewhere(const facts_problem *p, facts_tensor_id id, const int64_t at[4])
{
    const facts_tensor *t = &p->tensor[id];
    if (t->packed == FACTS_PACKED_NOT && t->page == 0)
        return true;
    return at[2] < (t->packed == FACTS_PACKED_Q ? facts_live_q(p, at[0]) : facts_live_kv(p, at[0]));
}

static void cut_one(const facts_view *run, const facts_view *base, facts_cut from,
                    facts_tensor_id id)
{
    if (!facts_view_has(run, id) || !facts_view_has(base, id))
        return;
    const int64_t *dim = run->problem->tensor[id].dim, *whole = base->problem->tensor[id].dim;
    int rows, keys;
    axes_of(id, &rows, &keys);
    for (facts_walk w = facts_walk_of(dim); facts_walk_on(&w);) {
        int64_t at[4] = { w.at[0], w.at[1], w.at[2], w.at[3] };
        at[0] += whole[0] > 1 ? from.batch : 0;
        at[1] = dim[1] > whole[1] ? w.at[1] / (dim[1] / whole[1]) : w.at[1];
        if (rows >= 0 && whole[rows] > 1)
            at[rows] += from.row;
        if (keys >= 0 && whole[keys] > 1)
            at[keys] += from.key;
        if (keys >= 0 && at[keys] < 0)
            facts_view_put(run, id, w.at, 0.0);
        else if (lies_somewhere(base->problem, id, at))
            facts_view_put(run, id, w.at, facts_view_get(base, id, at));
    }
}

void facts_cut_inputs(const facts_view *run, const facts_view *base, facts_cut from)
{
    static const facts_tensor_id inputs[] = { FACTS_TENSOR_Q,    FACTS_TENSOR_K,
                                              FACTS_TENSOR_V,    FACTS_TENSOR_DO,
                                              FACTS_TENSOR_BIAS, FACTS_TENSOR_MOD_A,
                                              FACTS_TENSOR_MOD_B };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        cut_one(run, base, from, inputs[i]);
}

void facts_cut_given(const facts_view *run, const facts_view *base, facts_cut from)
{
    cut_one(run, base, from, FACTS_TENSOR_O);
    cut_one(run, base, from, FACTS_TENSOR_STATS);
}

void facts_put_base(const facts_view *run, const facts_view *base, const facts_view before[],
                    int number)
{
    (void)before, (void)number;
    facts_cut_inputs(run, base, (facts_cut){ 0 });
}

void facts_give_base(const facts_view *run, const facts_view *base, const facts_view before[],
                     int number)
{
    (void)before, (void)number;
    facts_cut_given(run, base, (facts_cut){ 0 });
}
