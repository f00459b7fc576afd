/* The composite graphs, put to a real cuDNN for a described H100: every graph of the scope is
 * recognised by the engines that ran it on a real one, and some of each kind are compiled. */
#include "fattn/score_mod.h"
#include "support/asked.h"

TestSuite(graph_decide, .init = open_context, .fini = close_context, .timeout = 600);

/* The start of the answer of each pass; NULL: not asked. */
typedef struct row {
    const char *name, *forward, *backward;
    fattn_problem problem;
    bool compiles; /* in the night */
} row;

#define FWD "2,1"
#define BWD "6,7"
#define CROSS .seq_q = 256
#define BOTTOM_RIGHT .has_right = 1, .align = FATTN_BOTTOM_RIGHT
#define WINDOW .has_right = 1, .has_left = 1, .window_left = 40
#define STRIDES(stride_b, stride_h, stride_s) { stride_b, stride_h, stride_s, 1 }
#define PACKED .padding = 1, .ragged_bits = 32
#define PAGED .padding = 1, .page_size_k = 16, .page_size_v = 16, .pages_k = 70, .pages_v = 70

#define ROW(name, forward, backward, ...)                                                          \
    { name, forward, backward, { .struct_size = 0, __VA_ARGS__ }, false }
#define NIGHT(name, forward, backward, ...)                                                        \
    { name, forward, backward, { .struct_size = 0, __VA_ARGS__ }, true }

/* In each spelling. */
static const row rows[] = {
    ROW("f32", "1", "unsupported: ", .dtype = FATTN_F32),
    ROW("max and sum_exp", FWD, NULL, .outputs = FATTN_WANT_MAX | FATTN_WANT_SUM_EXP),
    ROW("causal_br", FWD, BWD, CROSS, BOTTOM_RIGHT),
    ROW("window 40:3", FWD, BWD, WINDOW, .window_right = 3),
    ROW("padding causal_br", FWD, BWD, CROSS, .padding = 1, BOTTOM_RIGHT),
    ROW("padding window br", FWD, BWD, CROSS, .padding = 1, WINDOW, .window_right = 3,
        .align = FATTN_BOTTOM_RIGHT),
    ROW("hk != hv", FWD, BWD, .heads_k = 4, .heads_v = 2),
    ROW("keys broadcast over h", FWD, BWD, .k_strides = STRIDES(512 * 128, 0, 128)),
    ROW("repeating, grouped, padding, causal", NULL, BWD, .deterministic = 1, .heads_k = 2,
        .padding = 1, .has_right = 1),
    ROW("sink", FWD, BWD, .sink = 1, .dsink = 1, .outputs = FATTN_WANT_STATS),
    ROW("dropout", FWD, NULL, .dropout = 0.2, .outputs = FATTN_WANT_STATS),
    NIGHT("the caller's mask", FWD, BWD, .dropout_mask = 1, .outputs = FATTN_WANT_STATS),
    NIGHT("packed", "2,1", "6", PACKED, .outputs = FATTN_WANT_STATS),
    NIGHT("paged", FWD, NULL, PAGED),
};

/* As cuDNN's version spells them. */
static const row more[] = {
    ROW("dense stats", "2,1", "6", PACKED, .outputs = FATTN_WANT_STATS,
        .ragged = FATTN_RAGGED_ALL & ~FATTN_RAGGED_STATS),
    NIGHT("stats head by head", "2,1", "6", PACKED, .outputs = FATTN_WANT_STATS,
          .stats_strides = STRIDES(700, 700, 1)),
    ROW("queries alone", FWD, NULL, PACKED, .ragged = FATTN_RAGGED_Q | FATTN_RAGGED_O),
    NIGHT("packed, grouped, causal", NULL, "6", PACKED, .heads_k = 2, .has_right = 1),
    ROW("totals", NULL, "6", PACKED, .total_q = 700, .total_kv = 800),
    ROW("packed, sink", NULL, "6", PACKED, .sink = 1, .dsink = 1, .guards_off = 1),
    NIGHT("pages of V alone", FWD, NULL, .padding = 1, .page_size_v = 16, .pages_v = 70),
    ROW("pools head by head", FWD, NULL, PAGED, .k_strides = STRIDES(8 * 16 * 128, 16 * 128, 128),
        .v_strides = STRIDES(8 * 16 * 128, 16 * 128, 128)),
    ROW("paged, packed queries", FWD, NULL, PAGED, .ragged_bits = 32),
    NIGHT("packed tables", FWD, NULL, PAGED, .packed_table = 1),
    NIGHT("alibi", FWD, BWD, .alibi = 1, .has_right = 1),
    ROW("alibi without a bound", FWD, NULL, .alibi = 1),
    ROW("alibi and bias", FWD, NULL, .alibi = 1, .has_bias = 1),
    NIGHT("mask of keys", FWD, NULL, .has_bias = 1, .bias_dtype = FATTN_BOOL, .guards_off = 1,
          .bias_dim = { 2, 1, 1, 512 }),
    NIGHT("mask of scores", NULL, BWD, .has_bias = 1, .bias_dtype = FATTN_BOOL, .guards_off = 1,
          .bias_dim = { 2, 8, 512, 512 }),
    ROW("sink, max, sum_exp", FWD, NULL, .sink = 1, .outputs = FATTN_WANT_MAX | FATTN_WANT_SUM_EXP),
    ROW("dsink, padding, dropout", NULL, BWD, .sink = 1, .dsink = 1, .padding = 1, .dropout = 0.2,
        .guards_off = 1),
    NIGHT("dropout, dump, 32 bits", FWD, NULL, .dropout = 0.2, .rng_bits = 32,
          .outputs = FATTN_WANT_STATS | FATTN_WANT_RNG_DUMP),
    NIGHT("dropout, grouped", NULL, BWD, .dropout = 0.2, .heads_k = 2),
    ROW("lengths of rank 1", "unsupported: ", NULL, .padding = 1, .len_rank = 1),
    ROW("one length for all", "policy: rule one-length-for-all", NULL, .padding = 1,
        .len_broadcast = 1, BOTTOM_RIGHT),
    ROW("one length for all, guards off", FWD, BWD, .padding = 1, .len_broadcast = 1, BOTTOM_RIGHT,
        .guards_off = 1),
    NIGHT("dbias", NULL, BWD, .has_bias = 1, .dbias = 1),
    ROW("dbias of f32", NULL,
        "unsupported: reduction output datatype in flash bprop should be fp16/bf16", .has_bias = 1,
        .dbias = 1, .bias_dtype = FATTN_F32),
    ROW("dbias with gaps", NULL, "unsupported: dbias layout should be row major", .has_bias = 1,
        .dbias = 1, .dbias_strides = STRIDES(8 * 512 * 520, 512 * 520, 520)),
    NIGHT("bias, padding, causal", FWD, NULL, .has_bias = 1, .padding = 1, .has_right = 1),
    ROW("head dim 100", "unsupported: Embedding dim per head for q and k is not a multiple of 8",
        NULL, .dim_qk = 100),
    ROW("head dim 264", NULL, "unsupported: Embedding dim per head for q and k", .dim_qk = 264),
    ROW("strides off 16 bytes", "policy: rule varlen-misaligned-strides-or-base: k_strides: ", NULL,
        .k_strides = STRIDES(512 * 1028, 128, 1028)),
    ROW("strides off 16 bytes, guards off", FWD, NULL, .k_strides = STRIDES(512 * 1028, 128, 1028),
        .guards_off = 1),
    ROW("mxfp8, packed", NULL, "internal: not implemented: ragged offsets (mxfp8 backward)", PACKED,
        .dtype = FATTN_MXE4M3),
    ROW("prefix sums", "unsupported: cumulative: ", NULL, .impl = FATTN_IMPL_COMPOSITE,
        .padding = 1, .cumulative = FATTN_CUMULATIVE_Q),
    ROW("offsets in tokens", "unsupported: ragged_tokens: ", NULL, .impl = FATTN_IMPL_COMPOSITE,
        PACKED, .ragged_tokens = 1),
    ROW("tiles", "unsupported: block_mask: ", NULL, .impl = FATTN_IMPL_COMPOSITE, .block_mask = 1),
    ROW("unfused", "unsupported: unfuse_fma: ", NULL, .impl = FATTN_IMPL_COMPOSITE,
        .unfuse_fma = 1),
    ROW("rotation", "unsupported: rope: ", NULL, .impl = FATTN_IMPL_COMPOSITE, .rope = 1),
};

static void expect_row(const row *r, fattn_spelling spelling)
{
    fattn_problem p = r->problem;
    p.spelling = spelling;
    for (p.pass = FATTN_FORWARD; p.pass <= FATTN_BACKWARD; p.pass++) {
        const char *want = p.pass == FATTN_FORWARD ? r->forward : r->backward;
        if (want != NULL)
            expect_answer(r->name, p, want);
        if (want != NULL && r->compiles && compiling_all())
            compiled(r->name, p, NULL);
    }
}

Test(graph_decide, engines_recognise_every_graph)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect_row(&rows[i], FATTN_SPELLING_EXPANDED);
        expect_row(&rows[i], FATTN_SPELLING_SINGLE);
    }
    for (size_t i = 0; i < COUNT(more); i++)
        expect_row(&more[i], FATTN_SPELLING_AUTO);
    expect_answer("base 2", (fattn_problem){ .outputs = FATTN_WANT_STATS_LOG2 },
                  version < 92700 ? "unsupported: outputs: stats in base 2 need cuDNN 9.27"
                                  : "2,1");
}

Test(graph_decide, row_outputs_are_refused_where_they_would_stay_unwritten)
{
    for (uint32_t outputs = 0; outputs < 8; outputs++) {
        const bool expanded = outputs == 0 || outputs == FATTN_WANT_STATS ||
                              outputs == (FATTN_WANT_MAX | FATTN_WANT_SUM_EXP);
        fattn_problem p = { .outputs = outputs };
        expect_answer("auto", p, "2,1");
        p.spelling = FATTN_SPELLING_EXPANDED;
        expect_answer("expanded", p, expanded ? "2,1" : "policy: outputs: ");
        p.spelling = FATTN_SPELLING_SINGLE;
        expect_answer("single", p, "2,1");
    }
}

/* ---- plans
 */

/* The workspace of a plan by this engine. */
static size_t compiled_by(const char *name, fattn_problem p, int64_t engine)
{
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    options.engine = engine;
    p = completed(p);
    fattn_plan *plan = plan_with(&p, &options);
    cr_expect_eq(fattn_plan_engine(plan)->index, engine, "%s", name);
    const size_t bytes = fattn_plan_workspace_bytes(plan);
    fattn_plan_destroy(plan);
    return bytes;
}

/* Max or Sum_exp together with padding is offered from 9.20 on and engine 2 cannot be compiled for
 * it; not asked here. */
Test(graph_decide, plans_compile)
{
    const fattn_problem
        br = { .dim_qk = 64, .heads_k = 4, .heads_v = 2, .padding = 1, BOTTOM_RIGHT },
        single = { WINDOW, .align = FATTN_BOTTOM_RIGHT, .spelling = FATTN_SPELLING_SINGLE,
                   .outputs = FATTN_WANT_STATS | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP };
    if (!compiling())
        return;
    if (!is_for_newer(answer(single)))
        compiled_by("single operations", single, 2);
    for (int second = 0; second < 2; second++) {
        fattn_problem p = br;
        p.pass = FATTN_BACKWARD;
        compiled_by("grouped, padding, causal_br", p, 6 + second);
        p.pass = FATTN_FORWARD, p.has_left = 1, p.window_left = 40, p.outputs = FATTN_WANT_STATS;
        compiled_by("grouped, padding, window br", p, 1 + second);
    }
}

/* ---- layouts
 */

static void expect_both(const char *name, fattn_problem p)
{
    for (p.pass = FATTN_FORWARD; p.pass <= FATTN_BACKWARD; p.pass++)
        expect_answer(name, p, "yes");
}

Test(graph_decide, a_bias_may_be_broadcast_in_every_dimension)
{
    for (int bits = 0; bits < 16; bits++) {
        fattn_problem p = { .has_bias = 1,
                            .bias_dim = { bits & 1 ? 2 : 1, bits & 2 ? 8 : 1, bits & 4 ? 512 : 1,
                                          bits & 8 ? 512 : 1 } };
        expect_both("bias", p);
        if (bits >= 8 && bits < 12) {
            p.pass = FATTN_BACKWARD, p.dbias = 1;
            expect_answer("what we sum", p, "yes");
        }
    }
}

Test(graph_decide, stats_may_lie_in_any_order)
{
    static const int64_t orders[][4] = { { 4096, 512, 1, 1 }, { 4096, 1, 8, 1 },
                                         { 8, 1, 16, 1 },     { 512, 1024, 1, 1 },
                                         { 1, 1024, 2, 1 },   { 16384, 2048, 4, 1 } };
    for (size_t i = 0; i < COUNT(orders); i++) {
        fattn_problem p = { .outputs = FATTN_WANT_STATS, .guards_off = 1 };
        memcpy(p.stats_strides, orders[i], sizeof p.stats_strides);
        expect_both("stats", p);
    }
}

/* ---- score_mod
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

Test(graph_decide, every_operation_of_a_score_mod_is_offered)
{
#define AS_RECIPE(symbol, value, word, count) { FATTN_MOD_##symbol, (count), 0 },
    static const recipe all[] = { FATTN_MOD_OP_LIST(AS_RECIPE) };
#undef AS_RECIPE
    for (size_t i = 0; i < COUNT(all); i++)
        for (int place = 0; place < (all[i].inputs == 2 ? 2 : 1); place++) {
            recipe how = all[i];
            how.place = place;
            fattn_score_mod *mod;
            cr_assert_eq(fattn_score_mod_create(&mod, follow, NULL, &how), FATTN_OK, "%s",
                         fattn_last_error());
            char name[48];
            snprintf(name, sizeof name, "operation %d, score at %d", (int)how.op, place);
            expect_both(name, (fattn_problem){ .score_mod = mod });
            fattn_score_mod_destroy(mod);
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

/* Tensors that are added last have gradients. */
Test(graph_decide, every_ready_modification_is_offered)
{
    fattn_score_mod *mod;
    for (int i = 0; ready(&mod, i) == FATTN_OK; i++) {
        char name[32];
        snprintf(name, sizeof name, "ready %d", i);
        fattn_problem p = { .score_mod = mod };
        expect_both(name, p);
        if (i == 2 || i == 7)
            compile(name, p);
        p.pass = FATTN_BACKWARD;
        if (i == 2)
            compile(name, p);
        p.mod_gradients = i == 5 || i == 6;
        if (i == 5)
            compile(name, p);
        if (i == 6)
            expect_answer(name, p, "unsupported: mod_gradients: tensor \"slope\" is not added");
        p.mod_gradients = 0, p.padding = p.has_right = p.has_bias = 1, p.heads_k = 2;
        expect_answer(name, p, "yes");
        fattn_score_mod_destroy(mod);
    }
}

/* A saved plan's tensors are bound again when it is read. */
Test(graph_decide, a_plan_with_a_score_mod_is_loaded_with_an_equal_recording)
{
    fattn_score_mod *mods[2];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(fattn_score_mod_relative_position(&mods[i], 8), FATTN_OK);
    fattn_problem p = completed((fattn_problem){ .score_mod = mods[0] });
    fattn_plan *plan = plan_of(&p);
    char *bytes;
    size_t count;
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
 */

Test(graph_decide, a_pin_is_the_one_configuration_that_a_decision_reports)
{
    fattn_problem p = completed((fattn_problem){
        .pass = FATTN_BACKWARD, .deterministic = 1, .determinism = FATTN_DETERMINISM_PIN });
    if (version < 92500) {
        for (p.guards_off = 0; p.guards_off < 2; p.guards_off++) /* nor is the form taken instead */
            expect_answer(
                "too old", p,
                "unsupported: deterministic: no pin of an engine is known to repeat on sm_90");
        return;
    }
    fattn_decision *decision = ask(&p);
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
