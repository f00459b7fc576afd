/* P3: the dropout mask, from an answer. docs/numerics.md section 5. */
#include <stdlib.h>

#include "check.h"
#include "probe.h"

static bool is_backward(const facts_problem *p)
{
    return p->ask.pass == FATTN_BACKWARD;
}

/* A window of keys in a forward, of rows in a backward. */
static int keep_runs(const facts_problem *p)
{
    const int64_t windows =
        ((is_backward(p) ? p->ask.seq_q : p->ask.seq_kv) + p->ask.dim_v - 1) / p->ask.dim_v;
    return windows < FACTS_CHECK_RUNS ? (int)windows : FACTS_CHECK_RUNS;
}

static void keep_write(const facts_view *run, const facts_view *base, const facts_view before[],
                       int number)
{
    (void)base, (void)before;
    facts_keep_write(run, is_backward(run->problem), number);
}

/* Bit for bit the input of the reference: the engine's rng_dump, or the caller's mask. */
static void hold_bits(facts_held *out, const facts_view *run)
{
    const facts_problem *p = run->problem;
    const facts_tensor_id id = is_backward(p) ? FACTS_TENSOR_DV : FACTS_TENSOR_O;
    for (facts_walk w = facts_walk_of(p->tensor[id].dim); facts_walk_on(&w);)
        if (facts_view_owes(run, id, w.at))
            facts_held_note(out, "the kept scores are those that the mask names", id, w.at,
                            facts_view_get(run, id, w.at) > 0, facts_view_want(run, id, w.at) > 0,
                            0.0);
}

static void keep_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    const facts_problem *p = base->problem;
    const int64_t none[4] = { 0, 0, 0, 0 },
                  scores = p->ask.batch * p->ask.heads_q * p->ask.seq_q * p->ask.seq_kv;
    facts_keep keep = { .dim = { p->ask.batch, p->ask.heads_q, p->ask.seq_q, p->ask.seq_kv },
                        .bit = calloc((size_t)scores + 1, 1) };
    for (int r = 0; r < keep_runs(p) && keep.bit; r++) {
        facts_keep_read(&keep, out, &run[r], is_backward(p), r, p->drop);
        hold_bits(out, &run[r]);
    }
    if (keep.seen > 0 && p->ask.dropout > 0)
        facts_held_note(out, "as many keys are kept as chance allows",
                        is_backward(p) ? FACTS_TENSOR_DV : FACTS_TENSOR_O, none, (double)keep.kept,
                        (double)keep.seen * (1.0 - p->drop), facts_keep_room(keep.seen, p->drop));
    free(keep.bit);
}

const facts_check_rule facts_probe_keep = { .runs = keep_runs,
                                            .put = keep_write,
                                            .hold = keep_hold };
