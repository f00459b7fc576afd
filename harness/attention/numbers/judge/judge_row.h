/* The sums of one row (b,h,s) of an answer: the first of two steps of the comparison. A row does
 * not depend on other rows, so OpenMP threads and the warps of a GPU process rows with the same
 * inline functions. judge_sums.h adds them up.
 *
 * For one row: facts_judged_row_begin, then facts_judged_row_add for each of its elements, in any
 * order. The order changes the last bits of the three sums, but no count and not the worst element.
 * facts_judge_limits (judge.h) has the limits of an element. Compiled by C and by CUDA C++.
 * docs/numerics.md, section 3. */
#ifndef FACTS_JUDGE_ROW_H
#define FACTS_JUDGE_ROW_H

#include <math.h>
#include <stdint.h>

#include "numbers/dtype.h"
#include "numbers/poison.h"

/* The kind of row that an element is in, before it is compared. NOTHING: a ragged tensor has no
 * such row and no memory for it, so it is not read. NUMBER: the row is outside the sample of a huge
 * problem, so its value is unknown, but it must be written and finite. */
typedef enum facts_row_expects {
    FACTS_EXPECTS_VALUE,
    FACTS_EXPECTS_ZERO_OR_POISON,
    FACTS_EXPECTS_ANYTHING,
    FACTS_EXPECTS_NOTHING,
    FACTS_EXPECTS_NUMBER
} facts_row_expects;

/* The gates. X(SYMBOL, "word") */
/* clang-format off */
#define FACTS_GATE_LIST(X)                                                              \
    X(NONE, "") X(T0, "t0") X(T1, "t1") X(T2, "t2") X(T3, "t3") X(TG, "tg") X(TS, "ts") \
    X(TL, "tl") X(AMAX, "amax") X(CHECK, "check") X(POISON, "poison") X(GUARD, "guard")
/* clang-format on */
#define AS_ENUM(symbol, word) FACTS_GATE_##symbol,
typedef enum facts_gate { FACTS_GATE_LIST(AS_ENUM) FACTS_GATE_COUNT } facts_gate;
#undef AS_ENUM

/* The finding about one element. The order decides which element is shown as the worst. */
typedef enum facts_finding {
    FACTS_RIGHT,
    FACTS_OFF,
    FACTS_NOT_FINITE,
    FACTS_UNWRITTEN
} facts_finding;

/* Lower limits that prevent a division by zero. */
#define FACTS_SIGMA_FLOOR 0x1p-110
#define FACTS_BOUND_FLOOR 0x1p-100
/* facts_pattern_code repeats after this number of elements. */
#define FACTS_PATTERN_PERIOD 7

typedef struct facts_judged_row {
    double squares;      /* sum of (E/sigma)^2 */
    double gain, power;  /* sums of E want/sigma^2 and want^2/sigma^2 */
    double shift, level; /* sums of E/sigma and want/sigma */
    double ratio;        /* of the worst element */
    double got, want, tolerance;
    int32_t weighed; /* elements in the sums */
    int32_t worst;   /* its channel; -1: nothing was compared */
    int32_t rank,
        gate; /* of the worst element: facts_finding (-1: nothing was compared), facts_gate */
    int32_t checked, not_finite, unwritten, wrong;
    int32_t padded_poison, padded_zero, padded_other;
    uint64_t bits; /* for a row that a kernel compared: the contribution of its elements to the
                      tensor's hash (bits.h) */
} facts_judged_row;

/* The values that all elements of a tensor share. */
typedef struct facts_limits {
    double z;      /* T1: all errors are below z sigma, except with probability alpha */
    double factor; /* factor of T1's threshold, until the engine's constants are calibrated */
    double
        unit; /* the value of a code is its number times this: 1/scale for an 8-bit type, else 1 */
    double overflow; /* an answer may be Inf if its expected value reaches this; INFINITY in the
                        8-bit types, which saturate */
    double
        least; /* TG, TS: below this an answer's terms may all be rounded to 0: f16's subnormals */
    uint32_t poison[FACTS_PATTERN_PERIOD]; /* the poison in memory before the run, by index modulo
                                              the period */
    int32_t dtype;
    int32_t has_sigma; /* 0: the bound alone (TL) */
} facts_limits;

/* One element. */
typedef struct facts_judged_element {
    double want, sigma, bound; /* sigma is 0 without one */
    int64_t place;             /* its index in the storage, for poison */
    uint32_t code;             /* the bits in the storage */
    int32_t channel;
    int32_t expects; /* facts_row_expects of its row */
} facts_judged_element;

typedef struct facts_compared {
    int32_t is, gate;
    double ratio, tolerance;
} facts_compared;

FACTS_BOTH int facts_is_finite(double x)
{
    return fabs(x) <= 0x1.fffffffffffffp+1023;
}

/* If sigma and bound are both 0 nothing is rounded: the answer is exact (T0). */
FACTS_BOTH int facts_judged_element_exact(const facts_limits *limits,
                                          const facts_judged_element *at)
{
    return at->bound == 0 && (!limits->has_sigma || at->sigma == 0);
}

FACTS_BOTH double facts_judged_element_tolerance(const facts_limits *limits,
                                                 const facts_judged_element *at)
{
    double bound = at->bound + FACTS_BOUND_FLOOR;
    return limits->has_sigma
               ? fmin(bound, limits->z * (at->sigma + FACTS_SIGMA_FLOOR)) * limits->factor
               : bound;
}

FACTS_BOTH facts_compared facts_compared_as(int32_t is, int32_t gate, double ratio,
                                            double tolerance)
{
    facts_compared out;
    out.is = is;
    out.gate = gate;
    out.ratio = ratio == ratio ? ratio : (double)INFINITY;
    out.tolerance = tolerance;
    return out;
}

/* T0, T1 and TL of one value. Non-finite values are settled first: every comparison with a NaN is
 * false, so a NaN would slip through an inequality. */
FACTS_BOTH facts_compared facts_judged_element_compare(const facts_limits *limits,
                                                       const facts_judged_element *at, double got)
{
    const double want = at->want, error = fabs(got - want), inf = (double)INFINITY,
                 tolerance = facts_judged_element_tolerance(limits, at);
    const int32_t gate = limits->has_sigma ? FACTS_GATE_T1 : FACTS_GATE_TL;
    const int exact = facts_judged_element_exact(limits, at);
    if (exact || !facts_is_finite(error)) {
        if (want != want || got != got)
            return facts_compared_as(FACTS_NOT_FINITE, FACTS_GATE_T0, inf, 0);
        if (exact || !facts_is_finite(want)) {
            const int same = got == want;
            return facts_compared_as(same                   ? FACTS_RIGHT
                                     : facts_is_finite(got) ? FACTS_OFF
                                                            : FACTS_NOT_FINITE,
                                     FACTS_GATE_T0, same ? 0.0 : inf, 0);
        }
        /* Inf is correct if the value is out of the type's range. */
        if (!facts_is_finite(got) && (got > 0) == (want > 0) &&
            fabs(want) + tolerance >= limits->overflow)
            return facts_compared_as(FACTS_RIGHT, gate, 0.0, tolerance);
        if (!facts_is_finite(got))
            return facts_compared_as(FACTS_NOT_FINITE, FACTS_GATE_T0, inf, tolerance);
    }
    return facts_compared_as(error <= tolerance ? FACTS_RIGHT : FACTS_OFF, gate,
                             error == 0 ? 0.0 : error / tolerance, tolerance);
}

FACTS_BOTH int facts_judged_element_is_poison(const facts_limits *limits,
                                              const facts_judged_element *at)
{
    return at->code == limits->poison[at->place % FACTS_PATTERN_PERIOD];
}

FACTS_BOTH void facts_judged_row_begin(facts_judged_row *row)
{
    memset(row, 0, sizeof *row);
    row->worst = row->rank = -1;
}

/* Compares by finding, then by ratio, then by channel (the lower is worse). No two elements are
 * equal, so the order of adding does not matter. */
FACTS_BOTH int facts_judged_row_is_worse(const facts_judged_row *a, const facts_judged_row *b)
{
    const int alike = a->ratio > b->ratio || (a->ratio == b->ratio && a->worst < b->worst);
    return a->rank > b->rank || (a->rank == b->rank && alike);
}

FACTS_BOTH void facts_judged_row_show(facts_judged_row *row, const facts_judged_row *from)
{
    row->ratio = from->ratio;
    row->got = from->got;
    row->want = from->want;
    row->tolerance = from->tolerance;
    row->worst = from->worst;
    row->rank = from->rank;
    row->gate = from->gate;
}

FACTS_BOTH void facts_judged_row_note(facts_judged_row *row, const facts_judged_element *at,
                                      const facts_compared *c, double got, double want)
{
    facts_judged_row one;
    if (c->is != FACTS_RIGHT) {
        row->unwritten += c->is == FACTS_UNWRITTEN;
        row->not_finite += c->is == FACTS_NOT_FINITE;
        row->wrong += c->is == FACTS_OFF;
    }
    one.ratio = c->ratio;
    one.got = got;
    one.want = want;
    one.tolerance = c->tolerance;
    one.worst = at->channel;
    one.rank = c->is;
    one.gate = c->gate;
    if (facts_judged_row_is_worse(&one, row))
        facts_judged_row_show(row, &one);
}

/* Adds the sums of T2, T3 and TG. */
FACTS_BOTH void facts_judged_row_weigh(facts_judged_row *row, const facts_limits *limits,
                                       const facts_judged_element *at, double got)
{
    if (!limits->has_sigma || at->sigma == 0 || !facts_is_finite(got) || !facts_is_finite(at->want))
        return;
    double precision = 1 / (at->sigma + FACTS_SIGMA_FLOOR), off = (got - at->want) * precision,
           size = at->want * precision;
    row->squares += off * off;
    row->weighed++;
    if (fabs(at->want) < limits->least)
        return;
    row->gain += off * size;
    row->power += size * size;
    row->shift += off;
    row->level += size;
}

/* A padded row: its elements must be 0 or unchanged. Counts its contents. */
FACTS_BOTH void facts_judged_row_add_padded(facts_judged_row *row, const facts_limits *limits,
                                            const facts_judged_element *at, double got)
{
    if (facts_judged_element_is_poison(limits, at)) {
        row->padded_poison++;
    } else if (got == 0) {
        row->padded_zero++;
    } else {
        row->padded_other++;
        if (at->expects == FACTS_EXPECTS_ZERO_OR_POISON) {
            facts_compared c =
                facts_compared_as(facts_is_finite(got) ? FACTS_OFF : FACTS_NOT_FINITE,
                                  FACTS_GATE_T0, (double)INFINITY, 0);
            facts_judged_row_note(row, at, &c, got, 0.0);
        }
    }
}

/* A row without a key: its statistics must be -inf. */
FACTS_BOTH void facts_judged_row_add_number(facts_judged_row *row, const facts_limits *limits,
                                            const facts_judged_element *at, double got)
{
    int poison = facts_judged_element_is_poison(limits, at), dead = !limits->has_sigma && got < 0;
    if (facts_is_finite(got) || (dead && !poison))
        return;
    facts_compared c =
        facts_compared_as(poison ? FACTS_UNWRITTEN : FACTS_NOT_FINITE,
                          poison ? FACTS_GATE_POISON : FACTS_GATE_T0, (double)INFINITY, 0);
    facts_judged_row_note(row, at, &c, got, 0.0);
}

/* got: the value of at->code. */
FACTS_BOTH void facts_judged_row_add_value(facts_judged_row *row, const facts_limits *limits,
                                           const facts_judged_element *at, double got)
{
    if (at->expects == FACTS_EXPECTS_NUMBER) {
        facts_judged_row_add_number(row, limits, at, got);
        return;
    }
    if (at->expects != FACTS_EXPECTS_VALUE) {
        facts_judged_row_add_padded(row, limits, at, got);
        return;
    }
    facts_compared c = facts_judged_element_compare(limits, at, got);
    if (c.is != FACTS_RIGHT && facts_judged_element_is_poison(limits, at))
        c = facts_compared_as(FACTS_UNWRITTEN, FACTS_GATE_POISON, (double)INFINITY, c.tolerance);
    facts_judged_row_weigh(row, limits, at, got);
    row->checked++;
    facts_judged_row_note(row, at, &c, got, at->want);
}

FACTS_BOTH void facts_judged_row_add(facts_judged_row *row, const facts_limits *limits,
                                     const facts_judged_element *at)
{
    facts_judged_row_add_value(row, limits, at,
                               facts_decode(limits->dtype, at->code) * limits->unit);
}

/* ---- determinism: two runs of one configuration (docs/numerics.md section 9)
 * ------------------------------------------------------- */

/* The step from a code to the next larger magnitude; 0 if the code is not finite. */
FACTS_BOTH double facts_step_of(int32_t dtype, uint32_t code)
{
    uint32_t magnitude = code & ~(UINT32_C(1) << (8 * (int)facts_dtype_bytes(dtype) - 1)),
             largest = facts_format_of(dtype).largest;
    if (magnitude > largest)
        return 0.0;
    return magnitude < largest
               ? facts_decode(dtype, magnitude + 1) - facts_decode(dtype, magnitude)
               : facts_decode(dtype, magnitude) - facts_decode(dtype, magnitude - 1);
}

/* The same bits, or at most one step of the larger and `slack` apart. */
FACTS_BOTH int facts_judged_close(int32_t dtype, uint32_t a, uint32_t b, double slack)
{
    if (a == b)
        return 1;
    return fabs(facts_decode(dtype, a) - facts_decode(dtype, b)) <=
           fmax(facts_step_of(dtype, a), facts_step_of(dtype, b)) + slack;
}

/* ---- trust: can the data detect a wrong answer?
 * ------------------------------------------------------------------------------ */

/* Wrong answers that must be caught: zeros; the reference of the next row; that of the next channel
 * (cyclic). */
typedef enum facts_lie {
    FACTS_LIE_ZERO,
    FACTS_LIE_ROW,
    FACTS_LIE_CHANNEL,
    FACTS_LIE_COUNT
} facts_lie;

/* The element whose reference value a lie writes to channel c of row s, in a (b,h) slice with
 * `rows` rows of `channels`: an index into that slice. */
FACTS_BOTH int64_t facts_lie_from(int32_t lie, int64_t s, int64_t c, int64_t rows, int64_t channels)
{
    int64_t next_row = s + 1 == rows ? 0 : s + 1, next = c + 1 == channels ? 0 : c + 1;
    return lie == FACTS_LIE_ROW ? next_row * channels + c : s * channels + next;
}

/* Adds the lie in place of an answer. `written` is the reference at facts_lie_from (any number for
 * zeros). Lies are written between live rows only, because any gate catches a lie in a row without
 * an answer. `checked` counts the elements where the lie differs from the reference. */
FACTS_BOTH void facts_judged_row_add_lie(facts_judged_row *row, const facts_limits *limits,
                                         const facts_judged_element *at, int32_t lie,
                                         double written)
{
    double got = lie == FACTS_LIE_ZERO ? 0.0 : written;
    if (at->expects != FACTS_EXPECTS_VALUE || facts_judged_element_exact(limits, at) ||
        !facts_is_finite(got) || (lie != FACTS_LIE_ZERO && got == 0))
        return;
    facts_compared c = facts_judged_element_compare(limits, at, got);
    facts_judged_row_weigh(row, limits, at, got);
    row->checked += fabs(got - at->want) > 0x1p-40 * fabs(at->want);
    facts_judged_row_note(row, at, &c, got, at->want);
}

#endif
