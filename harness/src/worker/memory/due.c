#include "due.h"

#include <stdlib.h>

#include "worker/gpu/try.h"

/* One array of a tensor; NULL stays NULL. */
static bool fetch(double **out, const facts_truth *truth, const double *from, size_t count)
{
    *out = from ? malloc((count + 1) * sizeof **out) : NULL;
    return !from || (*out && facts_gpu_fetch(truth->memory.gpu, *out, from, count * sizeof **out) == FATTN_OK);
}

bool facts_due_here(facts_answer *out, const facts_truth *truth, facts_tensor_id id)
{
    const facts_answer *a = &truth->expectation.answer[id];
    const facts_tensor *t = &truth->memory.problem->tensor[id];
    size_t count = (size_t)(t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3]);
    *out = *a;
    if (truth->slabs) /* it is nowhere as a whole */
        *out = (facts_answer){ 0 };
    if (!a->at || truth->slabs)
        return true;
    bool fetched = fetch(&out->want, truth, a->want, count);
    fetched = fetch(&out->sigma, truth, a->sigma, count) && fetched;
    fetched = fetch(&out->bound, truth, a->bound, count) && fetched;
    if (!fetched)
        facts_due_leave(out, truth, id);
    return fetched;
}

void facts_due_leave(facts_answer *answer, const facts_truth *truth, facts_tensor_id id)
{
    if (truth->expectation.answer[id].at && !truth->slabs) {
        free(answer->want);
        free(answer->sigma);
        free(answer->bound);
    }
    *answer = (facts_answer){ 0 };
}

fattn_status facts_due_lend(facts_lent *out, facts_gpu *gpu, facts_part *part, size_t count)
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

void facts_due_return(facts_lent *lent, facts_gpu *gpu)
{
    facts_gpu_free(gpu, lent->want);
    facts_gpu_free(gpu, lent->bound);
}
