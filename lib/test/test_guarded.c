/* Each guard holds where it was measured, and not one step beyond. */
#include "guarded.h"

static const fattn_rule *guard(const char *name)
{
    for (size_t i = 0; i < fattn_guard_count(); i++) {
        if (strcmp(fattn_guard_at(i)->name, name) == 0)
            return fattn_guard_at(i);
    }
    cr_assert_fail("no guard %s", name);
    return NULL;
}

Test(guarded, each_holds_somewhere_and_for_no_ordinary_problem)
{
    for (size_t i = 0; i < fattn_guard_count(); i++) {
        bool held = false;
        for (int s = 0; s < SUBJECTS; s++) {
            const fattn_problem p = made(&subjects[s]);
            if (strcmp(subjects[s].name, fattn_guard_at(i)->name) != 0)
                continue;
            cr_expect(fattn_rule_holds(fattn_guard_at(i), &p, subjects[s].version, subjects[s].sm), "%s", subjects[s].name);
            held = true;
        }
        cr_expect(held, "%s has no case here", fattn_guard_at(i)->name);
        const fattn_problem p = made(NULL);
        for (int32_t version = 90800; version <= 92900; version += 100)
            for (int32_t sm = 80; sm <= 120; sm += 10)
                cr_expect_not(fattn_rule_holds(fattn_guard_at(i), &p, version, sm), "%s", fattn_guard_at(i)->name);
    }
}

Test(guarded, end_where_their_versions_and_architectures_do)
{
    for (int s = 0; s < SUBJECTS; s++) {
        const fattn_rule *rule = guard(subjects[s].name);
        const fattn_problem p = made(&subjects[s]);
        const int32_t v = subjects[s].version, sm = subjects[s].sm;
        if (rule->cudnn_from != 0) {
            cr_expect(fattn_rule_holds(rule, &p, rule->cudnn_from, sm), "%s", rule->name);
            cr_expect_not(fattn_rule_holds(rule, &p, rule->cudnn_from - 1, sm), "%s", rule->name);
        }
        if (rule->cudnn_to != 0) {
            cr_expect(fattn_rule_holds(rule, &p, rule->cudnn_to, sm), "%s", rule->name);
            cr_expect_not(fattn_rule_holds(rule, &p, rule->cudnn_to + 1, sm), "%s", rule->name);
        }
        if (rule->sm_from != 0)
            cr_expect_not(fattn_rule_holds(rule, &p, v, rule->sm_from - 1), "%s", rule->name);
        if (rule->sm_to != 0)
            cr_expect_not(fattn_rule_holds(rule, &p, v, rule->sm_to + 1), "%s", rule->name);
    }
}

/* Where a guard was seen to be needed and where not, said once more, so that nobody moves an edge by accident. */
Test(guarded, have_the_edges_that_were_measured)
{
    static const struct {
        int place; /* in subjects */
        int32_t below, first, last, above;
    } edges[] = {
        { 1, 0, 90000, 91500, 91501 },      { 3, 0, 90000, 90499, 90500 },      { 4, 92599, 92600, 92800, 92801 },
        { 6, 90799, 90800, 91299, 91300 },  { 8, 91299, 91300, 91300, 91301 },  { 9, 90599, 90600, 91400, 91401 },
        { 10, 91899, 91900, 92599, 92600 }, { 11, 91399, 91400, 92800, 92801 }, { 12, 91899, 91900, 92800, 92801 },
        { 13, 91899, 91900, 92800, 92801 }, { 14, 91399, 91400, 91400, 91401 }, { 15, 91899, 91900, 92800, 92801 },
        { 16, 91399, 91400, 92800, 92801 }, { 17, 91399, 91400, 92800, 92801 }, { 18, 91399, 91400, 92800, 92801 },
        { 22, 91399, 91400, 92800, 92801 }, { 23, 90399, 90400, 92800, 92801 }, { 24, 91399, 91400, 92800, 92801 },
        { 25, 91399, 91400, 92800, 92801 }, { 27, 91899, 91900, 92800, 92801 }, { 28, 91399, 91400, 91400, 91401 },
        { 29, 91399, 91400, 91900, 91901 }, { 33, 90899, 90900, 92499, 92500 }, { 34, 92499, 92500, 92800, 92801 },
        { 35, 91300, 91301, 92499, 92500 }, { 36, 92499, 92500, 92800, 92801 }, { 37, 90399, 90400, 92800, 92801 },
        { 38, 91399, 91400, 91900, 91901 }, { 39, 91399, 91400, 91900, 91901 }, { 40, 91399, 91400, 92800, 92801 },
        { 49, 91399, 91400, 92800, 92801 }, { 52, 90399, 90400, 91000, 91001 }, { 53, 90399, 90400, 91000, 91001 },
        { 56, 91399, 91400, 91400, 91401 }, { 57, 91399, 91400, 91400, 91401 }, { 58, 90399, 90400, 91199, 91200 },
        { 59, 91300, 91301, 91400, 91401 }, { 60, 91899, 91900, 92800, 92801 }, { 61, 91399, 91400, 92800, 92801 },
        { 62, 92799, 92800, 92800, 92801 }, { 63, 91099, 91100, 91100, 91101 },
        { 64, 90799, 90800, 92899, 92900 },
    };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        const subject *s = &subjects[edges[i].place];
        const fattn_rule *rule = guard(s->name);
        const fattn_problem p = made(s);
        cr_expect(edges[i].below == 0 || !fattn_rule_holds(rule, &p, edges[i].below, s->sm), "%s", s->name);
        cr_expect(fattn_rule_holds(rule, &p, edges[i].first, s->sm), "%s", s->name);
        cr_expect(fattn_rule_holds(rule, &p, edges[i].last, s->sm), "%s", s->name);
        cr_expect_not(fattn_rule_holds(rule, &p, edges[i].above, s->sm), "%s", s->name);
    }
}

/* The other configuration of the same engine is right, and stays. */
Test(guarded, of_tiles_name_a_configuration)
{
    static const struct {
        const char *name, *knob;
        int64_t value;
    } tiles[] = {
        { "fp8-large-tile-kernel-32", "KERNEL_CFG", 32 }, { "fp8-large-tile-n-3", "TILE_N", 3 },
        { "fp8-padded-tiles-kernel-7", "KERNEL_CFG", 7 }, { "fp8-padded-tiles-n-2", "TILE_N", 2 },
        { "fp8-large-tile-kernel-31", "KERNEL_CFG", 31 },
    };
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        const fattn_rule *rule = guard(tiles[i].name);
        cr_assert_eq(rule->knob_count, 1);
        cr_expect_str_eq(fattn_knob_name(rule->knobs[0].type), tiles[i].knob);
        cr_expect_eq(rule->knobs[0].value, tiles[i].value);
        fattn_engine engine = { .index = 2, .knob_count = 1 };
        engine.knobs[0] = rule->knobs[0];
        cr_expect(fattn__rule_means(rule, &engine));
        engine.knobs[0].value++;
        cr_expect_not(fattn__rule_means(rule, &engine));
    }
}

/* One step from the subject, and the guard does not hold: X(place in subjects, change) */
#define EDGE_LIST(X)                                                                                                               \
    X(49, p.seq_q = 256)                                                                                                           \
    X(49, p.padding = 0)                                                                                                           \
    X(52, p.bias_dtype = FATTN_BF16)                                                                                               \
    X(54, p.seq_kv = 2)                                                                                                            \
    X(55, p.seq_kv = 320)                                                                                                          \
    X(0, memcpy(p.k_strides, (int64_t[4]){ 1 << 20, 136, 8 * 136, 1 }, sizeof p.k_strides))                                        \
    X(1, p.capture = 0)                                                                                                            \
    X(1, p.seq_kv = 512)                                                                                                           \
    X(1, p.padding = 1)                                                                                                            \
    X(1, p.dtype = FATTN_E4M3)                                                                                                     \
    X(1, p.dtype = FATTN_E5M2)                                                                                                     \
    X(1, p.dtype = FATTN_F32)                                                                                                      \
    X(1, p.pass = FATTN_FORWARD)                                                                                                   \
    X(1, memcpy(p.q_strides, (int64_t[4]){ 8 * 512 * 64, 512 * 64, 64, 1 }, sizeof p.q_strides))                                   \
    X(2, p.training = 0)                                                                                                           \
    X(3, p.ragged_bits = 32)                                                                                                       \
    X(4, p.batch = 2)                                                                                                              \
    X(4, p.heads_q = 2)                                                                                                            \
    X(4, p.seq_q = 2)                                                                                                              \
    X(4, p.pass = FATTN_FORWARD)                                                                                                   \
    X(6, p.batch = 2)                                                                                                              \
    X(6, p.seq_q = 2)                                                                                                              \
    X(6, p.pass = FATTN_FORWARD)                                                                                                   \
    X(7, (p.batch = 2, p.heads_q = 2))                                                                                             \
    X(8, p.batch = 2)                                                                                                              \
    X(8, p.seq_q = 2)                                                                                                              \
    X(9, p.pass = FATTN_FORWARD)                                                                                                   \
    X(9, memset(p.stats_strides, 0, sizeof p.stats_strides))                                                                       \
    X(10, p.heads_q = 1)                                                                                                           \
    X(11, p.attn_scale = 0.001)                                                                                                    \
    X(11, p.has_attn_scale = 0)                                                                                                    \
    X(11, p.seq_kv = 448)                                                                                                          \
    X(11, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(12, p.pass = FATTN_FORWARD)                                                                                                  \
    X(12, p.seq_kv = 512)                                                                                                          \
    X(13, p.attn_scale = 0.001)                                                                                                    \
    X(17, p.o_dtype = FATTN_F16)                                                                                                   \
    X(17, p.dtype = FATTN_F32)                                                                                                     \
    X(17, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(18, p.grad_dtype = FATTN_BF16)                                                                                               \
    X(18, p.dtype = FATTN_F32)                                                                                                     \
    X(18, p.pass = FATTN_FORWARD)                                                                                                  \
    X(19, (p.bias_dim[0] = p.bias_dim[1] = p.bias_dim[2] = 1, p.bias_dim[3] = p.seq_kv))                                           \
    X(19, p.bias_dtype = FATTN_BF16)                                                                                               \
    X(19, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(20, p.bias_dtype = FATTN_F32)                                                                                                \
    X(20, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(21, p.sink = 1)                                                                                                              \
    X(21, p.seq_q = 2)                                                                                                             \
    X(21, p.dtype = FATTN_E4M3)                                                                                                    \
    X(21, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(22, p.grad_dtype = FATTN_BF16)                                                                                               \
    X(22, p.dtype = FATTN_F16)                                                                                                     \
    X(22, p.pass = FATTN_FORWARD)                                                                                                  \
    X(23, p.stats_dtype = FATTN_F32)                                                                                               \
    X(23, p.outputs = 0)                                                                                                           \
    X(24, p.len_broadcast = 0)                                                                                                     \
    X(24, p.batch = 1)                                                                                                             \
    X(25, p.ragged |= FATTN_RAGGED_Q)                                                                                              \
    X(25, p.ragged = FATTN_RAGGED_Q)                                                                                               \
    X(26, p.ragged |= FATTN_RAGGED_Q | FATTN_RAGGED_K | FATTN_RAGGED_V)                                                            \
    X(27, p.ragged = FATTN_RAGGED_ALL)                                                                                             \
    X(28, (memset(p.dk_strides, 0, sizeof p.dk_strides), memset(p.dv_strides, 0, sizeof p.dv_strides)))                            \
    X(28, p.ragged &= ~(uint32_t)(FATTN_RAGGED_DK | FATTN_RAGGED_DV))                                                              \
    X(29, p.seq_q = 2)                                                                                                             \
    X(29, p.heads_k = 0)                                                                                                           \
    X(29, p.outputs = 0)                                                                                                           \
    X(29, p.ragged &= ~(uint32_t)FATTN_RAGGED_STATS)                                                                               \
    X(30, p.has_bias = 0)                                                                                                          \
    X(30, p.bias_dtype = FATTN_BF16)                                                                                               \
    X(31, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(31, p.impl = FATTN_IMPL_COMPOSITE)                                                                                           \
    X(31, p.dtype = FATTN_F16)                                                                                                     \
    X(32, p.dropout = 0)                                                                                                           \
    X(32, p.dtype = FATTN_BF16)                                                                                                    \
    X(33, p.dim_qk = 128)                                                                                                          \
    X(33, p.dtype = FATTN_BF16)                                                                                                    \
    X(33, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(35, p.dim_qk = 192)                                                                                                          \
    X(35, p.padding = 0)                                                                                                           \
    X(35, p.seq_q = 64)                                                                                                            \
    X(36, p.ragged_bits = 32)                                                                                                      \
    X(37, p.has_bias = 0)                                                                                                          \
    X(37, p.dtype = FATTN_F16)                                                                                                     \
    X(37, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(38, p.seq_q = 192)                                                                                                           \
    X(38, p.pass = FATTN_FORWARD)                                                                                                  \
    X(38, p.dtype = FATTN_BF16)                                                                                                    \
    X(39, p.dsink = 0)                                                                                                             \
    X(39, p.dtype = FATTN_BF16)                                                                                                    \
    X(40, (p.ragged_bits = 0, p.ragged = 0))                                                                                       \
    X(40, p.pass = FATTN_FORWARD)                                                                                                  \
    X(40, p.dtype = FATTN_F16)                                                                                                     \
    X(41, p.dim_qk = 128)                                                                                                          \
    X(41, (p.ragged_bits = 0, p.ragged = 0))                                                                                       \
    X(41, p.pass = FATTN_FORWARD)                                                                                                  \
    X(56, p.seq_q = 512)                                                                                                           \
    X(56, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(56, p.dtype = FATTN_F16)                                                                                                     \
    X(57, p.dim_v = 128)                                                                                                           \
    X(58, p.outputs = 0)                                                                                                           \
    X(58, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(58, memset(p.stats_strides, 0, sizeof p.stats_strides))                                                                      \
    X(59, p.k_strides[0] -= 8)                                                                                                     \
    X(59, p.batch = 1)                                                                                                             \
    X(59, p.pass = FATTN_FORWARD)                                                                                                  \
    X(59, (p.padding = 1, p.ragged_bits = 64, p.ragged = FATTN_RAGGED_ALL))                                                        \
    X(62, p.ragged = FATTN_RAGGED_ALL)                                                                                             \
    X(62, p.dsink = 0)                                                                                                             \
    X(62, (p.ragged_bits = 0, p.ragged = 0))                                                                                       \
    X(63, p.deterministic = 0)                                                                                                     \
    X(63, p.pass = FATTN_FORWARD)                                                                                                  \
    X(63, p.dim_qk = 128)                                                                                                          \
    X(63, p.dim_qk = 256)                                                                                                          \
    X(63, p.dtype = FATTN_E4M3)

Test(guarded, end_where_their_problems_do)
{
#define AS_EDGE(place, change)                                                                                                     \
    do {                                                                                                                           \
        fattn_problem p = made(&subjects[place]);                                                                                  \
        const fattn_rule *rule = guard(subjects[place].name);                                                                      \
        cr_expect(fattn_rule_holds(rule, &p, subjects[place].version, subjects[place].sm), "%s", rule->name);                      \
        change;                                                                                                                    \
        cr_expect_not(fattn_rule_holds(rule, &p, subjects[place].version, subjects[place].sm), "%s: %s", rule->name, #change);     \
    } while (0);
    EDGE_LIST(AS_EDGE)
}

Test(guarded, hold_alike_for_both_16_bit_types_and_both_orders)
{
    fattn_problem p = made(&subjects[1]);
    const fattn_rule *rule = guard(subjects[1].name);
    p.dtype = FATTN_F16;
    cr_expect(fattn_rule_holds(rule, &p, 91500, 90));
    memcpy(p.q_strides, (int64_t[4]){ 8 * 64, 64, 2 * 8 * 64, 1 }, sizeof p.q_strides);
    cr_expect(fattn_rule_holds(rule, &p, 91500, 90), "sbhd");
}

static bool far(const char *name, int32_t version, const fattn_problem *p)
{
    return fattn_rule_holds(guard(name), p, version, 90);
}

/* As measured: at a stride of 2^31 of the one, or of the other; not where only the end, an offset or twice the stride is beyond. */
Test(guarded, a_stride_beyond_31_bits_is_one_of_its_tensors_alone)
{
    const int64_t edge = INT64_C(1) << 31;
    const fattn_problem plain = made(&(subject){ "", 0, 0, far_batches_of_do });
    static const struct {
        size_t strides;
        bool qkv, dq, o;
    } rows[] = {
        { offsetof(fattn_problem, q_strides), true, false, false },  { offsetof(fattn_problem, k_strides), true, false, false },
        { offsetof(fattn_problem, v_strides), true, false, false },  { offsetof(fattn_problem, o_strides), false, false, true },
        { offsetof(fattn_problem, do_strides), false, false, true }, { offsetof(fattn_problem, dq_strides), false, true, false },
        { offsetof(fattn_problem, dk_strides), false, false, false }, { offsetof(fattn_problem, dv_strides), false, false, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int axis = 0; axis < 2; axis++) {
            fattn_problem p = plain;
            static const size_t outputs[] = { offsetof(fattn_problem, do_strides), offsetof(fattn_problem, dq_strides), offsetof(fattn_problem, dk_strides), offsetof(fattn_problem, dv_strides) };
            const int64_t near[4] = { 8 * 64 * 512, 64, 512, 1 };
            for (size_t out = 0; out < sizeof outputs / sizeof *outputs; out++)
                memcpy((char *)&p + outputs[out], near, sizeof near);
            int64_t strides[4] = { axis == 0 ? edge : 64, axis == 0 ? 64 : edge, 512, 1 };
            memcpy((char *)&p + rows[i].strides, strides, sizeof strides);
            cr_expect_eq(far("strides-beyond-31-bits-engine-1", 91400, &p), rows[i].qkv || rows[i].dq, "row %zu axis %d", i, axis);
            cr_expect_eq(far("strides-beyond-31-bits-engine-7", 91900, &p), rows[i].qkv, "row %zu axis %d", i, axis);
            cr_expect_eq(far("strides-beyond-31-bits-o", 91900, &p), rows[i].o, "row %zu axis %d", i, axis);
            strides[axis] = edge - 8;
            memcpy((char *)&p + rows[i].strides, strides, sizeof strides);
            cr_expect_not(far("strides-beyond-31-bits-engine-1", 91400, &p) || far("strides-beyond-31-bits-engine-7", 91900, &p) ||
                          far("strides-beyond-31-bits-o", 91900, &p), "row %zu axis %d", i, axis);
        }
    }
}

Test(guarded, a_stride_of_an_axis_of_one_is_none)
{
    fattn_problem p = made(&(subject){ "", 0, 0, far_batches });
    p.batch = 1;
    cr_expect_not(far("strides-beyond-31-bits-engine-7", 91900, &p));
}

Test(guarded, a_score_mod_whose_gradient_is_a_multiple_of_what_comes_is_left_alone)
{
    const subject cooled = { "score-mod-gradient-engine-7", 92000, 90, cooled_by_mod };
    const fattn_problem p = made(&cooled);
    cr_expect_not(fattn_rule_holds(guard(cooled.name), &p, cooled.version, cooled.sm));
    fattn_problem forward = made(&(subject){ "", 0, 0, masked_by_mod });
    forward.pass = FATTN_FORWARD;
    cr_expect_not(fattn_rule_holds(guard(cooled.name), &forward, cooled.version, cooled.sm));
}
