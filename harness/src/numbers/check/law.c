/* Laws between runs of one shape. docs/numerics.md section 6 derives each. */
#include <math.h>

#include "check.h"
#include "numbers/fill/fill_element.h"
#include "numbers/fill/oracle_view.h"
#include "numbers/fill/places.h"
#include "numbers/fill/scalars.h"

/* Whole sixteenths within -4 and 4: sums of two are exact in every type but the 8 bit ones. */
static double on_grid(double x)
{
    return fmax(-4.0, fmin(4.0, rint(16.0 * x) / 16.0));
}

static double small_at(const facts_view *v, facts_stream stream, uint64_t e)
{
    return ((double)facts_pick(facts_draw_at(v->problem->seed, stream, FACTS_LANE_CHOICE, e).r[1],
                               129) -
            64.0) /
           16.0;
}

/* ---- rows of P sum to one
 * ---------------------------------------------------------------------------------------------------
 */

static bool is_one(int64_t c, int64_t dv)
{
    return c == 0 || c == dv / 2 || c == dv - 1;
}

static void sum_rows_write(const facts_view *run, const facts_view *base, const facts_view before[],
                           int number)
{
    int64_t dv = run->problem->ask.dim_v;
    (void)base, (void)before, (void)number;
    for (facts_walk w = facts_walk_of(run->problem->tensor[FACTS_TENSOR_V].dim); facts_walk_on(&w);)
        if (is_one(w.at[3], dv))
            facts_view_put(run, FACTS_TENSOR_V, w.at, 1.0);
}

static bool to_other_channels(const facts_same *same, const int64_t a[4], int64_t b[4])
{
    (void)b;
    return !is_one(a[3], same->number);
}

/* The sum of a row of P': V's code is 1, and 8-bit types have scales. */
static double sum_of_row(const facts_problem *p)
{
    if (!facts_is_fp8(p->ask.dtype))
        return 1.0;
    return facts_array_scalar(p, FACTS_ARRAY_SCALE_S) *
           facts_array_scalar(p, FACTS_ARRAY_DESCALE_S) *
           facts_array_scalar(p, FACTS_ARRAY_DESCALE_V);
}

/* V[:,c] = 1 makes O[:,c] the sum of a row of P; the other channels and the statistics must not
 * depend on it. */
static void sum_rows_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    const facts_problem *p = run->problem;
    const double sum = sum_of_row(p), unit = facts_view_limits(run, FACTS_TENSOR_O).unit;
    for (facts_walk w = facts_walk_of(p->tensor[FACTS_TENSOR_O].dim); facts_walk_on(&w);)
        if (is_one(w.at[3], p->ask.dim_v) && facts_view_owes(run, FACTS_TENSOR_O, w.at) &&
            facts_view_want(run, FACTS_TENSOR_O, w.at) > 0.5 * sum)
            facts_held_note(out, "rows of P sum to 1", FACTS_TENSOR_O, w.at,
                            facts_view_get(run, FACTS_TENSOR_O, w.at) * unit, sum,
                            facts_view_bound(run, FACTS_TENSOR_O, w.at));
    for (facts_tensor_id id = FACTS_TENSOR_O; id <= FACTS_TENSOR_SUM_EXP; id++)
        facts_held_same(out,
                        &(facts_same){ .law = "a channel of V reaches its own channel of O alone",
                                       .a = base,
                                       .b = run,
                                       .id = id,
                                       .bitwise = true,
                                       .to = id == FACTS_TENSOR_O ? to_other_channels : NULL,
                                       .number = p->ask.dim_v });
}

const facts_check_rule facts_law_sum_rows = { .put = sum_rows_write, .hold = sum_rows_hold };

/* ---- linear in V, and in dO
 * ---------------------------------------------------------------------------------------------------
 */

static int linear_runs(const facts_problem *p)
{
    (void)p;
    return 3;
}

/* X, Y, X + Y. */
static void linear_write(const facts_view *run, const facts_view *base, const facts_view before[],
                         int number)
{
    bool backward = run->problem->ask.pass == FATTN_BACKWARD;
    facts_tensor_id id = backward ? FACTS_TENSOR_DO : FACTS_TENSOR_V;
    facts_stream stream = backward ? FACTS_STREAM_DO : FACTS_STREAM_V;
    const int64_t *dim = run->problem->tensor[id].dim;
    (void)base, (void)before;
    for (facts_walk w = facts_walk_of(dim); facts_walk_on(&w);) {
        double x = on_grid(facts_view_get(run, id, w.at)),
               y = small_at(run, stream,
                            facts_element_number(dim, w.at[0], w.at[1], w.at[2], w.at[3]));
        facts_view_put(run, id, w.at, number == 0 ? x : number == 1 ? y : x + y);
    }
}

static void hold_sum(facts_held *out, const facts_view run[], facts_tensor_id id, const char *law)
{
    facts_limits limits[3];
    for (int r = 0; r < 3; r++)
        limits[r] = facts_view_limits(&run[r], id);
    for (facts_walk w = facts_walk_of(run->problem->tensor[id].dim); facts_walk_on(&w);) {
        double bound = 0.0;
        if (!facts_view_owes(run, id, w.at))
            continue;
        for (int r = 0; r < 3; r++)
            bound += facts_view_tolerance(&run[r], &limits[r], id, w.at);
        facts_held_note(out, law, id, w.at, facts_view_get(&run[2], id, w.at),
                        facts_view_get(&run[0], id, w.at) + facts_view_get(&run[1], id, w.at),
                        bound);
    }
}

static void linear_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    bool backward = base->problem->ask.pass == FATTN_BACKWARD;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(base->problem, id) && (backward || id == FACTS_TENSOR_O))
            hold_sum(out, run, id, backward ? "gradients are linear in dO" : "O is linear in V");
    for (facts_tensor_id id = FACTS_TENSOR_STATS; id <= FACTS_TENSOR_SUM_EXP && !backward; id++)
        for (int r = 0; r < 3; r++)
            facts_held_same(out, &(facts_same){ .law = "statistics do not depend on V",
                                                .a = base,
                                                .b = &run[r],
                                                .id = id,
                                                .bitwise = true });
}

const facts_check_rule facts_law_linear = {
    .runs = linear_runs, .put = linear_write, .give = facts_give_base, .hold = linear_hold
};

/* ---- a shift of all keys
 * -------------------------------------------------------------------------------------------------------
 */

static int shift_runs(const facts_problem *p)
{
    (void)p;
    return 2;
}

/* The same for all keys of all heads: w in sixteenths within -2 and 2. */
static double shift_at(const facts_view *v, int64_t d)
{
    return small_at(v, FACTS_STREAM_DIRECTION, (uint64_t)d) / 4.0;
}

static double shift_rounded(const facts_view *v, int64_t d)
{
    return rint(16.0 * shift_at(v, d)) / 16.0;
}

static void shift_write(const facts_view *run, const facts_view *base, const facts_view before[],
                        int number)
{
    (void)base, (void)before;
    for (facts_walk w = facts_walk_of(run->problem->tensor[FACTS_TENSOR_K].dim); facts_walk_on(&w);)
        facts_view_put(run, FACTS_TENSOR_K, w.at,
                       on_grid(facts_view_get(run, FACTS_TENSOR_K, w.at)) +
                           (number ? shift_rounded(run, w.at[3]) : 0.0));
}

/* The change of all scores of a row. */
static double moved_by(const facts_view *v, const int64_t row[4])
{
    double sum = 0.0;
    for (int64_t c = 0; c < v->problem->ask.dim_qk; c++)
        sum += facts_view_get(v, FACTS_TENSOR_Q, (const int64_t[4]){ row[0], row[1], row[2], c }) *
               shift_rounded(v, c);
    sum *= facts_oracle_scale(v->problem);
    return v->problem->mod == FACTS_MOD_TEMPERATURE ? sum / v->problem->mod_parameter[0] : sum;
}

static void shift_give(const facts_view *run, const facts_view *base, const facts_view before[],
                       int number)
{
    (void)base;
    if (number == 0)
        return;
    facts_cut_given(run, &before[0], (facts_cut){ 0 });
    for (facts_walk w = facts_walk_of(run->problem->tensor[FACTS_TENSOR_STATS].dim);
         facts_walk_on(&w);)
        facts_view_put(run, FACTS_TENSOR_STATS, w.at,
                       facts_view_get(run, FACTS_TENSOR_STATS, w.at) + moved_by(run, w.at));
}

static void hold_moved(facts_held *out, const facts_view run[])
{
    const int64_t rows[4] = { run->problem->ask.batch, run->problem->ask.heads_q,
                              run->problem->ask.seq_q, 1 };
    for (facts_walk w = facts_walk_of(rows); facts_walk_on(&w);) {
        double lse[2], tau[2];
        if (facts_view_owes(run, FACTS_TENSOR_O, w.at) &&
            w.at[2] < facts_live_q(run->problem, w.at[0]) &&
            facts_view_lse(&run[0], w.at, &lse[0], &tau[0]) &&
            facts_view_lse(&run[1], w.at, &lse[1], &tau[1]))
            facts_held_note(out, "K + w moves the log-sum-exp by scale q.w", FACTS_TENSOR_STATS,
                            w.at, lse[1], lse[0] + moved_by(run, w.at), tau[0] + tau[1]);
    }
}

static void shift_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    /* Not dQ: it changes by scale w sum_j dS_ij, which is the rounding of the given O. */
    static const facts_tensor_id same[] = { FACTS_TENSOR_O, FACTS_TENSOR_DK, FACTS_TENSOR_DV };
    for (int i = 0; i < 3; i++)
        if (facts_tensor_is_output(base->problem, same[i]))
            facts_held_same(out,
                            &(facts_same){ .law = "a shift of all keys does not change the softmax",
                                           .a = &run[0],
                                           .b = &run[1],
                                           .id = same[i] });
    if (base->problem->ask.pass == FATTN_FORWARD)
        hold_moved(out, run);
}

const facts_check_rule facts_law_shift = {
    .runs = shift_runs, .put = shift_write, .give = shift_give, .hold = shift_hold
};

/* ---- independence of other rows, heads and entries
 * ------------------------------------------------------------------------------ */

/* The subject: the first batch entry with rows and keys, and its first group of heads. Run 0
 * replaces all other inputs: other batch entries, other groups, padded rows and keys. Run 1
 * compares the first half of the subject's rows; it replaces the other rows and every key that none
 * of the first half reads. */
static int64_t subject_of(const facts_problem *p)
{
    for (int64_t b = 0; b < p->ask.batch; b++)
        if (facts_live_q(p, b) > 0 && facts_live_kv(p, b) > 0)
            return b;
    return 0;
}

static int64_t upper_rows(const facts_problem *p, int64_t b)
{
    return (facts_live_q(p, b) + 1) / 2;
}

/* The keys [*first, *last) that some of the rows below `rows` may read. */
static void keys_of_rows(const facts_problem *p, int64_t b, int64_t rows, int64_t *first,
                         int64_t *last)
{
    *first = p->ask.seq_kv;
    *last = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t from, to;
        facts_oracle_keys_of_row(p, b, i, &from, &to);
        if (from == to)
            continue;
        *first = from < *first ? from : *first;
        *last = to > *last ? to : *last;
    }
}

static int others_runs(const facts_problem *p)
{
    int64_t b = subject_of(p), first, last;
    keys_of_rows(p, b, upper_rows(p, b), &first, &last);
    return first > 0 || last < facts_live_kv(p, b) ? 2 : 1;
}

typedef struct subject {
    int64_t b, rows, first, last, unit;
} subject;

static subject subject_at(const facts_problem *p, int number)
{
    subject s = { .b = subject_of(p), .unit = facts_head_unit(p) };
    s.rows = number ? upper_rows(p, s.b) : facts_live_q(p, s.b);
    keys_of_rows(p, s.b, s.rows, &s.first, &s.last);
    return s;
}

/* Heads of this tensor in the subject's group. */
static int64_t heads_of(const facts_problem *p, facts_tensor_id id, int64_t unit)
{
    return id == FACTS_TENSOR_K || id == FACTS_TENSOR_DK ? unit / (p->ask.heads_q / p->ask.heads_k)
           : id == FACTS_TENSOR_V || id == FACTS_TENSOR_DV
               ? unit / (p->ask.heads_q / p->ask.heads_v)
               : unit;
}

static bool is_keyed(facts_tensor_id id)
{
    return id == FACTS_TENSOR_K || id == FACTS_TENSOR_V || id == FACTS_TENSOR_DK ||
           id == FACTS_TENSOR_DV;
}

static bool is_subjects(const facts_problem *p, const subject *s, facts_tensor_id id,
                        const int64_t at[4])
{
    bool inside = is_keyed(id) ? at[2] >= s->first && at[2] < s->last : at[2] < s->rows;
    return at[0] == s->b && at[1] < heads_of(p, id, s->unit) && inside;
}

static void others_write(const facts_view *run, const facts_view *base, const facts_view before[],
                         int number)
{
    static const facts_tensor_id inputs[] = { FACTS_TENSOR_Q, FACTS_TENSOR_K, FACTS_TENSOR_V,
                                              FACTS_TENSOR_DO };
    subject s = subject_at(run->problem, number);
    (void)base, (void)before;
    for (size_t i = 0; i < 4; i++) {
        if (!facts_view_has(run, inputs[i]))
            continue;
        for (facts_walk w = facts_walk_of(run->problem->tensor[inputs[i]].dim);
             facts_walk_on(&w);) {
            if (is_subjects(run->problem, &s, inputs[i], w.at))
                continue;
            double size = 4.0 + (double)(w.at[2] % 4);
            facts_view_put(run, inputs[i], w.at,
                           facts_view_get(run, inputs[i], w.at) < 0 ? size : -size);
        }
    }
}

static bool to_subjects(const facts_same *same, const int64_t a[4], int64_t b[4])
{
    (void)b;
    return is_subjects(same->a->problem, same->owner, same->id, a);
}

static void others_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    const facts_problem *p = base->problem;
    for (int r = 0; r < others_runs(p); r++) {
        subject s = subject_at(p, r);
        for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
            bool summed =
                id == FACTS_TENSOR_DBIAS || (r == 1 && is_keyed(id)); /* also over rows of others */
            if (facts_tensor_is_output(p, id) && !summed)
                facts_held_same(
                    out, &(facts_same){
                             .law = r ? "what a mask hides cannot matter"
                                      : "other heads, batch entries and padding cannot matter",
                             .a = base,
                             .b = &run[r],
                             .id = id,
                             .bitwise = true,
                             .to = to_subjects,
                             .owner = &s });
        }
    }
}

const facts_check_rule facts_law_others = { .runs = others_runs,
                                            .put = others_write,
                                            .hold = others_hold };

/* ---- the order of keys
 * ----------------------------------------------------------------------------------------------------------
 */

/* The shortest length that is not 0: batch entries share one order, so that a bias of all of them
 * can follow it. */
static int64_t shortest(const facts_problem *p)
{
    int64_t least = p->ask.seq_kv;
    for (int64_t b = 0; b < p->ask.batch; b++)
        if (facts_live_kv(p, b) > 0 && facts_live_kv(p, b) < least)
            least = facts_live_kv(p, b);
    return least;
}

/* The source and the destination of key j: reversed, and rotated by a third. */
static int64_t key_from(int64_t n, int64_t j)
{
    return j < n ? (n - 1 - j + n / 3) % n : j;
}

static void key_order_write(const facts_view *run, const facts_view *base,
                            const facts_view before[], int number)
{
    static const struct {
        facts_tensor_id id;
        int axis;
    } keyed[] = { { FACTS_TENSOR_K, 2 },
                  { FACTS_TENSOR_V, 2 },
                  { FACTS_TENSOR_BIAS, 3 },
                  { FACTS_TENSOR_MOD_A, 3 } };
    int64_t n = shortest(run->problem);
    (void)before, (void)number;
    for (size_t i = 0; i < sizeof keyed / sizeof *keyed; i++) {
        if (!facts_view_has(run, keyed[i].id))
            continue;
        for (facts_walk w = facts_walk_of(run->problem->tensor[keyed[i].id].dim);
             facts_walk_on(&w);) {
            int64_t from[4] = { w.at[0], w.at[1], w.at[2], w.at[3] };
            from[keyed[i].axis] = key_from(n, from[keyed[i].axis]);
            facts_view_put(run, keyed[i].id, w.at, facts_view_get(base, keyed[i].id, from));
        }
    }
}

static bool to_new_key(const facts_same *same, const int64_t a[4], int64_t b[4])
{
    int axis = same->id == FACTS_TENSOR_DBIAS ? 3 : 2;
    b[axis] = key_from(same->number, a[axis]);
    return true;
}

static void key_order_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    int64_t n = shortest(base->problem);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(base->problem, id))
            facts_held_same(out, &(facts_same){ .law = "the order of a sum does not matter",
                                                .a = base,
                                                .b = run,
                                                .id = id,
                                                .number = n,
                                                .to = is_keyed(id) || id == FACTS_TENSOR_DBIAS
                                                          ? to_new_key
                                                          : NULL });
}

const facts_check_rule facts_law_key_order = { .put = key_order_write,
                                               .give = facts_give_base,
                                               .hold = key_order_hold };
