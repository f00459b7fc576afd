#include "gpu_expectation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/fill/places.h"

#define MOST_COPIES 48

_Static_assert((int)FREF_MOD_COUNT == (int)FACTS_MOD_COUNT &&
                   (int)FREF_MOD_DOCUMENT == (int)FACTS_MOD_DOCUMENT &&
                   (int)FREF_MOD_SOFTCAP == (int)FACTS_MOD_SOFTCAP,
               "the modifications have one order");

/* Copies of the reference's arrays on the GPU while it computes: small arrays are sent before,
 * answers are fetched after. */
typedef struct copies {
    facts_gpu *gpu;
    int status; /* the first errno */
    size_t count;
    void *at[MOST_COPIES];
    double *answers; /* on the GPU: all answers, one after the other */
    size_t answered, room;
    struct {
        double *here;
        size_t count;
    } answer[MOST_COPIES];
    size_t answer_count;
} copies;

static int errno_of(fattn_status status)
{
    return status == FATTN_OK ? 0 : status == FATTN_NO_MEMORY ? ENOMEM : EIO;
}

static void *make(copies *c, size_t bytes)
{
    void *there = NULL;
    if (c->status == 0)
        c->status =
            c->count == MOST_COPIES ? ENOMEM : errno_of(facts_gpu_make(c->gpu, &there, bytes));
    if (there)
        c->at[c->count++] = there;
    return there;
}

static const void *send(copies *c, const void *here, size_t bytes)
{
    void *there = here ? make(c, bytes) : NULL;
    if (there)
        c->status = errno_of(facts_gpu_send(c->gpu, there, here, bytes));
    return there;
}

/* The largest number of elements. */
static void make_answers(copies *c, int64_t room)
{
    c->room = (size_t)room;
    c->answers = make(c, c->room * sizeof *c->answers);
}

/* NULL: not wanted. */
static double *answer(copies *c, double *here, int64_t count)
{
    if (!here || !c->answers || c->answered + (size_t)count > c->room)
        return NULL;
    c->answer[c->answer_count].here = here;
    c->answer[c->answer_count++].count = (size_t)count;
    c->answered += (size_t)count;
    return c->answers + c->answered - count;
}

static int fetch_answers(copies *c)
{
    double *all = malloc(c->answered * sizeof *all), *next = all;
    if (!all)
        return ENOMEM;
    const int status =
        errno_of(facts_gpu_fetch(c->gpu, all, c->answers, c->answered * sizeof *all));
    for (size_t i = 0; i < c->answer_count && status == 0; next += c->answer[i++].count)
        memcpy(c->answer[i].here, next, c->answer[i].count * sizeof *next);
    free(all);
    return status;
}

/* Fetches what succeeded, and releases. */
static int finish(copies *c)
{
    if (c->status == 0 && c->answered > 0)
        c->status = fetch_answers(c);
    for (size_t i = 0; i < c->count; i++)
        facts_gpu_free(c->gpu, c->at[i]);
    return c->status;
}

/* The problem with its arrays on the GPU. */
static fref_problem problem_there(copies *c, const fref_problem *here)
{
    fref_problem p = *here;
    const size_t batch = (size_t)p.batch, heads = (size_t)p.heads_q;
    p.len_q = send(c, p.len_q, batch * sizeof *p.len_q);
    p.len_kv = send(c, p.len_kv, batch * sizeof *p.len_kv);
    p.alibi = send(c, p.alibi, heads * sizeof *p.alibi);
    p.sink = send(c, p.sink, heads * sizeof *p.sink);
    p.modify = NULL;
    p.modify_owner = NULL;
    return p;
}

/* A dimension of extent 1 is broadcast. */
static fref_tensor broadcast(const facts_problem *p, facts_tensor_id id, const fref_tensor *t)
{
    fref_tensor out = *t;
    for (int d = 0; d < 4; d++)
        if (p->tensor[id].dim[d] == 1)
            out.stride[d] = 0;
    return out;
}

/* A byte for each tile of 128 x 128; NULL: no mask of tiles. */
static const uint8_t *tiles_there(copies *c, const facts_problem *p)
{
    const int64_t rows = (p->ask.seq_q + 127) / 128, keys = (p->ask.seq_kv + 127) / 128,
                  heads = p->ask.heads_q;
    const int64_t count = p->ask.batch * heads * rows * keys;
    uint8_t *here = p->ask.block_mask ? malloc((size_t)count) : NULL;
    if (!here) {
        c->status = p->ask.block_mask && c->status == 0 ? ENOMEM : c->status;
        return NULL;
    }
    for (int64_t n = 0; n < count; n++)
        here[n] = facts_tile_kept(p, n / keys / rows / heads, n / keys / rows % heads,
                                  n / keys % rows, n % keys);
    const uint8_t *there = send(c, here, (size_t)count);
    free(here);
    return there;
}

static fref_gpu_mod mod_of(copies *c, const facts_problem *p,
                           const fref_tensor t[FACTS_TENSOR_COUNT])
{
    const facts_tensor *bias = &p->tensor[FACTS_TENSOR_BIAS];
    fref_gpu_mod mod = { .kind = (fref_mod_kind)p->mod,
                         .parameter = { p->mod_parameter[0], p->mod_parameter[1] } };
    mod.a = broadcast(p, FACTS_TENSOR_MOD_A, &t[FACTS_TENSOR_MOD_A]);
    mod.b = broadcast(p, FACTS_TENSOR_MOD_B, &t[FACTS_TENSOR_MOD_B]);
    if (bias->present && bias->dtype == FATTN_BOOL)
        mod.seen = broadcast(p, FACTS_TENSOR_BIAS, &t[FACTS_TENSOR_BIAS]);
    mod.tiles = tiles_there(c, p);
    return mod;
}

/* The tensors with the places of their sequences and pages. */
static void tensors_there(copies *c, const fref_problem *here,
                          const fref_tensor t[FACTS_TENSOR_COUNT],
                          fref_tensor out[FACTS_TENSOR_COUNT])
{
    const size_t batch = (size_t)here->batch;
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        out[id] = t[id];
        out[id].first = send(c, t[id].first, batch * sizeof *t[id].first);
        out[id].pages =
            send(c, t[id].pages, batch * (size_t)t[id].pages_of_batch * sizeof *t[id].pages);
    }
}

static int forward(void *owner, const facts_problem *asked, const fref_problem *problem,
                   const fref_tensor t[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                   const fref_forward_out *out, bool statistics_here)
{
    facts_there *place = owner;
    facts_gpu *gpu = place->gpu;
    copies c = { .gpu = gpu };
    fref_tensor at[FACTS_TENSOR_COUNT];
    const int64_t rows = problem->batch * problem->heads_q * problem->rows;
    fref_problem there = problem_there(&c, problem);
    tensors_there(&c, problem, t, at);
    fref_gpu_mod mod = mod_of(&c, asked, t);
    fref_forward_out answers = *out; /* O with its nu and neff is already on the GPU */
    make_answers(&c, (statistics_here ? 5 * rows : 0) + 6);
    if (statistics_here) {
        answers.lse = answer(&c, out->lse, rows);
        answers.lse_tau = answer(&c, out->lse_tau, rows);
        answers.max = answer(&c, out->max, rows);
        answers.max_tau = answer(&c, out->max_tau, rows);
        answers.sum_exp = answer(&c, out->sum_exp, rows);
    }
    answers.amax_s = answer(&c, out->amax_s, 3);
    answers.amax_o = answer(&c, out->amax_o, 3);
    const bool ahead = c.answered == 0 && !out->o_sigma; /* a backward's O and Stats */
    if (c.status == 0)
        c.status =
            facts_gpu_forward(gpu, &there, &mod, &at[FACTS_TENSOR_Q], &at[FACTS_TENSOR_K],
                              &at[FACTS_TENSOR_V], rounding, &answers, ahead, &place->scores);
    return finish(&c);
}

static int backward(void *owner, const facts_problem *asked, const fref_problem *problem,
                    const fref_tensor t[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                    const fref_backward_out *out)
{
    const facts_there *place = owner;
    facts_gpu *gpu = place->gpu;
    copies c = { .gpu = gpu };
    fref_tensor at[FACTS_TENSOR_COUNT];
    fref_problem there = problem_there(&c, problem);
    tensors_there(&c, problem, t, at);
    fref_gpu_mod mod = mod_of(&c, asked, t);
    fref_backward_out answers = *out; /* gradients are already on the GPU */
    make_answers(&c, 2 * problem->heads_q + 12);
    answers.dsink = answer(&c, out->dsink, problem->heads_q);
    answers.dsink_bound = answer(&c, out->dsink_bound, problem->heads_q);
    answers.amax_dp = answer(&c, out->amax_dp, 3);
    answers.amax_dq = answer(&c, out->amax_dq, 3);
    answers.amax_dk = answer(&c, out->amax_dk, 3);
    answers.amax_dv = answer(&c, out->amax_dv, 3);
    if (c.status == 0)
        c.status =
            facts_gpu_backward(gpu, &there, &mod, &at[FACTS_TENSOR_Q], &at[FACTS_TENSOR_K],
                               &at[FACTS_TENSOR_V], &at[FACTS_TENSOR_O], &at[FACTS_TENSOR_STATS],
                               &at[FACTS_TENSOR_DO], rounding, &answers, place->scores);
    return finish(&c);
}

/* ---- arrays
 * -------------------------------------------------------------------------------------------------------------------
 */

static double *make_array(void *owner, size_t count)
{
    facts_there *there = owner;
    void *made = NULL;
    const fattn_status status = facts_gpu_make(there->gpu, &made, count * sizeof(double));
    there->broken = there->broken || (status != FATTN_OK && status != FATTN_NO_MEMORY);
    return status == FATTN_OK ? made : NULL;
}

static void drop_array(void *owner, double *array)
{
    facts_gpu_free(((facts_there *)owner)->gpu, array);
}

static int round_array(void *owner, const facts_tensor *tensor, const double *values, double unit,
                       void *storage)
{
    copies c = { .gpu = ((facts_there *)owner)->gpu };
    facts_tensor seen = *tensor;
    seen.start = send(&c, seen.start, (size_t)(seen.dim[0] + 1) * sizeof *seen.start);
    seen.live = send(&c, seen.live, (size_t)seen.dim[0] * sizeof *seen.live);
    if (c.status == 0)
        c.status = errno_of(facts_gpu_round(c.gpu, &seen, values, unit, storage));
    return finish(&c);
}

facts_oracle facts_oracle_on(facts_there *there)
{
    return (facts_oracle){ .owner = there,
                           .forward = forward,
                           .backward = backward,
                           .make = make_array,
                           .drop = drop_array,
                           .round = round_array };
}
