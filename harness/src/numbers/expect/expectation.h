/* The expected values of one case: the reference's answers, and the rows that must have one. Computed once per case; every
 * configuration shares them. */
#ifndef FACTS_EXPECT_H
#define FACTS_EXPECT_H

#include <fref/fref.h>

#include "case/problem/case_problem.h"
#include "numbers/judge/calibration.h"
#include "numbers/judge/judge.h"

/* An oracle whose memory is not here: storages and the arrays of O and the gradients, nu and neff included, are at its own
 * addresses; of statistics `here` says it. Boolean masks and masks of tiles are not part of `problem`: it reads them of `asked`.
 * Returns are errnos, as fref's. */
typedef struct facts_oracle {
    void *owner;
    int (*forward)(void *owner, const facts_problem *asked, const fref_problem *problem,
                   const fref_tensor tensor[FACTS_TENSOR_COUNT], const fref_rounding *rounding, const fref_forward_out *out,
                   bool here);
    int (*backward)(void *owner, const facts_problem *asked, const fref_problem *problem,
                    const fref_tensor tensor[FACTS_TENSOR_COUNT], const fref_rounding *rounding, const fref_backward_out *out);
    double *(*make)(void *owner, size_t count); /* NULL without memory */
    void (*drop)(void *owner, double *array);
    int (*round)(void *owner, const facts_tensor *tensor, const double *values, double unit, void *storage);
} facts_oracle;

typedef struct facts_answer {
    double *want, *sigma, *bound; /* dense over the tensor's dims; sigma NULL for Stats, Max, Sum_exp */
    const facts_oracle *at;       /* NULL: all but `parts` is here; else it is its */
    double *nu, *neff; /* [batch, heads, rows]; NULL where T2, T3 and TG say nothing: Stats, dBias, sums over what was broadcast */
    double
        *parts; /* of a sum over what was broadcast: one step of the type of each part that is summed (facts_slack), here; NULL */
} facts_answer;

typedef struct facts_expectation {
    const facts_oracle *oracle; /* as in the storages */
    facts_answer answer[FACTS_TENSOR_COUNT];
    facts_row_expects *expects[FACTS_TENSOR_COUNT]; /* [batch, rows]; of a backward's O and Stats too: rows that have a key */
    bool dense;                         /* roundings are independent: the fill is dense, and no row or key is there twice */
    bool coherent[FACTS_TENSOR_COUNT];  /* roundings may add up with one sign: facts_expect_coherent */
    bool calibrated;                    /* the constants are this engine's */
    int64_t means;                      /* facts_rule, here and below */
    double shared[FACTS_TENSOR_COUNT];
    double gain, by_row;              /* TG's allowance, what of it may differ from row to row; 0: the type has none */
    double *array[FACTS_ARRAY_COUNT]; /* of what a call writes: dsink: the values, then their bounds; amax_: value, least, most;
                                         here whoever computes */
    double unit[FACTS_TENSOR_COUNT];  /* what a code of the tensor is worth: 1/scale of an 8 bit type; else 1 */
    double *true_max;                 /* when Max and Sum_exp are both wanted: facts_expect_pair starts from it */
    double lazy;                      /* a Max may be so far below the true one beside its bound: thr ln 2 of the constants */
} facts_expectation;

/* Element 0 of the storage of each tensor that is read; the others NULL. */
typedef struct facts_storages {
    const void *at[FACTS_TENSOR_COUNT];
    const facts_constants *constants; /* of the engine that is judged; NULL: the starting values */
    const uint8_t *keep; /* dropout: [batch, heads_q, seq_q, seq_kv], 0 drops; where the oracle is. NULL: nothing is dropped */
    const facts_oracle *oracle; /* NULL: the C reference, and storages are here */
} facts_storages;

/* A tensor that the pass of this problem writes. */
bool facts_tensor_is_output(const facts_problem *problem, facts_tensor_id id);
const char *facts_tensor_word(facts_tensor_id id);

/* O, Stats, Max and Sum_exp as far as the problem has them (pass fwd); `cudnn_version` decides what padded rows of Stats owe (0:
 * the cpu). Returns  0; ENOMEM; ENOTSUP (a type that the reference lacks). *out is destroyed either way with
 * facts_expectation_destroy. */
int facts_expect_forward(facts_expectation *out, const facts_problem *problem, const facts_storages *in, int32_t cudnn_version);

/* Backward's own inputs O and Stats: the reference's, rounded to their types, written through their strides. */
int facts_expect_inputs(const facts_problem *problem, const facts_storages *in, void *o_storage, void *stats_storage);
/* Are an O and Stats that a forward wrote near enough to the reference's to ask a backward about them? Finite in live rows, Stats
 * less than 1 off: a forward that is a little wrong is. Without `o_storage` Stats alone are looked at; stats_storage is here.
 * Returns 0 or an errno. */
int facts_expect_near(const facts_problem *problem, const facts_storages *in, const void *o_storage, const void *stats_storage,
                      bool *near);
/* dQ, dK and dV from the bits of Q, K, V, O, Stats and dO. */
int facts_expect_backward(facts_expectation *out, const facts_problem *problem, const facts_storages *in);

void facts_expectation_destroy(facts_expectation *expectation);

/* The rule for a tensor; the expectation must outlive it. */
facts_rule facts_expectation_rule(const facts_expectation *e, facts_tensor_id id, facts_pattern pattern);

/* Max and Sum_exp are judged together when both are wanted: ln(Sum_exp) + Max is the LSE, whatever Max was used. A kernel that
 * rescales lazily (thr > 0) reports a Max below the true one, by e->lazy at most. Rewrites the expected values of both for the Max
 * that came back; call it before judging either. */
void facts_expect_pair(facts_expectation *e, const facts_problem *problem, const void *max_storage);

/* A sum of so many products by tensor cores is too small by at most this part of it: their accumulators truncate (docs/numerics.md
 * section 3). */
double facts_truncated(int64_t terms);

/* The same of accumulators of few bits that add at most rounding->acc_run terms before the sum moves to fp32. */
double facts_run_lost(const fref_rounding *rounding, int64_t terms);

/* The largest effect on O of the rounding of P's largest number. Before its cast P is multiplied by `factor`: 1/(1-p) of dropout
 * times scale_s. The largest number of each row, 1 before, is then off by one relative error. In a row that TG reads its share is
 * at most 1/sqrt(FACTS_GAIN_KEYS). It is twice that if 8-bit types process the keys in parts, each with a largest number. */
double facts_expect_largest_off(int32_t dtype, double factor);
/* TG's and TS's allowances: g0, and what of it may differ from row to row. Both are 0 in a type that has neither gate. */
typedef struct facts_gain {
    double all, by_row;
} facts_gain;
/* `drift`: what the caller knows beside the type's own rounding, as a part of the answer. */
facts_gain facts_gain_of(int32_t dtype, bool forward, double drift);
/* `means` and `shared` of a rule: fill offset_v gives a mean to V, in a backward to dO. */
void facts_expect_means(facts_expectation *e, const facts_problem *problem);
/* g0 of TG and TS, and what of it may differ from row to row. */
void facts_expect_gain(facts_expectation *e, const facts_problem *problem, const fref_rounding *rounding);

/* Converts the expected natural logarithms for Stats in base 2. The engine rounds this product once more, which the tolerance
 * includes. */
void facts_answer_to_log2(facts_answer *stats, int64_t elements);

/* How equal two runs of one configuration are (docs/numerics.md, section 9). SAME bits. Sums of the same terms in any order: dQ
 * without the flag, compared by facts_judge_repeat_close with the bound, *share of it, and the parts of the answer. Or both only
 * correct. */
typedef enum facts_alike { FACTS_ALIKE_BITS, FACTS_ALIKE_SUMS, FACTS_ALIKE_RIGHT } facts_alike;
facts_alike facts_expect_alike(const facts_problem *problem, facts_tensor_id id, double *share);

/* Dense doubles rounded into a storage through the tensor's strides; a code is its number times `unit`. */
void facts_round_into(const facts_tensor *tensor, const double *values, double unit, void *storage);

#endif
