#include "slabs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case/problem/huge.h"
#include "expected_transfer.h"
#include "numbers/expect/expect_big.h"
#include "numbers/fill/oracle_view.h"
#include "numbers/fill/recipe.h"

/* 12 GiB, 3 GiB, a few seconds of an H100. */
static const facts_slab_limits usual = { 0x3p32, 0x3p30, 0x1p45 };

/* ---- the plan
 * -------------------------------------------------------------------------------------------------------------------
 */

static bool is_keyed(facts_tensor_id id)
{
    return id == FACTS_TENSOR_K || id == FACTS_TENSOR_V || id == FACTS_TENSOR_DK ||
           id == FACTS_TENSOR_DV;
}

/* Gradients that are sums over broadcast dimensions need every term at once. */
static bool has_sums(const facts_problem *p)
{
    for (facts_tensor_id id = FACTS_TENSOR_DQ; id <= FACTS_TENSOR_DV; id++)
        if (p->tensor[id].present &&
            memcmp(p->tensor[id].dim, p->tensor[id - FACTS_TENSOR_DQ + FACTS_TENSOR_Q].dim,
                   sizeof p->tensor[id].dim) != 0)
            return true;
    return p->ask.dbias;
}

/* Cases that cannot be split into heads: numbers for each head, scores of every head, and ragged or
 * paged tensors. */
static bool is_whole(const facts_problem *p)
{
    bool packed = p->ask.sink || p->ask.alibi || p->ask.dropout != 0 || p->ask.dropout_mask ||
                  p->ask.block_mask;
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        packed = packed || (p->tensor[id].present &&
                            (p->tensor[id].packed != FACTS_PACKED_NOT || p->tensor[id].page));
    return packed;
}

/* The number of query heads after which both K and V begin a new head; 0: there is none below all.
 */
static int64_t unit_of(const fattn_problem *ask)
{
    int64_t k = ask->heads_q / ask->heads_k, v = ask->heads_q / ask->heads_v,
            larger = k > v ? k : v;
    return larger % k == 0 && larger % v == 0 ? larger : ask->heads_q;
}

static double bytes_of(const facts_problem *p)
{
    double bytes = 0;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(p, id)) {
            const int64_t *dim = p->tensor[id].dim;
            bytes += 3 * sizeof(double) * (double)dim[0] * (double)dim[1] * (double)dim[2] *
                     (double)dim[3];
        }
    return bytes;
}

bool facts_slabs_plan(facts_slabs **out, const facts_problem *p, const facts_slab_limits *limits)
{
    const facts_slab_limits most = limits ? *limits : usual;
    const fattn_problem *ask = &p->ask;
    double bytes = bytes_of(p), products = (ask->pass == FATTN_BACKWARD ? 5.0 : 2.0) *
                                           facts_pairs(p) * (double)(ask->dim_qk + ask->dim_v);
    bool sampled = products > most.most_products && !p->tensor[FACTS_TENSOR_MAX].present;
    *out = NULL;
    if (has_sums(p) || is_whole(p) || (bytes <= most.most_bytes && !sampled))
        return true;
    facts_slabs *s = calloc(1, sizeof *s);
    *out = s;
    if (!s)
        return false;
    int64_t unit = unit_of(ask),
            fit = (int64_t)(most.slab_bytes / (bytes / (double)(ask->batch * ask->heads_q)));
    s->sampled = sampled;
    s->heads = sampled || fit > ask->heads_q ? ask->heads_q
               : fit / unit * unit > unit    ? fit / unit * unit
                                             : unit;
    if (!sampled)
        return true;
    s->sample.rows = facts_big_sample(p, false, &s->sample.row_count);
    s->sample.keys = facts_big_sample(p, true, &s->sample.key_count);
    return s->sample.rows && s->sample.keys;
}

void facts_slabs_destroy(facts_slabs *s)
{
    if (s) {
        free(s->sample.rows);
        free(s->sample.keys);
    }
    free(s);
}

void facts_slabs_forget(facts_slabs *s)
{
    if (s)
        s->judged[0] = s->judged[1] = 0;
}

static double *make_nothing(void *owner, size_t count)
{
    static double nothing[1];
    (void)owner;
    (void)count;
    return nothing;
}

static void drop_nothing(void *owner, double *array)
{
    (void)owner;
    (void)array;
}

static int forward_nothing(void *owner, const facts_problem *asked, const fref_problem *problem,
                           const fref_tensor tensor[FACTS_TENSOR_COUNT],
                           const fref_rounding *rounding, const fref_forward_out *out, bool here)
{
    (void)owner, (void)asked, (void)problem, (void)tensor, (void)rounding, (void)out, (void)here;
    return 0;
}

static int backward_nothing(void *owner, const facts_problem *asked, const fref_problem *problem,
                            const fref_tensor tensor[FACTS_TENSOR_COUNT],
                            const fref_rounding *rounding, const fref_backward_out *out)
{
    (void)owner, (void)asked, (void)problem, (void)tensor, (void)rounding, (void)out;
    return 0;
}

const facts_oracle *facts_slabs_blank(void)
{
    static const facts_oracle blank = { .forward = forward_nothing,
                                        .backward = backward_nothing,
                                        .make = make_nothing,
                                        .drop = drop_nothing };
    return &blank;
}

/* ---- one slab
 * -------------------------------------------------------------------------------------------------------------------
 */

typedef struct slab {
    int64_t b, h; /* its first query head */
    facts_problem problem;
} slab;

static int64_t rows_of(const facts_slabs *s, const facts_problem *p, facts_tensor_id id,
                       bool sampled)
{
    return !sampled       ? p->tensor[id].dim[2]
           : is_keyed(id) ? s->sample.key_count
                          : s->sample.row_count;
}

/* The head of this tensor for head h of Q. */
static int64_t head_of(const facts_problem *p, facts_tensor_id id, int64_t h)
{
    return h * p->tensor[id].dim[1] / p->ask.heads_q;
}

static void cut_tensor(slab *x, const facts_slabs *s, const facts_problem *p, facts_tensor_id id,
                       bool sampled)
{
    facts_tensor *t = &x->problem.tensor[id];
    if (!t->present)
        return;
    bool of_scores = id == FACTS_TENSOR_BIAS || id >= FACTS_TENSOR_MOD_A;
    if (t->dim[0] > 1)
        t->first += x->b * t->stride[0];
    t->dim[0] = 1;
    if (t->dim[1] > 1) {
        t->first += head_of(p, id, x->h) * t->stride[1];
        t->dim[1] = head_of(p, id, x->problem.ask.heads_q);
    }
    if (!of_scores)
        t->dim[2] = rows_of(s, p, id, sampled);
}

/* `heads` query heads of one batch entry as a problem of their own, over the same storages. */
static void cut(slab *x, const facts_slabs *s, const facts_problem *p, int64_t b, int64_t h,
                bool sampled)
{
    *x = (slab){ .b = b, .h = h, .problem = *p };
    fattn_problem *ask = &x->problem.ask;
    ask->batch = 1;
    ask->heads_q = h + s->heads <= p->ask.heads_q ? s->heads : p->ask.heads_q - h;
    ask->heads_k = ask->heads_q * p->ask.heads_k / p->ask.heads_q;
    ask->heads_v = ask->heads_q * p->ask.heads_v / p->ask.heads_q;
    x->problem.len_q[0] = p->len_q[b];
    x->problem.len_kv[0] = p->len_kv[b];
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        cut_tensor(x, s, p, id, sampled);
}

static facts_storages inputs_of(facts_reference *t, const facts_oracle *oracle)
{
    facts_storages in = facts_memory_addresses(&t->memory);
    in.oracle = oracle;
    in.constants = &t->constants;
    return in;
}

int facts_slabs_inputs(facts_reference *t)
{
    const facts_problem *p = t->memory.problem;
    facts_there there = { .gpu = t->memory.gpu };
    facts_oracle oracle = facts_oracle_on(&there);
    facts_storages in = inputs_of(t, &oracle);
    void *o = facts_memory_address(&t->memory, FACTS_TENSOR_O, FACTS_PATTERN_A),
         *stats = facts_memory_address(&t->memory, FACTS_TENSOR_STATS, FACTS_PATTERN_A);
    slab x;
    int status = 0;
    for (int64_t b = 0; b < p->ask.batch; b++)
        for (int64_t h = 0; h < p->ask.heads_q && status == 0; h += t->slabs->heads) {
            cut(&x, t->slabs, p, b, h, false);
            status = facts_expect_inputs(&x.problem, &in, o, stats);
        }
    return status;
}

/* ---- judging
 * --------------------------------------------------------------------------------------------------------------------
 */

/* The sums over the slabs of one tensor. */
typedef struct gathered {
    bool wanted;
    facts_tensor tensor; /* with the rows that are compared */
    facts_judged_row *rows, *lie[FACTS_LIE_COUNT];
    double *nu, *neff;
} gathered;

typedef struct judging {
    facts_reference *reference;
    facts_pattern pattern;
    bool lies; /* too */
    gathered at[FACTS_TENSOR_COUNT];
} judging;

static void leave(judging *c)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        free(c->at[id].rows);
        for (int lie = 0; lie < FACTS_LIE_COUNT; lie++)
            free(c->at[id].lie[lie]);
        free(c->at[id].nu);
        free(c->at[id].neff);
    }
}

static bool enter_tensor(judging *c, facts_tensor_id id)
{
    const facts_problem *p = c->reference->memory.problem;
    gathered *g = &c->at[id];
    g->wanted = true;
    g->tensor = p->tensor[id];
    g->tensor.dim[2] = rows_of(c->reference->slabs, p, id, c->reference->slabs->sampled);
    size_t rows = (size_t)(g->tensor.dim[0] * g->tensor.dim[1] * g->tensor.dim[2]) + 1;
    g->rows = malloc(rows * sizeof *g->rows);
    g->nu = calloc(rows, sizeof *g->nu);
    g->neff = calloc(rows, sizeof *g->neff);
    bool good = g->rows && g->nu && g->neff;
    for (int lie = 0; lie < FACTS_LIE_COUNT && c->lies; lie++) {
        g->lie[lie] = malloc(rows * sizeof *g->rows);
        good = good && g->lie[lie];
    }
    return good;
}

static bool enter(judging *c)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(c->reference->memory.problem, id) && !enter_tensor(c, id))
            return false;
    return true;
}

/* The expected values of the whole tensor, without the arrays of its elements. `e` says whether
 * there is an error model. */
static facts_rule rule_of(const judging *c, facts_tensor_id id, const facts_answer *e)
{
    facts_rule rule = facts_expectation_rule(&c->reference->expectation, id, c->pattern);
    rule.expected.sigma = e->sigma;
    rule.expected.nu = e->sigma && e->nu ? c->at[id].nu : NULL;
    rule.expected.neff = e->sigma && e->nu ? c->at[id].neff : NULL;
    return rule;
}

/* One tensor of one slab. */
static fattn_status judge_part(judging *c, const slab *x, facts_tensor_id id,
                               const facts_expectation *e)
{
    facts_reference *t = c->reference;
    facts_gpu *gpu = t->memory.gpu;
    const facts_problem *p = t->memory.problem;
    const facts_answer *a = &e->answer[id];
    facts_tensor tensor = x->problem.tensor[id];
    const int64_t rows = tensor.dim[2], count = tensor.dim[1] * rows,
                  at = (x->b * p->tensor[id].dim[1] + head_of(p, id, x->h)) * rows;
    const bool sampled = t->slabs->sampled;
    facts_part part = { .batches = 1,
                        .heads = tensor.dim[1],
                        .row_count = rows,
                        .want = a->want,
                        .sigma = a->sigma,
                        .bound = a->bound };
    facts_expected_copies copies = { 0 };
    fattn_status status = FATTN_OK;
    part.rows = !sampled ? NULL : is_keyed(id) ? t->slabs->sample.keys : t->slabs->sample.rows;
    if (!a->at) /* statistics are on the host */
        status = facts_expected_upload(&copies, gpu, &part, (size_t)(count * tensor.dim[3]));
    facts_rule rule = rule_of(c, id, a);
    const facts_limits limits = facts_judge_limits(&p->tensor[id], &rule);
    const int32_t *expects =
        (const int32_t *)t->expectation.expects[id] + x->b * p->tensor[id].dim[2];
    tensor.dim[2] = p->tensor[id].dim[2];
    facts_asked asked = { .tensor = &tensor,
                          .storage = facts_memory_address(&t->memory, id, c->pattern),
                          .limits = limits,
                          .expects = expects,
                          .part = part };
    if (status == FATTN_OK)
        status = facts_gpu_judge(gpu, &asked, c->at[id].rows + at);
    asked.storage = NULL;
    for (asked.lie = 0; asked.lie < FACTS_LIE_COUNT && c->lies && status == FATTN_OK; asked.lie++)
        status = facts_gpu_judge(gpu, &asked, c->at[id].lie[asked.lie] + at);
    if (status == FATTN_OK && a->nu && a->neff) {
        status = facts_gpu_fetch(gpu, c->at[id].nu + at, a->nu, (size_t)count * sizeof *a->nu);
        status = status != FATTN_OK ? status
                                    : facts_gpu_fetch(gpu, c->at[id].neff + at, a->neff,
                                                      (size_t)count * sizeof *a->neff);
    }
    facts_expected_free(&copies, gpu);
    return status;
}

static fattn_status status_of(int failed)
{
    return failed == 0         ? FATTN_OK
           : failed == ENOMEM  ? FATTN_NO_MEMORY
           : failed == ENOTSUP ? FATTN_INTERNAL
                               : FATTN_DEVICE_FAULT;
}

static fattn_status judge_slab(judging *c, slab *x, const facts_storages *in)
{
    facts_expectation e = { .oracle = NULL };
    const int32_t version = c->reference->memory.worker->info.cudnn_version;
    int failed = x->problem.ask.pass == FATTN_FORWARD
                     ? facts_expect_forward(&e, &x->problem, in, version)
                     : facts_expect_backward(&e, &x->problem, in);
    fattn_status status = status_of(failed);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT && status == FATTN_OK; id++)
        if (c->at[id].wanted)
            status = judge_part(c, x, id, &e);
    if (status == FATTN_OK) /* all slabs have a model if the last one has */
        for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
            c->at[id].wanted = c->at[id].wanted && e.answer[id].want;
    facts_expectation_destroy(&e);
    return status;
}

/* Rows that were not compared: must be written and finite. */
static fattn_status survey(judging *c, facts_tensor_id id, facts_judgement *found)
{
    facts_reference *t = c->reference;
    const facts_tensor *tensor = &t->memory.problem->tensor[id];
    facts_found all;
    fattn_status status =
        facts_gpu_survey(t->memory.gpu, tensor, facts_memory_address(&t->memory, id, c->pattern),
                         (const int32_t *)t->expectation.expects[id], c->pattern, &all);
    const int64_t not_finite =
        id == FACTS_TENSOR_STATS ? 0 : all.not_finite; /* dead rows have -inf */
    if (status != FATTN_OK || all.unwritten + not_finite == 0 || found->unwritten ||
        found->not_finite)
        return status;
    found->unwritten = all.unwritten;
    found->not_finite = not_finite;
    found->gate = all.unwritten ? FACTS_GATE_POISON : FACTS_GATE_T0;
    found->ratio = (double)INFINITY;
    memcpy(found->worst, all.unwritten ? all.first_unwritten : all.first_not_finite,
           sizeof found->worst);
    return status;
}

static facts_lie_end end_of(const gathered *g, const facts_rule *rule, facts_lie lie)
{
    const facts_judgement found = facts_judge_rows(&g->tensor, rule, g->lie[lie]);
    return facts_judge_lie(&found);
}

/* Judges a tensor from all of its rows; over poison A it also finds whether the data can detect the
 * lies. */
static fattn_status conclude(judging *c, facts_tensor_id id)
{
    static double model; /* any address but NULL: there is an error model */
    facts_reference *t = c->reference;
    facts_slabs *s = t->slabs;
    gathered *g = &c->at[id];
    const facts_problem *p = t->memory.problem;
    facts_answer e = { .sigma = id == FACTS_TENSOR_STATS || id == FACTS_TENSOR_MAX ||
                                        id == FACTS_TENSOR_SUM_EXP
                                    ? NULL
                                    : &model };
    e.nu = t->expectation.answer[id].nu;
    facts_rule rule = rule_of(c, id, &e);
    facts_judgement *out = &s->judgement[c->pattern][id];
    *out = facts_judge_rows(&g->tensor, &rule, g->rows);
    if (s->sampled)
        out->worst[2] =
            is_keyed(id) ? s->sample.keys[out->worst[2]] : s->sample.rows[out->worst[2]];
    bool zero_anyway =
        !facts_oracle_two_keys(p) && (id == FACTS_TENSOR_DQ || id == FACTS_TENSOR_DK);
    if (c->lies && facts_fill_is_dense(p->fill) && !zero_anyway) {
        facts_lie_end zero = end_of(g, &rule, FACTS_LIE_ZERO),
                      rolled = end_of(g, &rule, FACTS_LIE_ROW);
        if (rolled == FACTS_LIE_SAME)
            rolled = end_of(g, &rule, FACTS_LIE_CHANNEL);
        t->untrusted[id] = zero == FACTS_LIE_PASSES || rolled == FACTS_LIE_PASSES;
    }
    return s->sampled ? survey(c, id, out) : FATTN_OK;
}

static fattn_status judge_all(judging *c)
{
    facts_reference *t = c->reference;
    const facts_problem *p = t->memory.problem;
    facts_there there = { .gpu = t->memory.gpu,
                          .sample = t->slabs->sampled ? &t->slabs->sample : NULL };
    facts_oracle oracle = facts_oracle_on(&there);
    facts_storages in = inputs_of(t, &oracle);
    fattn_status status = enter(c) ? FATTN_OK : FATTN_NO_MEMORY;
    slab x;
    for (int64_t b = 0; b < p->ask.batch; b++)
        for (int64_t h = 0; h < p->ask.heads_q && status == FATTN_OK; h += t->slabs->heads) {
            cut(&x, t->slabs, p, b, h, t->slabs->sampled);
            status = judge_slab(c, &x, &in);
        }
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT && status == FATTN_OK; id++)
        if (c->at[id].wanted)
            status = conclude(c, id);
    return status;
}

fattn_status facts_slabs_judge(facts_judgement *out, facts_reference *t, facts_tensor_id id,
                               facts_pattern pattern)
{
    facts_slabs *s = t->slabs;
    if (s->judged[pattern] != 1 + t->memory.fetches) {
        judging c = { .reference = t, .pattern = pattern, .lies = pattern == FACTS_PATTERN_A };
        fattn_status status = judge_all(&c);
        leave(&c);
        if (status != FATTN_OK)
            return status;
        s->judged[pattern] = 1 + t->memory.fetches;
    }
    *out = s->judgement[pattern][id];
    return FATTN_OK;
}
