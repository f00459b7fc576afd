/* Planted faults of an attention kernel: each is one FATTN__LIE at a line of lib/src/cpu, and the
 * kernel that has them works as a GPU's does (gpu_like.h). docs/numerics.md section 11.
 *
 * X(SYMBOL, "id", TYPES, SCENE, "what is wrong")
 * TYPES  ANY; CAST: not f32, which has no cast to change; F8: 8-bit types; WIDE: the others; F16:
 *        f16; HOPPER: 8-bit types that are added in 14 bits; FINER: f16 and e4m3, for which a type
 *        of the same size with fewer bits exists
 * SCENE  what a case needs, so that it can show the fault: FATTN__SCENE_... */
#ifndef FATTN_KERNEL_FAULTS_H
#define FATTN_KERNEL_FAULTS_H

/* clang-format off */
#define FATTN__SCENE_PLAIN "pass=fwd"
#define FATTN__SCENE_CAUSAL "pass=fwd & mask~causal*"
#define FATTN__SCENE_WINDOW "pass=fwd & window.left<inf"
#define FATTN__SCENE_PADDED "pass=fwd & (padding!=none | lens!=none)"
#define FATTN__SCENE_PADDED_CAUSAL                                                                 \
    "pass=fwd & (mask=causal_br | align=br) & (padding!=none | lens!=none)"
#define FATTN__SCENE_BIAS "pass=fwd & bias!=none & bias!~bool*"
#define FATTN__SCENE_DROPOUT "pass=fwd & dropout>0"
#define FATTN__SCENE_SINK "pass=fwd & softmax=sink"
#define FATTN__SCENE_SPLIT "pass=fwd"
#define FATTN__SCENE_RAGGED "pass=fwd & layout~*th*"
#define FATTN__SCENE_PAGED "pass=fwd & paged!=0"
#define FATTN__SCENE_GAPS "pass=fwd & stride!=dense"
#define FATTN__SCENE_EMPTY "pass=fwd & (padding~zero* | lens!=none)"
#define FATTN__SCENE_STATS "pass=fwd & want!=none"
#define FATTN__SCENE_MAX "pass=fwd & want~*max+sum_exp"
#define FATTN__SCENE_LOW "pass=fwd & (fill=neglse | bias_fill=rows_low)"
#define FATTN__SCENE_DEAD_STATS "pass=fwd & want!=none & padding~zero*"
#define FATTN__SCENE_PACKED_STATS "pass=fwd & want!=none & layout~*th* & h!=1"
#define FATTN__SCENE_SCALED "pass=fwd & scales!=unit"
#define FATTN__SCENE_HUGE_OFFSET "pass=fwd & stride!=dense"
#define FATTN__SCENE_B_PLAIN "pass=bwd"
#define FATTN__SCENE_B_GROUPS "pass=bwd & h~*/*"
#define FATTN__SCENE_B_LARGE_GROUP "pass=bwd & h in (8/2, 16/1)"
#define FATTN__SCENE_B_LONG "pass=bwd & (s.kv>=500 | fill=spiky)"
#define FATTN__SCENE_B_CAUSAL "pass=bwd & mask~causal*"
#define FATTN__SCENE_B_WINDOW "pass=bwd & window.left<inf"
#define FATTN__SCENE_B_PADDED "pass=bwd & (padding!=none | lens!=none)"
#define FATTN__SCENE_B_DROPOUT "pass=bwd & dropout>0"
#define FATTN__SCENE_B_BIAS "pass=bwd & dbias=1"
#define FATTN__SCENE_B_BIAS_CAUSAL "pass=bwd & dbias=1 & mask~causal*"
#define FATTN__SCENE_B_SOFTCAP "pass=bwd & mod~softcap*"

#define FATTN__FAULT_LIST(X)                                                                       \
    X(CAUSAL_LOOSE, "fwd.causal_loose_1", ANY, CAUSAL, "one key too many on the right")            \
    X(ALIGN_SWAP, "fwd.align_swap", ANY, CAUSAL, "the band starts from the other corner")          \
    X(BR_MAX_LEN, "fwd.br_max_len", ANY, PADDED_CAUSAL, "bottom-right at the maximum lengths")     \
    X(LEFT_LOOSE, "fwd.left_plus_1", ANY, WINDOW, "the left bound is inclusive")                   \
    X(TILE_LOST, "fwd.last_tile_lost", ANY, PLAIN, "the last tile of keys is skipped")             \
    X(TILE_TWICE, "fwd.last_tile_twice", ANY, PLAIN, "the last tile of keys counts twice")         \
    X(TAIL_ZERO, "fwd.oob_tail_zero", ANY, PLAIN, "places past the last key are scored 0")         \
    X(LEN_IGNORED, "fwd.len_ignored", ANY, PADDED, "the number of keys for the length")            \
    X(LEN_PLUS_1, "fwd.len_plus_1", ANY, PADDED, "one key past the length")                        \
    X(GQA_MOD, "fwd.gqa_mod", ANY, PLAIN, "key head h mod h_kv")                                   \
    X(SCALE_1PCT, "fwd.scale_1pct", ANY, PLAIN, "attention scale * 1.01")                          \
    X(SCALE_1E3, "fwd.scale_1e3", ANY, PLAIN, "attention scale * 1.001")                           \
    X(SCALE_1E5, "fwd.scale_1e5", ANY, STATS, "attention scale * 1.00001")                         \
    X(LOG2E_SHORT, "fwd.log2e_short", ANY, STATS, "log2 e = 1.4427")                               \
    X(DQK_TAIL, "fwd.dqk_tail", ANY, PLAIN, "the last 8 channels of Q and K are not multiplied")   \
    X(RAGGED_PLUS_1, "fwd.ragged_plus_1", ANY, RAGGED, "keys and values start one token late")     \
    X(PAGE_LAST, "fwd.page_last", ANY, PAGED, "the first page for the last")                       \
    X(BIAS_H0, "fwd.bias_h0", ANY, BIAS, "bias of head 0 for all heads")                           \
    X(BIAS_T, "fwd.bias_t", ANY, BIAS, "bias transposed")                                          \
    X(BIAS_SCALED, "fwd.bias_scaled", ANY, BIAS, "bias * attention scale")                         \
    X(BIAS_TILE, "fwd.bias_tile", ANY, BIAS, "no bias in the last tile of keys")                   \
    X(DROPOUT_STALE, "fwd.dropout_stale", ANY, DROPOUT, "keep bits of another offset")             \
    X(DROPOUT_NOSCALE, "fwd.dropout_noscale", ANY, DROPOUT, "1/(1-p) is missing")                  \
    X(O_NO_RESCALE, "fwd.o_no_rescale", ANY, PLAIN, "O is not rescaled in the last tile of keys")  \
    X(MAX_INIT_0, "fwd.max_init_0", ANY, LOW, "the running maximum starts at 0")                   \
    X(P_TRUNC, "fwd.p_trunc", CAST, PLAIN, "P truncated, not rounded")                             \
    X(O_TRUNC, "fwd.o_trunc", CAST, PLAIN, "O truncated, not rounded")                             \
    X(O_TRUNC_TILE, "fwd.o_trunc_tile", CAST, PLAIN, "O truncated in the last tile of rows")       \
    X(RECIPROCAL, "fwd.reciprocal_narrow", CAST, PLAIN, "1 / row sum rounded to the output type")  \
    X(O_ACC_NARROW, "fwd.o_acc_narrow", CAST, PLAIN, "O is accumulated in the output type")        \
    X(ACC_RUN, "fwd.acc_run", HOPPER, PLAIN, "P V is added in 14 bits through all keys")           \
    X(O_GAIN_1E3, "fwd.o_gain_1e3", ANY, PLAIN, "O * 1.001")                                       \
    X(ONE_ELEMENT, "fwd.one_element", ANY, PLAIN, "one element of O * 1.25")                       \
    X(Q_TILE_UNWRITTEN, "fwd.q_tile_unwritten", ANY, PLAIN, "the last tile of rows is not stored") \
    X(LSE_LOG2, "fwd.lse_log2", ANY, STATS, "Stats in base 2")                                     \
    X(MAX_LOW, "fwd.max_low", ANY, MAX, "Max is 3 too low, and Sum_exp e^3 times as large")        \
    X(NO_SINK, "fwd.no_sink", ANY, SINK, "the sink is ignored")                                    \
    X(SPLIT_WEIGHT, "fwd.split_weight", ANY, SPLIT, "the last part's weight is the first's")       \
    X(P_SATURATES, "fwd.p_saturates", F8, SCALED, "2^-thr is missing: P clips")                    \
    X(O_FLOOR, "fwd.o_floor", CAST, PLAIN, "O rounded toward minus infinity")                      \
    X(O_GAIN_5E4, "fwd.o_gain_5e4", ANY, PLAIN, "O * 1.0005")                                      \
    X(O_GAIN_1PCT, "fwd.o_gain_1pct", ANY, PLAIN, "O * 1.01")                                      \
    X(O_GAIN_3PCT, "fwd.o_gain_3pct", ANY, PLAIN, "O * 1.03")                                      \
    X(O_GAIN_6PCT, "fwd.o_gain_6pct", ANY, PLAIN, "O * 1.0625")                                    \
    X(O_GAIN_ROWS, "fwd.o_gain_rows", ANY, PLAIN, "the last tile of rows of one head * 1.002")     \
    X(O_FLUSHED, "fwd.o_flushed", F16, PLAIN, "subnormal O becomes 0")                             \
    X(P_OTHER_TYPE, "fwd.p_other_type", FINER, PLAIN, "P in the type with fewer bits")             \
    X(EXP_CUT, "fwd.exp_cut", ANY, STATS, "exp(x) = 0 below -10")                                  \
    X(SUM_OF_CAST, "fwd.sum_of_cast", CAST, STATS, "the row sum adds P after its cast")            \
    X(KEEP_FACTOR, "fwd.keep_factor", ANY, DROPOUT, "1/(1-p) rounded to bf16")                     \
    X(TILE_EDGE_MAX, "fwd.tile_edge_max", ANY, PLAIN, "the largest key is lost at a tile's end")   \
    X(LAST_HEAD_KEY, "fwd.last_head_key", ANY, PLAIN, "the last head loses the last key")          \
    X(V_ROW, "fwd.v_row", ANY, PLAIN, "V of key 0 for key 1 in the last head")                     \
    X(DEAD_STATS, "fwd.dead_stats", ANY, DEAD_STATS, "Stats of a row without a key are 0")         \
    X(B_CAUSAL_LOOSE, "bwd.causal_loose_1", ANY, B_CAUSAL, "one key too many on the right")        \
    X(B_LEFT_LOOSE, "bwd.left_plus_1", ANY, B_WINDOW, "the left bound is inclusive")               \
    X(B_BOUNDS_SWAP, "bwd.bounds_swap", ANY, B_WINDOW, "left and right exchanged")                 \
    X(B_LEN_PLUS_1, "bwd.len_plus_1", ANY, B_PADDED, "one key past the length")                    \
    X(B_LEN_IGNORED, "bwd.len_ignored", ANY, B_PADDED, "the number of keys for the length")        \
    X(B_TILE_LOST, "bwd.last_tile_lost", ANY, B_PLAIN, "P = 0 in the last tile of keys")           \
    X(B_GQA_MOD, "bwd.gqa_mod", ANY, B_GROUPS, "key head h mod h_kv")                              \
    X(B_GQA_LAST, "bwd.gqa_last_only", ANY, B_GROUPS, "dK and dV of the group's last head only")   \
    X(B_NO_DELTA, "bwd.no_delta", ANY, B_PLAIN, "D = 0")                                           \
    X(B_SCALE_1PCT, "bwd.scale_1pct", ANY, B_PLAIN, "attention scale * 1.01")                      \
    X(B_DQ_NOSCALE, "bwd.dq_noscale", ANY, B_PLAIN, "dQ without the attention scale")              \
    X(B_DQ_TWICE, "bwd.dq_twice", ANY, B_PLAIN, "the first tile of keys is added to dQ twice")     \
    X(B_DQ_NARROW, "bwd.dq_acc_narrow", CAST, B_LONG, "dQ is accumulated in the input type")       \
    X(B_P_TRUNC, "bwd.p_trunc", CAST, B_PLAIN, "P truncated before dV")                            \
    X(B_DROPOUT_STALE, "bwd.dropout_stale", ANY, B_DROPOUT, "keep bits differ from the forward's") \
    X(B_TAIL_EXP, "bwd.oob_tail_exp", ANY, B_PLAIN, "no mask past the last key: exp(0 - LSE)")     \
    X(B_DV_FLOOR, "bwd.dv_floor", CAST, B_PLAIN, "dV rounded toward minus infinity")               \
    X(B_ACC_RUN, "bwd.acc_run", HOPPER, B_PLAIN, "dQ, dK, dV are added in 14 bits throughout")     \
    X(B_DK_GAIN_5E4, "bwd.dk_gain_5e4", ANY, B_PLAIN, "dK * 1.0005")                               \
    X(B_DK_GAIN_3PCT, "bwd.dk_gain_3pct", ANY, B_PLAIN, "dK * 1.03")                               \
    X(B_DS_FLOOR, "bwd.ds_floor", CAST, B_PLAIN, "dS rounded toward minus infinity")               \
    X(B_DS_OTHER_TYPE, "bwd.ds_other_type", FINER, B_PLAIN, "dS in the type with fewer bits")      \
    X(B_DELTA_TAIL, "bwd.delta_tail", ANY, B_PLAIN, "D without the last 8 channels")               \
    X(B_LAST_ROW_DK, "bwd.last_row_dk", ANY, B_PLAIN, "the last row of one head is not in dK")     \
    X(B_GROUP_NARROW, "bwd.group_narrow", CAST, B_LARGE_GROUP, "a group is added in a narrow type") \
    X(B_PADDED_DK, "bwd.padded_dk", ANY, B_PADDED, "dK of padded keys is that of the last key")    \
    X(AMAX_O_LATE, "sys.amax_o_late", F8, PLAIN, "Amax_O after scale_o")                           \
    X(AMAX_TILE, "sys.amax_tile", F8, PLAIN, "amax without the last tile of rows")                 \
    X(AMAX_PADDING, "sys.amax_padding", F8, PADDED, "amax reads padded rows")                      \
    X(AMAX_DP_EARLY, "sys.amax_dp_early", F8, B_PLAIN, "Amax_dP before D is subtracted")           \
    X(SCALE_S_IGNORED, "sys.scale_s_ignored", F8, SCALED, "scale_s and descale_s are dropped")     \
    X(DBIAS_SCALED, "sys.dbias_scaled", ANY, B_BIAS, "dBias * attention scale")                    \
    X(DBIAS_BATCH, "sys.dbias_batch", ANY, B_BIAS, "dBias of the last batch entry alone")          \
    X(DBIAS_MASKED, "sys.dbias_masked", ANY, B_BIAS_CAUSAL, "masked entries are unwritten")        \
    X(STATS_STRIDE, "sys.stats_stride", ANY, PACKED_STATS, "ragged Stats are written head-major")  \
    X(WORKSPACE_DIRTY, "sys.workspace_dirty", ANY, B_PLAIN, "dQ's accumulators are not zeroed")    \
    X(OFFSET_INT32, "sys.offset_int32", ANY, HUGE_OFFSET, "element offsets in 32 bits")            \
    X(GAP_IGNORED, "sys.gap_ignored", ANY, GAPS, "strides of O are taken as dense")                \
    X(EMPTY_BATCH, "sys.empty_batch", ANY, EMPTY, "a row without a key is 0/0")                    \
    X(PAGE_COUNT, "sys.page_count", ANY, PAGED, "the most pages are read, not the actual ones")    \
    X(SOFTCAP_GRAD, "sys.softcap_grad", ANY, B_SOFTCAP, "the slope 1 - tanh^2 is missing")         \
    X(DROPOUT_8BIT, "sys.dropout_8bit", ANY, DROPOUT, "p rounded to 1/256")

/* X(SYMBOL, "id", TYPES, "a predicate", "what is wrong"): those that one kind of data shows. */
#define FATTN__DATA_LIST(X)                                                                        \
    X(DO_INF, "data.do_inf", WIDE, "pass=bwd & check=nonfinite", "Inf and NaN in dO count as 0")   \
    X(Q_NAN, "data.q_nan", WIDE, "check=nonfinite", "Inf and NaN in Q count as 0")                 \
    X(V_INF, "data.v_inf", WIDE, "pass=bwd & check=nonfinite", "Inf and NaN in V count as 0")      \
    X(DQ_SAT, "data.dq_saturates", F16, "pass=bwd & fill=hugegrad", "65504 for Inf in dQ")         \
    X(DK_SAT, "data.dk_saturates", F16, "pass=bwd & fill=hugegrad", "65504 for Inf in dK")         \
    X(DV_SAT, "data.dv_saturates", F16, "pass=bwd & fill=hugegrad", "65504 for Inf in dV")         \
    X(O_WRAPS, "data.o_wraps", F8, "pass=fwd & scales=tight", "O beyond the largest number wraps") \
    X(GRAD_WRAPS, "data.gradient_wraps", F8, "pass=bwd & scales=tight",                            \
      "gradients beyond the largest number wrap")                                                  \
    X(AMAX_O_SAT, "data.amax_o", F8, "pass=fwd & scales=tight", "Amax of O after it saturates")    \
    X(AMAX_DQ_SAT, "data.amax_dq", F8, "pass=bwd & scales=tight", "Amax of dQ after it saturates") \
    X(MAX_INIT_LOW, "data.max_init_low", ANY, "pass=fwd & bias_fill=rows_low",                     \
      "the running maximum starts at -10,000")                                                     \
    X(MAX_UNMASKED, "data.max_unmasked", ANY, "pass=fwd & fill=hugelogit & mask!=none",            \
      "the maximum is taken before the mask")                                                      \
    X(DEAD_VALUE, "data.dead_value", ANY, "pass=fwd & padding~zero*",                              \
      "O of a row without keys is not 0")                                                          \
    X(PAGE_NEXT, "data.page_next", ANY, "table=unfilled", "reads the page behind the last")        \
    X(DBIAS_COLUMN, "data.dbias_column", ANY, "pass=bwd & dbias=1 & s.kv%2=1",                     \
      "the last column of dBias is 0")                                                             \
    X(TANH_SAT, "data.tanh_saturates", WIDE, "mod~softcap*", "tanh is 1 from 2 on")                \
    X(ALIBI_NARROW, "data.alibi_bf16", ANY, "alibi=1 & s.kv>256", "distances in bf16")             \
    X(O_GAIN_FIRST, "data.first_rows_gain", ANY, "pass=fwd", "O * 1.004 in the first 16 rows")

/* X("id", TYPES, "a predicate", "what ends at that number")
 * Schedulers, counters and offsets that end somewhere: in a case of the predicate the last rows of O
 * (or dK) are twice what they must be. A suite that shows one has a case beyond that place. */
#define FATTN__PLACE_LIST(X)                                                                       \
    X("far.padded_31", ANY, "pass=fwd & padding!=none & layout!~*th* & paged=0 & b>31",            \
      "a warp scans 32 lengths")                                                                   \
    X("far.ragged_31", ANY, "pass=fwd & layout~*th* & paged=0 & b>31", "a warp scans 32 lengths")  \
    X("far.paged_31", ANY, "pass=fwd & paged!=0 & b>31", "a warp scans 32 lengths")                \
    X("far.wave_2", ANY, "pass=fwd & h.q>132", "a block's second tile")                            \
    X("far.wave_2_deterministic", ANY, "pass=bwd & deterministic=1 & b>3 & h.q>7 & s.kv>639",      \
      "a block's second tile, in order")                                                           \
    X("far.wave_2_dropout", ANY, "pass=bwd & dropout>0 & b>3 & h.q>7 & s.kv>639",                  \
      "a block's second tile, with dropout")                                                       \
    X("far.dropout_1024", ANY, "pass=bwd & dropout>0 & s.kv>1024",                                 \
      "keep bits of keys from 1,024 on")                                                           \
    X("far.deterministic_1024", ANY, "pass=bwd & deterministic=1 & s.kv>1024",                     \
      "dQ in order from 1,024 keys on")                                                            \
    X("far.gradients_1024", F8, "pass=bwd & s.kv>1024", "keys from 1,024 on")                      \
    X("far.decode_512", F8, "pass=fwd & s.q=1 & s.kv>512", "decode beyond 512 keys")               \
    X("far.splits_64", ANY, "pass=fwd & s.q=1 & s.kv>8192 & paged=0",                              \
      "64 parts of the keys are joined")                                                           \
    X("far.splits_64_paged", ANY, "pass=fwd & s.q=1 & s.kv>8192 & paged!=0",                       \
      "64 parts of paged keys are joined")                                                         \
    X("far.rows_paged", ANY, "pass=fwd & s.q>=2 & s.q<=16 & paged!=0",                             \
      "2 to 16 rows before pages")                                                                 \
    X("far.page_16_bits", ANY, "pass=fwd & paged=1 & s.kv>=32768", "page numbers have 16 bits")    \
    X("far.window_2048", ANY, "pass=fwd & window.left>=2048 & window.left<inf",                    \
      "left bounds from 2,048 on")                                                                 \
    X("far.keys_17_bits", ANY, "pass=fwd & s.kv>131072", "a counter of keys has 17 bits")          \
    X("far.bias_8192", ANY, "pass=fwd & bias!=none & bias!~bool* & s.kv>8192",                     \
      "columns of a bias from 8,192 on")                                                           \
    X("far.boolean_256", ANY, "pass=fwd & bias~bool* & s.kv>256",                                  \
      "columns of a boolean mask from 256 on")                                                     \
    X("far.alibi_2048", ANY, "pass=fwd & alibi=1 & s.kv>2048", "distances in f16")                 \
    X("far.sink_1024", ANY, "pass=fwd & softmax=sink & s.kv>1024", "a sink of many keys")          \
    X("far.heads_128", ANY, "pass=fwd & h.q>127", "heads from 128 on")                             \
    X("far.groups_odd", ANY, "pass=fwd & h in (28/4, 5/1, 7/1, 10/2)", "groups of 5 and 7 heads")  \
    X("far.wave_2_8_bit", F8, "pass=fwd & h.q>132", "a block's second tile, in 8 bits")            \
    X("far.rows_16_bits", ANY, "pass=fwd & s.q>65536", "a counter of rows has 16 bits")            \
    X("far.block_mask_1024", ANY, "pass=fwd & blockmask!=none & s.kv>1024",                        \
      "tiles of a block mask from the 9th on")                                                     \
    X("far.page_offset", ANY, "pass=fwd & paged!=0 & b>=64 & s.kv>=8192",                          \
      "32-bit offsets of pages")                                                                   \
    X("far.token_offset", ANY, "pass=fwd & layout~*th* & b>=17 & s.kv>=8192",                      \
      "32-bit offsets of packed tokens")                                                           \
    X("far.bias_offset", ANY, "pass=fwd & bias!=none & s.q>=16384", "32-bit offsets of a bias")    \
    X("far.call_17", ANY, "pass=fwd & repeat>16", "each 17th call")                                \
    X("far.call_257", ANY, "pass=fwd & repeat>256", "a counter of calls has 8 bits")
/* clang-format on */

#endif
