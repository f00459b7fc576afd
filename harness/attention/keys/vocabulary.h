/* The closed sets of values of the case language: each list gives an enum, the words of its key
 * (keys.h) and their order. The enum's number of a value is the value's place in the list:
 * facts_key_index reads it.
 *
 * X(SYMBOL, "template"): keys.h says what a template is. */
#ifndef FACTS_VOCABULARY_H
#define FACTS_VOCABULARY_H

/* clang-format off */
#define FACTS_AS_TEMPLATE_(symbol, text) text " "

/* What lies in the inputs (docs/numerics.md section 4). */
#define FACTS_FILL_LIST(X)                                                                      \
    X(GAUSS, "gauss") X(UNIFORM, "uniform") X(SPIKY, "spiky") X(NEEDLE, "needle")               \
    X(NEGLSE, "neglse") X(STAIR_UP, "stair_up") X(STAIR_DN, "stair_dn") X(BIGLOGIT, "biglogit") \
    X(OFFSET_K, "offset_k") X(OFFSET_V, "offset_v") X(SPARSE_INT, "sparse_int") X(UNIP, "unip") \
    X(AMAX_PLANT, "amax_plant") X(HUGELOGIT, "hugelogit") X(HUGEGRAD, "hugegrad")
#define AS_ENUM(symbol, word) FACTS_FILL_##symbol,
typedef enum facts_fill { FACTS_FILL_LIST(AS_ENUM) FACTS_FILL_OTHER } facts_fill;
#undef AS_ENUM

/* The checks beside the reference (docs/numerics.md, sections 5 to 7): dropout's mask out of an answer, numbers that are not
 * finite, identities of huge problems. */
#define FACTS_CHECK_LIST(X)                                                                     \
    X(NONE, "none") X(KEEP, "keep") X(NONFINITE, "nonfinite") X(IDENTITIES, "identities")
#define AS_ENUM(symbol, word) FACTS_CHECK_##symbol,
typedef enum facts_check { FACTS_CHECK_LIST(AS_ENUM) FACTS_CHECKS } facts_check;
#undef AS_ENUM

/* The contents of a bias, in the order of the list: ordinary values; 0; a mask of 1, or a bias of 0; 0 or -inf at random (key 0
 * always 0); 0, with some rows of -inf; 0 inside the window L:R (top-left) and -inf outside; -inf everywhere; 0 or the lowest
 * finite number of the type (key 0 always 0); 0, with some rows of -20000. A boolean mask has 1 for 0, and 0 for -inf. */
#define FACTS_BIAS_FILL_LIST(X)                                                     \
    X(RANDN, "randn") X(ZERO, "zero") X(ALL_TRUE, "all_true") X(RANDOM, "random")   \
    X(ROWS_MASKED, "rows_masked") X(WINDOW, "window:L:L") X(MINUS_INF, "minus_inf") \
    X(FINITE_MIN, "finite_min") X(ROWS_LOW, "rows_low")
#define AS_ENUM(symbol, word) FACTS_BIAS_##symbol,
typedef enum facts_bias_fill { FACTS_BIAS_FILL_LIST(AS_ENUM) FACTS_BIAS_FILL_COUNT } facts_bias_fill;
#undef AS_ENUM

/* What lies in inputs where no result may depend on it. */
#define FACTS_POISON_LIST(X) X(FILL, "fill") X(NAN, "nan") X(INF, "inf") X(BIG, "big")
#define AS_ENUM(symbol, word) FACTS_POISON_##symbol,
typedef enum facts_poison { FACTS_POISON_LIST(AS_ENUM) } facts_poison;
#undef AS_ENUM

/* How the call is made. */
#define FACTS_EXEC_LIST(X)                                              \
    X(EAGER, "eager") X(GRAPH, "graph") X(GRAPH_UPDATE, "graph_update") \
    X(GRAPH_NATIVE, "graph_native") X(OVERRIDE_SHAPE, "override_shape")
#define AS_ENUM(symbol, word) FACTS_EXEC_##symbol,
typedef enum facts_exec { FACTS_EXEC_LIST(AS_ENUM) FACTS_EXEC_COUNT } facts_exec;
#undef AS_ENUM

/* The backends that may answer on a GPU or a described device: cuDNN alone; the math kernels alone; cuDNN, and the math kernels
 * where cuDNN refuses. */
#define FACTS_POLICY_LIST(X) X(CUDNN, "cudnn") X(MATH, "math") X(ANY, "any")
#define AS_ENUM(symbol, word) FACTS_POLICY_##symbol,
typedef enum facts_policy { FACTS_POLICY_LIST(AS_ENUM) FACTS_POLICY_COUNT } facts_policy;
#undef AS_ENUM

/* Named score modifications (numbers/mod.h). */
#define FACTS_MOD_LIST(X)                                                               \
    X(NONE, "none") X(CAUSAL, "causal") X(WINDOW, "window:L:L") X(SOFTCAP, "softcap:X") \
    X(TEMPERATURE, "temperature:X") X(PREFIX_LM, "prefix:N")                            \
    X(POST_SCALE_BIAS, "post_scale_bias") X(RELPOS, "relpos") X(DOCUMENT, "document:M")
#define AS_ENUM(symbol, word) FACTS_MOD_##symbol,
typedef enum facts_mod { FACTS_MOD_LIST(AS_ENUM) FACTS_MOD_COUNT } facts_mod;
#undef AS_ENUM

/* The contents of a page table, of a block mask, and of fp8 scales. */
#define FACTS_TABLE_LIST(X)                                                                                                        \
    X(SHUFFLED, "shuffled") X(IDENTITY, "identity") X(LINSPACE, "linspace") X(SHARED, "shared") X(PACKED, "packed") X(UNFILLED, "unfilled")
#define FACTS_BLOCK_LIST(X) X(NONE, "none") X(RANDOM, "random") X(FIRST, "first") X(EMPTY_ROW, "empty_row")
#define FACTS_SCALES_LIST(X) X(UNIT, "unit") X(POW2, "pow2") X(ODD, "odd") X(LARGE, "large") X(TIGHT, "tight")
#define AS_ENUM(symbol, word) FACTS_TABLE_##symbol,
typedef enum facts_table { FACTS_TABLE_LIST(AS_ENUM) FACTS_TABLES } facts_table;
#undef AS_ENUM
#define AS_ENUM(symbol, word) FACTS_BLOCKS_##symbol,
typedef enum facts_block_pattern { FACTS_BLOCK_LIST(AS_ENUM) FACTS_BLOCK_PATTERNS } facts_block_pattern;
#undef AS_ENUM
#define AS_ENUM(symbol, word) FACTS_SCALES_##symbol,
typedef enum facts_scales { FACTS_SCALES_LIST(AS_ENUM) FACTS_SCALES_COUNT } facts_scales;
#undef AS_ENUM
/* clang-format on */

#endif
