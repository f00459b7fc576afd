/* The keys of attention's cases, once. Parser, printer, --help, docs/cases.md and the nearest-word hint follow from this list; a new
 * axis is one more row. The order of the rows is the order of a canonical name.
 *
 * X(SYMBOL, "word", KIND, allowed, "default", "help")
 *   KIND     WORD, RATIO or SET (language.h); LENS a template, or lengths (256+0x3/256+1x3); LAYOUT a layout of Q, K and V, one word
 *            or Q's and K/V's joined by _; STRIDE dense, or forms joined by ;; KNOBS none, or name:value joined by +, sorted by name;
 *            ALONE a WORD whose case needs the GPU alone
 *   allowed  templates (language.h)
 *   default  what absence means; for some keys others decide it (keys.c)
 */
#ifndef FACTS_KEYS_H
#define FACTS_KEYS_H

#include <fattn/fattn.h>

#include "language/case.h"
#include "vocabulary.h"

#define FACTS_AS_WORD_(symbol, value, word) word " "
#define FACTS_WORDS_DTYPE FATTN_DTYPE_LIST(FACTS_AS_WORD_)
#define FACTS_WORDS_16 "bf16 f16 f32"
#define FACTS_WORDS_DENSE "bshd sbhd bhsd"
#define FACTS_WORDS_PACK3 "bs3hd sb3hd bsh3d sbh3d"
#define FACTS_WORDS_PACK2 "bs2hd sb2hd bsh2d sbh2d"
#define FACTS_WORDS_RAGGED "thd t3hd th3d"
#define FACTS_WORDS_INPUT FACTS_WORDS_DENSE " " FACTS_WORDS_PACK3 " " FACTS_WORDS_PACK2
#define FACTS_WORDS_ANY FACTS_WORDS_INPUT " " FACTS_WORDS_RAGGED " t2hd th2d"
#define FACTS_WORDS_LAYOUT FACTS_WORDS_DENSE " " FACTS_WORDS_PACK3 " " FACTS_WORDS_RAGGED
#define FACTS_WORDS_BIAS "11ss 1hss b1ss bhss 111s b11s bh1s 1h1s"
#define FACTS_WORDS_BOOL                                                                           \
    "bool:11ss bool:1hss bool:b1ss bool:bhss bool:111s bool:b11s bool:bh1s bool:1h1s"

/* clang-format off */
#define FACTS_KEY_LIST(X)                                                                          \
    X(PASS, "pass", WORD, FATTN_PASS_LIST(FACTS_AS_WORD_), "fwd", "forward, or backward; "         \
      "backward gets the statistics of forward")                                                   \
    X(DTYPE, "dtype", WORD, FACTS_WORDS_DTYPE, "bf16", "type of Q, K, V")                          \
    X(OUT, "out", WORD, FACTS_WORDS_DTYPE, "same", "type of O, and of dO unless do_dtype is given" \
      )                                                                                            \
    X(GRAD, "grad", WORD, FACTS_WORDS_DTYPE, "same", "type of dQ, dK, dV; as dtype unless given")  \
    X(DO_DTYPE, "do_dtype", WORD, FACTS_WORDS_DTYPE, "same", "backward, 8-bit types: type of dO "  \
      "and of dS; default: out, for mx types dtype")                                               \
    X(BWD_DTYPE, "bwd_dtype", WORD, "same high " FACTS_WORDS_DTYPE, "same", "backward of 8-bit "   \
      "data in another type; high: bf16")                                                          \
    X(B, "b", WORD, "N", "2", "batch entries")                                                     \
    X(H, "h", RATIO, "N N/N N/N/N", "8", "heads: of Q, Q/KV, or Q/K/V")                            \
    X(S, "s", RATIO, "N N/N", "512", "queries and keys: one length, or queries/keys")              \
    X(D, "d", RATIO, "N N/N", "128", "head dims: one, or of Q and K/of V")                         \
    X(LAYOUT, "layout", LAYOUT, FACTS_WORDS_LAYOUT, "bshd", "memory order of Q, K, V; Q's and "    \
      "K/V's joined by _ when they differ")                                                        \
    X(Q, "q", WORD, FACTS_WORDS_ANY, "layout", "layout of Q alone")                                \
    X(K, "k", WORD, FACTS_WORDS_ANY, "layout", "layout of K alone")                                \
    X(V, "v", WORD, FACTS_WORDS_ANY, "layout", "layout of V alone")                                \
    X(O, "o", WORD, "auto " FACTS_WORDS_DENSE " thd", "auto", "layout of O; auto: follows Q's "    \
      "memory order")                                                                              \
    X(DO, "do", WORD, "auto " FACTS_WORDS_DENSE " thd", "auto", "layout of dO; auto: follows O")   \
    X(DQKV, "dqkv", LAYOUT, "auto " FACTS_WORDS_LAYOUT, "auto", "layout of dQ, dK, dV; auto: "     \
      "each follows its input")                                                                    \
    X(STATS, "stats", WORD, "bhs1 bsh1 th1 ht1", "bhs1", "layout of Stats, Max, Sum_exp; th1 "     \
      "(token-major) when queries are ragged")                                                     \
    X(STRIDE, "stride", STRIDE, "dense", "dense", "gaps, broadcasts, orders, offsets; forms "      \
      "joined by ;")                                                                               \
    X(MASK, "mask", WORD, "none causal causal_br", "none", "causal: keys up to the query's own, "  \
      "from the top-left or bottom-right corner")                                                  \
    X(WINDOW, "window", WORD, "L:L", "inf:inf", "sliding window L:R; L counts the diagonal, R "    \
      "does not; mask applies as well")                                                            \
    X(ALIGN, "align", WORD, FATTN_ALIGN_LIST(FACTS_AS_WORD_), "tl",                                \
      "corner from which the window counts")                                                       \
    X(PADDING, "padding", WORD, "none random full zero:kv zero:q zero:both one", "none", "random " \
      "lengths of batch entries; zero: one entry is empty")                                        \
    X(LENS, "lens", LENS, "none", "none", "given lengths: queries/keys, once if equal; NxR "       \
      "repeats; -1: unused sequence")                                                              \
    X(CU, "cu", WORD, "none both q kv", "none", "which lengths are prefix sums")                   \
    X(LENS_SHAPE, "lens_shape", WORD, "b111 b bcast", "b111", "shape of the length tensors; "      \
      "bcast: one length for all batch entries")                                                   \
    X(SLOTS, "slots", LENS, "tight +N", "tight", "ragged: room for each sequence: N tokens more "  \
      "than its length, or given")                                                                 \
    X(TAIL, "tail", WORD, "N q.N+kv.N", "0", "ragged: rows allocated after the last sequence")     \
    X(TOTAL, "total", WORD, "none declared slack:N", "none", "ragged: cuDNN gets the token "       \
      "total; slack: N more")                                                                      \
    X(OFFSETS, "offsets", WORD, "i32 i64", "i32", "ragged: width of the offsets")                  \
    X(RMULT, "rmult", WORD, "0 tokens", "0", "ragged: offsets in tokens, each tensor with its "    \
      "multiplier")                                                                                \
    X(BIAS, "bias", WORD, "none " FACTS_WORDS_BIAS " " FACTS_WORDS_BOOL, "none", "shape of the "   \
      "additive bias; bool: a boolean mask")                                                       \
    X(BIAS_DTYPE, "bias_dtype", WORD, FACTS_WORDS_16, "same", "type of the bias, also of the "     \
      "bias in mod")                                                                               \
    X(BIAS_FILL, "bias_fill", WORD, FACTS_BIAS_FILL_LIST(FACTS_AS_TEMPLATE_), "randn", "what the " \
      "bias holds; random, rows_masked, window: 0 or -inf; for bool: random")                      \
    X(DBIAS, "dbias", WORD, "0 1", "0", "backward: gradient of bias")                              \
    X(ALIBI, "alibi", WORD, "0 1 custom", "0", "linear bias by distance; custom: given slopes")    \
    X(BLOCKMASK, "blockmask", WORD, FACTS_BLOCK_LIST(FACTS_AS_TEMPLATE_), "none", "masked tiles "  \
      "of 128 x 128; first: the first of each row; empty_row: a whole row")                        \
    X(SOFTMAX, "softmax", WORD, "vanilla off_by_one sink", "vanilla",                              \
      "what the denominator also contains")                                                        \
    X(DSINK, "dsink", WORD, "0 1", "0", "backward: gradient of the sink")                          \
    X(MOD, "mod", WORD, FACTS_MOD_LIST(FACTS_AS_TEMPLATE_), "none", "a named score modification")  \
    X(DROPOUT, "dropout", WORD, "P", "0", "probability to drop, below 1")                          \
    X(RNG, "rng", WORD, "N:N", "1:0", "dropout: seed and offset")                                  \
    X(RNG_DTYPE, "rng_dtype", WORD, "i64 i32", "i64", "dropout: type of seed and offset")          \
    X(DROPOUT_MASK, "dropout_mask", WORD, "0 1", "0", "dropout: the mask is an input")             \
    X(PAGED, "paged", WORD, "0 M k:M v:M", "0", "page size of K and V, or of one side")            \
    X(TABLE, "table", WORD, FACTS_TABLE_LIST(FACTS_AS_TEMPLATE_), "shuffled",                      \
      "what the page table holds")                                                                 \
    X(SCALE, "scale", WORD, "auto tensor X", "auto", "attention scale; auto: 1/sqrt(d.qk); "       \
      "tensor: in memory, 3/4 of that")                                                            \
    X(WANT, "want", SET, "none stats max sum_exp stats2 rng_dump", "none", "what forward returns " \
      "beside O; backward always has stats")                                                       \
    X(SCALING, "scaling", WORD, "delayed current", "delayed", "8-bit types: when scales are known" \
      )                                                                                            \
    X(SCALES, "scales", WORD, FACTS_SCALES_LIST(FACTS_AS_TEMPLATE_), "unit",                       \
      "8-bit types: values of the scales")                                                         \
    X(DETERMINISTIC, "deterministic", WORD, "0 1 form pin", "0", "backward repeats bit for bit; "  \
      "form, pin: how cuDNN is asked for it")                                                      \
    X(REPEAT, "repeat", WORD, "M", "1", "runs that must agree")                                    \
    X(EXEC, "exec", WORD, FACTS_EXEC_LIST(FACTS_AS_TEMPLATE_), "eager", "how the call is made")    \
    X(IMPL, "impl", WORD, FATTN_IMPL_LIST(FACTS_AS_WORD_), "auto", "which of cuDNN's two graphs")  \
    X(SPELLING, "spelling", WORD, FATTN_SPELLING_LIST(FACTS_AS_WORD_), "auto", "softmax and "      \
      "windows as several operations or as one")                                                   \
    X(ENGINE, "engine", WORD, "auto all N", "auto", "cuDNN's first choice, a number, or every "    \
      "configuration, a row each")                                                                 \
    X(KNOB, "knob", KNOBS, "none", "none", "knobs by cuDNN's names: name:value joined by +")       \
    X(MEMORY, "memory", ALONE, "all N", "all", "MiB of the GPU that are free when cuDNN first "     \
      "runs the plan")                                                                             \
    X(RESCALE, "rescale", WORD, "auto N", "auto", "rescale threshold, log2")                       \
    X(GUARDS, "guards", WORD, "auto on off", "auto", "on: the library refuses what cuDNN is "      \
      "known to get wrong; auto: as the command asks")                                             \
    X(POLICY, "policy", WORD, FACTS_POLICY_LIST(FACTS_AS_TEMPLATE_), "cudnn", "who may answer: "   \
      "cuDNN, math backend, math if cuDNN refuses")                                                \
    X(ROPE, "rope", WORD, "0 1 N", "0", "rotary embedding in the graph: of all channels of a "     \
      "head, or of the last N")                                                                    \
    X(FILL, "fill", WORD, FACTS_FILL_LIST(FACTS_AS_TEMPLATE_),                                     \
      "gauss", "what Q, K, V and dO hold")                                                         \
    X(SEED, "seed", WORD, "N", "1", "seed of the data and of random lengths")                      \
    X(POISON, "poison", WORD, FACTS_POISON_LIST(FACTS_AS_TEMPLATE_), "fill", "contents of input "  \
      "memory that no answer may depend on")                                                       \
    X(CHECK, "check", WORD, FACTS_CHECK_LIST(FACTS_AS_TEMPLATE_), "none",                          \
      "verify more: what dropout keeps, NaN and Inf, or identities")                        \
    X(STATS_DTYPE, "stats_dtype", WORD, "f32 bf16 f16", "f32", "type of Stats; the library "       \
      "refuses all except f32")
/* clang-format on */

#define AS_ENUM(symbol, word, kind, allowed, otherwise, help) FACTS_KEY_##symbol,
enum { FACTS_KEY_LIST(AS_ENUM) FACTS_KEY_COUNT };
#undef AS_ENUM

/* The parts of keys, for predicates. X("word", KEY, index among what / or : separates) */
/* clang-format off */
#define FACTS_PART_LIST(X)                                                                      \
    X("h.q", H, 0) X("h.k", H, 1) X("h.kv", H, 1) X("h.v", H, 2) X("s.q", S, 0) X("s.kv", S, 1) \
    X("d.qk", D, 0) X("d.v", D, 1) X("window.left", WINDOW, 0) X("window.right", WINDOW, 1)
/* clang-format on */

#define AS_ONE(word, key, index) +1
enum { FACTS_KEY_PARTS = 0 FACTS_PART_LIST(AS_ONE) };
#undef AS_ONE

extern const facts_key_row facts_keys[FACTS_KEY_COUNT];
extern const facts_key_part facts_key_parts[FACTS_KEY_PARTS];

#endif
