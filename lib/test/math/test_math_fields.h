/* Every field of a problem changes the answer of the cpu and of the math backend, is refused by them, or is in a list of those
 * that say nothing about an answer. A new field that an engine ignores fails here: it declares the feature (feature_set.h) only
 * when it has it. cudnn/test_graph_fields.c says the same of cuDNN's graphs. Part of test_math_gpu.c. */

#include "support/problem_fields.h"

/* A hash of what the engine writes; 0: it refuses the problem. */
static uint64_t answer_of(const side *who, const fattn_problem *p, const char *field)
{
    static scene s;
    fattn_problem r;
    fattn_decision *decision = calloc(1, sizeof *decision);
    cr_assert_eq(fattn_problem_resolve(p, &r), FATTN_OK, "%s: %s", field, fattn_last_error());
    uint64_t hash = 0;
    if (fattn__features_missing(&r, who->engine->features) == NULL &&
        who->engine->can_do(who->context, &r, FATTN_ASK_A, decision) == FATTN_OK &&
        decision->reason == FATTN_REASON_NONE) {
        make_scene(&s, &r, 7);
        char *after = run_scene(who, &s);
        hash = 1;
        for (int i = 0; i < s.a.count; i++)
            for (int64_t n = 0; s.a.at[i].written && n < span_of(&s, &s.a.at[i]); n++)
                hash = (hash ^ (unsigned char)after[s.from[i] + (size_t)n]) * 0x100000001b3;
        free(after);
        free(s.arena);
    }
    fattn_decision_destroy(decision);
    return hash;
}

static void check_field(const fattn_problem *p, const fattn_problem *q, const char *field,
                        bool same)
{
    const side sides[] = { on_host(), on_gpu() };
    for (size_t i = 0; i < 2; i++) {
        const uint64_t a = answer_of(&sides[i], p, field), b = answer_of(&sides[i], q, field);
        cr_expect(a == 0 || b == 0 || (a == b) == same, "%s ignores %s and does not refuse it",
                  sides[i].engine->name, field);
        cr_expect(i == 1 || a != 0 || b != 0, "%s: nobody computes it", field);
    }
}

/* What says nothing about an answer of these two. */
#define UNREAD_LIST(X)                                                                             \
    X(struct_size, "how much of the struct there is")                                              \
    X(do_dtype, "of 8-bit types: harness/test/data/surface.test")                                  \
    X(total_q, "for cuDNN's workspace")                                                            \
    X(total_kv, "for cuDNN's workspace")                                                           \
    X(table_k, "follows from seq_kv and the page size")                                            \
    X(table_v, "follows from seq_kv and the page size")                                            \
    X(scaling, "who computes scales")                                                              \
    X(scale_format, "declared strides of scale factors")                                           \
    X(spelling, "how cuDNN is asked")                                                              \
    X(deterministic, "they always are")                                                            \
    X(determinism, "how cuDNN is asked")                                                           \
    X(capture, "how the call is launched")                                                         \
    X(unfuse_fma, "how cuDNN rounds; the math backend refuses it")                                 \
    X(guards_off, "what is refused")                                                               \
    X(reserved, "is 0")

Test(math_gpu, every_field_of_a_problem_is_read_refused_or_listed)
{
    check_fields();
    UNREAD_LIST(MEET_LISTED)
    expect_all_met();
}
