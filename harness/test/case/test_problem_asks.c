/* What a case says of bias, score modifications, sums, statistics, execution and policy arrives in
 * the problem. */
#include <criterion/criterion.h>
#include <math.h>

#include "case/keys/keys.h"
#include "case/problem/case_problem.h"
#include "numbers/fill/mod.h"

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

#define STRIDES(a, b, c, d) ((int64_t[4]){ a, b, c, d })

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

Test(asks, broadcast_inputs_have_stride_0_and_their_gradients_may_be_sums)
{
    resolves("pass=bwd b=2 h=3 s=5 d=8 stride=broadcast:k.b+v.h+do.s;sum:dk.b");
    const facts_tensor *dk = &p.tensor[FACTS_TENSOR_DK], *dv = &p.tensor[FACTS_TENSOR_DV];
    cr_expect_arr_eq(dk->stride, STRIDES(0, 8, 24, 1), 32);
    cr_expect_arr_eq(dk->dim, STRIDES(1, 3, 5, 8), 32, "a sum has extent 1");
    cr_expect_eq(dk->elements, 3 * 5 * 8);
    cr_expect_arr_eq(p.ask.dk_strides, dk->stride, 32);
    cr_expect_arr_eq(dv->dim, STRIDES(2, 3, 5, 8), 32, "not asked for: of each element");
    cr_expect_eq(dv->elements, 2 * 3 * 5 * 8);
    cr_expect_eq(p.ask.do_strides[2], 0);
    resolves(
        "pass=bwd b=2 h=3 s=5 d=8 bias=bhss dbias=1 stride=broadcast:bias.b+bias.h;sum:dbias.b");
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_BIAS].stride, STRIDES(0, 0, 5, 1), 32);
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_DBIAS].stride, STRIDES(0, 25, 5, 1), 32);
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_DBIAS].dim, STRIDES(1, 3, 5, 5), 32);
    resolves("pass=bwd b=2 h=3 s=5 d=8 bias=1hss stride=gap:bias.s.3");
    cr_expect_eq(p.tensor[FACTS_TENSOR_BIAS].stride[2], 8);
    refuses("pass=bwd stride=sum:dq.b", "stride");
    refuses("pass=bwd layout=bs3hd stride=sum:dq.b;broadcast:q.b", "stride");
}

Test(asks, statistics_are_token_major_or_head_major_over_all_rows)
{
    resolves("b=2 h=3 s=5 d=8 want=stats stats=th1");
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_STATS].stride, STRIDES(15, 1, 3, 1), 32);
    resolves("b=2 h=3 s=5 d=8 want=stats+max stats=ht1");
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_STATS].stride, STRIDES(5, 10, 1, 1), 32);
    cr_expect_arr_eq(p.ask.stats_strides, p.tensor[FACTS_TENSOR_MAX].stride, 32);
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

Test(asks, a_named_modification_brings_its_tensors)
{
    resolves("mod=softcap:30");
    cr_expect(p.mod == FACTS_MOD_SOFTCAP && p.mod_parameter[0] == 30 &&
              !p.tensor[FACTS_TENSOR_MOD_A].present);
    cr_expect_null(p.ask.score_mod);
    resolves("mod=window:64:inf");
    cr_expect(p.mod == FACTS_MOD_WINDOW && p.mod_parameter[0] == 64 && isinf(p.mod_parameter[1]));
    resolves("b=2 h=4/2 s=5/7 d=8 mod=relpos");
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_MOD_A].dim, STRIDES(1, 4, 1, 1), 32);
    cr_expect_eq(p.tensor[FACTS_TENSOR_MOD_A].dtype, FATTN_F32);
    resolves("b=2 h=4/2 s=5/7 d=8 mod=post_scale_bias");
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_MOD_A].dim, STRIDES(1, 4, 5, 7), 32);
    cr_expect_eq(p.tensor[FACTS_TENSOR_MOD_A].dtype, FATTN_BF16);
    resolves("b=2 h=4/2 s=5/7 d=8 mod=document:3");
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_MOD_A].dim, STRIDES(2, 1, 5, 1), 32);
    cr_expect_arr_eq(p.tensor[FACTS_TENSOR_MOD_B].dim, STRIDES(2, 1, 1, 7), 32);
    refuses("s=5/7 mod=document:6", "mod");
    refuses("mod=softcap:0", "mod");
    refuses("mod=temperature:-1", "mod");
    refuses("mod=window:99999999:0", "mod");
}
