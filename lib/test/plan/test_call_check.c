/* What nobody can see at a launch: what the small arrays of a call hold. Each bad one has its
 * sentence; run on the host, where the cpu backend's own calls say the same. */
#define SURFACE_EXTENTS SQ = 150, SK = 270
#include "support/surface.h"

#include "fattn/device.h"
#include "problem/auxiliary.h"

typedef struct attempt {
    world x;
    int64_t elements[FATTN_RAGGED_TENSORS];
    bool with_elements;
} attempt;

/* ---- calls that are right
 * -------------------------------------------------------------------------------------------------------------
 */

typedef enum right {
    PADDED,
    ONE_LENGTH,
    SUMMED,
    PACKED,
    PACKED_BY_TOKENS,
    PAGED,
    PAGED_PACKED,
    BLOCK_SCALED,
    SCALED,
    MASKED
} right;

static float *scalar(float x)
{
    float *out = aligned_alloc(16, 16);
    *out = x;
    return out;
}

/* Gives each auxiliary array from `first` to `last` that the problem has this content. */
static void give(world *x, fattn__auxiliary first, fattn__auxiliary last, uint8_t byte, float one)
{
    for (fattn__auxiliary which = first; which <= last; which++) {
        const int64_t bytes = fattn__auxiliary_bytes(&x->p, which);
        void *data = byte == 0   ? scalar(one)
                     : bytes > 0 ? aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64)
                                 : NULL;
        if (byte != 0 && data != NULL)
            memset(data, byte, (size_t)bytes);
        memcpy((char *)&x->t + fattn__auxiliary_place(which), &data, sizeof data);
    }
}

static attempt call_of(right kind)
{
    attempt a = { .x = make() };
    world *x = &a.x;
    x->p.padding = kind < SCALED;
    x->p.len_broadcast = kind == ONE_LENGTH;
    x->p.cumulative = kind == SUMMED ? FATTN_CUMULATIVE_Q | FATTN_CUMULATIVE_KV : 0;
    if (kind == PACKED || kind == PACKED_BY_TOKENS) {
        x->p.ragged_bits = kind == PACKED ? 32 : 64, x->p.ragged_tokens = kind == PACKED_BY_TOKENS;
        memcpy(x->p.stats_strides, (int64_t[4]){ 0, 1, HQ, 1 }, sizeof x->p.stats_strides);
    } else if (kind == PAGED || kind == PAGED_PACKED) {
        x->p.pass = FATTN_FORWARD, x->p.page_size_k = x->p.page_size_v = 16,
        x->p.pages_k = x->p.pages_v = B * 17 + 2, x->p.packed_table = kind == PAGED_PACKED;
        place_pages(x, 16);
    } else if (kind == SCALED) {
        x->p.dtype = FATTN_E4M3, x->p.scale_in_memory = 1, x->t.attn_scale = scalar(-0.5f);
        give(x, FATTN__AUXILIARY_DESCALE_Q, FATTN__AUXILIARY_AMAX_DV, 0, 1);
    } else if (kind == MASKED) {
        const size_t bytes = (size_t)B * HQ * SQ * SK * 4;
        void *mask = aligned_alloc(32, bytes);
        memset(mask, 0, bytes);
        x->p.dropout_mask = 1, x->t.dropout_mask = mask;
        x->t.dropout_scale = scalar(2), x->t.dropout_scale_inverse = scalar(0.5f);
    }
    x->p.dtype = kind == BLOCK_SCALED ? FATTN_MXE4M3 : x->p.dtype;
    settle(x);
    if (kind == BLOCK_SCALED)
        give(x, FATTN__AUXILIARY_AMAX_O, FATTN__AUXILIARY_COUNT - 1, 127, 0);
    if (kind == PAGED || kind == PAGED_PACKED) { /* V's own */
        int32_t *table = aligned_alloc(64, 256);
        memcpy(table, x->t.page_table_k, B * 17 * 4);
        x->t.page_table_v = table;
    }
    memcpy(a.elements, x->elements, sizeof a.elements);
    a.with_elements = x->p.ragged_bits != 0;
    return a;
}

/* ---- what is wrong with them
 * ------------------------------------------------------------------------------------------------------------
 */

#define SET32(field, at, value) ((int32_t *)(uintptr_t)a->x.t.field)[at] = (value)
#define SET64(field, at, value) ((int64_t *)(uintptr_t)a->x.t.field)[at] = (value)
#define SETF(field, value) *(float *)(uintptr_t)a->x.t.field = (value)
#define SET8(field, at, value) ((uint8_t *)(uintptr_t)a->x.t.field)[at] = (value)

#define ROOM " on that is room for "
#define MOST " (a prefix sum may exceed the one before by at most the sequence length)"

/* X(name, the right call, what is done to it, what is said) */
#define BAD_LIST(X)                                                                                \
    X(negative, PADDED, SET32(seq_len_q, 1, -1),                                                   \
      "seq_len_q[1]: -1 is not allowed; want 0 to 150 (seq_q)")                                    \
    X(unused_twice, PACKED, SET32(seq_len_q, 1, -2),                                               \
      "seq_len_q[1]: -2 is not allowed; want -1 to 150 (seq_q)")                                   \
    X(long_q, PADDED, SET32(seq_len_q, 2, 151),                                                    \
      "seq_len_q[2]: 151 is not allowed; want 0 to 150 (seq_q)")                                   \
    X(long_kv, PADDED, SET32(seq_len_kv, 0, 1000),                                                 \
      "seq_len_kv[0]: 1000 is not allowed; want 0 to 270 (seq_kv)")                                \
    X(broadcast, ONE_LENGTH, SET32(seq_len_kv, 0, 271),                                            \
      "seq_len_kv[0]: 271 is not allowed; want 0 to 270 (seq_kv)")                                 \
    X(sum_begin, SUMMED, SET32(seq_len_q, 0, 4),                                                   \
      "seq_len_q[0]: 4 is not allowed; want 0, the first prefix sum")                              \
    X(sum_falls, SUMMED, SET32(seq_len_kv, 2, 100),                                                \
      "seq_len_kv[2]: 100 is not allowed; want 200 to 470" MOST)                                   \
    X(sum_jumps, SUMMED, SET32(seq_len_q, 3, 500),                                                 \
      "seq_len_q[3]: 500 is not allowed; want 183 to 333" MOST)                                    \
    X(offset_negative, PACKED, SET32(q_offsets, 0, -8),                                            \
      "q_offsets[0]: -8 is not allowed; want 0 or more")                                           \
    X(offset_falls, PACKED, SET32(k_offsets, 2, 10),                                               \
      "k_offsets[2]: 10 is not allowed; want 12928 or more, as the one before it")                 \
    X(offset_room, PACKED, SET32(v_offsets, 1, 96),                                                \
      "v_offsets[1]: 96 is not allowed; entry 0 has 200 tokens, and from 0 on that is room for 1") \
    X(offset_stats, PACKED, SET32(stats_offsets, 1, 596),                                          \
      "stats_offsets[1]: 596 is not allowed; entry 0 has 150 tokens, and from 0" ROOM "149")       \
    X(offset_end, PACKED, a->elements[8] = 50000,                                                  \
      "dv_offsets[2]: 29280 is not allowed; entry 2 would end at element 55200, the buffer has "   \
      "50000")                                                                                     \
    X(offset_tokens, PACKED_BY_TOKENS, SET64(o_offsets, 3, 200),                                   \
      "o_offsets[3]: 200 is not allowed; entry 2 has 77 tokens, and from 187" ROOM "13")           \
    X(offset_huge, PACKED_BY_TOKENS,                                                               \
      (SET64(do_offsets, 2, INT64_MAX / 2), SET64(do_offsets, 3, INT64_MAX)),                      \
      "do_offsets[2]: 4611686018427387903 is not allowed; entry 2 would lie past any memory")      \
    X(dense_short, PADDED, (a->with_elements = true, a->elements[0] = 100),                        \
      "q: a buffer of 100 elements is not allowed; want 57600")                                    \
    X(page_high, PAGED, SET32(page_table_k, 18, 53),                                               \
      "page_table_k[18]: 53 is not allowed; want 0 to 52 (pages of the pool)")                     \
    X(page_negative, PAGED, SET32(page_table_v, 0, -1),                                            \
      "page_table_v[0]: -1 is not allowed; want 0 to 52 (pages of the pool)")                      \
    X(table_falls, PAGED_PACKED, SET32(table_offsets_k, 2, 3),                                     \
      "table_offsets_k[2]: 3 is not allowed; want 13 or more, as the one before it")               \
    X(table_room, PAGED_PACKED, SET32(table_offsets_k, 3, 21),                                     \
      "table_offsets_k[3]: 21 is not allowed; entry 2 has 17 pages from 20 on")                    \
    X(table_end, PAGED_PACKED, (SET32(table_offsets_k, 2, 40), SET32(table_offsets_k, 3, 60)),     \
      "table_offsets_k[2]: 40 is not allowed; want 0 to 34 (pages of the whole table)")            \
    X(scale_zero, SCALED, SETF(scale_s, 0),                                                        \
      "scale_s[0]: 0 is not allowed; want a finite number above 0")                                \
    X(scale_negative, SCALED, SETF(descale_dp, -1),                                                \
      "descale_dp[0]: -1 is not allowed; want a finite number above 0")                            \
    X(scale_nan, SCALED, SETF(descale_k, NAN),                                                     \
      "descale_k[0]: nan is not allowed; want a finite number above 0")                            \
    X(scale_inf, SCALED, SETF(scale_dv, INFINITY),                                                 \
      "scale_dv[0]: inf is not allowed; want a finite number above 0")                             \
    X(attention, SCALED, SETF(attn_scale, 0),                                                      \
      "attn_scale[0]: 0 is not allowed; want a finite number other than 0")                        \
    X(attention_nan, SCALED, SETF(attn_scale, NAN),                                                \
      "attn_scale[0]: nan is not allowed; want a finite number other than 0")                      \
    X(dropout, MASKED, SETF(dropout_scale, 0),                                                     \
      "dropout_scale[0]: 0 is not allowed; want a finite number above 0")                          \
    X(inverse, MASKED, SETF(dropout_scale_inverse, -2),                                            \
      "dropout_scale_inverse[0]: -2 is not allowed; want a finite number above 0")                 \
    X(factor, BLOCK_SCALED, SET8(sf_k, 1024 * 3 + 16, 255),                                        \
      "sf_k[3088]: 255 is not allowed; want 0 to 254, a power of two (entry 1, head 0, line 1, "   \
      "block 0)")                                                                                  \
    X(factor_t, BLOCK_SCALED, SET8(sf_do_t, 32, 255),                                              \
      "sf_do_t[32]: 255 is not allowed; want 0 to 254, a power of two (entry 0, head 0, line 2, "  \
      "block 0)")

#define AS_BAD(name, of, wrong, sentence)                                                          \
    static void make_##name(attempt *a)                                                            \
    {                                                                                              \
        wrong;                                                                                     \
    }
BAD_LIST(AS_BAD)
#undef AS_BAD

static const struct {
    const char *name;
    right of;
    void (*wrong)(attempt *a);
    const char *sentence;
} bad[] = {
#define AS_ROW(name, of, wrong, sentence) { #name, of, make_##name, sentence },
    BAD_LIST(AS_ROW)
#undef AS_ROW
};

/* The check; then a call, which must say the same (it does not know the buffers' sizes). */
static fattn_status check(attempt *a, bool runs, char sentence[256])
{
    fattn_context *context = cpu_context(1);
    fattn_plan *plan;
    cr_assert_eq(fattn_plan_create(&plan, context, &a->x.p, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    a->x.t.workspace_bytes = (fattn_plan_workspace_bytes(plan) + 63) / 64 * 64,
    a->x.t.workspace = aligned_alloc(64, a->x.t.workspace_bytes);
    fattn_status st;
    if (runs)
        st = a->x.p.pass == FATTN_FORWARD ? fattn_forward(plan, &a->x.t, NULL)
                                          : fattn_backward(plan, &a->x.t, NULL);
    else
        st = fattn_call_check(plan, &a->x.t, a->with_elements ? a->elements : NULL, NULL);
    snprintf(sentence, 256, "%s", st == FATTN_OK ? "" : fattn_last_error());
    free(a->x.t.workspace);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
    return st;
}

Test(call_check, says_what_is_wrong_where_and_what_is_allowed_and_so_does_a_call)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        attempt a = call_of(bad[i].of);
        char sentence[256];
        cr_expect_eq(check(&a, false, sentence), FATTN_OK, "%s before it is spoilt: %s",
                     bad[i].name, sentence);
        bad[i].wrong(&a);
        cr_expect_eq(check(&a, false, sentence), FATTN_BAD_PROBLEM, "%s", bad[i].name);
        cr_expect_str_eq(sentence, bad[i].sentence, "%s: %s", bad[i].name, sentence);
        if (a.with_elements && memcmp(a.elements, a.x.elements, sizeof a.elements) != 0)
            continue;
        cr_expect_eq(check(&a, true, sentence), FATTN_BAD_PROBLEM, "%s", bad[i].name);
        if (!a.with_elements)
            cr_expect_str_eq(sentence, bad[i].sentence, "%s: %s", bad[i].name, sentence);
    }
}

Test(call_check, what_the_lengths_do_not_reach_is_not_looked_at)
{
    char sentence[256];
    attempt x = call_of(PAGED), y = call_of(BLOCK_SCALED), *a = &x;
    SET32(page_table_k, 17 + 7, -1); /* entry 1 has 101 keys: 7 pages */
    cr_expect_eq(check(a, false, sentence), FATTN_OK, "%s", sentence);
    a = &y;
    SET8(sf_q, 2 * 4 * 1024 + 512 + 16 * 3, 255); /* entry 2 has 77 rows: not the 131st */
    cr_expect_eq(check(a, false, sentence), FATTN_OK, "%s", sentence);
}

Test(call_check, addresses_come_first_and_a_description_has_none)
{
    char sentence[256];
    attempt a = call_of(PACKED);
    a.x.t.k_offsets = NULL;
    cr_expect_eq(check(&a, false, sentence), FATTN_BAD_PROBLEM);
    cr_expect_str_eq(sentence, "k_offsets is NULL");
}
