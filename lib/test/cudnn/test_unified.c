/* The unified operations, put to a real cuDNN for described devices: what they spell from which
 * version on, and that what is offered compiles. */
#include "fattn/fattn.h"
#include "fattn/score_mod.h"
#include "support/described_h100.h"

static int version;

static fattn_problem unified(void)
{
    fattn_problem p = control_problem();
    p.impl = FATTN_IMPL_UNIFIED;
    return p;
}

/* What a problem asks for, and cuDNN's version from which the operation has it. X(name, from,
 * change) */
#define FORWARD_LIST(X)                                                                            \
    X(plain, 91300, (void)p)                                                                       \
    X(stats, 91300, p->outputs = FATTN_WANT_STATS)                                                 \
    X(grouped, 91300, p->heads_k = 2)                                                              \
    X(wide_heads, 91300, p->dim_qk = 256)                                                          \
    X(scale_in_memory, 91300, p->scale_in_memory = 1)                                              \
    X(lengths, 91500, p->padding = 1)                                                              \
    X(packed, 91500, (p->padding = 1, p->ragged_bits = 64, p->outputs = FATTN_WANT_STATS))         \
    X(pages, 91500,                                                                                \
      (p->padding = 1, p->page_size_k = p->page_size_v = 64, p->pages_k = p->pages_v = 32))        \
    X(pages_of_keys, 91500, (p->padding = 1, p->page_size_k = 64, p->pages_k = 32))                \
    X(packed_tables, 91500,                                                                        \
      (p->padding = 1, p->page_size_k = p->page_size_v = 64, p->pages_k = p->pages_v = 32,         \
       p->packed_table = 1))                                                                       \
    X(max, 92100, p->outputs = FATTN_WANT_STATS | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP)             \
    X(causal, 92100, p->has_right = 1)                                                             \
    X(window, 92100, (p->has_right = p->has_left = 1, p->window_left = 40))                        \
    X(bottom_right, 92100, (p->has_right = 1, p->align = FATTN_BOTTOM_RIGHT, p->seq_q = 256))      \
    X(bottom_right_by_length, 92100,                                                               \
      (p->has_right = p->has_left = p->padding = 1, p->window_left = 40,                           \
       p->align = FATTN_BOTTOM_RIGHT))                                                             \
    X(bias, 92100, p->has_bias = 1)                                                                \
    X(alibi, 92100, p->alibi = p->has_right = 1)                                                   \
    X(sink, 92100, p->sink = 1)                                                                    \
    X(dropout, 92100, (p->dropout = 0.2, p->outputs = FATTN_WANT_RNG_DUMP))                        \
    X(unfuse_fma, 92200, p->unfuse_fma = 1)                                                        \
    X(prefix_sums, 92400,                                                                          \
      (p->padding = 1, p->cumulative = FATTN_CUMULATIVE_Q | FATTN_CUMULATIVE_KV))                  \
    X(offsets_in_tokens, 92400, (p->padding = p->ragged_tokens = 1, p->ragged_bits = 32))          \
    X(rope, 92400, p->rope = 1)                                                                    \
    X(prefix_sums_of_rows, 92500, (p->padding = 1, p->cumulative = FATTN_CUMULATIVE_Q))            \
    X(prefix_sums_and_a_band, 92500,                                                               \
      (p->padding = p->has_right = 1, p->align = FATTN_BOTTOM_RIGHT,                               \
       p->cumulative = FATTN_CUMULATIVE_Q))                                                        \
    X(base_2, 92700, p->outputs = FATTN_WANT_STATS_LOG2)

/* Offered from 9.28 on; before, cuDNN refuses or does not know the words. */
#define BACKWARD_LIST(X)                                                                           \
    X(plain_gradient, 92800, (void)p)                                                              \
    X(grouped_gradient, 92800, p->heads_k = 2)                                                     \
    X(causal_gradient, 92800, p->has_right = 1)                                                    \
    X(window_gradient, 92800, (p->has_right = p->has_left = 1, p->window_left = 40))               \
    X(lengths_gradient, 92800, p->padding = 1)                                                     \
    X(packed_gradient, 92800,                                                                      \
      (p->padding = 1, p->ragged_bits = 64, p->total_q = p->total_kv = 1024))                      \
    X(prefix_sums_gradient, 92800, (p->padding = 1, p->cumulative = FATTN_CUMULATIVE_KV))          \
    X(sink_gradient, 92800, p->sink = p->dsink = 1)                                                \
    X(bias_gradient, 92800, p->has_bias = p->dbias = 1)                                            \
    X(wide_bias_gradient, 92800, (p->has_bias = p->dbias = 1, p->bias_dtype = FATTN_F32))          \
    X(alibi_gradient, 92800, p->alibi = p->has_right = 1)                                          \
    X(dropout_gradient, 92800, p->dropout = 0.2)                                                   \
    X(scale_in_memory_gradient, 92800, p->scale_in_memory = 1)                                     \
    X(repeating_gradient, 92800, p->deterministic = 1)

#define AS_CHANGE(name, from, change)                                                              \
    static void name##_change(fattn_problem *p)                                                    \
    {                                                                                              \
        (change);                                                                                  \
    }
FORWARD_LIST(AS_CHANGE)
BACKWARD_LIST(AS_CHANGE)

typedef struct feature {
    const char *name;
    int from;
    void (*change)(fattn_problem *p);
} feature;
#define AS_ROW(name, from, change) { #name, (from), name##_change },
static const feature forwards[] = { FORWARD_LIST(AS_ROW) };
static const feature backwards[] = { BACKWARD_LIST(AS_ROW) };

/* Numbers of engines changed in 9.15; the unified backward came later. */
static bool is_unified_engine(int64_t engine, int32_t pass)
{
    if (pass == FATTN_BACKWARD)
        return engine >= 12 && engine <= 14;
    return version < 91500 ? engine >= 4 && engine <= 6 : engine >= 8 && engine <= 10;
}

static void check(fattn_context *context, const feature *f, int32_t pass, bool compiles)
{
    fattn_problem p = unified();
    fattn_decision *decision;
    fattn_plan *plan = NULL;
    p.pass = pass;
    f->change(&p);
    cr_assert_eq(fattn_decide(&decision, context, &p, FATTN_ASK_A), FATTN_OK, "%s: %s", f->name,
                 fattn_last_error());
    const bool yes = fattn_decision_supported(decision);
    cr_expect_eq(yes, version >= f->from, "%s with %d: %s", f->name, version,
                 fattn_decision_text(decision));
    for (size_t i = 0; i < fattn_decision_engine_count(decision, FATTN_MODE_A); i++)
        cr_expect(is_unified_engine(fattn_decision_engine(decision, FATTN_MODE_A, i)->index, pass),
                  "%s", f->name);
    cr_expect(yes || fattn_decision_reason(decision) == FATTN_REASON_UNSUPPORTED, "%s: %s", f->name,
              fattn_decision_text(decision));
    if (yes && compiles && compiling_all())
        cr_expect_eq(fattn_plan_create(&plan, context, &p, NULL), FATTN_OK, "%s: %s", f->name,
                     fattn_last_error());
    fattn_plan_destroy(plan);
    fattn_decision_destroy(decision);
}

static void check_all(const char *device, const feature *features, size_t count, int32_t pass,
                      bool compiles)
{
    fattn_context *context = open_described(device, &version);
    for (size_t i = 0; i < count; i++)
        check(context, &features[i], pass, compiles);
    fattn_context_destroy(context);
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

Test(unified, forwards_are_offered_from_their_versions_on_and_compile, .timeout = 300)
{
    check_all("h100-sxm", forwards, COUNT(forwards), FATTN_FORWARD, true);
}

Test(unified, forwards_of_a_described_sm100_are_the_same, .timeout = 300)
{
    check_all("sm100-spec", forwards, COUNT(forwards), FATTN_FORWARD, false);
}

Test(unified, backwards_are_offered_from_9_28_on_and_compile, .timeout = 300)
{
    check_all("h100-sxm", backwards, COUNT(backwards), FATTN_BACKWARD, true);
}

Test(unified, a_block_mask_is_for_sm100)
{
    fattn_context *context = open_described("sm100-spec", &version);
    fattn_problem p = unified();
    fattn_decision *decision;
    p.impl = FATTN_IMPL_AUTO, p.block_mask = 1;
    cr_assert_eq(fattn_decide(&decision, context, &p, FATTN_ASK_A), FATTN_OK);
    cr_expect_eq(fattn_decision_supported(decision), version >= 91400, "%s",
                 fattn_decision_text(decision));
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}

/* ---- refusals
 * ----------------------------------------------------------------------------------------------------------------------
 */

static void expect_refusal(fattn_context *context, const fattn_problem *p, fattn_reason reason,
                           const char *start)
{
    fattn_decision *decision;
    cr_assert_eq(fattn_decide(&decision, context, p, FATTN_ASK_A), FATTN_OK);
    cr_expect_not(fattn_decision_supported(decision), "%s", start);
    cr_expect_eq(fattn_decision_reason(decision), reason, "%s", fattn_decision_text(decision));
    cr_expect_eq(strncmp(fattn_decision_text(decision), start, strlen(start)), 0,
                 "got '%s', want '%s'", fattn_decision_text(decision), start);
    fattn_decision_destroy(decision);
}

#define REFUSED(pass_of, reason, start, ...)                                                       \
    do {                                                                                           \
        fattn_problem p = unified();                                                               \
        p.pass = (pass_of);                                                                        \
        __VA_ARGS__;                                                                               \
        expect_refusal(context, &p, (reason), (start));                                            \
    } while (0)

Test(unified, what_an_operation_has_no_words_for_is_refused_by_its_name)
{
    fattn_context *context = open_described("h100-sxm", &version);
    fattn_score_mod *cap;
    cr_assert_eq(fattn_score_mod_softcap(&cap, 30.0), FATTN_OK);
    REFUSED(FATTN_FORWARD, FATTN_REASON_UNSUPPORTED, "dropout_mask:", p.dropout_mask = 1);
    REFUSED(FATTN_BACKWARD, FATTN_REASON_UNSUPPORTED, "dropout_mask:", p.dropout_mask = 1);
    REFUSED(FATTN_BACKWARD, FATTN_REASON_UNSUPPORTED,
            "outputs: rng_dump:", (p.dropout = 0.5, p.outputs = FATTN_WANT_RNG_DUMP));
    REFUSED(FATTN_BACKWARD, FATTN_REASON_UNSUPPORTED, "block_mask:", p.block_mask = 1);
    REFUSED(FATTN_BACKWARD, FATTN_REASON_UNSUPPORTED, "dtype:", p.dtype = FATTN_E4M3);
    REFUSED(FATTN_BACKWARD, FATTN_REASON_UNSUPPORTED,
            "score_mod: the unified backward cannot express its gradient", p.score_mod = cap);
    REFUSED(FATTN_FORWARD, FATTN_REASON_UNSUPPORTED,
            "rope: a row of a ragged tensor is not a position",
            (p.rope = p.padding = 1, p.ragged_bits = 64));
    if (version >= 92100)
        REFUSED(FATTN_FORWARD, FATTN_REASON_POLICY,
                "spelling:", (p.has_right = 1, p.spelling = FATTN_SPELLING_EXPANDED));
    fattn_score_mod_destroy(cap);
    fattn_context_destroy(context);
}

Test(unified, a_composite_graph_refuses_what_the_operation_alone_can_say)
{
    fattn_context *context = open_described("h100-sxm", &version);
    const char *const text = "a composite graph cannot express it";
    const feature *const alone[] = { &(feature){ "cumulative", 0, prefix_sums_change },
                                     &(feature){ "ragged_tokens", 0, offsets_in_tokens_change },
                                     &(feature){ "unfuse_fma", 0, unfuse_fma_change },
                                     &(feature){ "rope", 0, rope_change } };
    for (size_t i = 0; i < COUNT(alone); i++) {
        fattn_problem p = unified();
        fattn_decision *decision;
        p.impl = FATTN_IMPL_COMPOSITE;
        alone[i]->change(&p);
        cr_assert_eq(fattn_decide(&decision, context, &p, FATTN_ASK_A), FATTN_OK);
        cr_expect(strstr(fattn_decision_text(decision), text) != NULL, "%s: %s", alone[i]->name,
                  fattn_decision_text(decision));
        cr_expect_eq(strncmp(fattn_decision_text(decision), alone[i]->name, strlen(alone[i]->name)),
                     0, "%s", fattn_decision_text(decision));
        fattn_decision_destroy(decision);
    }
    fattn_context_destroy(context);
}

Test(unified, an_older_cudnn_is_told_from_which_version_on)
{
    fattn_context *context = open_described("h100-sxm", &version);
    if (version < 92400)
        REFUSED(FATTN_FORWARD, FATTN_REASON_UNSUPPORTED,
                "cumulative: prefix sums of lengths: the unified forward has it from cuDNN 9.24 on",
                (p.padding = 1, p.cumulative = FATTN_CUMULATIVE_Q | FATTN_CUMULATIVE_KV));
    fattn_context_destroy(context);
}

/* The rotated Q and K lie in front of everything else of the workspace; the graph that puts them
 * there is compiled with the plan.
 */
Test(unified, the_backward_of_rotated_tensors_is_two_graphs_in_one_plan)
{
    fattn_context *context = open_described("h100-sxm", &version);
    fattn_problem p = unified();
    fattn_plan *plan;
    char *bytes;
    size_t count;
    p.pass = FATTN_BACKWARD, p.rope = 1;
    if (version < 92800)
        cr_skip_test("needs a build of the night: cuDNN 9.28");
    cr_assert_eq(fattn_plan_create(&plan, context, &p, NULL), FATTN_OK, "%s", fattn_last_error());
    cr_expect_geq(fattn_plan_workspace_bytes(plan), 4 * 2 * 8 * 512 * 128 * 2);
    cr_expect_eq(fattn_plan_save(plan, &bytes, &count), FATTN_UNSUPPORTED);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}

Test(unified, a_plan_covers_what_its_pass_is_not_told_of)
{
    fattn_context *context = open_described("h100-sxm", &version);
    fattn_problem p = unified(), other;
    fattn_plan *plan;
    if (version < 92100) { /* 9.20: the unified forward has no sink and no dropout */
        fattn_context_destroy(context);
        return;
    }
    p.padding = 1, p.ragged_bits = 64, p.sink = 1, p.dropout = 0.25;
    cr_assert_eq(fattn_plan_create(&plan, context, &p, NULL), FATTN_OK, "%s", fattn_last_error());
    other = p, other.total_q = 700, other.total_kv = 800,
    other.ragged = FATTN_RAGGED_ALL & ~(uint32_t)FATTN_RAGGED_DO;
    cr_expect(fattn_plan_covers(plan, &other));
#define OTHER(change)                                                                              \
    do {                                                                                           \
        other = p;                                                                                 \
        (change);                                                                                  \
        cr_expect_not(fattn_plan_covers(plan, &other), #change);                                   \
    } while (0)
    OTHER(other.ragged = FATTN_RAGGED_ALL & ~(uint32_t)FATTN_RAGGED_K);
    OTHER(other.ragged_bits = 32);
    OTHER(other.ragged_tokens = 1);
    OTHER(other.sink = 0);
    OTHER(other.dropout = 0.5);
    OTHER(other.rng_bits = 32);
    OTHER(other.cumulative = FATTN_CUMULATIVE_Q);
    OTHER(other.scale_in_memory = 1);
    OTHER(other.impl = FATTN_IMPL_COMPOSITE);
    OTHER(other.unfuse_fma = 1);
    OTHER(other.alibi = 1);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}
