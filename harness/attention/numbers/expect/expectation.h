/* The expected values of one case: the reference's answers, and the rows that must have one.
 * Computed once per case; every configuration shares them. */
#ifndef FACTS_EXPECT_H
#define FACTS_EXPECT_H

#include <fref/fref.h>

#include "numbers/judge/calibration.h"
#include "numbers/judge/judge.h"
#include "problem/case_problem.h"

/* A reference in other memory, for example on a GPU. Storages, the arrays of O and of the
 * gradients, nu and neff are at its own addresses. With `here`, the forward writes the statistics
 * to host memory. Boolean masks and block masks are not part of `problem`; the oracle reads them
 * from `asked`. Functions return errnos, as those of fref. */
typedef struct facts_oracle {
    void *owner;
    int (*forward)(void *owner, const facts_problem *asked, const fref_problem *problem,
                   const fref_tensor tensor[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                   const fref_forward_out *out, bool here);
    int (*backward)(void *owner, const facts_problem *asked, const fref_problem *problem,
                    const fref_tensor tensor[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                    const fref_backward_out *out);
    double *(*make)(void *owner, size_t count); /* NULL without memory */
    void (*drop)(void *owner, double *array);
    int (*round)(void *owner, const facts_tensor *tensor, const double *values, double unit,
                 void *storage);
} facts_oracle;

typedef struct facts_answer {
    double *want, *sigma,
        *bound; /* dense over the tensor's dims; sigma NULL for Stats, Max, Sum_exp */
    const facts_oracle
        *at; /* NULL: the arrays are on the host; else all except `parts` are this oracle's */
    double *nu, *neff; /* [batch, heads, rows]; NULL if T2, T3 and TG do not apply: Stats, dBias,
                          sums over broadcast dimensions */
    double *parts;     /* sums over broadcast dimensions: one step of the type of each part
                          (facts_slack), on the host; else NULL */
} facts_answer;

typedef struct facts_expectation {
    const facts_oracle *oracle; /* as in the storages */
    facts_answer answer[FACTS_TENSOR_COUNT];
    facts_row_expects *expects[FACTS_TENSOR_COUNT]; /* [batch, rows]; of a backward's O and Stats
                                                       too: rows that have a key */
    bool dense; /* rounding errors are independent: the fill is dense, and no row or key occurs
                   twice */
    bool coherent[FACTS_TENSOR_COUNT]; /* roundings may add up with one sign: facts_expect_coherent
                                        */
    bool calibrated;                   /* the constants are this engine's */
    int64_t means;                     /* facts_rule, here and below */
    double shared[FACTS_TENSOR_COUNT];
    double gain, by_row; /* TG's allowance, and the part of it that may differ from row to row; 0:
                            the type has no such gate */
    double *array
        [FACTS_ARRAY_COUNT]; /* arrays that the call writes, always on the host: dsink has the values, then their bounds;
                                   amax_ has value, least, most */
    double unit[FACTS_TENSOR_COUNT]; /* the value of one code of the tensor: 1/scale of an 8-bit
                                        type; else 1 */
    double *true_max; /* when Max and Sum_exp are both wanted: facts_expect_pair starts from it */
    double lazy; /* how far below the true maximum Max may be, beside its bound: thr ln 2 of the
                    constants */
} facts_expectation;

/* Element 0 of the storage of each tensor that is read; NULL for other tensors. */
typedef struct facts_storages {
    const void *at[FACTS_TENSOR_COUNT];
    const facts_constants
        *constants;      /* of the engine whose answer is compared; NULL: the starting values */
    const uint8_t *keep; /* dropout: [batch, heads_q, seq_q, seq_kv], 0 drops; in the reference's
                            memory. NULL: nothing is dropped */
    const facts_oracle *oracle; /* NULL: the C reference, with storages on the host */
} facts_storages;

/* A tensor that the pass of this problem writes. */
bool facts_tensor_is_output(const facts_problem *problem, facts_tensor_id id);
const char *facts_tensor_word(facts_tensor_id id);

/* Computes those of O, Stats, Max and Sum_exp that the problem asks for (pass fwd). `cudnn_version`
 * decides the expected values of padded rows of Stats (0: the CPU). Returns 0; ENOMEM; ENOTSUP (the
 * reference lacks a type). Destroy *out with facts_expectation_destroy in any case. */
int facts_expect_forward(facts_expectation *out, const facts_problem *problem,
                         const facts_storages *in, int32_t cudnn_version);

/* Makes the inputs O and Stats of a backward: the reference's values, rounded to their types,
 * written through their strides. */
int facts_expect_inputs(const facts_problem *problem, const facts_storages *in, void *o_storage,
                        void *stats_storage);
/* Are a forward's O and Stats close enough to the reference's to be the inputs of a backward? They
 * must be finite in live rows, and Stats less than 1 off. A forward with small errors passes.
 * Without `o_storage` only Stats are read; stats_storage is on the host. Returns 0 or an errno. */
int facts_expect_near(const facts_problem *problem, const facts_storages *in, const void *o_storage,
                      const void *stats_storage, bool *near);
/* Computes dQ, dK and dV from the bits of Q, K, V, O, Stats and dO. */
int facts_expect_backward(facts_expectation *out, const facts_problem *problem,
                          const facts_storages *in);

void facts_expectation_destroy(facts_expectation *expectation);

/* The rule for a tensor; the expectation must outlive it. */
facts_rule facts_expectation_rule(const facts_expectation *e, facts_tensor_id id,
                                  facts_pattern pattern);

/* Max and Sum_exp are compared together if both are wanted: ln(Sum_exp) + Max is the LSE, whatever
 * Max was used. A kernel that rescales lazily (thr > 0) reports a Max below the true one, by
 * e->lazy at most. This function changes the expected values of both to fit the Max of the answer.
 * Call it before you compare either. */
void facts_expect_pair(facts_expectation *e, const facts_problem *problem, const void *max_storage);

/* The largest relative error of a sum of `terms` products on tensor cores. The sum is too small,
 * because the accumulators truncate (docs/numerics.md, section 3). */
double facts_truncated(int64_t terms);

/* TG's and TS's allowances: g0, and the part of it that may differ from row to row. Both are 0 in a
 * type that has neither gate. */
typedef struct facts_gain {
    double all, by_row;
} facts_gain;
/* Sets `means` and `shared` of a rule: fill offset_v gives a mean to V, in a backward to dO. */
void facts_expect_means(facts_expectation *e, const facts_problem *problem);
/* Sets g0 of TG and TS, and the part of it that may differ from row to row. */
void facts_expect_gain(facts_expectation *e, const facts_problem *problem,
                       const fref_rounding *rounding);

/* Converts the expected natural logarithms for Stats in base 2. The engine rounds this product once
 * more, which the tolerance includes. */
void facts_answer_to_log2(facts_answer *stats, int64_t elements);

/* How similar two runs of one configuration must be (docs/numerics.md, section 9). BITS: the same
 * bits. SUMS: sums of the same terms in any order (dQ without the determinism flag), compared by
 * facts_judge_repeat_close with the bound, *share of it, and the parts of the answer. RIGHT: both
 * only have to be correct. */
typedef enum facts_alike { FACTS_ALIKE_BITS, FACTS_ALIKE_SUMS, FACTS_ALIKE_RIGHT } facts_alike;
facts_alike facts_expect_alike(const facts_problem *problem, facts_tensor_id id, double *share);

/* Rounds dense doubles into a storage with the tensor's strides; a code is its number times `unit`.
 */
void facts_round_into(const facts_tensor *tensor, const double *values, double unit, void *storage);

#endif
