#include "case_reference.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory_side.h"
#include "numbers/fill/places.h"
#include "words/clock.h"
#include "worker/gpu/worker_gpu.h"

/* One array of a tensor; NULL stays NULL. */
static bool fetch(double **out, const facts_reference *reference, const double *from, size_t count)
{
    *out = from ? malloc((count + 1) * sizeof **out) : NULL;
    return !from || (*out && facts_gpu_fetch(reference->memory.gpu, *out, from,
                                             count * sizeof **out) == FATTN_OK);
}

bool facts_expected_on_host(facts_answer *out, const facts_reference *reference, facts_tensor_id id)
{
    const facts_answer *a = &reference->expectation.answer[id];
    const facts_tensor *t = &reference->memory.problem->tensor[id];
    const size_t rows = (size_t)(t->dim[0] * t->dim[1] * t->dim[2]),
                 count = rows * (size_t)t->dim[3];
    *out = *a;
    if (!a->at)
        return true;
    bool fetched = fetch(&out->want, reference, a->want, count);
    fetched = fetch(&out->sigma, reference, a->sigma, count) && fetched;
    fetched = fetch(&out->bound, reference, a->bound, count) && fetched;
    fetched = fetch(&out->nu, reference, a->nu, rows) && fetched;
    fetched = fetch(&out->neff, reference, a->neff, rows) && fetched;
    if (!fetched)
        facts_expected_release(out, reference, id);
    return fetched;
}

void facts_expected_release(facts_answer *answer, const facts_reference *reference,
                            facts_tensor_id id)
{
    if (reference->expectation.answer[id].at) {
        free(answer->want);
        free(answer->sigma);
        free(answer->bound);
        free(answer->nu);
        free(answer->neff);
    }
    *answer = (facts_answer){ 0 };
}

fattn_status facts_expected_upload(facts_expected_copies *out, facts_gpu *gpu, facts_part *part,
                                   size_t count)
{
    const size_t bytes = count * sizeof(double);
    TRY(facts_gpu_make(gpu, &out->want, bytes));
    TRY(facts_gpu_make(gpu, &out->bound, bytes));
    TRY(facts_gpu_send(gpu, out->want, part->want, bytes));
    TRY(facts_gpu_send(gpu, out->bound, part->bound, bytes));
    part->want = out->want;
    part->bound = out->bound;
    return FATTN_OK;
}

void facts_expected_free(facts_expected_copies *copies, facts_gpu *gpu)
{
    facts_gpu_free(gpu, copies->want);
    facts_gpu_free(gpu, copies->bound);
}

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

/* A call of the reference, with its small arrays on the GPU. */
typedef struct asking {
    copies copies;
    fref_problem problem;
    fref_gpu_mod mod;
    fref_tensor at[FACTS_TENSOR_COUNT];
    const fref_rounding *rounding;
    fref_forward_out forward;
    fref_backward_out backward;
    bool ahead;
    uint64_t *scores;
} asking;

/* The tensors get the places of their sequences and pages. */
static void begin(asking *a, facts_there *place, const facts_problem *asked,
                  const fref_problem *problem, const fref_tensor t[FACTS_TENSOR_COUNT],
                  const fref_rounding *rounding, int64_t answers)
{
    const size_t batch = (size_t)problem->batch;
    copies *c = &a->copies;
    c->gpu = place->gpu;
    a->problem = problem_there(c, problem);
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        a->at[id] = t[id];
        a->at[id].first = send(c, t[id].first, batch * sizeof *t[id].first);
        a->at[id].pages =
            send(c, t[id].pages, batch * (size_t)t[id].pages_of_batch * sizeof *t[id].pages);
    }
    a->mod = mod_of(c, asked, t);
    a->rounding = rounding;
    a->scores = &place->scores;
    make_answers(c, answers);
}

static int end(asking *a, facts_oracle_call *call)
{
    if (a->copies.status == 0)
        a->copies.status = facts_gpu_oracle(a->copies.gpu, call, a);
    return finish(&a->copies);
}

static int ask_forward(void *asked, fref_gpu *oracle, struct CUstream_st *stream, char *text)
{
    asking *a = asked;
    fref_gpu_run_ahead(oracle, a->ahead);
    const int status = fref_gpu_forward(oracle, &a->problem, &a->mod, &a->at[FACTS_TENSOR_Q],
                                        &a->at[FACTS_TENSOR_K], &a->at[FACTS_TENSOR_V], a->rounding,
                                        &a->forward, stream, text);
    *a->scores = status == 0 ? fref_gpu_scores(oracle) : 0;
    return status;
}

static int forward(void *owner, const facts_problem *asked, const fref_problem *problem,
                   const fref_tensor t[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                   const fref_forward_out *out, bool statistics_here)
{
    asking a = { .forward = *out }; /* O with its nu and neff is already on the GPU */
    fref_forward_out *answers = &a.forward;
    const int64_t rows = problem->batch * problem->heads_q * problem->rows;
    begin(&a, owner, asked, problem, t, rounding, (statistics_here ? 5 * rows : 0) + 6);
    if (statistics_here) {
        answers->lse = answer(&a.copies, out->lse, rows);
        answers->lse_tau = answer(&a.copies, out->lse_tau, rows);
        answers->max = answer(&a.copies, out->max, rows);
        answers->max_tau = answer(&a.copies, out->max_tau, rows);
        answers->sum_exp = answer(&a.copies, out->sum_exp, rows);
    }
    answers->amax_s = answer(&a.copies, out->amax_s, 3);
    answers->o.amax = answer(&a.copies, out->o.amax, 3);
    a.ahead = a.copies.answered == 0 && !out->o.sigma; /* a backward's O and Stats */
    *a.scores = a.copies.status == 0 ? 0 : *a.scores;
    return end(&a, ask_forward);
}

static int ask_backward(void *asked, fref_gpu *oracle, struct CUstream_st *stream, char *text)
{
    const asking *a = asked;
    return fref_gpu_backward(oracle, &a->problem, &a->mod, &a->at[FACTS_TENSOR_Q],
                             &a->at[FACTS_TENSOR_K], &a->at[FACTS_TENSOR_V], &a->at[FACTS_TENSOR_O],
                             &a->at[FACTS_TENSOR_STATS], &a->at[FACTS_TENSOR_DO], a->rounding,
                             &a->backward, *a->scores, stream, text);
}

static int backward(void *owner, const facts_problem *asked, const fref_problem *problem,
                    const fref_tensor t[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                    const fref_backward_out *out)
{
    asking a = { .backward = *out }; /* gradients are already on the GPU */
    fref_backward_out *answers = &a.backward;
    begin(&a, owner, asked, problem, t, rounding, 2 * problem->heads_q + 12);
    answers->dsink = answer(&a.copies, out->dsink, problem->heads_q);
    answers->dsink_bound = answer(&a.copies, out->dsink_bound, problem->heads_q);
    answers->amax_dp = answer(&a.copies, out->amax_dp, 3);
    answers->dq.amax = answer(&a.copies, out->dq.amax, 3);
    answers->dk.amax = answer(&a.copies, out->dk.amax, 3);
    answers->dv.amax = answer(&a.copies, out->dv.amax, 3);
    return end(&a, ask_backward);
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

static facts_oracle facts_oracle_on(facts_there *there)
{
    return (facts_oracle){ .owner = there,
                           .forward = forward,
                           .backward = backward,
                           .make = make_array,
                           .drop = drop_array,
                           .round = round_array };
}

const char *facts_reference_oracle(const facts_reference *t)
{
    return t->memory.side->word;
}

static facts_storages inputs_of(facts_reference *t)
{
    facts_storages in = facts_memory_addresses(&t->memory);
    in.oracle = t->there.gpu ? &t->oracle : NULL;
    in.constants = &t->constants;
    in.keep = t->keep.there ? t->keep.there : t->keep.here;
    return in;
}

/* The memory of a tensor for the oracle. */
static void *storage_of(facts_reference *t, facts_tensor_id id)
{
    return facts_memory_address(&t->memory, id, FACTS_PATTERN_A);
}

/* An expectation takes each array that it does not get for a lack of memory. */
static int cause_of(const facts_reference *t, int failed)
{
    return failed == ENOMEM && t->there.broken ? EIO : failed;
}

static int expect_inputs(facts_reference *t, const facts_storages *in)
{
    return cause_of(t, facts_expect_inputs(t->memory.problem, in, storage_of(t, FACTS_TENSOR_O),
                                           storage_of(t, FACTS_TENSOR_STATS)));
}

/* The arrays of the expectation. For a backward, O and Stats are in memory already. */
static int expect(facts_reference *t)
{
    const facts_problem *p = t->memory.problem;
    facts_storages in = inputs_of(t);
    const int failed =
        p->ask.pass == FATTN_BACKWARD
            ? facts_expect_backward(&t->expectation, p, &in)
            : facts_expect_forward(&t->expectation, p, &in, t->memory.worker->info.cudnn_version);
    return cause_of(t, failed);
}

static facts_constants constants_of(const facts_problem *problem, const facts_who *who)
{
    facts_constants out = who ? facts_constants_of(who) : facts_constants_start(problem->ask.dtype);
    if (who)
        facts_constants_rescale(&out, who, problem->rescale);
    return out;
}

fattn_status facts_reference_create(facts_reference *out, const facts_making *how,
                                    facts_error *error)
{
    const double since = facts_now_ms();
    *out = (facts_reference){ .constants = constants_of(how->problem, how->who),
                              .backend = how->plan ? (int)fattn_plan_backend(how->plan)
                                                   : FACTS_BACKEND_NOT_KNOWN };
    fattn_status status =
        facts_memory_create(&out->memory, how->worker, how->problem, how->here, error);
    if (status != FATTN_OK)
        return status;
    out->there.gpu = out->memory.gpu;
    if (out->memory.gpu)
        out->oracle = facts_oracle_on(&out->there);
    out->fill_ms = facts_now_ms() - since;
    return FATTN_OK;
}

static fattn_status change(facts_reference *t, facts_change by, void *owner, facts_error *error)
{
    fattn_status status = by(owner, &t->memory, error);
    if (status != FATTN_OK)
        return status;
    status = facts_memory_push(&t->memory);
    if (status != FATTN_OK)
        facts_fail(error, "%s", facts_gpu_error(t->memory.gpu));
    return status;
}

fattn_status facts_reference_fill(facts_reference *t, const facts_reference_edit *edit,
                                  facts_error *error)
{
    const double since = facts_now_ms();
    fattn_status status = facts_memory_fill(&t->memory, error);
    if (status == FATTN_OK && edit)
        status = change(t, edit->inputs, edit->owner, error);
    if (status == FATTN_OK)
        status = facts_kept_make(&t->keep, &t->memory, t->backend,
                                 edit ? FACTS_KEPT_READ : FACTS_KEPT_JUDGED, error);
    t->fill_ms += facts_now_ms() - since;
    return status;
}

fattn_status facts_reference_compute(facts_reference *t, const facts_reference_edit *edit,
                                     facts_error *error)
{
    facts_gpu *gpu = t->memory.worker->gpu;
    const double since = facts_now_ms();
    facts_storages in = inputs_of(t);
    int failed = t->memory.problem->ask.pass == FATTN_BACKWARD ? expect_inputs(t, &in) : 0;
    if (failed == 0 && edit && t->memory.problem->ask.pass == FATTN_BACKWARD) {
        const fattn_status status = change(t, edit->given, edit->owner, error);
        if (status != FATTN_OK)
            return status;
        t->there.scores = 0; /* the edited Stats may leave other rows without a key */
    }
    failed = failed ? failed : expect(t);
    t->oracle_ms = facts_now_ms() - since;
    switch (failed) {
    case 0:
        if (gpu)
            (void)facts_gpu_error(gpu); /* clears the message of an earlier failure */
        return FATTN_OK;
    case ENOTSUP:
        return (fattn_status)facts_fail_as(FATTN_INTERNAL, error,
                                           "dtype: the reference does not know this type yet");
    case ENOMEM:
        return (fattn_status)facts_fail_as(FATTN_NO_MEMORY, error, "no memory for the reference");
    default: /* EIO, and what else a broken device makes of loading kernels */
        return (fattn_status)facts_fail_as(FATTN_DEVICE_FAULT, error, "%s",
                                           gpu ? facts_gpu_error(gpu) : "");
    }
}

int facts_reference_judges(facts_reference *t, const facts_who *who)
{
    facts_constants before = t->constants;
    t->constants = constants_of(t->memory.problem, who);
    t->expectation.calibrated = t->constants.calibrated;
    if (facts_constants_agree(&before, &t->constants))
        return 0;
    return facts_reference_renew(t);
}

int facts_reference_renew(facts_reference *t)
{
    const double since = facts_now_ms();
    facts_expectation_destroy(&t->expectation);
    const int status = expect(t);
    t->expectation.calibrated = t->constants.calibrated;
    t->weighed = false;
    t->oracle_ms += facts_now_ms() - since;
    return status;
}

fattn_status facts_reference_reseed(facts_reference *t, int64_t seed, facts_error *error)
{
    const facts_array *array = &t->memory.problem->array[FACTS_ARRAY_SEED];
    const int32_t narrow = (int32_t)seed;
    memcpy(facts_memory_array(&t->memory, FACTS_ARRAY_SEED, FACTS_PATTERN_A),
           array->type == FACTS_ARRAY_I64 ? (const void *)&seed : &narrow,
           array->type == FACTS_ARRAY_I64 ? sizeof seed : sizeof narrow);
    const facts_repeat repeat =
        t->keep.repeat; /* of the case's own seed: there is no verdict yet */
    facts_kept_destroy(&t->keep, &t->memory);
    const fattn_status status =
        facts_kept_make(&t->keep, &t->memory, t->backend, FACTS_KEPT_READ, error);
    t->keep.repeat = repeat;
    return status;
}

/* Checks O of a forward on the GPU: every live row is finite. Checks Stats on the host. */
static int is_finite_there(facts_reference *t, bool *finite)
{
    const facts_problem *p = t->memory.problem;
    const facts_tensor o = facts_memory_seen(&t->memory, FACTS_TENSOR_O);
    facts_found found = { 0 };
    int32_t *expects = malloc((size_t)(o.dim[0] * o.dim[2] + 1) * sizeof *expects);
    for (int64_t n = 0; expects && n < o.dim[0] * o.dim[2]; n++)
        expects[n] = n % o.dim[2] < facts_live_q(p, n / o.dim[2]) ? FACTS_EXPECTS_VALUE
                                                                  : FACTS_EXPECTS_ANYTHING;
    fattn_status status = FATTN_NO_MEMORY;
    if (expects)
        status = facts_gpu_survey(t->memory.gpu, &o, storage_of(t, FACTS_TENSOR_O), expects,
                                  FACTS_PATTERN_A, &found);
    *finite = found.not_finite == 0 && found.unwritten == 0;
    free(expects);
    return errno_of(status);
}

int facts_reference_keep_own(facts_reference *t, bool *kept)
{
    facts_memory *m = &t->memory;
    const facts_problem *p = m->problem;
    facts_storages in = inputs_of(t);
    const void *o = m->gpu ? NULL : storage_of(t, FACTS_TENSOR_O),
               *stats = facts_memory_storage(m, FACTS_TENSOR_STATS, FACTS_PATTERN_A);
    bool finite = true;
    int status = stats ? facts_expect_near(p, &in, o, stats, kept) : ENOMEM;
    if (status == 0 && m->gpu)
        status = is_finite_there(t, &finite);
    *kept = *kept && finite;
    if (status || *kept)
        return status;
    status = expect_inputs(t, &in);
    facts_memory_give(m);
    return status;
}

void facts_reference_destroy(facts_reference *t)
{
    facts_expectation_destroy(&t->expectation);
    facts_kept_destroy(&t->keep, &t->memory);
    facts_memory_destroy(&t->memory);
    *t = (facts_reference){ .weighed = false };
}
