/* The features that a problem may ask for beyond plain attention. Each engine states which of them
 * it has. A problem that asks for another feature gets the answer "not implemented: <clause>",
 * class internal, so that no feature is silently left out. */
#ifndef FATTN_FEATURE_SET_H
#define FATTN_FEATURE_SET_H

#include <stdint.h>

#include "fattn/fattn.h"

/* X(SYMBOL, "clause", when a resolved problem `p` asks for it) */
#define FATTN__FEATURE_LIST(X)                                                                     \
    X(RAGGED, "ragged offsets", p->ragged_bits != 0)                                               \
    X(RAGGED_TOKENS, "ragged_tokens: offsets in tokens", p->ragged_tokens != 0)                    \
    X(TOTALS, "total_q, total_kv: declared totals", p->total_q != 0 || p->total_kv != 0)           \
    X(CUMULATIVE, "cumulative lengths", p->cumulative != 0)                                        \
    X(LEN_RANK, "len_rank 1", p->len_rank == 1)                                                    \
    X(PAGED, "paged K or V", p->page_size_k != 0 || p->page_size_v != 0)                           \
    X(PACKED_TABLE, "packed page tables", p->packed_table != 0)                                    \
    X(BOOL_MASK, "boolean masks", p->bias_dtype == FATTN_BOOL)                                     \
    X(ALIBI, "alibi", p->alibi != 0)                                                               \
    X(SINK, "sinks", p->sink != 0)                                                                 \
    X(DROPOUT, "dropout", p->dropout != 0.0)                                                       \
    X(DROPOUT_MASK, "dropout_mask", p->dropout_mask != 0)                                          \
    X(RNG_DUMP, "outputs: rng_dump", (p->outputs & FATTN_WANT_RNG_DUMP) != 0)                      \
    X(STATS_LOG2, "outputs: stats in base 2", (p->outputs & FATTN_WANT_STATS_LOG2) != 0)           \
    X(STATS_DTYPE, "stats_dtype other than f32", p->stats_dtype != FATTN_F32)                      \
    X(SCALE_IN_MEMORY, "scale_in_memory", p->scale_in_memory != 0)                                 \
    X(BLOCK_MASK, "block_mask", p->block_mask != 0)                                                \
    X(UNFUSE_FMA, "unfuse_fma", p->unfuse_fma != 0)                                                \
    X(ROPE, "rope", p->rope != 0)                                                                  \
    X(FP8, "e4m3 and e5m2", has_type(p, FATTN_E4M3) || has_type(p, FATTN_E5M2))                    \
    X(MXFP8, "mxe4m3 and mxe5m2", has_type(p, FATTN_MXE4M3) || has_type(p, FATTN_MXE5M2))          \
    X(UNIFIED, "impl unified", p->impl == FATTN_IMPL_UNIFIED)

#define FATTN__AS_PLACE_(symbol, clause, when) FATTN__PLACE_##symbol,
enum { FATTN__FEATURE_LIST(FATTN__AS_PLACE_) FATTN__FEATURE_COUNT };
#undef FATTN__AS_PLACE_
#define FATTN__HAS(symbol) (UINT64_C(1) << FATTN__PLACE_##symbol)
#define FATTN__EVERY_FEATURE ((UINT64_C(1) << FATTN__FEATURE_COUNT) - 1)

/* The clause of the first feature that the problem asks for and `features` (FATTN__HAS bits) lacks;
 * NULL when there is none. */
const char *fattn__features_missing(const fattn_problem *resolved, uint64_t features);

/* The first feature of a problem that only the unified operation can express; NULL: none. */
const char *fattn__unified_alone(const fattn_problem *problem);
/* Is a resolved problem built as a unified operation? `impl` decides. With auto, it is if only the
 * unified operation can express the problem (cumulative lengths, offsets in tokens, a block mask,
 * an unfused multiply-add). Otherwise it is a composite graph. */
bool fattn__is_unified(const fattn_problem *problem);

#endif
