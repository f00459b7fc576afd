#include "check.h"

#include <math.h>
#include <string.h>

#include "numbers/dtype.h"
#include "numbers/fill/layout.h"
#include "numbers/fill/scores.h"

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

/* ---- the checks */

static const facts_check_rule *rule_of(facts_check check)
{
    static const facts_check_rule *const rules[FACTS_CHECKS] = {
        [FACTS_CHECK_KEEP] = &facts_probe_keep,
        [FACTS_CHECK_NONFINITE] = &nonfinite,
        [FACTS_CHECK_IDENTITIES] = &facts_identities,
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
