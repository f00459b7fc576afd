/* What a case says of layouts, strides, bias, score modifications, sums, statistics, execution and
 * policy arrives in the problem, and the library takes it as it is. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys/keys.h"
#include "numbers/fill/score_inputs.h"
#include "problem/case_problem.h"
#include "suites/planned_cases.h"

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
    fattn_problem full;
    cr_assert_eq(resolve(text), FACTS_RESOLVED, "%s: %s", text, error.text);
    cr_expect_eq(fattn_problem_resolve(&p.ask, &full), FATTN_OK, "%s: the library takes it: %s",
                 text, fattn_last_error());
}

static void refuses(const char *text, const char *key)
{
    cr_expect_eq(resolve(text), FACTS_BAD_PROBLEM, "%s", text);
    cr_expect(strncmp(error.text, key, strlen(key)) == 0 && error.text[strlen(key)] == ':',
              "%s: %s", text, error.text);
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

/* Of b=2 h=3 s=5 d=8, unless the text says others. */
static const struct {
    const char *text;
    facts_tensor_id id;
    int64_t dim[4], stride[4], elements, first; /* 0: not looked at */
} tensors[] = {
    { "k=bs3hd", FACTS_TENSOR_K, .elements = 2 * 5 * 3 * 3 * 8, .first = 3 * 8 },
    { "stride=gap:q.s.4+k.h.16+v.b.24", FACTS_TENSOR_Q, .stride = { 5 * 28, 8, 28, 1 } },
    { "stride=gap:q.s.4+k.h.16+v.b.24", FACTS_TENSOR_K, .stride = { 5 * 72, 24, 72, 1 } },
    { "stride=gap:q.s.4+k.h.16+v.b.24", FACTS_TENSOR_V, { 0 }, { 144, 8, 24, 1 }, 288, 0 },
    { "pass=bwd stride=gap:16", FACTS_TENSOR_DV, .stride = { 5 * 40, 8, 40, 1 } },
    { "pass=bwd stride=gap:16", FACTS_TENSOR_STATS, .stride = { 15, 5, 1, 1 } }, /* no tokens */
    { "stride=broadcast:k.b+v.h", FACTS_TENSOR_K, { 0 }, { 0, 8, 24, 1 }, 5 * 24, 0 },
    { "stride=broadcast:k.b+v.h", FACTS_TENSOR_V, .stride = { 40, 0, 8, 1 } },
    { "stride=perm:hbsd;offset:8", FACTS_TENSOR_Q, { 0 }, { 40, 80, 8, 1 }, 240 + 8, 8 },
    { "stride=perm:hbsd;offset:8", FACTS_TENSOR_O, .stride = { 40, 80, 8, 1 } }, /* as Q's */
    { "layout=bs3hd stride=gap:16;offset:8", FACTS_TENSOR_V, .first = 8 + 2 * 24 },
    { "want=stats+max stats=bsh1", FACTS_TENSOR_STATS, .stride = { 15, 1, 3, 1 } },
    { "want=stats stats=th1", FACTS_TENSOR_STATS, .stride = { 15, 1, 3, 1 } },
    { "want=stats+max stats=ht1", FACTS_TENSOR_MAX, .stride = { 5, 10, 1, 1 } },
    /* A sum has extent 1; a gradient that is not asked for as one is of each element. */
    { "pass=bwd stride=broadcast:k.b+v.h+do.s;sum:dk.b",
      FACTS_TENSOR_DK,
      { 1, 3, 5, 8 },
      { 0, 8, 24, 1 },
      3 * 5 * 8,
      0 },
    { "pass=bwd stride=broadcast:k.b+v.h;sum:dk.b",
      FACTS_TENSOR_DV,
      { 2, 3, 5, 8 },
      .elements = 2 * 3 * 5 * 8 },
    { "pass=bwd stride=broadcast:do.s", FACTS_TENSOR_DO, .stride = { 24, 8, 0, 1 } },
    { "pass=bwd bias=bhss dbias=1 stride=broadcast:bias.b+bias.h;sum:dbias.b", FACTS_TENSOR_BIAS,
      .stride = { 0, 0, 5, 1 } },
    { "pass=bwd bias=bhss dbias=1 stride=broadcast:bias.b+bias.h;sum:dbias.b",
      FACTS_TENSOR_DBIAS,
      { 1, 3, 5, 5 },
      { 0, 25, 5, 1 },
      0,
      0 },
    { "pass=bwd bias=1hss stride=gap:bias.s.3", FACTS_TENSOR_BIAS, .stride = { 120, 40, 8, 1 } },
    { "h=4/2 s=5/7 mod=relpos", FACTS_TENSOR_MOD_A, { 1, 4, 1, 1 } },
    { "h=4/2 s=5/7 mod=post_scale_bias", FACTS_TENSOR_MOD_A, { 1, 4, 5, 7 } },
    { "h=4/2 s=5/7 mod=document:3", FACTS_TENSOR_MOD_A, { 2, 1, 5, 1 } },
    { "h=4/2 s=5/7 mod=document:3", FACTS_TENSOR_MOD_B, { 2, 1, 1, 7 } },
};

Test(problem, dims_strides_and_starts_are_as_the_words_say)
{
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const char *h = strstr(tensors[i].text, "h=4") ? "" : "h=3 s=5 ";
        char text[160];
        snprintf(text, sizeof text, "b=2 %sd=8 %s", h, tensors[i].text);
        resolves(text);
        const facts_tensor *t = &p.tensor[tensors[i].id];
        cr_assert(t->present, "%s", text);
        if (tensors[i].dim[0])
            cr_expect_arr_eq(t->dim, tensors[i].dim, 32, "%s", text);
        if (tensors[i].stride[3])
            cr_expect_arr_eq(t->stride, tensors[i].stride, 32, "%s", text);
        if (tensors[i].elements)
            cr_expect_eq(t->elements, tensors[i].elements, "%s", text);
        cr_expect_eq(t->first, tensors[i].first, "%s", text);
    }
    resolves("b=2 h=3 s=5 d=8 stride=misaligned:v.2");
    cr_expect_eq(p.tensor[FACTS_TENSOR_V].skew_bytes, 2);
    resolves("b=1 h=1 s=5 d=8 stride=size1:wild");
    cr_expect(p.tensor[FACTS_TENSOR_Q].stride[0] > 1000000 &&
              p.tensor[FACTS_TENSOR_Q].elements == 40);
    refuses("pass=bwd stride=sum:dq.b", "stride");
    refuses("pass=bwd layout=bs3hd stride=sum:dq.b;broadcast:q.b", "stride");
}

Test(problem, statistics_are_asked_or_read)
{
    resolves("b=2 h=3 s=5 d=8 want=stats+max stats=bsh1");
    cr_expect_arr_eq(p.ask.stats_strides, p.tensor[FACTS_TENSOR_MAX].stride, 32);
    cr_expect(p.tensor[FACTS_TENSOR_MAX].dtype == FATTN_F32 &&
              !p.tensor[FACTS_TENSOR_SUM_EXP].present);
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
        int64_t *const asked[] = { ask.do_strides, ask.stats_strides, ask.o_strides,
                                   ask.dq_strides, ask.dk_strides,    ask.dv_strides };
        const int64_t *const found[] = { out.do_strides, out.stats_strides, out.o_strides,
                                         out.dq_strides, out.dk_strides,    out.dv_strides },
                             *const wanted[] = { p.ask.do_strides, p.ask.stats_strides,
                                                 p.ask.o_strides,  p.ask.dq_strides,
                                                 p.ask.dk_strides, p.ask.dv_strides };
        const int count = strstr(text, "bs3hd") ? 3 : 6; /* packed gradients are asked for */
        for (int k = 0; k < count; k++)
            memset(asked[k], 0, sizeof ask.o_strides);
        cr_assert_eq(fattn_problem_resolve(&ask, &out), FATTN_OK, "%s: %s", text,
                     fattn_last_error());
        if (strstr(text, "wild"))
            continue; /* outputs of the case are wild too */
        for (int k = 0; k < 6; k++)
            if (k != 2 || !strstr(text, "gap"))
                cr_expect_arr_eq(found[k], wanted[k], 32, "%s: %d", text, k);
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
    static const char *const zero[] = { "b=4 s=100 padding=zero:q", "b=4 s=100 padding=zero:kv",
                                        "b=4 s=100 padding=zero:both" };
    for (int kind = 0; kind < 3; kind++) {
        resolves(zero[kind]);
        int no_q = 0, no_kv = 0;
        for (int b = 0; b < 4; b++) {
            no_q += p.len_q[b] == 0;
            no_kv += p.len_kv[b] == 0;
        }
        cr_expect(no_q == (kind != 1) && no_kv == (kind != 0), "%s: %d %d", zero[kind], no_q,
                  no_kv);
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

Test(asks, a_bias_has_the_shape_of_its_word)
{
    static const struct {
        const char *word;
        int64_t dim[4];
    } shapes[] = { { "11ss", { 1, 1, 5, 7 } }, { "1hss", { 1, 4, 5, 7 } },
                   { "b1ss", { 2, 1, 5, 7 } }, { "bhss", { 2, 4, 5, 7 } },
                   { "111s", { 1, 1, 1, 7 } }, { "b11s", { 2, 1, 1, 7 } },
                   { "bh1s", { 2, 4, 1, 7 } }, { "1h1s", { 1, 4, 1, 7 } } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char text[128];
        snprintf(text, sizeof text, "pass=bwd dtype=f16 b=2 h=4/2 s=5/7 d=8 bias=%s dbias=1",
                 shapes[i].word);
        resolves(text);
        const facts_tensor *bias = &p.tensor[FACTS_TENSOR_BIAS],
                           *dbias = &p.tensor[FACTS_TENSOR_DBIAS];
        cr_expect(bias->present && dbias->present && p.ask.has_bias && p.ask.dbias);
        cr_expect_arr_eq(bias->dim, shapes[i].dim, 32, "%s", text);
        cr_expect_arr_eq(p.ask.bias_dim, shapes[i].dim, 32);
        cr_expect_arr_eq(dbias->dim, shapes[i].dim, 32);
        cr_expect_eq(bias->dtype, FATTN_F16);
        cr_expect_eq(bias->elements, bias->dim[0] * bias->dim[1] * bias->dim[2] * bias->dim[3]);
        cr_expect_arr_eq(p.ask.bias_strides, bias->stride, 32);
        cr_expect_arr_eq(p.ask.dbias_strides, dbias->stride, 32);
    }
    resolves("bias=1hss bias_dtype=f32 bias_fill=window:3:inf");
    cr_expect(p.tensor[FACTS_TENSOR_BIAS].dtype == FATTN_F32 && p.ask.bias_dtype == FATTN_F32);
    cr_expect(p.bias_fill == FACTS_BIAS_WINDOW && p.bias_parameter[0] == 3 &&
              isinf(p.bias_parameter[1]));
    resolves("bias=1hss bias_fill=finite_min");
    cr_expect_eq(p.bias_fill, FACTS_BIAS_FINITE_MIN);
    refuses("pass=bwd dbias=1", "dbias");
    refuses("bias=1hss dbias=1", "dbias");
}

Test(asks, one_length_may_stand_for_every_batch_entry)
{
    resolves("b=3 s=100/200 padding=random lens_shape=bcast seed=5");
    cr_expect(p.ask.len_broadcast && p.ask.padding && p.has_lengths);
    cr_expect(p.len_q[0] == p.len_q[1] && p.len_q[1] == p.len_q[2] && p.len_kv[0] == p.len_kv[2]);
    resolves("b=3 s=100/200 lens=40/60 lens_shape=bcast");
    cr_expect(p.len_q[2] == 40 && p.len_kv[2] == 60);
    resolves("b=3 s=100 padding=zero:kv lens_shape=bcast");
    cr_expect(p.len_kv[0] == 0 && p.len_kv[2] == 0 && p.len_q[0] > 0);
    refuses("b=3 lens=40x3 lens_shape=bcast", "lens");
    refuses("b=3 lens_shape=bcast", "lens_shape");
    cr_expect_eq(resolve("b=4097 lens=40 lens_shape=bcast"), FACTS_NOT_IMPLEMENTED);
}

Test(asks, how_the_call_is_made)
{
    static const char *const graphs[] = { "exec=graph", "exec=graph_update", "exec=graph_native" };
    for (size_t i = 0; i < 3; i++) {
        resolves(graphs[i]);
        cr_expect(p.ask.capture, "%s", graphs[i]);
    }
    resolves("exec=override_shape repeat=5");
    cr_expect(p.exec == FACTS_EXEC_OVERRIDE_SHAPE && !p.ask.capture && p.repeat == 5);
    resolves("pass=bwd deterministic=form");
    cr_expect(p.ask.deterministic && p.ask.determinism == FATTN_DETERMINISM_FORM);
    resolves("pass=bwd deterministic=pin");
    cr_expect(p.ask.deterministic && p.ask.determinism == FATTN_DETERMINISM_PIN);
    resolves("pass=bwd deterministic=1");
    cr_expect(p.ask.deterministic && p.ask.determinism == FATTN_DETERMINISM_AUTO);
    resolves("policy=math");
    cr_expect_eq(p.policy, FACTS_POLICY_MATH);
    resolves("");
    cr_expect(p.policy == FACTS_POLICY_CUDNN && p.mod == FACTS_MOD_NONE && !p.ask.capture &&
              !p.ask.has_bias);
}

Test(asks, a_named_modification_has_its_parameters_and_bounds)
{
    resolves("mod=softcap:30");
    cr_expect(p.mod == FACTS_MOD_SOFTCAP && p.mod_parameter[0] == 30 &&
              !p.tensor[FACTS_TENSOR_MOD_A].present && !p.ask.score_mod);
    resolves("mod=window:64:inf");
    cr_expect(p.mod == FACTS_MOD_WINDOW && p.mod_parameter[0] == 64 && isinf(p.mod_parameter[1]));
    resolves("mod=post_scale_bias");
    cr_expect_eq(p.tensor[FACTS_TENSOR_MOD_A].dtype, FATTN_BF16);
    resolves("mod=relpos");
    cr_expect_eq(p.tensor[FACTS_TENSOR_MOD_A].dtype, FATTN_F32);
    refuses("s=5/7 mod=document:6", "mod");
    refuses("mod=softcap:0", "mod");
    refuses("mod=temperature:-1", "mod");
    refuses("mod=window:99999999:0", "mod");
}
