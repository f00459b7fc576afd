#include "truth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "numbers/fill/places.h"
#include "slabs.h"

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

const char *facts_truth_oracle(const facts_truth *t)
{
    return t->memory.gpu ? "gpu" : "cpu";
}

static facts_storages inputs_of(facts_truth *t)
{
    facts_storages in = t->memory.gpu ? facts_memory_addresses(&t->memory) : facts_memory_storages(&t->memory);
    in.oracle = t->slabs ? facts_slabs_blank() : t->memory.gpu ? &t->oracle : NULL;
    in.constants = &t->constants;
    in.keep = t->memory.gpu ? t->keep.there : t->keep.here;
    return in;
}

/* Where the oracle writes and reads a tensor. */
static void *storage_of(facts_truth *t, facts_tensor_id id)
{
    return t->memory.gpu ? facts_memory_address(&t->memory, id, FACTS_PATTERN_A)
                         : facts_memory_storage(&t->memory, id, FACTS_PATTERN_A);
}

static int expect_inputs(facts_truth *t, const facts_storages *in)
{
    if (t->slabs)
        return facts_slabs_inputs(t);
    return facts_expect_inputs(t->memory.problem, in, storage_of(t, FACTS_TENSOR_O), storage_of(t, FACTS_TENSOR_STATS));
}

static int expect(facts_truth *t, const facts_problem *p, const facts_truth_edit *edit, int32_t cudnn_version)
{
    facts_memory *m = &t->memory;
    facts_storages in = inputs_of(t);
    if (p->ask.pass == FATTN_FORWARD)
        return facts_expect_forward(&t->expectation, p, &in, cudnn_version);
    int status = expect_inputs(t, &in);
    if (status == 0 && edit) {
        edit->given(edit->owner, m);
        t->there.scores = 0; /* Stats may say of other rows that they have no key */
    }
    return status ? status : facts_expect_backward(&t->expectation, p, &in);
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

/* What is made, beside the case itself. */
typedef struct making {
    const facts_who *who;         /* NULL: nobody yet, the starting constants */
    const facts_truth_edit *edit; /* NULL: as it is filled */
    bool here;
} making;

static fattn_status create(facts_truth *out, facts_worker *worker, const facts_problem *problem, const making *how,
                           facts_error *error)
{
    *out = (facts_truth){ .constants = constants_of(problem, how->who) };
    double since = now_ms();
    fattn_status status = facts_memory_create(&out->memory, worker, problem, how->here, error);
    if (status != FATTN_OK)
        return status;
    out->there.gpu = out->memory.gpu;
    if (out->memory.gpu)
        out->oracle = facts_oracle_on(&out->there);
    if (out->memory.gpu && !facts_slabs_plan(&out->slabs, problem, worker->limits))
        return facts_fail_as(FATTN_NO_MEMORY, error, "no memory for the reference");
    if (how->edit)
        how->edit->inputs(how->edit->owner, &out->memory);
    status = facts_kept_make(&out->keep, &out->memory, error);
    if (status != FATTN_OK)
        return status;
    out->fill_ms = now_ms() - since;
    const int failed = expect(out, problem, how->edit, worker->info.cudnn_version);
    out->oracle_ms = now_ms() - since - out->fill_ms;
    switch (failed) {
    case 0:
        if (worker->gpu)
            (void)facts_gpu_error(
                worker->gpu); /* of what was answered otherwise, here or for an earlier case: it is nobody's now */
        return FATTN_OK;
    case ENOTSUP:
        return facts_fail_as(FATTN_INTERNAL, error, "dtype: the reference does not know this type yet");
    case EIO:
        return facts_fail_as(FATTN_DEVICE_FAULT, error, "%s", worker->gpu ? facts_gpu_error(worker->gpu) : "");
    default:
        return facts_fail_as(FATTN_NO_MEMORY, error, "no memory for the reference");
    }
}

static fattn_status create_where_it_can(facts_truth *out, facts_worker *worker, const facts_problem *problem, making how,
                                        facts_error *error)
{
    /* Checks look at everything that there is, and write what no fill makes. */
    how.here = !worker->gpu || how.edit || problem->check != FACTS_CHECK_NONE || worker->oracle == FACTS_ORACLE_CPU;
    fattn_status status = create(out, worker, problem, &how, error);
    if (how.here || status != FATTN_INTERNAL)
        return status;
    facts_truth_destroy(out); /* nothing for the oracle on the GPU: the C reference, and everything that it reads is here */
    how.here = true;
    return create(out, worker, problem, &how, error);
}

fattn_status facts_truth_create(facts_truth *out, facts_worker *worker, const facts_problem *problem, facts_error *error)
{
    return create_where_it_can(out, worker, problem, (making){ .who = NULL }, error);
}

fattn_status facts_truth_create_for(facts_truth *out, facts_worker *worker, const facts_problem *problem, const facts_who *who,
                                    facts_error *error)
{
    return create_where_it_can(out, worker, problem, (making){ .who = who }, error);
}

fattn_status facts_truth_create_edited(facts_truth *out, facts_worker *worker, const facts_problem *problem,
                                       const facts_truth_edit *edit, facts_error *error)
{
    return create_where_it_can(out, worker, problem, (making){ .edit = edit }, error);
}

fattn_status facts_truth_create_here(facts_truth *out, const facts_truth *like, facts_error *error)
{
    fattn_status status = create(out, like->memory.worker, like->memory.problem, &(making){ .here = true }, error);
    if (status != FATTN_OK || facts_constants_agree(&out->constants, &like->constants))
        return status;
    facts_storages in = inputs_of(out);
    out->constants = like->constants;
    facts_expectation_destroy(&out->expectation);
    int failed = out->memory.problem->ask.pass == FATTN_BACKWARD
                     ? facts_expect_backward(&out->expectation, out->memory.problem, &in)
                     : facts_expect_forward(&out->expectation, out->memory.problem, &in, like->memory.worker->info.cudnn_version);
    return failed ? FATTN_NO_MEMORY : FATTN_OK;
}

int facts_truth_judges(facts_truth *t, const facts_who *who)
{
    facts_constants before = t->constants;
    t->constants = constants_of(t->memory.problem, who);
    t->expectation.calibrated = t->constants.calibrated;
    if (facts_constants_agree(&before, &t->constants))
        return 0;
    return facts_truth_renew(t);
}

int facts_truth_renew(facts_truth *t)
{
    const facts_problem *p = t->memory.problem;
    facts_storages in = inputs_of(t);
    const double since = now_ms();
    facts_expectation_destroy(&t->expectation);
    int status = p->ask.pass == FATTN_BACKWARD
                     ? facts_expect_backward(&t->expectation, p, &in)
                     : facts_expect_forward(&t->expectation, p, &in, t->memory.worker->info.cudnn_version);
    t->expectation.calibrated = t->constants.calibrated;
    t->weighed = false;
    facts_slabs_forget(t->slabs);
    t->oracle_ms += now_ms() - since;
    return status;
}

fattn_status facts_truth_reseed(facts_truth *t, int64_t seed, facts_error *error)
{
    const facts_array *array = &t->memory.problem->array[FACTS_ARRAY_SEED];
    const int32_t narrow = (int32_t)seed;
    memcpy(facts_memory_array(&t->memory, FACTS_ARRAY_SEED, FACTS_PATTERN_A),
           array->type == FACTS_ARRAY_I64 ? (const void *)&seed : &narrow,
           array->type == FACTS_ARRAY_I64 ? sizeof seed : sizeof narrow);
    facts_kept_destroy(&t->keep, &t->memory);
    return facts_kept_make(&t->keep, &t->memory, error);
}

/* O of a forward on the GPU: every live row is finite. Its Stats are looked at here. */
static int is_finite_there(facts_truth *t, bool *finite)
{
    const facts_problem *p = t->memory.problem;
    const facts_tensor o = facts_memory_seen(&t->memory, FACTS_TENSOR_O);
    facts_found found = { 0 };
    int32_t *due = malloc((size_t)(o.dim[0] * o.dim[2] + 1) * sizeof *due);
    for (int64_t n = 0; due && n < o.dim[0] * o.dim[2]; n++)
        due[n] = n % o.dim[2] < facts_live_q(p, n / o.dim[2]) ? FACTS_DUE_VALUE : FACTS_DUE_ANYTHING;
    fattn_status status = FATTN_NO_MEMORY;
    if (due)
        status = facts_gpu_survey(t->memory.gpu, &o, storage_of(t, FACTS_TENSOR_O), due, FACTS_PATTERN_A, &found);
    *finite = found.not_finite == 0 && found.unwritten == 0;
    free(due);
    return errno_of(status);
}

int facts_truth_keep_own(facts_truth *t, bool *kept)
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

void facts_truth_destroy(facts_truth *t)
{
    facts_expectation_destroy(&t->expectation);
    facts_slabs_destroy(t->slabs);
    facts_kept_destroy(&t->keep, &t->memory);
    facts_memory_destroy(&t->memory);
}
