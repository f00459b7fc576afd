/* Planted faults of an attention kernel: each is one FATTN__LIE at a line of lib/src/cpu, and the
 * kernel that has them works as a GPU's does (gpu_like.h). docs/numerics.md section 11.
 *
 * X(SYMBOL, "id", TYPES, SCENE, "what is wrong")
 * TYPES  ANY; CAST: not f32, which has no cast to change; F8: 8-bit types; F16: f16; HOPPER: 8-bit
 *        types that are added in 14 bits; FINER: f16 and e4m3, for which a type of the same size
 *        with fewer bits exists
 * SCENE  what a case needs, so that it can show the fault (FATTN__SCENE_LIST) */
#ifndef FATTN_KERNEL_FAULTS_H
#define FATTN_KERNEL_FAULTS_H

/* X(SCENE, "a predicate of the case language") */
/* clang-format off */
#define FATTN__SCENE_LIST(X)                                                                       \
    X(PLAIN, "pass=fwd")                                                                           \
    X(CAUSAL, "pass=fwd & mask~causal*")                                                           \
    X(WINDOW, "pass=fwd & window.left<inf")                                                        \
    X(PADDED, "pass=fwd & (padding!=none | lens!=none)")                                           \
    X(PADDED_CAUSAL, "pass=fwd & (mask=causal_br | align=br) & (padding!=none | lens!=none)")      \
    X(BIAS, "pass=fwd & bias!=none & bias!~bool*")                                                 \
    X(DROPOUT, "pass=fwd & dropout>0")                                                             \
    X(SINK, "pass=fwd & softmax=sink")                                                             \
    X(SPLIT, "pass=fwd")                                                                           \
    X(RAGGED, "pass=fwd & layout~*th*")                                                            \
    X(PAGED, "pass=fwd & paged!=0")                                                             \
    X(GAPS, "pass=fwd & stride!=dense")                                                            \
    X(EMPTY, "pass=fwd & (padding~zero* | lens!=none)")                                            \
    X(HUGE_OFFSET, "pass=fwd & stride!=dense")                                                     \
    X(B_PLAIN, "pass=bwd")                                                                         \
    X(B_CAUSAL, "pass=bwd & mask~causal*")                                                         \
    X(B_WINDOW, "pass=bwd & window.left<inf")                                                      \
    X(B_PADDED, "pass=bwd & (padding!=none | lens!=none)")                                         \
    X(B_DROPOUT, "pass=bwd & dropout>0")                                                           \
    X(B_BIAS, "pass=bwd & dbias=1")                                                                \
    X(B_BIAS_CAUSAL, "pass=bwd & dbias=1 & mask~causal*")                                          \
    X(B_SOFTCAP, "pass=bwd & mod~softcap*")

#define FATTN__FAULT_LIST(X)                                                                       \
    X(CAUSAL_LOOSE, "fwd.causal_loose_1", ANY, CAUSAL, "one key too many on the right")            \
    X(ALIGN_SWAP, "fwd.align_swap", ANY, CAUSAL, "the band starts from the other corner")          \
    X(BR_MAX_LEN, "fwd.br_max_len", ANY, PADDED_CAUSAL, "bottom-right at the maximum lengths, "    \
      "not the batch entry's")                                                                     \
    X(LEFT_LOOSE, "fwd.left_plus_1", ANY, WINDOW, "the left bound is inclusive")                   \
    X(TILE_LOST, "fwd.last_tile_lost", ANY, PLAIN, "the last tile of keys is skipped")             \
    X(TILE_TWICE, "fwd.last_tile_twice", ANY, PLAIN, "the last tile of keys counts twice")         \
    X(TAIL_ZERO, "fwd.oob_tail_zero", ANY, PLAIN, "places past the last key are scored 0, not "    \
      "-inf")                                                                                      \
    X(LEN_IGNORED, "fwd.len_ignored", ANY, PADDED, "the number of keys for the length")            \
    X(LEN_PLUS_1, "fwd.len_plus_1", ANY, PADDED, "one key past the length")                        \
    X(GQA_MOD, "fwd.gqa_mod", ANY, PLAIN, "key head h mod h_kv")                                   \
    X(SCALE_1PCT, "fwd.scale_1pct", ANY, PLAIN, "attention scale * 1.01")                          \
    X(SCALE_1E3, "fwd.scale_1e3", ANY, PLAIN, "attention scale * 1.001")                           \
    X(SCALE_1E5, "fwd.scale_1e5", ANY, PLAIN, "attention scale * 1.00001")                         \
    X(LOG2E_SHORT, "fwd.log2e_short", ANY, PLAIN, "log2 e = 1.4427")                               \
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
    X(MAX_INIT_0, "fwd.max_init_0", ANY, PLAIN, "the running maximum starts at 0")                 \
    X(P_TRUNC, "fwd.p_trunc", CAST, PLAIN, "P truncated, not rounded")                             \
    X(O_TRUNC, "fwd.o_trunc", CAST, PLAIN, "O truncated, not rounded")                             \
    X(O_TRUNC_TILE, "fwd.o_trunc_tile", CAST, PLAIN, "O truncated in the last tile of rows")       \
    X(RECIPROCAL, "fwd.reciprocal_narrow", CAST, PLAIN, "1 / row sum rounded to the output type")  \
    X(O_ACC_NARROW, "fwd.o_acc_narrow", CAST, PLAIN, "O is accumulated in the output type")        \
    X(ACC_RUN, "fwd.acc_run", HOPPER, PLAIN, "P V is added in 14 bits through all keys")           \
    X(O_GAIN_1E3, "fwd.o_gain_1e3", ANY, PLAIN, "O * 1.001")                                       \
    X(ONE_ELEMENT, "fwd.one_element", ANY, PLAIN, "one element of O * 1.25")                       \
    X(Q_TILE_UNWRITTEN, "fwd.q_tile_unwritten", ANY, PLAIN, "the last tile of rows is not "        \
      "stored")                                                                                    \
    X(LSE_LOG2, "fwd.lse_log2", ANY, PLAIN, "Stats in base 2")                                     \
    X(MAX_LOW, "fwd.max_low", ANY, PLAIN, "Max is 3 too low, and Sum_exp e^3 times as large")      \
    X(NO_SINK, "fwd.no_sink", ANY, SINK, "the sink is ignored")                                    \
    X(SPLIT_WEIGHT, "fwd.split_weight", ANY, SPLIT, "the last part of the keys has the first "     \
      "part's weight")                                                                             \
    X(P_SATURATES, "fwd.p_saturates", F8, PLAIN, "2^-thr is missing: P clips at the type's "       \
      "largest value")                                                                             \
    X(O_FLOOR, "fwd.o_floor", CAST, PLAIN, "O rounded toward minus infinity")                      \
    X(O_GAIN_5E4, "fwd.o_gain_5e4", ANY, PLAIN, "O * 1.0005")                                      \
    X(O_GAIN_1PCT, "fwd.o_gain_1pct", ANY, PLAIN, "O * 1.01")                                      \
    X(O_GAIN_3PCT, "fwd.o_gain_3pct", ANY, PLAIN, "O * 1.03")                                      \
    X(O_GAIN_6PCT, "fwd.o_gain_6pct", ANY, PLAIN, "O * 1.0625")                                    \
    X(O_GAIN_ROWS, "fwd.o_gain_rows", ANY, PLAIN, "the last tile of rows of one head * 1.002")     \
    X(O_FLUSHED, "fwd.o_flushed", F16, PLAIN, "subnormal O becomes 0")                             \
    X(P_OTHER_TYPE, "fwd.p_other_type", FINER, PLAIN, "P in the type with fewer bits: bf16 "       \
      "for f16, e5m2 for e4m3")                                                                    \
    X(EXP_CUT, "fwd.exp_cut", ANY, PLAIN, "exp(x) = 0 below -10")                                  \
    X(SUM_OF_CAST, "fwd.sum_of_cast", CAST, PLAIN, "the row sum adds P after its cast")            \
    X(KEEP_FACTOR, "fwd.keep_factor", ANY, DROPOUT, "1/(1-p) rounded to bf16")                     \
    X(TILE_EDGE_MAX, "fwd.tile_edge_max", ANY, PLAIN, "the row's largest key is lost where it "    \
      "ends a tile")                                                                               \
    X(LAST_HEAD_KEY, "fwd.last_head_key", ANY, PLAIN, "the last head loses the last key")          \
    X(V_ROW, "fwd.v_row", ANY, PLAIN, "V of key 0 for key 1 in the last head")                     \
    X(DEAD_STATS, "fwd.dead_stats", ANY, EMPTY, "Stats of a row without a key are 0")              \
    X(B_CAUSAL_LOOSE, "bwd.causal_loose_1", ANY, B_CAUSAL, "one key too many on the right")        \
    X(B_LEFT_LOOSE, "bwd.left_plus_1", ANY, B_WINDOW, "the left bound is inclusive")               \
    X(B_BOUNDS_SWAP, "bwd.bounds_swap", ANY, B_WINDOW, "left and right exchanged")                 \
    X(B_LEN_PLUS_1, "bwd.len_plus_1", ANY, B_PADDED, "one key past the length")                    \
    X(B_LEN_IGNORED, "bwd.len_ignored", ANY, B_PADDED, "the number of keys for the length")        \
    X(B_TILE_LOST, "bwd.last_tile_lost", ANY, B_PLAIN, "P = 0 in the last tile of keys")           \
    X(B_GQA_MOD, "bwd.gqa_mod", ANY, B_PLAIN, "key head h mod h_kv")                               \
    X(B_GQA_LAST, "bwd.gqa_last_only", ANY, B_PLAIN, "dK and dV of the group's last head only")    \
    X(B_NO_DELTA, "bwd.no_delta", ANY, B_PLAIN, "D = 0")                                           \
    X(B_SCALE_1PCT, "bwd.scale_1pct", ANY, B_PLAIN, "attention scale * 1.01")                      \
    X(B_DQ_NOSCALE, "bwd.dq_noscale", ANY, B_PLAIN, "dQ without the attention scale")              \
    X(B_DQ_TWICE, "bwd.dq_twice", ANY, B_PLAIN, "the first tile of keys is added to dQ twice")     \
    X(B_DQ_NARROW, "bwd.dq_acc_narrow", CAST, B_PLAIN, "dQ is accumulated in the input type")      \
    X(B_P_TRUNC, "bwd.p_trunc", CAST, B_PLAIN, "P truncated before dV")                            \
    X(B_DROPOUT_STALE, "bwd.dropout_stale", ANY, B_DROPOUT, "keep bits differ from the "           \
      "forward's")                                                                                 \
    X(B_TAIL_EXP, "bwd.oob_tail_exp", ANY, B_PLAIN, "places past the last key are not masked: "    \
      "exp(0 - LSE) overflows")                                                                    \
    X(B_DV_FLOOR, "bwd.dv_floor", CAST, B_PLAIN, "dV rounded toward minus infinity")               \
    X(B_ACC_RUN, "bwd.acc_run", HOPPER, B_PLAIN, "dQ, dK and dV are added in 14 bits through "     \
      "all keys and queries")                                                                      \
    X(B_DK_GAIN_5E4, "bwd.dk_gain_5e4", ANY, B_PLAIN, "dK * 1.0005")                               \
    X(B_DK_GAIN_3PCT, "bwd.dk_gain_3pct", ANY, B_PLAIN, "dK * 1.03")                               \
    X(B_DS_FLOOR, "bwd.ds_floor", CAST, B_PLAIN, "dS rounded toward minus infinity")               \
    X(B_DS_OTHER_TYPE, "bwd.ds_other_type", FINER, B_PLAIN, "dS in the type with fewer bits: "     \
      "bf16 for f16, e5m2 for e4m3")                                                               \
    X(B_DELTA_TAIL, "bwd.delta_tail", ANY, B_PLAIN, "D without the last 8 channels")               \
    X(B_LAST_ROW_DK, "bwd.last_row_dk", ANY, B_PLAIN, "the last row of one head adds nothing "     \
      "to dK")                                                                                     \
    X(B_GROUP_NARROW, "bwd.group_narrow", CAST, B_PLAIN, "a group's dK and dV are added in "       \
      "the input type")                                                                            \
    X(B_PADDED_DK, "bwd.padded_dk", ANY, B_PADDED, "dK of padded keys is that of the last key")    \
    X(AMAX_O_LATE, "sys.amax_o_late", F8, PLAIN, "Amax_O after scale_o")                           \
    X(AMAX_TILE, "sys.amax_tile", F8, PLAIN, "amax without the last tile of rows")                 \
    X(AMAX_PADDING, "sys.amax_padding", F8, PADDED, "amax reads padded rows")                      \
    X(AMAX_DP_EARLY, "sys.amax_dp_early", F8, B_PLAIN, "Amax_dP before D is subtracted")           \
    X(SCALE_S_IGNORED, "sys.scale_s_ignored", F8, PLAIN, "scale_s and descale_s are dropped")      \
    X(DBIAS_SCALED, "sys.dbias_scaled", ANY, B_BIAS, "dBias * attention scale")                    \
    X(DBIAS_BATCH, "sys.dbias_batch", ANY, B_BIAS, "dBias of the last batch entry alone")          \
    X(DBIAS_MASKED, "sys.dbias_masked", ANY, B_BIAS_CAUSAL, "masked entries of dBias are not "     \
      "written")                                                                                   \
    X(STATS_STRIDE, "sys.stats_stride", ANY, RAGGED, "ragged Stats are written head-major")        \
    X(WORKSPACE_DIRTY, "sys.workspace_dirty", ANY, B_PLAIN, "dQ's accumulators in the "            \
      "workspace are not zeroed")                                                                  \
    X(OFFSET_INT32, "sys.offset_int32", ANY, HUGE_OFFSET, "element offsets in 32 bits")            \
    X(GAP_IGNORED, "sys.gap_ignored", ANY, GAPS, "strides of O are taken as dense")                \
    X(EMPTY_BATCH, "sys.empty_batch", ANY, EMPTY, "a row without a key is 0/0")                    \
    X(PAGE_COUNT, "sys.page_count", ANY, PAGED, "the maximum number of pages is read, not the "    \
      "actual one")                                                                                \
    X(SOFTCAP_GRAD, "sys.softcap_grad", ANY, B_SOFTCAP, "the slope 1 - tanh^2 is missing")      \
    X(DROPOUT_8BIT, "sys.dropout_8bit", ANY, DROPOUT, "p rounded to 1/256")

/* X(SYMBOL, "id", TYPES, "a predicate", "from where on a kernel is wrong")
 * Schedulers and counters that end somewhere: in a case of the predicate the last rows of O (or dK)
 * are twice what they must be. A suite that shows one has a case beyond that place. */
#define FATTN__PLACE_LIST(X)                                                                       \
    X(FAR_PADDED, "far.padded_31", ANY, "pass=fwd & padding!=none & layout!~*th* & paged=0 & b>31", \
      "a warp scans 32 lengths")                                                                   \
    X(FAR_RAGGED, "far.ragged_31", ANY, "pass=fwd & layout~*th* & paged=0 & b>31",                 \
      "a warp scans 32 lengths of packed tokens")                                                  \
    X(FAR_PAGED, "far.paged_31", ANY, "pass=fwd & paged!=0 & b>31", "a warp scans 32 lengths of pages") \
    X(FAR_WAVE, "far.wave_2", ANY, "pass=fwd & h.q>132", "a block's second tile") \
    X(FAR_WAVE_FIXED, "far.wave_2_deterministic", ANY,                                             \
      "pass=bwd & deterministic=1 & b>=4 & h.q>=8 & s.kv>=640", "a block's second tile, in order") \
    X(FAR_WAVE_DROPOUT, "far.wave_2_dropout", ANY,                                                 \
      "pass=bwd & dropout>0 & b>=4 & h.q>=8 & s.kv>=640", "a block's second tile, with dropout")   \
    X(FAR_DROPOUT, "far.dropout_1024", ANY, "pass=bwd & dropout>0 & s.kv>1024",                    \
      "keep bits of keys from 1,024 on")                                                           \
    X(FAR_FIXED, "far.deterministic_1024", ANY, "pass=bwd & deterministic=1 & s.kv>1024",          \
      "dQ in order beyond 1,024 keys")                                                             \
    X(FAR_8_BIT, "far.gradients_1024", F8, "pass=bwd & s.kv>1024", "keys from 1,024 on")           \
    X(FAR_8_BIT_DECODE, "far.decode_512", F8, "pass=fwd & s.q=1 & s.kv>512",                       \
      "decode beyond 512 keys")                                                                    \
    X(FAR_SPLITS, "far.splits_64", ANY, "pass=fwd & s.q=1 & s.kv>8192 & paged=0",                  \
      "64 parts of the keys are joined")                                                           \
    X(FAR_SPLITS_PAGED, "far.splits_64_paged", ANY, "pass=fwd & s.q=1 & s.kv>8192 & paged!=0",     \
      "64 parts of paged keys are joined")                                                         \
    X(FAR_ROWS_PAGED, "far.rows_paged", ANY, "pass=fwd & s.q>=2 & s.q<=16 & paged!=0",             \
      "2 to 16 rows before pages")                                                                 \
    X(FAR_PAGE, "far.page_16_bits", ANY, "pass=fwd & paged=1 & s.kv>=32768",                       \
      "page numbers have 16 bits")                                                                 \
    X(FAR_WINDOW, "far.window_2048", ANY,                                                          \
      "pass=fwd & window.left>=2048 & window.left<inf & s.kv>2048", "left bounds from 2,048 on")   \
    X(FAR_KEYS, "far.keys_17_bits", ANY, "pass=fwd & s.kv>131072", "a counter of keys has 17 bits") \
    X(FAR_BIAS, "far.bias_8192", ANY, "pass=fwd & bias!=none & bias!~bool* & s.kv>8192",           \
      "columns of a bias from 8,192 on")                                                           \
    X(FAR_BOOLEAN, "far.boolean_256", ANY, "pass=fwd & bias~bool* & s.kv>256",                     \
      "columns of a boolean mask from 256 on")                                                     \
    X(FAR_ALIBI, "far.alibi_2048", ANY, "pass=fwd & alibi=1 & s.kv>2048", "distances in f16")      \
    X(FAR_SINK, "far.sink_1024", ANY, "pass=fwd & softmax=sink & s.kv>1024", "a sink of many keys") \
    X(FAR_HEADS, "far.heads_128", ANY, "pass=fwd & h.q>127", "heads from 128 on")                  \
    X(FAR_GROUPS, "far.groups_odd", ANY, "pass=fwd & h in (28/4, 5/1, 7/1, 10/2)",                 \
      "groups of 5 and 7 heads")                                                                   \
    X(FAR_ODD_BIAS, "far.dbias_odd", ANY, "pass=bwd & dbias=1 & s.kv%2=1", "odd rows of a bias")   \
    X(FAR_CALLS, "far.call_257", ANY, "pass=fwd & repeat>256", "a counter of calls has 8 bits")
/* clang-format on */

#endif
