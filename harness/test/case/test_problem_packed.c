#include "numbers/fill/places.h"
#include "resolved.h"

#include <stdio.h>

static facts_problem p;

/* Every live element of the three tensors has a place of its own, inside its storage. */
static void check_places(const char *text)
{
    static unsigned char taken[FACTS_TENSOR_COUNT][1 << 16];
    p = problem_asked(text);
    memset(taken, 0, sizeof taken);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_tensor *t = &p.tensor[id];
        const bool keys = id == FACTS_TENSOR_K || id == FACTS_TENSOR_V || id == FACTS_TENSOR_DK ||
                          id == FACTS_TENSOR_DV;
        for (int64_t b = 0; t->present && b < t->dim[0]; b++)
            for (int64_t s = 0; s < (keys ? p.len_kv : p.len_q)[b]; s++)
                for (int64_t n = 0; n < t->dim[1] * t->dim[3]; n++) {
                    int64_t at =
                        facts_row_at(&p, id, b, s) + n / t->dim[3] * t->stride[1] + n % t->dim[3];
                    cr_assert(at >= 0 && at < t->elements && at < 1 << 16,
                              "%s: tensor %d reaches %ld of %ld", text, (int)id, (long)at,
                              (long)t->elements);
                    cr_assert(!taken[owner_of(&p, id)][at]++, "%s: tensor %d, element %ld twice",
                              text, (int)id, (long)at);
                }
    }
}

Test(packed, every_token_has_a_place_of_its_own)
{
    static const char *const texts[] = {
        "layout=thd lens=5+0+7/3+9+1",
        "layout=t3hd lens=5+0+7",
        "layout=th3d lens=5+0+7 slots=+2 tail=4",
        "layout=thd_t2hd lens=5+0+7/3+9+1 slots=5+3+7/3+10+1",
        "layout=thd_th2d lens=5+0+7/3+9+1 tail=q.1+kv.3",
        "layout=thd_bshd lens=5+0+7/3+9+1",
        "layout=bhsd_thd lens=5+0+7/3+9+1",
        "pass=bwd layout=thd lens=5+0+7/3+9+1 stride=gap:8",
        "pass=bwd layout=t3hd lens=5+0+7 stride=gap:8",
        "pass=bwd layout=thd lens=5+0+7/3+9+1 stats=ht1 dqkv=bshd",
        "paged=4 lens=5+0+7/3+9+1",
        "paged=k:4 layout=bhsd lens=5+0+7/3+9+1 stride=gap:k.s.8+k.b.24",
        "paged=3 layout=bshd_bs2hd lens=5+0+7/3+9+1",
        "paged=3 layout=thd_bsh2d lens=5+0+7/3+9+1 table=packed",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[256];
        snprintf(text, sizeof text, "b=3 h=2 s=10 d=8 %s%s", texts[i],
                 strstr(texts[i], "bwd") ? "" : " want=stats+max+sum_exp");
        check_places(text);
    }
}

Test(packed, slots_tail_and_totals_are_counted)
{
    p = problem_asked("b=3 h=2 s=10 d=8 layout=thd lens=5+0+7/3+9+1 slots=+2 "
                      "tail=q.4+kv.1 total=slack:6 offsets=i64 rmult=tokens");
    cr_expect(p.start_q[0] == 0 && p.start_q[1] == 7 && p.start_q[2] == 9 && p.start_q[3] == 18);
    cr_expect(p.start_kv[1] == 5 && p.start_kv[2] == 16 && p.start_kv[3] == 19);
    cr_expect(p.tensor[FACTS_TENSOR_Q].tokens == 22 && p.tensor[FACTS_TENSOR_V].tokens == 20);
    cr_expect(p.tensor[FACTS_TENSOR_Q].elements == 22 * 16 &&
              p.tensor[FACTS_TENSOR_V].elements == 20 * 16);
    cr_expect(p.ask.total_q == 28 && p.ask.total_kv == 26 && p.ask.ragged_bits == 64 &&
              p.ask.ragged_tokens == 1);
    p = problem_asked("b=3 s=10 layout=thd");
    cr_expect(p.ask.padding == 1 && p.len_q[2] == 10 && p.start_kv[3] == 30 && p.ask.total_q == 0,
              "without lengths all are full");
    p = problem_asked("b=9 s=100 layout=t3hd padding=random");
    cr_expect_arr_eq(p.len_q, p.len_kv, 9 * sizeof *p.len_q, "one storage, one length");
}

Test(packed, the_library_is_told_which_tensors_are_packed)
{
    static const struct {
        const char *text;
        uint32_t bits;
    } rows[] = {
        { "layout=thd", FATTN_RAGGED_Q | FATTN_RAGGED_K | FATTN_RAGGED_V | FATTN_RAGGED_O },
        { "layout=thd want=stats",
          FATTN_RAGGED_Q | FATTN_RAGGED_K | FATTN_RAGGED_V | FATTN_RAGGED_O | FATTN_RAGGED_STATS },
        { "layout=thd want=max stats=ht1",
          FATTN_RAGGED_Q | FATTN_RAGGED_K | FATTN_RAGGED_V | FATTN_RAGGED_O | FATTN_RAGGED_STATS },
        { "layout=thd want=stats stats=bhs1",
          FATTN_RAGGED_Q | FATTN_RAGGED_K | FATTN_RAGGED_V | FATTN_RAGGED_O },
        { "layout=thd_bshd o=bhsd", FATTN_RAGGED_Q },
        { "layout=sbhd_thd", FATTN_RAGGED_K | FATTN_RAGGED_V },
        { "pass=bwd layout=thd", FATTN_RAGGED_ALL },
        { "pass=bwd dqkv=thd", FATTN_RAGGED_DQ | FATTN_RAGGED_DK | FATTN_RAGGED_DV },
        { "bias=1hss", 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        p = problem_asked(rows[i].text);
        cr_expect_eq(p.ask.ragged, rows[i].bits, "%s: %x", rows[i].text, p.ask.ragged);
        cr_expect_eq(p.ask.ragged_bits != 0, rows[i].bits != 0);
    }
}

Test(packed, a_pool_has_pages_that_nobody_names)
{
    p = problem_asked("b=3 h=4/2 s=10/20 d=8 layout=bhsd paged=k:6 want=stats");
    const facts_tensor *k = &p.tensor[FACTS_TENSOR_K];
    cr_expect(p.ask.table_k == 4 && p.ask.pages_k > 12 && p.ask.page_size_k == 6 &&
              p.ask.page_size_v == 0 && p.ask.padding == 1);
    cr_expect(k->pages == p.ask.pages_k && k->page == 6 && k->dim[0] == 3 && k->dim[2] == 20);
    cr_expect(k->stride[0] == 2 * 6 * 8 && k->stride[1] == 6 * 8 && k->stride[2] == 8 &&
              k->elements == k->pages * 2 * 6 * 8);
    cr_expect(p.tensor[FACTS_TENSOR_V].page == 0);
    p = problem_asked("b=3 s=10/20 paged=5 table=identity");
    cr_expect_eq(p.ask.pages_v, 12);
}

Test(packed, what_the_softmax_is_joined_by_is_asked)
{
    p = problem_asked("pass=bwd h=6 s=300 alibi=custom softmax=sink dsink=1 dropout=0.25 "
                      "rng=7:9 rng_dtype=i32 scale=tensor want=stats+rng_dump");
    cr_expect(p.ask.alibi && p.given_slopes && p.ask.sink && !p.off_by_one && p.ask.dsink &&
              p.ask.scale_in_memory && !p.ask.has_attn_scale);
    cr_expect(p.ask.dropout == 0.25 && p.drop == 0.25 && p.rng_seed == 7 && p.rng_offset == 9 &&
              p.ask.rng_bits == 32);
    cr_expect(p.ask.outputs == FATTN_WANT_RNG_DUMP && p.tensor[FACTS_TENSOR_RNG_DUMP].present &&
              p.array[FACTS_ARRAY_DSINK].output);
    p = problem_asked("dropout=0.25 dropout_mask=1 softmax=off_by_one want=stats2+max rope=1 "
                      "blockmask=first impl=unified "
                      "bias=bool:b1ss cu=q padding=random lens_shape=b");
    cr_expect(p.ask.dropout == 0.0 && p.drop == 0.25 && p.ask.dropout_mask &&
              p.tensor[FACTS_TENSOR_DROPOUT_MASK].dtype == FATTN_BF16);
    cr_expect(p.off_by_one && p.ask.outputs == (FATTN_WANT_STATS_LOG2 | FATTN_WANT_MAX) &&
              p.ask.rope_dim == 128 && p.ask.block_mask);
    cr_expect(p.ask.bias_dtype == FATTN_BOOL && p.bias_fill == FACTS_BIAS_RANDOM &&
              p.ask.cumulative == FATTN_CUMULATIVE_Q && p.ask.len_rank == 1);
    cr_expect(p.ask.impl == FATTN_IMPL_UNIFIED && p.array[FACTS_ARRAY_SEQ_LEN_Q].count == 3 &&
              p.array[FACTS_ARRAY_SEQ_LEN_KV].count == 2);
}

Test(packed, a_rotation_of_some_channels_is_asked)
{
    p = problem_asked("s=9/5 d=192/128 rope=64");
    cr_expect(p.ask.rope && p.ask.rope_dim == 64 && p.array[FACTS_ARRAY_ROPE_Q].count == 9 * 64 &&
              p.array[FACTS_ARRAY_ROPE_K].count == 5 * 64);
    p = problem_asked("rope=0");
    cr_expect(!p.ask.rope && p.ask.rope_dim == 0);
}

Test(packed, types_and_pins_are_asked)
{
    p = problem_asked("pass=bwd dtype=e4m3 out=bf16 scaling=current scales=odd");
    cr_expect(p.ask.o_dtype == FATTN_BF16 && p.ask.grad_dtype == FATTN_E4M3 &&
              p.ask.scaling == FATTN_SCALING_CURRENT && p.scales == FACTS_SCALES_ODD);
    p = problem_asked("pass=bwd dtype=e4m3 out=bf16 do_dtype=e5m2");
    cr_expect(p.ask.do_dtype == FATTN_E5M2 && p.tensor[FACTS_TENSOR_DO].dtype == FATTN_E5M2 &&
              p.tensor[FACTS_TENSOR_O].dtype == FATTN_BF16);
    p = problem_asked("pass=bwd dtype=mxe4m3 do_dtype=mxe5m2");
    cr_expect(p.tensor[FACTS_TENSOR_DO].dtype == FATTN_MXE5M2 &&
              p.tensor[FACTS_TENSOR_DO_T].dtype == FATTN_MXE5M2 &&
              p.tensor[FACTS_TENSOR_DO_16].dtype == FATTN_BF16);
    p = problem_asked("pass=bwd dtype=e5m2 bwd_dtype=f16");
    cr_expect(p.high_backward && p.narrow == FATTN_E5M2 && p.ask.dtype == FATTN_F16 &&
              p.ask.grad_dtype == FATTN_F16 && p.ask.scaling == 0);
    p = problem_asked("pass=bwd dtype=mxe4m3");
    cr_expect(p.ask.o_dtype == FATTN_BF16 && p.tensor[FACTS_TENSOR_DO].dtype == FATTN_MXE4M3 &&
              p.tensor[FACTS_TENSOR_DO_16].dtype == FATTN_BF16);
    cr_expect(p.tensor[FACTS_TENSOR_Q_T].present && p.array[FACTS_ARRAY_SF_Q_T].count > 0);
    p = problem_asked("pass=bwd engine=6 knob=stages:4+tile_m:2 rescale=2 want=stats");
    cr_expect(p.knob_count == 2 && p.knob[0].type == 14 && p.knob[0].value == 4 &&
              p.knob[1].type == 40 && p.rescale == 2 && p.engine == 6);
}

/* It runs its own forward, which has arrays that a backward lacks. */
Test(packed, a_huge_8_bit_backward_has_the_arrays_of_its_forward)
{
    facts_problem *backward = resolved("pass=bwd dtype=e4m3 b=1 h=32/8 s=8192 mask=causal");
    facts_problem *forward =
        resolved("pass=fwd dtype=e4m3 b=1 h=32/8 s=8192 mask=causal want=stats");
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (forward->array[id].count)
            cr_expect(backward->array[id].count && !backward->array[id].output, "%s",
                      facts_array_words[id]);
    cr_expect(backward->array[FACTS_ARRAY_AMAX_S].of_forward &&
              !backward->array[FACTS_ARRAY_DESCALE_Q].of_forward);
    free(forward);
    free(backward);
}
