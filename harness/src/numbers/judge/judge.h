/* Is an answer right? Pure functions: no I/O, no allocation that outlives the call. docs/numerics.md sections 2, 3 and 8.
 *
 * Two steps: every row adds up to a facts_judged_row (judge_row.h; here or on a GPU), and a judgement is made of the rows.
 * Order of verdicts: overrun > unwritten > nan > wrong > pass; then mistrusted when the data could not show an error.
 */
#ifndef FACTS_JUDGE_H
#define FACTS_JUDGE_H

#include "case/problem/case_problem.h"
#include "case/words/verdict.h"
#include "judge_sums.h"
#include "numbers/fill/storage_image.h"

extern const char *const facts_gate_words[FACTS_GATE_COUNT];

/* The expected values, from the reference: dense double arrays over the tensor's dims. Where sigma and bound are both 0 the answer
 * is exact (T0). */
typedef struct facts_expected {
    const double *want;
    const double *sigma; /* NULL: `bound` alone (TL) */
    const double *bound;
    const double *nu,
        *neff; /* [batch, heads, rows] degrees of freedom of a row's errors, effective keys; NULL: without T2, T3, TG, TS */
} facts_expected;

typedef struct facts_judgement {
    facts_gate gate;                /* that gave `ratio` */
    double gates[FACTS_GATE_COUNT]; /* the ratio of each gate that ran; 0: it did not, or nothing was off */
    double ratio;                   /* worst statistic / threshold; INFINITY for NaN, poison, guards */
    double rms;                     /* sqrt of the mean of (E/sigma)^2 */
    int64_t worst[4];               /* b,h,s,d */
    double got, want, bound;
    int64_t not_finite, unwritten, overrun, checked;  /* counts */
    int64_t padded_poison, padded_zero, padded_other; /* what padded rows hold */
    int64_t wrong;                                    /* elements that a gate refused, beside the counts above */
    bool no_memory;                                   /* nothing was judged */
} facts_judgement;

/* What an answer is judged against. Packed tensors are given as they are seen (seen.h), here and below. */
typedef struct facts_rule {
    facts_expected expected;
    const facts_row_expects *expects; /* [batch, rows] of the tensor: heads and channels stand alike. NULL: a value everywhere */
    facts_pattern pattern;            /* what lay in memory before the run */
    bool dense;                       /* of a dense fill: T2, T3, TG and TS hold too */
    bool coherent;   /* its sums may have equal terms, whose roundings add up with one sign: T1 is the bound alone */
    bool calibrated; /* the constants are this engine's: T1 without its factor */
    int64_t means;   /* the fill gives a mean to what P is multiplied with: in so many slices another one; 0: it gives none */
    double shared;   /* with means: rms of the last cast, which all rows share, as a part of the answer; 0: they do not */
    double gain;     /* TG's and TS's allowance g0; 0: without TG and TS */
    double by_row;   /* what of g0 may differ from row to row */
    double unit;     /* the value of a code is its number times this (1/scale of an 8 bit type); 0: 1 */
} facts_rule;

/* The first step: what every element has to pass. Then for each row of [batch, heads, rows] facts_judged_row_begin and
 * facts_judged_row_add. */
facts_limits facts_judge_limits(const facts_tensor *tensor, const facts_rule *rule);
/* The second: all gates, of the rows of the whole tensor. Of the rule it reads what is not an element: nu, neff, dense, gain. */
facts_judgement facts_judge_rows(const facts_tensor *tensor, const facts_rule *rule, const facts_judged_row *rows);
/* The same of its [batch, heads] slices, which somebody else walked over: with what facts_judge_weights says, and rows. */
facts_judged_rows facts_judge_weights(const facts_tensor *tensor, const facts_rule *rule);
facts_judgement facts_judge_slices(const facts_tensor *tensor, const facts_rule *rule, const facts_judged_slice *slices);

/* Both. `storage` is element 0 of the tensor's storage. Guards are counted elsewhere (facts_image_overrun) and joined by
 * facts_judgement_overrun.
 * Threads  OpenMP inside; the result does not depend on the number of threads. */
facts_judgement facts_judge_tensor(const facts_tensor *tensor, const void *storage, const facts_rule *rule);
void facts_judgement_overrun(facts_judgement *judgement, int64_t changed);
facts_verdict facts_judgement_verdict(const facts_judgement *judgement);
/* The one that counts: the earlier of overrun > unwritten > nan > wrong > graph_mismatch > nondeterministic > mistrusted > pass. */
facts_verdict facts_verdict_worse(facts_verdict a, facts_verdict b);

/* The result of a lie (judge_row.h), whose rows facts_judged_row_add_lie made: equal to the reference everywhere; caught by a gate;
 * missed. */
typedef enum facts_lie_end { FACTS_LIE_SAME, FACTS_LIE_CAUGHT, FACTS_LIE_PASSES } facts_lie_end;
facts_lie_end facts_judge_lie(const facts_judgement *found);
/* Can the data detect a wrong answer? False if zeros pass every gate, or if the reference shifted by one row (by one channel when
 * all rows are equal) passes. Only for dense fills. A tensor without a live element, or without a difference between neighbours, is
 * trusted. */
bool facts_judge_trusts(const facts_tensor *tensor, const facts_rule *rule);

/* A hash of the tensor's elements, in whatever layout they lie (bits.h). */
uint64_t facts_judge_bits(const facts_tensor *tensor, const void *storage);

/* Two runs of one configuration over different poison: the number of elements that differ, in rows with an expected value. `first`
 * (may be NULL): b,h,s,d of one. */
int64_t facts_judge_repeat(const facts_tensor *tensor, const void *a, const void *b, const facts_row_expects *expects,
                           int64_t first[4]);
/* What two sums of the same terms may be apart, beside one step of the type. Arrays over the tensor's dims. */
typedef struct facts_slack {
    const double *bound; /* `share` of this: the order of the terms */
    double share;
    const double *parts; /* and this, of a sum of parts that were cast first: one step of each; NULL: none */
} facts_slack;

/* The same of sums in any order: differ by more than that. */
int64_t facts_judge_repeat_close(const facts_tensor *tensor, const void *a, const void *b, const facts_row_expects *expects,
                                 const facts_slack *slack, int64_t first[4]);

/* ---- amax (docs/numerics.md section 1) ---- */

/* What an amax has to be: the reference's three numbers, and the largest magnitude that lies in the tensor itself. */
typedef struct facts_amax {
    double want, least, most; /* max |X|; max(|X| - t), max(|X| + t): t without the last cast */
    double stored;            /* facts_judge_largest; NAN: the tensor is not at hand */
    double u, half;           /* unit roundoff of the tensor's type; half of its smallest step, times `unit` */
    bool saturated;           /* some element lies at the end of the type's range: `stored` says nothing */
} facts_amax;

/* The largest magnitude of rows that owe a value, times `unit`; `saturated` (may be NULL): it is the largest that the type has.
 * Elements that are not finite do not count. */
double facts_judge_largest(const facts_tensor *tensor, const void *storage, const facts_row_expects *expects, double unit,
                           bool *saturated);
/* `code` is the fp32 that came back, `pattern` what lay there before (facts_pattern_scalar). */
facts_judgement facts_judge_amax(const facts_amax *rule, uint32_t code, facts_pattern pattern);
/* Poison of amax and other scalars, fp32: NaN; 1e30. */
uint32_t facts_pattern_scalar(facts_pattern pattern);

#endif
