#include <math.h>

#include "judge.h"
#include "numbers/dtype.h"
#include "numbers/fill/layout.h"

uint32_t facts_pattern_scalar(facts_pattern pattern)
{
    return pattern == FACTS_PATTERN_A ? facts_pattern_code(FATTN_F32, pattern, 0)
                                      : facts_encode(FATTN_F32, 1e30);
}

double facts_judge_largest(const facts_tensor *t, const void *storage,
                           const facts_row_expects *expects, double unit, bool *saturated)
{
    double largest = 0.0, end = facts_dtype_max(t->dtype);
#pragma omp parallel for schedule(static) reduction(max : largest)
    for (int64_t row = 0; row < facts_rows(t->dim); row++) {
        const facts_row at = facts_row_of(t->dim, row);
        if (!facts_row_exists(t, at.b, at.s) ||
            (expects && expects[at.b * t->dim[2] + at.s] != FACTS_EXPECTS_VALUE))
            continue;
        int64_t place = facts_row_place(t, at.b, at.h, at.s);
        for (int64_t d = 0; d < t->dim[3]; d++) {
            double x = fabs(
                facts_decode(t->dtype, facts_load(t->dtype, storage, place + d * t->stride[3])));
            largest = x <= end && x > largest ? x : largest;
        }
    }
    if (saturated)
        *saturated = largest >= end;
    return largest * unit;
}

/* |got - want| against the nearer of its two sides, which differ where a zero, or another element,
 * may come to lie above the largest. */
static double between(const facts_amax *rule, double got)
{
    double room = got >= rule->want ? rule->most - rule->want : rule->want - rule->least,
           off = fabs(got - rule->want);
    return off == 0 ? 0.0 : room > 0 ? off / room : INFINITY;
}

facts_judgement facts_judge_amax(const facts_amax *rule, uint32_t code, facts_pattern pattern)
{
    double got = facts_decode(FATTN_F32, code);
    facts_judgement out = { .gate = FACTS_GATE_AMAX, .got = got, .want = rule->want, .checked = 1 };
    out.bound = got >= rule->want ? rule->most - rule->want : rule->want - rule->least;
    if (code == facts_pattern_scalar(pattern) && !(got >= rule->least && got <= rule->most))
        out.unwritten = 1;
    else if (!isfinite(got))
        out.not_finite = 1;
    if (out.unwritten || out.not_finite) {
        out.gate = out.unwritten ? FACTS_GATE_POISON : FACTS_GATE_T0;
        out.ratio = out.gates[out.gate] = INFINITY;
        return out;
    }
    out.ratio = between(rule, got);
    if (!rule->saturated && !isnan(rule->stored) && got != rule->stored) {
        const double cast = fmax(rule->u * got, rule->half),
                     apart = cast > 0 ? fabs(got - rule->stored) / cast : INFINITY;
        if (apart > 1.0 &&
            apart > out.ratio) { /* the amax is not of this tensor: reports the tensor's own */
            out.want = rule->stored;
            out.bound = cast;
        }
        out.ratio = fmax(out.ratio, apart);
    }
    out.gates[FACTS_GATE_AMAX] = out.ratio;
    out.wrong = out.ratio > 1;
    return out;
}
