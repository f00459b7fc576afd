/* Packed and paged sequences, ALiBi, boolean masks, sinks, dropout: the composite graphs, put to a
 * real cuDNN for a described H100. All of it ran on an H100 and was right; every version from 9.12
 * to 9.28 that was asked offers it and compiles it. */
#include "support/asked.h"

TestSuite(graph_surface, .init = open_context, .fini = close_context, .timeout = 600);

/* Names here are 2, 1 forward and 6, 7 backward; to 9.14 the backward's were 2 and 1. */
static const char *named(const char *engines)
{
    const bool old = version < 91500;
    return strcmp(engines, "6,7") == 0 ? (old ? "2,1" : "6,7")
           : strcmp(engines, "6") == 0 ? (old ? "2" : "6")
                                       : engines;
}

typedef struct subject {
    const char *name, *engines; /* the start of the answer */
    fattn_problem problem;
} subject;

#define PROBLEM(...)                                                                               \
    { .batch = 2, .heads_q = 8, .seq_q = 512, .seq_kv = 512, .dim_qk = 128, __VA_ARGS__ }
#define FORWARD(...) PROBLEM(.outputs = FATTN_WANT_STATS, __VA_ARGS__)
#define BACKWARD(...) PROBLEM(.pass = FATTN_BACKWARD, __VA_ARGS__)
#define PACKED .padding = 1, .ragged_bits = 32
#define PAGED .padding = 1, .page_size_k = 16, .page_size_v = 16, .pages_k = 70, .pages_v = 70

static const subject packed[] = {
    { "packed", "2,1", FORWARD(PACKED) },
    { "offsets of 64 bits", "2,1", FORWARD(.padding = 1, .ragged_bits = 64) },
    { "dense stats", "2,1", FORWARD(PACKED, .ragged = FATTN_RAGGED_ALL & ~FATTN_RAGGED_STATS) },
    { "stats head by head", "2,1", FORWARD(PACKED, .stats_strides = { 700, 700, 1, 1 }) },
    { "queries alone", "2,1", FORWARD(PACKED, .ragged = FATTN_RAGGED_Q | FATTN_RAGGED_O) },
    { "grouped, causal_br", "2,1",
      FORWARD(PACKED, .heads_k = 2, .has_right = 1, .align = FATTN_BOTTOM_RIGHT) },
    { "backward", "6", BACKWARD(PACKED) },
    { "backward, dense stats", "6",
      BACKWARD(PACKED, .ragged = FATTN_RAGGED_ALL & ~FATTN_RAGGED_STATS) },
    { "backward, stats head by head", "6", BACKWARD(PACKED, .stats_strides = { 700, 700, 1, 1 }) },
    { "backward, grouped", "6", BACKWARD(PACKED, .heads_k = 2, .has_right = 1) },
    { "backward, totals", "6", BACKWARD(PACKED, .total_q = 700, .total_kv = 800) },
    { "backward, totals, grouped", "6",
      BACKWARD(PACKED, .heads_k = 2, .total_q = 700, .total_kv = 800) },
    { "backward, repeating", "6", BACKWARD(PACKED, .deterministic = 1) },
    { "backward, sink", "6", BACKWARD(PACKED, .sink = 1, .dsink = 1, .guards_off = 1) },
};

static const subject paged[] = {
    { "paged", "2,1", FORWARD(PAGED) },
    { "K alone", "2,1", FORWARD(.padding = 1, .page_size_k = 16, .pages_k = 70) },
    { "V alone", "2,1", FORWARD(.padding = 1, .page_size_v = 16, .pages_v = 70) },
    { "pools head by head", "2,1",
      FORWARD(PAGED, .k_strides = { 8 * 16 * 128, 16 * 128, 128, 1 },
              .v_strides = { 8 * 16 * 128, 16 * 128, 128, 1 }) },
    { "causal_br", "2,1", FORWARD(PAGED, .has_right = 1, .align = FATTN_BOTTOM_RIGHT) },
    { "packed queries", "2,1", FORWARD(PAGED, .ragged_bits = 32) },
    { "packed tables", "2,1", FORWARD(PAGED, .packed_table = 1) },
};

static const subject joined[] = {
    { "alibi", "2,1", FORWARD(.alibi = 1, .has_right = 1) },
    { "alibi without a bound", "2,1", FORWARD(.alibi = 1) },
    { "alibi and bias", "2,1", FORWARD(.alibi = 1, .has_bias = 1) },
    { "alibi, backward", "6,7", BACKWARD(.alibi = 1, .has_right = 1) },
    { "mask of keys", "2,1",
      FORWARD(.has_bias = 1, .bias_dtype = FATTN_BOOL, .bias_dim = { 2, 1, 1, 512 },
              .guards_off = 1) },
    { "mask of scores, backward", "6,7",
      BACKWARD(.has_bias = 1, .bias_dtype = FATTN_BOOL, .bias_dim = { 2, 8, 512, 512 },
               .guards_off = 1) },
    { "sink", "2,1", FORWARD(.sink = 1) },
    { "sink without stats", "2,1", PROBLEM(.sink = 1) },
    { "sink, backward", "6,7", BACKWARD(.sink = 1) },
    { "dsink", "6,7", BACKWARD(.sink = 1, .dsink = 1) },
    { "dsink, padding, dropout", "6,7",
      BACKWARD(.sink = 1, .dsink = 1, .padding = 1, .dropout = 0.2, .guards_off = 1) },
    { "dropout", "2,1", FORWARD(.dropout = 0.2) },
    { "dropout, dump, 32 bits", "2,1",
      PROBLEM(.dropout = 0.2, .rng_bits = 32, .outputs = FATTN_WANT_STATS | FATTN_WANT_RNG_DUMP) },
    { "dropout, packed, causal", "2,1", FORWARD(PACKED, .dropout = 0.2, .has_right = 1) },
    { "dropout, backward", "6,7", BACKWARD(.dropout = 0.2, .heads_k = 2) },
    { "dropout, backward, dump", "6,7", BACKWARD(.dropout = 0.2, .outputs = FATTN_WANT_RNG_DUMP) },
    { "the caller's mask", "2,1", FORWARD(.dropout_mask = 1) },
    { "the caller's mask, backward", "6,7", BACKWARD(.dropout_mask = 1) },
    { "scale in memory", "2,1", FORWARD(.scale_in_memory = 1) },
    { "scale in memory, backward", "6,7", BACKWARD(.scale_in_memory = 1) },
    { "lengths of rank 1", "unsupported: ", FORWARD(.padding = 1, .len_rank = 1) },
};

static const subject single[] = {
    { "sink", "2,1", FORWARD(.sink = 1, .spelling = FATTN_SPELLING_SINGLE) },
    { "sink, max, sum_exp", "2,1",
      PROBLEM(.sink = 1, .outputs = FATTN_WANT_MAX | FATTN_WANT_SUM_EXP) },
    { "dropout", "2,1", FORWARD(.dropout = 0.2, .spelling = FATTN_SPELLING_SINGLE) },
    { "the caller's mask", "2,1", FORWARD(.dropout_mask = 1, .spelling = FATTN_SPELLING_SINGLE) },
    { "paged", "2,1", FORWARD(PAGED, .spelling = FATTN_SPELLING_SINGLE) },
    { "packed", "2,1", FORWARD(PACKED, .spelling = FATTN_SPELLING_SINGLE) },
    { "sink, backward", "6,7", BACKWARD(.sink = 1, .dsink = 1, .spelling = FATTN_SPELLING_SINGLE) },
};

static void expect_answers(const subject *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *got = answer(rows[i].problem), *want = named(rows[i].engines);
        cr_expect_eq(strncmp(got, want, strlen(want)), 0, "%s: got '%s', want '%s'", rows[i].name,
                     got, want);
    }
}

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

Test(graph_surface, packed_sequences_are_offered)
{
    expect_answers(packed, COUNT(packed));
}

Test(graph_surface, paged_keys_and_values_are_offered)
{
    expect_answers(paged, COUNT(paged));
}

Test(graph_surface, what_joins_the_score_or_the_softmax_is_offered)
{
    expect_answers(joined, COUNT(joined));
}

Test(graph_surface, the_same_in_single_operations_is_offered)
{
    if (version < 92000)
        expect_answers(
            (const subject[]){
                { "too old", "unsupported: spelling single needs cuDNN 9.20", single[0].problem } },
            1);
    else
        expect_answers(single, COUNT(single));
}

Test(graph_surface, stats_in_base_2_need_9_27)
{
    const subject row = { "log2",
                          version < 92700 ? "unsupported: outputs: stats in base 2 need cuDNN 9.27"
                                          : "2,1",
                          PROBLEM(.outputs = FATTN_WANT_STATS_LOG2) };
    expect_answers(&row, 1);
}

static size_t compiled_as(const subject *row, int32_t config)
{
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    options.config = config;
    return compiled(row->name, row->problem, &options);
}

/* One of each kind, every configuration of some. */
Test(graph_surface, plans_compile)
{
    static const subject *const rows[] = { &packed[0],  &packed[3],  &packed[9], &paged[0],
                                           &paged[2],   &paged[6],   &joined[0], &joined[4],
                                           &joined[5],  &joined[6],  &joined[9], &joined[12],
                                           &joined[14], &joined[16], &joined[17] };
    for (size_t i = 0; i < COUNT(rows); i++)
        compile(rows[i]->name, rows[i]->problem);
    if (!compiling_all())
        return;
    compiled_as(&paged[0], 1);
    compiled_as(&joined[11], 1);
}

Test(graph_surface, declared_totals_make_the_workspace_smaller_where_they_are_right)
{
    if (!compiling_all())
        return;
    const size_t whole = compiled_as(&packed[6], 0), declared = compiled_as(&packed[10], 0);
    cr_expect_lt(declared, whole);
    subject odd = { "dims that are no multiple of 16", "",
                    BACKWARD(PACKED, .total_q = 700, .total_kv = 800) };
    odd.problem.dim_qk = 72;
    const size_t left_out = compiled_as(&odd, 0);
    odd.problem.guards_off = 1;
    cr_expect_lt(compiled_as(&odd, 0), left_out, "with the guards off it is said as it was given");
}
