#include "math_run.h"
#include "problem/layout.h"

/* No bound on this side; far beyond every row and key, and sums with them stay in 32 bits. */
enum { FAR = 1 << 30, NARROW = 64, WIDE = 128 };

_Static_assert((int)FATTN__BF16 == (int)FATTN_BF16 && (int)FATTN__F16 == (int)FATTN_F16 &&
                   (int)FATTN__F32 == (int)FATTN_F32,
               "the kernels' numbers of types");
_Static_assert(sizeof(fattn__call) + sizeof(fattn__program) + sizeof(fattn__program_tensors) <=
                   4096,
               "what a launch may carry");

float fattn__math_factor(const fattn_problem *p)
{
    return p->scale_in_memory ? 1.0f : (float)p->attn_scale;
}

void *fattn__math_part_at(const fattn__math_run *r, fattn__math_part part)
{
    const size_t offset = r->state->chunks.offset[part];
    return offset == SIZE_MAX ? NULL : r->workspace + offset;
}

/* ---- launches
 * ---------------------------------------------------------------------------------------------------------------------
 */

/* Chooses the kernel of a family: the tensor cores' if both operands have the same 16-bit type. */
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

fattn_status fattn__math_product(const fattn__math_run *r, fattn__kernel family, int32_t a,
                                 int32_t b, fattn__call *call)
{
    const int type = type_of(a, b);
    return fattn__math_launch(r->plan->context, (fattn__kernel)((int)family + type), tiles_of(call),
                              threads_of(type), (void *[]){ call }, r->stream);
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

static fattn_status launch_grid(const fattn__math_run *r, fattn__kernel family, int type,
                                const grid *g, fattn__call *call)
{
    /* Narrow tiles also if there would be fewer wide tiles than the two that a multiprocessor can hold. The sum of a result has
     * the same order in both. */
    const bool is_wide =
        g->columns > NARROW && 2 * g->wide >= 3 * (int64_t)r->plan->context->info.multiprocessors;
    return fattn__math_launch(r->plan->context, (fattn__kernel)((int)family + 2 * type + is_wide),
                              is_wide ? g->wide : g->narrow, threads_of(type), (void *[]){ call },
                              r->stream);
}

fattn_status fattn__math_product_keys(const fattn__math_run *r, fattn__kernel family, int32_t a,
                                      int32_t b, fattn__call *call)
{
    grid g = { 0 };
    add_tiles(&g, (int64_t)call->heads * call->row_tiles, call->width);
    return launch_grid(r, family, type_of(a, b), &g, call);
}

fattn_status fattn__math_product_rows(const fattn__math_run *r, fattn__kernel family, int32_t a,
                                      int32_t b, fattn__call *call)
{
    grid g = { 0 };
    for (int i = 0; i < 2; i++)
        add_tiles(&g, call->row_sums[i].blocks, call->row_sums[i].width);
    return launch_grid(r, family, type_of(a, b), &g, call);
}

fattn_status fattn__math_rows(const fattn__math_run *r, fattn__kernel which, int threads_a_row,
                              fattn__call *call)
{
    const int64_t threads = (int64_t)call->heads * call->row_tiles * FATTN__TILE * threads_a_row;
    return fattn__math_launch(r->plan->context, which,
                              (threads + FATTN__THREADS - 1) / FATTN__THREADS, FATTN__THREADS,
                              (void *[]){ call }, r->stream);
}

fattn_status fattn__math_modify(const fattn__math_run *r, fattn__kernel which,
                                const fattn__program *program, fattn__call *call)
{
    return fattn__math_launch(
        r->plan->context, which, tiles_of(call), FATTN__PROGRAM_THREADS,
        (void *[]){ call, (void *)(uintptr_t)program, (void *)(uintptr_t)&r->tensors }, r->stream);
}

/* ---- the walk
 * ---------------------------------------------------------------------------------------------------------------------
 */

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
        .lengths = fattn__math_lengths(r),
        .scale = p->scale_in_memory ? r->t->attn_scale : NULL,
        .s = fattn__math_part_at(r, FATTN__MATH_S),
        .dp = fattn__math_part_at(r, FATTN__MATH_DP),
        .p = fattn__math_part_at(r, FATTN__MATH_P),
        .ds = fattn__math_part_at(r, FATTN__MATH_DS),
        .weight_dtype = p->dtype,
        .bias = r->bias,
        .adjustments = fattn__math_adjustments(r),
        .stats = fattn__math_stats(r),
        .row_max = fattn__math_part_at(r, FATTN__MATH_ROW_MAX),
        .row_sum = fattn__math_part_at(r, FATTN__MATH_ROW_SUM),
        .row_rescale = fattn__math_part_at(r, FATTN__MATH_ROW_RESCALE),
        .row_dot = fattn__math_part_at(r, FATTN__MATH_ROW_DOT),
    };
}

static fattn_status walk_keys(fattn__math_run *r)
{
    const int64_t step = r->state->chunks.keys;
    for (r->key = 0; r->key < r->p->seq_kv; r->key += step) {
        r->keys = fattn__least(step, r->p->seq_kv - r->key);
        r->chunk.key0 = (int32_t)r->key;
        r->chunk.key_tiles = tiles(r->keys);
        TRY(r->p->pass == FATTN_FORWARD ? fattn__math_forward_keys(r)
                                        : fattn__math_backward_keys(r));
    }
    return FATTN_OK;
}

static fattn_status walk_rows(fattn__math_run *r)
{
    const int64_t step = r->state->chunks.rows;
    r->chunk.head0 = r->batch * r->p->heads_q + r->head;
    r->chunk.heads = (int32_t)(r->batches * r->heads);
    for (r->row = 0; r->row < r->p->seq_q; r->row += step) {
        r->rows = fattn__least(step, r->p->seq_q - r->row);
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
        r->batches = fattn__least(c->batches, r->p->batch - r->batch);
        TRY(fattn__math_lay_out(r));
        for (r->head = 0; r->head < r->p->heads_q; r->head += c->heads) {
            r->heads = fattn__least(c->heads, r->p->heads_q - r->head);
            TRY(walk_rows(r));
        }
    }
    return r->p->pass == FATTN_BACKWARD ? fattn__math_backward_end(r) : FATTN_OK;
}

fattn_status fattn__math_run_plan(const fattn_plan *plan, const fattn_tensors *tensors,
                                  struct CUstream_st *stream)
{
    enum { ALIGNMENT = 256 };
    fattn__math_run r = {
        .plan = plan, .p = &plan->problem, .t = tensors, .state = plan->state, .stream = stream
    };
    r.workspace = (char *)(((uintptr_t)tensors->workspace + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    TRY(fattn__math_matrices(&r));
    set_common(&r);
    struct CUctx_st *previous;
    TRY(fattn__enter(plan->context, &previous));
    fattn_status st = fattn__math_dump(&r);
    if (st == FATTN_OK)
        st = walk(&r);
    fattn__leave(plan->context, previous);
    return st;
}
