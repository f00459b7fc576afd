/* Gradients of what is added to the scores or modifies them: the gradient of every score of a
 * chunk, summed over what the tensor broadcasts. */
#include "math_reduce.h"
#include "math_run.h"

#include <string.h>

#include "fattn/score_mod.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

/* The target of the sum: the whole tensor, with stride 0 in summed dimensions. */
typedef struct target {
    char *at;
    int64_t strides[4];
    int32_t dtype;
} target;

/* fp32 in workspace; dense over what dbias keeps. */
static bool bias_sum(const fattn__math_run *r, target *out)
{
    int64_t dim[4], dense[4], strides[4];
    void *at = fattn__math_part_at(r, FATTN__MATH_SUM_DBIAS);
    fattn__dbias_strides(r->p, strides);
    for (int axis = 0; axis < 4; axis++)
        dim[axis] = strides[axis] == 0 ? 1 : r->p->bias_dim[axis];
    fattn__dense_strides(dim, "bhsd", dense);
    *out = (target){ .at = at, .dtype = FATTN_F32 };
    for (int axis = 0; axis < 4; axis++)
        out->strides[axis] = strides[axis] == 0 ? 0 : dense[axis];
    return at != NULL;
}

static target bias_target(const fattn__math_run *r)
{
    target out = { .at = r->t->dbias, .dtype = r->p->bias_dtype };
    fattn__dbias_strides(r->p, out.strides);
    return out;
}

static target tensor_target(const fattn__math_run *r, int32_t i)
{
    const fattn_mod_tensor *tensor = fattn_score_mod_tensor(r->p->score_mod, (size_t)i);
    target out = { .at = r->t->mod_gradients[i], .dtype = FATTN_F32 };
    for (int axis = 0; axis < 4; axis++)
        out.strides[axis] = tensor->dim[axis] == 1 ? 0 : tensor->strides[axis];
    return out;
}

/* Adds a chunk's scores at `from` to the target. The chunk is the first one for the target if it
 * begins at 0 in every summed dimension. */
static fattn_status add(const fattn__math_run *r, const float *from, const target *to)
{
    const int64_t pitch = (int64_t)r->chunk.key_tiles * FATTN__TILE,
                  head = (int64_t)r->chunk.row_tiles * FATTN__TILE * pitch;
    const int64_t origin[4] = { r->batch, r->head, r->row, r->key };
    fattn__sum sum = { .from = from,
                       .dtype = FATTN_F32,
                       .dim = { r->batches, r->heads, r->rows, r->keys },
                       .strides = { r->heads * head, head, pitch, 1 } };
    bool first = true;
    int64_t offset = 0;
    for (int axis = 0; axis < 4; axis++) {
        first = first && (to->strides[axis] != 0 || origin[axis] == 0);
        offset += origin[axis] * to->strides[axis];
    }
    if (to->strides[3] == 0 &&
        r->keys > 1) { /* along the keys first, for which there are threads enough */
        sum.to = fattn__math_part_at(r, FATTN__MATH_OVER_KEY_AXIS);
        sum.to_dtype = FATTN_F32;
        const int64_t rows[4] = { r->heads * r->rows, r->rows, 1, 0 };
        memcpy(sum.to_strides, rows, sizeof rows);
        TRY(fattn__math_reduce(r->plan->context, &sum, true, r->stream));
        sum.from = sum.to;
        sum.dim[3] = 1;
        memcpy(sum.strides, rows, sizeof rows);
    }
    sum.to = to->at + offset * fattn__dtype_bytes(to->dtype);
    sum.to_dtype = to->dtype;
    memcpy(sum.to_strides, to->strides, sizeof sum.to_strides);
    return fattn__math_reduce(r->plan->context, &sum, first, r->stream);
}

fattn_status fattn__math_added(const fattn__math_run *r)
{
    target to;
    if (r->p->dbias) {
        if (!bias_sum(r, &to))
            to = bias_target(r);
        TRY(add(r, r->chunk.dp, &to));
    }
    for (int32_t i = 0; i < r->state->tensor_count; i++) {
        if ((r->p->mod_gradients >> i & 1) == 0)
            continue;
        fattn__call call = r->chunk;
        call.extra = fattn__math_part_at(r, FATTN__MATH_EXTRA);
        TRY(fattn__math_modify(r, FATTN__KERNEL_modify_gradients, &r->state->tensors[i], &call));
        to = tensor_target(r, i);
        TRY(add(r, call.extra, &to));
    }
    return FATTN_OK;
}

fattn_status fattn__math_added_end(const fattn__math_run *r)
{
    target from;
    if (!r->p->dbias || !bias_sum(r, &from))
        return FATTN_OK;
    const target to = bias_target(r);
    fattn__sum sum = { .from = from.at, .to = to.at, .dtype = from.dtype, .to_dtype = to.dtype };
    for (int axis = 0; axis < 4; axis++)
        sum.dim[axis] = to.strides[axis] == 0 ? 1 : r->p->bias_dim[axis];
    memcpy(sum.strides, from.strides, sizeof sum.strides);
    memcpy(sum.to_strides, to.strides, sizeof sum.to_strides);
    return fattn__math_sum(r->plan->context, &sum, r->stream);
}
