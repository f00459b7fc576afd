/* One attention problem of a graph: the tensors with their parts, and the operations on the scores.
 * facts_import_recognise finds it, facts_import_case writes it as a case. */
#ifndef FACTS_IMPORT_ATTENTION_H
#define FACTS_IMPORT_ATTENTION_H

#include "graph.h"

/* X(SYMBOL, "cudnn-frontend's place", "place of the unified forward", "of the unified backward") */
/* clang-format off */
#define FACTS_IMPORT_ROLE_LIST(X)                                                                  \
    X(Q, "Q", "Q", "qDesc")                                                                        \
    X(K, "K", "K", "kDesc") X(V, "V", "V", "vDesc") X(O, "O", "O", "oDesc")                        \
    X(STATS, "Stats", "stats", "statsDesc")                                                        \
    X(MAX, "Max", "maxDesc", "") X(SUM_EXP, "Sum_exp", "sumExpDesc", "")                           \
    X(DO, "dO", "", "dODesc") X(DQ, "dQ", "", "dQDesc")                                            \
    X(DK, "dK", "", "dKDesc") X(DV, "dV", "", "dVDesc") X(BIAS, "Bias", "", "")                    \
    X(DBIAS, "dBias", "", "dBiasDesc")                                                             \
    X(LEN_Q, "SEQ_LEN_Q", "seqLenQ", "seqLenQDesc")                                                \
    X(LEN_KV, "SEQ_LEN_KV", "seqLenKV", "seqLenKVDesc")                                            \
    X(CU_Q, "CU_SEQ_LEN_Q", "cuSeqLenQ", "cuSeqLenQDesc")                                          \
    X(CU_KV, "CU_SEQ_LEN_KV", "cuSeqLenKV", "cuSeqLenKVDesc")                                      \
    X(TABLE_K, "Page_table_K", "pageTableK", "") X(TABLE_V, "Page_table_V", "pageTableV", "")      \
    X(SINK, "SINK_TOKEN", "sinkDesc", "sinkDesc") X(DSINK, "DSINK_TOKEN", "", "dSinkDesc")         \
    X(SEED, "Seed", "dropoutSeed", "dropoutSeed") X(DROPOUT_MASK, "Dropout_mask", "", "")          \
    X(RNG_DUMP, "RNG_DUMP", "dropoutRngDump", "dropoutRngDump")                                    \
    X(BLOCK_MASK, "Block_mask", "blockMask", "")                                                   \
    X(SCALE, "Attn_scale", "scale", "scaleDesc") X(DESCALE_Q, "Descale_Q", "descaleQ", "descaleQ")
/* clang-format on */
#define AS_ENUM(symbol, frontend, forward, backward) FACTS_IMPORT_ROLE_##symbol,
typedef enum facts_import_role {
    FACTS_IMPORT_ROLE_LIST(AS_ENUM) FACTS_IMPORT_ROLES
} facts_import_role;
#undef AS_ENUM

/* Score modifications that are known by their shape. */
typedef enum facts_import_mod {
    FACTS_IMPORT_MOD_NONE,
    FACTS_IMPORT_MOD_SOFTCAP,
    FACTS_IMPORT_MOD_TEMPERATURE,
    FACTS_IMPORT_MOD_RELPOS,
    FACTS_IMPORT_MOD_DOCUMENT,
    FACTS_IMPORT_MOD_PREFIX
} facts_import_mod;

/* A bound of the band. */
typedef struct facts_import_bound {
    bool given, known;
    int64_t value;
} facts_import_bound;

typedef struct facts_import_attention {
    const facts_import_graph *graph;
    const facts_import_operation *node; /* of cudnn-frontend; NULL: the graph has cuDNN's operations
                                         */
    bool backward, unified, single;     /* single: softmax and bands as one operation each */
    bool has[FACTS_IMPORT_ROLES];
    facts_import_tensor part[FACTS_IMPORT_ROLES]; /* copies in the order b,h,s,d; names live as long
                                                     as their graph */
    facts_import_type offsets; /* type of ragged offsets; FACTS_IMPORT_TYPE_OTHER: not known */
    int64_t seq_kv;            /* 0: as K has it */
    facts_import_bound left, right;
    bool bottom_right, padding, alibi, bool_mask, stats_log2, totals, dq_direct, rope, mx;
    bool table_packed_k, table_packed_v;
    bool has_scale, scale_known, scale_tensor;
    double scale;
    bool dropout_known; /* when SEED is there */
    double dropout;     /* the share that is dropped */
    facts_import_mod mod;
    bool deterministic, unfuse_fma;
    bool score_hidden; /* a unified backward whose score graph the log does not have */
    bool half_accumulation;
    int64_t rescale;  /* log2; -1: unknown */
    int64_t rope_dim; /* channels that rotate; 0: all */
} facts_import_attention;

typedef enum facts_import_found {
    FACTS_IMPORT_FOUND,
    FACTS_IMPORT_PART,
    FACTS_IMPORT_NO_ATTENTION,
    FACTS_IMPORT_UNREAD
} facts_import_found;

/* Looks for attention in a graph. `part` is the graph that the same thread made just before and
 * that has a virtual input, because cuDNN's unified backward does not print its inner graph; NULL:
 * none. PART: this graph is such a part. UNREAD: it is attention with something that no case can
 * express; *error says what. */
facts_import_found facts_import_recognise(facts_import_attention *out,
                                          const facts_import_graph *graph,
                                          const facts_import_graph *part, facts_error *error);

/* How many of a case's assumptions stand in `notes`. */
enum { FACTS_IMPORT_NOTES = 8, FACTS_IMPORT_NOTE = 160 };
typedef struct facts_import_notes {
    bool scale_missing; /* almost every log lacks the scale, so one note covers all problems */
    int count;
    char text[FACTS_IMPORT_NOTES][FACTS_IMPORT_NOTE]; /* values that the log does not contain, and
                                                         the assumption for each */
} facts_import_notes;

/* Writes the canonical case of an attention problem: sizes, types, strides and options as in the
 * graph, everything else at its default. The case is compared with the graph: every tensor must
 * have its strides. False with a sentence in *error: no case is equal. */
bool facts_import_case(facts_case *out, facts_import_notes *notes,
                       const facts_import_attention *attention, facts_error *error);

#endif
