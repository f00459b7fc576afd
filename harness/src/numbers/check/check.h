/* The checks beside the reference (check=). A check makes further runs of the same engine on inputs that are changed in a known
 * way, and compares the runs (docs/numerics.md, sections 5 to 7). Pure: worker/exec/checks.h makes the runs.
 *
 * A check consists of facts_check_runs runs. For each run:
 *   1. facts_check_ask gives its problem, and the memory is filled with that problem's fill.
 *   2. facts_check_write changes the inputs.
 *   3. A backward gets O and Stats of the reference. If the law needs those of another run, facts_check_give replaces them.
 *   4. The engine runs.
 * At the end facts_check_hold compares the runs. Each run is also compared with the reference, as every answer is. */
#ifndef FACTS_CHECK_H
#define FACTS_CHECK_H

#include "view.h"

#define FACTS_CHECK_RUNS 4

/* The effect of one number that is not finite: the rows that may read it and those of them that are
 * not finite, and the same two counts for all other live rows. */
typedef struct facts_spread {
    int64_t readers, reached, others, strayed;
} facts_spread;

/* The result of a check, and its worst element. */
typedef struct facts_held {
    int64_t compared, wrong;
    int64_t bits; /* elements with other bits, if the check asks only for close results */
    double ratio;
    const char *law; /* the law of the worst element: "O is linear in V" */
    facts_tensor_id id;
    int64_t at[4];
    double got, want, bound;
    facts_spread spread[2]; /* of check=nonfinite: NaN in a key, Inf in a value */
} facts_held;

int facts_check_runs(const facts_problem *base);
/* The reference does not compare the runs of this check, because their answers have no known bound.
 * Only the check itself does. */
bool facts_check_only_records(const facts_problem *base);
/* The check asks only for close results if the run's plan differs from the base's, because another
 * configuration of the same engine may answer. */
bool facts_check_takes_another_kernel(const facts_problem *base);
/* The problem of a run. It has the base's layout if the extents are equal, else a dense one in the
 * same order. It has no check. Its score modification is the base's recording (ask.score_mod). */
void facts_check_ask(facts_problem *out, const facts_problem *base, int number);
/* `run` has the contents of its fill. `before`: the runs with lower numbers. */
void facts_check_write(const facts_view *run, const facts_view *base, const facts_view before[],
                       int number);
/* For a backward, called after the reference's O and Stats were written. */
void facts_check_give(const facts_view *run, const facts_view *base, const facts_view before[],
                      int number);
void facts_check_hold(facts_held *out, const facts_view *base, const facts_view run[]);

/* ---- for the implementations of the checks
 * ---------------------------------------------------------------------------------- */

/* Records one comparison: |got - want| <= bound; a bound of 0 asks for equality. */
void facts_held_note(facts_held *held, const char *law, facts_tensor_id id, const int64_t at[4],
                     double got, double want, double bound);
/* Compares every element of `id` that both runs must write. Element `to` of b must be `factor`
 * times the element of a. `to` NULL: the same index. The comparison is bitwise, or within the
 * tolerances of both. */
typedef struct facts_same {
    const char *law;
    const facts_view *a, *b;
    facts_tensor_id id;
    double factor; /* 0: 1 */
    bool bitwise;  /* except for a tensor that need not repeat bit for bit */
    double least;  /* bitwise: elements with |a| below this are skipped */
    bool (*to)(const struct facts_same *same, const int64_t a[4],
               int64_t b[4]); /* false: skip the element */
    int64_t number;           /* a parameter for `to` */
    const void *owner;
} facts_same;
void facts_held_same(facts_held *held, const facts_same *same);
/* The same for every answer of `a`, except for the scores that dropout kept. */
void facts_held_all(facts_held *held, const facts_view *a, const facts_view *b, facts_same same);

/* Does a correct engine write this tensor with the same bits every time? */
bool facts_repeats(const facts_problem *problem, facts_tensor_id id);

/* One check. NULL members mean: one run; the base's problem; unchanged inputs; O and Stats of the
 * reference. */
typedef struct facts_check_rule {
    int (*runs)(const facts_problem *base);
    void (*ask)(facts_problem *out, const facts_problem *base,
                int number); /* NULL: the base's problem */
    void (*put)(const facts_view *run, const facts_view *base, const facts_view before[],
                int number);
    void (*give)(const facts_view *run, const facts_view *base, const facts_view before[],
                 int number);
    void (*hold)(facts_held *out, const facts_view *base, const facts_view run[]);
    bool records,
        bits; /* facts_check_only_records; bits: compares the bits of runs with another plan too */
} facts_check_rule;

extern const facts_check_rule facts_probe_count, facts_probe_readout, facts_probe_keep,
    facts_probe_ds, facts_probe_pow2, facts_probe_permute;
extern const facts_check_rule facts_law_sum_rows, facts_law_linear, facts_law_shift,
    facts_law_others, facts_law_key_order;
extern const facts_check_rule facts_law_repeat_heads, facts_law_split, facts_law_prefix,
    facts_law_length, facts_law_window;
extern const facts_check_rule facts_law_off_by_one, facts_law_dropout_zero, facts_law_ragged,
    facts_law_paged, facts_law_nonfinite;
extern const facts_check_rule facts_identities;

/* Copies the base's inputs at (b,h,s) + from[] into all of `run`. If `run` has more heads of K and
 * V than the base, each copy has the head that its query heads read. Copies also bias and the
 * tensors of a modification; for a backward dO, and with `given` O and Stats. Keys before the
 * base's first are zeros. Rows beyond a length that have no place in the base (ragged, paged) are
 * not changed. */
typedef struct facts_cut {
    int64_t batch, row, key; /* the index in the base at which the run starts */
} facts_cut;
void facts_cut_inputs(const facts_view *run, const facts_view *base, facts_cut from);
void facts_cut_given(const facts_view *run, const facts_view *base, facts_cut from);
/* `put` and `give` of a run with the contents of the base. */
void facts_put_base(const facts_view *run, const facts_view *base, const facts_view before[],
                    int number);
void facts_give_base(const facts_view *run, const facts_view *base, const facts_view before[],
                     int number);
/* The problem with other extents: batch, rows, keys, heads of K and V. */
typedef struct facts_extents {
    int64_t batch, rows, keys, heads_kv; /* 0: unchanged */
} facts_extents;
void facts_resize(facts_problem *out, const facts_problem *base, facts_extents to);
/* The same problem without shared rows: not ragged and not paged. A ragged layout becomes dense b s
 * h d. */
void facts_unpack(facts_problem *out);
void facts_unpage(facts_problem *out);

#endif
