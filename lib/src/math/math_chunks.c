#include "math_chunks.h"

#include <string.h>

#include "math_params.h"
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
