/* The plan that decide describes is the plan that runs: both begin with one graph, and every field
 * of a problem is either in that graph or in a short list of those that none bakes in. Here each
 * field is changed in turn, and the calls that build the graph are hashed. */
#include "fattn/score_mod.h"
#include "graph_recorder.h"

/* What a plan is made of: the graph, what its tensors are bound to, what follows it, and the
 * configuration that is pinned. 0: no graph. */
static uint64_t graph_of(const fattn_problem *p, int version)
{
    static uint64_t last_hash, last_id;
    fattn_problem r;
    if (fattn_problem_resolve(p, &r) != FATTN_OK || build(version, *p) != FATTN_OK)
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

/* ---- two problems that read as many fields as one can
 * ------------------------------------------------------------------------------
 */

static fattn_score_mod *cap_of(double value)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_softcap(&mod, value), FATTN_OK, "%s", fattn_last_error());
    return mod;
}

static fattn_value added(fattn_recorder *r, fattn_value score, void *user)
{
    const int64_t dim[4] = { 1, 8, 96, 128 };
    (void)user;
    return fattn_record(r, FATTN_MOD_ADD, score, fattn_record_tensor(r, "t", FATTN_F32, dim, NULL),
                        0);
}

static fattn_problem rich(fattn_pass pass)
{
    fattn_problem p = FATTN_PROBLEM_INIT, r;
    p.pass = pass;
    p.batch = 2, p.heads_q = 8, p.heads_k = 4, p.heads_v = 2, p.seq_q = 96, p.seq_kv = 128,
    p.dim_qk = 64, p.dim_v = 32;
    p.has_left = p.has_right = p.padding = p.has_bias = 1;
    p.window_left = 40, p.window_right = 3, p.align = FATTN_BOTTOM_RIGHT;
    p.outputs = FATTN_WANT_STATS, p.deterministic = 1;
    cr_assert_eq(fattn_problem_resolve(&p, &r), FATTN_OK, "%s", fattn_last_error());
    return r; /* every stride is said: a change of another field does not move them */
}

/* ---- every field
 * -----------------------------------------------------------------------------------------------------------------
 */

#define STRIDES_LIST(X) X(q) X(k) X(v) X(o) X(do) X(dq) X(dk) X(dv) X(stats) X(bias) X(dbias)

static unsigned char covered[sizeof(fattn_problem)];

static void cover(size_t offset, size_t size)
{
    memset(covered + offset, 1, size);
}

static bool changes(const fattn_problem *p, const fattn_problem *other, int version)
{
    const uint64_t a = graph_of(p, version), b = graph_of(other, version);
    cr_assert_neq(a, 0);
    return a != b;
}

/* The field has this value instead, and nothing else changes but what cannot stay. */
#define BAKED(pass, field, value, ...)                                                             \
    do {                                                                                           \
        fattn_problem p_ = rich(pass), other_ = p_;                                                \
        other_.field = (value);                                                                    \
        __VA_ARGS__;                                                                               \
        cr_expect_neq(graph_of(&other_, 92700), 0, #field ": %s", fattn_last_error());             \
        cr_expect(changes(&p_, &other_, 92700), #field " is not in the graph");                    \
        cover(offsetof(fattn_problem, field), sizeof p_.field);                                    \
    } while (0)

static void free_strides(fattn_problem *p)
{
#define CLEAR(name) memset(p->name##_strides, 0, sizeof p->name##_strides);
    STRIDES_LIST(CLEAR)
#undef CLEAR
    memset(p->bias_dim, 0, sizeof p->bias_dim);
}

static void what_the_graph_bakes_in(void)
{
    const fattn_pass F = FATTN_FORWARD, B = FATTN_BACKWARD;
    BAKED(F, pass, FATTN_BACKWARD);
    BAKED(F, dtype, FATTN_F16);
    BAKED(F, o_dtype, FATTN_F16);
    BAKED(B, grad_dtype, FATTN_F16);
    BAKED(F, batch, 3, free_strides(&other_));
    BAKED(F, heads_q, 16, free_strides(&other_));
    BAKED(F, heads_k, 8, free_strides(&other_));
    BAKED(F, heads_v, 8, free_strides(&other_));
    BAKED(F, seq_q, 64, free_strides(&other_));
    BAKED(F, seq_kv, 64, free_strides(&other_));
    BAKED(F, dim_qk, 32, free_strides(&other_));
    BAKED(F, dim_v, 64, free_strides(&other_));
    BAKED(F, attn_scale, 0.5);
    BAKED(F, has_attn_scale, 1, p_.has_attn_scale = 0, other_.attn_scale = 2);
    BAKED(F, window_left, 41);
    BAKED(F, window_right, 4);
    BAKED(F, has_left, 0);
    BAKED(F, has_right, 0);
    BAKED(F, align, FATTN_TOP_LEFT);
    BAKED(F, padding, 0);
    BAKED(F, impl, FATTN_IMPL_UNIFIED);
    BAKED(F, outputs, 0);
    BAKED(F, spelling, FATTN_SPELLING_SINGLE);
    BAKED(B, deterministic, 0);
    BAKED(B, determinism, FATTN_DETERMINISM_PIN);
    BAKED(F, training, 1, p_.outputs = other_.outputs = 0);
    BAKED(F, len_broadcast, 1);
    BAKED(F, has_bias, 0);
    BAKED(F, bias_dtype, FATTN_F32);
    BAKED(B, dbias, 1);
    fattn_score_mod *mod = cap_of(30), *equal = cap_of(30), *another = cap_of(31), *tensor;
    BAKED(F, score_mod, mod);
    BAKED(F, score_mod, mod, p_.score_mod = another);
    BAKED(B, score_mod, mod, p_.score_mod = another);
    cr_assert_eq(fattn_score_mod_create(&tensor, added, NULL, NULL), FATTN_OK);
    BAKED(B, mod_gradients, 1, p_.score_mod = other_.score_mod = tensor);
    fattn_problem p = rich(F), other = p;
    p.score_mod = mod, other.score_mod = equal;
    cr_expect(!changes(&p, &other, 92700), "a recording's address is no part of it");
    fattn_score_mod_destroy(mod), fattn_score_mod_destroy(equal), fattn_score_mod_destroy(another),
        fattn_score_mod_destroy(tensor);
}

/* Both problems are changed so that the field is read. */
#define READING(...)                                                                               \
    do {                                                                                           \
        fattn_problem *const both[] = { &p_, &other_ };                                            \
        for (int i_ = 0; i_ < 2; i_++) {                                                           \
            fattn_problem *q = both[i_];                                                           \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)

static void packing_and_pages_are_baked_in(void)
{
    const fattn_pass F = FATTN_FORWARD, B = FATTN_BACKWARD;
    BAKED(F, ragged_bits, 32);
    BAKED(F, ragged_bits, 64, p_.ragged_bits = 32);
    BAKED(F, ragged, FATTN_RAGGED_Q, READING(q->ragged_bits = 32));
    BAKED(F, ragged_tokens, 1, READING(q->ragged_bits = 32, q->impl = FATTN_IMPL_UNIFIED));
    BAKED(B, total_q, 100, READING(q->ragged_bits = 32));
    BAKED(B, total_kv, 100, READING(q->ragged_bits = 32));
    BAKED(F, cumulative, FATTN_CUMULATIVE_Q | FATTN_CUMULATIVE_KV,
          READING(q->impl = FATTN_IMPL_UNIFIED));
    BAKED(F, len_rank, 1);
    BAKED(F, page_size_k, 16, other_.pages_k = 20);
    BAKED(F, page_size_v, 16, other_.pages_v = 20);
    BAKED(F, pages_k, 21, READING(q->page_size_k = 16, q->pages_k = 20); other_.pages_k = 21);
    BAKED(F, pages_v, 21, READING(q->page_size_v = 16, q->pages_v = 20); other_.pages_v = 21);
    BAKED(F, packed_table, 1, READING(q->page_size_v = 16, q->pages_v = 20));
}

static void what_joins_the_softmax_is_baked_in(void)
{
    const fattn_pass F = FATTN_FORWARD, B = FATTN_BACKWARD;
    BAKED(F, alibi, 1);
    BAKED(F, sink, 1);
    BAKED(B, dsink, 1, READING(q->sink = 1));
    BAKED(F, dropout, 0.25);
    BAKED(B, dropout, 0.25, p_.dropout = 0.5);
    BAKED(F, rng_bits, 32, READING(q->dropout = 0.5));
    BAKED(F, dropout_mask, 1);
    BAKED(B, dropout_mask, 1);
    BAKED(F, scale_in_memory, 1);
    BAKED(F, stats_dtype, FATTN_BF16);
    BAKED(F, block_mask, 1, READING(q->impl = FATTN_IMPL_UNIFIED));
    BAKED(F, unfuse_fma, 1, READING(q->impl = FATTN_IMPL_UNIFIED));
    BAKED(F, bias_dtype, FATTN_BOOL);
    BAKED(F, outputs, FATTN_WANT_STATS_LOG2);
    BAKED(F, outputs, FATTN_WANT_STATS | FATTN_WANT_RNG_DUMP, READING(q->dropout = 0.5));
    BAKED(B, scale_format, FATTN_FORMAT_BSHD,
          READING(q->dtype = FATTN_MXE4M3, q->o_dtype = q->grad_dtype = FATTN_BF16,
                  q->do_dtype = FATTN_DTYPE_DEFAULT, q->has_bias = q->deterministic = 0));
    BAKED(B, do_dtype, FATTN_E5M2,
          READING(q->dtype = q->o_dtype = q->grad_dtype = FATTN_E4M3,
                  q->has_bias = q->deterministic = 0));
    BAKED(F, rope, 1, READING(q->impl = FATTN_IMPL_UNIFIED));
    BAKED(F, rope_dim, 32, READING(q->impl = FATTN_IMPL_UNIFIED, q->rope = 1));
}

/* Each stride of each tensor in its own right; the last one is 1 for ever, but that of a bias of
 * extent 1. */
static void strides_are_baked_in(void)
{
    for (int axis = 0; axis < 3; axis++) {
#define ONE(name)                                                                                  \
    do {                                                                                           \
        fattn_problem p = rich(FATTN_BACKWARD), other;                                             \
        p.dbias = 1;                                                                               \
        other = p;                                                                                 \
        other.name##_strides[axis] *= 1024;                                                        \
        if (other.name##_strides[axis] == p.name##_strides[axis])                                  \
            other.name##_strides[axis] = 1024;                                                     \
        cr_expect(changes(&p, &other, 92700), #name "_strides[%d] is not in the graph", axis);     \
        cover(offsetof(fattn_problem, name##_strides), sizeof p.name##_strides);                   \
    } while (0);
        STRIDES_LIST(ONE)
#undef ONE
    }
    for (int axis = 0; axis < 4; axis++) {
        fattn_problem p = rich(FATTN_FORWARD), other = p;
        other.bias_dim[axis] = axis == 0 ? 2 : 1;
        cr_expect(changes(&p, &other, 92700), "bias_dim[%d] is not in the graph", axis);
    }
    cover(offsetof(fattn_problem, bias_dim), sizeof((fattn_problem *)0)->bias_dim);
}

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
    what_the_graph_bakes_in();
    packing_and_pages_are_baked_in();
    what_joins_the_softmax_is_baked_in();
    strides_are_baked_in();
#define AS_COVERED(field, why)                                                                     \
    for (size_t i = 0; i < sizeof((fattn_problem *)0)->field; i++)                                 \
        cr_expect(!covered[offsetof(fattn_problem, field) + i],                                    \
                  #field " is in the graph after all");                                            \
    cover(offsetof(fattn_problem, field), sizeof((fattn_problem *)0)->field);
    UNBAKED_LIST(AS_COVERED)
#undef AS_COVERED
    for (size_t i = 0; i < sizeof covered; i++)
        cr_expect(covered[i],
                  "the field at byte %zu of fattn_problem is neither changed here nor in the list",
                  i);
}

Test(fields, those_of_the_list_and_what_a_pass_does_not_read_change_no_graph)
{
    fattn_problem p, other;
#define SAME(of_pass, change, ...)                                                                 \
    p = rich(of_pass);                                                                             \
    __VA_ARGS__;                                                                                   \
    other = p;                                                                                     \
    (change);                                                                                      \
    cr_expect_not(changes(&p, &other, 92700), #change);
    for (int pass = FATTN_FORWARD; pass <= FATTN_BACKWARD; pass++) {
        SAME((fattn_pass)pass, other.capture = 1, (void)0)
        SAME((fattn_pass)pass, other.guards_off = 1, (void)0)
        SAME((fattn_pass)pass, other.impl = FATTN_IMPL_COMPOSITE, (void)0)
    }
    SAME(FATTN_FORWARD, other.scaling = FATTN_SCALING_DELAYED, p.dtype = FATTN_E4M3, p.has_bias = 0)
    SAME(FATTN_FORWARD, other.deterministic = 0, (void)0)
    SAME(FATTN_FORWARD, other.dq_strides[0] *= 2, (void)0)
    SAME(FATTN_FORWARD, other.total_q = 100, p.ragged_bits = 32)
    SAME(FATTN_BACKWARD, other.training = 0, (void)0)
    SAME(FATTN_BACKWARD, other.outputs = FATTN_WANT_MAX, (void)0)
    p = rich(FATTN_BACKWARD), p.k_strides[0] = 0, other = p, other.dk_strides[0] = 0;
    cr_expect(changes(&p, &other, 92700), "a gradient that is summed is another plan");
}
