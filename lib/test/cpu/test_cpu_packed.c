/* Packed sequences, cumulative lengths and pages on the cpu. */
#include "support/surface.h"

_Static_assert(ROLES <= 10, "pairs of five");

static world packed(uint32_t tensors, int32_t bits, bool tokens)
{
    world x = make();
    x.p.padding = 1, x.p.ragged_bits = bits, x.p.ragged = tensors, x.p.ragged_tokens = tokens;
    memcpy(x.p.stats_strides, (int64_t[4]){ 0, 1, HQ, 1 }, sizeof x.p.stats_strides);
    if (!(tensors & FATTN_RAGGED_STATS))
        memset(x.p.stats_strides, 0, sizeof x.p.stats_strides);
    return x;
}

Test(cpu_packed, every_tensor_packed_with_offsets_of_elements_and_of_tokens)
{
    for (int form = 0; form < 4; form++) {
        world x = packed(FATTN_RAGGED_ALL, form & 1 ? 64 : 32, form & 2);
        x.p.has_right = form & 1, x.p.align = form & 2 ? FATTN_BOTTOM_RIGHT : FATTN_TOP_LEFT,
        x.p.total_q = form * 300, x.p.total_kv = form * 600;
        expect_all(&x);
    }
}

/* Each tensor is packed in two of five problems, and no two in the same: of any two, one is
 * packed where the other is not, and the other way round. */
Test(cpu_packed, some_tensors_and_not_the_others)
{
    uint32_t tensors[5] = { 0 };
    for (int first = 0, role = 0; first < 5; first++)
        for (int second = first + 1; second < 5 && role < ROLES; second++, role++)
            tensors[first] |= 1u << role, tensors[second] |= 1u << role;
    for (int i = 0; i < 5; i++) {
        world x = packed(tensors[i], 32, i % 2);
        expect_all(&x);
    }
}

/* The stride of b of a packed tensor says nothing, so that 0 there is no sum. */
Test(cpu_packed, a_packed_gradient_of_what_every_entry_shares_is_of_each_entry)
{
    const int64_t q[4] = { 0, D, HQ * D, 1 }, k[4] = { 0, D, HK * D, 1 },
                  v[4] = { 0, DV, HK * DV, 1 };
    world x = packed(FATTN_RAGGED_DQ | FATTN_RAGGED_DK | FATTN_RAGGED_DV, 32, false);
    memcpy(x.p.q_strides, q, sizeof q), memcpy(x.p.dq_strides, q, sizeof q);
    memcpy(x.p.k_strides, k, sizeof k), memcpy(x.p.dk_strides, k, sizeof k);
    memcpy(x.p.v_strides, v, sizeof v), memcpy(x.p.dv_strides, v, sizeof v);
    expect_all(&x);
}

Test(cpu_packed, stats_head_by_head)
{
    world x = packed(FATTN_RAGGED_ALL, 32, false);
    memcpy(x.p.stats_strides, (int64_t[4]){ 0, SQ + 33 + 77 + 6, 1, 1 }, sizeof x.p.stats_strides);
    expect_all(&x);
}

Test(cpu_packed, q_k_and_v_interleaved_in_one_buffer_of_bf16)
{
    world x = packed(FATTN_RAGGED_ALL, 64, false);
    x.p.dtype = FATTN_BF16;
    const int64_t token = (HQ + HK) * D + HK * DV;
    memcpy(x.p.q_strides, (int64_t[4]){ 0, D, token, 1 }, sizeof x.p.q_strides);
    memcpy(x.p.k_strides, (int64_t[4]){ 0, D, token, 1 }, sizeof x.p.k_strides);
    memcpy(x.p.o_strides, (int64_t[4]){ 0, DV, HQ * DV, 1 }, sizeof x.p.o_strides);
    expect_all(&x);
}

Test(cpu_packed, sequences_of_length_0_on_either_side)
{
    for (int side = 0; side < 3; side++)
        for (int is_packed = 0; is_packed < 2; is_packed++) {
            world x = is_packed ? packed(FATTN_RAGGED_ALL, 32, true) : make();
            x.p.padding = 1, x.p.has_right = side == 1;
            x.len_q[1] = side != 1 ? 0 : 33, x.len_kv[1] = side != 0 ? 0 : 101;
            expect_all(&x);
        }
}

Test(cpu_packed, more_queries_than_keys_and_a_single_query)
{
    for (int form = 0; form < 4; form++) {
        world x = packed(FATTN_RAGGED_ALL, 32, false);
        x.p.has_right = form & 1, x.p.align = form & 2 ? FATTN_BOTTOM_RIGHT : FATTN_TOP_LEFT;
        x.len_q[0] = SQ, x.len_kv[0] = 40, x.len_q[1] = 1, x.len_kv[1] = SK - 13;
        x.len_q[2] = 1, x.len_kv[2] = 1;
        expect_all(&x);
    }
}

Test(cpu_packed, lengths_as_prefix_sums)
{
    for (uint32_t sides = 1; sides < 4; sides++) {
        world x = make();
        x.p.padding = 1, x.p.cumulative = sides, x.p.len_rank = sides == 2 ? 1 : 0,
        x.p.has_right = 1, x.p.align = FATTN_BOTTOM_RIGHT;
        expect_all(&x);
    }
}

static void expect_paged(bool k, bool v, bool packed_table, int64_t size)
{
    world x = make();
    x.p.pass = FATTN_FORWARD, x.p.padding = 1, x.p.packed_table = packed_table,
    x.p.has_right = packed_table, x.p.align = FATTN_BOTTOM_RIGHT;
    x.p.page_size_k = k ? size : 0, x.p.page_size_v = v ? size : 0;
    x.p.pages_k = k ? B * ((SK + size - 1) / size) + 2 : 0,
    x.p.pages_v = v ? x.p.pages_k + (k ? 0 : B * ((SK + size - 1) / size) + 2) : 0;
    place_pages(&x, size);
    settle(&x);
    expect_forward(&x);
}

Test(cpu_packed, keys_and_values_in_pages)
{
    for (int which = 1; which < 4; which++)
        for (int is_packed = 0; is_packed < 2; is_packed++)
            for (int64_t size = 16; size <= 48; size += 32)
                expect_paged(which & 1, which & 2, is_packed, size);
}

Test(cpu_packed, pages_whose_heads_come_first)
{
    world x = make();
    x.p.pass = FATTN_FORWARD, x.p.padding = 1, x.p.page_size_k = 16, x.p.pages_k = B * 17 + 2;
    memcpy(x.p.k_strides, (int64_t[4]){ HK * 16 * D, 16 * D, D, 1 }, sizeof x.p.k_strides);
    place_pages(&x, 16);
    settle(&x);
    expect_forward(&x);
}
