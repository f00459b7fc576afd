/* P3: the dropout mask, from an answer. docs/numerics.md section 5. */
#include "probe_keep.h"

#include <math.h>
#include <stdlib.h>

#include "numbers/dtype.h"
#include "numbers/fill/oracle_view.h"
#include "numbers/fill/places.h"

static void put_all(const facts_view *run, facts_tensor_id id, double value)
{
    for (facts_walk w = facts_walk_of(run->problem->tensor[id].dim); facts_walk_on(&w);)
        facts_view_put(run, id, w.at, value);
}

/* The keys [first, last) of a row; none past the length. */
static int64_t keys_of(const facts_view *v, const int64_t at[4], int64_t *first, int64_t *last)
{
    *first = *last = 0;
    if (at[2] < facts_live_q(v->problem, at[0]))
        facts_oracle_keys_of_row(v->problem, at[0], at[2], first, last);
    return *last - *first;
}

#define TILE 128

static int64_t windows_of(int64_t keys, int64_t channels)
{
    return (keys + channels - 1) / channels;
}

int64_t facts_window_start(int64_t keys, int64_t live, int64_t channels, int64_t head, int number)
{
    int64_t windows = windows_of(keys, channels), start;
    if (windows <= FACTS_CHECK_RUNS)
        return (head + number) % windows * channels; /* all of them, in as many runs as necessary */
    switch (number) {
    case 0:
        start = live - channels; /* the end of the valid keys */
        break;
    case 1:
        start = TILE - channels / 2;
        break;
    case 2:
        start = (keys - 1) / TILE * TILE - channels / 2; /* the last tile's edge */
        break;
    default:
        start = (head * 7 + 1) % windows * channels; /* anywhere else: other heads, other keys */
    }
    return start < 0 ? 0 : start > keys - channels ? keys - channels : start;
}

static int64_t start_of(const facts_view *v, int64_t b, int64_t heads, int64_t h, int64_t channels,
                        int number)
{
    return facts_window_start(v->problem->ask.seq_kv, facts_live_kv(v->problem, b), channels,
                              b * heads + h, number);
}

/* V_j = e_(j-w) for the dv keys from w: O_ic is P'_(i,w+c). */
static void one_hot(const facts_view *run, facts_tensor_id id, int number)
{
    const int64_t *dim = run->problem->tensor[id].dim;
    for (facts_walk w = facts_walk_of(dim); facts_walk_on(&w);) {
        int64_t start = start_of(run, w.at[0], dim[1], w.at[1], dim[3], number);
        facts_view_put(run, id, w.at, w.at[2] == start + w.at[3] ? 1.0 : 0.0);
    }
}

void facts_keep_write(const facts_view *run, bool backward, int number)
{
    put_all(run, FACTS_TENSOR_Q, 0.0);
    if (!backward) {
        one_hot(run, FACTS_TENSOR_V, number);
        return;
    }
    const int64_t *dim = run->problem->tensor[FACTS_TENSOR_DO].dim;
    int64_t unit = facts_head_unit(run->problem);
    for (facts_walk w = facts_walk_of(dim); facts_walk_on(&w);) {
        int64_t start = facts_window_start(dim[2], facts_live_q(run->problem, w.at[0]), dim[3],
                                           w.at[0] * dim[1] + w.at[1], number);
        facts_view_put(run, FACTS_TENSOR_DO, w.at,
                       w.at[1] % unit == 0 && w.at[2] == start + w.at[3] ? 1.0 : 0.0);
    }
}

static void keep_bit(facts_keep *out, const int64_t at[4], bool bit)
{
    uint8_t *place =
        &out->bit[((at[0] * out->dim[1] + at[1]) * out->dim[2] + at[2]) * out->dim[3] + at[3]];
    *place = bit;
    out->seen++;
    out->kept += bit;
}

void facts_keep_read(facts_keep *out, facts_held *held, const facts_view *run, bool backward,
                     int number, double p)
{
    const facts_problem *problem = run->problem;
    facts_tensor_id id = backward ? FACTS_TENSOR_DV : FACTS_TENSOR_O;
    int64_t heads_v = problem->ask.heads_v, dv = problem->ask.dim_v,
            unit = problem->ask.heads_q / heads_v;
    double u = 2.0 * facts_dtype_roundoff(problem->ask.dtype) +
               facts_dtype_roundoff(backward ? problem->ask.grad_dtype : problem->ask.o_dtype);
    for (facts_walk w = facts_walk_of(problem->tensor[id].dim); facts_walk_on(&w);) {
        int64_t h = backward ? w.at[1] * unit : w.at[1], start;
        if (backward)
            start = facts_window_start(problem->ask.seq_q, facts_live_q(problem, w.at[0]), dv,
                                       w.at[0] * problem->ask.heads_q + h, number);
        else
            start = start_of(run, w.at[0], heads_v, facts_value_head(problem, h), dv, number);
        int64_t at[4] = { w.at[0], h, backward ? start + w.at[3] : w.at[2],
                          backward ? w.at[2] : start + w.at[3] },
                first, last;
        if (at[2] >= problem->ask.seq_q || h % (backward ? facts_head_unit(problem) : 1) != 0)
            continue;
        int64_t n = keys_of(run, at, &first, &last);
        if (at[3] < first || at[3] >= last)
            continue;
        double got = facts_view_get(run, id, w.at), expects = 1.0 / ((double)n * (1.0 - p));
        keep_bit(out, at, got > 0);
        facts_held_note(held, "a kept key has P = 1/(n (1 - p))", id, w.at, got,
                        got > 0 ? expects : 0.0, u * expects);
    }
}

/* cuDNN's draws come in fours (docs/numerics.md): of n scores n / 4 are free, and the variance of
 * their sum is up to four times that of n draws. */
static double facts_keep_room(int64_t n, double p)
{
    return 5.0 * sqrt(4.0 * (double)n * p * (1.0 - p)) + 0.5;
}

bool facts_keep_is_likely(const facts_keep *keep, double p)
{
    return fabs((double)keep->kept - (double)keep->seen * (1.0 - p)) <=
           facts_keep_room(keep->seen, p);
}

/* ---- check=keep */

static bool is_backward(const facts_problem *p)
{
    return p->ask.pass == FATTN_BACKWARD;
}

/* A window of keys in a forward, of rows in a backward. */
static int keep_runs(const facts_problem *p)
{
    const int64_t windows = windows_of(is_backward(p) ? p->ask.seq_q : p->ask.seq_kv, p->ask.dim_v);
    return windows < FACTS_CHECK_RUNS ? (int)windows : FACTS_CHECK_RUNS;
}

static void keep_write(const facts_view *run, int number)
{
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
