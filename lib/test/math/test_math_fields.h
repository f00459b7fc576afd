/* Every field of a problem changes the answer of the cpu and of the math backend, is refused by them, or is in a list of those
 * that say nothing about an answer. A new field that an engine ignores fails here: it declares the feature (feature_set.h) only
 * when it has it. cudnn/test_graph_fields.c says the same of cuDNN's graphs. Part of test_math_gpu.c. */

static fattn_problem plain(fattn_pass pass)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.pass = pass, p.batch = 2, p.heads_q = 4, p.heads_k = 2, p.heads_v = 1, p.seq_q = 24;
    p.seq_kv = 40, p.dim_qk = 16, p.dim_v = 8, p.has_left = p.has_right = p.padding = 1;
    p.window_left = 9, p.window_right = 3, p.align = FATTN_BOTTOM_RIGHT, p.has_bias = 1;
    return p;
}

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

static fattn_value added(fattn_recorder *r, fattn_value score, void *user)
{
    const int64_t dim[4] = { 1, 4, 24, 40 };
    (void)user;
    return fattn_record(r, FATTN_MOD_ADD, score, fattn_record_tensor(r, "t", FATTN_F32, dim, NULL),
                        0);
}

static unsigned char met[sizeof(fattn_problem)];

/* `same`: the field says where things lie, so an engine that ignored it would read others. */
static void expect_read(const fattn_problem *p, const fattn_problem *q, const char *field,
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

/* The statements change p before q has the field's other value. */
#define CHANGED(of_pass, field, value, same, ...)                                                  \
    do {                                                                                           \
        fattn_problem p = plain(FATTN_##of_pass), q;                                               \
        __VA_ARGS__;                                                                               \
        q = p;                                                                                     \
        q.field = (value);                                                                         \
        expect_read(&p, &q, #field, same);                                                         \
        memset(met + offsetof(fattn_problem, field), 1, sizeof p.field);                           \
    } while (0)
#define READ(of_pass, field, value, ...) CHANGED(of_pass, field, value, false, __VA_ARGS__)
#define PLACED(of_pass, field, value, ...) CHANGED(of_pass, field, value, true, __VA_ARGS__)

#define PAGED p.page_size_k = p.page_size_v = 16, p.pages_k = p.pages_v = POOL

/* Gaps between batch entries, or between the heads of a bias; those of an output are hashed too. */
#define STRIDES(of_pass, name, axis, same)                                                         \
    do {                                                                                           \
        fattn_problem p = plain(FATTN_##of_pass), q;                                               \
        p.dbias = p.pass == FATTN_BACKWARD, p.outputs = FATTN_WANT_STATS;                          \
        cr_assert_eq(fattn_problem_resolve(&p, &q), FATTN_OK, "%s", fattn_last_error());           \
        p = q;                                                                                     \
        q.name##_strides[axis] *= 2;                                                               \
        expect_read(&p, &q, #name "_strides", same);                                               \
        memset(met + offsetof(fattn_problem, name##_strides), 1, sizeof p.name##_strides);         \
    } while (0)

/* What says nothing about an answer of these two. */
#define UNREAD_LIST(X)                                                                             \
    X(struct_size, "how much of the struct there is")                                              \
    X(do_dtype, "of 8-bit types: cpu/test_cpu_narrow.c")                                           \
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

static void numbers_and_masks_are_read(void)
{
    READ(FORWARD, pass, FATTN_BACKWARD);
    READ(FORWARD, dtype, FATTN_F16);
    READ(FORWARD, o_dtype, FATTN_F32);
    READ(BACKWARD, grad_dtype, FATTN_F32);
    READ(FORWARD, stats_dtype, FATTN_BF16);
    READ(FORWARD, training, 1);
    READ(FORWARD, outputs, FATTN_WANT_STATS | FATTN_WANT_SUM_EXP);
    READ(FORWARD, batch, 3);
    READ(FORWARD, heads_q, 8);
    READ(FORWARD, heads_k, 4);
    READ(FORWARD, heads_v, 2);
    READ(FORWARD, seq_q, 25);
    READ(FORWARD, seq_kv, 41);
    READ(FORWARD, dim_qk, 24);
    READ(FORWARD, dim_v, 16);
    READ(FORWARD, attn_scale, 0.5, p.has_attn_scale = 1, p.attn_scale = 2);
    READ(FORWARD, has_attn_scale, 1, p.attn_scale = 2);
    READ(FORWARD, scale_in_memory, 1);
    READ(FORWARD, window_left, 5);
    READ(FORWARD, window_right, 1);
    READ(FORWARD, has_left, 0);
    READ(FORWARD, has_right, 0);
    READ(FORWARD, align, FATTN_TOP_LEFT);
    READ(FORWARD, block_mask, 1, p.seq_q = p.seq_kv = 150, p.has_left = p.has_right = 0);
    READ(FORWARD, padding, 0);
    READ(FORWARD, len_broadcast, 1);
}

static void scores_are_read(void)
{
    fattn_score_mod *mod, *tensor;
    cr_assert_eq(fattn_score_mod_softcap(&mod, 1), FATTN_OK);
    READ(FORWARD, score_mod, mod);
    READ(FORWARD, bias_dim[1], 1, p.bias_dim[0] = 1, p.bias_dim[1] = 4, p.bias_dim[2] = 24,
         p.bias_dim[3] = 40);
    READ(FORWARD, bias_dim[0], 2, p.bias_dim[0] = 1, p.bias_dim[1] = 4, p.bias_dim[2] = 24,
         p.bias_dim[3] = 40);
    memset(met + offsetof(fattn_problem, bias_dim), 1, sizeof((fattn_problem *)0)->bias_dim);
    READ(FORWARD, has_bias, 0);
    READ(FORWARD, bias_dtype, FATTN_BOOL);
    READ(BACKWARD, dbias, 1);
    cr_assert_eq(fattn_score_mod_create(&tensor, added, NULL, NULL), FATTN_OK);
    READ(BACKWARD, mod_gradients, 1, p.score_mod = tensor);
    READ(FORWARD, dropout, 0.5);
    READ(FORWARD, dropout_mask, 1);
    READ(FORWARD, alibi, 1);
    READ(FORWARD, sink, 1);
    READ(BACKWARD, dsink, 1, p.sink = 1);
    READ(FORWARD, rope, 1);
    READ(FORWARD, rope_dim, 8, p.rope = 1);
    READ(FORWARD, impl, FATTN_IMPL_UNIFIED);
    READ(FORWARD, ragged_bits, 32);
    READ(FORWARD, ragged, FATTN_RAGGED_Q, p.ragged_bits = 32);
    fattn_score_mod_destroy(mod), fattn_score_mod_destroy(tensor);
}

static void places_are_read(void)
{
    PLACED(FORWARD, cumulative, FATTN_CUMULATIVE_Q | FATTN_CUMULATIVE_KV);
    PLACED(FORWARD, len_rank, 1);
    PLACED(FORWARD, ragged_tokens, 1, p.ragged_bits = 32);
    PLACED(FORWARD, rng_bits, 64, p.dropout = 0.5, p.rng_bits = 32);
    PLACED(FORWARD, page_size_k, 8, PAGED);
    PLACED(FORWARD, page_size_v, 8, PAGED);
    PLACED(FORWARD, pages_k, POOL + 1, PAGED);
    PLACED(FORWARD, pages_v, POOL + 1, PAGED);
    PLACED(FORWARD, packed_table, 1, PAGED);
    STRIDES(FORWARD, q, 0, true);
    STRIDES(FORWARD, k, 0, true);
    STRIDES(FORWARD, v, 0, true);
    STRIDES(BACKWARD, do, 0, true);
    STRIDES(FORWARD, bias, 1, false); /* filled as one array: other numbers */
    STRIDES(FORWARD, o, 0, false);
    STRIDES(FORWARD, stats, 0, false);
    STRIDES(BACKWARD, dq, 0, false);
    STRIDES(BACKWARD, dk, 0, false);
    STRIDES(BACKWARD, dv, 0, false);
    STRIDES(BACKWARD, dbias, 1, false);
}

Test(math_gpu, every_field_of_a_problem_is_read_refused_or_listed)
{
    numbers_and_masks_are_read();
    scores_are_read();
    places_are_read();
#define AS_MET(field, why)                                                                         \
    memset(met + offsetof(fattn_problem, field), 1, sizeof((fattn_problem *)0)->field);
    UNREAD_LIST(AS_MET)
#undef AS_MET
    for (size_t i = 0; i < sizeof met; i++)
        cr_expect(met[i], "the field at byte %zu is neither changed here nor in the list", i);
}
