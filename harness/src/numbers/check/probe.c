/* Exact probes: inputs whose answer shows which key contributed where. docs/numerics.md section 5.
 */
#include <math.h>

#include "check.h"
#include "numbers/dtype.h"
#include "numbers/fill/oracle_view.h"
#include "numbers/fill/places.h"
#include "probe.h"

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

static double roundoff_of(int32_t dtype)
{
    switch (dtype) {
    case FATTN_F16:
        return 0x1p-11;
    case FATTN_F32:
        return 0x1p-24;
    case FATTN_E4M3:
        return 0x1p-4;
    case FATTN_E5M2:
        return 0x1p-3;
    default:
        return 0x1p-8;
    }
}

/* ---- P1 count
 * -------------------------------------------------------------------------------------------------------------
 */

/* Q = 0 makes every allowed key's P the same, 1/n, whatever the scale: exp(LSE) counts the keys,
 * and with V_j = e_((j + r) mod dv) channel c counts those of one residue class. r sets heads and
 * batch entries apart. */
static int64_t residue_of(const facts_view *v, int64_t b, int64_t value_head, int64_t j)
{
    return (j + 5 * value_head + 11 * b) % v->problem->ask.dim_v;
}

static void count_write(const facts_view *run, const facts_view *base, const facts_view before[],
                        int number)
{
    (void)base, (void)before, (void)number;
    put_all(run, FACTS_TENSOR_Q, 0.0);
    for (facts_walk w = facts_walk_of(run->problem->tensor[FACTS_TENSOR_V].dim); facts_walk_on(&w);)
        facts_view_put(run, FACTS_TENSOR_V, w.at,
                       w.at[3] == residue_of(run, w.at[0], w.at[1], w.at[2]) ? 1.0 : 0.0);
}

/* How many of the keys [first, last) lie in channel c. */
static int64_t members(const facts_view *v, const int64_t at[4], int64_t first, int64_t last)
{
    int64_t dv = v->problem->ask.dim_v,
            r = residue_of(v, at[0], facts_value_head(v->problem, at[1]), 0);
    int64_t lead =
        ((at[3] - r - first) % dv + dv) % dv; /* the first of them, counted from `first` */
    return last - first > lead ? (last - first - lead + dv - 1) / dv : 0;
}

static void count_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    const facts_problem *p = run->problem;
    double uo = roundoff_of(p->ask.o_dtype), lse, tau;
    (void)base;
    for (facts_walk w = facts_walk_of(p->tensor[FACTS_TENSOR_O].dim); facts_walk_on(&w);) {
        int64_t first, last, n = keys_of(run, w.at, &first, &last);
        const int64_t row[4] = { w.at[0], w.at[1], w.at[2], 0 };
        if (!facts_view_owes(run, FACTS_TENSOR_O, w.at) || n == 0)
            continue;
        if (w.at[3] == 0 && facts_view_lse(run, row, &lse, &tau) && (double)n * tau <= 0.25)
            facts_held_note(out, "exp(LSE) counts the keys", FACTS_TENSOR_STATS, row, exp(lse),
                            (double)n, 0.25);
        if (2.0 * uo * ceil((double)n / (double)p->ask.dim_v) < 0.9)
            facts_held_note(out, "n O counts the keys of a class", FACTS_TENSOR_O, w.at,
                            (double)n * facts_view_get(run, FACTS_TENSOR_O, w.at),
                            (double)members(run, w.at, first, last), 0.5);
    }
}

const facts_check_rule facts_probe_count = { .put = count_write, .hold = count_hold };

/* ---- P2 read-out
 * ----------------------------------------------------------------------------------------------------------
 */

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

static int readout_runs(const facts_problem *p)
{
    int64_t windows = windows_of(p->ask.seq_kv, p->ask.dim_v);
    return windows < FACTS_CHECK_RUNS ? (int)windows : FACTS_CHECK_RUNS;
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

static void readout_write(const facts_view *run, const facts_view *base, const facts_view before[],
                          int number)
{
    (void)base, (void)before;
    one_hot(run, FACTS_TENSOR_V, number);
}

/* If every key had a run: P of a row adds up to one, or to 0 if a bias or a modification left no
 * key. */
static void hold_row_sum(facts_held *out, const facts_view run[], int runs, const int64_t row[4])
{
    double sum = 0.0, bound = 0.0, want = 0.0;
    int64_t first, last;
    if (keys_of(run, row, &first, &last) == 0 || !facts_view_owes(run, FACTS_TENSOR_O, row))
        return;
    for (int r = 0; r < runs; r++)
        for (int64_t c = 0; c < run->problem->ask.dim_v; c++) {
            const int64_t at[4] = { row[0], row[1], row[2], c };
            sum += facts_view_get(&run[r], FACTS_TENSOR_O, at);
            want += facts_view_want(&run[r], FACTS_TENSOR_O, at);
            bound += facts_view_bound(&run[r], FACTS_TENSOR_O, at);
        }
    facts_held_note(out, "P of a row adds up to 1", FACTS_TENSOR_O, row, sum,
                    want < 0.5 ? 0.0 : 1.0, bound);
}

static void readout_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    const facts_problem *p = run->problem;
    int runs = facts_check_runs(base->problem);
    for (int r = 0; r < runs; r++)
        for (facts_walk w = facts_walk_of(p->tensor[FACTS_TENSOR_O].dim); facts_walk_on(&w);) {
            int64_t first, last, v_head = facts_value_head(p, w.at[1]);
            int64_t key =
                w.at[3] + start_of(&run[r], w.at[0], p->ask.heads_v, v_head, p->ask.dim_v, r);
            if (!facts_view_owes(&run[r], FACTS_TENSOR_O, w.at))
                continue;
            keys_of(&run[r], w.at, &first, &last);
            bool allowed = key >= first && key < last;
            facts_held_note(
                out, allowed ? "O is P of one key" : "a key that a row may not read has P = 0",
                FACTS_TENSOR_O, w.at, facts_view_get(&run[r], FACTS_TENSOR_O, w.at),
                allowed ? facts_view_want(&run[r], FACTS_TENSOR_O, w.at) : 0.0,
                allowed ? facts_view_bound(&run[r], FACTS_TENSOR_O, w.at) : 0.0);
        }
    if (windows_of(p->ask.seq_kv, p->ask.dim_v) > runs)
        return;
    const int64_t rows[4] = { p->ask.batch, p->ask.heads_q, p->ask.seq_q, 1 };
    for (facts_walk w = facts_walk_of(rows); facts_walk_on(&w);)
        hold_row_sum(out, run, runs, w.at);
}

const facts_check_rule facts_probe_readout = { .runs = readout_runs,
                                               .put = readout_write,
                                               .hold = readout_hold };

/* ---- P3 keep
 * --------------------------------------------------------------------------------------------------------------
 */

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
    double u = 2.0 * roundoff_of(problem->ask.dtype) +
               roundoff_of(backward ? problem->ask.grad_dtype : problem->ask.o_dtype);
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
double facts_keep_room(int64_t n, double p)
{
    return 5.0 * sqrt(4.0 * (double)n * p * (1.0 - p)) + 0.5;
}

bool facts_keep_is_likely(const facts_keep *keep, double p)
{
    return fabs((double)keep->kept - (double)keep->seen * (1.0 - p)) <=
           facts_keep_room(keep->seen, p);
}

/* ---- P4 dS
 * ----------------------------------------------------------------------------------------------------------------
 */

/* K_j = e_(j-w): dQ_ic = scale dS_(i,w+c). And with K = 0 and one row of Q after another a unit
 * vector, in one head of each group: dK_jc = scale dS_(w+c,j), while dQ is a sum of zeros. */
static int ds_runs(const facts_problem *p)
{
    int64_t windows = windows_of(p->ask.seq_kv, p->ask.dim_qk);
    return windows < FACTS_CHECK_RUNS - 1 ? (int)windows + 1 : FACTS_CHECK_RUNS;
}

static void ds_write(const facts_view *run, const facts_view *base, const facts_view before[],
                     int number)
{
    (void)before;
    if (number + 1 < ds_runs(base->problem)) {
        one_hot(run, FACTS_TENSOR_K, number);
        return;
    }
    const facts_problem *p = run->problem;
    const int64_t *dim = p->tensor[FACTS_TENSOR_Q].dim;
    put_all(run, FACTS_TENSOR_K, 0.0);
    for (facts_walk w = facts_walk_of(dim); facts_walk_on(&w);) {
        int64_t start = facts_window_start(dim[2], facts_live_q(p, w.at[0]), dim[3],
                                           w.at[0] * dim[1] + w.at[1], 0);
        facts_view_put(
            run, FACTS_TENSOR_Q, w.at,
            w.at[1] % (p->ask.heads_q / p->ask.heads_k) == 0 && w.at[2] == start + w.at[3] ? 1.0
                                                                                           : 0.0);
    }
}

static void hold_dq(facts_held *out, const facts_view *run, int number)
{
    const facts_problem *p = run->problem;
    for (facts_walk w = facts_walk_of(p->tensor[FACTS_TENSOR_DQ].dim); facts_walk_on(&w);) {
        int64_t first, last,
            key = w.at[3] + start_of(run, w.at[0], p->ask.heads_k, facts_key_head(p, w.at[1]),
                                     p->ask.dim_qk, number);
        keys_of(run, w.at, &first, &last);
        bool allowed = key >= first && key < last;
        if (facts_view_owes(run, FACTS_TENSOR_DQ, w.at))
            facts_held_note(
                out, allowed ? "dQ is dS of one key" : "a key that a row may not read has dS = 0",
                FACTS_TENSOR_DQ, w.at, facts_view_get(run, FACTS_TENSOR_DQ, w.at),
                allowed ? facts_view_want(run, FACTS_TENSOR_DQ, w.at) : 0.0,
                allowed ? facts_view_bound(run, FACTS_TENSOR_DQ, w.at) : 0.0);
    }
}

static void hold_dk(facts_held *out, const facts_view *run)
{
    const facts_problem *p = run->problem;
    int64_t group = p->ask.heads_q / p->ask.heads_k;
    for (facts_walk w = facts_walk_of(p->tensor[FACTS_TENSOR_DK].dim); facts_walk_on(&w);) {
        int64_t h = w.at[1] * group, first, last;
        int64_t start = facts_window_start(p->ask.seq_q, facts_live_q(p, w.at[0]), p->ask.dim_qk,
                                           w.at[0] * p->ask.heads_q + h, 0);
        const int64_t row[4] = { w.at[0], h, start + w.at[3], 0 };
        bool allowed = row[2] < p->ask.seq_q;
        if (allowed) {
            keys_of(run, row, &first, &last);
            allowed = w.at[2] >= first && w.at[2] < last;
        }
        if (facts_view_owes(run, FACTS_TENSOR_DK, w.at))
            facts_held_note(
                out, allowed ? "dK is dS of one row" : "a row that may not read a key has dS = 0",
                FACTS_TENSOR_DK, w.at, facts_view_get(run, FACTS_TENSOR_DK, w.at),
                allowed ? facts_view_want(run, FACTS_TENSOR_DK, w.at) : 0.0,
                allowed ? facts_view_bound(run, FACTS_TENSOR_DK, w.at) : 0.0);
    }
    for (facts_walk w = facts_walk_of(p->tensor[FACTS_TENSOR_DQ].dim); facts_walk_on(&w);)
        if (facts_view_owes(run, FACTS_TENSOR_DQ, w.at))
            facts_held_note(out, "keys of zeros give dQ = 0", FACTS_TENSOR_DQ, w.at,
                            facts_view_get(run, FACTS_TENSOR_DQ, w.at), 0.0, 0.0);
}

static void ds_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    int runs = ds_runs(base->problem);
    for (int r = 0; r + 1 < runs; r++)
        hold_dq(out, &run[r], r);
    hold_dk(out, &run[runs - 1]);
}

const facts_check_rule facts_probe_ds = { .runs = ds_runs, .put = ds_write, .hold = ds_hold };
