#include "truth.h"

#include <errno.h>
#include <stdio.h>

#include "../numbers/fill.h"
#include "../numbers/oracle.h"

static facts_storages inputs_of(const facts_truth *t)
{
    facts_storages in = facts_memory_storages(&t->memory);
    in.constants = &t->constants;
    return in;
}

static int expect(facts_truth *t, const facts_problem *p, const facts_truth_edit *edit, int32_t cudnn_version)
{
    facts_memory *m = &t->memory;
    if (edit)
        edit->inputs(edit->owner, m);
    facts_storages in = inputs_of(t);
    if (p->ask.pass == FATTN_FORWARD)
        return facts_expect_forward(&t->expectation, p, &in, cudnn_version);
    int status = facts_expect_inputs(p, &in, facts_memory_storage(m, FACTS_TENSOR_O, FACTS_PATTERN_A),
                                     facts_memory_storage(m, FACTS_TENSOR_STATS, FACTS_PATTERN_A));
    if (status == 0 && edit)
        edit->given(edit->owner, m);
    return status ? status : facts_expect_backward(&t->expectation, p, &in);
}

static void weigh_trust(facts_truth *t, const facts_problem *p)
{
    bool scores_matter = facts_oracle_two_keys(p);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        bool zero_anyway = !scores_matter && (id == FACTS_TENSOR_DQ || id == FACTS_TENSOR_DK || id == FACTS_TENSOR_DBIAS);
        if (!facts_tensor_is_output(p, id) || !facts_fill_is_dense(p->fill) || zero_anyway)
            continue;
        facts_rule rule = facts_expectation_rule(&t->expectation, id, FACTS_PATTERN_A);
        t->untrusted[id] = !facts_judge_trusts(&p->tensor[id], &rule);
    }
}

fattn_status facts_truth_create(facts_truth *out, facts_worker *worker, const facts_problem *problem, char error[256])
{
    return facts_truth_create_edited(out, worker, problem, NULL, error);
}

fattn_status facts_truth_create_edited(facts_truth *out, facts_worker *worker, const facts_problem *problem, const facts_truth_edit *edit,
                                       char error[256])
{
    *out = (facts_truth){ .constants = facts_constants_start(problem->ask.dtype) };
    fattn_status status = facts_memory_create(&out->memory, worker, problem, error);
    if (status != FATTN_OK)
        return status;
    switch (expect(out, problem, edit, worker->info.cudnn_version)) {
    case 0:
        weigh_trust(out, problem);
        return FATTN_OK;
    case ENOTSUP:
        snprintf(error, 256, "dtype: the reference does not know this type yet");
        return FATTN_INTERNAL;
    default:
        snprintf(error, 256, "no memory for the reference");
        return FATTN_NO_MEMORY;
    }
}

int facts_truth_judges(facts_truth *t, const facts_who *who)
{
    const facts_problem *p = t->memory.problem;
    facts_constants before = t->constants;
    t->constants = facts_constants_of(who);
    t->expectation.calibrated = t->constants.calibrated;
    if (facts_constants_agree(&before, &t->constants))
        return 0;
    if (p->ask.pass == FATTN_BACKWARD)
        return facts_truth_renew(t);
    facts_storages in = inputs_of(t);
    facts_expectation_destroy(&t->expectation);
    int status = facts_expect_forward(&t->expectation, p, &in, t->memory.worker->info.cudnn_version);
    if (status == 0)
        weigh_trust(t, p);
    return status;
}

int facts_truth_renew(facts_truth *t)
{
    facts_storages in = inputs_of(t);
    facts_expectation_destroy(&t->expectation);
    int status = facts_expect_backward(&t->expectation, t->memory.problem, &in);
    if (status == 0)
        weigh_trust(t, t->memory.problem);
    return status;
}

int facts_truth_keep_own(facts_truth *t, bool *kept)
{
    facts_memory *m = &t->memory;
    const facts_problem *p = m->problem;
    facts_storages in = inputs_of(t);
    void *o = facts_memory_storage(m, FACTS_TENSOR_O, FACTS_PATTERN_A), *stats = facts_memory_storage(m, FACTS_TENSOR_STATS, FACTS_PATTERN_A);
    int status = facts_expect_near(p, &in, o, stats, kept);
    if (status || *kept)
        return status;
    status = facts_expect_inputs(p, &in, o, stats);
    facts_memory_give(m);
    return status;
}

void facts_truth_destroy(facts_truth *t)
{
    facts_expectation_destroy(&t->expectation);
    facts_memory_destroy(&t->memory);
}
