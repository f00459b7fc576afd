/* What nobody can see at a launch: what the small arrays of a call hold. Each bad one has its
 * sentence; run on the host, where the cpu backend's own calls say the same. */
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

static attempt packed(void)
{
    attempt a = { .x = make() };
    a.x.p.padding = 1, a.x.p.ragged_bits = 32;
    memcpy(a.x.p.stats_strides, (int64_t[4]){ 0, 1, HQ, 1 }, sizeof a.x.p.stats_strides);
    settle(&a.x);
    memcpy(a.elements, a.x.elements, sizeof a.elements);
    a.with_elements = true;
    return a;
}

static attempt packed_by_tokens(void)
{
    attempt a = { .x = make() };
    a.x.p.padding = 1, a.x.p.ragged_bits = 64, a.x.p.ragged_tokens = 1;
    memcpy(a.x.p.stats_strides, (int64_t[4]){ 0, 1, HQ, 1 }, sizeof a.x.p.stats_strides);
    settle(&a.x);
    memcpy(a.elements, a.x.elements, sizeof a.elements);
    a.with_elements = true;
    return a;
}

static attempt padded(void)
{
    attempt a = { .x = make() };
    a.x.p.padding = 1;
    settle(&a.x);
    return a;
}

static attempt one_length(void)
{
    attempt a = { .x = make() };
    a.x.p.padding = a.x.p.len_broadcast = 1;
    settle(&a.x);
    return a;
}

static attempt summed(void)
{
    attempt a = { .x = make() };
    a.x.p.padding = 1, a.x.p.cumulative = FATTN_CUMULATIVE_Q | FATTN_CUMULATIVE_KV;
    settle(&a.x);
    return a;
}

static attempt paged_as(int is_packed)
{
    attempt a = { .x = make() };
    world *x = &a.x;
    x->p.pass = FATTN_FORWARD, x->p.padding = 1, x->p.page_size_k = x->p.page_size_v = 16,
    x->p.packed_table = is_packed;
    x->p.pages_k = x->p.pages_v = B * 17 + 2;
    place_pages(x, 16);
    settle(x);
    int32_t *table = aligned_alloc(64, 256); /* V's own */
    memcpy(table, x->t.page_table_k, B * 17 * 4);
    x->t.page_table_v = table;
    return a;
}

static attempt paged(void)
{
    return paged_as(0);
}

static attempt paged_packed(void)
{
    return paged_as(1);
}

static float *scalar(float x)
{
    float *out = aligned_alloc(16, 16);
    *out = x;
    return out;
}

static attempt scaled(void)
{
    attempt a = { .x = make() };
    a.x.p.dtype = FATTN_E4M3, a.x.p.scale_in_memory = 1;
    for (fattn__auxiliary which = FATTN__AUXILIARY_DESCALE_Q; which <= FATTN__AUXILIARY_AMAX_DV;
         which++) {
        const float *one = scalar(1);
        memcpy((char *)&a.x.t + fattn__auxiliary_place(which), &one, sizeof one);
    }
    a.x.t.attn_scale = scalar(-0.5f);
    settle(&a.x);
    return a;
}

static attempt masked(void)
{
    attempt a = { .x = make() };
    a.x.p.dropout_mask = 1;
    a.x.t.dropout_mask = aligned_alloc(32, (size_t)B * HQ * SQ * SK * 4);
    memset((void *)(uintptr_t)a.x.t.dropout_mask, 0, (size_t)B * HQ * SQ * SK * 4);
    a.x.t.dropout_scale = scalar(2), a.x.t.dropout_scale_inverse = scalar(0.5f);
    settle(&a.x);
    return a;
}

static attempt block_scaled(void)
{
    attempt a = { .x = make() };
    a.x.p.dtype = FATTN_MXE4M3, a.x.p.padding = 1;
    settle(&a.x);
    for (fattn__auxiliary which = FATTN__AUXILIARY_AMAX_O; which < FATTN__AUXILIARY_COUNT;
         which++) {
        const int64_t bytes = fattn__auxiliary_bytes(&a.x.p, which);
        void *data = bytes > 0 ? aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64) : NULL;
        if (data != NULL)
            memset(data, 127, (size_t)bytes);
        memcpy((char *)&a.x.t + fattn__auxiliary_place(which), &data, sizeof data);
    }
    return a;
}

/* ---- what is wrong with them
 * ------------------------------------------------------------------------------------------------------------
 */

#define SET32(field, at, value) ((int32_t *)(uintptr_t)a->x.t.field)[at] = (value)
#define SET64(field, at, value) ((int64_t *)(uintptr_t)a->x.t.field)[at] = (value)
#define SETF(field, value) *(float *)(uintptr_t)a->x.t.field = (value)
#define SET8(field, at, value) ((uint8_t *)(uintptr_t)a->x.t.field)[at] = (value)

/* X(name, the right call, what is done to it, what is said) */
#define BAD_LIST(X)                                                                                \
    X(negative, padded, SET32(seq_len_q, 1, -1),                                                   \
      "seq_len_q[1]: -1 is not allowed; want 0 to 150 (seq_q)")                                    \
    X(unused_twice, packed, SET32(seq_len_q, 1, -2),                                               \
      "seq_len_q[1]: -2 is not allowed; want -1 to 150 (seq_q)")                                   \
    X(long_q, padded, SET32(seq_len_q, 2, 151),                                                    \
      "seq_len_q[2]: 151 is not allowed; want 0 to 150 (seq_q)")                                   \
    X(long_kv, padded, SET32(seq_len_kv, 0, 1000),                                                 \
      "seq_len_kv[0]: 1000 is not allowed; want 0 to 270 (seq_kv)")                                \
    X(broadcast, one_length, SET32(seq_len_kv, 0, 271),                                            \
      "seq_len_kv[0]: 271 is not allowed; want 0 to 270 (seq_kv)")                                 \
    X(sum_begin, summed, SET32(seq_len_q, 0, 4),                                                   \
      "seq_len_q[0]: 4 is not allowed; want 0, the first prefix sum")                              \
    X(sum_falls, summed, SET32(seq_len_kv, 2, 100),                                                \
      "seq_len_kv[2]: 100 is not allowed; want 200 to 470 (a prefix sum may exceed the one "       \
      "before by at most the sequence "                                                            \
      "length)")                                                                                   \
    X(sum_jumps, summed, SET32(seq_len_q, 3, 500),                                                 \
      "seq_len_q[3]: 500 is not allowed; want 183 to 333 (a prefix sum may exceed the one before " \
      "by at most the sequence length)")                                                           \
    X(offset_negative, packed, SET32(q_offsets, 0, -8),                                            \
      "q_offsets[0]: -8 is not allowed; want 0 or more")                                           \
    X(offset_falls, packed, SET32(k_offsets, 2, 10),                                               \
      "k_offsets[2]: 10 is not allowed; want 12928 or more, as the one before it")                 \
    X(offset_room, packed, SET32(v_offsets, 1, 96),                                                \
      "v_offsets[1]: 96 is not allowed; entry 0 has 200 tokens, and from 0 on that is room for 1") \
    X(offset_stats, packed, SET32(stats_offsets, 1, 596),                                          \
      "stats_offsets[1]: 596 is not allowed; entry 0 has 150 tokens, and from 0 on that is room "  \
      "for 149")                                                                                   \
    X(offset_end, packed, a->elements[8] = 50000,                                                  \
      "dv_offsets[2]: 29280 is not allowed; entry 2 would end at element 55200, the buffer has "   \
      "50000")                                                                                     \
    X(offset_tokens, packed_by_tokens, SET64(o_offsets, 3, 200),                                   \
      "o_offsets[3]: 200 is not allowed; entry 2 has 77 tokens, and from 187 on that is room for " \
      "13")                                                                                        \
    X(offset_huge, packed_by_tokens,                                                               \
      (SET64(do_offsets, 2, INT64_MAX / 2), SET64(do_offsets, 3, INT64_MAX)),                      \
      "do_offsets[2]: 4611686018427387903 is not allowed; entry 2 would lie past any memory")      \
    X(dense_short, padded, (a->with_elements = true, a->elements[0] = 100),                        \
      "q: a buffer of 100 elements is not allowed; want 57600")                                    \
    X(page_high, paged, SET32(page_table_k, 18, 53),                                               \
      "page_table_k[18]: 53 is not allowed; want 0 to 52 (pages of the pool)")                     \
    X(page_negative, paged, SET32(page_table_v, 0, -1),                                            \
      "page_table_v[0]: -1 is not allowed; want 0 to 52 (pages of the pool)")                      \
    X(table_falls, paged_packed, SET32(table_offsets_k, 2, 3),                                     \
      "table_offsets_k[2]: 3 is not allowed; want 13 or more, as the one before it")               \
    X(table_room, paged_packed, SET32(table_offsets_k, 3, 21),                                     \
      "table_offsets_k[3]: 21 is not allowed; entry 2 has 17 pages from 20 on")                    \
    X(table_end, paged_packed, (SET32(table_offsets_k, 2, 40), SET32(table_offsets_k, 3, 60)),     \
      "table_offsets_k[2]: 40 is not allowed; want 0 to 34 (pages of the whole table)")            \
    X(scale_zero, scaled, SETF(scale_s, 0),                                                        \
      "scale_s[0]: 0 is not allowed; want a finite number above 0")                                \
    X(scale_negative, scaled, SETF(descale_dp, -1),                                                \
      "descale_dp[0]: -1 is not allowed; want a finite number above 0")                            \
    X(scale_nan, scaled, SETF(descale_k, NAN),                                                     \
      "descale_k[0]: nan is not allowed; want a finite number above 0")                            \
    X(scale_inf, scaled, SETF(scale_dv, INFINITY),                                                 \
      "scale_dv[0]: inf is not allowed; want a finite number above 0")                             \
    X(attention, scaled, SETF(attn_scale, 0),                                                      \
      "attn_scale[0]: 0 is not allowed; want a finite number other than 0")                        \
    X(attention_nan, scaled, SETF(attn_scale, NAN),                                                \
      "attn_scale[0]: nan is not allowed; want a finite number other than 0")                      \
    X(dropout, masked, SETF(dropout_scale, 0),                                                     \
      "dropout_scale[0]: 0 is not allowed; want a finite number above 0")                          \
    X(inverse, masked, SETF(dropout_scale_inverse, -2),                                            \
      "dropout_scale_inverse[0]: -2 is not allowed; want a finite number above 0")                 \
    X(factor, block_scaled, SET8(sf_k, 1024 * 3 + 16, 255),                                        \
      "sf_k[3088]: 255 is not allowed; want 0 to 254, a power of two (entry 1, head 0, line 1, "   \
      "block 0)")                                                                                  \
    X(factor_t, block_scaled, SET8(sf_do_t, 32, 255),                                              \
      "sf_do_t[32]: 255 is not allowed; want 0 to 254, a power of two (entry 0, head 0, line 2, "  \
      "block 0)")

#define AS_BAD(name, right, wrong, sentence)                                                       \
    static void make_##name(attempt *a)                                                            \
    {                                                                                              \
        wrong;                                                                                     \
    }
BAD_LIST(AS_BAD)
#undef AS_BAD

static const struct {
    const char *name;
    attempt (*right)(void);
    void (*wrong)(attempt *a);
    const char *sentence;
} bad[] = {
#define AS_ROW(name, right, wrong, sentence) { #name, right, make_##name, sentence },
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

Test(call_check, says_what_is_wrong_where_and_what_is_allowed)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        attempt a = bad[i].right();
        char sentence[256];
        cr_expect_eq(check(&a, false, sentence), FATTN_OK, "%s before it is spoilt: %s",
                     bad[i].name, sentence);
        bad[i].wrong(&a);
        cr_expect_eq(check(&a, false, sentence), FATTN_BAD_PROBLEM, "%s", bad[i].name);
        cr_expect_str_eq(sentence, bad[i].sentence, "%s: %s", bad[i].name, sentence);
    }
}

Test(call_check, the_cpu_refuses_what_the_check_refuses)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        attempt a = bad[i].right();
        char sentence[256];
        bad[i].wrong(&a);
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
    attempt x = paged(), y = block_scaled(), *a = &x;
    SET32(page_table_k, 17 + 7, -1); /* entry 1 has 101 keys: 7 pages */
    cr_expect_eq(check(a, false, sentence), FATTN_OK, "%s", sentence);
    a = &y;
    SET8(sf_q, 2 * 4 * 1024 + 512 + 16 * 3, 255); /* entry 2 has 77 rows: not the 131st */
    cr_expect_eq(check(a, false, sentence), FATTN_OK, "%s", sentence);
}

Test(call_check, addresses_come_first_and_a_description_has_none)
{
    char sentence[256];
    attempt a = packed();
    a.x.t.k_offsets = NULL;
    cr_expect_eq(check(&a, false, sentence), FATTN_BAD_PROBLEM);
    cr_expect_str_eq(sentence, "k_offsets is NULL");
}
