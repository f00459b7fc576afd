#include "dropout_kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fattn/device.h"
#include "fattn/policy.h"
#include "numbers/dtype.h"
#include "numbers/fill/places.h"
#include "numbers/fill/score_inputs.h"
#include "own_forward.h"
#include "worker/gpu/worker_gpu.h"

/* The alignment of a tensor's address, in bytes. */
#define ALIGNED 16

static size_t scores_of(const facts_problem *p)
{
    return (size_t)(p->ask.batch * p->ask.heads_q * p->ask.seq_q * p->ask.seq_kv);
}

static void read_floats(uint8_t *out, const float *from, int64_t count)
{
    for (int64_t j = 0; j < count; j++)
        out[j] = from[j] != 0;
}

/* Nonzero elements of a tensor of scores. */
static void read_bits(uint8_t *out, const facts_tensor *t, const void *storage)
{
    for (int64_t row = 0; row < facts_rows(t->dim); row++) {
        const facts_row at = facts_row_of(t->dim, row);
        const int64_t place = facts_row_place(t, at.b, at.h, at.s);
        if (t->dtype == FATTN_F32 && t->stride[3] == 1) {
            read_floats(out + row * t->dim[3], (const float *)storage + place, t->dim[3]);
            continue;
        }
        for (int64_t j = 0; j < t->dim[3]; j++)
            out[row * t->dim[3] + j] =
                facts_decode(t->dtype, facts_load(t->dtype, storage, place + j * t->stride[3])) !=
                0;
    }
}

static void count(facts_kept *keep, const facts_problem *p)
{
    for (int64_t b = 0; b < p->ask.batch; b++)
        for (int64_t i = 0; i < facts_live_q(p, b); i++) {
            int64_t first, last;
            facts_oracle_keys_of_row(p, b, i, &first, &last);
            for (int64_t h = 0; h < p->ask.heads_q && first < last; h++) {
                const uint8_t *row =
                    keep->here + ((b * p->ask.heads_q + h) * p->ask.seq_q + i) * p->ask.seq_kv;
                for (int64_t j = first; j < last; j++)
                    keep->kept += row[j];
                keep->of += last - first;
            }
        }
}

/* ---- the engine's own dump
 * ------------------------------------------------------------------------------------------------------
 */

/* The run that dumps the dropout mask. */
typedef struct run {
    facts_problem problem;
    facts_memory memory;
    fattn_plan *plan;
    bool made;
} run;

/* For a backward: the forward that runs before it. */
static void ask_forward(facts_problem *p)
{
    static const facts_tensor_id not_of_it[] = { FACTS_TENSOR_DO,    FACTS_TENSOR_DQ,
                                                 FACTS_TENSOR_DK,    FACTS_TENSOR_DV,
                                                 FACTS_TENSOR_DBIAS, FACTS_TENSOR_Q_T,
                                                 FACTS_TENSOR_K_T,   FACTS_TENSOR_DO_T,
                                                 FACTS_TENSOR_DO_16 };
    if (p->ask.pass == FATTN_FORWARD)
        return;
    p->ask = facts_own_forward(&p->ask);
    for (size_t i = 0; i < sizeof not_of_it / sizeof *not_of_it; i++)
        p->tensor[not_of_it[i]].present = false;
    p->array[FACTS_ARRAY_DSINK].count = 0;
    p->ask.stats_dtype = p->tensor[FACTS_TENSOR_STATS].dtype =
        FATTN_F32; /* no forward writes other Stats */
}

/* The addresses of the case do not matter: the dropout mask does not depend on them. */
static void ask_dump(facts_problem *p)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        facts_tensor *t = &p->tensor[id];
        const size_t bytes = facts_dtype_bytes(t->dtype);
        t->skew_bytes = 0;
        if (t->present && bytes > 0)
            t->first -= t->first % (int64_t)(ALIGNED / bytes);
    }
    const int64_t h = p->ask.heads_q, s = p->ask.seq_q, k = p->ask.seq_kv;
    p->ask.outputs |= FATTN_WANT_RNG_DUMP;
    p->tensor[FACTS_TENSOR_RNG_DUMP] = (facts_tensor){ .present = true,
                                                       .dtype = FATTN_F32,
                                                       .dim = { p->ask.batch, h, s, k },
                                                       .stride = { h * s * k, s * k, k, 1 },
                                                       .elements = p->ask.batch * h * s * k };
}

/* The current seed and offset. */
static void take_seeds(facts_memory *to, facts_memory *from)
{
    for (facts_array_id id = FACTS_ARRAY_SEED; id <= FACTS_ARRAY_OFFSET; id++)
        if (to->array[id] && from->array[id])
            memcpy(to->array[id], from->array[id], facts_array_bytes(&from->problem->array[id]));
}

/* A backward reads O and Stats; the mask does not depend on their values. */
static fattn_status clear_given(facts_memory *m, facts_error *error)
{
    for (facts_tensor_id id = FACTS_TENSOR_O; id <= FACTS_TENSOR_STATS; id++) {
        void *storage = facts_memory_storage(m, id, FACTS_PATTERN_A);
        if (!storage)
            return (fattn_status)facts_fail_as(FATTN_NO_MEMORY, error,
                                               "rng_dump: no memory for O and Stats");
        memset(storage, 0,
               (size_t)m->problem->tensor[id].elements *
                   facts_dtype_bytes(m->problem->tensor[id].dtype));
    }
    const fattn_status status = facts_memory_push(m);
    if (status != FATTN_OK)
        facts_fail(error, "rng_dump: %.240s", facts_gpu_error(m->gpu));
    return status;
}

/* Everything except the mask: seed and offset are the current ones of `like`. */
static fattn_status prepare(run *x, facts_worker *worker, facts_memory *like, facts_error *error)
{
    x->made = true;
    TRY(facts_memory_create(&x->memory, worker, &x->problem, !like->gpu, error));
    TRY(facts_memory_fill(&x->memory, error));
    take_seeds(&x->memory, like);
    if (x->problem.ask.pass == FATTN_BACKWARD)
        TRY(clear_given(&x->memory, error));
    const fattn_status status =
        facts_memory_workspace(&x->memory, fattn_plan_workspace_bytes(x->plan));
    if (status != FATTN_OK)
        facts_fail(error, "rng_dump: %.240s", fattn_last_error());
    return status;
}

/* The elements that dropout keeps with the current seed and offset of `x`. */
static fattn_status launch(run *x, uint8_t *out, facts_error *error)
{
    int64_t overrun[FACTS_PLACES];
    facts_worker *worker = x->memory.worker;
    fattn_status status = facts_memory_arm(&x->memory, FACTS_PATTERN_A, 0);
    const fattn_tensors tensors = facts_memory_tensors(&x->memory);
    if (status == FATTN_OK)
        status = x->problem.ask.pass == FATTN_BACKWARD
                     ? fattn_backward(x->plan, &tensors, worker->stream)
                     : fattn_forward(x->plan, &tensors, worker->stream);
    if (status == FATTN_OK)
        status = fattn_stream_synchronize(worker->context, worker->stream);
    if (status == FATTN_OK)
        status = facts_memory_fetch(&x->memory, FACTS_PATTERN_A, overrun);
    const void *dump = status == FATTN_OK ? facts_memory_storage(&x->memory, FACTS_TENSOR_RNG_DUMP,
                                                                 FACTS_PATTERN_A)
                                          : NULL;
    if (dump)
        read_bits(out, &x->problem.tensor[FACTS_TENSOR_RNG_DUMP], dump);
    else
        facts_fail(error, "rng_dump: %.240s",
                   status == FATTN_OK ? "no memory for the dump" : fattn_last_error());
    return status == FATTN_OK && !dump ? FATTN_NO_MEMORY : status;
}

/* ---- does the mask depend on seed and offset?
 * -------------------------------------------------------------------------------------- */

/* Adds to the seed or the offset that the next launch reads. */
static void advance(facts_memory *m, facts_array_id id, int64_t by)
{
    unsigned char *at = facts_memory_array(m, id, FACTS_PATTERN_A);
    uint64_t wide;
    uint32_t narrow;
    if (facts_array_bytes(&m->problem->array[id]) == sizeof wide) {
        memcpy(&wide, at, sizeof wide);
        wide += (uint64_t)by;
        memcpy(at, &wide, sizeof wide);
        return;
    }
    memcpy(&narrow, at, sizeof narrow);
    narrow += (uint32_t)by;
    memcpy(at, &narrow, sizeof narrow);
}

/* The next seed, and the next offset that PyTorch gives, must each give another mask, and so must
 * the upper half of both. PyTorch's offset advances by four: one call of Philox. */
static fattn_status compare_seeds(facts_kept *out, run *x, facts_error *error)
{
    static const struct {
        facts_array_id id;
        int64_t by;
        const char *what;
    } others[] = { { FACTS_ARRAY_SEED, 1, "seeds 1 apart" },
                   { FACTS_ARRAY_OFFSET, 4, "offsets 4 apart" },
                   { FACTS_ARRAY_SEED, INT64_C(1) << 32, "seeds 2^32 apart" },
                   { FACTS_ARRAY_OFFSET, INT64_C(1) << 32, "offsets 2^32 apart" } };
    const facts_problem *p = &x->problem;
    uint8_t *bits = malloc(scores_of(p) + 1);
    fattn_status status = bits ? FATTN_OK : FATTN_NO_MEMORY;
    for (size_t i = 0; i < sizeof others / sizeof *others && status == FATTN_OK; i++) {
        if (others[i].by > UINT32_MAX &&
            facts_array_bytes(&p->array[others[i].id]) == sizeof(uint32_t))
            continue;
        advance(&x->memory, others[i].id, others[i].by);
        status = launch(x, bits, error);
        advance(&x->memory, others[i].id, -others[i].by);
        if (status != FATTN_OK)
            break;
        const facts_repeat found = facts_repeat_between(p, out->here, bits, others[i].what);
        if (found.ratio > out->repeat.ratio)
            out->repeat = found;
    }
    free(bits);
    return status;
}

static bool facts_kept_by_engine(const facts_problem *p)
{
    return p->ask.dropout != 0 && !p->ask.dropout_mask;
}

/* Each backend has another mask. If a rule refuses only cuDNN's backward, or an engine does not
 * compile, the policy's first backend does not show the mask of the one that computes the case. */
static bool is_answered_by(const facts_worker *worker, const fattn_problem *p,
                           fattn_backend backend)
{
    fattn_decision *decision = NULL;
    const bool same = fattn_decide(&decision, worker->context, p, FATTN_ASK_A) == FATTN_OK &&
                      fattn_decision_backend(decision) == backend;
    fattn_decision_destroy(decision);
    return same;
}

fattn_status facts_kept_plan(fattn_plan **out, facts_problem *asked, const facts_worker *worker,
                             const facts_problem *problem, int backend, bool forward)
{
    const bool known = backend != FACTS_BACKEND_NOT_KNOWN;
    fattn_policy alone = FATTN_POLICY_INIT;
    int depth = 0;
    alone.order[0] = backend;
    alone.order_count = 1;
    *asked = *problem;
    if (forward)
        ask_forward(asked);
    ask_dump(asked);
    if (known)
        TRY(fattn_policy_push(&alone, &depth));
    fattn_status status =
        facts_plan_get(out, worker->plans, worker->context, &asked->ask, NULL, NULL);
    fattn_policy_pop(depth);
    if (status == FATTN_OK &&
        !(known ? (int)fattn_plan_backend(*out) == backend
                : asked->ask.pass == problem->ask.pass ||
                      is_answered_by(worker, &problem->ask, fattn_plan_backend(*out)))) {
        fattn_plan_destroy(*out);
        *out = NULL;
        status = FATTN_UNSUPPORTED;
    }
    return status;
}

static fattn_status dump(facts_kept *out, facts_memory *m, int backend, facts_kept_how how,
                         bool forward, facts_error *error)
{
    facts_worker *worker = m->worker;
    run *x = calloc(1, sizeof *x);
    if (!x)
        return FATTN_NO_MEMORY;
    fattn_status status =
        facts_kept_plan(&x->plan, &x->problem, worker, m->problem, backend, forward);
    if (status == FATTN_OK)
        status = prepare(x, worker, m, error);
    else
        facts_fail(error, "dropout: FACTS cannot find out which scores are kept: %.200s",
                   fattn_last_error());
    if (status == FATTN_OK) {
        status = launch(x, out->here, error);
        if (status == FATTN_OK && how == FACTS_KEPT_JUDGED) {
            out->repeat = facts_repeat_within(&x->problem, out->here);
            status = compare_seeds(out, x, error);
        }
        out->faulted = status == FATTN_DEVICE_FAULT;
    }
    worker->lost = worker->lost || status == FATTN_DEVICE_FAULT;
    if (x->made)
        facts_memory_destroy(&x->memory);
    if (!worker->lost)
        fattn_plan_destroy(x->plan);
    free(x);
    return status;
}

static fattn_status from_engine(facts_kept *out, facts_memory *m, int backend, facts_kept_how how,
                                facts_error *error)
{
    fattn_status status = dump(out, m, backend, how, true, error);
    if (status != FATTN_OK && status != FATTN_DEVICE_FAULT && status != FATTN_NO_MEMORY &&
        m->problem->ask.pass == FATTN_BACKWARD)
        status = dump(out, m, backend, how, false, error);
    return status == FATTN_OK || status == FATTN_DEVICE_FAULT || status == FATTN_NO_MEMORY
               ? status
               : FATTN_ENVIRONMENT;
}

fattn_status facts_kept_make(facts_kept *out, facts_memory *m, int backend, facts_kept_how how,
                             facts_error *error)
{
    const facts_problem *p = m->problem;
    fattn_status status = FATTN_OK;
    *out = (facts_kept){ .here = NULL };
    if (p->ask.dropout == 0 && !p->ask.dropout_mask)
        return FATTN_OK;
    out->here = malloc(scores_of(p) + 1);
    if (!out->here)
        return (fattn_status)facts_fail_as(FATTN_NO_MEMORY, error,
                                           "no memory for what dropout keeps");
    if (p->ask.dropout_mask)
        read_bits(out->here, &p->tensor[FACTS_TENSOR_DROPOUT_MASK],
                  facts_memory_storage(m, FACTS_TENSOR_DROPOUT_MASK, FACTS_PATTERN_A));
    else
        status = from_engine(out, m, backend, how, error);
    if (status != FATTN_OK)
        return status;
    count(out, p);
    if (m->gpu) {
        status = facts_gpu_make(m->gpu, &out->there, scores_of(p));
        if (status == FATTN_OK)
            status = facts_gpu_send(m->gpu, out->there, out->here, scores_of(p));
        if (status != FATTN_OK)
            facts_fail(error, "%.250s", facts_gpu_error(m->gpu));
    }
    return status;
}

void facts_kept_destroy(facts_kept *keep, facts_memory *m)
{
    free(keep->here);
    if (keep->there && !m->worker->lost)
        facts_gpu_free(m->gpu, keep->there);
    *keep = (facts_kept){ .here = NULL };
}

static void make_forward(const facts_worker *worker, const facts_problem *problem)
{
    const fattn_problem forward = facts_own_forward(&problem->ask);
    fattn_plan *plan = NULL;
    if (facts_plan_get(&plan, worker->plans, worker->context, &forward, NULL, NULL) == FATTN_OK)
        fattn_plan_destroy(plan);
}

static void make_dump(const facts_worker *worker, const facts_problem *problem,
                      fattn_backend backend)
{
    fattn_plan *plan = NULL;
    facts_problem *asked = malloc(sizeof *asked);
    if (asked &&
        (facts_kept_plan(&plan, asked, worker, problem, (int)backend, true) == FATTN_OK ||
         (problem->ask.pass == FATTN_BACKWARD &&
          facts_kept_plan(&plan, asked, worker, problem, (int)backend, false) == FATTN_OK)))
        fattn_plan_destroy(plan);
    free(asked);
}

void facts_further_plans(const facts_worker *worker, const facts_problem *problem,
                         fattn_backend backend)
{
    if (facts_has_own_forward(problem))
        make_forward(worker, problem);
    if (facts_kept_by_engine(problem))
        make_dump(worker, problem, backend);
}
