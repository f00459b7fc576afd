/* Engines by their numbers and knobs, past the heuristics. */
#include "fattn/cache.h"
#include "fattn/fattn.h"
#include "support/asked.h"

enum { STAGES = 14, KERNEL_CFG = 24, TILE_CGA_M = 27, STREAM_K = 38, TILE_M = 40, TILE_N = 41 };

/* Ordered accumulation of dQ on Hopper. */
static const fattn_knob ordered[] = {
    { .type = TILE_M, .value = 2 },     { .type = TILE_N, .value = 1 },
    { .type = KERNEL_CFG, .value = 2 }, { .type = STREAM_K, .value = 0 },
    { .type = TILE_CGA_M, .value = 0 }, { .type = STAGES, .value = 4 }
};

TestSuite(pins, .init = open_context, .fini = close_context);

static fattn_plan_options pin(int64_t engine, const fattn_knob *knobs, int count)
{
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    options.engine = engine, options.knobs = knobs, options.knob_count = count;
    return options;
}

static int64_t knob_of(const fattn_engine *engine, int32_t type)
{
    for (int i = 0; i < engine->knob_count; i++)
        if (engine->knobs[i].type == type)
            return engine->knobs[i].value;
    return -1;
}

static void compile_ordered(const fattn_problem *p, int64_t number)
{
    const fattn_plan_options options = pin(number, ordered, 6);
    fattn_plan *plan;
    cr_assert_eq(fattn_plan_create(&plan, context, p, &options), FATTN_OK, "%s",
                 fattn_last_error());
    const fattn_engine *engine = fattn_plan_engine(plan);
    cr_expect_eq(engine->index, number);
    cr_expect_eq(knob_of(engine, STAGES), 4);
    fattn_plan_destroy(plan);
}

Test(pins, the_ordered_backward_of_hopper_compiles_from_9_25_on)
{
    fattn_problem p = control_problem();
    p.pass = FATTN_BACKWARD;
    if (compiling() && has(92500))
        compile_ordered(&p, 6);
}

Test(pins, the_ordered_unified_backward_of_hopper_compiles_with_9_28)
{
    fattn_problem p = control_problem();
    p.pass = FATTN_BACKWARD, p.impl = FATTN_IMPL_UNIFIED;
    if (has(92800))
        compile_ordered(&p, 13);
}

/* What the heuristics offer first, named with every knob, and without them. */
Test(pins, an_offered_engine_compiles_with_its_offered_knobs_and_the_cache_tells_knobs_apart)
{
    const fattn_problem p = control_problem();
    fattn_decision *decision;
    fattn_plan *plan, *plain;
    if (!compiling())
        return;
    cr_assert_eq(fattn_decide(&decision, context, &p, FATTN_ASK_A), FATTN_OK);
    const fattn_engine *first = fattn_decision_engine(decision, FATTN_MODE_A, 0);
    const fattn_plan_options options = pin(first->index, first->knobs, first->knob_count),
                             without = { .struct_size = sizeof without,
                                         .engine = first->index,
                                         .config = FATTN_ENGINE_AUTO };
    cr_assert_eq(fattn_plan_get(&plan, context, &p, &options), FATTN_OK, "%s", fattn_last_error());
    cr_expect_eq(fattn_plan_engine(plan)->index, first->index);
    for (int i = 0; i < first->knob_count; i++)
        cr_expect_eq(knob_of(fattn_plan_engine(plan), first->knobs[i].type), first->knobs[i].value,
                     "%s", fattn_knob_name(first->knobs[i].type));
    cr_assert_eq(fattn_plan_get(&plain, context, &p, &without), FATTN_OK, "%s", fattn_last_error());
    cr_expect_neq(plan, plain);
    fattn_plan_destroy(plan);
    fattn_plan_destroy(plain);
    fattn_decision_destroy(decision);
}

Test(pins, an_engine_that_is_none_is_refused_in_cudnns_words)
{
    const fattn_problem p = control_problem();
    const fattn_plan_options options = pin(9999, ordered, 0);
    fattn_plan *plan;
    const fattn_status st = fattn_plan_create(&plan, context, &p, &options);
    cr_expect(st == FATTN_UNSUPPORTED, "%s: %s", fattn_status_name(st), fattn_last_error());
    cr_expect_gt(strlen(fattn_last_error()), 10);
    cr_expect_null(plan);
}

Test(pins, options_that_contradict_themselves_are_refused)
{
    const fattn_knob twice[] = { { .type = STAGES, .value = 2 }, { .type = STAGES, .value = 3 } };
    const fattn_problem p = control_problem();
    fattn_plan_options bad[] = { pin(FATTN_ENGINE_AUTO, ordered, 6),
                                 pin(6, ordered, -1),
                                 pin(6, ordered, FATTN_MAX_KNOBS + 1),
                                 pin(6, NULL, 1),
                                 pin(6, ordered, 6),
                                 pin(6, twice, 2) };
    fattn_plan *plan;
    bad[4].config = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_eq(fattn_plan_create(&plan, context, &p, &bad[i]), FATTN_BAD_PROBLEM, "%zu", i);
        cr_expect_null(plan);
    }
}

Test(knobs, are_found_by_their_words_in_lower_case)
{
    int32_t type = -1;
    cr_expect(fattn_knob_find(&type, "stages"));
    cr_expect_eq(type, STAGES);
    cr_expect(fattn_knob_find(&type, "tile_m"));
    cr_expect_eq(type, TILE_M);
    cr_expect(fattn_knob_find(&type, "input_tma_enable"));
    cr_expect_eq(type, 44);
    for (int i = 0; i <= 45; i++) {
        char word[64];
        snprintf(word, sizeof word, "%s", fattn_knob_name(i));
        for (char *c = word; *c != '\0'; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        cr_expect(fattn_knob_find(&type, word) && type == i, "%s", word);
    }
    cr_expect_not(fattn_knob_find(&type, "STAGES"));
    cr_expect_not(fattn_knob_find(&type, "stage"));
    cr_expect_not(fattn_knob_find(&type, "stagess"));
    cr_expect_not(fattn_knob_find(&type, ""));
    cr_expect_not(fattn_knob_find(&type, NULL));
}

Test(cpu_pins, the_cpu_has_neither_knobs_nor_override_shapes)
{
    fattn_context_options where = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *cpu;
    fattn_plan *plan;
    fattn_problem p = control_problem();
    where.device_kind = FATTN_DEVICE_CPU;
    cr_assert_eq(fattn_context_create(&cpu, &where), FATTN_OK);
    fattn_plan_options options = pin(0, ordered, 6);
    cr_expect_eq(fattn_plan_create(&plan, cpu, &p, &options), FATTN_UNSUPPORTED);
    options = pin(FATTN_ENGINE_AUTO, NULL, 0), options.override_shapes = 1;
    cr_expect_eq(fattn_plan_create(&plan, cpu, &p, &options), FATTN_UNSUPPORTED);
    fattn_context_destroy(cpu);
}
