#include "recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "problem/philox.h"
#include "score_inputs.h"

static void put_integer(const facts_array *array, void *out, int64_t i, int64_t value)
{
    int32_t narrow = (int32_t)value;
    if (array->type == FACTS_ARRAY_I64)
        memcpy((unsigned char *)out + i * 8, &value, sizeof value);
    else
        memcpy((unsigned char *)out + i * 4, &narrow, sizeof narrow);
}

/* ---- where sequences and pages lie
 * ------------------------------------------------------------------------------------------ */

static const facts_tensor *of_offsets(const facts_problem *p, facts_array_id id)
{
    static const facts_tensor_id of[] = { FACTS_TENSOR_Q,  FACTS_TENSOR_K,     FACTS_TENSOR_V,
                                          FACTS_TENSOR_O,  FACTS_TENSOR_STATS, FACTS_TENSOR_DO,
                                          FACTS_TENSOR_DQ, FACTS_TENSOR_DK,    FACTS_TENSOR_DV };
    const facts_tensor *t = &p->tensor[of[id - FACTS_ARRAY_Q_OFFSETS]];
    if (id == FACTS_ARRAY_STATS_OFFSETS && !t->present)
        t = p->tensor[FACTS_TENSOR_MAX].present ? &p->tensor[FACTS_TENSOR_MAX]
                                                : &p->tensor[FACTS_TENSOR_SUM_EXP];
    return t;
}

static void fill_offsets(const facts_problem *p, facts_array_id id, void *out)
{
    const facts_tensor *t = of_offsets(p, id);
    const int64_t *start = t->packed == FACTS_PACKED_KV ? p->start_kv : p->start_q,
                  step = p->ask.ragged_tokens ? 1 : t->stride[2];
    for (int64_t b = 0; b < p->array[id].count; b++)
        put_integer(&p->array[id], out, b, start[b] * step);
}

static void fill_lengths(const facts_problem *p, facts_array_id id, void *out)
{
    bool queries = id == FACTS_ARRAY_SEQ_LEN_Q;
    bool sums = (p->ask.cumulative & (queries ? FATTN_CUMULATIVE_Q : FATTN_CUMULATIVE_KV)) != 0;
    const int32_t *len = queries ? p->len_q : p->len_kv;
    int64_t sum = 0;
    for (int64_t n = 0; n < p->array[id].count; n++) {
        put_integer(&p->array[id], out, n,
                    sums                                 ? sum
                    : p->unused[n] && p->ask.ragged != 0 ? -1
                                                         : len[n]);
        sum += sums && n < p->ask.batch ? len[n] : 0;
    }
}

static void fill_table(const facts_problem *p, facts_array_id id, void *out)
{
    const facts_array *array = &p->array[id];
    facts_tensor_id of = id == FACTS_ARRAY_PAGE_TABLE_K ? FACTS_TENSOR_K : FACTS_TENSOR_V;
    int64_t table = of == FACTS_TENSOR_K ? p->ask.table_k : p->ask.table_v, at = 0;
    memset(out, 0, facts_array_bytes(array));
    for (int64_t b = 0; b < p->ask.batch; b++) {
        int64_t count = p->ask.packed_table ? facts_pages_of_entry(p, of, b) : table;
        const int64_t used =
            p->table == FACTS_TABLE_UNFILLED ? facts_pages_of_entry(p, of, b) : count;
        for (int64_t n = 0; n < count; n++) /* as vLLM's: what no length reaches is no page */
            put_integer(array, out, at++,
                        n < used      ? facts_page_of(p, of, b, n)
                        : (n + b) % 2 ? -1
                                      : INT64_C(1) << 30);
    }
}

static void fill_table_offsets(const facts_problem *p, facts_array_id id, void *out)
{
    facts_tensor_id of = id == FACTS_ARRAY_TABLE_OFFSETS_K ? FACTS_TENSOR_K : FACTS_TENSOR_V;
    int64_t sum = 0;
    for (int64_t b = 0; b <= p->ask.batch; b++) {
        put_integer(&p->array[id], out, b, sum);
        sum += b < p->ask.batch ? facts_pages_of_entry(p, of, b) : 0;
    }
}

/* ---- masks of tiles
 * ---------------------------------------------------------------------------------------------------------
 */

static void fill_tiles(const facts_problem *p, facts_array_id id, uint8_t *out)
{
    int64_t rows = (p->ask.seq_q + 127) / 128, keys = (p->ask.seq_kv + 127) / 128,
            bytes = (keys + 7) / 8;
    memset(out, 0, facts_array_bytes(&p->array[id]));
    for (int64_t bh = 0; bh < p->ask.batch * p->ask.heads_q; bh++)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t key = 0; key < keys; key++)
                if (facts_tile_kept(p, bh / p->ask.heads_q, bh % p->ask.heads_q, row, key))
                    out[(bh * rows + row) * bytes + key / 8] |= (uint8_t)(1u << (key % 8));
}

/* ---- numbers
 * ----------------------------------------------------------------------------------------------------------------
 */

/* Of four heads, one sink is ordinary, one weighs as much as all keys, one has weight 0, and one
 * more than everything. */
static float sink_of(const facts_problem *p, int64_t h)
{
    float n =
        facts_normal(facts_draw_at(p->seed, FACTS_STREAM_SINK, FACTS_LANE_VALUE, (uint64_t)h));
    const float size[] = { 0.0f, (float)log((double)p->ask.seq_kv), -20.0f, 20.0f };
    return p->off_by_one ? 0.0f : n + size[h % 4];
}

static float slope_of(const facts_problem *p, int64_t h)
{
    if (!p->given_slopes)
        return (float)facts_mod_slope(p->ask.heads_q, h);
    return 0.0625f *
           facts_normal(facts_draw_at(p->seed, FACTS_STREAM_BIAS, FACTS_LANE_CHOICE, (uint64_t)h));
}

/* Angle of channel c at place s: pairs are c and c + half, and both lanes hold it. */
static float angle_of(const facts_problem *p, int64_t s, int64_t c)
{
    int64_t half = p->ask.rope_dim / 2;
    return (float)((double)s * pow(10000.0, -2.0 * (double)(c % half) / (double)p->ask.rope_dim));
}

static float float_at(const facts_problem *p, facts_array_id id, int64_t i)
{
    switch (id) {
    case FACTS_ARRAY_ALIBI_SLOPES:
        return slope_of(p, i);
    case FACTS_ARRAY_SINK:
        return sink_of(p, i);
    case FACTS_ARRAY_ROPE_Q:
    case FACTS_ARRAY_ROPE_K:
        return angle_of(p, i / p->ask.rope_dim, i % p->ask.rope_dim);
    default:
        return (float)facts_array_scalar(p, id);
    }
}

static void fill_floats(const facts_problem *p, facts_array_id id, void *out)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < p->array[id].count; i++) {
        float value = float_at(p, id, i);
        memcpy((unsigned char *)out + (size_t)i * sizeof value, &value, sizeof value);
    }
}

void facts_array_fill(const facts_problem *p, facts_array_id id, void *out)
{
    if (p->array[id].count == 0)
        return;
    if (id <= FACTS_ARRAY_DV_OFFSETS)
        fill_offsets(p, id, out);
    else if (id <= FACTS_ARRAY_SEQ_LEN_KV)
        fill_lengths(p, id, out);
    else if (id <= FACTS_ARRAY_PAGE_TABLE_V)
        fill_table(p, id, out);
    else if (id <= FACTS_ARRAY_TABLE_OFFSETS_V)
        fill_table_offsets(p, id, out);
    else if (id == FACTS_ARRAY_SEED || id == FACTS_ARRAY_OFFSET)
        put_integer(&p->array[id], out, 0,
                    (int64_t)(id == FACTS_ARRAY_SEED ? p->rng_seed : p->rng_offset));
    else if (id == FACTS_ARRAY_BLOCK_MASK)
        fill_tiles(p, id, out);
    else if (id >= FACTS_ARRAY_SF_Q)
        facts_mx_fill_factors(p, id, out);
    else
        fill_floats(p, id, out);
}

/* ---- other contents
 * ----------------------------------------------------------------------------------------------------------
 */

/* A ragged sequence cannot grow: its neighbour follows immediately. */
static int32_t other_length(const facts_problem *p, int32_t length, int64_t longest)
{
    if (length > 1)
        return (length + 1) / 2;
    return p->ask.ragged != 0 || length >= longest ? length : length + 1;
}

static void change_problem(facts_problem *p)
{
    for (int64_t b = 0; b < p->ask.batch && p->has_lengths; b++) {
        const bool one = p->ask.len_broadcast && b > 0;
        p->len_q[b] = one ? p->len_q[0] : other_length(p, p->len_q[b], p->ask.seq_q);
        p->len_kv[b] = one ? p->len_kv[0] : other_length(p, p->len_kv[b], p->ask.seq_kv);
        p->start_q[b + 1] = p->start_q[b] + p->len_q[b];
        p->start_kv[b + 1] = p->start_kv[b] + p->len_kv[b];
    }
    p->rng_seed ^= 85;
    p->rng_offset ^= 16;
    p->block_pattern =
        p->block_pattern == FACTS_BLOCKS_FIRST ? FACTS_BLOCKS_RANDOM : FACTS_BLOCKS_FIRST;
}

static void turn_pages(int32_t *table, int64_t count, int64_t pages)
{
    for (int64_t n = 0; n < count; n++)
        table[n] = (int32_t)((table[n] + 1) % pages);
}

/* Positive numbers stay positive. */
static void change_floats(float *number, int64_t count)
{
    for (int64_t n = 0; n < count; n++)
        number[n] = 0.5f * number[n] + 0.3f;
}

/* Powers of two; 255 is not a number. */
static void change_factors(uint8_t *factor, int64_t count)
{
    for (int64_t n = 0; n < count; n++)
        factor[n] = factor[n] > 0 ? (uint8_t)(factor[n] - 1) : 1;
}

bool facts_array_fill_other(const facts_problem *p, facts_array_id id, void *out)
{
    const facts_array *array = &p->array[id];
    facts_problem *other = malloc(sizeof *other);
    if (!other)
        return false;
    *other = *p;
    change_problem(other);
    facts_array_fill(other, id, out);
    free(other);
    if (id == FACTS_ARRAY_PAGE_TABLE_K || id == FACTS_ARRAY_PAGE_TABLE_V)
        turn_pages(
            out, array->count,
            p->tensor[id == FACTS_ARRAY_PAGE_TABLE_K ? FACTS_TENSOR_K : FACTS_TENSOR_V].pages);
    else if (id >= FACTS_ARRAY_SF_Q)
        change_factors(out, array->count);
    else if (array->type == FACTS_ARRAY_F32)
        change_floats(out, array->count);
    return true;
}
