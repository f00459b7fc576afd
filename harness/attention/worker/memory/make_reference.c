#include "case_reference.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memory_side.h"
#include "numbers/fill/places.h"
#include "worker/clock/spent.h"

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
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

static int errno_of(fattn_status status)
{
    return status == FATTN_OK ? 0 : status == FATTN_NO_MEMORY ? ENOMEM : EIO;
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
    const double since = now_ms();
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
    out->fill_ms = now_ms() - since;
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
    const double since = now_ms();
    fattn_status status = facts_memory_fill(&t->memory, error);
    if (status == FATTN_OK && edit)
        status = change(t, edit->inputs, edit->owner, error);
    if (status == FATTN_OK)
        status = facts_kept_make(&t->keep, &t->memory, t->backend,
                                 edit ? FACTS_KEPT_READ : FACTS_KEPT_JUDGED, error);
    t->fill_ms += now_ms() - since;
    return status;
}

fattn_status facts_reference_compute(facts_reference *t, const facts_reference_edit *edit,
                                     facts_error *error)
{
    facts_gpu *gpu = t->memory.worker->gpu;
    const double since = now_ms();
    facts_storages in = inputs_of(t);
    int failed = t->memory.problem->ask.pass == FATTN_BACKWARD ? expect_inputs(t, &in) : 0;
    if (failed == 0 && edit && t->memory.problem->ask.pass == FATTN_BACKWARD) {
        const fattn_status status = change(t, edit->given, edit->owner, error);
        if (status != FATTN_OK)
            return status;
        t->there.scores = 0; /* the edited Stats may leave other rows without a key */
    }
    failed = failed ? failed : expect(t);
    t->oracle_ms = now_ms() - since;
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
    const double since = now_ms();
    const facts_spent before = facts_spend(FACTS_SPENT_ORACLE);
    facts_expectation_destroy(&t->expectation);
    const int status = expect(t);
    facts_spend(before);
    t->expectation.calibrated = t->constants.calibrated;
    t->weighed = false;
    t->oracle_ms += now_ms() - since;
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
