/* A right kernel in fp32, with the rounding points of a flash kernel; and the same kernel telling one lie.
 *
 * Logits are summed `chunk` exact products at a time into an fp32 accumulator (16: a tensor core; 1: fp32 units). Softmax runs over
 * tiles of keys with a running maximum; P is cast to the input type before P V; O is divided at the end and cast. Backward
 * recomputes P from the Stats it is given.
 */
#ifndef FREF_TESTING_EMULATOR_H
#define FREF_TESTING_EMULATOR_H

#include "modifications.h"
#include "problems.h"

/* X(SYMBOL, "word", "what is wrong") */
#define LIE_LIST(X)                                                                                                                \
    X(NONE, "none", "nothing")                                                                                                     \
    X(CAUSAL_LOOSE, "causal_loose_1", "one key too many on the right")                                                             \
    X(LEFT_LOOSE, "left_plus_1", "left bound inclusive")                                                                           \
    X(LENGTH_LOOSE, "len_plus_1", "one key past the length")                                                                       \
    X(TILE_LOST, "last_tile_lost", "the last tile of keys is skipped")                                                             \
    X(SCALE, "scale_1e3", "scale * 1.001")                                                                                         \
    X(GROUPS, "gqa_mod", "key head h mod heads_k")                                                                                 \
    X(O_TRUNCATED, "o_trunc", "O truncated, not rounded")                                                                          \
    X(NO_DELTA, "no_delta", "backward: D = 0")                                                                                     \
    X(LAST_HEAD, "gqa_last_only", "backward: dK, dV of the group's last head only")                                                \
    X(BIAS_HEAD, "bias_h0", "bias of head 0 for all heads")                                                                        \
    X(BIAS_SCALED, "bias_scaled", "bias * scale")                                                                                  \
    X(BIAS_FIRST, "bias_before_mod", "bias added before the modification")                                                         \
    X(NO_SLOPE, "softcap_grad", "backward: the modification's slope is missing")                                                   \
    X(DBIAS_SCALED, "dbias_scaled", "dBias * scale")                                                                               \
    X(DBIAS_BATCH, "dbias_batch", "dBias of the last batch entry alone")

#define AS_ENUM(symbol, word, what) LIE_##symbol,
typedef enum lie_id { LIE_LIST(AS_ENUM) LIE_COUNT } lie_id;
#undef AS_ENUM
extern const char *const lie_words[LIE_COUNT];

typedef struct emulated_kernel {
    lie_id lie;
    int64_t tile;       /* keys */
    bool reversed;      /* tiles from last to first */
    bool partials_fp32; /* partial dK, dV and the parts and partial sums of dBias are not cast */
    mod_kind mod;       /* the data's problem has it in closed form */
} emulated_kernel;

/* Dense answers, already rounded to their types. Owner. */
typedef struct emulated {
    double *o, *lse, *max, *dq, *dk, *dv, *dbias;
} emulated;

void emulate(emulated *out, const data *d, const emulated_kernel *kernel);
void emulated_destroy(emulated *e);
/* Puts the kernel's own O and LSE where the data's o and stats are. */
void emulated_feed(const emulated *e, data *d);

#endif
