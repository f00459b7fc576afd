/* score_mod.h: a user's modification of the score, recorded once.
 *
 * A callback receives the scaled score as a value and records operations on it. Two recordings are the same modification if their operations,
 * constants and tensor signatures (type, extents, strides) are equal. Names, addresses and callbacks do not matter. The library derives the
 * gradient from the recording; a user may record another one.
 *
 * Equality  The library compares a normal form. It removes unused steps, merges equal steps, and evaluates constants. It sorts the inputs of
 *           add, mul, max, min, eq, ne, and, or. It writes gt and ge as lt and le, a - c as a + -c, and select(not c, x, y) as
 *           select(c, y, x) where that is exact. So the order of independent steps does not matter. The normal form changes no number.
 *           Tensors, also unused ones, keep the order of recording, because the call gives addresses in this order. A user's gradient is a
 *           part of the modification if it differs from the derived one.
 * Values    fp32, one for every (batch, head, row, key); comparisons and logic give 1 or 0.
 * Errors    After the first failure inside a callback, later calls return a value below 0 and do nothing. The creation returns the failure.
 */
#ifndef FATTN_SCORE_MOD_H
#define FATTN_SCORE_MOD_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(SYMBOL, value, "word", inputs) */
/* clang-format off */
#define FATTN_MOD_OP_LIST(X)                                                                 \
    X(NEG, 1, "neg", 1) X(ABS, 2, "abs", 1) X(EXP, 3, "exp", 1) X(LOG, 4, "log", 1)          \
    X(TANH, 5, "tanh", 1) X(SIGMOID, 6, "sigmoid", 1)                                        \
    X(ERF, 7, "erf", 1) X(SIN, 8, "sin", 1) X(COS, 9, "cos", 1) X(TAN, 10, "tan", 1)         \
    X(SQRT, 11, "sqrt", 1) X(RSQRT, 12, "rsqrt", 1)                                          \
    X(RECIPROCAL, 13, "reciprocal", 1) X(RELU, 14, "relu", 1) X(SOFTPLUS, 15, "softplus", 1) \
    X(CEIL, 16, "ceil", 1) X(FLOOR, 17, "floor", 1)                                          \
    X(ADD, 18, "add", 2) X(SUB, 19, "sub", 2) X(MUL, 20, "mul", 2) X(DIV, 21, "div", 2)      \
    X(MAX, 22, "max", 2) X(MIN, 23, "min", 2)                                                \
    X(POW, 24, "pow", 2) X(MOD, 25, "mod", 2) X(EQ, 26, "eq", 2) X(NE, 27, "ne", 2)          \
    X(LT, 28, "lt", 2) X(LE, 29, "le", 2) X(GT, 30, "gt", 2)                                 \
    X(GE, 31, "ge", 2) X(AND, 32, "and", 2) X(OR, 33, "or", 2) X(NOT, 34, "not", 1)          \
    X(SELECT, 35, "select", 3) /* condition, value where it holds, value where not */
/* clang-format on */
#define FATTN_AS_MOD_OP_(symbol, value, word, inputs) FATTN_MOD_##symbol = (value),
typedef enum fattn_mod_op { FATTN_MOD_OP_LIST(FATTN_AS_MOD_OP_) } fattn_mod_op;
#undef FATTN_AS_MOD_OP_

typedef enum fattn_mod_axis {
    FATTN_MOD_BATCH = 0,
    FATTN_MOD_HEAD = 1,
    FATTN_MOD_ROW = 2,
    FATTN_MOD_KEY = 3
} fattn_mod_axis;

#define FATTN_MOD_MAX_TENSORS 8
#define FATTN_MOD_MAX_OPERATIONS                                                                   \
    64 /* in what a callback records, its constants and indices included */

typedef struct fattn_recorder fattn_recorder;
typedef int32_t fattn_value; /* below 0: a failure */

/* Records one operation. The library does not read inputs that the operation lacks. */
fattn_value fattn_record(fattn_recorder *recorder, fattn_mod_op op, fattn_value a, fattn_value b,
                         fattn_value c);
fattn_value fattn_record_constant(fattn_recorder *recorder,
                                  double value); /* a number that fp32 can hold, or an infinity */
fattn_value fattn_record_index(fattn_recorder *recorder, fattn_mod_axis axis); /* as a number */
/* Reads a tensor of the user, broadcast to [b,h,s_q,s_kv]: each extent is 1 or the problem's.
 * `strides` NULL: dense. dtype bf16, f16 or f32. The address is given at the call
 * (fattn_tensors.mod_tensors). Recording one name twice gives the same tensor; with another
 * signature it is an error. */
fattn_value fattn_record_tensor(fattn_recorder *recorder, const char *name, fattn_dtype dtype,
                                const int64_t dim[4], const int64_t strides[4]);

typedef fattn_value (*fattn_score_mod_callback)(fattn_recorder *recorder, fattn_value score,
                                                void *user);
/* Records d(loss)/d(score), given d(loss)/d(modified score). */
typedef fattn_value (*fattn_score_mod_gradient_callback)(fattn_recorder *recorder,
                                                         fattn_value score, fattn_value gradient,
                                                         void *user);

/* Calls `callback` once and keeps what it recorded. `gradient` NULL: the library derives the gradient. The library does not keep the callbacks.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (a value of another recording, too many operations, a result that is no value: the message names
 *          the operation); FATTN_NO_MEMORY. */
fattn_status fattn_score_mod_create(fattn_score_mod **out, fattn_score_mod_callback callback,
                                    fattn_score_mod_gradient_callback gradient, void *user);
void fattn_score_mod_destroy(fattn_score_mod *mod); /* plans keep their own reference */

/* A hash of the structure and the tensor signatures: 128 bits. */
void fattn_score_mod_hash(const fattn_score_mod *mod, uint64_t out[2]);
bool fattn_score_mod_same(const fattn_score_mod *mod, const fattn_score_mod *other);
/* The recording as text, one operation a line, in the normal form that is hashed. Copies at most
 * `capacity` bytes; returns the length. */
size_t fattn_score_mod_text(const fattn_score_mod *mod, char *out, size_t capacity);

typedef struct fattn_mod_tensor {
    const char *name; /* lives as long as the recording */
    int32_t dtype;
    int32_t reserved;
    int64_t dim[4], strides[4];
} fattn_mod_tensor;
size_t fattn_score_mod_tensor_count(const fattn_score_mod *mod);
const fattn_mod_tensor *fattn_score_mod_tensor(const fattn_score_mod *mod, size_t i);

/* One place, evaluated on the host in double: *value is the modified score, *slope its derivative
 * by the score. If there is a gradient of the user's, *slope is that gradient. `tensors` are host
 * addresses. Either result may be NULL. */
fattn_status fattn_score_mod_evaluate(const fattn_score_mod *mod, double score,
                                      const int64_t at[4] /* b,h,row,key */,
                                      const void *const *tensors, double *value, double *slope);
/* ---- ready modifications
 * -------------------------------------------------------------------------------------------------------
 */

fattn_status fattn_score_mod_causal(fattn_score_mod **out); /* key <= row, else -inf */
fattn_status fattn_score_mod_window(fattn_score_mod **out, int64_t left,
                                    int64_t right); /* the band of fattn_problem, top-left */
fattn_status fattn_score_mod_softcap(fattn_score_mod **out,
                                     double cap); /* cap * tanh(score / cap) */
fattn_status fattn_score_mod_temperature(fattn_score_mod **out,
                                         double temperature); /* score / temperature */
fattn_status fattn_score_mod_prefix_lm(fattn_score_mod **out,
                                       int64_t prefix); /* key <= row or key < prefix, else -inf */
/* score + bias; tensor "bias" */
fattn_status fattn_score_mod_post_scale_bias(fattn_score_mod **out, fattn_dtype dtype,
                                             const int64_t dim[4], const int64_t strides[4]);
/* score + slope[h] * (key - row); tensor "slope", fp32 [1,heads_q,1,1] */
fattn_status fattn_score_mod_relative_position(fattn_score_mod **out, int64_t heads_q);
/* Rows see the keys of their own document, else -inf; tensors "row_document" fp32 [batch,1,seq_q,1]
 * and "key_document" fp32 [batch,1,1,seq_kv] hold small whole numbers. */
fattn_status fattn_score_mod_document(fattn_score_mod **out, int64_t batch, int64_t seq_q,
                                      int64_t seq_kv);

#ifdef __cplusplus
}
#endif
#endif
