/* Graphs that no case says, put to a real cuDNN for a described H100: shapes of a bias, orders of
 * Stats, operations of a score_mod, pins. harness/test/data/decide.test has the answers to cases. */
#include "fattn/score_mod.h"
#include "support/asked.h"

TestSuite(graph_decide, .init = open_context, .fini = close_context, .timeout = 600);

#define BOTTOM_RIGHT .has_right = 1, .align = FATTN_BOTTOM_RIGHT
#define WINDOW .has_right = 1, .has_left = 1, .window_left = 40
#define UNIFIED_BACKWARD .impl = FATTN_IMPL_UNIFIED, .pass = FATTN_BACKWARD

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
        p = (fattn_problem){ .dtype = FATTN_E4M3, .has_right = 1, .heads_k = 2, .guards_off = 1 };
        p.pass = second ? FATTN_BACKWARD : FATTN_FORWARD;
        compiled_by("8 bits", p, second ? 6 : 2);
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
    const size_t linear = compiled("pin", p);
    p.determinism = FATTN_DETERMINISM_FORM;
    cr_expect_lt(linear, compiled("form", p));
}

/* ---- unified operations
 */

Test(graph_decide, what_the_unified_backward_has_no_words_for_is_refused_by_its_name)
{
    expect_answer(
        "dump", (fattn_problem){ UNIFIED_BACKWARD, .dropout = 0.5, .outputs = FATTN_WANT_RNG_DUMP },
        "unsupported: outputs: rng_dump:");
    expect_answer("tiles", (fattn_problem){ UNIFIED_BACKWARD, .block_mask = 1 },
                  "unsupported: block_mask:");
}

/* The rotated Q and K lie in front of everything else of the workspace; the graph that puts them
 * there is compiled with the plan. */
Test(graph_decide, the_backward_of_rotated_tensors_is_two_graphs_in_one_plan)
{
    const fattn_problem p = completed((fattn_problem){ UNIFIED_BACKWARD, .rope = 1 });
    char *bytes;
    size_t count;
    if (!has(92800))
        return;
    fattn_plan *plan = plan_of(&p);
    cr_expect_geq(fattn_plan_workspace_bytes(plan), 4 * 2 * 8 * 512 * 128 * 2);
    cr_expect_eq(fattn_plan_save(plan, &bytes, &count), FATTN_UNSUPPORTED);
    fattn_plan_destroy(plan);
}
