/* From a call's addresses to what the kernels read: tensors with their strides or starts, lengths,
 * masks, dropout. */
#include <string.h>

#include "fattn/score_mod.h"
#include "math_run.h"
#include "problem/auxiliary.h"
#include "problem/dropout.h"
#include "problem/layout.h"

static int32_t grain_of(const void *at, const int64_t dim[4], const int64_t strides[4],
                        int64_t bytes)
{
    uint64_t bits = (uint64_t)(uintptr_t)at | 16;
    for (int axis = 0; axis < 3; axis++)
        bits |= dim[axis] > 1 ? (uint64_t)(strides[axis] * bytes) : 0;
    return (int32_t)(bits & (~bits + 1));
}

/* `dim` 1 is a broadcast: its stride is 0. */
static fattn__matrix matrix_of(const void *at, const int64_t dim[4], const int64_t strides[4],
                               int32_t dtype)
{
    fattn__matrix m = { .at = (char *)(uintptr_t)at,
                        .dtype = dtype,
                        .grain = grain_of(at, dim, strides, fattn__dtype_bytes(dtype)) };
    for (int axis = 0; axis < 4; axis++)
        m.stride[axis] = dim[axis] == 1 ? 0 : strides[axis];
    return m;
}

/* ---- packed
 * -----------------------------------------------------------------------------------------------------------------------
 */

/* The starts of a packed tensor; NULL: it is not. */
static const void *starts_of(const fattn__math_run *r, fattn__role role)
{
    _Static_assert((int)FATTN__AUXILIARY_DV_OFFSETS - (int)FATTN__AUXILIARY_Q_OFFSETS ==
                       (int)FATTN__ROLE_DV,
                   "both in the order of FATTN_RAGGED_LIST");
    const void *starts;
    if (!fattn__problem_ragged(r->p, role))
        return NULL;
    memcpy(&starts,
           (const char *)r->t +
               fattn__auxiliary_place((fattn__auxiliary)(FATTN__AUXILIARY_Q_OFFSETS + (int)role)),
           sizeof starts);
    return starts;
}

static int64_t start_step(const fattn__math_run *r, const fattn__shape *shape)
{
    return r->p->ragged_tokens ? shape->strides[2] : 1;
}

/* For a ragged tensor the kernels compute the alignment of each entry from that of the rows after
 * its start. */
static fattn__matrix packed_matrix(const fattn__math_run *r, fattn__role role, const void *at)
{
    fattn__shape shape = fattn__problem_shape(r->p, role);
    const void *starts = starts_of(r, role);
    if (starts != NULL)
        shape.dim[0] = 1;
    fattn__matrix m = matrix_of(at, shape.dim, shape.strides, shape.dtype);
    m.starts = starts;
    m.start_step = start_step(r, &shape);
    m.start_bits = r->p->ragged_bits;
    return m;
}

fattn__matrix fattn__math_stats(const fattn__math_run *r)
{
    return packed_matrix(r, FATTN__ROLE_STATS, r->t->stats);
}

fattn__lengths fattn__math_lengths(const fattn__math_run *r)
{
    if (!r->p->padding)
        return (fattn__lengths){ 0 };
    return (fattn__lengths){ .q = r->t->seq_len_q,
                             .kv = r->t->seq_len_kv,
                             .step = !r->p->len_broadcast,
                             .sums_q = (r->p->cumulative & FATTN_CUMULATIVE_Q) != 0,
                             .sums_kv = (r->p->cumulative & FATTN_CUMULATIVE_KV) != 0 };
}

void fattn__math_pack_sum(fattn__sum *sum, const fattn__math_run *r, fattn__role gradient)
{
    const fattn__shape shape = fattn__problem_shape(r->p, gradient);
    const fattn__lengths lengths = fattn__math_lengths(r);
    const bool of_rows = gradient == FATTN__ROLE_DQ;
    sum->to_starts = starts_of(r, gradient);
    sum->to_start_step = start_step(r, &shape);
    sum->to_start_bits = r->p->ragged_bits;
    sum->lengths = of_rows ? lengths.q : lengths.kv;
    sum->length_step = lengths.step;
    sum->length_sums = of_rows ? lengths.sums_q : lengths.sums_kv;
}

/* ---- tensors
 * ----------------------------------------------------------------------------------------------------------------------
 */

static fattn_status role_matrix(fattn__matrix *out, const fattn__math_run *r, fattn__role role,
                                const void *at)
{
    const fattn__shape shape = fattn__problem_shape(r->p, role);
    if (!shape.used)
        return FATTN_OK;
    *out = packed_matrix(r, role, at);
    if ((uintptr_t)at % (uintptr_t)fattn__dtype_bytes(shape.dtype) !=
        0) /* guards_off: nothing else has checked this */
        return fattn__fail(FATTN_BAD_PROBLEM, "%s is not aligned to its elements",
                           fattn__role_name(role));
    return FATTN_OK;
}

/* The first target of a gradient: the caller's tensor or, if it will be summed, all of its elements
 * in the workspace. */
static fattn_status gradient_matrix(fattn__matrix *out, const fattn__math_run *r, fattn__role role,
                                    fattn__role input, const void *at, fattn__math_part whole)
{
    int64_t strides[4];
    const fattn__shape shape = fattn__problem_shape(r->p, input);
    void *workspace = fattn__math_part_at(r, whole);
    if (workspace == NULL)
        return role_matrix(out, r, role, at);
    fattn__dense_strides(shape.dim, "bhsd", strides);
    *out = matrix_of(workspace, shape.dim, strides, FATTN_F32);
    return FATTN_OK;
}

static void set_tensors(fattn__math_run *r)
{
    for (int32_t i = 0; i < r->state->tensor_count; i++) {
        const fattn_mod_tensor *tensor = fattn_score_mod_tensor(r->p->score_mod, (size_t)i);
        r->tensors.at[i] =
            matrix_of(r->t->mod_tensors[i], tensor->dim, tensor->strides, tensor->dtype);
    }
}

fattn_status fattn__math_matrices(fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    const fattn_tensors *t = r->t;
    TRY(role_matrix(&r->q, r, FATTN__ROLE_Q, t->q));
    if (p->page_size_k == 0)
        TRY(role_matrix(&r->k, r, FATTN__ROLE_K, t->k));
    if (p->page_size_v == 0)
        TRY(role_matrix(&r->v, r, FATTN__ROLE_V, t->v));
    TRY(role_matrix(&r->o, r, FATTN__ROLE_O, t->o));
    TRY(role_matrix(p->bias_dtype == FATTN_BOOL ? &r->mask : &r->bias, r, FATTN__ROLE_BIAS,
                    t->bias));
    set_tensors(r);
    if (p->pass == FATTN_FORWARD)
        return FATTN_OK;
    TRY(role_matrix(&r->d_o, r, FATTN__ROLE_DO, t->d_o));
    TRY(gradient_matrix(&r->dq, r, FATTN__ROLE_DQ, FATTN__ROLE_Q, t->dq, FATTN__MATH_WHOLE_DQ));
    TRY(gradient_matrix(&r->dk, r, FATTN__ROLE_DK, FATTN__ROLE_K, t->dk, FATTN__MATH_WHOLE_DK));
    return gradient_matrix(&r->dv, r, FATTN__ROLE_DV, FATTN__ROLE_V, t->dv, FATTN__MATH_WHOLE_DV);
}

/* ---- pages
 * ------------------------------------------------------------------------------------------------------------------------
 */

/* K or V of the chunk's batch entries, as a matrix in workspace whose entries count from the first
 * of all. */
static fattn_status lay_out(const fattn__math_run *r, fattn__matrix *out, bool values)
{
    const fattn_problem *p = r->p;
    const fattn__shape pool = fattn__problem_bytes_of(p, values ? FATTN__ROLE_V : FATTN__ROLE_K);
    const int64_t bytes = fattn__dtype_bytes(p->dtype),
                  pitch = fattn__math_pages_pitch(p, pool.dim[3]);
    const int64_t dim[4] = { p->batch, pool.dim[1], p->seq_kv, pool.dim[3] };
    const int64_t strides[4] = { dim[1] * dim[2] * pitch, dim[2] * pitch, pitch, 1 };
    *out = matrix_of(fattn__math_part_at(r, values ? FATTN__MATH_PAGES_V : FATTN__MATH_PAGES_K),
                     dim, strides, p->dtype);
    out->at = (char *)((uintptr_t)out->at - (uintptr_t)(r->batch * out->stride[0] * bytes));
    fattn__gather_call call = {
        .from = matrix_of(values ? r->t->v : r->t->k, pool.dim, pool.strides, p->dtype),
        .to = *out,
        .table = values ? r->t->page_table_v : r->t->page_table_k,
        .table_starts = !p->packed_table ? NULL
                        : values         ? r->t->table_offsets_v
                                         : r->t->table_offsets_k,
        .rows = r->batches * dim[1] * dim[2],
        .table_bits = p->ragged_bits == 64 ? 64 : 32,
        .pages = (int32_t)(values ? p->table_v : p->table_k),
        .page = (int32_t)(values ? p->page_size_v : p->page_size_k),
        .batch = (int32_t)r->batch,
        .heads = (int32_t)dim[1],
        .seq = (int32_t)dim[2],
        .width = (int32_t)dim[3],
        .lengths = fattn__math_lengths(r),
    };
    enum { ROWS = FATTN__THREADS / 32 };
    return fattn__math_launch(r->plan->context, FATTN__KERNEL_gather, (call.rows + ROWS - 1) / ROWS,
                              FATTN__THREADS, (void *[]){ &call }, r->stream);
}

fattn_status fattn__math_lay_out(fattn__math_run *r)
{
    if (r->p->page_size_k != 0)
        TRY(lay_out(r, &r->k, false));
    return r->p->page_size_v != 0 ? lay_out(r, &r->v, true) : FATTN_OK;
}

/* ---- masks and dropout
 * -------------------------------------------------------------------------------------------------------------
 */

fattn__adjustments fattn__math_adjustments(const fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    const fattn_tensors *t = r->t;
    fattn__adjustments m = { .mask = r->mask, .factor = 1 };
    if (p->alibi)
        m.slopes = t->alibi_slopes;
    if (p->sink)
        m.sink = t->sink;
    if (p->block_mask) {
        m.tiles = t->block_mask;
        m.tile_rows = (int32_t)((p->seq_q + FATTN__TILE - 1) / FATTN__TILE);
        m.tile_bytes = (int32_t)(((p->seq_kv + FATTN__TILE - 1) / FATTN__TILE + 7) / 8);
    }
    if (p->dropout_mask) {
        m.kept = t->dropout_mask;
        m.kept_factor = t->dropout_scale;
        m.kept_dtype = fattn__dropout_mask_dtype(p);
    } else if (p->dropout != 0.0) {
        m.seed = t->seed;
        m.offset = t->offset;
        m.rng_bits = p->rng_bits;
        m.threshold = fattn__dropout_threshold(p->dropout);
        m.factor = (float)(1.0 / (1.0 - p->dropout));
    }
    return m;
}

fattn_status fattn__math_dump(const fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    if ((p->outputs & FATTN_WANT_RNG_DUMP) == 0)
        return FATTN_OK;
    fattn__dump_call call = { .to = r->t->rng_dump,
                              .adjustments = r->chunk.adjustments,
                              .rows = p->batch * p->heads_q * p->seq_q,
                              .heads_q = (int32_t)p->heads_q,
                              .seq_q = (int32_t)p->seq_q,
                              .seq_kv = (int32_t)p->seq_kv };
    const int64_t threads = call.rows * ((p->seq_kv + 3) / 4);
    return fattn__math_launch(r->plan->context, FATTN__KERNEL_dump,
                              (threads + FATTN__THREADS - 1) / FATTN__THREADS, FATTN__THREADS,
                              (void *[]){ &call }, r->stream);
}
