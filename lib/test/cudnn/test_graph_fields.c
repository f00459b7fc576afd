/* The plan that decide describes is the plan that runs: both begin with one graph, and every field
 * of a problem is either in that graph or in a short list of those that none bakes in. Here each
 * field is changed in turn, and the calls that build the graph are hashed. */
#include "graph_recorder.h"
#include "support/problem_fields.h"

/* What a plan is made of: the graph, what its tensors are bound to, what follows it, and the
 * configuration that is pinned. 0: no graph. */
static uint64_t graph_of(const fattn_problem *p)
{
    static uint64_t last_hash, last_id;
    fattn_problem r;
    if (fattn_problem_resolve(p, &r) != FATTN_OK || build(92700, *p) != FATTN_OK)
        return 0;
    for (int i = 0; i < graph.binding_count; i++) {
        mix(&graph.bindings[i].uid, sizeof graph.bindings[i].uid);
        mix(&graph.bindings[i].slot, sizeof graph.bindings[i].slot);
        mix(&graph.bindings[i].value, sizeof graph.bindings[i].value);
        mix(&graph.bindings[i].offset, sizeof graph.bindings[i].offset);
    }
    mix(graph.sums, (size_t)graph.sum_count * sizeof *graph.sums);
    if (graph.repeat != NULL)
        mix(graph.repeat, offsetof(fattn__repeat, source));
    fattn__graph_release(&graph);
    cr_expect_eq(recorded_id == last_id, recorded_hash == last_hash,
                 "the graph's own id tells apart what is not the same, and only that");
    last_hash = recorded_hash, last_id = recorded_id;
    return recorded_hash;
}

/* By composite operations, or by the unified one. */
static void check_field(const fattn_problem *p, const fattn_problem *q, const char *field,
                        bool same)
{
    bool differs = false, known = false;
    (void)same;
    for (fattn_impl impl = FATTN_IMPL_COMPOSITE; impl <= FATTN_IMPL_UNIFIED && !known; impl++) {
        fattn_problem one = *p, other = *q;
        if (one.impl == other.impl)
            one.impl = other.impl = (int32_t)impl;
        const uint64_t a = graph_of(&one), b = graph_of(&other);
        known = a != 0 && b != 0, differs = a != b;
    }
    cr_expect(known, "%s: %s", field, fattn_last_error());
    cr_expect(differs, "%s is not in the graph", field);
}

/* What says nothing to the cpu and the math backend, and is baked in here. */
#define GRAPH_LIST(X)                                                                              \
    X(FORWARD, spelling, FATTN_SPELLING_SINGLE, false, )                                           \
    X(BACKWARD, deterministic, 1, false, )                                                         \
    X(BACKWARD, determinism, FATTN_DETERMINISM_PIN, false, p.deterministic = 1)                    \
    X(BACKWARD, total_q, 20, false, p.ragged_bits = 32, p.dim_v = 16)                              \
    X(BACKWARD, total_kv, 20, false, p.ragged_bits = 32, p.dim_v = 16)                             \
    X(FORWARD, unfuse_fma, 1, false, )                                                             \
    X(BACKWARD, scale_format, FATTN_FORMAT_BSHD, false, p.dtype = FATTN_MXE4M3, p.has_bias = 0)    \
    X(BACKWARD, do_dtype, FATTN_E5M2, false, p.dtype = FATTN_E4M3, p.has_bias = 0)

/* The whole list of what no graph knows. */
#define UNBAKED_LIST(X)                                                                            \
    X(struct_size, "says how much of the struct there is")                                         \
    X(capture, "how the call is launched; a plan is the same")                                     \
    X(guards_off, "what is refused, not what is built")                                            \
    X(scaling, "who computes the scales of 8 bit types; they are numbers in memory")               \
    X(table_k, "follows from seq_kv and the page size")                                            \
    X(table_v, "follows from seq_kv and the page size")                                            \
    X(reserved, "is 0")

Test(fields, every_one_is_in_the_graph_or_in_the_list_of_those_that_are_not)
{
    check_fields();
    GRAPH_LIST(CHANGE_FIELD)
    UNBAKED_LIST(MEET_LISTED)
    expect_all_met();
}
