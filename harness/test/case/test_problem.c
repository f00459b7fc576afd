#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/keys/keys.h"
#include "case/problem/case_problem.h"
#include "case/suites/planned_cases.h"

static facts_problem p;
static facts_error error;

static facts_resolve_status resolve(const char *text)
{
    facts_case c;
    cr_assert(facts_case_parse(&c, text, &error), "%s: %s", text, error.text);
    return facts_problem_resolve(&p, &c, &error);
}

static void resolves(const char *text)
{
    cr_assert_eq(resolve(text), FACTS_RESOLVED, "%s: %s", text, error.text);
}

static int64_t index_of(const facts_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return t->first + b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d * t->stride[3];
}

/* The same by hand: a mixed-radix number whose digits are the axes of the word; `slice` is the
 * digit of 2 or 3. */
static int64_t by_hand(const char *word, const int64_t dim[4], const int64_t at[4], int slice)
{
    int64_t index = 0;
    for (; *word != '\0' && *word != '_'; word++) {
        const char *place = strchr("bhsd", *word);
        index = place != NULL ? index * dim[place - "bhsd"] + at[place - "bhsd"]
                              : index * (*word - '0') + slice;
    }
    return index;
}

static void check_tensor(facts_tensor_id id, const char *word, int slice, unsigned char *taken)
{
    const facts_tensor *t = &p.tensor[id];
    int64_t at[4];
    for (at[0] = 0; at[0] < t->dim[0]; at[0]++)
        for (at[1] = 0; at[1] < t->dim[1]; at[1]++)
            for (at[2] = 0; at[2] < t->dim[2]; at[2]++)
                for (at[3] = 0; at[3] < t->dim[3]; at[3]++) {
                    int64_t index = index_of(t, at[0], at[1], at[2], at[3]);
                    cr_assert_eq(index, by_hand(word, t->dim, at, slice), "%s tensor %d", word,
                                 (int)id);
                    cr_assert(index >= 0 && index < t->elements && !taken[index],
                              "%s tensor %d: outside or twice", word, (int)id);
                    taken[index] = 1;
                }
}

static void check_three(const char *text, const char *const word[3], const facts_tensor_id id[3])
{
    unsigned char taken[3][4096] = { { 0 } };
    resolves(text);
    for (int i = 0; i < 3; i++) {
        int packs = strchr(word[i], '3') != NULL ? 3 : strchr(word[i], '2') != NULL ? 2 : 1;
        int owner = packs == 1 ? i : 3 - packs;
        cr_expect_eq(p.tensor[id[i]].shares, owner == i ? 0 : 1 + (int32_t)id[owner], "%s", text);
        cr_assert_leq(p.tensor[id[i]].elements, 4096);
        check_tensor(id[i], word[i], packs == 1 ? 0 : i - owner, taken[owner]);
        int64_t all = 0;
        for (int64_t k = 0; k < p.tensor[id[i]].elements; k++)
            all += taken[owner][k];
        cr_expect(i - owner + 1 < packs || all == p.tensor[id[i]].elements,
                  "%s: a dense storage has no holes", text);
    }
}

static const facts_tensor_id inputs[3] = { FACTS_TENSOR_Q, FACTS_TENSOR_K, FACTS_TENSOR_V };
static const facts_tensor_id gradients[3] = { FACTS_TENSOR_DQ, FACTS_TENSOR_DK, FACTS_TENSOR_DV };

Test(problem, every_layout_puts_every_element_where_its_word_says)
{
    static const char *const one[] = { "bshd", "sbhd", "bhsd", "bs3hd", "sb3hd", "bsh3d", "sbh3d" };
    static const char *const two[][2] = { { "bshd", "bs2hd" }, { "sbhd", "sb2hd" },
                                          { "bshd", "bsh2d" }, { "sbhd", "sbh2d" },
                                          { "sbhd", "bshd" },  { "bhsd", "bshd" },
                                          { "bshd", "bhsd" },  { "bhsd", "sb2hd" } };
    char text[256];
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        snprintf(text, sizeof text, "pass=bwd b=2 h=3 s=5 d=8 layout=%s", one[i]);
        check_three(text, (const char *const[]){ one[i], one[i], one[i] }, inputs);
        check_three(text, (const char *const[]){ one[i], one[i], one[i] }, gradients);
    }
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        snprintf(text, sizeof text, "pass=bwd b=2 h=6/3 s=5/7 d=8 layout=%s_%s", two[i][0],
                 two[i][1]);
        check_three(text, (const char *const[]){ two[i][0], two[i][1], two[i][1] }, inputs);
        check_three(text, (const char *const[]){ two[i][0], two[i][1], two[i][1] }, gradients);
    }
    check_three("pass=bwd b=2 h=6/3/2 s=5/7 d=8/16 q=bhsd k=sbhd v=bshd",
                (const char *const[]){ "bhsd", "sbhd", "bshd" }, inputs);
    check_three("pass=bwd b=2 h=3 s=5 d=8 dqkv=sbh3d",
                (const char *const[]){ "sbh3d", "sbh3d", "sbh3d" }, gradients);
    check_three("pass=bwd b=2 h=3 s=5/7 d=8 layout=bhsd dqkv=sbhd_bs2hd",
                (const char *const[]){ "sbhd", "bs2hd", "bs2hd" }, gradients);
}

Test(problem, a_slice_of_a_packed_storage_may_stand_alone)
{
    resolves("b=2 h=3 s=5 d=8 k=bs3hd");
    cr_expect_eq(p.tensor[FACTS_TENSOR_K].shares, 0);
    cr_expect_eq(p.tensor[FACTS_TENSOR_K].first, 3 * 8, "the second of three");
    cr_expect_eq(p.tensor[FACTS_TENSOR_K].elements, 2 * 5 * 3 * 3 * 8);
}

Test(problem, gaps_offsets_orders_and_broadcasts_move_addresses_as_they_say)
{
    resolves("b=2 h=3 s=5 d=8 stride=gap:q.s.4+k.h.16+v.b.24");
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_Q].stride, ((int64_t[4]){ 5 * 28, 8, 28, 1 }), 32);
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_K].stride, ((int64_t[4]){ 5 * 72, 24, 72, 1 }), 32);
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_V].stride, ((int64_t[4]){ 144, 8, 24, 1 }), 32);
    cr_expect_eq(p.tensor[FACTS_TENSOR_V].elements, 288);
    resolves("pass=bwd b=2 h=3 s=5 d=8 stride=gap:16");
    cr_expect_eq(p.tensor[FACTS_TENSOR_DV].stride[2], 24 + 16);
    cr_expect_eq(p.tensor[FACTS_TENSOR_STATS].stride[2], 1, "statistics are no tokens");
    resolves("b=2 h=3 s=5 d=8 stride=broadcast:k.b+v.h");
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_K].stride, ((int64_t[4]){ 0, 8, 24, 1 }), 32);
    cr_expect_eq(p.tensor[FACTS_TENSOR_K].elements, 5 * 24);
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_V].stride, ((int64_t[4]){ 40, 0, 8, 1 }), 32);
    resolves("b=2 h=3 s=5 d=8 stride=perm:hbsd;offset:8;misaligned:v.2");
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_Q].stride, ((int64_t[4]){ 40, 80, 8, 1 }), 32);
    cr_expect_eq(p.tensor[FACTS_TENSOR_Q].first, 8);
    cr_expect_eq(p.tensor[FACTS_TENSOR_Q].elements, 240 + 8);
    cr_expect_eq(p.tensor[FACTS_TENSOR_V].skew_bytes, 2);
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_O].stride, p.tensor[FACTS_TENSOR_Q].stride, 32,
                     "O follows Q's order");
    cr_expect_eq(p.tensor[FACTS_TENSOR_O].first, 0);
    resolves("b=1 h=1 s=5 d=8 stride=size1:wild");
    cr_expect_gt(p.tensor[FACTS_TENSOR_Q].stride[0], 1000000);
    cr_expect_eq(p.tensor[FACTS_TENSOR_Q].elements, 40);
    resolves("b=2 h=3 s=5 d=8 layout=bs3hd stride=gap:16;offset:8");
    cr_expect_eq(p.tensor[FACTS_TENSOR_V].stride[2], 3 * 24 + 16);
    cr_expect_eq(p.tensor[FACTS_TENSOR_V].first, 8 + 2 * 24);
}

Test(problem, statistics_have_their_own_order)
{
    resolves("b=2 h=3 s=5 d=8 want=stats+max stats=bsh1");
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_STATS].stride, ((int64_t[4]){ 15, 1, 3, 1 }), 32);
    cr_expect_arr_eq(p.ask.stats_strides, p.tensor[FACTS_TENSOR_MAX].stride, 32);
    cr_expect(p.tensor[FACTS_TENSOR_MAX].present && !p.tensor[FACTS_TENSOR_SUM_EXP].present);
    cr_expect_eq(p.tensor[FACTS_TENSOR_MAX].dtype, FATTN_F32);
    cr_expect_eq(p.ask.outputs, FATTN_WANT_STATS | FATTN_WANT_MAX);
    resolves("pass=bwd");
    cr_expect(p.tensor[FACTS_TENSOR_STATS].present && p.ask.outputs == 0,
              "a backward reads its statistics");
}

/* Where the case does not say how outputs lie, the library derives the same strides from the
 * inputs. */
Test(problem, outputs_follow_inputs_as_the_library_says)
{
    static const char *const texts[] = { "",
                                         "layout=bhsd",
                                         "layout=sbhd b=1",
                                         "layout=bhsd h=1 s=1/7",
                                         "layout=bs3hd",
                                         "stride=perm:hbsd",
                                         "stride=perm:q.hsbd+v.shbd",
                                         "stride=broadcast:q.b+k.h+v.s",
                                         "layout=bhsd stride=broadcast:q.h+v.b",
                                         "stride=gap:q.s.8+k.b.16",
                                         "b=1 h=1 stride=size1:wild",
                                         "d=8/16 s=3/4 h=4/2/1" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[256];
        snprintf(text, sizeof text, "pass=bwd %s", texts[i]);
        resolves(text);
        fattn_problem ask = p.ask, out = FATTN_PROBLEM_INIT;
        bool packed = strstr(text, "bs3hd") != NULL;
        memset(ask.o_strides, 0, sizeof ask.o_strides);
        memset(ask.do_strides, 0, sizeof ask.do_strides);
        memset(ask.stats_strides, 0, sizeof ask.stats_strides);
        if (!packed) {
            memset(ask.dq_strides, 0, sizeof ask.dq_strides);
            memset(ask.dk_strides, 0, sizeof ask.dk_strides);
            memset(ask.dv_strides, 0, sizeof ask.dv_strides);
        }
        bool wild = strstr(text, "wild") != NULL;
        cr_assert_eq(fattn_problem_resolve(&ask, &out), FATTN_OK, "%s: %s", text,
                     fattn_last_error());
        if (wild)
            continue; /* outputs of the case are wild too */
        if (strstr(text, "gap") == NULL)
            cr_expect_arr_eq(out.o_strides, p.ask.o_strides, 32, "%s", text);
        cr_expect_arr_eq(out.do_strides, p.ask.do_strides, 32, "%s", text);
        cr_expect_arr_eq(out.dq_strides, p.ask.dq_strides, 32, "%s", text);
        cr_expect_arr_eq(out.dk_strides, p.ask.dk_strides, 32, "%s", text);
        cr_expect_arr_eq(out.dv_strides, p.ask.dv_strides, 32, "%s", text);
        cr_expect_arr_eq(out.stats_strides, p.ask.stats_strides, 32, "%s", text);
    }
}

Test(problem, what_is_resolved_the_library_takes_as_it_is)
{
    static const char *const suites[] = { "smoke", "core", "regress" };
    char dir[4096];
    snprintf(dir, sizeof dir, "%s/cases", getenv("FACTS_SOURCE"));
    facts_cases *cases;
    cr_assert_eq(
        facts_cases_expand(&facts_attention_language, &cases, suites, 3, dir, NULL, &error), 0,
        "%s", error.text);
    for (size_t i = 0; i < facts_cases_count(cases); i++) {
        const char *name = facts_cases_at(cases, i).name;
        facts_case c;
        cr_assert(facts_case_parse(&c, name, &error) &&
                  facts_problem_resolve(&p, &c, &error) == FACTS_RESOLVED);
        fattn_problem out = FATTN_PROBLEM_INIT;
        cr_expect_eq(fattn_problem_resolve(&p.ask, &out), FATTN_OK, "%s: %s", name,
                     fattn_last_error());
        cr_expect_arr_eq(out.q_strides, p.ask.q_strides, 32);
        cr_expect(p.ask.pass == FATTN_FORWARD || memcmp(out.dk_strides, p.ask.dk_strides, 32) == 0,
                  "%s", name);
    }
    facts_cases_destroy(cases);
}

Test(problem, bands_types_and_the_rest_reach_the_question)
{
    resolves("pass=bwd dtype=f16 window=128:16 align=br scale=0.25 deterministic=1 guards=off "
             "spelling=single impl=composite engine=7 "
             "fill=stair_dn seed=18446744073 poison=inf repeat=3 grad=f32");
    cr_expect(p.ask.has_left && p.ask.window_left == 128 && p.ask.has_right &&
              p.ask.window_right == 16);
    cr_expect_eq(p.ask.align, FATTN_BOTTOM_RIGHT);
    cr_expect(p.ask.has_attn_scale && p.ask.attn_scale == 0.25);
    cr_expect(p.ask.deterministic && p.ask.guards_off);
    cr_expect_eq(p.ask.spelling, FATTN_SPELLING_SINGLE);
    cr_expect_eq(p.ask.impl, FATTN_IMPL_COMPOSITE);
    cr_expect_eq(p.ask.dtype, FATTN_F16);
    cr_expect_eq(p.tensor[FACTS_TENSOR_O].dtype, FATTN_F16);
    cr_expect_eq(p.tensor[FACTS_TENSOR_DQ].dtype, FATTN_F32);
    cr_expect(p.engine == 7 && p.fill == FACTS_FILL_STAIR_DN && p.poison == FACTS_POISON_INF &&
              p.repeat == 3);
    cr_expect_eq(p.seed, 18446744073);
    resolves("mask=causal engine=all");
    cr_expect(!p.ask.has_left && p.ask.has_right && p.ask.window_right == 0 &&
              p.ask.align == FATTN_TOP_LEFT);
    cr_expect_eq(p.engine, FACTS_ENGINE_ALL);
    resolves("mask=none");
    cr_expect(!p.ask.has_left && !p.ask.has_right && !p.ask.has_attn_scale && !p.has_lengths &&
              p.engine == FACTS_ENGINE_AUTO);
}

Test(problem, lengths_are_what_their_word_says)
{
    resolves("b=8 s=100/50 padding=random");
    cr_expect(p.has_lengths && p.ask.padding == 1);
    int different = 0;
    for (int b = 0; b < 8; b++) {
        cr_expect(p.len_q[b] >= 1 && p.len_q[b] <= 100 && p.len_kv[b] >= 1 && p.len_kv[b] <= 50);
        different += p.len_q[b] != p.len_q[0];
    }
    cr_expect_gt(different, 0);
    int32_t first = p.len_q[0], second = p.len_q[1];
    resolves("b=2 s=100/50 padding=random");
    cr_expect(p.len_q[0] == first && p.len_q[1] == second, "the seed alone decides");
    resolves("b=3 s=100/50 padding=full");
    cr_expect(p.len_q[2] == 100 && p.len_kv[2] == 50);
    resolves("b=3 s=100 padding=one");
    cr_expect(p.len_q[1] == 1 && p.len_kv[1] == 1);
    static const char *const zero[] = { "zero:q", "zero:kv", "zero:both" };
    for (int kind = 0; kind < 3; kind++) {
        char text[64];
        snprintf(text, sizeof text, "b=4 s=100 padding=%s", zero[kind]);
        resolves(text);
        int no_q = 0, no_kv = 0;
        for (int b = 0; b < 4; b++) {
            no_q += p.len_q[b] == 0;
            no_kv += p.len_kv[b] == 0;
        }
        cr_expect(no_q == (kind != 1) && no_kv == (kind != 0), "%s: %d %d", text, no_q, no_kv);
    }
    resolves("b=5 s=256 lens=256+0x3+7/256+1x4");
    cr_expect(p.len_q[0] == 256 && p.len_q[3] == 0 && p.len_q[4] == 7 && p.len_kv[4] == 1);
    resolves("b=2 s=256 lens=200+100");
    cr_expect(p.len_q[1] == 100 && p.len_kv[1] == 100, "once when both are equal");
}

Test(problem, what_nothing_implements_is_named_by_its_key)
{
    static const char *const texts[] = { "padding=full b=4097", "b=4097 layout=thd" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cr_expect_eq(resolve(texts[i]), FACTS_NOT_IMPLEMENTED, "%s", texts[i]);
        size_t letters = strcspn(texts[i], "=");
        cr_expect(strncmp(error.text, texts[i], letters) == 0 && error.text[letters] == ':',
                  "%s: %s", texts[i], error.text);
    }
}
