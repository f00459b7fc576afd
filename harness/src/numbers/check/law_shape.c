/* Laws between problems of different shape, and between two ways to ask for the same.
 * docs/numerics.md section 6 derives each. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "numbers/fill/places.h"
#include "numbers/fill/scalars.h"

static bool is_keyed(facts_tensor_id id)
{
    return id == FACTS_TENSOR_DK || id == FACTS_TENSOR_DV;
}

/* ---- GQA equals repeated heads
 * ------------------------------------------------------------------------------------------
 */

static void repeat_ask(facts_problem *out, const facts_problem *base, int number)
{
    (void)number;
    facts_resize(out, base, (facts_extents){ .heads_kv = base->ask.heads_q });
}

/* The gradient of a shared head is the sum over the query heads of its group. */
static void hold_group(facts_held *out, const facts_view *base, const facts_view *run,
                       facts_tensor_id id)
{
    facts_limits limits = facts_view_limits(base, id), own = facts_view_limits(run, id);
    int64_t group = run->problem->tensor[id].dim[1] / base->problem->tensor[id].dim[1];
    for (facts_walk w = facts_walk_of(base->problem->tensor[id].dim); facts_walk_on(&w);) {
        double sum = 0.0, bound = 0.0;
        if (!facts_view_owes(base, id, w.at))
            continue;
        for (int64_t g = 0; g < group; g++) {
            const int64_t at[4] = { w.at[0], w.at[1] * group + g, w.at[2], w.at[3] };
            sum += facts_view_get(run, id, at);
            bound += facts_view_tolerance(run, &own, id, at);
        }
        facts_held_note(out, "a shared head's gradient is the sum over its copies", id, w.at,
                        facts_view_get(base, id, w.at), sum,
                        bound + facts_view_tolerance(base, &limits, id, w.at));
    }
}

static void repeat_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!facts_tensor_is_output(base->problem, id))
            continue;
        if (is_keyed(id))
            hold_group(out, base, run, id);
        else
            facts_held_same(
                out,
                &(facts_same){ .law = "GQA equals repeated heads", .a = base, .b = run, .id = id });
    }
}

const facts_check_rule facts_law_repeat_heads = {
    .ask = repeat_ask, .put = facts_put_base, .give = facts_give_base, .hold = repeat_hold
};

/* ---- keys in two parts
 * -----------------------------------------------------------------------------------------------------------
 */

static int split_runs(const facts_problem *p)
{
    (void)p;
    return 2;
}

static int64_t first_key(const facts_problem *base, int number)
{
    return number ? base->ask.seq_kv / 2 : 0;
}

static void split_ask(facts_problem *out, const facts_problem *base, int number)
{
    int64_t half = base->ask.seq_kv / 2;
    facts_resize(out, base, (facts_extents){ .keys = number ? base->ask.seq_kv - half : half });
}

static void split_write(const facts_view *run, const facts_view *base, const facts_view before[],
                        int number)
{
    (void)before;
    facts_cut_inputs(run, base, (facts_cut){ .key = first_key(base->problem, number) });
}

/* LSE = ln(e^L1 + e^L2), O = e^(L1 - LSE) O1 + e^(L2 - LSE) O2: the denominator is a sum. The error
 * of a weight follows from those of its two statistics. */
static void hold_joined(facts_held *out, const facts_view *base, const facts_view run[])
{
    facts_limits limits[3] = { facts_view_limits(base, FACTS_TENSOR_O),
                               facts_view_limits(&run[0], FACTS_TENSOR_O),
                               facts_view_limits(&run[1], FACTS_TENSOR_O) };
    for (facts_walk w = facts_walk_of(base->problem->tensor[FACTS_TENSOR_O].dim);
         facts_walk_on(&w);) {
        const int64_t row[4] = { w.at[0], w.at[1], w.at[2], 0 };
        double lse[3], tau[3], joined,
            want = 0.0, bound = facts_view_tolerance(base, &limits[0], FACTS_TENSOR_O, w.at);
        if (!facts_view_owes(base, FACTS_TENSOR_O, w.at) ||
            !facts_view_lse(base, row, &lse[0], &tau[0]) ||
            !facts_view_lse(&run[0], row, &lse[1], &tau[1]) ||
            !facts_view_lse(&run[1], row, &lse[2], &tau[2]))
            continue;
        joined = fmax(lse[1], lse[2]);
        joined += isfinite(joined) ? log(exp(lse[1] - joined) + exp(lse[2] - joined)) : 0.0;
        if (w.at[3] == 0)
            facts_held_note(out, "the parts' denominators add up", FACTS_TENSOR_STATS, row, lse[0],
                            joined, tau[0] + fmax(tau[1], tau[2]));
        for (int r = 0; r < 2 && isfinite(joined); r++) {
            double part = facts_view_get(&run[r], FACTS_TENSOR_O, w.at),
                   weight = exp(lse[r + 1] - joined);
            want += weight * part;
            bound += weight * (facts_view_tolerance(&run[r], &limits[r + 1], FACTS_TENSOR_O, w.at) +
                               fabs(part) * (tau[r + 1] + fmax(tau[1], tau[2])));
        }
        facts_held_note(out, "O is the mean of its parts, by their denominators", FACTS_TENSOR_O,
                        w.at, facts_view_get(base, FACTS_TENSOR_O, w.at), want, bound);
    }
}

static void hold_parts_sum(facts_held *out, const facts_view *base, const facts_view run[])
{
    const facts_tensor_id id = FACTS_TENSOR_DQ;
    facts_limits limits[3] = { facts_view_limits(base, id), facts_view_limits(&run[0], id),
                               facts_view_limits(&run[1], id) };
    for (facts_walk w = facts_walk_of(base->problem->tensor[id].dim); facts_walk_on(&w);)
        if (facts_view_owes(base, id, w.at))
            facts_held_note(out, "dQ is the sum of the parts' dQ", id, w.at,
                            facts_view_get(base, id, w.at),
                            facts_view_get(&run[0], id, w.at) + facts_view_get(&run[1], id, w.at),
                            facts_view_tolerance(base, &limits[0], id, w.at) +
                                facts_view_tolerance(&run[0], &limits[1], id, w.at) +
                                facts_view_tolerance(&run[1], &limits[2], id, w.at));
}

static bool to_part(const facts_same *same, const int64_t a[4], int64_t b[4])
{
    int64_t half = same->a->problem->ask.seq_kv / 2;
    int axis = same->id == FACTS_TENSOR_DBIAS ? 3 : 2;
    if ((a[axis] >= half) != (same->number == 1))
        return false;
    b[axis] -= same->number ? half : 0;
    return true;
}

static void split_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    static const facts_tensor_id by_key[] = { FACTS_TENSOR_DK, FACTS_TENSOR_DV,
                                              FACTS_TENSOR_DBIAS };
    if (base->problem->ask.pass == FATTN_FORWARD) {
        hold_joined(out, base, run);
        return;
    }
    hold_parts_sum(out, base, run);
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < 2 && facts_tensor_is_output(base->problem, by_key[i]); r++)
            facts_held_same(out, &(facts_same){ .law = "a key's gradients need no other key",
                                                .a = base,
                                                .b = &run[r],
                                                .id = by_key[i],
                                                .to = to_part,
                                                .number = r });
}

const facts_check_rule facts_law_split = { .runs = split_runs,
                                           .ask = split_ask,
                                           .put = split_write,
                                           .give = facts_give_base,
                                           .hold = split_hold };

/* ---- the upper left corner of a causal problem
 * ------------------------------------------------------------------------------------ */

/* An odd number, so that it is not the edge of a tile. */
static int64_t corner_of(const facts_problem *p)
{
    int64_t least = p->ask.seq_q < p->ask.seq_kv ? p->ask.seq_q : p->ask.seq_kv, n = least / 2 | 1;
    return n < least ? n : least - 1;
}

static void prefix_ask(facts_problem *out, const facts_problem *base, int number)
{
    (void)number;
    facts_resize(out, base, (facts_extents){ .rows = corner_of(base), .keys = corner_of(base) });
}

/* Rows above the corner. Of the gradients only dQ: the sums of the others include rows below it. */
static bool to_corner(const facts_same *same, const int64_t a[4], int64_t b[4])
{
    (void)b;
    return a[2] < same->number && !is_keyed(same->id) && same->id != FACTS_TENSOR_DBIAS;
}

static void prefix_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    facts_held_all(out, base, run,
                   (facts_same){ .law = "rows of a causal problem see no key below them",
                                 .to = to_corner,
                                 .number = corner_of(base->problem) });
}

const facts_check_rule facts_law_prefix = {
    .ask = prefix_ask, .put = facts_put_base, .give = facts_give_base, .hold = prefix_hold
};

/* ---- a length is a smaller problem
 * --------------------------------------------------------------------------------------------------
 */

/* The largest batch entry that is neither empty nor full: its work alone. */
static int64_t entry_of(const facts_problem *p)
{
    int64_t best = 0, most = -1;
    for (int64_t b = 0; b < p->ask.batch; b++) {
        int64_t work = facts_live_q(p, b) * facts_live_kv(p, b);
        work = work == p->ask.seq_q * p->ask.seq_kv ? 0 : work; /* full: no length at all */
        if (work > most) {
            most = work;
            best = b;
        }
    }
    return best;
}

static void length_ask(facts_problem *out, const facts_problem *base, int number)
{
    int64_t b = entry_of(base), rows = facts_live_q(base, b), keys = facts_live_kv(base, b);
    (void)number;
    facts_resize(
        out, base,
        (facts_extents){ .batch = 1, .rows = rows > 0 ? rows : 1, .keys = keys > 0 ? keys : 1 });
    out->has_lengths = rows == 0 || keys == 0; /* nothing is left: the length is 0 */
    out->ask.padding = out->has_lengths;
    out->ask.len_broadcast = 0;
    out->len_q[0] = (int32_t)rows;
    out->len_kv[0] = (int32_t)keys;
}

static void length_write(const facts_view *run, const facts_view *base, const facts_view before[],
                         int number)
{
    (void)before, (void)number;
    facts_cut_inputs(run, base, (facts_cut){ .batch = entry_of(base->problem) });
}

static void length_give(const facts_view *run, const facts_view *base, const facts_view before[],
                        int number)
{
    (void)before, (void)number;
    facts_cut_given(run, base, (facts_cut){ .batch = entry_of(base->problem) });
}

static bool to_entry(const facts_same *same, const int64_t a[4], int64_t b[4])
{
    const facts_problem *p = same->a->problem;
    int64_t live =
        is_keyed(same->id) ? facts_live_kv(p, same->number) : facts_live_q(p, same->number);
    b[0] = 0;
    return a[0] == same->number && a[2] < live && same->id != FACTS_TENSOR_DBIAS;
}

static void length_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    facts_held_all(out, base, run,
                   (facts_same){ .law = "a batch entry with a length is a smaller problem",
                                 .to = to_entry,
                                 .number = entry_of(base->problem) });
}

const facts_check_rule facts_law_length = {
    .ask = length_ask, .put = length_write, .give = length_give, .hold = length_hold
};

/* ---- another way to state the same problem
 * ----------------------------------------------------------------------------------------- */

static int window_runs(const facts_problem *p)
{
    (void)p;
    return 2;
}

/* Run 0: a window wider than all keys, where the case has none. Run 1: a quarter of the scale, four
 * times Q. */
static void window_ask(facts_problem *out, const facts_problem *base, int number)
{
    fattn_problem *ask = &out->ask;
    int64_t wide = base->ask.seq_q + base->ask.seq_kv;
    if (number == 1) {
        ask->has_attn_scale = 1;
        ask->attn_scale = facts_oracle_scale(base) / 4.0;
        return;
    }
    if (!ask->has_left) {
        ask->has_left = 1;
        ask->window_left = wide;
    }
    if (!ask->has_right) {
        ask->has_right = 1;
        ask->window_right = wide;
    }
}

/* K too: some fills depend on the scale */
static void window_write(const facts_view *run, const facts_view *base, const facts_view before[],
                         int number)
{
    (void)before;
    for (facts_walk w = facts_walk_of(run->problem->tensor[FACTS_TENSOR_Q].dim);
         number == 1 && facts_walk_on(&w);)
        facts_view_put(run, FACTS_TENSOR_Q, w.at, 4.0 * facts_view_get(base, FACTS_TENSOR_Q, w.at));
    for (facts_walk w = facts_walk_of(run->problem->tensor[FACTS_TENSOR_K].dim);
         number == 1 && facts_walk_on(&w);)
        facts_view_put(run, FACTS_TENSOR_K, w.at, facts_view_get(base, FACTS_TENSOR_K, w.at));
}

static void window_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    facts_held_all(out, base, &run[0],
                   (facts_same){ .law = "a window wider than the problem hides no key" });
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        /* dS is scaled before or after its cast: in f16 small values become other subnormal
         * numbers. */
        bool f16 = base->problem->ask.dtype == FATTN_F16,
             narrow = f16 && base->problem->ask.pass == FATTN_BACKWARD;
        if (facts_tensor_is_output(base->problem, id))
            facts_held_same(
                out, &(facts_same){ .law = "scale/4 and 4 Q are the same scores, bit for bit",
                                    .a = base,
                                    .b = &run[1],
                                    .id = id,
                                    .factor = id == FACTS_TENSOR_DQ ? 0.25 : 1.0,
                                    .bitwise = !narrow,
                                    .least = f16 ? 0x1p-10 : 0x1p-60 });
    }
}

const facts_check_rule facts_law_window = { .runs = window_runs,
                                            .ask = window_ask,
                                            .put = window_write,
                                            .give = facts_give_base,
                                            .hold = window_hold,
                                            .bits = true };
