/* Compares an answer with its expected values. Pure functions: no I/O, and no allocation that
 * outlives the call (docs/numerics.md, sections 2, 3 and 8).
 *
 * There are two steps. Every row is summed into a facts_judged_row (judge_row.h; on the host or on
 * a GPU). Then the rows give a judgement. Order of verdicts: overrun > unwritten > nan > wrong >
 * pass. A pass becomes mistrusted if the data could not show an error. */
#ifndef FACTS_JUDGE_H
#define FACTS_JUDGE_H

#include "judge_sums.h"
#include "numbers/fill/storage_image.h"
#include "problem/case_problem.h"
#include "words/verdict.h"

extern const char *const facts_gate_words[FACTS_GATE_COUNT];

/* The expected values, from the reference: dense double arrays over the tensor's dims. If sigma and
 * bound are both 0 the answer is exact (T0). */
typedef struct facts_expected {
    const double *want;
    const double *sigma; /* NULL: `bound` alone (TL) */
    const double *bound;
    const double *nu, *neff; /* [batch, heads, rows]: degrees of freedom of a row's errors, and
                                effective keys; NULL: without T2, T3, TG, TS */
} facts_expected;

typedef struct facts_judgement {
    facts_gate gate;                /* the gate that gave `ratio` */
    double gates[FACTS_GATE_COUNT]; /* the ratio of each gate that ran; 0: it did not run, or there
                                       was no error */
    double ratio;     /* worst statistic / threshold; INFINITY for NaN, poison, guards */
    double rms;       /* sqrt of the mean of (E/sigma)^2 */
    int64_t worst[4]; /* b,h,s,d */
    double got, want, bound;
    int64_t not_finite, unwritten, overrun, checked;  /* counts */
    int64_t padded_poison, padded_zero, padded_other; /* elements of padded rows, by contents */
    int64_t wrong;  /* elements that a gate refused, in addition to the counts above */
    bool no_memory; /* nothing was compared: memory is short */
} facts_judgement;

/* The rule that an answer is compared by. Ragged tensors are given as views (seen.h), here and
 * below. */
typedef struct facts_rule {
    facts_expected expected;
    const facts_row_expects *expects; /* [batch, rows] of the tensor, equal for heads and channels.
                                         NULL: every row has a value */
    facts_pattern pattern;            /* the contents of memory before the run */
    bool dense;                       /* the fill is dense: T2, T3, TG and TS apply too */
    bool coherent; /* its sums may have equal terms, whose rounding errors have one sign: T1 is the
                      bound alone */
    bool calibrated; /* the constants are this engine's: T1 without its factor */
    int64_t means;   /* the fill gives the factor of P a mean, a different one in each of `means`
                        slices; 0: no mean */
    double shared; /* with means: the rms of the last cast relative to the answer, if all rows share
                      it; 0: they do not */
    double gain;   /* TG's and TS's allowance g0; 0: without TG and TS */
    double by_row; /* the part of g0 that may differ from row to row */
    double unit; /* the value of a code is its number times this (1/scale of an 8 bit type); 0: 1 */
} facts_rule;

/* The first step: makes the limits of every element. Then call facts_judged_row_begin and
 * facts_judged_row_add for each row of [batch, heads, rows]. */
facts_limits facts_judge_limits(const facts_tensor *tensor, const facts_rule *rule);
/* The second step: all gates, from the rows of the whole tensor. It reads nu, neff, dense and gain
 * of the rule. */
facts_judgement facts_judge_rows(const facts_tensor *tensor, const facts_rule *rule,
                                 const facts_judged_row *rows);
/* The same from the [batch, heads] slices, if other code has summed the rows with the values of
 * facts_judge_weights. */
facts_judged_rows facts_judge_weights(const facts_tensor *tensor, const facts_rule *rule);
facts_judgement facts_judge_slices(const facts_tensor *tensor, const facts_rule *rule,
                                   const facts_judged_slice *slices);

/* Both steps. `storage` is element 0 of the tensor's storage. facts_image_overrun counts damaged guards, and
 * facts_judgement_overrun adds them.
 * Threads  OpenMP inside; the result does not depend on the number of threads. */
facts_judgement facts_judge_tensor(const facts_tensor *tensor, const void *storage,
                                   const facts_rule *rule);
void facts_judgement_overrun(facts_judgement *judgement, int64_t changed);
facts_verdict facts_judgement_verdict(const facts_judgement *judgement);
/* The more serious verdict, in the order overrun > unwritten > nan > wrong > graph_mismatch >
 * nondeterministic > mistrusted > pass. */
facts_verdict facts_verdict_worse(facts_verdict a, facts_verdict b);

/* The result of a lie (judge_row.h), whose rows facts_judged_row_add_lie made: equal to the
 * reference everywhere; caught by a gate; missed. */
typedef enum facts_lie_end { FACTS_LIE_SAME, FACTS_LIE_CAUGHT, FACTS_LIE_PASSES } facts_lie_end;
facts_lie_end facts_judge_lie(const facts_judgement *found);
/* Can the data detect a wrong answer? False if zeros pass every gate, or if the reference shifted
 * by one row (by one channel when all rows are equal) passes. Only for dense fills. A tensor
 * without a live element, or without a difference between neighbours, is trusted. */
bool facts_judge_trusts(const facts_tensor *tensor, const facts_rule *rule);

/* A hash of the tensor's elements that does not depend on their layout (bits.h). */
uint64_t facts_judge_bits(const facts_tensor *tensor, const void *storage);

/* Two runs of one configuration over different poison: the number of elements that differ, in rows
 * with an expected value. `first` (may be NULL): b,h,s,d of one. */
int64_t facts_judge_repeat(const facts_tensor *tensor, const void *a, const void *b,
                           const facts_row_expects *expects, int64_t first[4]);
/* How far apart two sums of the same terms may be, in addition to one step of the type. Arrays over
 * the tensor's dims. */
typedef struct facts_slack {
    const double *bound; /* times `share`: the effect of the order of the terms */
    double share;
    const double
        *parts; /* for a sum of parts that were cast first: one step of each part; NULL: none */
} facts_slack;

/* The same for sums in any order: counts the elements that are further apart than that. */
int64_t facts_judge_repeat_close(const facts_tensor *tensor, const void *a, const void *b,
                                 const facts_row_expects *expects, const facts_slack *slack,
                                 int64_t first[4]);

/* ---- amax (docs/numerics.md section 1) ---- */

/* The expected amax: the reference's three numbers, and the largest magnitude in the tensor itself.
 */
typedef struct facts_amax {
    double want, least, most; /* max |X|; max(|X| - t), max(|X| + t): t without the last cast */
    double stored;            /* facts_judge_largest; NAN: the tensor is not available */
    double u,
        half; /* unit roundoff of the tensor's type; half of its smallest step, times `unit` */
    bool saturated; /* an element is at the end of the type's range, so `stored` has no meaning */
} facts_amax;

/* The largest magnitude in rows with an expected value, times `unit`. `saturated` (may be NULL): it
 * is the largest number of the type. Elements that are not finite do not count. */
double facts_judge_largest(const facts_tensor *tensor, const void *storage,
                           const facts_row_expects *expects, double unit, bool *saturated);
/* `code` is the fp32 that the call wrote; `pattern` is the poison before it (facts_pattern_scalar).
 */
facts_judgement facts_judge_amax(const facts_amax *rule, uint32_t code, facts_pattern pattern);
/* Poison of amax and other scalars, fp32: NaN; 1e30. */
uint32_t facts_pattern_scalar(facts_pattern pattern);

/* How two runs differ. */
typedef struct facts_rerun {
    bool asked[FACTS_TENSOR_COUNT];
    int64_t different[FACTS_TENSOR_COUNT]; /* elements; 0: not asked */
    int64_t at[FACTS_TENSOR_COUNT][4];     /* one of them */
} facts_rerun;

#endif
