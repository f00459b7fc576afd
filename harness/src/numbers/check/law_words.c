/* Laws between ways to ask for the same: a sink of zeros, dropout that drops nothing, ragged
 * tensors, pages. docs/numerics.md section 6. */
#include <math.h>

#include "check.h"
#include "numbers/fill/oracle_view.h"
#include "numbers/fill/places.h"
#include "numbers/fill/scalars.h"

/* ---- a sink of 0 is a key of zeros
 * ----------------------------------------------------------------------------------------- */

/* softmax=sink: run 0 is the same call with sinks of 0. The last run has no sink, and one more key
 * before all others. */
static int off_by_one_runs(const facts_problem *p)
{
    return p->off_by_one ? 1 : 2;
}

static bool is_last(const facts_problem *base, int number)
{
    return number + 1 == off_by_one_runs(base);
}

static void off_by_one_ask(facts_problem *out, const facts_problem *base, int number)
{
    out->off_by_one = true;
    if (!is_last(base, number))
        return;
    facts_resize(out, base, (facts_extents){ .keys = base->ask.seq_kv + 1 });
    out->off_by_one = false;
    out->ask.sink = out->ask.dsink = 0;
    out->array[FACTS_ARRAY_SINK].count = out->array[FACTS_ARRAY_DSINK].count = 0;
    for (int64_t b = 0; base->has_lengths && b < base->ask.batch; b++)
        out->len_kv[b]++;
}

static void off_by_one_write(const facts_view *run, const facts_view *base,
                             const facts_view before[], int number)
{
    (void)before;
    facts_cut_inputs(run, base, (facts_cut){ .key = is_last(base->problem, number) ? -1 : 0 });
}

static void off_by_one_give(const facts_view *run, const facts_view *base,
                            const facts_view before[], int number)
{
    if (is_last(base->problem, number))
        facts_cut_given(run, number ? &before[0] : base, (facts_cut){ 0 });
}

/* A bottom-right band may leave a row without keys, with only its sink. */
static bool to_one_key_on(const facts_same *same, const int64_t a[4], int64_t b[4])
{
    int64_t first, last;
    if (same->id == FACTS_TENSOR_DK || same->id == FACTS_TENSOR_DV) {
        b[2] = a[2] + 1;
        return true;
    }
    if (same->id == FACTS_TENSOR_DBIAS) {
        b[3] = a[3] + 1;
        return true;
    }
    facts_oracle_keys_of_row(same->b->problem, a[0], a[2], &first, &last);
    return first < last;
}

static void off_by_one_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    int last = off_by_one_runs(base->problem) - 1;
    facts_held_all(out, last ? &run[0] : base, &run[last],
                   (facts_same){ .law = "a sink of 0 is a key of zeros", .to = to_one_key_on });
}

const facts_check_rule facts_law_off_by_one = { .runs = off_by_one_runs,
                                                .ask = off_by_one_ask,
                                                .put = off_by_one_write,
                                                .give = off_by_one_give,
                                                .hold = off_by_one_hold };

/* ---- dropout that drops nothing is none
 * ------------------------------------------------------------------------------------ */

#define NEVER 0x1p-100

static int dropout_zero_runs(const facts_problem *p)
{
    (void)p;
    return 2;
}

/* Run 0 keeps every score: a probability that rounds to 0, or a mask of ones with a factor of 2.
 * Run 1 has no dropout. */
static void dropout_zero_ask(facts_problem *out, const facts_problem *base, int number)
{
    out->drop = number ? 0.0 : base->ask.dropout_mask ? 0.5 : NEVER;
    out->ask.dropout = base->ask.dropout_mask ? 0.0 : out->drop;
    out->ask.outputs &= ~FATTN_WANT_RNG_DUMP;
    out->tensor[FACTS_TENSOR_RNG_DUMP].present = false;
    if (number == 0)
        return;
    out->ask.dropout_mask = 0;
    out->ask.rng_bits = 0;
    out->tensor[FACTS_TENSOR_DROPOUT_MASK].present = false;
    for (facts_array_id id = FACTS_ARRAY_SEED; id <= FACTS_ARRAY_DROPOUT_SCALE_INVERSE; id++)
        out->array[id].count = 0;
}

static void dropout_zero_write(const facts_view *run, const facts_view *base,
                               const facts_view before[], int number)
{
    (void)base, (void)before, (void)number;
    if (facts_view_has(run, FACTS_TENSOR_DROPOUT_MASK))
        for (facts_walk w = facts_walk_of(run->problem->tensor[FACTS_TENSOR_DROPOUT_MASK].dim);
             facts_walk_on(&w);)
            facts_view_put(run, FACTS_TENSOR_DROPOUT_MASK, w.at, 1.0);
}

/* For a backward: the inputs of run 0 without its factor, which is a power of two. */
static void dropout_zero_give(const facts_view *run, const facts_view *base,
                              const facts_view before[], int number)
{
    if (number == 0)
        return;
    facts_cut_given(run, &before[0], (facts_cut){ 0 });
    for (facts_walk w = facts_walk_of(run->problem->tensor[FACTS_TENSOR_O].dim);
         base->problem->ask.dropout_mask && facts_walk_on(&w);)
        facts_view_put(run, FACTS_TENSOR_O, w.at, facts_view_get(run, FACTS_TENSOR_O, w.at) / 2.0);
}

static void dropout_zero_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    double half = base->problem->ask.dropout_mask ? 0.5 : 1.0;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        bool statistic = id >= FACTS_TENSOR_STATS && id <= FACTS_TENSOR_SUM_EXP;
        if (!facts_tensor_is_output(run->problem, id))
            continue;
        facts_held_same(out, &(facts_same){ .law = "dropout that drops nothing is none",
                                            .a = &run[0],
                                            .b = &run[1],
                                            .id = id,
                                            .factor = statistic ? 1.0 : half });
        if (statistic)
            facts_held_same(out, &(facts_same){ .law = "dropout does not change statistics",
                                                .a = base,
                                                .b = &run[1],
                                                .id = id });
    }
}

const facts_check_rule facts_law_dropout_zero = { .runs = dropout_zero_runs,
                                                  .ask = dropout_zero_ask,
                                                  .put = dropout_zero_write,
                                                  .give = dropout_zero_give,
                                                  .hold = dropout_zero_hold };

/* ---- ragged equals padded, paged equals contiguous
 * ------------------------------------------------------------------------------- */

static void ragged_ask(facts_problem *out, const facts_problem *base, int number)
{
    (void)base, (void)number;
    facts_unpack(out);
}

static void ragged_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    facts_held_all(out, base, run, (facts_same){ .law = "ragged sequences equal padded ones" });
}

const facts_check_rule facts_law_ragged = {
    .ask = ragged_ask, .put = facts_put_base, .give = facts_give_base, .hold = ragged_hold
};

static void paged_ask(facts_problem *out, const facts_problem *base, int number)
{
    (void)base, (void)number;
    facts_unpage(out);
}

static void paged_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    facts_held_all(out, base, run, (facts_same){ .law = "keys in pages are keys in a row" });
}

const facts_check_rule facts_law_paged = { .ask = paged_ask,
                                           .put = facts_put_base,
                                           .hold = paged_hold };

/* ---- a row that reads NaN or Inf shows it
 * --------------------------------------------------------------------------------------- */

static int nonfinite_runs(const facts_problem *p)
{
    (void)p;
    return 2;
}

/* A key of every entry and head, neither the first nor the last where there are others. */
static int64_t planted_key(const facts_problem *p, int64_t b)
{
    return facts_live_kv(p, b) / 2;
}

static void nonfinite_write(const facts_view *run, const facts_view *base,
                            const facts_view before[], int number)
{
    facts_tensor_id id = number ? FACTS_TENSOR_V : FACTS_TENSOR_K;
    (void)base, (void)before;
    for (facts_walk w = facts_walk_of(run->problem->tensor[id].dim); facts_walk_on(&w);)
        if (w.at[2] == planted_key(run->problem, w.at[0]))
            facts_view_put(run, id, w.at, number ? (double)INFINITY : (double)NAN);
}

/* The first element of a row that is not finite, or else its first one. */
static double first_not_finite(const facts_view *run, facts_tensor_id id, const int64_t row[4])
{
    for (int64_t c = 0; c < run->problem->tensor[id].dim[3]; c++) {
        const double got = facts_view_get(run, id, (const int64_t[4]){ row[0], row[1], row[2], c });
        if (!isfinite(got))
            return got;
    }
    return facts_view_get(run, id, (const int64_t[4]){ row[0], row[1], row[2], 0 });
}

/* NaN makes every weight of its row NaN, but under a bias of -inf, which is a mask. Inf reaches O
 * through a weight that is not 0: of scores that are never far apart. */
static bool must_show(const facts_problem *p, int number)
{
    const bool flat = (p->fill == FACTS_FILL_GAUSS || p->fill == FACTS_FILL_UNIFORM) &&
                      p->mod == FACTS_MOD_NONE &&
                      fabs(facts_oracle_scale(p)) * sqrt((double)p->ask.dim_qk) <= 2.0;
    return !p->ask.has_bias && (number == 0 || flat);
}

/* Training finds an overflow by its NaN and Inf, so a row that reads one and stays finite is wrong.
 * That other rows stay finite is no law (docs/numerics.md section 6). */
static void nonfinite_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    const facts_problem *p = base->problem;
    const facts_tensor_id id = p->ask.pass == FATTN_FORWARD ? FACTS_TENSOR_O : FACTS_TENSOR_DQ;
    static const char *const laws[] = { "a row that reads a NaN shows it",
                                        "a row that reads an Inf shows it" };
    const int64_t rows[4] = { p->ask.batch, p->ask.heads_q, p->ask.seq_q, 1 };
    out->id = id;
    out->law = laws[0];
    for (int r = 0; r < 2; r++)
        for (facts_walk w = facts_walk_of(rows); facts_walk_on(&w);) {
            int64_t first, last;
            if (w.at[2] >= facts_live_q(p, w.at[0]) || !facts_view_owes(base, id, w.at))
                continue;
            facts_oracle_keys_of_row(p, w.at[0], w.at[2], &first, &last);
            const double got = first_not_finite(&run[r], id, w.at);
            const bool reads = first <= planted_key(p, w.at[0]) && planted_key(p, w.at[0]) < last,
                       hit = !isfinite(got);
            facts_spread *s = &out->spread[r];
            *(reads ? &s->readers : &s->others) += 1;
            *(reads ? &s->reached : &s->strayed) += hit;
            if (reads && must_show(p, r))
                facts_held_note(out, laws[r], id, w.at, hit ? 0.0 : got, hit ? 0.0 : (double)NAN,
                                0.0);
            else
                out->compared++;
        }
}

const facts_check_rule facts_law_nonfinite = { .runs = nonfinite_runs,
                                               .put = nonfinite_write,
                                               .give = facts_give_base,
                                               .hold = nonfinite_hold,
                                               .records = true };
