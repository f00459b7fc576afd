/* The unified operations, put to a real cuDNN for described devices: what they spell from which
 * version on, and that what is offered compiles. */
#include "fattn/score_mod.h"
#include "support/asked.h"

static void open_blackwell(void)
{
    context = open_described("sm100-spec", &version);
}

TestSuite(unified, .init = open_context, .fini = close_context, .timeout = 300);
TestSuite(unified_blackwell, .init = open_blackwell, .fini = close_context, .timeout = 300);

/* What a problem asks for, and cuDNN's version from which the operation has it. */
typedef struct feature {
    const char *name;
    int from;
    fattn_problem problem;
} feature;

#define ROW(name, from, ...)                                                                       \
    {                                                                                              \
        name, from,                                                                                \
        {                                                                                          \
            .impl = FATTN_IMPL_UNIFIED, __VA_ARGS__                                                \
        }                                                                                          \
    }
#define PAGES .padding = 1, .page_size_k = 64, .page_size_v = 64, .pages_k = 32, .pages_v = 32
#define WINDOW .has_right = 1, .has_left = 1, .window_left = 40
#define BOTTOM_RIGHT .has_right = 1, .align = FATTN_BOTTOM_RIGHT

static const feature forwards[] = {
    ROW("plain", 91300, .sink = 0),
    ROW("stats", 91300, .outputs = FATTN_WANT_STATS),
    ROW("grouped", 91300, .heads_k = 2),
    ROW("wide heads", 91300, .dim_qk = 256),
    ROW("scale in memory", 91300, .scale_in_memory = 1),
    ROW("lengths", 91500, .padding = 1),
    ROW("packed", 91500, .padding = 1, .ragged_bits = 64, .outputs = FATTN_WANT_STATS),
    ROW("pages", 91500, PAGES),
    ROW("pages of keys", 91500, .padding = 1, .page_size_k = 64, .pages_k = 32),
    ROW("packed tables", 91500, PAGES, .packed_table = 1),
    ROW("max", 92100, .outputs = FATTN_WANT_STATS | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP),
    ROW("causal", 92100, .has_right = 1),
    ROW("window", 92100, WINDOW),
    ROW("bottom right", 92100, BOTTOM_RIGHT, .seq_q = 256),
    ROW("bottom right by length", 92100, WINDOW, .padding = 1, .align = FATTN_BOTTOM_RIGHT),
    ROW("bias", 92100, .has_bias = 1),
    ROW("alibi", 92100, .alibi = 1, .has_right = 1),
    ROW("sink", 92100, .sink = 1),
    ROW("dropout", 92100, .dropout = 0.2, .outputs = FATTN_WANT_RNG_DUMP),
    ROW("unfuse_fma", 92200, .unfuse_fma = 1),
    ROW("prefix sums", 92400, .padding = 1, .cumulative = FATTN_CUMULATIVE_Q | FATTN_CUMULATIVE_KV),
    ROW("offsets in tokens", 92400, .padding = 1, .ragged_tokens = 1, .ragged_bits = 32),
    ROW("rope", 92400, .rope = 1),
    ROW("prefix sums of rows", 92500, .padding = 1, .cumulative = FATTN_CUMULATIVE_Q),
    ROW("prefix sums and a band", 92500, .padding = 1, BOTTOM_RIGHT,
        .cumulative = FATTN_CUMULATIVE_Q),
    ROW("base 2", 92700, .outputs = FATTN_WANT_STATS_LOG2),
};

#define GRADIENT(name, ...) ROW(name, 92800, .pass = FATTN_BACKWARD, __VA_ARGS__)

/* Offered from 9.28 on; before, cuDNN refuses or does not know the words. */
static const feature backwards[] = {
    GRADIENT("plain", .sink = 0),
    GRADIENT("grouped", .heads_k = 2),
    GRADIENT("causal", .has_right = 1),
    GRADIENT("window", WINDOW),
    GRADIENT("lengths", .padding = 1),
    GRADIENT("packed", .padding = 1, .ragged_bits = 64, .total_q = 1024, .total_kv = 1024),
    GRADIENT("prefix sums", .padding = 1, .cumulative = FATTN_CUMULATIVE_KV),
    GRADIENT("sink", .sink = 1, .dsink = 1),
    GRADIENT("bias", .has_bias = 1, .dbias = 1),
    GRADIENT("wide bias", .has_bias = 1, .dbias = 1, .bias_dtype = FATTN_F32),
    GRADIENT("alibi", .alibi = 1, .has_right = 1),
    GRADIENT("dropout", .dropout = 0.2),
    GRADIENT("scale in memory", .scale_in_memory = 1),
    GRADIENT("repeating", .deterministic = 1),
};

static void check_all(const feature *features, size_t count, bool compiles)
{
    for (size_t n = 0; n < count; n++) {
        const feature *f = &features[n];
        const fattn_problem p = completed(f->problem);
        const int64_t first = p.pass == FATTN_BACKWARD ? 12 : 8;
        fattn_decision *decision = ask(&p);
        const bool yes = fattn_decision_supported(decision);
        cr_expect_eq(yes, version >= f->from, "%s with %d: %s", f->name, version,
                     fattn_decision_text(decision));
        for (size_t i = 0; i < fattn_decision_engine_count(decision, FATTN_MODE_A); i++) {
            const int64_t engine = fattn_decision_engine(decision, FATTN_MODE_A, i)->index;
            cr_expect(engine >= first && engine <= first + 2, "%s", f->name);
        }
        cr_expect(yes || fattn_decision_reason(decision) == FATTN_REASON_UNSUPPORTED, "%s: %s",
                  f->name, fattn_decision_text(decision));
        if (yes && compiles && compiling_all())
            compiled(f->name, p, NULL);
        fattn_decision_destroy(decision);
    }
}

Test(unified, is_offered_from_its_versions_on_and_compiles)
{
    check_all(forwards, COUNT(forwards), true);
    check_all(backwards, COUNT(backwards), true);
}

Test(unified_blackwell, forwards_are_the_same_and_a_block_mask_is_taken)
{
    check_all(forwards, COUNT(forwards), false);
    expect_answer("block mask", (fattn_problem){ .block_mask = 1 }, "yes");
}

Test(unified, what_an_operation_has_no_words_for_is_refused_by_its_name)
{
    fattn_score_mod *cap;
    cr_assert_eq(fattn_score_mod_softcap(&cap, 30.0), FATTN_OK);
    const struct {
        const char *start;
        fattn_problem p;
    } rows[] = {
        { "unsupported: dropout_mask:", { .dropout_mask = 1 } },
        { "unsupported: dropout_mask:", { .pass = FATTN_BACKWARD, .dropout_mask = 1 } },
        { "unsupported: outputs: rng_dump:",
          { .pass = FATTN_BACKWARD, .dropout = 0.5, .outputs = FATTN_WANT_RNG_DUMP } },
        { "unsupported: block_mask:", { .pass = FATTN_BACKWARD, .block_mask = 1 } },
        { "unsupported: dtype:", { .pass = FATTN_BACKWARD, .dtype = FATTN_E4M3 } },
        { "unsupported: score_mod: the unified backward cannot express its gradient",
          { .pass = FATTN_BACKWARD, .score_mod = cap } },
        { "unsupported: rope: a row of a ragged tensor is not a position",
          { .rope = 1, .padding = 1, .ragged_bits = 64 } },
        { version < 92100 ? "" : "policy: spelling:",
          { .has_right = 1, .spelling = FATTN_SPELLING_EXPANDED } },
        { version >= 92400 ? ""
                           : "unsupported: cumulative: prefix sums of lengths: the unified forward "
                             "has it from cuDNN 9.24 on",
          { .padding = 1, .cumulative = FATTN_CUMULATIVE_Q | FATTN_CUMULATIVE_KV } },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fattn_problem p = rows[i].p;
        p.impl = FATTN_IMPL_UNIFIED;
        expect_answer("unified", p, rows[i].start);
    }
    fattn_score_mod_destroy(cap);
}

/* The rotated Q and K lie in front of everything else of the workspace; the graph that puts them
 * there is compiled with the plan. */
Test(unified, the_backward_of_rotated_tensors_is_two_graphs_in_one_plan)
{
    const fattn_problem p =
        completed((fattn_problem){ .impl = FATTN_IMPL_UNIFIED, .pass = FATTN_BACKWARD, .rope = 1 });
    char *bytes;
    size_t count;
    if (!has(92800))
        return;
    fattn_plan *plan = plan_of(&p);
    cr_expect_geq(fattn_plan_workspace_bytes(plan), 4 * 2 * 8 * 512 * 128 * 2);
    cr_expect_eq(fattn_plan_save(plan, &bytes, &count), FATTN_UNSUPPORTED);
    fattn_plan_destroy(plan);
}
