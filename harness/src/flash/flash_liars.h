/* Kernels that are wrong on purpose: the correct emulation (flash.h) with one change.
 * docs/numerics.md section 11.
 *
 * `facts self` plants the same in the kernel of lib/src/cpu. */
#ifndef FACTS_FLASH_LIARS_H
#define FACTS_FLASH_LIARS_H

#include <stdbool.h>

/* X(SYMBOL, "id", SCENE, TYPES, FILLS, "what is wrong")
 * TYPES  ANY; CAST: not f32, which has no cast to change; F8: 8-bit types; F16: f16; HOPPER: 8-bit types that are added in 14 bits;
 *        FINER: f16 and e4m3, for which a type of the same size with fewer bits exists
 * FILLS  FOUR: gauss, needle, neglse, stair_up; PLANT: those and amax_plant; SPIKY: those and spiky, whose partial sums are larger
 *        than their totals; MEAN: those and offset_v, where the factor of P has a mean */
/* clang-format off */
#define FACTS_LIAR_LIST(X)                                                                         \
    X(CAUSAL_LOOSE, "fwd.causal_loose_1", CAUSAL, ANY, FOUR, "one key too many on the right")      \
    X(ALIGN_SWAP, "fwd.align_swap", CAUSAL, ANY, FOUR, "the band starts from the other corner")    \
    X(BR_MAX_LEN, "fwd.br_max_len", PADDED_CAUSAL, ANY, FOUR, "bottom-right at the maximum "       \
      "lengths, not the batch entry's")                                                            \
    X(LEFT_LOOSE, "fwd.left_plus_1", WINDOW, ANY, FOUR, "the left bound is inclusive")             \
    X(TILE_LOST, "fwd.last_tile_lost", PLAIN, ANY, FOUR, "the last tile of keys is skipped")       \
    X(TILE_TWICE, "fwd.last_tile_twice", PLAIN, ANY, FOUR, "the last tile of keys counts twice")   \
    X(TAIL_ZERO, "fwd.oob_tail_zero", PLAIN, ANY, FOUR, "places past the last key are scored 0, "  \
      "not -inf")                                                                                  \
    X(LEN_IGNORED, "fwd.len_ignored", PADDED, ANY, FOUR, "the number of keys for the length")      \
    X(LEN_PLUS_1, "fwd.len_plus_1", PADDED, ANY, FOUR, "one key past the length")                  \
    X(GQA_MOD, "fwd.gqa_mod", PLAIN, ANY, FOUR, "key head h mod h_kv")                             \
    X(SCALE_1PCT, "fwd.scale_1pct", PLAIN, ANY, FOUR, "attention scale * 1.01")                    \
    X(SCALE_1E3, "fwd.scale_1e3", PLAIN, ANY, FOUR, "attention scale * 1.001")                     \
    X(SCALE_1E5, "fwd.scale_1e5", PLAIN, ANY, FOUR, "attention scale * 1.00001")                   \
    X(LOG2E_SHORT, "fwd.log2e_short", PLAIN, ANY, FOUR, "log2 e = 1.4427")                         \
    X(DQK_TAIL, "fwd.dqk_tail", PLAIN, ANY, FOUR, "the last 8 channels of Q and K are not "        \
      "multiplied")                                                                                \
    X(RAGGED_PLUS_1, "fwd.ragged_plus_1", RAGGED, ANY, FOUR,                                       \
      "keys and values start one token late")                                                      \
    X(PAGE_LAST, "fwd.page_last", PAGED, ANY, FOUR, "the first page for the last")                 \
    X(BIAS_H0, "fwd.bias_h0", BIAS, ANY, FOUR, "bias of head 0 for all heads")                     \
    X(BIAS_T, "fwd.bias_t", BIAS, ANY, FOUR, "bias transposed")                                    \
    X(BIAS_SCALED, "fwd.bias_scaled", BIAS, ANY, FOUR, "bias * attention scale")                   \
    X(BIAS_TILE, "fwd.bias_tile", BIAS, ANY, FOUR, "no bias in the last tile of keys")             \
    X(DROPOUT_STALE, "fwd.dropout_stale", DROPOUT, ANY, FOUR, "keep bits of another offset")       \
    X(DROPOUT_NOSCALE, "fwd.dropout_noscale", DROPOUT, ANY, FOUR, "1/(1-p) is missing")            \
    X(O_NO_RESCALE, "fwd.o_no_rescale", PLAIN, ANY, FOUR, "O is not rescaled in the last tile of " \
      "keys")                                                                                      \
    X(MAX_INIT_0, "fwd.max_init_0", PLAIN, ANY, FOUR, "the running maximum starts at 0")           \
    X(P_TRUNC, "fwd.p_trunc", PLAIN, CAST, FOUR, "P truncated, not rounded")                       \
    X(O_TRUNC, "fwd.o_trunc", PLAIN, CAST, FOUR, "O truncated, not rounded")                       \
    X(O_TRUNC_TILE, "fwd.o_trunc_tile", PLAIN, CAST, FOUR, "O truncated in the last tile of rows") \
    X(RECIPROCAL, "fwd.reciprocal_narrow", PLAIN, CAST, FOUR,                                      \
      "1 / row sum rounded to the output type")                                                    \
    X(O_ACC_NARROW, "fwd.o_acc_narrow", PLAIN, CAST, SPIKY, "O is accumulated in the output type") \
    X(ACC_RUN, "fwd.acc_run", PLAIN, HOPPER, MEAN, "P V is added in 14 bits through all keys")     \
    X(O_GAIN_1E3, "fwd.o_gain_1e3", PLAIN, ANY, FOUR, "O * 1.001")                                 \
    X(ONE_ELEMENT, "fwd.one_element", PLAIN, ANY, SPIKY, "one element of O * 1.25")                \
    X(Q_TILE_UNWRITTEN, "fwd.q_tile_unwritten", PLAIN, ANY, FOUR,                                  \
      "the last tile of rows is not stored")                                                       \
    X(LSE_LOG2, "fwd.lse_log2", PLAIN, ANY, FOUR, "Stats in base 2")                               \
    X(MAX_LOW, "fwd.max_low", PLAIN, ANY, FOUR, "Max is 3 too low, and Sum_exp e^3 times as large" \
      )                                                                                            \
    X(NO_SINK, "fwd.no_sink", SINK, ANY, FOUR, "the sink is ignored")                              \
    X(SPLIT_WEIGHT, "fwd.split_weight", SPLIT, ANY, FOUR, "the last part of the keys has the "     \
      "first part's weight")                                                                       \
    X(P_SATURATES, "fwd.p_saturates", PLAIN, F8, SPIKY, "2^-thr is missing: P clips at the "       \
      "type's largest value")                                                                      \
    X(O_FLOOR, "fwd.o_floor", PLAIN, CAST, FOUR, "O rounded toward minus infinity")                \
    X(O_GAIN_5E4, "fwd.o_gain_5e4", PLAIN, ANY, FOUR, "O * 1.0005")                                \
    X(O_GAIN_1PCT, "fwd.o_gain_1pct", PLAIN, ANY, FOUR, "O * 1.01")                                \
    X(O_GAIN_3PCT, "fwd.o_gain_3pct", PLAIN, ANY, FOUR, "O * 1.03")                                \
    X(O_GAIN_6PCT, "fwd.o_gain_6pct", PLAIN, ANY, FOUR, "O * 1.0625")                              \
    X(O_GAIN_ROWS, "fwd.o_gain_rows", PLAIN, ANY, FOUR, "the last tile of rows of one head * "     \
      "1.002")                                                                                     \
    X(O_FLUSHED, "fwd.o_flushed", PLAIN, F16, FOUR, "subnormal O becomes 0")                       \
    X(P_OTHER_TYPE, "fwd.p_other_type", PLAIN, FINER, FOUR, "P in the type with fewer bits: bf16 " \
      "for f16, e5m2 for e4m3")                                                                    \
    X(EXP_CUT, "fwd.exp_cut", PLAIN, ANY, FOUR, "exp(x) = 0 below -10")                            \
    X(SUM_OF_CAST, "fwd.sum_of_cast", PLAIN, CAST, FOUR, "the row sum adds P after its cast")      \
    X(KEEP_FACTOR, "fwd.keep_factor", DROPOUT, ANY, FOUR, "1/(1-p) rounded to bf16")               \
    X(TILE_EDGE_MAX, "fwd.tile_edge_max", PLAIN, ANY, FOUR, "the row's largest key is lost where " \
      "it ends a tile")                                                                            \
    X(LAST_HEAD_KEY, "fwd.last_head_key", PLAIN, ANY, FOUR, "the last head loses the last key")    \
    X(V_ROW, "fwd.v_row", PLAIN, ANY, FOUR, "V of key 0 for key 1 in the last head")               \
    X(DEAD_STATS, "fwd.dead_stats", EMPTY, ANY, FOUR, "Stats of a row without a key are 0")        \
    X(B_CAUSAL_LOOSE, "bwd.causal_loose_1", B_CAUSAL, ANY, FOUR, "one key too many on the right")  \
    X(B_LEFT_LOOSE, "bwd.left_plus_1", B_WINDOW, ANY, FOUR, "the left bound is inclusive")         \
    X(B_BOUNDS_SWAP, "bwd.bounds_swap", B_WINDOW, ANY, FOUR, "left and right exchanged")           \
    X(B_LEN_PLUS_1, "bwd.len_plus_1", B_PADDED, ANY, FOUR, "one key past the length")              \
    X(B_LEN_IGNORED, "bwd.len_ignored", B_PADDED, ANY, FOUR, "the number of keys for the length")  \
    X(B_TILE_LOST, "bwd.last_tile_lost", B_PLAIN, ANY, FOUR, "P = 0 in the last tile of keys")     \
    X(B_GQA_MOD, "bwd.gqa_mod", B_PLAIN, ANY, FOUR, "key head h mod h_kv")                         \
    X(B_GQA_LAST, "bwd.gqa_last_only", B_PLAIN, ANY, FOUR, "dK and dV of the group's last head "   \
      "only")                                                                                      \
    X(B_NO_DELTA, "bwd.no_delta", B_PLAIN, ANY, FOUR, "D = 0")                                     \
    X(B_SCALE_1PCT, "bwd.scale_1pct", B_PLAIN, ANY, FOUR, "attention scale * 1.01")                \
    X(B_DQ_NOSCALE, "bwd.dq_noscale", B_PLAIN, ANY, FOUR, "dQ without the attention scale")        \
    X(B_DQ_TWICE, "bwd.dq_twice", B_PLAIN, ANY, FOUR, "the first tile of keys is added to dQ "     \
      "twice")                                                                                     \
    X(B_DQ_NARROW, "bwd.dq_acc_narrow", B_PLAIN, CAST, SPIKY,                                      \
      "dQ is accumulated in the input type")                                                       \
    X(B_P_TRUNC, "bwd.p_trunc", B_PLAIN, CAST, FOUR, "P truncated before dV")                      \
    X(B_DROPOUT_STALE, "bwd.dropout_stale", B_DROPOUT, ANY, FOUR,                                  \
      "keep bits differ from the forward's")                                                       \
    X(B_TAIL_EXP, "bwd.oob_tail_exp", B_PLAIN, ANY, FOUR, "places past the last key are not "      \
      "masked: exp(0 - LSE) overflows")                                                            \
    X(B_DV_FLOOR, "bwd.dv_floor", B_PLAIN, CAST, FOUR, "dV rounded toward minus infinity")         \
    X(B_ACC_RUN, "bwd.acc_run", B_PLAIN, HOPPER, MEAN, "dQ, dK and dV are added in 14 bits "       \
      "through all keys and queries")                                                              \
    X(B_DK_GAIN_5E4, "bwd.dk_gain_5e4", B_PLAIN, ANY, FOUR, "dK * 1.0005")                         \
    X(B_DK_GAIN_3PCT, "bwd.dk_gain_3pct", B_PLAIN, ANY, FOUR, "dK * 1.03")                         \
    X(B_DS_FLOOR, "bwd.ds_floor", B_PLAIN, CAST, FOUR, "dS rounded toward minus infinity")         \
    X(B_DS_OTHER_TYPE, "bwd.ds_other_type", B_PLAIN, FINER, FOUR, "dS in the type with fewer "     \
      "bits: bf16 for f16, e5m2 for e4m3")                                                         \
    X(B_DELTA_TAIL, "bwd.delta_tail", B_PLAIN, ANY, FOUR, "D without the last 8 channels")         \
    X(B_LAST_ROW_DK, "bwd.last_row_dk", B_PLAIN, ANY, FOUR, "the last row of one head adds "       \
      "nothing to dK")                                                                             \
    X(B_GROUP_NARROW, "bwd.group_narrow", B_PLAIN, CAST, FOUR, "a group's dK and dV are added in " \
      "the input type")                                                                            \
    X(B_PADDED_DK, "bwd.padded_dk", B_PADDED, ANY, FOUR, "dK of padded keys is that of the last "  \
      "key")                                                                                       \
    X(AMAX_O_LATE, "sys.amax_o_late", PLAIN, F8, FOUR, "Amax_O after scale_o")                     \
    X(AMAX_TILE, "sys.amax_tile", PLAIN, F8, PLANT, "amax without the last tile of rows")          \
    X(AMAX_PADDING, "sys.amax_padding", PADDED, F8, PLANT, "amax reads padded rows")               \
    X(AMAX_DP_EARLY, "sys.amax_dp_early", B_PLAIN, F8, FOUR, "Amax_dP before D is subtracted")     \
    X(SCALE_S_IGNORED, "sys.scale_s_ignored", PLAIN, F8, SPIKY,                                    \
      "scale_s and descale_s are dropped")                                                         \
    X(DBIAS_SCALED, "sys.dbias_scaled", B_BIAS, ANY, FOUR, "dBias * attention scale")              \
    X(DBIAS_BATCH, "sys.dbias_batch", B_BIAS, ANY, FOUR, "dBias of the last batch entry alone")    \
    X(DBIAS_MASKED, "sys.dbias_masked", B_BIAS_CAUSAL, ANY, FOUR, "masked entries of dBias are "   \
      "not written")                                                                               \
    X(STATS_STRIDE, "sys.stats_stride", RAGGED, ANY, FOUR, "ragged Stats are written head-major")  \
    X(WORKSPACE_DIRTY, "sys.workspace_dirty", B_PLAIN, ANY, FOUR, "dQ's accumulators in the "      \
      "workspace are not zeroed")                                                                  \
    X(OFFSET_INT32, "sys.offset_int32", HUGE_OFFSET, ANY, FOUR, "element offsets in 32 bits")      \
    X(GAP_IGNORED, "sys.gap_ignored", GAPS, ANY, FOUR, "strides of O are taken as dense")          \
    X(EMPTY_BATCH, "sys.empty_batch", EMPTY, ANY, FOUR, "a row without a key is 0/0")              \
    X(PAGE_COUNT, "sys.page_count", PAGED, ANY, FOUR, "the maximum number of pages is read, not "  \
      "the actual one")                                                                            \
    X(SOFTCAP_GRAD, "sys.softcap_grad", B_SOFTCAP, ANY, FOUR, "the slope 1 - tanh^2 is missing")   \
    X(DROPOUT_8BIT, "sys.dropout_8bit", DROPOUT, ANY, FOUR, "p rounded to 1/256")                  \
    X(MX_SWIZZLE, "sys.mx_swizzle", NOWHERE, ANY, FOUR, "mxfp8: block scales of another place")    \
    X(GRAPH_SEED, "sys.graph_seed", NOWHERE, ANY, FOUR, "a replay keeps the captured seed and "    \
      "offset")
/* clang-format on */

#define FACTS_AS_ENUM(symbol, id, scene, types, fills, what) FACTS_LIAR_##symbol,
typedef enum facts_liar {
    FACTS_LIAR_NONE,
    FACTS_LIAR_LIST(FACTS_AS_ENUM) FACTS_LIAR_COUNT
} facts_liar;
#undef FACTS_AS_ENUM

extern const char *const facts_liar_words[FACTS_LIAR_COUNT]; /* "honest" first */
extern const char *const facts_liar_what[FACTS_LIAR_COUNT];

#endif
