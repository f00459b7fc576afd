/* Which small arrays a call has, of which type and how many numbers. What they hold is
 * numbers/fill/arrays.c's. */
#include <stddef.h>

#include "huge.h"
#include "resolution.h"

typedef struct arrays {
    facts_resolution *r;
    const fattn_problem *ask;
    bool backward;
} arrays;

static void has(arrays *a, facts_array_id id, facts_array_type type, int64_t count)
{
#define AS_OUTPUT(symbol, field, output) (output) != 0,
    static const bool output[FACTS_ARRAY_COUNT] = { FACTS_ARRAY_LIST(AS_OUTPUT) };
#undef AS_OUTPUT
    a->r->out->array[id] = (facts_array){ .count = count, .type = type, .output = output[id] };
}

static void has_float(arrays *a, facts_array_id id, bool when)
{
    if (when)
        has(a, id, FACTS_ARRAY_F32, 1);
}

/* A number of the forward that runs before this backward. */
static void has_for_forward(arrays *a, facts_array_id id, bool when)
{
    if (when)
        a->r->out->array[id] =
            (facts_array){ .count = 1, .type = FACTS_ARRAY_F32, .of_forward = true };
}

/* Offsets of each packed tensor; int32 ones must be able to count it. */
static facts_resolve_status add_offsets(arrays *a)
{
    static const facts_tensor_id of[] = { FACTS_TENSOR_Q,  FACTS_TENSOR_K,     FACTS_TENSOR_V,
                                          FACTS_TENSOR_O,  FACTS_TENSOR_STATS, FACTS_TENSOR_DO,
                                          FACTS_TENSOR_DQ, FACTS_TENSOR_DK,    FACTS_TENSOR_DV };
    const facts_problem *p = a->r->out;
    const facts_array_type type = a->ask->ragged_bits == 64 ? FACTS_ARRAY_I64 : FACTS_ARRAY_I32;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const facts_tensor *t = &p->tensor[of[i]];
        if (of[i] == FACTS_TENSOR_STATS && !t->present)
            t = p->tensor[FACTS_TENSOR_MAX].present ? &p->tensor[FACTS_TENSOR_MAX]
                                                    : &p->tensor[FACTS_TENSOR_SUM_EXP];
        if (!t->present || t->packed == FACTS_PACKED_NOT)
            continue;
        const int64_t end = (t->packed == FACTS_PACKED_Q ? p->start_q : p->start_kv)[a->ask->batch],
                      step = a->ask->ragged_tokens ? 1 : t->stride[2];
        if (type == FACTS_ARRAY_I32 && end > INT32_MAX / (step > 0 ? step : 1))
            return facts_resolve_bad(
                a->r, FACTS_KEY_OFFSETS,
                "int32 offsets cannot count these elements; want i64, or rmult=tokens");
        has(a, FACTS_ARRAY_Q_OFFSETS + (facts_array_id)i, type, a->ask->batch + 1);
    }
    return FACTS_RESOLVED;
}

static void add_lengths(arrays *a)
{
    const fattn_problem *ask = a->ask;
    if (!a->r->out->has_lengths || !ask->padding)
        return;
    has(a, FACTS_ARRAY_SEQ_LEN_Q, FACTS_ARRAY_I32,
        ask->len_broadcast ? 1 : ask->batch + ((ask->cumulative & FATTN_CUMULATIVE_Q) != 0));
    has(a, FACTS_ARRAY_SEQ_LEN_KV, FACTS_ARRAY_I32,
        ask->len_broadcast ? 1 : ask->batch + ((ask->cumulative & FATTN_CUMULATIVE_KV) != 0));
}

static void add_tables(arrays *a)
{
    const fattn_problem *ask = a->ask;
    const facts_array_type type = ask->ragged_bits == 64 ? FACTS_ARRAY_I64 : FACTS_ARRAY_I32;
    if (ask->page_size_k != 0)
        has(a, FACTS_ARRAY_PAGE_TABLE_K, FACTS_ARRAY_I32, ask->batch * ask->table_k);
    if (ask->page_size_v != 0)
        has(a, FACTS_ARRAY_PAGE_TABLE_V, FACTS_ARRAY_I32, ask->batch * ask->table_v);
    if (ask->packed_table && ask->page_size_k != 0)
        has(a, FACTS_ARRAY_TABLE_OFFSETS_K, type, ask->batch + 1);
    if (ask->packed_table && ask->page_size_v != 0)
        has(a, FACTS_ARRAY_TABLE_OFFSETS_V, type, ask->batch + 1);
}

static void add_softmax(arrays *a)
{
    const fattn_problem *ask = a->ask;
    const facts_array_type random = ask->rng_bits == 32 ? FACTS_ARRAY_I32 : FACTS_ARRAY_I64;
    has_float(a, FACTS_ARRAY_ATTN_SCALE, ask->scale_in_memory);
    if (ask->alibi)
        has(a, FACTS_ARRAY_ALIBI_SLOPES, FACTS_ARRAY_F32, ask->heads_q);
    if (ask->sink)
        has(a, FACTS_ARRAY_SINK, FACTS_ARRAY_F32, ask->heads_q);
    if (ask->dsink)
        has(a, FACTS_ARRAY_DSINK, FACTS_ARRAY_F32, ask->heads_q);
    if (ask->dropout != 0.0) {
        has(a, FACTS_ARRAY_SEED, random, 1);
        has(a, FACTS_ARRAY_OFFSET, random, 1);
    }
    has_float(a, FACTS_ARRAY_DROPOUT_SCALE, ask->dropout_mask);
    has_float(a, FACTS_ARRAY_DROPOUT_SCALE_INVERSE, ask->dropout_mask && a->backward);
    if (ask->block_mask)
        has(a, FACTS_ARRAY_BLOCK_MASK, FACTS_ARRAY_U8,
            ask->batch * ask->heads_q * ((ask->seq_q + 127) / 128) *
                (((ask->seq_kv + 127) / 128 + 7) / 8));
    if (ask->rope) {
        has(a, FACTS_ARRAY_ROPE_Q, FACTS_ARRAY_F32, ask->seq_q * ask->rope_dim);
        has(a, FACTS_ARRAY_ROPE_K, FACTS_ARRAY_F32, ask->seq_kv * ask->rope_dim);
    }
}

static void add_fp8(arrays *a)
{
    const fattn_problem *ask = a->ask;
    const bool fp8 = facts_is_fp8(ask->dtype), eight = fp8 || facts_is_mx(ask->dtype),
               backward = a->backward;
    for (facts_array_id id = FACTS_ARRAY_DESCALE_Q; id <= FACTS_ARRAY_SCALE_S; id++)
        has_float(a, id, fp8);
    has_float(a, FACTS_ARRAY_SCALE_O, fp8 && !backward && facts_is_fp8(ask->o_dtype));
    for (facts_array_id id = FACTS_ARRAY_DESCALE_O; id <= FACTS_ARRAY_SCALE_DP; id++)
        has_float(a, id, fp8 && backward);
    for (facts_array_id id = FACTS_ARRAY_SCALE_DQ; id <= FACTS_ARRAY_SCALE_DV; id++)
        has_float(a, id, fp8 && backward && facts_is_fp8(ask->grad_dtype));
    has_float(a, FACTS_ARRAY_AMAX_S, fp8 && !backward);
    has_float(a, FACTS_ARRAY_AMAX_O, eight && !backward);
    has_float(a, FACTS_ARRAY_AMAX_DP, fp8 && backward);
    if (fp8 && backward &&
        facts_is_huge(a->r->out)) { /* it runs its own forward: worker/memory/own_forward.h */
        has_for_forward(a, FACTS_ARRAY_SCALE_O, facts_is_fp8(ask->o_dtype));
        has_for_forward(a, FACTS_ARRAY_AMAX_S, true);
        has_for_forward(a, FACTS_ARRAY_AMAX_O, true);
    }
    for (facts_array_id id = FACTS_ARRAY_AMAX_DQ; id <= FACTS_ARRAY_AMAX_DV; id++)
        has_float(a, id, eight && backward);
}

/* Factors of blocks of 32 along the columns, padded to tiles of 128 x 4, for `count` heads in all.
 */
static void add_factors(arrays *a, facts_array_id id, int64_t count, int64_t rows, int64_t columns)
{
    const int64_t blocks = (columns + 31) / 32;
    has(a, id, FACTS_ARRAY_U8, count * ((rows + 127) / 128 * 128) * ((blocks + 3) / 4 * 4));
}

static void add_mx(arrays *a)
{
    const fattn_problem *ask = a->ask;
    const int64_t q = ask->batch * ask->heads_q, k = ask->batch * ask->heads_k,
                  v = ask->batch * ask->heads_v;
    if (!facts_is_mx(ask->dtype))
        return;
    add_factors(a, FACTS_ARRAY_SF_Q, q, ask->seq_q, ask->dim_qk);
    add_factors(a, FACTS_ARRAY_SF_K, k, ask->seq_kv, ask->dim_qk);
    if (!a->backward) {
        add_factors(a, FACTS_ARRAY_SF_V, v, ask->dim_v, ask->seq_kv);
        return;
    }
    add_factors(a, FACTS_ARRAY_SF_V, v, ask->seq_kv, ask->dim_v);
    add_factors(a, FACTS_ARRAY_SF_DO, q, ask->seq_q, ask->dim_v);
    add_factors(a, FACTS_ARRAY_SF_Q_T, q, ask->dim_qk, ask->seq_q);
    add_factors(a, FACTS_ARRAY_SF_K_T, k, ask->dim_qk, ask->seq_kv);
    add_factors(a, FACTS_ARRAY_SF_DO_T, q, ask->dim_v, ask->seq_q);
}

facts_resolve_status facts_resolve_arrays(facts_resolution *r)
{
    arrays a = { .r = r, .ask = &r->out->ask, .backward = r->out->ask.pass == FATTN_BACKWARD };
    add_lengths(&a);
    add_tables(&a);
    add_softmax(&a);
    add_fp8(&a);
    add_mx(&a);
    return add_offsets(&a);
}

const char *const facts_array_words[FACTS_ARRAY_COUNT] = {
#define AS_WORD(symbol, field, output) #field,
    FACTS_ARRAY_LIST(AS_WORD)
#undef AS_WORD
};

size_t facts_array_bytes(const facts_array *array)
{
    static const size_t size[] = {
        [FACTS_ARRAY_I32] = 4, [FACTS_ARRAY_I64] = 8, [FACTS_ARRAY_F32] = 4, [FACTS_ARRAY_U8] = 1
    };
    return (size_t)array->count * size[array->type];
}

size_t facts_array_place(facts_array_id id)
{
#define AS_PLACE(symbol, field, output) offsetof(fattn_tensors, field),
    static const size_t place[FACTS_ARRAY_COUNT] = { FACTS_ARRAY_LIST(AS_PLACE) };
#undef AS_PLACE
    return place[id];
}
