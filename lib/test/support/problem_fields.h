/* Every field of a problem with another value of it, for the tests of who reads it: what cuDNN's
 * graph bakes in, and what the cpu and the math backend answer. A new field belongs here, or in the
 * short list of such a test of fields that say nothing there. */
#ifndef FATTN_TEST_PROBLEM_FIELDS_H
#define FATTN_TEST_PROBLEM_FIELDS_H

#include <criterion/criterion.h>
#include <string.h>

#include "fattn/fattn.h"
#include "fattn/score_mod.h"

enum { FIELDS_POOL = 256 };

static inline fattn_problem plain(int32_t pass)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.pass = pass, p.batch = 2, p.heads_q = 4, p.heads_k = 2, p.heads_v = 1, p.seq_q = 24;
    p.seq_kv = 40, p.dim_qk = 16, p.dim_v = 8, p.has_left = p.has_right = p.padding = 1;
    p.window_left = 9, p.window_right = 3, p.align = FATTN_BOTTOM_RIGHT, p.has_bias = 1;
    return p;
}

#define BIAS_DIM p.bias_dim[0] = 1, p.bias_dim[1] = 4, p.bias_dim[2] = 24, p.bias_dim[3] = 40
#define PAGED p.page_size_k = p.page_size_v = 16, p.pages_k = p.pages_v = FIELDS_POOL

/* X(pass, field, the other value, whether answers stay the same because it says where things lie,
 * what makes the field be read). `mod` and `tensor` are
 * check_fields()'s. */
#define FIELD_LIST(X)                                                                              \
    X(FORWARD, pass, FATTN_BACKWARD, false, )                                                      \
    X(FORWARD, dtype, FATTN_F16, false, )                                                          \
    X(FORWARD, o_dtype, FATTN_F32, false, )                                                        \
    X(BACKWARD, grad_dtype, FATTN_F32, false, )                                                    \
    X(FORWARD, stats_dtype, FATTN_BF16, false, p.outputs = FATTN_WANT_STATS)                       \
    X(FORWARD, training, 1, false, )                                                               \
    X(FORWARD, outputs, FATTN_WANT_STATS | FATTN_WANT_SUM_EXP, false, )                            \
    X(FORWARD, batch, 3, false, )                                                                  \
    X(FORWARD, heads_q, 8, false, )                                                                \
    X(FORWARD, heads_k, 4, false, )                                                                \
    X(FORWARD, heads_v, 2, false, )                                                                \
    X(FORWARD, seq_q, 25, false, )                                                                 \
    X(FORWARD, seq_kv, 41, false, )                                                                \
    X(FORWARD, dim_qk, 24, false, )                                                                \
    X(FORWARD, dim_v, 16, false, )                                                                 \
    X(FORWARD, attn_scale, 0.5, false, p.has_attn_scale = 1, p.attn_scale = 2)                     \
    X(FORWARD, has_attn_scale, 1, false, p.attn_scale = 2)                                         \
    X(FORWARD, scale_in_memory, 1, false, )                                                        \
    X(FORWARD, window_left, 5, false, )                                                            \
    X(FORWARD, window_right, 1, false, )                                                           \
    X(FORWARD, has_left, 0, false, )                                                               \
    X(FORWARD, has_right, 0, false, )                                                              \
    X(FORWARD, align, FATTN_TOP_LEFT, false, )                                                     \
    X(FORWARD, block_mask, 1, false, p.seq_q = p.seq_kv = 150, p.has_left = p.has_right = 0)       \
    X(FORWARD, padding, 0, false, )                                                                \
    X(FORWARD, len_broadcast, 1, false, )                                                          \
    X(FORWARD, score_mod, mod, false, )                                                            \
    X(FORWARD, bias_dim[1], 1, false, BIAS_DIM)                                                    \
    X(FORWARD, bias_dim[0], 2, false, BIAS_DIM)                                                    \
    X(FORWARD, has_bias, 0, false, )                                                               \
    X(FORWARD, bias_dtype, FATTN_BOOL, false, )                                                    \
    X(BACKWARD, dbias, 1, false, )                                                                 \
    X(BACKWARD, mod_gradients, 1, false, p.score_mod = tensor)                                     \
    X(FORWARD, dropout, 0.5, false, )                                                              \
    X(FORWARD, dropout_mask, 1, false, )                                                           \
    X(FORWARD, alibi, 1, false, )                                                                  \
    X(FORWARD, sink, 1, false, )                                                                   \
    X(BACKWARD, dsink, 1, false, p.sink = 1)                                                       \
    X(FORWARD, rope, 1, false, )                                                                   \
    X(FORWARD, rope_dim, 8, false, p.rope = 1)                                                     \
    X(FORWARD, impl, FATTN_IMPL_UNIFIED, false, )                                                  \
    X(FORWARD, ragged_bits, 32, false, )                                                           \
    X(FORWARD, ragged, FATTN_RAGGED_Q, false, p.ragged_bits = 32)                                  \
    X(FORWARD, cumulative, FATTN_CUMULATIVE_Q | FATTN_CUMULATIVE_KV, true, )                       \
    X(FORWARD, len_rank, 1, true, )                                                                \
    X(FORWARD, ragged_tokens, 1, true, p.ragged_bits = 32)                                         \
    X(FORWARD, rng_bits, 64, true, p.dropout = 0.5, p.rng_bits = 32)                               \
    X(FORWARD, page_size_k, 8, true, PAGED)                                                        \
    X(FORWARD, page_size_v, 8, true, PAGED)                                                        \
    X(FORWARD, pages_k, FIELDS_POOL + 1, true, PAGED)                                              \
    X(FORWARD, pages_v, FIELDS_POOL + 1, true, PAGED)                                              \
    X(FORWARD, packed_table, 1, true, PAGED)

/* X(pass, tensor, axis, as above): gaps between batch entries, or between the heads of a bias. Gaps
 * of an output are hashed with it. */
#define STRIDES_LIST(X)                                                                            \
    X(FORWARD, q, 0, true)                                                                         \
    X(FORWARD, k, 0, true)                                                                         \
    X(FORWARD, v, 0, true)                                                                         \
    X(BACKWARD, do, 0, true)                                                                       \
    X(FORWARD, bias, 1, false)                                                                     \
    X(FORWARD, o, 0, false)                                                                        \
    X(FORWARD, stats, 0, false)                                                                    \
    X(BACKWARD, dq, 0, false)                                                                      \
    X(BACKWARD, dk, 0, false)                                                                      \
    X(BACKWARD, dv, 0, false)                                                                      \
    X(BACKWARD, dbias, 1, false)

static unsigned char met[sizeof(fattn_problem)]; /* bytes of fields that were changed */

#define MEET(field)                                                                                \
    memset(met + offsetof(fattn_problem, field), 1, sizeof((fattn_problem *)0)->field);

static inline fattn_value added(fattn_recorder *r, fattn_value score, void *user)
{
    const int64_t dim[4] = { 1, 4, 24, 40 };
    (void)user;
    return fattn_record(r, FATTN_MOD_ADD, score, fattn_record_tensor(r, "t", FATTN_F32, dim, NULL),
                        0);
}

/* The test's: q differs from p in this field alone. */
static void check_field(const fattn_problem *p, const fattn_problem *q, const char *field,
                        bool same);

#define CHANGE_FIELD(of_pass, field, value, same, ...)                                             \
    {                                                                                              \
        fattn_problem p = plain(FATTN_##of_pass), q;                                               \
        __VA_ARGS__;                                                                               \
        q = p, q.field = (value);                                                                  \
        check_field(&p, &q, #field, same);                                                         \
        MEET(field)                                                                                \
    }
#define CHANGE_STRIDE(of_pass, name, axis, same)                                                   \
    {                                                                                              \
        fattn_problem p = plain(FATTN_##of_pass), q;                                               \
        p.dbias = p.pass == FATTN_BACKWARD, p.outputs = FATTN_WANT_STATS;                          \
        cr_assert_eq(fattn_problem_resolve(&p, &q), FATTN_OK, "%s", fattn_last_error());           \
        p = q, q.name##_strides[axis] *= 2;                                                        \
        check_field(&p, &q, #name "_strides", same);                                               \
        MEET(name##_strides)                                                                       \
    }

static inline void check_fields(void)
{
    fattn_score_mod *mod, *tensor;
    cr_assert_eq(fattn_score_mod_softcap(&mod, 1), FATTN_OK);
    cr_assert_eq(fattn_score_mod_create(&tensor, added, NULL, NULL), FATTN_OK);
    FIELD_LIST(CHANGE_FIELD)
    STRIDES_LIST(CHANGE_STRIDE)
    MEET(bias_dim)
    fattn_score_mod_destroy(mod), fattn_score_mod_destroy(tensor);
}

#define MEET_LISTED(field, why) MEET(field)

static inline void expect_all_met(void)
{
    for (size_t i = 0; i < sizeof met; i++)
        cr_expect(met[i], "the field at byte %zu is neither changed nor in the list", i);
}

#endif
