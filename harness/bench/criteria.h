/* What other suites would have found of the same answers: their published criteria, in our words. docs/numerics.md section 12.
 *
 * Each judges O (some Stats too) of live rows against the reference. Sources, by repository and file:
 *   cudnn-frontend      NVIDIA/cudnn-frontend test/python/test_mhas.py: assert_close, atol = rtol = 2e-2, on O and Stats
 *   ggml                ggml-org/llama.cpp tests/test-backend-ops.cpp, test_flash_attn_ext: normalised mean squared error <= 5e-4
 *   flash-attention     Dao-AILab/flash-attention tests/test_flash_attn.py: largest error <= twice that of an eager one in the
 * input type oneDNN              oneapi-src/oneDNN tests/gtests/internals/test_sdpa.cpp: error <= t max(1, |want|), t = 0.0079
 * (bf16) or 0.001466, in all but 0.06 % of the elements; none above 0.03 TransformerEngine   NVIDIA/TransformerEngine
 * tests/pytorch/attention/test_attention.py: assert_close, 1e-3, bf16 1.5e-2; 8 bit types: 0.5, or a root mean square error <= 0.15
 * of the range
 */
#ifndef FACTS_BENCH_CRITERIA_H
#define FACTS_BENCH_CRITERIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/words/fail.h"

/* X(SYMBOL, "name"): the first are others'; then ours, by the fills and answers that it may use. */
/* clang-format off */
#define FACTS_CRITERION_LIST(X)                                                             \
    X(CUDNN_SPARSE, "cudnn-frontend 2e-2, O and Stats (sparse_int)")                        \
    X(CUDNN, "cudnn-frontend 2e-2, O and Stats (gauss)") X(GGML, "ggml, NMSE 5e-4 (gauss)") \
    X(FLASH, "flash-attention, at most 2x eager (gauss)") X(ONEDNN, "oneDNN (gauss)")       \
    X(TE, "TransformerEngine (gauss)") X(OURS_GAUSS, "FACTS, gauss alone")                  \
    X(OURS, "FACTS, gauss, needle, neglse, stair_up")                                       \
    X(OURS_O, "the same without Stats, Max and Sum_exp")
/* clang-format on */
#define FACTS_AS_ENUM(symbol, name) FACTS_CRITERION_##symbol,
typedef enum facts_criterion {
    FACTS_CRITERION_LIST(FACTS_AS_ENUM) FACTS_CRITERION_COUNT
} facts_criterion;
#undef FACTS_AS_ENUM
extern const char *const facts_criterion_names[FACTS_CRITERION_COUNT];

/* X(SYMBOL, "heading", type, size) */
/* clang-format off */
#define FACTS_COLUMN_LIST(X)                                                                 \
    X(BF16_200, "bf16 s 200", BF16, S200) X(BF16_500, "bf16 s 500", BF16, S500)              \
    X(BF16_LONG, "bf16 s 4000", BF16, LONG) X(BF16_DECODE, "bf16 decode 2000", BF16, DECODE) \
    X(E4M3_LONG, "e4m3 s 4000", E4M3, LONG)
/* clang-format on */
#define FACTS_AS_ENUM(symbol, heading, type, size) FACTS_COLUMN_##symbol,
typedef enum facts_column { FACTS_COLUMN_LIST(FACTS_AS_ENUM) FACTS_COLUMN_COUNT } facts_column;
#undef FACTS_AS_ENUM
extern const char *const facts_column_headings[FACTS_COLUMN_COUNT];

typedef struct facts_comparison {
    int columns;                   /* the first so many were computed */
    int liars[FACTS_COLUMN_COUNT]; /* that have something to lie about there */
    int killed[FACTS_COLUMN_COUNT][FACTS_CRITERION_COUNT];
    bool accuses[FACTS_COLUMN_COUNT]
                [FACTS_CRITERION_COUNT]; /* calls the right kernel wrong on its own fill: what it
                                            kills says nothing */
    int fills[FACTS_COLUMN_COUNT];       /* that the right kernel was tried with */
    int failed[FACTS_COLUMN_COUNT][FACTS_CRITERION_COUNT]; /* of those: where it was called wrong */
} facts_comparison;

/* quick: the first column alone. Returns 0; ENOMEM; EINVAL with one line in `error`. */
int facts_compare(facts_comparison *out, bool quick, uint64_t seed, facts_error *error);

#endif
