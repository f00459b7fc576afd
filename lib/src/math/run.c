#include "run.h"

#include <string.h>

#include "../layout.h"
#include "../problem.h"

/* No bound on this side; far beyond every row and key, and sums with them stay in 32 bits. */
enum { FAR = 1 << 30, NARROW = 64, WIDE = 128 };

_Static_assert((int)FATTN__BF16 == (int)FATTN_BF16 && (int)FATTN__F16 == (int)FATTN_F16 && (int)FATTN__F32 == (int)FATTN_F32,
               "the kernels' numbers of types");
_Static_assert(sizeof(fattn__call) + sizeof(fattn__program) + sizeof(fattn__program_tensors) <= 4096, "what a launch may carry");

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void *fattn__math_part_at(const fattn__math_run *r, fattn__math_part part)
{
    const size_t offset = r->state->chunks.offset[part];
    return offset == SIZE_MAX ? NULL : r->workspace + offset;
}

/* ---- tensors ---------------------------------------------------------------------------------------------------------------------- */

static int32_t grain_of(const void *at, const int64_t dim[4], const int64_t strides[4], int64_t bytes)
{
    uint64_t bits = (uint64_t)(uintptr_t)at | 16;
    for (int axis = 0; axis < 3; axis++)
        bits |= dim[axis] > 1 ? (uint64_t)(strides[axis] * bytes) : 0;
    return (int32_t)(bits & (~bits + 1));
}

/* `dim` 1 is a broadcast: nothing is stepped over. */
static fattn__matrix matrix_of(const void *at, const int64_t dim[4], const int64_t strides[4], int32_t dtype)
{
    fattn__matrix m = { .at = (char *)(uintptr_t)at, .dtype = dtype, .grain = grain_of(at, dim, strides, fattn__dtype_bytes(dtype)) };
    for (int axis = 0; axis < 4; axis++)
        m.stride[axis] = dim[axis] == 1 ? 0 : strides[axis];
    return m;
}

static fattn_status role_matrix(fattn__matrix *out, const fattn_problem *p, fattn__role role, const void *at)
{
    const fattn__shape shape = fattn__problem_shape(p, role);
    if (!shape.used)
        return FATTN_OK;
    *out = matrix_of(at, shape.dim, shape.strides, shape.dtype);
    if ((uintptr_t)at % (uintptr_t)fattn__dtype_bytes(shape.dtype) != 0) /* guards_off: nobody else has looked */
        return fattn__fail(FATTN_BAD_PROBLEM, "%s is not aligned to its elements", fattn__role_name(role));
    return FATTN_OK;
}

/* Where a gradient goes at first: the caller's tensor or, when it will be summed, the whole of it in workspace. */
static fattn_status gradient_matrix(fattn__matrix *out, const fattn__math_run *r, fattn__role role, fattn__role input, const void *at,
                                    fattn__math_part whole)
{
    int64_t strides[4];
    const fattn__shape shape = fattn__problem_shape(r->p, input);
    void *workspace = fattn__math_part_at(r, whole);
    if (workspace == NULL)
        return role_matrix(out, r->p, role, at);
    fattn__dense_strides(shape.dim, "bhsd", strides);
    *out = matrix_of(workspace, shape.dim, strides, FATTN_F32);
    return FATTN_OK;
}

static void set_tensors(fattn__math_run *r)
{
    for (int32_t i = 0; i < r->state->tensor_count; i++) {
        const fattn_mod_tensor *tensor = fattn_score_mod_tensor(r->p->score_mod, (size_t)i);
        r->tensors.at[i] = matrix_of(r->t->mod_tensors[i], tensor->dim, tensor->strides, tensor->dtype);
    }
}

static fattn_status set_matrices(fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    const fattn_tensors *t = r->t;
    TRY(role_matrix(&r->q, p, FATTN__ROLE_Q, t->q));
    TRY(role_matrix(&r->k, p, FATTN__ROLE_K, t->k));
    TRY(role_matrix(&r->v, p, FATTN__ROLE_V, t->v));
    TRY(role_matrix(&r->o, p, FATTN__ROLE_O, t->o));
    TRY(role_matrix(&r->bias, p, FATTN__ROLE_BIAS, t->bias));
    set_tensors(r);
    if (p->pass == FATTN_FORWARD)
        return FATTN_OK;
    TRY(role_matrix(&r->d_o, p, FATTN__ROLE_DO, t->d_o));
    TRY(gradient_matrix(&r->dq, r, FATTN__ROLE_DQ, FATTN__ROLE_Q, t->dq, FATTN__MATH_WHOLE_DQ));
    TRY(gradient_matrix(&r->dk, r, FATTN__ROLE_DK, FATTN__ROLE_K, t->dk, FATTN__MATH_WHOLE_DK));
    return gradient_matrix(&r->dv, r, FATTN__ROLE_DV, FATTN__ROLE_V, t->dv, FATTN__MATH_WHOLE_DV);
}

/* ---- launches --------------------------------------------------------------------------------------------------------------------- */

/* The family's member: the tensor cores' where both operands have the same 16-bit type. */
static int type_of(int32_t a, int32_t b)
{
    return a == b && a != FATTN_F32 ? a - FATTN_BF16 : 2;
}

static int threads_of(int type)
{
    return type == 2 ? FATTN__THREADS_F32 : FATTN__THREADS;
}

static int64_t tiles_of(const fattn__call *call)
{
    return (int64_t)call->heads * call->row_tiles * call->key_tiles;
}

fattn_status fattn__math_product(const fattn__math_run *r, fattn__kernel family, int32_t a, int32_t b, fattn__call *call)
{
    const int type = type_of(a, b);
    return fattn__math_launch(r->plan->context, (fattn__kernel)((int)family + type), tiles_of(call), threads_of(type), (void *[]){ call },
                              r->stream);
}

/* Blocks of `count` tiles of `columns` each. */
typedef struct grid {
    int64_t wide, narrow, columns;
} grid;

static void add_tiles(grid *g, int64_t count, int64_t columns)
{
    g->wide += count * ((columns + WIDE - 1) / WIDE);
    g->narrow += count * ((columns + NARROW - 1) / NARROW);
    g->columns = columns > g->columns ? columns : g->columns;
}

static fattn_status launch_grid(const fattn__math_run *r, fattn__kernel family, int type, const grid *g, fattn__call *call)
{
    /* Narrow tiles also where wide ones would be fewer than the two that a multiprocessor takes. A result's sum has the same order in both. */
    const bool is_wide = g->columns > NARROW && 2 * g->wide >= 3 * (int64_t)r->plan->context->info.multiprocessors;
    return fattn__math_launch(r->plan->context, (fattn__kernel)((int)family + 2 * type + is_wide), is_wide ? g->wide : g->narrow, threads_of(type),
                              (void *[]){ call }, r->stream);
}

fattn_status fattn__math_product_keys(const fattn__math_run *r, fattn__kernel family, int32_t a, int32_t b, fattn__call *call)
{
    grid g = { 0 };
    add_tiles(&g, (int64_t)call->heads * call->row_tiles, call->width);
    return launch_grid(r, family, type_of(a, b), &g, call);
}

fattn_status fattn__math_product_rows(const fattn__math_run *r, fattn__kernel family, int32_t a, int32_t b, fattn__call *call)
{
    grid g = { 0 };
    for (int i = 0; i < 2; i++)
        add_tiles(&g, call->row_sums[i].blocks, call->row_sums[i].width);
    return launch_grid(r, family, type_of(a, b), &g, call);
}

fattn_status fattn__math_rows(const fattn__math_run *r, fattn__kernel which, int threads_a_row, fattn__call *call)
{
    const int64_t threads = (int64_t)call->heads * call->row_tiles * FATTN__TILE * threads_a_row;
    return fattn__math_launch(r->plan->context, which, (threads + FATTN__THREADS - 1) / FATTN__THREADS, FATTN__THREADS, (void *[]){ call }, r->stream);
}

fattn_status fattn__math_modify(const fattn__math_run *r, fattn__kernel which, const fattn__program *program, fattn__call *call)
{
    return fattn__math_launch(r->plan->context, which, tiles_of(call), FATTN__PROGRAM_THREADS,
                              (void *[]){ call, (void *)(uintptr_t)program, (void *)(uintptr_t)&r->tensors }, r->stream);
}

/* ---- the walk --------------------------------------------------------------------------------------------------------------------- */

static int32_t tiles(int64_t extent)
{
    return (int32_t)((extent + FATTN__TILE - 1) / FATTN__TILE);
}

static void set_common(fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    r->chunk = (fattn__call){
        .heads_q = (int32_t)p->heads_q,
        .seq_q = (int32_t)p->seq_q,
        .seq_kv = (int32_t)p->seq_kv,
        .low = p->has_left ? (int32_t)(1 - p->window_left) : -FAR,
        .high = p->has_right ? (int32_t)(1 + p->window_right) : FAR,
        .bottom_right = p->align == FATTN_BOTTOM_RIGHT && (p->has_left || p->has_right),
        .len_step = !p->len_broadcast,
        .len_q = p->padding ? r->t->seq_len_q : NULL,
        .len_kv = p->padding ? r->t->seq_len_kv : NULL,
        .s = fattn__math_part_at(r, FATTN__MATH_S),
        .dp = fattn__math_part_at(r, FATTN__MATH_DP),
        .p = fattn__math_part_at(r, FATTN__MATH_P),
        .ds = fattn__math_part_at(r, FATTN__MATH_DS),
        .weight_dtype = p->dtype,
        .bias = r->bias,
        .row_max = fattn__math_part_at(r, FATTN__MATH_ROW_MAX),
        .row_sum = fattn__math_part_at(r, FATTN__MATH_ROW_SUM),
        .row_rescale = fattn__math_part_at(r, FATTN__MATH_ROW_RESCALE),
        .row_dot = fattn__math_part_at(r, FATTN__MATH_ROW_DOT),
    };
    const fattn__shape stats = fattn__problem_shape(p, FATTN__ROLE_STATS);
    r->chunk.stats = matrix_of(r->t->stats, stats.dim, stats.strides, FATTN_F32);
}

static fattn_status walk_keys(fattn__math_run *r)
{
    const int64_t step = r->state->chunks.keys;
    for (r->key = 0; r->key < r->p->seq_kv; r->key += step) {
        r->keys = least(step, r->p->seq_kv - r->key);
        r->chunk.key0 = (int32_t)r->key;
        r->chunk.key_tiles = tiles(r->keys);
        TRY(r->p->pass == FATTN_FORWARD ? fattn__math_forward_keys(r) : fattn__math_backward_keys(r));
    }
    return FATTN_OK;
}

static fattn_status walk_rows(fattn__math_run *r)
{
    const int64_t step = r->state->chunks.rows;
    r->chunk.head0 = r->batch * r->p->heads_q + r->head;
    r->chunk.heads = (int32_t)(r->batches * r->heads);
    for (r->row = 0; r->row < r->p->seq_q; r->row += step) {
        r->rows = least(step, r->p->seq_q - r->row);
        r->chunk.row0 = (int32_t)r->row;
        r->chunk.row_tiles = tiles(r->rows);
        if (r->p->pass == FATTN_BACKWARD)
            TRY(fattn__math_backward_rows(r));
        TRY(walk_keys(r));
    }
    return FATTN_OK;
}

static fattn_status walk(fattn__math_run *r)
{
    const fattn__chunks *c = &r->state->chunks;
    for (r->batch = 0; r->batch < r->p->batch; r->batch += c->batches) {
        r->batches = least(c->batches, r->p->batch - r->batch);
        for (r->head = 0; r->head < r->p->heads_q; r->head += c->heads) {
            r->heads = least(c->heads, r->p->heads_q - r->head);
            TRY(walk_rows(r));
        }
    }
    return r->p->pass == FATTN_BACKWARD ? fattn__math_backward_end(r) : FATTN_OK;
}

fattn_status fattn__math_run_plan(const fattn_plan *plan, const fattn_tensors *tensors, struct CUstream_st *stream)
{
    enum { ALIGNMENT = 256 };
    fattn__math_run r = { .plan = plan, .p = &plan->problem, .t = tensors, .state = plan->state, .stream = stream };
    r.workspace = (char *)(((uintptr_t)tensors->workspace + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    TRY(set_matrices(&r));
    set_common(&r);
    fattn__cuda_context previous;
    TRY(fattn__enter(plan->context, &previous));
    const fattn_status st = walk(&r);
    fattn__leave(plan->context, previous);
    return st;
}
