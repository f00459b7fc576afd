#include "expect_whole.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/dtype.h"
#include "numbers/fill/places.h"
#include "numbers/fill/recipe.h"
#include "numbers/fill/score_inputs.h"

/* The factor of a tensor before its cast. */
static double unit_of(const facts_problem *p, facts_tensor_id id)
{
    static const facts_array_id scales[FACTS_TENSOR_COUNT] = {
        [FACTS_TENSOR_O] = FACTS_ARRAY_SCALE_O,
        [FACTS_TENSOR_DQ] = FACTS_ARRAY_SCALE_DQ,
        [FACTS_TENSOR_DK] = FACTS_ARRAY_SCALE_DK,
        [FACTS_TENSOR_DV] = FACTS_ARRAY_SCALE_DV
    };
    const facts_array_id scale = scales[id];
    return scale != 0 && p->array[scale].count ? 1.0 / facts_array_scalar(p, scale) : 1.0;
}

bool facts_expect_arrays(facts_expectation *out, const facts_problem *p)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        out->unit[id] = unit_of(p, id);
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        if (!p->array[id].output || p->array[id].count == 0)
            continue;
        out->array[id] = calloc((size_t)p->array[id].count * 3, sizeof *out->array[id]);
        if (!out->array[id])
            return false;
    }
    return true;
}

void facts_expect_arrays_backward(const facts_expectation *e, const facts_problem *p,
                                  fref_backward_out *out)
{
    double *dsink = e->array[FACTS_ARRAY_DSINK];
    out->amax_dp = e->array[FACTS_ARRAY_AMAX_DP];
    out->dq.amax = e->array[FACTS_ARRAY_AMAX_DQ];
    out->dk.amax = e->array[FACTS_ARRAY_AMAX_DK];
    out->dv.amax = e->array[FACTS_ARRAY_AMAX_DV];
    out->dsink = dsink;
    out->dsink_bound = dsink ? dsink + p->ask.heads_q : NULL;
}

void facts_expect_arrays_destroy(facts_expectation *e)
{
    for (int id = 0; id < FACTS_ARRAY_COUNT; id++) {
        free(e->array[id]);
        e->array[id] = NULL;
    }
}

facts_tensor_id facts_amax_of(facts_array_id id)
{
    return id == FACTS_ARRAY_AMAX_O    ? FACTS_TENSOR_O
           : id == FACTS_ARRAY_AMAX_DQ ? FACTS_TENSOR_DQ
           : id == FACTS_ARRAY_AMAX_DK ? FACTS_TENSOR_DK
           : id == FACTS_ARRAY_AMAX_DV ? FACTS_TENSOR_DV
                                       : FACTS_TENSOR_COUNT;
}

#define MOST_SCORES (INT64_C(1) << 31) /* of a mask that is written out */

/* Memory that lives as long as the whole; NULL without. */
static void *keep(facts_whole *w, size_t bytes)
{
    void *memory = w->count < FACTS_WHOLE_MEMORY ? malloc(bytes + 1) : NULL;
    if (memory)
        w->memory[w->count++] = memory;
    return memory;
}

/* ---- tensors
 * ----------------------------------------------------------------------------------------------------------------
 */

static fref_tensor dense(const int64_t dim[4], const float *data)
{
    return (fref_tensor){ .data = data,
                          .type = FREF_F32,
                          .stride = { dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1 } };
}

static bool add_starts(facts_whole *w, const facts_problem *p, facts_tensor_id id)
{
    int64_t *first = keep(w, (size_t)p->ask.batch * sizeof *first);
    for (int64_t b = 0; first && b < p->ask.batch; b++)
        first[b] = facts_row_at(p, id, b, 0) - p->tensor[id].first;
    w->tensor[id].first = first;
    return first != NULL;
}

static bool add_pages(facts_whole *w, const facts_problem *p, facts_tensor_id id)
{
    const int64_t each = id == FACTS_TENSOR_K ? p->ask.table_k : p->ask.table_v;
    int32_t *pages = keep(w, (size_t)(p->ask.batch * each) * sizeof *pages);
    for (int64_t i = 0; pages && i < p->ask.batch * each; i++)
        pages[i] = (int32_t)facts_page_of(p, id, i / each, i % each);
    w->tensor[id].pages = pages;
    w->tensor[id].page_size = p->tensor[id].page;
    w->tensor[id].pages_of_batch = each;
    return pages != NULL;
}

static int add_blocks(facts_whole *w, const facts_problem *p, const facts_storages *in,
                      facts_tensor_id id)
{
    facts_array_id array;
    bool along_rows;
    if (in->oracle || !facts_mx_factors_of(p, id, &array, &along_rows))
        return ENOTSUP;
    float *values = keep(w, (size_t)facts_elements(p->tensor[id].dim) * sizeof *values);
    uint8_t *factors = keep(w, facts_array_bytes(&p->array[array]));
    if (!values || !factors || !facts_mx_fill_factors(p, array, factors))
        return ENOMEM;
    facts_mx_decode(p, id, in->at[id], factors, values);
    w->tensor[id] = dense(p->tensor[id].dim, values);
    return 0;
}

static double descale_of(const facts_problem *p, facts_tensor_id id)
{
    static const facts_array_id descale[FACTS_TENSOR_COUNT] = {
        [FACTS_TENSOR_Q] = FACTS_ARRAY_DESCALE_Q,
        [FACTS_TENSOR_K] = FACTS_ARRAY_DESCALE_K,
        [FACTS_TENSOR_V] = FACTS_ARRAY_DESCALE_V,
        [FACTS_TENSOR_O] = FACTS_ARRAY_DESCALE_O,
        [FACTS_TENSOR_DO] = FACTS_ARRAY_DESCALE_DO
    };
    return descale[id] != 0 && p->array[descale[id]].count > 0 ? facts_array_scalar(p, descale[id])
                                                               : 0.0;
}

static int add_tensor(facts_whole *w, const facts_problem *p, const facts_storages *in,
                      facts_tensor_id id)
{
    const facts_tensor *t = &p->tensor[id];
    fref_tensor *out = &w->tensor[id];
    *out = (fref_tensor){ .data = NULL };
    if (!t->present || !in->at[id])
        return 0;
    if (facts_is_mx(t->dtype))
        return add_blocks(w, p, in, id);
    facts_oracle_type(&out->type, t->dtype);
    memcpy(out->stride, t->stride, sizeof out->stride);
    out->data = (const unsigned char *)in->at[id] + t->first * (int64_t)facts_dtype_bytes(t->dtype);
    out->descale = descale_of(p, id);
    if (t->packed != FACTS_PACKED_NOT && !add_starts(w, p, id))
        return ENOMEM;
    return t->page != 0 && !add_pages(w, p, id) ? ENOMEM : 0;
}

/* ---- scores
 * -----------------------------------------------------------------------------------------------------------------
 */

static double bias_value(const facts_problem *p, const facts_storages *in, const int64_t at[4])
{
    const facts_tensor *t = &p->tensor[FACTS_TENSOR_BIAS];
    if (!t->present)
        return 0.0;
    double value = facts_decode(
        t->dtype, facts_load(t->dtype, in->at[FACTS_TENSOR_BIAS], facts_broadcast_place(t, at)));
    return t->dtype != FATTN_BOOL ? value : value != 0 ? 0.0 : -(double)INFINITY;
}

/* Boolean masks and masks of tiles, with the bias where there is one: written out as a bias of 0
 * and -inf. */
static int add_mask(facts_whole *w, const facts_problem *p, const facts_storages *in)
{
    const fattn_problem *ask = &p->ask;
    const int64_t full[4] = { ask->batch, ask->heads_q, ask->seq_q, ask->seq_kv },
                  *dim = ask->block_mask ? full : ask->bias_dim;
    const int64_t count = facts_elements(dim);
    float *out = count > MOST_SCORES ? NULL : keep(w, (size_t)count * sizeof *out);
    if (!out)
        return count > MOST_SCORES ? ENOTSUP : ENOMEM;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < count; n++) {
        int64_t at[4];
        facts_index_of(dim, n, at);
        const bool seen =
            !ask->block_mask || facts_tile_kept(p, at[0], at[1], at[2] / 128, at[3] / 128);
        out[n] = seen ? (float)bias_value(p, in, at) : -INFINITY;
    }
    w->bias = dense(dim, out);
    for (int d = 0; d < 4; d++)
        w->bias.stride[d] = dim[d] > 1 ? w->bias.stride[d] : 0;
    w->problem.bias = &w->bias;
    return 0;
}

static int add_bias(facts_whole *w, const facts_problem *p, const facts_storages *in)
{
    const facts_tensor *t = &p->tensor[FACTS_TENSOR_BIAS];
    const bool reference = t->present && t->dtype == FATTN_BOOL;
    if (!in->oracle &&
        (p->ask.block_mask || reference)) /* an oracle elsewhere reads masks as they are */
        return add_mask(w, p, in);
    if (!t->present || reference)
        return 0;
    w->bias = w->tensor[FACTS_TENSOR_BIAS];
    for (int d = 0; d < 4; d++)
        w->bias.stride[d] = t->dim[d] > 1 ? w->bias.stride[d] : 0;
    w->problem.bias = &w->bias;
    return 0;
}

static int add_heads(facts_whole *w, const facts_problem *p)
{
    const int64_t heads = p->ask.heads_q;
    float *sink = keep(w, (size_t)heads * sizeof *sink),
          *slopes = keep(w, (size_t)heads * sizeof *slopes);
    double *alibi = keep(w, (size_t)heads * sizeof *alibi);
    if (!sink || !slopes || !alibi)
        return ENOMEM;
    facts_array_fill(p, FACTS_ARRAY_SINK, sink);
    facts_array_fill(p, FACTS_ARRAY_ALIBI_SLOPES, slopes);
    for (int64_t h = 0; p->ask.alibi && h < heads; h++)
        alibi[h] = (double)slopes[h];
    w->problem.sink = p->ask.sink ? sink : NULL;
    w->problem.alibi = p->ask.alibi ? alibi : NULL;
    return 0;
}

static double scalar_of(const facts_problem *p, facts_array_id id)
{
    return p->array[id].count > 0 ? facts_array_scalar(p, id) : 0.0;
}

static void add_scales(facts_whole *w, const facts_problem *p)
{
    w->problem.scales = (fref_scales){ .scale_s = scalar_of(p, FACTS_ARRAY_SCALE_S),
                                       .descale_s = scalar_of(p, FACTS_ARRAY_DESCALE_S),
                                       .scale_dp = scalar_of(p, FACTS_ARRAY_SCALE_DP),
                                       .descale_dp = scalar_of(p, FACTS_ARRAY_DESCALE_DP),
                                       .scale_o = scalar_of(p, FACTS_ARRAY_SCALE_O),
                                       .scale_dq = scalar_of(p, FACTS_ARRAY_SCALE_DQ),
                                       .scale_dk = scalar_of(p, FACTS_ARRAY_SCALE_DK),
                                       .scale_dv = scalar_of(p, FACTS_ARRAY_SCALE_DV) };
}

static void add_dropout(facts_whole *w, const facts_problem *p, const facts_storages *in)
{
    if (!in->keep)
        return;
    w->problem.keep = in->keep;
    w->problem.keep_scale = facts_keep_scale_of(p);
}

/* ---- rotary embedding
 * ---------------------------------------------------------------------------------------------------------
 */

static int add_rope(facts_whole *w, const facts_problem *p, const facts_storages *in)
{
    if (!p->ask.rope)
        return 0;
    if (in->oracle || facts_is_mx(p->ask.dtype))
        return ENOTSUP;
    float *angles[2];
    float *rotated[2], *step[2];
    static const facts_tensor_id of[2] = { FACTS_TENSOR_Q, FACTS_TENSOR_K };
    for (int i = 0; i < 2; i++) {
        const facts_array_id array = i == 0 ? FACTS_ARRAY_ROPE_Q : FACTS_ARRAY_ROPE_K;
        const int64_t *dim = p->tensor[of[i]].dim;
        angles[i] = keep(w, facts_array_bytes(&p->array[array]));
        rotated[i] = keep(w, (size_t)facts_elements(dim) * sizeof **rotated);
        step[i] = keep(w, (size_t)facts_elements(dim) * sizeof **step);
        if (!angles[i] || !rotated[i] || !step[i])
            return ENOMEM;
        facts_array_fill(p, array, angles[i]);
        facts_rope_rotate(p, of[i], in->at[of[i]], angles[i], rotated[i], step[i]);
        const double descale = w->tensor[of[i]].descale;
        w->tensor[of[i]] = dense(dim, rotated[i]);
        w->tensor[of[i]].descale = descale;
    }
    bool *uncertain = keep(w, (size_t)(p->ask.batch * (p->ask.heads_q * p->ask.seq_q +
                                                       p->ask.heads_k * p->ask.seq_kv)) *
                                  sizeof *uncertain);
    if (!uncertain)
        return ENOMEM;
    facts_rope_weigh(&w->rope, p, rotated, step, uncertain, w->problem.modify,
                     w->problem.modify_owner);
    w->problem.modify = facts_rope_at;
    w->problem.modify_owner = &w->rope;
    return 0;
}

/* ---- all of it
 * ----------------------------------------------------------------------------------------------------------------
 */

static bool types_known(const facts_problem *p)
{
    fref_type type;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        bool reference = id == FACTS_TENSOR_BIAS && p->tensor[id].dtype == FATTN_BOOL;
        if (p->tensor[id].present && !reference && !facts_oracle_type(&type, p->tensor[id].dtype))
            return false;
    }
    return true;
}

int facts_whole_make(facts_whole *out, const facts_problem *p, const facts_storages *in)
{
    *out = (facts_whole){ .count = 0 };
    if (!types_known(p))
        return ENOTSUP;
    facts_oracle_problem(&out->problem, p);
    out->mod = (facts_mod_owner){ p, in->at[FACTS_TENSOR_MOD_A], in->at[FACTS_TENSOR_MOD_B] };
    if (p->mod != FACTS_MOD_NONE) {
        out->problem.modify = facts_mod_at;
        out->problem.modify_owner = &out->mod;
    }
    int status = 0;
    for (facts_tensor_id id = 0; status == 0 && id < FACTS_TENSOR_COUNT; id++)
        status = add_tensor(out, p, in, id);
    if (status == 0)
        status = add_bias(out, p, in);
    if (status == 0)
        status = add_heads(out, p);
    add_scales(out, p);
    add_dropout(out, p, in);
    return status == 0 ? add_rope(out, p, in) : status;
}

void facts_whole_destroy(facts_whole *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->memory[i]);
    w->count = 0;
}
