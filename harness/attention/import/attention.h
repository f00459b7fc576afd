/* One attention problem of a graph: the tensors with their parts, and the operations on the scores.
 * facts_import_recognise finds it, facts_import_case writes it as a case. */
#ifndef FACTS_IMPORT_ATTENTION_H
#define FACTS_IMPORT_ATTENTION_H

#include <stdarg.h>
#include <stdio.h>

#include "graph.h"
#include "language/case.h"

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

/* Every field of a graph is used, harmless, or reported: import drops nothing in silence. */
/* The objects that have fields: those of cudnn-frontend, and those of cuDNN's operationGraph. */
typedef enum facts_import_place {
    FACTS_IMPORT_CONTEXT,
    FACTS_IMPORT_NODE,
    FACTS_IMPORT_TENSOR,
    FACTS_IMPORT_GRAPH,
    FACTS_IMPORT_OPERATION,
    FACTS_IMPORT_STORED /* a tensor of cuDNN */
} facts_import_place;

/* A note for each field of `graph` that import does not understand: an unknown name, a value that
 * no case has, the name of a tensor that is not there. */
void facts_import_fields(facts_import_notes *notes, const facts_import_graph *graph);
/* What import makes of a field. NULL: it reads the field, or does not know it; "*": no case depends
 * on it; "#int", "#bool", "#number": it reads a field of that type; else the accepted values, with |
 * between them. */
const char *facts_import_field_values(facts_import_place place, const char *name);

/* A note, once. */
__attribute__((format(printf, 2, 3))) void facts_import_note(facts_import_notes *notes,
                                                             const char *format, ...);

/* The tokens of a case while they are collected. */
typedef struct tokens {
    char between;
    size_t length;
    char text[4 * FACTS_CASE_TEXT];
} tokens;

__attribute__((format(printf, 2, 3))) static inline void add(tokens *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (t->length > 0 && t->length + 1 < sizeof t->text)
        t->text[t->length++] = t->between;
    int wrote = vsnprintf(t->text + t->length, sizeof t->text - t->length, format, arguments);
    va_end(arguments);
    if (wrote > 0 && (size_t)wrote < sizeof t->text - t->length)
        t->length += (size_t)wrote;
}

/* Finds the layout words for given strides, by trying: the inverse of
 * problem/resolve_tensors.c. */
/* Adds layouts and strides to the case of `text` (tokens without them). The result is resolved and
 * compared with the problem, tensor by tensor; what the graph has beyond it becomes a note. False with a sentence: it is no case, or no layout
 * and no form of stride= has these strides. */
bool facts_import_layouts(facts_case *out, facts_import_notes *notes,
                          const facts_import_attention *attention, const char *text,
                          facts_error *error);

/* cuDNN's composite backward writes a bias of one row as a bias of all rows that share memory. Is
 * it such a bias? */
bool facts_import_bias_row(const facts_import_attention *attention);

#endif
