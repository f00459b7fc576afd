/* Probes whose answers are known bit by bit from another run: powers of two (P5), permutations
 * (P6). docs/numerics.md section 5. */
#include <math.h>

#include "check.h"

/* ---- P5 powers of two
 * -------------------------------------------------------------------------------------------------------
 */

/* Multiplying by 2^k changes no significand, so it passes through every rounding, away from the
 * ends of the range. Run 0 is the comparison: keys so small that a quarter of them might not exist
 * in the type are 0 there. Run 1: V, or dO, times 8. Run 2: Q times 4 and K over 4: the same
 * scores. */
#define SMALL_KEY 0x1p-10

static int pow2_runs(const facts_problem *p)
{
    (void)p;
    return 3;
}

static void scale_all(const facts_view *run, facts_tensor_id id, double factor)
{
    for (facts_walk w = facts_walk_of(run->problem->tensor[id].dim); facts_walk_on(&w);)
        facts_view_put(run, id, w.at, factor * facts_view_get(run, id, w.at));
}

static void pow2_write(const facts_view *run, const facts_view *base, const facts_view before[],
                       int number)
{
    (void)base, (void)before;
    for (facts_walk w = facts_walk_of(run->problem->tensor[FACTS_TENSOR_K].dim); facts_walk_on(&w);)
        if (fabs(facts_view_get(run, FACTS_TENSOR_K, w.at)) < SMALL_KEY)
            facts_view_put(run, FACTS_TENSOR_K, w.at, 0.0);
    if (number == 1)
        scale_all(run, run->problem->ask.pass == FATTN_BACKWARD ? FACTS_TENSOR_DO : FACTS_TENSOR_V,
                  8.0);
    if (number == 2) {
        scale_all(run, FACTS_TENSOR_Q, 4.0);
        scale_all(run, FACTS_TENSOR_K, 0.25);
    }
}

static void pow2_give(const facts_view *run, const facts_view *base, const facts_view before[],
                      int number)
{
    (void)base;
    if (number > 0)
        facts_cut_given(run, &before[0], (facts_cut){ 0 });
}

/* Below this, the answer or a term of it may be subnormal in one of the two runs. */
static double least_of(const facts_tensor *t)
{
    return t->dtype == FATTN_F16 ? 0x1p-10 : 0x1p-60;
}

static void hold_scaled(facts_held *out, const facts_view run[], int number, facts_tensor_id id,
                        double factor)
{
    /* f16 casts dS, and dK of each head before heads that share K are summed: small values are subnormal at one size and not at the
     * other. */
    const fattn_problem *ask = &run->problem->ask;
    const bool parts = id == FACTS_TENSOR_DK && ask->heads_k < ask->heads_q;
    const bool narrow =
        ask->dtype == FATTN_F16 && ask->pass == FATTN_BACKWARD && (number == 1 || parts);
    facts_held_same(
        out, &(facts_same){ .law = number == 1
                                       ? "8 times the input gives 8 times the answer, bit for bit"
                                       : "4 Q and K/4 are the same scores, bit for bit",
                            .a = &run[0],
                            .b = &run[number],
                            .id = id,
                            .factor = factor,
                            .bitwise = !narrow,
                            .least = least_of(&run->problem->tensor[id]) });
}

static void pow2_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    static const struct {
        facts_tensor_id id;
        double factor[2];
    } expects[] = { { FACTS_TENSOR_O, { 8.0, 1.0 } },   { FACTS_TENSOR_STATS, { 1.0, 1.0 } },
                    { FACTS_TENSOR_MAX, { 1.0, 1.0 } }, { FACTS_TENSOR_SUM_EXP, { 1.0, 1.0 } },
                    { FACTS_TENSOR_DQ, { 8.0, 0.25 } }, { FACTS_TENSOR_DK, { 8.0, 4.0 } },
                    { FACTS_TENSOR_DV, { 8.0, 1.0 } },  { FACTS_TENSOR_DBIAS, { 8.0, 1.0 } } };
    for (size_t i = 0; i < sizeof expects / sizeof *expects; i++)
        for (int number = 1; number < 3 && facts_tensor_is_output(base->problem, expects[i].id);
             number++)
            hold_scaled(out, run, number, expects[i].id, expects[i].factor[number - 1]);
}

const facts_check_rule facts_probe_pow2 = {
    .runs = pow2_runs, .put = pow2_write, .give = pow2_give, .hold = pow2_hold
};

/* ---- P6 permutation
 * ---------------------------------------------------------------------------------------------------------
 */

/* Batch entries move up by one, and so do the groups of heads that share K and V. No sum crosses
 * either, so the answers move in the same way. */
static void moved(const facts_problem *p, const int64_t dim[4], const int64_t at[4],
                  int64_t from[4])
{
    int64_t unit = facts_head_unit(p), groups = p->ask.heads_q / unit;
    for (int d = 0; d < 4; d++)
        from[d] = at[d];
    if (dim[0] > 1)
        from[0] = (at[0] + 1) % dim[0];
    if (dim[1] > 1 && groups > 1)
        from[1] = (at[1] + dim[1] / groups) % dim[1];
}

static void permute_ask(facts_problem *out, const facts_problem *base, int number)
{
    (void)number;
    for (int64_t b = 0; base->has_lengths && b < base->ask.batch; b++) {
        out->len_q[b] = base->len_q[(b + 1) % base->ask.batch];
        out->len_kv[b] = base->len_kv[(b + 1) % base->ask.batch];
        out->unused[b] = base->unused[(b + 1) % base->ask.batch];
    }
}

static void permute_one(const facts_view *run, const facts_view *base, facts_tensor_id id)
{
    const int64_t *dim = run->problem->tensor[id].dim;
    if (!facts_view_has(run, id))
        return;
    for (facts_walk w = facts_walk_of(dim); facts_walk_on(&w);) {
        int64_t from[4];
        moved(run->problem, dim, w.at, from);
        facts_view_put(run, id, w.at, facts_view_get(base, id, from));
    }
}

static void permute_write(const facts_view *run, const facts_view *base, const facts_view before[],
                          int number)
{
    static const facts_tensor_id inputs[] = { FACTS_TENSOR_Q,    FACTS_TENSOR_K,
                                              FACTS_TENSOR_V,    FACTS_TENSOR_DO,
                                              FACTS_TENSOR_BIAS, FACTS_TENSOR_MOD_A,
                                              FACTS_TENSOR_MOD_B };
    (void)before, (void)number;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        permute_one(run, base, inputs[i]);
}

static void permute_give(const facts_view *run, const facts_view *base, const facts_view before[],
                         int number)
{
    (void)before, (void)number;
    permute_one(run, base, FACTS_TENSOR_O);
    permute_one(run, base, FACTS_TENSOR_STATS);
}

/* From the place in the base run to the new place. */
static bool permute_to(const facts_same *same, const int64_t a[4], int64_t b[4])
{
    const facts_problem *p = same->a->problem;
    const int64_t *dim = p->tensor[same->id].dim;
    int64_t unit = facts_head_unit(p), groups = p->ask.heads_q / unit;
    b[0] = dim[0] > 1 ? (a[0] + dim[0] - 1) % dim[0] : a[0];
    b[1] = dim[1] > 1 && groups > 1 ? (a[1] + dim[1] - dim[1] / groups) % dim[1] : a[1];
    return true;
}

/* Not bit for bit: an engine may distribute rows to its units in an order that follows b and h. The
 * number of different bits is recorded. */
static void permute_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(base->problem, id))
            facts_held_same(
                out, &(facts_same){
                         .law = "the position of a batch entry or group of heads does not matter",
                         .a = base,
                         .b = run,
                         .id = id,
                         .to = permute_to });
}

const facts_check_rule facts_probe_permute = {
    .ask = permute_ask, .put = permute_write, .give = permute_give, .hold = permute_hold
};
