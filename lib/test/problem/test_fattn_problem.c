/* What a problem means: defaults, refusals with the field's name, old and new callers, and the key.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/resolved_problem.h"

#define SMALL_BATCH 2
#include "fattn/score_mod.h"
#include "resolving.h"

Test(resolve, leaves_no_default)
{
    const fattn_problem p = resolved((fattn_problem){ .struct_size = sizeof p,
                                                      .batch = 2,
                                                      .heads_q = 8,
                                                      .seq_q = 96,
                                                      .seq_kv = 128,
                                                      .dim_qk = 64 });
    cr_expect_eq(p.dtype, FATTN_BF16);
    cr_expect_eq(p.o_dtype, FATTN_BF16);
    cr_expect_eq(p.grad_dtype, FATTN_BF16);
    cr_expect_eq(p.heads_k, 8);
    cr_expect_eq(p.heads_v, 8);
    cr_expect_eq(p.dim_v, 64);
    cr_expect_eq(p.has_attn_scale, 1);
    cr_expect_float_eq(p.attn_scale, 0.125, 1e-15);
    const int64_t q[4] = { 96 * 512, 64, 512, 1 }, k[4] = { 128 * 512, 64, 512, 1 },
                  stats[4] = { 8 * 96, 96, 1, 1 };
    cr_expect_arr_eq(p.q_strides, q, sizeof q);
    cr_expect_arr_eq(p.k_strides, k, sizeof k);
    cr_expect_arr_eq(p.stats_strides, stats, sizeof stats);
}

Test(resolve, outputs_follow_their_inputs_memory_order)
{
    fattn_problem p = small();
    const int64_t q[4] = { 8 * 64, 64, 2 * 8 * 64, 1 }, o[4] = { 8 * 32, 32, 2 * 8 * 32, 1 };
    memcpy(p.q_strides, q, sizeof q); /* sbhd */
    p.pass = FATTN_BACKWARD;
    p = resolved(p);
    cr_expect_arr_eq(p.o_strides, o, sizeof o);
    cr_expect_arr_eq(p.do_strides, o, sizeof o);
    cr_expect_arr_eq(p.dq_strides, q, sizeof q);
    cr_expect_arr_eq(p.dk_strides, p.k_strides, sizeof p.k_strides);
    cr_expect_arr_eq(p.dv_strides, p.v_strides, sizeof p.v_strides);
}

Test(resolve, may_be_repeated_and_write_over_what_it_reads)
{
    fattn_problem p = small();
    const fattn_problem once = resolved(p), twice = resolved(once);
    cr_expect(fattn__problem_same(&once, &twice));
    cr_assert_eq(fattn_problem_resolve(&p, &p), FATTN_OK);
    cr_expect(fattn__problem_same(&p, &once));
}

Test(resolve, refuses_null)
{
    fattn_problem p = small();
    cr_expect_eq(fattn_problem_resolve(NULL, &p), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_problem_resolve(&p, NULL), FATTN_BAD_PROBLEM);
}

Test(refusal, names_the_field_and_what_is_allowed)
{
    BAD(p.batch = 0, "batch: 0 is not allowed; want 1 or more");
    BAD(p.seq_q = -4, "seq_q: -4 is not allowed; want 1 or more");
    BAD(p.seq_kv = 0, "seq_kv: 0 is not allowed; want 1 or more");
    BAD(p.dim_qk = 0, "dim_qk: 0 is not allowed");
    BAD(p.heads_k = -1, "heads_k: -1 is not allowed");
    BAD(p.heads_k = 3, "heads_q: 8 is not a multiple of heads_k, 3");
    BAD(p.heads_v = 16, "heads_q: 8 is not a multiple of heads_v, 16");
    BAD(p.pass = 2, "pass: 2 is not allowed; want 0 (fwd) or 1 (bwd)");
    BAD(p.dtype = 8, "dtype: 8 is not allowed; want 1 (bf16) to 7 (mxe5m2)");
    BAD(p.dtype = -1, "dtype: -1 is not allowed");
    BAD(p.align = 2, "align: 2 is not allowed; want 0 (tl) or 1 (br)");
    BAD(p.padding = 2, "padding: 2 is not allowed; want 0 or 1");
    BAD(p.reserved = 1, "reserved: 1 is not allowed; want 0");
    BAD(p.outputs = 32, "outputs: 0x20 has unknown bits");
    BAD((p.has_left = 1, p.window_left = (1 << 30) + 1), "window_left: 1073741825 is not allowed");
    BAD((p.has_right = 1, p.window_right = INT64_MIN),
        "window_right: -9223372036854775808 is not allowed");
    BAD((p.has_attn_scale = 1, p.attn_scale = (double)NAN), "attn_scale: ");
    BAD((p.has_attn_scale = 1, p.attn_scale = 1e300), "attn_scale: 1e+300 is not allowed");
}

Test(refusal, names_the_field_of_a_bias_a_scale_and_a_length)
{
    BAD(p.determinism = 3, "determinism: 3 is not allowed; want 0 (auto) to 2 (pin)");
    BAD(p.scaling = FATTN_SCALING_DELAYED, "scaling: only 8-bit types have scale factors");
    BAD(p.scale_format = FATTN_FORMAT_BSHD, "scale_format: only 8-bit types have scale factors");
    BAD(p.ragged_bits = 16, "ragged_bits: 16 is not allowed; want 0, 32 or 64");
    BAD((p.has_bias = 1, p.bias_dtype = 9), "bias_dtype: 9 is not allowed");
    BAD((p.has_bias = 1, p.bias_dtype = FATTN_MXE4M3), "bias_dtype: a bias is not block-scaled");
    BAD(p.dbias = 1, "dbias: there is no bias");
    BAD((p.pass = FATTN_BACKWARD, p.mod_gradients = 1),
        "mod_gradients: 0x1 has bits of tensors that score_mod does not have (0)");
    BAD((p.has_bias = 1, SET(bias_dim, 1, 4, 96, 128)),
        "bias_dim[1]: 4 is not allowed; want 1 or 8");
    BAD((p.has_bias = 1, SET(bias_dim, 1, 8, 96, 0)),
        "bias_dim[3]: 0 is not allowed; want 1 or 128");
    BAD((p.has_bias = 1, SET(bias_dim, -1, 1, 1, 1)),
        "bias_dim[0]: -1 is not allowed; want 1 or 2");
    BAD((p.has_bias = 1, SET(bias_strides, 0, 0, 128, 2)),
        "bias_strides[3]: 2 is not allowed; the last stride must be 1");
    BAD((p.has_bias = 1, SET(bias_strides, 0, 0, -128, 1)), "bias_strides[2]: -128 is not allowed");
    BAD((p.has_bias = 1, SET(bias_strides, 0, (int64_t)1 << 62, 128, 1)),
        "bias_strides: the last element must lie below 2^62");
    BAD((p.pass = FATTN_BACKWARD, p.has_bias = p.dbias = 1, SET(dbias_strides, 0, 1, 1, 1)),
        "dbias_strides: elements of an output overlap");
    BAD((p.pass = FATTN_BACKWARD, p.has_bias = p.dbias = 1, SET(dbias_strides, 0, 0, 128, 1)),
        "dbias_strides[1]: 0 is not allowed");
}

Test(refusal, of_a_score_mods_tensor_that_does_not_fit)
{
    fattn_score_mod *mod;
    cr_assert_eq(
        fattn_score_mod_post_scale_bias(&mod, FATTN_F32, (int64_t[4]){ 1, 8, 95, 128 }, NULL),
        FATTN_OK);
    BAD(p.score_mod = mod, "score_mod: extent 2 of tensor \"bias\" is 95; want 1 or 96");
    BAD((p.score_mod = mod, p.seq_q = 95, p.pass = FATTN_BACKWARD, p.mod_gradients = 2),
        "mod_gradients: 0x2 has bits of tensors");
    fattn_score_mod_destroy(mod);
}

Test(refusal, of_sizes_whose_products_overflow)
{
    BAD((p.batch = (int64_t)1 << 31, p.seq_q = (int64_t)1 << 31),
        "batch, heads_q, seq_q, seq_kv: their product");
    BAD((p.dim_qk = INT64_MAX), "batch, heads_q, seq, dim: their product");
    BAD((p.heads_q = p.heads_k = p.heads_v = INT64_MAX),
        "batch, heads_q, seq_q, seq_kv: their product");
}

Test(refusal, of_strides_nobody_could_use)
{
    BAD(SET(q_strides, 0, 0, 64, 2), "q_strides[3]: 2 is not allowed; the last stride must be 1");
    BAD(SET(k_strides, -1, 64, 512, 1), "k_strides[0]: -1 is not allowed; want 0 or more");
    BAD(SET(v_strides, (int64_t)1 << 62, 64, 512, 1),
        "v_strides: the last element must lie below 2^62");
    BAD(SET(o_strides, 0, 32, 256, 1),
        "o_strides[0]: 0 is not allowed; only an input can be broadcast");
    BAD(SET(o_strides, 96 * 256, 32, 248, 1), "o_strides: elements of an output overlap");
    BAD((p.pass = FATTN_BACKWARD, SET(dq_strides, 1, 1, 1, 1)),
        "dq_strides: elements of an output overlap");
    BAD((p.outputs = FATTN_WANT_MAX, SET(stats_strides, 1, 1, 1, 1)),
        "stats_strides: elements of an output overlap");
}

Test(refusal, not_of_broadcast_inputs)
{
    fattn_problem p = small();
    SET(q_strides, 0, 0, 0, 1);
    SET(k_strides, 0, 64, 256, 1);
    SET(v_strides, 0, 0, 0, 1);
    resolved(p);
    p.pass = FATTN_BACKWARD;
    SET(do_strides, 0, 0, 0, 1);
    p = resolved(p);
    cr_expect_eq(p.dq_strides[2], 64, "dQ is dense where Q is broadcast");
}

Test(sums, are_where_a_gradient_is_broadcast_as_its_input_is)
{
    fattn_problem p = small();
    bool summed[4];
    p.pass = FATTN_BACKWARD;
    SET(k_strides, 0, 64, 256, 1);
    fattn_problem each = resolved(p);
    cr_expect_not(fattn__problem_sums(&each, FATTN__ROLE_DK, summed),
                  "dense by default: the gradient of each element");
    SET(dk_strides, 0, 64, 256, 1);
    p = resolved(p);
    cr_expect(fattn__problem_sums(&p, FATTN__ROLE_DK, summed));
    cr_expect(summed[0] && !summed[1] && !summed[2] && !summed[3]);
    cr_expect_eq(fattn__problem_shape(&p, FATTN__ROLE_DK).dim[0], 1);
    cr_expect_eq(fattn__problem_shape(&p, FATTN__ROLE_K).dim[0], 2);
    cr_expect_not(fattn__problem_sums(&p, FATTN__ROLE_DV, NULL));
    cr_expect_not(fattn__problem_same(&p, &each));
    p = small();
    p.pass = FATTN_BACKWARD, p.has_bias = p.dbias = 1;
    SET(bias_dim, 2, 8, 96, 128);
    SET(bias_strides, 0, 0, 128, 1);
    SET(dbias_strides, 0, 0, 128, 1);
    p = resolved(p);
    cr_expect(fattn__problem_sums(&p, FATTN__ROLE_DBIAS, summed));
    cr_expect(summed[0] && summed[1] && !summed[2] && !summed[3]);
}

Test(bias, is_dense_by_default_in_its_own_extents)
{
    fattn_problem p = small();
    p.has_bias = 1;
    p = resolved(p);
    const int64_t dim[4] = { 1, 8, 96, 128 }, strides[4] = { 8 * 96 * 128, 96 * 128, 128, 1 };
    cr_expect_arr_eq(p.bias_dim, dim, sizeof dim);
    cr_expect_arr_eq(p.bias_strides, strides, sizeof strides);
    cr_expect_eq(p.bias_dtype, FATTN_BF16);
}

/* Every size that a caller's struct may have had: what lies past it must not be read. */
Test(old_caller, absent_fields_mean_the_default)
{
    for (size_t size = offsetof(fattn_problem, attn_scale); size < sizeof(fattn_problem);
         size += _Alignof(fattn_problem)) {
        fattn_problem whole = small(), cut, want;
        memcpy((char *)&whole + offsetof(fattn_problem, struct_size), &size, sizeof size);
        memset((char *)&whole + size, 0x5a, sizeof whole - size);
        cut = small();
        memset((char *)&cut + size, 0, sizeof cut - size);
        cr_assert_eq(fattn_problem_resolve(&cut, &want), FATTN_OK);
        fattn_problem got;
        cr_expect_eq(fattn_problem_resolve(&whole, &got), FATTN_OK, "%zu bytes: %s", size,
                     fattn_last_error());
        cr_expect(fattn__problem_same(&got, &want), "%zu bytes", size);
        cr_expect_eq(got.struct_size, sizeof got);
    }
}

/* A score_mod whose constant is `cap`. */
static fattn_score_mod *softcap(double cap)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_softcap(&mod, cap), FATTN_OK, "%s", fattn_last_error());
    return mod;
}

static fattn_score_mod *biased(fattn_dtype dtype)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_post_scale_bias(&mod, dtype, (int64_t[4]){ 1, 1, 96, 128 }, NULL),
                 FATTN_OK, "%s", fattn_last_error());
    return mod;
}

#define FLIP(change)                                                                               \
    do {                                                                                           \
        fattn_problem p = base;                                                                    \
        change;                                                                                    \
        p = resolved(p);                                                                           \
        const fattn__problem_key other = fattn__problem_key_of(&p);                                \
        cr_expect(other.low != key.low && other.high != key.high, #change);                        \
        cr_expect_not(fattn__problem_same(&p, &base), #change);                                    \
    } while (0)

Test(key, knows_a_score_mod_by_its_structure_and_not_by_its_address)
{
    fattn_score_mod *one = softcap(30), *equal = softcap(30), *fifty = softcap(50),
                    *narrow = biased(FATTN_F16), *wide = biased(FATTN_F32);
    fattn_problem q = small();
    q.score_mod = one;
    const fattn_problem base = resolved(q);
    const fattn__problem_key key = fattn__problem_key_of(&base);
    q.score_mod = equal;
    const fattn_problem same = resolved(q);
    cr_expect_eq(fattn__problem_key_of(&same).low, key.low);
    cr_expect_eq(fattn__problem_key_of(&same).high, key.high);
    cr_expect(fattn__problem_same(&same, &base));
    q = base;
    FLIP(p.score_mod = fifty);
    FLIP(p.score_mod = narrow);
    FLIP(p.score_mod = NULL);
    q.score_mod = narrow;
    const fattn_problem with_narrow = resolved(q);
    q.score_mod = wide;
    const fattn_problem with_wide = resolved(q);
    cr_expect_not(fattn__problem_same(&with_narrow, &with_wide));
    cr_expect_neq(fattn__problem_key_of(&with_narrow).low, fattn__problem_key_of(&with_wide).low);
    fattn_score_mod *const all[] = { one, equal, fifty, narrow, wide };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        fattn_score_mod_destroy(all[i]);
}

Test(key, does_not_change_with_what_is_not_read)
{
    const fattn_problem base = resolved(small());
    fattn_problem p = small();
    p.window_left = 9, p.window_right = 9, p.attn_scale = 3.0, p.align = FATTN_BOTTOM_RIGHT;
    p.determinism = FATTN_DETERMINISM_PIN, p.len_broadcast = 1, p.bias_dtype = FATTN_F32,
    p.bias_dim[2] = 7, p.mod_gradients = 0;
    p.bias_strides[1] = 5, p.dbias_strides[3] = 9;
    p = resolved(p);
    cr_expect(fattn__problem_same(&p, &base));
}

Test(key, every_byte_of_the_image_counts)
{
    const fattn_problem base = resolved(small());
    const fattn__problem_key key = fattn__problem_key_of(&base);
    for (size_t i = 0; i < sizeof base; i++) {
        if (i >= offsetof(fattn_problem, score_mod) &&
            i < offsetof(fattn_problem, score_mod) + sizeof base.score_mod)
            continue; /* an address: known by what it points to */
        fattn_problem p = base;
        ((unsigned char *)&p)[i] ^= 0x40; /* not to 0, which is the usual do_dtype */
        cr_expect_neq(fattn__problem_key_of(&p).low, key.low, "byte %zu", i);
    }
}

Test(misaligned, names_the_first_tensor_that_is)
{
    fattn_problem p = small();
    p = resolved(p);
    cr_expect_eq(fattn__problem_misaligned(&p), FATTN__ROLE_COUNT);
    p = small();
    SET(v_strides, 128 * 72, 36, 72, 1);
    p = resolved(p);
    cr_expect_eq(fattn__problem_misaligned(&p), FATTN__ROLE_V);
    p = small();
    SET(dk_strides, 128 * 512, 64, 516, 1);
    p = resolved(p);
    cr_expect_eq(fattn__problem_misaligned(&p), FATTN__ROLE_COUNT, "forward does not touch dK");
    p.pass = FATTN_BACKWARD;
    cr_expect_eq(fattn__problem_misaligned(&p), FATTN__ROLE_DK);
}
