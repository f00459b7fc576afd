#include "expected_transfer.h"

#include <stdlib.h>

#include "worker/gpu/try.h"

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
