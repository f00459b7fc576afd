#include "judge.h"

#include <math.h>

#include "dtype.h"

#define AS_WORD(symbol, word) word,
const char *const facts_gate_words[FACTS_GATE_COUNT] = { FACTS_GATE_LIST(AS_WORD) };
const char *const facts_verdict_words[FACTS_VERDICT_COUNT] = { FACTS_VERDICT_LIST(AS_WORD) };
#undef AS_WORD

#define ALPHA 1e-8
#define SIGMA_FLOOR 0x1p-110
#define BOUND_FLOOR 0x1p-100
#define UNCALIBRATED 1.05 /* T1's factor until an engine's constants are calibrated */
#define CHUNKS 64         /* fixed, so that sums and ties do not depend on the number of threads */

/* What one element was found to be. The order decides which element is shown as the worst. */
typedef enum finding { RIGHT, OFF, NOT_FINITE, UNWRITTEN } finding;

typedef struct element {
    finding is;
    facts_gate gate;
    double ratio, tolerance;
} element;

typedef struct tally {
    finding rank;
    double ratio;
    int64_t at; /* logical index of the worst; -1: none */
    double squares;
    int64_t weighed;
    facts_judgement counts;
} tally;

typedef struct court {
    const facts_tensor *tensor;
    const facts_rule *rule;
    const unsigned char *storage;
    double z, overflow;
} court;

/* z sigma holds for all N elements at once but with probability alpha (Gaussian tail, union bound); B is the worst case. */
static double tolerance_of(const court *c, int64_t i)
{
    const facts_expected *e = &c->rule->expected;
    if (!e->sigma)
        return e->bound[i] + BOUND_FLOOR;
    return fmin(e->bound[i] + BOUND_FLOOR, c->z * (e->sigma[i] + SIGMA_FLOOR)) * UNCALIBRATED;
}

static bool exact(const facts_expected *e, int64_t i)
{
    return e->bound[i] == 0 && (!e->sigma || e->sigma[i] == 0);
}

/* Non-finite values are settled first: every comparison with a NaN is false, so a NaN would slip through an inequality. */
static element compare(const court *c, double got, int64_t i)
{
    const facts_expected *e = &c->rule->expected;
    double want = e->want[i];
    facts_gate gate = e->sigma ? FACTS_GATE_T1 : FACTS_GATE_TL;
    if (isnan(want) || isnan(got))
        return (element){ NOT_FINITE, FACTS_GATE_T0, INFINITY, 0 };
    if (!isfinite(want) || exact(e, i)) {
        bool same = got == want;
        return (element){ same ? RIGHT : isfinite(got) ? OFF : NOT_FINITE, FACTS_GATE_T0, same ? 0.0 : INFINITY, 0 };
    }
    double tolerance = tolerance_of(c, i), error = fabs(got - want);
    if (!isfinite(got)) {
        /* Inf is right where the value is out of the type's range. */
        if ((got > 0) == (want > 0) && fabs(want) + tolerance >= c->overflow)
            return (element){ RIGHT, gate, 0.0, tolerance };
        return (element){ NOT_FINITE, FACTS_GATE_T0, INFINITY, tolerance };
    }
    return (element){ error <= tolerance ? RIGHT : OFF, gate, error == 0 ? 0.0 : error / tolerance, tolerance };
}

static void index_of(const facts_tensor *t, int64_t i, int64_t out[4])
{
    for (int n = 3; n >= 0; n--) {
        out[n] = i % t->dim[n];
        i /= t->dim[n];
    }
}

static int64_t place_of(const facts_tensor *t, int64_t i)
{
    int64_t at[4];
    index_of(t, i, at);
    return t->first + at[0] * t->stride[0] + at[1] * t->stride[1] + at[2] * t->stride[2] + at[3] * t->stride[3];
}

static facts_due due_of(const facts_tensor *t, const facts_due *due, int64_t i)
{
    int64_t s = i / t->dim[3] % t->dim[2], b = i / (t->dim[3] * t->dim[2] * t->dim[1]);
    return due ? due[b * t->dim[2] + s] : FACTS_DUE_VALUE;
}

/* A padded row: 0 or untouched; what it holds is counted. */
static element settle_padded(const court *c, tally *t, facts_due due, uint32_t code, double got, int64_t place)
{
    if (code == facts_pattern_code(c->tensor->dtype, c->rule->pattern, place))
        t->counts.padded_poison++;
    else if (got == 0)
        t->counts.padded_zero++;
    else {
        t->counts.padded_other++;
        if (due == FACTS_DUE_ZERO_OR_POISON)
            return (element){ isfinite(got) ? OFF : NOT_FINITE, FACTS_GATE_T0, INFINITY, 0 };
    }
    return (element){ RIGHT, FACTS_GATE_NONE, 0.0, 0 };
}

static void weigh(tally *t, const facts_expected *e, double got, int64_t i)
{
    if (!e->sigma || e->sigma[i] == 0 || !isfinite(got) || !isfinite(e->want[i]))
        return;
    double x = (got - e->want[i]) / (e->sigma[i] + SIGMA_FLOOR);
    t->squares += x * x;
    t->weighed++;
}

static void judge_one(const court *c, tally *t, int64_t i)
{
    int64_t place = place_of(c->tensor, i);
    uint32_t code = facts_load(c->tensor->dtype, c->storage, place);
    double got = facts_decode(c->tensor->dtype, code);
    facts_due due = due_of(c->tensor, c->rule->due, i);
    element e;
    if (due != FACTS_DUE_VALUE) {
        e = settle_padded(c, t, due, code, got, place);
    } else {
        e = compare(c, got, i);
        if (e.is != RIGHT && code == facts_pattern_code(c->tensor->dtype, c->rule->pattern, place))
            e = (element){ UNWRITTEN, FACTS_GATE_POISON, INFINITY, e.tolerance };
        weigh(t, &c->rule->expected, got, i);
        t->counts.checked++;
    }
    t->counts.unwritten += e.is == UNWRITTEN;
    t->counts.not_finite += e.is == NOT_FINITE;
    t->counts.wrong += e.is == OFF;
    if (e.gate != FACTS_GATE_NONE && (t->at < 0 || e.is > t->rank || (e.is == t->rank && e.ratio > t->ratio))) {
        t->rank = e.is;
        t->ratio = e.ratio;
        t->at = i;
        t->counts.gate = e.gate;
        t->counts.got = got;
        t->counts.want = due == FACTS_DUE_VALUE ? c->rule->expected.want[i] : 0.0;
        t->counts.bound = e.tolerance;
    }
}

static void merge(tally *into, const tally *t)
{
    facts_judgement *a = &into->counts;
    const facts_judgement *b = &t->counts;
    if (t->at >= 0 && (into->at < 0 || t->rank > into->rank || (t->rank == into->rank && t->ratio > into->ratio))) {
        into->rank = t->rank;
        into->ratio = t->ratio;
        into->at = t->at;
        a->gate = b->gate;
        a->got = b->got;
        a->want = b->want;
        a->bound = b->bound;
    }
    into->squares += t->squares;
    into->weighed += t->weighed;
    a->unwritten += b->unwritten;
    a->not_finite += b->not_finite;
    a->wrong += b->wrong;
    a->checked += b->checked;
    a->padded_poison += b->padded_poison;
    a->padded_zero += b->padded_zero;
    a->padded_other += b->padded_other;
}

static int64_t elements_of(const facts_tensor *t)
{
    return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

/* Elements that owe a value: the N of T1. */
static int64_t due_elements(const facts_tensor *t, const facts_due *due)
{
    int64_t rows = 0;
    for (int64_t n = 0; n < t->dim[0] * t->dim[2]; n++)
        rows += !due || due[n] == FACTS_DUE_VALUE;
    return rows * t->dim[1] * t->dim[3];
}

static court court_of(const facts_tensor *tensor, const facts_rule *rule)
{
    double n = fmax((double)due_elements(tensor, rule->due), 1);
    return (court){ .tensor = tensor, .rule = rule, .z = sqrt(2 * log(2 * n / ALPHA)), .overflow = facts_dtype_max(tensor->dtype) };
}

facts_judgement facts_judge_tensor(const facts_tensor *tensor, const void *storage, const facts_rule *rule)
{
    court c = court_of(tensor, rule);
    int64_t n = elements_of(tensor);
    tally chunk[CHUNKS], all = { .at = -1 };
    c.storage = storage;
#pragma omp parallel for schedule(dynamic)
    for (int64_t k = 0; k < CHUNKS; k++) {
        tally t = { .at = -1 };
        for (int64_t i = n * k / CHUNKS; i < n * (k + 1) / CHUNKS; i++)
            judge_one(&c, &t, i);
        chunk[k] = t;
    }
    for (int k = 0; k < CHUNKS; k++)
        merge(&all, &chunk[k]);
    facts_judgement out = all.counts;
    out.ratio = all.ratio;
    out.rms = all.weighed ? sqrt(all.squares / (double)all.weighed) : 0.0;
    if (all.at >= 0)
        index_of(tensor, all.at, out.worst);
    return out;
}

void facts_judgement_overrun(facts_judgement *judgement, int64_t changed)
{
    judgement->overrun += changed;
    if (changed) {
        judgement->gate = FACTS_GATE_GUARD;
        judgement->ratio = INFINITY;
    }
}

facts_verdict facts_judgement_verdict(const facts_judgement *j)
{
    if (j->overrun)
        return FACTS_VERDICT_OVERRUN;
    if (j->unwritten)
        return FACTS_VERDICT_UNWRITTEN;
    if (j->not_finite)
        return FACTS_VERDICT_NAN;
    return j->wrong ? FACTS_VERDICT_WRONG : FACTS_VERDICT_PASS;
}

facts_verdict facts_verdict_worse(facts_verdict a, facts_verdict b)
{
    static const facts_verdict order[] = { FACTS_VERDICT_OVERRUN, FACTS_VERDICT_UNWRITTEN, FACTS_VERDICT_NAN, FACTS_VERDICT_WRONG,
                                           FACTS_VERDICT_GRAPH_MISMATCH, FACTS_VERDICT_NONDETERMINISTIC, FACTS_VERDICT_MISTRUSTED };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return a;
}

/* ---- trust ---- */

/* The answer that a liar would give at element i: 0, or the reference of the element `step` further in dimension `axis` (round the end). */
static double lie_at(const court *c, int axis, int64_t i)
{
    if (axis < 0)
        return 0.0;
    int64_t at[4], unit = 1, n = c->tensor->dim[axis];
    index_of(c->tensor, i, at);
    for (int k = 3; k > axis; k--)
        unit *= c->tensor->dim[k];
    return c->rule->expected.want[i + (at[axis] == n - 1 ? unit * (1 - n) : unit)];
}

typedef struct lie_result {
    bool differs, caught;
} lie_result;

/* Between live rows only: a dead row would give every lie away. */
static lie_result try_lie(const court *c, int axis)
{
    const facts_expected *e = &c->rule->expected;
    int64_t n = elements_of(c->tensor);
    bool differs = false, caught = false;
#pragma omp parallel for schedule(static) reduction(|| : differs, caught)
    for (int64_t i = 0; i < n; i++) {
        if (due_of(c->tensor, c->rule->due, i) != FACTS_DUE_VALUE || exact(e, i))
            continue;
        double lie = lie_at(c, axis, i);
        if (!isfinite(lie) || (axis >= 0 && lie == 0))
            continue;
        differs = differs || fabs(lie - e->want[i]) > 0x1p-40 * fabs(e->want[i]);
        caught = caught || compare(c, lie, i).is != RIGHT;
    }
    return (lie_result){ differs, caught };
}

bool facts_judge_trusts(const facts_tensor *tensor, const facts_rule *rule)
{
    court c = court_of(tensor, rule);
    lie_result zero = try_lie(&c, -1);
    if (zero.differs && !zero.caught)
        return false;
    lie_result rolled = try_lie(&c, 2);
    if (!rolled.differs)
        rolled = try_lie(&c, 3);
    return rolled.caught || !rolled.differs;
}

int64_t facts_judge_repeat(const facts_tensor *tensor, const void *a, const void *b, const facts_due *due, int64_t first[4])
{
    int64_t n = elements_of(tensor), different = 0, least = n;
#pragma omp parallel for schedule(static) reduction(+ : different) reduction(min : least)
    for (int64_t i = 0; i < n; i++) {
        if (due_of(tensor, due, i) != FACTS_DUE_VALUE)
            continue;
        int64_t place = place_of(tensor, i);
        if (facts_load(tensor->dtype, a, place) != facts_load(tensor->dtype, b, place)) {
            different++;
            least = i < least ? i : least;
        }
    }
    if (different && first)
        index_of(tensor, least, first);
    return different;
}
