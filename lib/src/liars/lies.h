/* Deliberate mistakes in the library. Each breaks a promise whose breach has hurt a user before,
 * and the tests must fail with each of them. Only a build with FATTN_LIARS, a library and a worker
 * for tests, has them; otherwise FATTN__LIE is 0. One mistake is active at a time. */
#ifndef FATTN_LIARS_H
#define FATTN_LIARS_H

#include "gpu_like.h"
#include "kernel_faults.h"

/* X(SYMBOL, "word", "what it breaks") */
/* clang-format off */
#define FATTN__LIAR_LIST(X)                                                                        \
    X(PROBE_O_FORMAT, "probe-o-format", "the question has Q's layout for O, the call its own")     \
    X(PROBE_BATCH, "probe-batch", "the question has batch 1")                                      \
    X(PROBE_ALIGN, "probe-align", "the question asks bottom-right as top-left")                    \
    X(GUARD_END, "guard-ends-too-early", "a rule without an end ends with its first version")      \
    X(CAPTURE_STALE, "capture-stale", "an updated graph keeps the old addresses")                  \
    X(MOD_NO_GRADIENT, "mod-no-gradient", "no slope of the modification")                          \
    X(LAYOUT_ZERO_AS_ONE, "layout-zero-as-one", "stride 0 sorts as stride 1")                      \
    X(ZERO_STRIDE_UNSUMMED, "zero-stride-gradient-unsummed", "a broadcast's gradient is one part") \
    X(BIAS_SHAPE, "bias-shape", "bias is broadcast over heads whatever its shape")                 \
    X(ROPE_PAIR, "rope-pair", "a pair of channels of one row turns the other way")                 \
    X(MX_COPY_Q, "mx-copy-q", "dK of block-scaled types takes Q, not its copy along the rows")     \
    X(MX_COPY_K, "mx-copy-k", "dQ of block-scaled types takes K, not its copy along the keys")     \
    X(MX_COPY_DO, "mx-copy-do", "dV of block-scaled types takes dO, not its copy along the rows")  \
    X(POLICY_LEAK, "policy-leak", "pop leaves the policy in force")                                \
    X(DROPOUT_BATCHES, "dropout-batches", "every batch entry keeps the keys of the first")         \
    X(DROPOUT_HEADS, "dropout-heads", "every head keeps the keys of the first")                    \
    X(DROPOUT_ROWS, "dropout-rows", "every row keeps the keys of the first")                       \
    X(DROPOUT_PERIOD, "dropout-period", "the keep bits of a row repeat after 64 keys")             \
    X(DROPOUT_SEED, "dropout-ignored-seed", "the seed is not read")                                \
    X(DROPOUT_OFFSET, "dropout-ignored-offset", "the offset is not read")                          \
    X(DROPOUT_ENTRIES, "dropout-entries", "the next entry has heads of the first")                 \
    X(DROPOUT_HEADS_5, "dropout-heads-5", "heads 5 apart keep the same keys")                      \
    X(DROPOUT_ROWS_256, "dropout-rows-256", "rows 256 apart keep the same keys")                   \
    X(DROPOUT_KEYS_256, "dropout-keys-256", "the keep bits of a row repeat after 256 keys")        \
    X(DROPOUT_SEED_HIGH, "dropout-seed-high", "the seed has 32 bits")                              \
    X(DROPOUT_OFFSET_HIGH, "dropout-offset-high", "the offset has 32 bits")                        \
    X(NAN_MASKED, "nan-masked", "a score that is NaN counts as masked")                            \
    X(OVERFLOW_ZEROED, "overflow-zeroed", "an answer that is not finite becomes 0")                \
    X(LAUNCH_RACE, "launch-race", "one call in eight leaves rows of O (of dK) at 0")               \
    X(BATCH_16_BITS, "batch-16-bits", "the batch index is kept in 16 bits")
/* clang-format on */

#ifdef FATTN_LIARS
#include <stdbool.h>
#include <stdio.h>

#include "fattn/fattn.h"

#define FATTN__AS_LIAR_(symbol, ...) FATTN__LIAR_##symbol,
typedef enum fattn__liar {
    FATTN__LIAR_NONE,
    FATTN__LIAR_LIST(FATTN__AS_LIAR_) FATTN__FAULT_LIST(FATTN__AS_LIAR_)
        FATTN__DATA_LIST(FATTN__AS_LIAR_) FATTN__LIAR_FAR /* every fault of a place */
} fattn__liar;
#undef FATTN__AS_LIAR_

#define FATTN__TESTING 1
extern fattn__liar fattn__liar_now;
#define FATTN__LIE(symbol) (fattn__liar_now == FATTN__LIAR_##symbol)

/* The planted faults of the kernel (kernel_faults.h). */
typedef enum fattn__fault_types {
    FATTN__TYPES_ANY,
    FATTN__TYPES_CAST,
    FATTN__TYPES_WIDE,
    FATTN__TYPES_F8,
    FATTN__TYPES_F16,
    FATTN__TYPES_HOPPER,
    FATTN__TYPES_FINER
} fattn__fault_types;

typedef struct fattn__fault {
    const char *word, *cases, *what; /* cases: a predicate */
    fattn__fault_types types;
    fattn__liar liar;
} fattn__fault;

/* Those of lib/src/liars first. NULL: the list ends before `index`. */
const fattn__fault *fattn__fault_at(int index);

/* Activates a mistake. False: the word is unknown. */
bool fattn__liar_take(const char *word);
/* Prints one line for each mistake outside of the kernel: word, tab, description. */
void fattn__liar_print(FILE *out);
/* Do two kernels of one pass lie there? */
#define FATTN__LIE_OF(pass_of, forward, backward)                                                  \
    ((pass_of) == FATTN_FORWARD ? FATTN__LIE(forward) : FATTN__LIE(backward))
/* Rows [key0, key0 + keys) of K or V, as the fault finds them; rows behind `exist` are 0. */
struct fattn__view;
void fattn__liar_load_keys(float *dst, int64_t step, const struct fattn__view *from,
                           const fattn_problem *p, const int64_t at[4], int64_t keys, int64_t dim,
                           int64_t exist);
/* P (dS) as the products take it. */
float fattn__liar_cast(int32_t dtype, float x, bool of_ds);
/* A row as it was loaded, and one as it was stored at `row` of its tensor: src, before its cast. */
void fattn__liar_bend_input(const struct fattn__view *from, float *dst, int64_t dim);
void fattn__liar_bend_stored(const struct fattn__view *to, int64_t row, const float *src,
                             int64_t dim);
/* Rows of O before their cast: o[rows][step] of head (b, h), from row0 on. */
void fattn__liar_bend_o(const fattn_problem *p, const int64_t at[3], int64_t rows, float *o,
                        int64_t step);
/* Rows of dK (else dV) before their cast. */
void fattn__liar_bend_keys(const fattn_problem *p, bool of_k, int64_t rows, float *to,
                           int64_t step);
/* Changes a problem to the one that the active mistake asks instead. */
void fattn__liar_bend(fattn_problem *question);

/* CUDA graphs on the CPU (emulated_kernel.c): a captured call is recorded, and runs at each launch.
 * True: the call was recorded and must not run now. */
bool fattn__emulator_records(const fattn_plan *plan, const fattn_tensors *tensors);
const struct gpu_driver *fattn__emulator_functions(void); /* for CUDA graphs alone */
/* After `calls` more calls, one call returns `result`; 0: none does. fattn__emulator_alive counts
 * the objects that are not destroyed. */
void fattn__emulator_fail(int calls, int result);
int fattn__emulator_alive(void);
#else
#define FATTN__TESTING 0
#define FATTN__LIE(symbol) 0
#define FATTN__LIE_OF(pass_of, forward, backward) 0
#define fattn__liar_load_keys(...) ((void)0)
#define fattn__liar_cast(dtype, x, of_ds) fattn__number_round(dtype, x)
#define fattn__liar_bend_input(...) ((void)0)
#define fattn__liar_bend_stored(...) ((void)0)
#define fattn__liar_bend_o(...) ((void)0)
#define fattn__liar_bend_keys(...) ((void)0)
#define fattn__liar_bend(question) ((void)0)
#define fattn__emulator_records(plan, tensors) 0
#endif

#endif
