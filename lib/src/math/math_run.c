#include "math_run.h"

#include <string.h>

#include "fattn/score_mod.h"
#include "math_params.h"
#include "problem/auxiliary.h"
#include "problem/dropout.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

/* Longer rows of scores than this are cut: enough to keep a chunk square where heads are few. */
enum { MOST_KEYS = 4096, ALIGNMENT = 256 };

static int64_t tiles(int64_t extent)
{
    return (extent + FATTN__TILE - 1) / FATTN__TILE;
}

/* The extent of each chunk, in whole tiles, when `extent` is cut into the fewest even parts of at
 * most `most`. */
static int64_t even(int64_t extent, int64_t most)
{
    const int64_t parts = (tiles(extent) * FATTN__TILE + most - 1) / most;
    return (tiles(extent) + parts - 1) / parts * FATTN__TILE;
}

bool fattn__math_modified(const fattn_problem *p)
{
    return p->score_mod != NULL || p->alibi || p->bias_dtype == FATTN_BOOL || p->block_mask ||
           p->dropout != 0.0 || p->dropout_mask || p->scale_in_memory;
}

static bool uses_dp(const fattn_problem *p)
{
    return p->pass == FATTN_BACKWARD && (fattn__math_modified(p) || p->dbias);
}

/* Probabilities replace their scores: they have the same size, and the scores are not needed again.
 */
static bool in_place(const fattn_problem *p)
{
    return p->dtype == FATTN_F32 && p->score_mod == NULL;
}

static int64_t bytes_of_score(const fattn_problem *p)
{
    const int64_t weight = fattn__dtype_bytes(p->dtype);
    if (p->pass == FATTN_FORWARD)
        return 4;
    return 4 + (in_place(p) ? 0 : weight) + weight + (uses_dp(p) ? 4 : 0) +
           (p->mod_gradients != 0 ? 4 : 0);
}

int64_t fattn__math_pages_pitch(const fattn_problem *p, int64_t dim)
{
    const int64_t bytes = fattn__dtype_bytes(p->dtype);
    return (dim * bytes + 15) / 16 * 16 / bytes;
}

/* Bytes of a batch entry's pages, laid out. */
static int64_t bytes_of_pages(const fattn_problem *p)
{
    const int64_t k = p->page_size_k != 0 ? p->heads_k * fattn__math_pages_pitch(p, p->dim_qk) : 0;
    const int64_t v = p->page_size_v != 0 ? p->heads_v * fattn__math_pages_pitch(p, p->dim_v) : 0;
    return (k + v) * p->seq_kv * fattn__dtype_bytes(p->dtype);
}

static void cut(fattn__chunks *c, const fattn_problem *p, int64_t score_bytes, int64_t most_keys)
{
    const int64_t scores = score_bytes / bytes_of_score(p);
    c->keys = even(p->seq_kv, most_keys);
    const int64_t most_rows = scores / c->keys / FATTN__TILE * FATTN__TILE;
    c->rows = even(p->seq_q, most_rows > 0 ? most_rows : FATTN__TILE);
    c->heads = fattn__least(scores / (c->keys * c->rows), p->batch * p->heads_q);
    c->heads = c->heads > 0 ? c->heads : 1;
    c->batches = 1;
    if (c->heads >= p->heads_q) {
        c->batches = c->heads / p->heads_q;
        c->heads = p->heads_q;
    }
    const int64_t pages = bytes_of_pages(p);
    if (pages > 0 &&
        c->batches > 1) /* pages take no more memory than scores, or are those of one entry */
        c->batches = fattn__least(c->batches, pages < score_bytes ? score_bytes / pages : 1);
}

static int64_t slots(const fattn__chunks *c, const fattn_problem *p, int64_t heads)
{
    const int64_t group = p->heads_q / heads;
    if (c->rows >= p->seq_q && c->heads % group == 0)
        return 0;
    return c->batches * c->heads % group == 0 ? c->batches * c->heads / group
                                              : c->heads / group + 2;
}

void fattn__dbias_strides(const fattn_problem *p, int64_t out[4])
{
    bool summed[4];
    fattn__problem_sums(p, FATTN__ROLE_DBIAS, summed);
    for (int axis = 0; axis < 4; axis++)
        out[axis] = summed[axis] || p->bias_dim[axis] == 1 ? 0 : p->dbias_strides[axis];
}

/* Do several chunks add to one element of dbias, whose type has too few bits for that? */
static bool sums_dbias(const fattn__chunks *c, const fattn_problem *p)
{
    int64_t strides[4];
    if (!p->dbias || p->bias_dtype == FATTN_F32)
        return false;
    fattn__dbias_strides(p, strides);
    return (strides[0] == 0 && c->batches < p->batch) ||
           (strides[1] == 0 && c->heads < p->heads_q) || (strides[2] == 0 && c->rows < p->seq_q) ||
           (strides[3] == 0 && c->keys < p->seq_kv);
}

static void place(fattn__chunks *c, fattn__math_part part, int64_t elements, int64_t bytes)
{
    c->offset[part] = SIZE_MAX;
    if (elements == 0)
        return;
    c->offset[part] = c->bytes;
    c->bytes += ((size_t)elements * (size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void place_forward(fattn__chunks *c, const fattn_problem *p)
{
    const int64_t rows = c->batches * c->heads * c->rows;
    place(c, FATTN__MATH_PARTIAL_MAX, rows * (c->keys / FATTN__TILE), 4);
    place(c, FATTN__MATH_PARTIAL_SUM, rows * (c->keys / FATTN__TILE), 4);
    place(c, FATTN__MATH_ROW_MAX, rows, 4);
    place(c, FATTN__MATH_ROW_SUM, rows, 4);
    place(c, FATTN__MATH_ROW_RESCALE, rows, 4);
    const int64_t keys = c->batches * p->seq_kv, bytes = fattn__dtype_bytes(p->dtype);
    place(c, FATTN__MATH_PAGES_K,
          p->page_size_k != 0 ? keys * p->heads_k * fattn__math_pages_pitch(p, p->dim_qk) : 0,
          bytes);
    place(c, FATTN__MATH_PAGES_V,
          p->page_size_v != 0 ? keys * p->heads_v * fattn__math_pages_pitch(p, p->dim_v) : 0,
          bytes);
    place(c, FATTN__MATH_SUM_O, c->keys < p->seq_kv ? rows * p->dim_v : 0, 4);
}

static int64_t whole(const fattn_problem *p, fattn__role gradient, int64_t heads, int64_t seq,
                     int64_t dim)
{
    return fattn__problem_sums(p, gradient, NULL) ? p->batch * heads * seq * dim : 0;
}

static void place_backward(fattn__chunks *c, const fattn_problem *p)
{
    const int64_t rows = c->batches * c->heads * c->rows, scores = rows * c->keys,
                  weight = fattn__dtype_bytes(p->dtype);
    place(c, FATTN__MATH_P, in_place(p) ? 0 : scores, weight);
    if (in_place(p))
        c->offset[FATTN__MATH_P] = c->offset[FATTN__MATH_S];
    place(c, FATTN__MATH_DS, scores, weight);
    place(c, FATTN__MATH_DP, uses_dp(p) ? scores : 0, 4);
    place(c, FATTN__MATH_EXTRA, p->mod_gradients != 0 ? scores : 0, 4);
    place(c, FATTN__MATH_ROW_DOT, rows, 4);
    place(c, FATTN__MATH_ROW_SINK, p->dsink ? rows : 0, 4);
    place(c, FATTN__MATH_OVER_KEY_AXIS, p->dbias || p->mod_gradients != 0 ? rows : 0, 4);
    place(c, FATTN__MATH_SUM_DQ, c->keys < p->seq_kv ? rows * p->dim_qk : 0, 4);
    c->slots_k = slots(c, p, p->heads_k);
    c->slots_v = slots(c, p, p->heads_v);
    place(c, FATTN__MATH_SUM_DK, c->slots_k * p->seq_kv * p->dim_qk, 4);
    place(c, FATTN__MATH_SUM_DV, c->slots_v * p->seq_kv * p->dim_v, 4);
    place(c, FATTN__MATH_WHOLE_DQ, whole(p, FATTN__ROLE_DQ, p->heads_q, p->seq_q, p->dim_qk), 4);
    place(c, FATTN__MATH_WHOLE_DK, whole(p, FATTN__ROLE_DK, p->heads_k, p->seq_kv, p->dim_qk), 4);
    place(c, FATTN__MATH_WHOLE_DV, whole(p, FATTN__ROLE_DV, p->heads_v, p->seq_kv, p->dim_v), 4);
    place(c, FATTN__MATH_SUM_DBIAS,
          sums_dbias(c, p) ? p->bias_dim[0] * p->bias_dim[1] * p->bias_dim[2] * p->bias_dim[3] : 0,
          4);
}

void fattn__chunks_of(fattn__chunks *out, const fattn_problem *p)
{
    fattn__chunks_within(out, p, FATTN__MATH_SCORE_BYTES, MOST_KEYS);
}

void fattn__chunks_within(fattn__chunks *out, const fattn_problem *p, int64_t score_bytes,
                          int64_t most_keys)
{
    memset(out, 0, sizeof *out);
    for (int part = 0; part < FATTN__MATH_PARTS; part++)
        out->offset[part] = SIZE_MAX;
    cut(out, p, score_bytes, most_keys);
    place(out, FATTN__MATH_S, out->batches * out->heads * out->rows * out->keys, 4);
    if (p->pass == FATTN_FORWARD)
        place_forward(out, p);
    else
        place_backward(out, p);
    out->bytes += ALIGNMENT; /* the caller's is aligned to 16 */
}

/* No bound on this side; far beyond every row and key, and sums with them stay in 32 bits. */
enum { FAR = 1 << 30, NARROW = 64, WIDE = 128 };

_Static_assert((int)FATTN__BF16 == (int)FATTN_BF16 && (int)FATTN__F16 == (int)FATTN_F16 &&
                   (int)FATTN__F32 == (int)FATTN_F32,
               "the kernels' numbers of types");
_Static_assert(sizeof(fattn__call) + sizeof(fattn__program) + sizeof(fattn__program_tensors) <=
                   4096,
               "what a launch may carry");

/* The factor of the product q k, without a scale in memory. */
static float fattn__math_factor(const fattn_problem *p)
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

/* Launches one kernel of a family, whose first member is `family`. `a` and `b` are the types of the
 * two operands. */
static fattn_status fattn__math_product(const fattn__math_run *r, fattn__kernel family, int32_t a,
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

static fattn_status fattn__math_product_keys(const fattn__math_run *r, fattn__kernel family,
                                             int32_t a, int32_t b, fattn__call *call)
{
    grid g = { 0 };
    add_tiles(&g, (int64_t)call->heads * call->row_tiles, call->width);
    return launch_grid(r, family, type_of(a, b), &g, call);
}

static fattn_status fattn__math_product_rows(const fattn__math_run *r, fattn__kernel family,
                                             int32_t a, int32_t b, fattn__call *call)
{
    grid g = { 0 };
    for (int i = 0; i < 2; i++)
        add_tiles(&g, call->row_sums[i].blocks, call->row_sums[i].width);
    return launch_grid(r, family, type_of(a, b), &g, call);
}

/* The same for the products over keys and over rows, whose families have two widths. */
static fattn_status fattn__math_rows(const fattn__math_run *r, fattn__kernel which,
                                     int threads_a_row, fattn__call *call)
{
    const int64_t threads = (int64_t)call->heads * call->row_tiles * FATTN__TILE * threads_a_row;
    return fattn__math_launch(r->plan->context, which,
                              (threads + FATTN__THREADS - 1) / FATTN__THREADS, FATTN__THREADS,
                              (void *[]){ call }, r->stream);
}

static fattn_status fattn__math_modify(const fattn__math_run *r, fattn__kernel which,
                                       const fattn__program *program, fattn__call *call)
{
    return fattn__math_launch(
        r->plan->context, which, tiles_of(call), FATTN__PROGRAM_THREADS,
        (void *[]){ call, (void *)(uintptr_t)program, (void *)(uintptr_t)&r->tensors }, r->stream);
}

/* ---- the walk
 * ---------------------------------------------------------------------------------------------------------------------
 */

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
        r->chunk.key_tiles = (int32_t)tiles(r->keys);
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
        r->chunk.row_tiles = (int32_t)tiles(r->rows);
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

/* From a call's addresses to what the kernels read: tensors with their strides or starts, lengths,
 * masks, dropout. */

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

fattn_status fattn__math_forward_keys(fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    const bool modified = fattn__math_modified(p);
    fattn__call call = r->chunk;
    call.partial_max = fattn__math_part_at(r, FATTN__MATH_PARTIAL_MAX);
    call.partial_sum = fattn__math_part_at(r, FATTN__MATH_PARTIAL_SUM);
    call.left = r->q;
    call.right = r->k;
    call.group = (int32_t)(p->heads_q / p->heads_k);
    call.depth = (int32_t)p->dim_qk;
    call.factor = fattn__math_factor(p);
    call.raw = modified;
    TRY(fattn__math_product(r, FATTN__KERNEL_scores_bf16, p->dtype, p->dtype, &call));
    if (modified)
        TRY(fattn__math_modify(r, FATTN__KERNEL_modify, &r->state->score, &call));

    call.first = r->key == 0;
    call.last = r->key + r->keys >= p->seq_kv;
    call.base_2 = (p->outputs & FATTN_WANT_STATS_LOG2) != 0;
    call.stats_out =
        (p->outputs & (FATTN_WANT_STATS | FATTN_WANT_STATS_LOG2)) != 0 ? r->t->stats : NULL;
    call.max_out = (p->outputs & FATTN_WANT_MAX) != 0 ? r->t->max : NULL;
    call.sum_exp_out = (p->outputs & FATTN_WANT_SUM_EXP) != 0 ? r->t->sum_exp : NULL;
    TRY(fattn__math_rows(r, FATTN__KERNEL_statistics, 1, &call));

    call.right = r->v;
    call.out = r->o;
    call.group = (int32_t)(p->heads_q / p->heads_v);
    call.width = (int32_t)p->dim_v;
    call.accumulator = fattn__math_part_at(r, FATTN__MATH_SUM_O);
    return fattn__math_product_keys(r, FATTN__KERNEL_output_bf16_64, p->dtype, p->dtype, &call);
}

/* A sink's gradient is summed over batch and rows. */
static fattn_status sink(const fattn__math_run *r)
{
    fattn__call call = r->chunk;
    const int64_t rows = (int64_t)call.row_tiles * FATTN__TILE;
    call.row_sink = fattn__math_part_at(r, FATTN__MATH_ROW_SINK);
    TRY(fattn__math_rows(r, FATTN__KERNEL_sink, 1, &call));
    const fattn__sum sum = { .from = call.row_sink,
                             .to = r->t->dsink + r->head,
                             .dim = { r->batches, r->heads, r->rows, 1 },
                             .strides = { r->heads * rows, rows, 1, 1 },
                             .to_strides = { 0, 1, 0, 1 },
                             .dtype = FATTN_F32,
                             .to_dtype = FATTN_F32 };
    return fattn__math_reduce(r->plan->context, &sum, r->batch == 0 && r->row == 0, r->stream);
}

fattn_status fattn__math_backward_rows(fattn__math_run *r)
{
    fattn__call call = r->chunk;
    call.left = r->d_o;
    call.right = r->o;
    call.depth = (int32_t)r->p->dim_v;
    TRY(fattn__math_rows(r, FATTN__KERNEL_dot, 32, &call));
    return r->p->dsink ? sink(r) : FATTN_OK;
}

/* Scores, then probabilities and the gradient of the scaled scores. */
static fattn_status weights(const fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    const bool modified = fattn__math_modified(p);
    fattn__call call = r->chunk;
    call.left = call.queries = r->q;
    call.right = call.keys = r->k;
    call.group = call.key_group = (int32_t)(p->heads_q / p->heads_k);
    call.depth = call.key_depth = (int32_t)p->dim_qk;
    call.factor = fattn__math_factor(p);
    call.raw = 1;
    /* One kernel computes both products if one core fits both. */
    call.fused = !modified && p->o_dtype == p->dtype;
    if (!call.fused)
        TRY(fattn__math_product(r, FATTN__KERNEL_scores_bf16, p->dtype, p->dtype, &call));

    call.left = r->d_o;
    call.right = r->v;
    call.group = (int32_t)(p->heads_q / p->heads_v);
    call.depth = (int32_t)p->dim_v;
    call.raw = modified;
    call.extra = !modified && p->dbias ? call.dp : NULL;
    TRY(fattn__math_product(r, FATTN__KERNEL_gradients_bf16, p->o_dtype, p->dtype, &call));
    if (!modified)
        return FATTN_OK;
    TRY(fattn__math_modify(r, FATTN__KERNEL_modify_weights, &r->state->score, &call));
    if (p->score_mod == NULL)
        return FATTN_OK;
    return fattn__math_modify(r, FATTN__KERNEL_modify_gradients, &r->state->gradient, &call);
}

static fattn_status over_keys(const fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    fattn__call call = r->chunk;
    call.right = r->k;
    call.out = r->dq;
    call.group = (int32_t)(p->heads_q / p->heads_k);
    call.width = (int32_t)p->dim_qk;
    call.factor = fattn__math_factor(p);
    call.accumulator = fattn__math_part_at(r, FATTN__MATH_SUM_DQ);
    call.first = r->key == 0;
    call.last = r->key + r->keys >= p->seq_kv;
    return fattn__math_product_keys(r, FATTN__KERNEL_over_keys_bf16_64, p->dtype, p->dtype, &call);
}

/* dK or, with `values`, dV. */
static fattn__row_sum row_sum(const fattn__math_run *r, bool values)
{
    const fattn_problem *p = r->p;
    fattn__row_sum sum = {
        .weights = values ? r->chunk.p : r->chunk.ds,
        .right = values ? r->d_o : r->q,
        .out = values ? r->dv : r->dk,
        .accumulator = fattn__math_part_at(r, values ? FATTN__MATH_SUM_DV : FATTN__MATH_SUM_DK),
        .group = (int32_t)(p->heads_q / (values ? p->heads_v : p->heads_k)),
        .width = (int32_t)(values ? p->dim_v : p->dim_qk),
        .slots = (int32_t)(values ? r->state->chunks.slots_v : r->state->chunks.slots_k),
        .factor = values ? 1.0f : fattn__math_factor(p),
        .scale = values ? NULL : r->chunk.scale,
    };
    const int64_t heads =
        (r->chunk.head0 + r->chunk.heads - 1) / sum.group - r->chunk.head0 / sum.group + 1;
    sum.blocks = (int32_t)(heads * r->chunk.key_tiles);
    return sum;
}

/* One launch if one core fits both: more blocks run at a time. */
static fattn_status over_rows(const fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    fattn__call call = r->chunk;
    call.first = r->row == 0;
    call.last = r->row + r->rows >= p->seq_q;
    call.row_sums[0] = row_sum(r, true);
    if (p->o_dtype == p->dtype) {
        call.row_sums[1] = row_sum(r, false);
        return fattn__math_product_rows(r, FATTN__KERNEL_over_rows_bf16_64, p->dtype, p->dtype,
                                        &call);
    }
    TRY(fattn__math_product_rows(r, FATTN__KERNEL_over_rows_bf16_64, p->dtype, p->o_dtype, &call));
    call.row_sums[0] = row_sum(r, false);
    return fattn__math_product_rows(r, FATTN__KERNEL_over_rows_bf16_64, p->dtype, p->dtype, &call);
}

fattn_status fattn__math_backward_keys(fattn__math_run *r)
{
    TRY(weights(r));
    if (r->p->dbias || r->p->mod_gradients != 0)
        TRY(fattn__math_added(r));
    TRY(over_keys(r));
    return over_rows(r);
}

/* Sums a gradient of every element to the gradient that was asked for. */
static fattn_status sum_whole(const fattn__math_run *r, fattn__role gradient, fattn__role input,
                              fattn__math_part part, void *to)
{
    fattn__sum sum = { .from = fattn__math_part_at(r, part), .to = to, .dtype = FATTN_F32 };
    if (sum.from == NULL)
        return FATTN_OK;
    const fattn__shape whole = fattn__problem_shape(r->p, input),
                       wanted = fattn__problem_shape(r->p, gradient);
    sum.to_dtype = wanted.dtype;
    memcpy(sum.dim, whole.dim, sizeof sum.dim);
    memcpy(sum.to_strides, wanted.strides, sizeof sum.to_strides);
    fattn__dense_strides(whole.dim, "bhsd", sum.strides);
    fattn__math_pack_sum(&sum, r, gradient);
    return fattn__math_sum(r->plan->context, &sum, r->stream);
}

fattn_status fattn__math_backward_end(fattn__math_run *r)
{
    TRY(sum_whole(r, FATTN__ROLE_DQ, FATTN__ROLE_Q, FATTN__MATH_WHOLE_DQ, r->t->dq));
    TRY(sum_whole(r, FATTN__ROLE_DK, FATTN__ROLE_K, FATTN__MATH_WHOLE_DK, r->t->dk));
    TRY(sum_whole(r, FATTN__ROLE_DV, FATTN__ROLE_V, FATTN__MATH_WHOLE_DV, r->t->dv));
    return fattn__math_added_end(r);
}

/* Gradients of what is added to the scores or modifies them: the gradient of every score of a
 * chunk, summed over what the tensor broadcasts. */

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
