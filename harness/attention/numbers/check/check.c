#include "check.h"

#include <math.h>
#include <string.h>

#include "numbers/dtype.h"
#include "numbers/fill/places.h"
#include "numbers/fill/score_inputs.h"

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

void facts_held_note(facts_held *held, const char *law, facts_tensor_id id, const int64_t at[4],
                     double got, double want, double bound)
{
    double off = fabs(got - want), ratio = got == want ? 0.0 : bound > 0 ? off / bound : INFINITY;
    if (isnan(ratio))
        ratio = INFINITY;
    held->compared++;
    held->wrong += ratio > 1.0;
    if (held->compared > 1 && ratio <= held->ratio)
        return;
    held->ratio = ratio;
    held->law = law;
    held->id = id;
    memcpy(held->at, at, sizeof held->at);
    held->got = got;
    held->want = want;
    held->bound = bound;
}

/* ---- a row that reads NaN or Inf shows it */

/* What one run plants: a number in the middle key of every entry and head, or in the middle row. */
static const struct plant {
    facts_tensor_id id;
    double value;
    const char *law;
} plants[] = { { FACTS_TENSOR_K, NAN, "a row that reads a NaN shows it" },
               { FACTS_TENSOR_V, INFINITY, "a row that reads an Inf shows it" },
               { FACTS_TENSOR_Q, NAN, "a row shows a NaN in its query" },
               { FACTS_TENSOR_DO, INFINITY, "a row shows an Inf in its dO" } };

static int nonfinite_runs(const facts_problem *p)
{
    return p->ask.pass == FATTN_BACKWARD ? 4 : 3;
}

/* Neither the first nor the last where there are others. */
static int64_t planted_place(const facts_problem *p, facts_tensor_id id, int64_t b)
{
    return facts_live(p, id, b) / 2;
}

static void nonfinite_write(const facts_view *run, int number)
{
    const struct plant *plant = &plants[number];
    for (facts_walk w = facts_walk_of(run->problem->tensor[plant->id].dim); facts_walk_on(&w);)
        if (w.at[2] == planted_place(run->problem, plant->id, w.at[0]))
            facts_view_put(run, plant->id, w.at, plant->value);
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
static bool must_show(const facts_problem *p, facts_tensor_id id)
{
    const bool flat = (p->fill == FACTS_FILL_GAUSS || p->fill == FACTS_FILL_UNIFORM) &&
                      p->mod == FACTS_MOD_NONE &&
                      fabs(facts_oracle_scale(p)) * sqrt((double)p->ask.dim_qk) <= 2.0;
    return !p->ask.has_bias && (id != FACTS_TENSOR_V || flat);
}

static bool reads(const facts_problem *p, facts_tensor_id id, const int64_t row[4])
{
    const int64_t place = planted_place(p, id, row[0]);
    int64_t first, last;
    facts_oracle_keys_of_row(p, row[0], row[2], &first, &last);
    return facts_is_keyed(id) ? first <= place && place < last : first < last && row[2] == place;
}

/* Training finds an overflow by its NaN and Inf, so a row that reads one and stays finite is wrong.
 * That other rows stay finite is no law (docs/numerics.md section 6). */
static void nonfinite_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    const facts_problem *p = base->problem;
    const facts_tensor_id id = p->ask.pass == FATTN_FORWARD ? FACTS_TENSOR_O : FACTS_TENSOR_DQ;
    const int64_t rows[4] = { p->ask.batch, p->ask.heads_q, p->ask.seq_q, 1 };
    out->id = id;
    out->law = plants[0].law;
    for (int r = 0; r < nonfinite_runs(p); r++)
        for (facts_walk w = facts_walk_of(rows); facts_walk_on(&w);) {
            if (w.at[2] >= facts_live_q(p, w.at[0]) || !facts_view_owes(base, id, w.at))
                continue;
            if (!must_show(p, plants[r].id) || !reads(p, plants[r].id, w.at)) {
                out->compared++;
                continue;
            }
            const double got = first_not_finite(&run[r], id, w.at);
            const bool hit = !isfinite(got);
            facts_held_note(out, plants[r].law, id, w.at, hit ? 0.0 : got, hit ? 0.0 : (double)NAN,
                            0.0);
        }
}

static const facts_check_rule nonfinite = {
    .runs = nonfinite_runs, .put = nonfinite_write, .hold = nonfinite_hold, .records = true
};

/* Sums that must agree whatever P is: in O(s d), without a reference, at any size. docs/numerics.md
 * section 7 derives each.
 *
 * Their errors are sums of roundings, so they are weighed by a standard deviation and not by a
 * bound: a right engine stays below 2 of them. What the model's sigma is of a whole tensor follows
 * from the rows that have one: all of them, or a sample, scaled up.
 */

#define MOST_DEVIATIONS 6.0
#define MOST_DEVIATIONS_OF_ONE 30.0 /* I2: one element at a time, after the rounding of O */
#define K3 0.57735026918962576

static bool is_live(const facts_view *v, facts_tensor_id id, const int64_t at[4])
{
    return at[2] < facts_live(v->problem, id, at[0]);
}

static int64_t row_number(const facts_tensor *t, const int64_t at[4])
{
    return (at[0] * t->dim[1] + at[1]) * t->dim[2] + at[2];
}

/* Of one head: sum over rows i of (dim/nu_i) sum_c (sigma X)^2, as within a row errors hang
 * together as much as nu says. `other` NULL: X = 1. Where only a sample of the rows has a sigma,
 * scaled up. */
static double weigh_head(const facts_view *v, facts_tensor_id id, const facts_view *other,
                         facts_tensor_id by, int64_t b, int64_t h)
{
    const facts_tensor *t = &v->problem->tensor[id];
    const facts_answer *answer = &v->expected->answer[id];
    int64_t known = 0, rows = 0;
    double sum = 0.0;
    for (int64_t s = 0; s < t->dim[2]; s++) {
        int64_t at[4] = { b, h, s, 0 }, row = row_number(t, at);
        if (!is_live(v, id, at))
            break;
        rows++;
        if (!facts_view_owes(v, id, at))
            continue;
        known++;
        double nu = answer->nu && answer->nu[row] > 0 ? answer->nu[row] : 1.0, squares = 0.0;
        for (; at[3] < t->dim[3]; at[3]++) {
            double x = answer->sigma[row * t->dim[3] + at[3]] *
                       (other ? facts_view_get(other, by, at) : 1.0);
            squares += x * x;
        }
        sum += squares * fmax(1.0, (double)t->dim[3] / nu);
    }
    return known ? sum * (double)rows / (double)known : 0.0;
}

/* S(id, X)^2: over all heads. */
static double weigh(const facts_view *v, facts_tensor_id id, const facts_view *other,
                    facts_tensor_id by)
{
    const int64_t *dim = v->problem->tensor[id].dim;
    double sum = 0.0;
    for (int64_t n = 0; n < dim[0] * dim[1]; n++)
        sum += weigh_head(v, id, other, by, n / dim[1], n % dim[1]);
    return sum;
}

static double dot(const facts_view *v, facts_tensor_id a, facts_tensor_id b)
{
    double sum = 0.0;
    for (facts_walk k = facts_walk_of(v->problem->tensor[a].dim); facts_walk_on(&k);)
        if (is_live(v, a, k.at))
            sum += facts_view_get(v, a, k.at) * facts_view_get(v, b, k.at);
    return sum;
}

static bool row_is_dead(const facts_view *v, const int64_t at[4])
{
    return facts_view_get(v, FACTS_TENSOR_STATS, (const int64_t[4]){ at[0], at[1], at[2], 0 }) ==
           -INFINITY;
}

/* dO . O and its square, over live rows: the terms of D. */
static double output_dot(const facts_view *v, double *squares)
{
    double sum = 0.0;
    *squares = 0.0;
    for (facts_walk k = facts_walk_of(v->problem->tensor[FACTS_TENSOR_DO].dim);
         facts_walk_on(&k);) {
        if (!is_live(v, FACTS_TENSOR_DO, k.at))
            continue;
        double x =
            facts_view_get(v, FACTS_TENSOR_DO, k.at) * facts_view_get(v, FACTS_TENSOR_O, k.at);
        sum += x;
        *squares += x * x;
    }
    return sum;
}

/* I1: sum_j dV_j = sum_i dO_i over live rows of the group, as rows of P sum to 1; for each batch
 * entry, head of V and channel. */
static void hold_i1_of(facts_held *out, const facts_view *v, int64_t b, int64_t h)
{
    const facts_tensor *dv = &v->problem->tensor[FACTS_TENSOR_DV];
    int64_t group = v->problem->ask.heads_q / v->problem->ask.heads_v;
    double deviation = sqrt(weigh_head(v, FACTS_TENSOR_DV, NULL, 0, b, h) / (double)dv->dim[3]);
    for (int64_t c = 0; c < dv->dim[3]; c++) {
        double got = 0.0, want = 0.0;
        for (int64_t j = 0; j < facts_live_kv(v->problem, b); j++)
            got += facts_view_get(v, FACTS_TENSOR_DV, (const int64_t[4]){ b, h, j, c });
        for (int64_t i = 0; i < group * facts_live_q(v->problem, b); i++) {
            const int64_t at[4] = { b, h * group + i % group, i / group, c };
            want += row_is_dead(v, at) ? 0.0 : facts_view_get(v, FACTS_TENSOR_DO, at);
        }
        facts_held_note(out, "I1: dV summed over keys is dO summed over rows", FACTS_TENSOR_DV,
                        (const int64_t[4]){ b, h, 0, c }, got, want,
                        MOST_DEVIATIONS * deviation +
                            facts_truncated(group * v->problem->ask.seq_q) * fabs(want));
    }
}

static void hold_i1(facts_held *out, const facts_view *v)
{
    const int64_t *dim = v->problem->tensor[FACTS_TENSOR_DV].dim;
    for (int64_t n = 0; n < dim[0] * dim[1]; n++)
        hold_i1_of(out, v, n / dim[1], n % dim[1]);
}

/* I4: <dQ,Q> = <dK,K>, both scale <dS, Q K^T>. I5: <dV,V> = <dO,O>, both <dO, P V>; the O given is
 * rounded. */
static void hold_products(facts_held *out, const facts_view *v)
{
    static const int64_t origin[4] = { 0 };
    double squares, of_o = output_dot(v, &squares),
                    uo = facts_dtype_roundoff(v->problem->ask.o_dtype);
    double i4 = sqrt(weigh(v, FACTS_TENSOR_DQ, v, FACTS_TENSOR_Q) +
                     weigh(v, FACTS_TENSOR_DK, v, FACTS_TENSOR_K));
    double i5 = sqrt(weigh(v, FACTS_TENSOR_DV, v, FACTS_TENSOR_V) + uo * uo * squares);
    const fattn_problem *ask = &v->problem->ask;
    const double of_k = dot(v, FACTS_TENSOR_DK, FACTS_TENSOR_K),
                 lost = facts_truncated(ask->seq_kv + ask->heads_q / ask->heads_k * ask->seq_q);
    facts_held_note(out, "I4: <dQ,Q> = <dK,K>", FACTS_TENSOR_DQ, origin,
                    dot(v, FACTS_TENSOR_DQ, FACTS_TENSOR_Q), of_k,
                    MOST_DEVIATIONS * i4 + lost * fabs(of_k));
    facts_held_note(out, "I5: <dV,V> = <dO,O>", FACTS_TENSOR_DV, origin,
                    dot(v, FACTS_TENSOR_DV, FACTS_TENSOR_V), of_o,
                    MOST_DEVIATIONS * i5 + lost * fabs(of_o));
}

#define CHANNEL 0 /* that is set to 1 */

/* I2: K[:,c] = 1 makes dQ[:,c] = scale sum_j dS_ij, which is 0 except for the rounding of O: scale
 * dO . (O - P V). */
static void hold_i2(facts_held *out, const facts_view *run)
{
    const facts_problem *p = run->problem;
    const int64_t rows[4] = { p->ask.batch, p->ask.heads_q, p->ask.seq_q, 1 };
    double rounded = fabs(facts_oracle_scale(p)) * facts_dtype_roundoff(p->ask.o_dtype) * K3;
    for (facts_walk k = facts_walk_of(rows); facts_walk_on(&k);) {
        const int64_t one[4] = { k.at[0], k.at[1], k.at[2], CHANNEL };
        double squares = 0.0, sigma;
        if (!is_live(run, FACTS_TENSOR_DQ, one) || !facts_view_owes(run, FACTS_TENSOR_DQ, one))
            continue;
        for (int64_t c = 0; c < p->ask.dim_v; c++) {
            const int64_t at[4] = { k.at[0], k.at[1], k.at[2], c };
            double x =
                facts_view_get(run, FACTS_TENSOR_DO, at) * facts_view_get(run, FACTS_TENSOR_O, at);
            squares += x * x;
        }
        sigma = run->expected->answer[FACTS_TENSOR_DQ]
                    .sigma[row_number(&p->tensor[FACTS_TENSOR_DQ], one) * p->ask.dim_qk + CHANNEL];
        facts_held_note(out, "I2: a channel of ones in K gives dQ = 0 there", FACTS_TENSOR_DQ, one,
                        facts_view_get(run, FACTS_TENSOR_DQ, one), 0.0,
                        MOST_DEVIATIONS_OF_ONE * sqrt(sigma * sigma + rounded * rounded * squares));
    }
}

/* I6: V[:,c] = 1 gives O[:,c] = 1: sum_j p v_j is 1, so the bound follows from norms alone and
 * every row can be held to it. */
static double worst_key(const facts_view *v, int64_t b, int64_t key_head)
{
    double most = 0.0;
    for (int64_t j = 0; j < facts_live_kv(v->problem, b); j++) {
        double squares = 0.0;
        for (int64_t c = 0; c < v->problem->ask.dim_qk; c++) {
            double x = facts_view_get(v, FACTS_TENSOR_K, (const int64_t[4]){ b, key_head, j, c });
            squares += x * x;
        }
        most = fmax(most, squares);
    }
    return sqrt(most);
}

static double norm_of_row(const facts_view *v, const int64_t at[4])
{
    double squares = 0.0;
    for (int64_t c = 0; c < v->problem->ask.dim_qk; c++) {
        double x = facts_view_get(v, FACTS_TENSOR_Q, (const int64_t[4]){ at[0], at[1], at[2], c });
        squares += x * x;
    }
    return sqrt(squares);
}

static void hold_i6(facts_held *out, const facts_view *run)
{
    const facts_problem *p = run->problem;
    double u = facts_dtype_roundoff(p->ask.dtype) + facts_dtype_roundoff(p->ask.o_dtype),
           chunks = fmax(1.0, (double)p->ask.dim_qk / 16.0),
           eta = p->ask.dtype == FATTN_F16 ? 0x1p-25 : 0x1p-126;
    double tiles = fmax(1.0, ceil((double)p->ask.seq_kv / 64.0)),
           added = p->ask.has_bias || p->mod != FACTS_MOD_NONE ? 40.0 : 4.0;
    for (int64_t b = 0; b < p->ask.batch; b++)
        for (int64_t h = 0; h < p->ask.heads_q; h++) {
            double k = worst_key(run, b, facts_key_head(p, h));
            for (int64_t i = 0; i < facts_live_q(p, b); i++) {
                const int64_t at[4] = { b, h, i, CHANNEL };
                int64_t first, last;
                facts_oracle_keys_of_row(p, b, i, &first, &last);
                if (first == last)
                    continue;
                double qk = fabs(facts_oracle_scale(p)) * norm_of_row(run, at) * k;
                double bound = u + eta * (double)(last - first) +
                               0x1p-22 * (chunks * qk + 2.0 * qk + added) +
                               0x1p-23 * (2.0 * tiles + 4.0 * sqrt(tiles) + 6.0);
                facts_held_note(out, "I6: a channel of ones in V stays 1 in O", FACTS_TENSOR_O, at,
                                facts_view_get(run, FACTS_TENSOR_O, at), 1.0, bound);
            }
        }
}

static void identities_write(const facts_view *run, int number)
{
    facts_tensor_id id = run->problem->ask.pass == FATTN_BACKWARD ? FACTS_TENSOR_K : FACTS_TENSOR_V;
    (void)number;
    for (facts_walk w = facts_walk_of(run->problem->tensor[id].dim); facts_walk_on(&w);)
        if (w.at[3] == CHANNEL)
            facts_view_put(run, id, w.at, 1.0);
}

static void identities_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    const facts_problem *p = base->problem;
    if (p->ask.pass == FATTN_FORWARD) {
        hold_i6(out, run);
        return;
    }
    hold_i1(out, base);
    hold_products(out, base);
    if (p->mod != FACTS_MOD_SOFTCAP) /* there dS has a slope that differs from key to key */
        hold_i2(out, run);
}

static const facts_check_rule identities = { .put = identities_write, .hold = identities_hold };

/* ---- the checks */

static const facts_check_rule *rule_of(facts_check check)
{
    static const facts_check_rule *const rules[FACTS_CHECKS] = {
        [FACTS_CHECK_KEEP] = &facts_probe_keep,
        [FACTS_CHECK_NONFINITE] = &nonfinite,
        [FACTS_CHECK_IDENTITIES] = &identities,
    };
    return rules[check];
}

int facts_check_runs(const facts_problem *base)
{
    const facts_check_rule *rule = rule_of(base->check);
    return !rule ? 0 : rule->runs ? rule->runs(base) : 1;
}

bool facts_check_only_records(const facts_problem *base)
{
    const facts_check_rule *rule = rule_of(base->check);
    return rule && rule->records;
}

void facts_check_ask(facts_problem *out, const facts_problem *base)
{
    *out = *base;
    out->check = FACTS_CHECK_NONE;
    out->exec = FACTS_EXEC_EAGER;
    out->repeat = 1;
    out->own_forward = false;
}

void facts_check_write(const facts_view *run, facts_check check, int number)
{
    rule_of(check)->put(run, number);
}

void facts_check_give(const facts_view *run, const facts_view *base)
{
    static const facts_tensor_id given[] = { FACTS_TENSOR_O, FACTS_TENSOR_STATS };
    for (int i = 0; i < 2 && facts_check_only_records(base->problem); i++)
        for (facts_walk w = facts_walk_of(run->problem->tensor[given[i]].dim); facts_walk_on(&w);)
            facts_view_put(run, given[i], w.at, facts_view_get(base, given[i], w.at));
}

void facts_check_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    *out = (facts_held){ .law = "" };
    rule_of(base->problem->check)->hold(out, base, run);
}
