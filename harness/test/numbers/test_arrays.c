#include "../case/resolved.h"

#include <math.h>
#include <omp.h>

#include "numbers/fill/places.h"
#include "numbers/fill/score_inputs.h"

Test(arrays, their_words_are_the_fields_of_a_call)
{
    cr_expect_str_eq(facts_array_words[FACTS_ARRAY_SF_DO_T], "sf_do_t");
    cr_expect_eq(facts_array_place(FACTS_ARRAY_SINK), offsetof(fattn_tensors, sink));
}

/* Of numbers that are 32 bits wide, but `wide`; so many of them as are given. */
Test(arrays, hold_the_numbers_that_their_words_say)
{
#define PACKED                                                                                     \
    "pass=bwd b=2 h=4/2 s=9 d=8 layout=thd lens=5+7/3+9 slots=+1 stats=ht1 stride=gap:k.s.16"
#define UNUSED "b=4 s=9 layout=thd lens=5+-1+7+-1/3+-1+9+-1"
#define SUMS "b=3 s=9 lens=5+0+7/3+9+1 cu=kv"
    static const struct {
        const char *text;
        facts_array_id id;
        bool wide;
        int64_t count, numbers[6];
    } rows[] = {
        { PACKED, FACTS_ARRAY_Q_OFFSETS, false, 3, { 0, 6 * 32, 14 * 32 } },
        /* two heads of 8 and a gap of 16 */
        { PACKED, FACTS_ARRAY_K_OFFSETS, false, 3, { 0, 4 * 32, 14 * 32 } },
        /* head by head: a token is one number */
        { PACKED, FACTS_ARRAY_STATS_OFFSETS, false, 3, { 0, 6, 14 } },
        { "pass=bwd b=2 h=4/2 s=9 d=8 layout=thd lens=5+7/3+9 offsets=i64 rmult=tokens",
          FACTS_ARRAY_V_OFFSETS,
          true,
          3,
          { 0, 3, 12 } },
        { SUMS, FACTS_ARRAY_SEQ_LEN_Q, false, 3, { 5, 0, 7 } },
        { SUMS, FACTS_ARRAY_SEQ_LEN_KV, false, 4, { 0, 3, 12, 13 } },
        { UNUSED, FACTS_ARRAY_SEQ_LEN_Q, false, 4, { 5, -1, 7, -1 } },
        { UNUSED, FACTS_ARRAY_SEQ_LEN_KV, false, 4, { 3, -1, 9, -1 } },
        { "b=3 s=10/8 paged=4 table=identity",
          FACTS_ARRAY_PAGE_TABLE_K,
          false,
          6,
          { 0, 1, 2, 3, 4, 5 } },
        { "b=3 s=10/8 paged=4 table=linspace",
          FACTS_ARRAY_PAGE_TABLE_K,
          false,
          6,
          { 0, 3, 1, 4, 2, 5 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        facts_problem *p = resolved(rows[i].text);
        void *made_of = made(p, rows[i].id);
        cr_assert_eq(p->array[rows[i].id].count, rows[i].count, "%s", rows[i].text);
        for (int64_t n = 0; n < rows[i].count; n++)
            cr_expect_eq(rows[i].wide ? ((int64_t *)made_of)[n] : ((int32_t *)made_of)[n],
                         rows[i].numbers[n], "%s: %s[%d]", rows[i].text,
                         facts_array_words[rows[i].id], (int)n);
        free(made_of), free(p);
    }
    facts_problem *p = resolved(UNUSED);
    cr_expect(p->len_q[1] == 0 && p->len_kv[3] == 0 && p->start_q[2] == p->start_q[1] &&
                  p->start_kv[4] == 12,
              "an unused sequence has no tokens");
    free(p);
}

/* Which pages of a pool the table names, each once but for shared ones. */
static void check_table(const char *text, facts_tensor_id id, bool shares)
{
    facts_problem *p = resolved(text);
    const facts_array_id array =
        id == FACTS_TENSOR_K ? FACTS_ARRAY_PAGE_TABLE_K : FACTS_ARRAY_PAGE_TABLE_V;
    const int64_t pages = p->tensor[id].pages,
                  each = id == FACTS_TENSOR_K ? p->ask.table_k : p->ask.table_v;
    int32_t *table = made(p, array), *named = calloc((size_t)pages, sizeof *named);
    for (int64_t b = 0; b < p->ask.batch; b++)
        for (int64_t n = 0; n < each && !p->ask.packed_table; n++) {
            cr_assert(table[b * each + n] >= 0 && table[b * each + n] < pages);
            cr_expect_eq(table[b * each + n], facts_page_of(p, id, b, n));
            named[table[b * each + n]]++;
        }
    int64_t at = 0, offset = 0;
    for (int64_t b = 0; b < p->ask.batch && p->ask.packed_table; b++) {
        int32_t *offsets = made(p, id == FACTS_TENSOR_K ? FACTS_ARRAY_TABLE_OFFSETS_K
                                                        : FACTS_ARRAY_TABLE_OFFSETS_V);
        cr_expect_eq(offsets[b], offset);
        for (int64_t n = 0; n < facts_pages_of_entry(p, id, b); n++, offset++)
            named[table[at++]]++;
        cr_expect_eq(offsets[b + 1], offset);
        free(offsets);
    }
    for (int64_t page = 0; page < pages; page++)
        cr_expect(named[page] <= 1 || shares, "%s: page %ld is named %d times", text, (long)page,
                  named[page]);
    free(table), free(named), free(p);
}

Test(arrays, a_table_names_each_page_once)
{
    check_table("b=5 s=10/70 paged=4 padding=random", FACTS_TENSOR_K, false);
    check_table("b=5 s=10/70 paged=4 padding=random table=identity", FACTS_TENSOR_V, false);
    check_table("b=5 s=10/70 paged=4 padding=random table=linspace", FACTS_TENSOR_K, false);
    check_table("b=5 s=10/70 paged=4 padding=random table=shared", FACTS_TENSOR_V, true);
    check_table("b=5 s=10/70 paged=4 padding=random table=packed", FACTS_TENSOR_K, false);
    check_table("b=1 s=1 paged=64", FACTS_TENSOR_K, false);
}

Test(arrays, shared_tables_share_and_others_are_shuffled)
{
    facts_problem *p = resolved("b=3 s=10/64 paged=4 table=shared");
    int32_t *table = made(p, FACTS_ARRAY_PAGE_TABLE_V);
    cr_expect(table[0] == table[16] && table[7] == table[32 + 7] && table[8] != table[16 + 8]);
    free(table), free(p);
    p = resolved("b=3 s=10/512 paged=4");
    int32_t *k = made(p, FACTS_ARRAY_PAGE_TABLE_K), *v = made(p, FACTS_ARRAY_PAGE_TABLE_V);
    int same = 0, rising = 0;
    for (int i = 1; i < 3 * 128; i++) {
        same += k[i] == v[i];
        rising += k[i] == k[i - 1] + 1;
    }
    cr_expect(same < 20 && rising < 20, "shuffled, K and V apart: %d, %d", same, rising);
    free(k), free(v), free(p);
}

Test(arrays, odd_scales_are_odd)
{
    facts_problem *p = resolved("pass=bwd dtype=e4m3 scales=odd");
    double seen[FACTS_ARRAY_COUNT];
    int count = 0, exponent;
    for (facts_array_id id = FACTS_ARRAY_DESCALE_Q; id <= FACTS_ARRAY_SCALE_DV; id++) {
        const double scale = facts_array_scalar(p, id);
        cr_expect(scale > 0 && frexp(scale, &exponent) != 0.5, "%s", facts_array_words[id]);
        for (int i = 0; i < count; i++)
            cr_expect(seen[i] != scale &&
                          (fabs(seen[i] * scale - 1) > 1e-3 || id == FACTS_ARRAY_DESCALE_O),
                      "%s", facts_array_words[id]);
        seen[count++] = scale;
    }
    cr_expect_float_eq(facts_array_scalar(p, FACTS_ARRAY_DESCALE_O) *
                           facts_array_scalar(p, FACTS_ARRAY_SCALE_O),
                       1.0, 1e-6);
    free(p);
    p = resolved("pass=bwd dtype=e4m3 scales=pow2");
    for (facts_array_id id = FACTS_ARRAY_DESCALE_Q; id <= FACTS_ARRAY_SCALE_DV; id++)
        cr_expect(frexp(facts_array_scalar(p, id), &exponent) == 0.5 &&
                      facts_array_scalar(p, id) != 1.0,
                  "%s", facts_array_words[id]);
    free(p);
}

Test(arrays, an_o_of_16_bits_has_a_descale_of_1)
{
    static const char *const texts[] = { "pass=bwd dtype=e4m3 out=bf16 scales=odd",
                                         "pass=bwd dtype=e5m2 out=f16 do_dtype=e4m3 scales=pow2" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        facts_problem *p = resolved(texts[i]);
        cr_expect_eq(p->array[FACTS_ARRAY_DESCALE_O].count, 1, "%s", texts[i]);
        cr_expect_float_eq(facts_array_scalar(p, FACTS_ARRAY_DESCALE_O), 1.0, 0, "%s", texts[i]);
        free(p);
    }
}

Test(arrays, slopes_and_sinks)
{
    facts_problem *p = resolved("h=6 alibi=1 softmax=off_by_one");
    float *slopes = made(p, FACTS_ARRAY_ALIBI_SLOPES), *sink = made(p, FACTS_ARRAY_SINK);
    const double expects[] = { 0x1p-2, 0x1p-4, 0x1p-6, 0x1p-8, 0x1p-1, 0x1p-3 };
    for (int h = 0; h < 6; h++)
        cr_expect(slopes[h] == (float)expects[h] && sink[h] == 0.0f, "head %d: %g", h,
                  (double)slopes[h]);
    free(slopes), free(sink), free(p);
    p = resolved("h=8 s=512 alibi=custom softmax=sink");
    slopes = made(p, FACTS_ARRAY_ALIBI_SLOPES), sink = made(p, FACTS_ARRAY_SINK);
    cr_expect(slopes[0] != slopes[1] && fabsf(sink[0]) < 5.0f && sink[3] > 15.0f &&
              sink[2] < -15.0f);
    free(slopes), free(sink), free(p);
}

Test(arrays, a_bit_for_each_tile)
{
    static const char *const words[] = { "random", "first", "empty_row" };
    for (int w = 0; w < 3; w++) {
        char text[80];
        snprintf(text, sizeof text, "b=2 h=3 s=300/1500 blockmask=%s", words[w]);
        facts_problem *p = resolved(text);
        uint8_t *bits = made(p, FACTS_ARRAY_BLOCK_MASK);
        cr_assert_eq(p->array[FACTS_ARRAY_BLOCK_MASK].count, 2 * 3 * 3 * 2);
        int kept = 0, empty = 0;
        for (int64_t line = 0; line < 18; line++) {
            int here = 0;
            for (int64_t key = 0; key < 12; key++) {
                bool bit = bits[line * 2 + key / 8] >> (key % 8) & 1;
                cr_expect_eq(bit, facts_tile_kept(p, line / 9, line / 3 % 3, line % 3, key));
                cr_expect(w != 1 || bit == (key != 0));
                here += bit;
            }
            kept += here;
            empty += here == 0;
        }
        cr_expect(kept > 60 && kept < 18 * 12 && empty == (w == 2 ? 6 : 0), "%s: %d kept, %d empty",
                  words[w], kept, empty);
        free(bits), free(p);
    }
}

Test(arrays, angles_rise_with_the_row)
{
    facts_problem *p = resolved("s=5/9 d=8 rope=1");
    float *q = made(p, FACTS_ARRAY_ROPE_Q), *k = made(p, FACTS_ARRAY_ROPE_K);
    cr_expect(p->array[FACTS_ARRAY_ROPE_Q].count == 40 && p->array[FACTS_ARRAY_ROPE_K].count == 72);
    cr_expect(q[0] == 0.0f && q[8] == 1.0f && q[3 * 8 + 4] == 3.0f &&
              fabsf(k[8 + 1] - 0.1f) < 1e-6f && k[8 + 1] == k[8 + 5]);
    free(q), free(k), free(p);
}

Test(arrays, and_tensors_are_the_same_on_any_number_of_threads)
{
    static const char *const texts[] = {
        "pass=bwd dtype=e4m3 scales=odd h=4/2 s=70 d=32 layout=thd padding=random",
        "h=4/2 s=20/70 d=32 paged=8 table=shared padding=random poison=nan",
        "pass=bwd dtype=mxe4m3 h=4/2 s=70 d=48",
        "rope=1 s=40 d=32 alibi=1 softmax=sink dropout=0.1 dropout_mask=1 bias=bool:bhss "
        "blockmask=random"
    };
    const int most = omp_get_max_threads();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        facts_problem *p = resolved(texts[i]);
        omp_set_num_threads(1);
        facts_storages one = stored(p);
        omp_set_num_threads(3);
        facts_storages three = stored(p);
        for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
            if (one.at[id])
                cr_expect_arr_eq(one.at[id], three.at[id],
                                 (size_t)p->tensor[id].elements *
                                     facts_dtype_bytes(p->tensor[id].dtype),
                                 "%s: tensor %d", texts[i], (int)id);
        for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
            if (p->array[id].count == 0 || p->array[id].output)
                continue;
            void *b = made(p, id);
            omp_set_num_threads(1);
            void *a = made(p, id);
            omp_set_num_threads(3);
            cr_expect_arr_eq(a, b, facts_array_bytes(&p->array[id]), "%s: %s", texts[i],
                             facts_array_words[id]);
            free(a), free(b);
        }
        freed(p, &one), freed(p, &three), free(p);
    }
    omp_set_num_threads(most);
}
