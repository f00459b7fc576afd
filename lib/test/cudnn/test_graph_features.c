/* What is added to the plain graphs, put to a real cuDNN for a described H100: bias, score_mod,
 * ways to repeat, zero strides, Stats in any order. Every version from 9.8 to 9.28 that was asked
 * offers all of it with the same engines; some of each is compiled here. */
#include "fattn/score_mod.h"
#include "support/asked.h"

TestSuite(graph_features, .init = open_context, .fini = close_context, .timeout = 300);

/* `start`: "yes", or how the refusal starts. */
static void expect_answer(const char *name, fattn_problem p, const char *start)
{
    const char *said = answer(p), *got = *said >= '0' && *said <= '9' ? "yes" : said;
    cr_expect_eq(strncmp(got, start, strlen(start)), 0, "%s: got '%s', want '%s'", name, got,
                 start);
}

#define PROBLEM(...)                                                                               \
    ((fattn_problem){                                                                              \
        .batch = 2, .heads_q = 8, .seq_q = 512, .seq_kv = 512, .dim_qk = 128, __VA_ARGS__ })
#define BACKWARD(...) PROBLEM(.pass = FATTN_BACKWARD, __VA_ARGS__)
enum { BATCH_STRIDE = 512 * 1024, HEAD_STRIDE = 128, TOKEN_STRIDE = 1024 };

/* ---- bias
 * -------------------------------------------------------------------------------------------------------------------------
 */

Test(graph_features, a_bias_may_be_broadcast_in_every_dimension)
{
    for (int bits = 0; bits < 16; bits++) {
        const int64_t dim[4] = { bits & 1 ? 2 : 1, bits & 2 ? 8 : 1, bits & 4 ? 512 : 1,
                                 bits & 8 ? 512 : 1 };
        fattn_problem p = PROBLEM(.has_bias = 1);
        memcpy(p.bias_dim, dim, sizeof dim);
        expect_answer("forward", p, "yes");
        p.pass = FATTN_BACKWARD;
        expect_answer("backward", p, "yes");
    }
}

Test(graph_features, gradients_of_a_bias_are_bf16_or_f16_and_row_major)
{
    const char *f32 = "unsupported: reduction output datatype in flash bprop should be fp16/bf16";
    expect_answer("bf16", BACKWARD(.has_bias = 1, .dbias = 1), "yes");
    expect_answer("f16", BACKWARD(.has_bias = 1, .dbias = 1, .dtype = FATTN_F16), "yes");
    expect_answer("f32", BACKWARD(.has_bias = 1, .dbias = 1, .bias_dtype = FATTN_F32), f32);
    const int64_t row = 520, head = 512 * row;
    expect_answer("gaps",
                  BACKWARD(.has_bias = 1, .dbias = 1, .dbias_strides = { 8 * head, head, row, 1 }),
                  "unsupported: dbias layout should be row major");
    for (int bits = 0; bits < 4; bits++)
        expect_answer("what we sum",
                      BACKWARD(.has_bias = 1, .dbias = 1,
                               .bias_dim = { bits & 1 ? 2 : 1, bits & 2 ? 8 : 1, 1, 512 }),
                      "yes");
}

Test(graph_features, plans_with_a_bias_compile)
{
    const size_t scores = 2 * 8 * 512 * 512;
    compile("forward", PROBLEM(.has_bias = 1, .padding = 1, .has_right = 1));
    if (!compiling_all())
        return;
    const size_t direct = compiled("dbias", BACKWARD(.has_bias = 1, .dbias = 1), NULL);
    const size_t summed = compiled(
        "dbias of 111s", BACKWARD(.has_bias = 1, .dbias = 1, .bias_dim = { 1, 1, 1, 512 }), NULL);
    cr_expect_geq(direct, 2 * scores, "the engine keeps dP");
    cr_expect_geq(summed, direct + 8 * 512 * 512 * 2,
                  "what is summed lies in the workspace, in front of the engine's");
}

/* ---- score_mod
 * --------------------------------------------------------------------------------------------------------------------
 */

typedef struct recipe {
    fattn_mod_op op;
    int inputs;
    int place; /* of the score among two inputs */
} recipe;

/* op(score), op(score, 2), op(2, score), select(op, score, -1). */
static fattn_value follow(fattn_recorder *r, fattn_value score, void *user)
{
    const recipe *how = user;
    const fattn_value two = fattn_record_constant(r, 2), a = how->place == 0 ? score : two,
                      b = how->place == 0 ? two : score;
    if (how->op == FATTN_MOD_SELECT)
        return fattn_record(r, how->op, score, score, two);
    const fattn_value x = fattn_record(r, how->op, a, b, 0);
    if (how->op >= FATTN_MOD_EQ && how->op <= FATTN_MOD_NOT)
        return fattn_record(r, FATTN_MOD_SELECT, x, score, fattn_record_constant(r, -1));
    return x;
}

Test(graph_features, every_operation_of_a_score_mod_is_offered_forward_and_backward)
{
#define AS_RECIPE(symbol, value, word, count) { FATTN_MOD_##symbol, (count), 0 },
    static const recipe all[] = { FATTN_MOD_OP_LIST(AS_RECIPE) };
#undef AS_RECIPE
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int place = 0; place < (all[i].inputs == 2 ? 2 : 1); place++) {
            recipe how = all[i];
            how.place = place;
            fattn_score_mod *mod;
            cr_assert_eq(fattn_score_mod_create(&mod, follow, NULL, &how), FATTN_OK, "%s",
                         fattn_last_error());
            char name[48];
            snprintf(name, sizeof name, "operation %d, score at %d", (int)how.op, place);
            expect_answer(name, PROBLEM(.score_mod = mod), "yes");
            expect_answer(name, BACKWARD(.score_mod = mod), "yes");
            fattn_score_mod_destroy(mod);
        }
    }
}

static const int64_t whole_bias[4] = { 1, 8, 512, 512 };

static fattn_status ready(fattn_score_mod **out, int which)
{
    switch (which) {
    case 0:
        return fattn_score_mod_causal(out);
    case 1:
        return fattn_score_mod_window(out, 40, 3);
    case 2:
        return fattn_score_mod_softcap(out, 30);
    case 3:
        return fattn_score_mod_temperature(out, 2);
    case 4:
        return fattn_score_mod_prefix_lm(out, 64);
    case 5:
        return fattn_score_mod_post_scale_bias(out, FATTN_BF16, whole_bias, NULL);
    case 6:
        return fattn_score_mod_relative_position(out, 8);
    case 7:
        return fattn_score_mod_document(out, 2, 512, 512);
    default:
        return FATTN_INTERNAL;
    }
}

Test(graph_features, every_ready_modification_is_offered)
{
    fattn_score_mod *mod;
    for (int i = 0; ready(&mod, i) == FATTN_OK; i++) {
        char name[32];
        snprintf(name, sizeof name, "ready %d", i);
        expect_answer(name, PROBLEM(.score_mod = mod), "yes");
        expect_answer(name, BACKWARD(.score_mod = mod), "yes");
        expect_answer(
            name,
            BACKWARD(.score_mod = mod, .padding = 1, .has_right = 1, .has_bias = 1, .heads_k = 2),
            "yes");
        fattn_score_mod_destroy(mod);
    }
}

Test(graph_features, plans_with_a_score_mod_compile)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_softcap(&mod, 30), FATTN_OK);
    compile("softcap", PROBLEM(.score_mod = mod));
    compile("softcap backward", BACKWARD(.score_mod = mod));
    fattn_score_mod_destroy(mod);
    cr_assert_eq(fattn_score_mod_document(&mod, 2, 512, 512), FATTN_OK);
    compile("document", PROBLEM(.score_mod = mod));
    fattn_score_mod_destroy(mod);
}

Test(graph_features, tensors_that_are_added_last_have_gradients_and_others_a_reason)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_post_scale_bias(&mod, FATTN_BF16, whole_bias, NULL), FATTN_OK);
    compile("gradient of a bias", BACKWARD(.score_mod = mod, .mod_gradients = 1));
    fattn_score_mod_destroy(mod);
    cr_assert_eq(fattn_score_mod_relative_position(&mod, 8), FATTN_OK);
    expect_answer("slopes", BACKWARD(.score_mod = mod, .mod_gradients = 1),
                  "unsupported: mod_gradients: tensor \"slope\" is not added");
    fattn_score_mod_destroy(mod);
}

/* A saved plan's tensors are bound again when it is read. */
Test(graph_features, a_plan_with_a_score_mod_is_saved_and_loaded_with_an_equal_recording)
{
    fattn_score_mod *mods[2];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(fattn_score_mod_relative_position(&mods[i], 8), FATTN_OK);
    fattn_problem p = PROBLEM(.struct_size = sizeof p, .score_mod = mods[0]);
    fattn_plan *plan;
    char *bytes;
    size_t count;
    cr_assert_eq(fattn_plan_create(&plan, context, &p, NULL), FATTN_OK, "%s", fattn_last_error());
    cr_assert_eq(fattn_plan_save(plan, &bytes, &count), FATTN_OK, "%s", fattn_last_error());
    fattn_plan_destroy(plan);
    p.score_mod = mods[1];
    cr_expect_eq(fattn_plan_load(&plan, context, &p, bytes, count), FATTN_OK, "%s",
                 fattn_last_error());
    fattn_plan_destroy(plan);
    p.score_mod = NULL;
    cr_expect_eq(fattn_plan_load(&plan, context, &p, bytes, count), FATTN_BAD_PLAN);
    fattn_free(bytes);
    for (int i = 0; i < 2; i++)
        fattn_score_mod_destroy(mods[i]);
}

/* ---- repeating
 * ---------------------------------------------------------------------------------------------------------------------
 */

Test(graph_features, a_pin_is_the_one_configuration_that_a_decision_reports)
{
    fattn_problem p = BACKWARD(.deterministic = 1, .determinism = FATTN_DETERMINISM_PIN);
    p.struct_size = sizeof p;
    if (version < 92500) {
        expect_answer(
            "too old", p,
            "unsupported: deterministic: no pin of an engine is known to repeat on sm_90");
        p.guards_off = 1; /* nor is the form of the graph taken in its place */
        expect_answer(
            "too old, guards off", p,
            "unsupported: deterministic: no pin of an engine is known to repeat on sm_90");
        return;
    }
    fattn_decision *decision;
    cr_assert_eq(fattn_decide(&decision, context, &p, FATTN_ASK_A), FATTN_OK);
    cr_assert(fattn_decision_supported(decision), "%s", fattn_decision_text(decision));
    cr_assert_eq(fattn_decision_engine_count(decision, FATTN_MODE_A), 1);
    const fattn_engine *engine = fattn_decision_engine(decision, FATTN_MODE_A, 0);
    cr_expect_eq(engine->index, 6);
    cr_expect_eq(engine->knob_count, 6);
    fattn_decision_destroy(decision);
    const size_t linear = compiled("pin", p, NULL);
    p.determinism = FATTN_DETERMINISM_FORM;
    cr_expect_lt(linear, compiled("form", p, NULL));
}

/* ---- zero strides and orders
 * ---------------------------------------------------------------------------------------------------------
 */

static void strides_without(int axes, int64_t out[4])
{
    const int64_t dense[4] = { BATCH_STRIDE, HEAD_STRIDE, TOKEN_STRIDE, 1 };
    for (int axis = 0; axis < 4; axis++)
        out[axis] = axes >> axis & 1 ? 0 : dense[axis];
}

Test(graph_features, every_input_may_have_stride_0_in_b_h_and_s)
{
    for (int axes = 1; axes < 8; axes++) {
        fattn_problem p = BACKWARD(.has_attn_scale = 0);
        int64_t (*const inputs[])[4] = { &p.q_strides, &p.k_strides, &p.v_strides, &p.do_strides };
        for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
            memset(*inputs[i], 0, sizeof *inputs[i]);
            strides_without(axes, *inputs[i]);
            fattn_problem forward = p;
            forward.pass = FATTN_FORWARD;
            expect_answer("forward", forward, "yes");
            expect_answer("backward", p, "yes");
            memset(*inputs[i], 0, sizeof *inputs[i]);
        }
        for (size_t i = 0; i < 3; i++)
            strides_without(axes, *inputs[i]);
        memcpy(p.dq_strides, p.q_strides, sizeof p.dq_strides);
        memcpy(p.dk_strides, p.q_strides, sizeof p.dk_strides);
        memcpy(p.dv_strides, p.q_strides, sizeof p.dv_strides);
        expect_answer("summed", p, "yes");
    }
}

Test(graph_features, lengths_may_be_one_for_every_batch_entry)
{
    fattn_problem p =
        PROBLEM(.padding = 1, .len_broadcast = 1, .has_right = 1, .align = FATTN_BOTTOM_RIGHT);
    expect_answer("forward", p, "policy: rule one-length-for-all");
    p.guards_off = 1; /* offered, and each entry's length read from behind the one that is there */
    expect_answer("forward", p, "yes");
    compile("forward", p);
    p.pass = FATTN_BACKWARD;
    expect_answer("backward", p, "yes");
}

Test(graph_features, stats_may_lie_in_any_order)
{
    static const int64_t orders[][4] = { { 4096, 512, 1, 1 }, { 4096, 1, 8, 1 },
                                         { 8, 1, 16, 1 },     { 512, 1024, 1, 1 },
                                         { 1, 1024, 2, 1 },   { 16384, 2048, 4, 1 } };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        fattn_problem p = PROBLEM(.outputs = FATTN_WANT_STATS, .guards_off = 1);
        memcpy(p.stats_strides, orders[i], sizeof p.stats_strides);
        expect_answer("forward", p, "yes");
        p.pass = FATTN_BACKWARD;
        expect_answer("backward", p, "yes");
    }
}
