#include "judge_keep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/dtype.h"
#include "numbers/fill/places.h"
#include "numbers/fill/score_inputs.h"

enum { BATCH, HEAD, ROW, KEY };

/* The number of scores that one draw may decide (cuDNN: rows i, i + 2, i + 4, i + 6 of a key). The
 * distance of rows and of keys from which on draws are different: a thread of a tensor core has
 * rows 8 apart. */
#define SHARED 4
#define FAR 16

/* The pairs of scores: those of mask `a` with those of mask `b` that are `step` further. Only the
 * steps along heads and keys may be negative. */
typedef struct pairing {
    const facts_problem *p;
    const fref_problem *oracle; /* of p */
    const uint8_t *a, *b;
    int64_t step[4];
} pairing;

typedef struct tally {
    int64_t pairs, first, second, both; /* pairs; kept in the first score, in the second, in both */
} tally;

/* None for a row that does not exist. */
static void keys_of_row(const pairing *x, int64_t b, int64_t i, int64_t *first, int64_t *last)
{
    *first = *last = 0;
    if (b >= x->p->ask.batch || i >= x->p->ask.seq_q || i >= facts_live_q(x->p, b))
        return;
    fref_keys_of_row(x->oracle, b, i, first, last);
    facts_mod_keys_of_row(x->p, b, i, first, last);
}

static void add_keys(tally *t, const uint8_t *a, const uint8_t *b, int64_t count)
{
    for (int64_t j = 0; j < count; j++) {
        t->first += a[j];
        t->second += b[j];
        t->both += a[j] & b[j];
    }
    t->pairs += count;
}

/* The pairs of row i of every head of entry b. */
static tally count_row(const pairing *x, int64_t b, int64_t i)
{
    const fattn_problem *ask = &x->p->ask;
    const int64_t *step = x->step, back = step[HEAD] < 0 ? -step[HEAD] : 0;
    int64_t first, last, other_first, other_last;
    tally out = { 0 };
    keys_of_row(x, b, i, &first, &last);
    keys_of_row(x, b + step[BATCH], i + step[ROW], &other_first, &other_last);
    first = first > other_first - step[KEY] ? first : other_first - step[KEY];
    last = last < other_last - step[KEY] ? last : other_last - step[KEY];
    for (int64_t h = back; h + step[HEAD] < ask->heads_q && h < ask->heads_q && first < last; h++) {
        const int64_t row = (b * ask->heads_q + h) * ask->seq_q + i,
                      other = ((b + step[BATCH]) * ask->heads_q + h + step[HEAD]) * ask->seq_q + i +
                              step[ROW];
        add_keys(&out, x->a + row * ask->seq_kv + first,
                 x->b + other * ask->seq_kv + first + step[KEY], last - first);
    }
    return out;
}

static tally count_pairs(const pairing *x)
{
    const int64_t rows = x->p->ask.seq_q;
    int64_t pairs = 0, first = 0, second = 0, both = 0;
#pragma omp parallel for if (x->p->ask.batch * rows > 1024)                                        \
    reduction(+ : pairs, first, second, both)
    for (int64_t n = 0; n < x->p->ask.batch * rows; n++) {
        const tally one = count_row(x, n / rows, n % rows);
        pairs += one.pairs;
        first += one.first;
        second += one.second;
        both += one.both;
    }
    return (tally){ pairs, first, second, both };
}

/* `sharing`: as many of the pairs may have one draw. Beyond these the agreements have the
 * expectation and the variance of independent draws, each of SHARED scores; 96 is what Bernstein's
 * inequality adds where pairs are few. */
static facts_repeat held_to_chance(const tally *t, double sharing)
{
    const double n = (double)t->pairs, a = (double)t->first / n, b = (double)t->second / n,
                 chance = a * b + (1 - a) * (1 - b),
                 same = n - (double)(t->first + t->second) + 2.0 * (double)t->both,
                 off = same - n * chance,
                 room = 6.0 * sqrt(SHARED * n * 4.0 * a * (1 - a) * b * (1 - b)) + 96.0;
    return (facts_repeat){ .pairs = t->pairs,
                           .agree = same / n,
                           .chance = chance,
                           .ratio = off < 0
                                        ? -off / room
                                        : fmax(0.0, off - fmin(n, sharing) * (1 - chance)) / room };
}

facts_repeat facts_repeat_between(const facts_problem *problem, const uint8_t *a, const uint8_t *b,
                                  const char *what)
{
    fref_problem oracle;
    facts_oracle_problem(&oracle, problem);
    const tally all = count_pairs(&(pairing){ .p = problem, .oracle = &oracle, .a = a, .b = b });
    facts_repeat out = { .pairs = 0 };
    if (all.pairs > 0)
        out = held_to_chance(&all, 0.0);
    snprintf(out.what, sizeof out.what, "%s", what);
    return out;
}

/* The pairs of one mask, a comparison after the other. */
typedef struct comparing {
    pairing pairs;
    double all; /* scores */
    facts_repeat worst;
} comparing;

static void name_step(char out[40], const int64_t step[4])
{
    static const char *const words[] = {
        [BATCH] = "batch entries", [HEAD] = "heads", [ROW] = "rows", [KEY] = "keys"
    };
    size_t length = 0;
    for (int axis = BATCH; axis <= KEY; axis++)
        if (step[axis] != 0)
            length += (size_t)snprintf(out + length, 40 - length, "%s%s %d", length ? ", " : "",
                                       words[axis], (int)step[axis]);
    snprintf(out + length, 40 - length, " apart");
}

static void compare(comparing *c, int64_t batch, int64_t head, int64_t row, int64_t key)
{
    const int64_t step[4] = { batch, head, row, key };
    const bool near = batch == 0 && head == 0 && row < FAR && key < FAR;
    memcpy(c->pairs.step, step, sizeof step);
    const tally found = count_pairs(&c->pairs);
    if (found.pairs == 0)
        return;
    facts_repeat one = held_to_chance(&found, near ? (SHARED - 1.0) / SHARED * c->all : 0.0);
    name_step(one.what, step);
    if (c->worst.pairs == 0 || one.ratio > c->worst.ratio)
        c->worst = one;
}

/* 1, 2, 3, 4, 8, 16 ... */
static int64_t farther(int64_t distance)
{
    return distance < 4 ? distance + 1 : 2 * distance;
}

facts_repeat facts_repeat_within(const facts_problem *p, const uint8_t *keep)
{
    const fattn_problem *ask = &p->ask;
    fref_problem oracle;
    facts_oracle_problem(&oracle, p);
    comparing c = { .pairs = { .p = p, .oracle = &oracle, .a = keep, .b = keep } };
    c.all = (double)count_pairs(&c.pairs).pairs;
    for (int64_t d = 1; d < ask->batch; d = farther(d))
        compare(&c, d, 0, 0, 0);
    for (int64_t d = 1; d < ask->heads_q; d++)
        compare(&c, 0, d, 0, 0);
    for (int64_t d = 1; d < ask->seq_q; d = farther(d))
        compare(&c, 0, 0, d, 0);
    for (int64_t d = 1; d < ask->seq_kv; d = farther(d))
        compare(&c, 0, 0, 0, d);
    /* One counter for entries and heads, or for rows and keys. */
    for (int64_t d = 1; d < ask->heads_q && ask->batch > 1; d++) {
        compare(&c, 1, d, 0, 0);
        compare(&c, 1, -d, 0, 0);
    }
    for (int64_t d = FAR; d < ask->seq_q && d < ask->seq_kv; d *= 2) {
        compare(&c, 0, 0, d, d);
        compare(&c, 0, 0, d, -d);
    }
    return c.worst;
}

/* P3: the dropout mask, from an answer. docs/numerics.md section 5. */

static void put_all(const facts_view *run, facts_tensor_id id, double value)
{
    for (facts_walk w = facts_walk_of(run->problem->tensor[id].dim); facts_walk_on(&w);)
        facts_view_put(run, id, w.at, value);
}

/* The keys [first, last) of a row; none past the length. */
static int64_t keys_of(const facts_view *v, const int64_t at[4], int64_t *first, int64_t *last)
{
    *first = *last = 0;
    if (at[2] < facts_live_q(v->problem, at[0]))
        facts_oracle_keys_of_row(v->problem, at[0], at[2], first, last);
    return *last - *first;
}

#define TILE 128

static int64_t windows_of(int64_t keys, int64_t channels)
{
    return (keys + channels - 1) / channels;
}

int64_t facts_window_start(int64_t keys, int64_t live, int64_t channels, int64_t head, int number)
{
    int64_t windows = windows_of(keys, channels), start;
    if (windows <= FACTS_CHECK_RUNS)
        return (head + number) % windows * channels; /* all of them, in as many runs as necessary */
    switch (number) {
    case 0:
        start = live - channels; /* the end of the valid keys */
        break;
    case 1:
        start = TILE - channels / 2;
        break;
    case 2:
        start = (keys - 1) / TILE * TILE - channels / 2; /* the last tile's edge */
        break;
    default:
        start = (head * 7 + 1) % windows * channels; /* anywhere else: other heads, other keys */
    }
    return start < 0 ? 0 : start > keys - channels ? keys - channels : start;
}

static int64_t start_of(const facts_view *v, int64_t b, int64_t heads, int64_t h, int64_t channels,
                        int number)
{
    return facts_window_start(v->problem->ask.seq_kv, facts_live_kv(v->problem, b), channels,
                              b * heads + h, number);
}

/* V_j = e_(j-w) for the dv keys from w: O_ic is P'_(i,w+c). */
static void one_hot(const facts_view *run, facts_tensor_id id, int number)
{
    const int64_t *dim = run->problem->tensor[id].dim;
    for (facts_walk w = facts_walk_of(dim); facts_walk_on(&w);) {
        int64_t start = start_of(run, w.at[0], dim[1], w.at[1], dim[3], number);
        facts_view_put(run, id, w.at, w.at[2] == start + w.at[3] ? 1.0 : 0.0);
    }
}

void facts_keep_write(const facts_view *run, bool backward, int number)
{
    put_all(run, FACTS_TENSOR_Q, 0.0);
    if (!backward) {
        one_hot(run, FACTS_TENSOR_V, number);
        return;
    }
    const int64_t *dim = run->problem->tensor[FACTS_TENSOR_DO].dim;
    int64_t unit = facts_head_unit(run->problem);
    for (facts_walk w = facts_walk_of(dim); facts_walk_on(&w);) {
        int64_t start = facts_window_start(dim[2], facts_live_q(run->problem, w.at[0]), dim[3],
                                           w.at[0] * dim[1] + w.at[1], number);
        facts_view_put(run, FACTS_TENSOR_DO, w.at,
                       w.at[1] % unit == 0 && w.at[2] == start + w.at[3] ? 1.0 : 0.0);
    }
}

static void keep_bit(facts_keep *out, const int64_t at[4], bool bit)
{
    uint8_t *place =
        &out->bit[((at[0] * out->dim[1] + at[1]) * out->dim[2] + at[2]) * out->dim[3] + at[3]];
    *place = bit;
    out->seen++;
    out->kept += bit;
}

void facts_keep_read(facts_keep *out, facts_held *held, const facts_view *run, bool backward,
                     int number, double p)
{
    const facts_problem *problem = run->problem;
    facts_tensor_id id = backward ? FACTS_TENSOR_DV : FACTS_TENSOR_O;
    int64_t heads_v = problem->ask.heads_v, dv = problem->ask.dim_v,
            unit = problem->ask.heads_q / heads_v;
    double u = 2.0 * facts_dtype_roundoff(problem->ask.dtype) +
               facts_dtype_roundoff(backward ? problem->ask.grad_dtype : problem->ask.o_dtype);
    for (facts_walk w = facts_walk_of(problem->tensor[id].dim); facts_walk_on(&w);) {
        int64_t h = backward ? w.at[1] * unit : w.at[1], start;
        if (backward)
            start = facts_window_start(problem->ask.seq_q, facts_live_q(problem, w.at[0]), dv,
                                       w.at[0] * problem->ask.heads_q + h, number);
        else
            start = start_of(run, w.at[0], heads_v, facts_value_head(problem, h), dv, number);
        int64_t at[4] = { w.at[0], h, backward ? start + w.at[3] : w.at[2],
                          backward ? w.at[2] : start + w.at[3] },
                first, last;
        if (at[2] >= problem->ask.seq_q || h % (backward ? facts_head_unit(problem) : 1) != 0)
            continue;
        int64_t n = keys_of(run, at, &first, &last);
        if (at[3] < first || at[3] >= last)
            continue;
        double got = facts_view_get(run, id, w.at), expects = 1.0 / ((double)n * (1.0 - p));
        keep_bit(out, at, got > 0);
        facts_held_note(held, "a kept key has P = 1/(n (1 - p))", id, w.at, got,
                        got > 0 ? expects : 0.0, u * expects);
    }
}

/* cuDNN's draws come in fours (docs/numerics.md): of n scores n / 4 are free, and the variance of
 * their sum is up to four times that of n draws. */
static double facts_keep_room(int64_t n, double p)
{
    return 5.0 * sqrt(4.0 * (double)n * p * (1.0 - p)) + 0.5;
}

bool facts_keep_is_likely(const facts_keep *keep, double p)
{
    return fabs((double)keep->kept - (double)keep->seen * (1.0 - p)) <=
           facts_keep_room(keep->seen, p);
}

/* ---- check=keep */

static bool is_backward(const facts_problem *p)
{
    return p->ask.pass == FATTN_BACKWARD;
}

/* A window of keys in a forward, of rows in a backward. */
static int keep_runs(const facts_problem *p)
{
    const int64_t windows = windows_of(is_backward(p) ? p->ask.seq_q : p->ask.seq_kv, p->ask.dim_v);
    return windows < FACTS_CHECK_RUNS ? (int)windows : FACTS_CHECK_RUNS;
}

static void keep_write(const facts_view *run, int number)
{
    facts_keep_write(run, is_backward(run->problem), number);
}

/* Bit for bit the input of the reference: the engine's rng_dump, or the caller's mask. */
static void hold_bits(facts_held *out, const facts_view *run)
{
    const facts_problem *p = run->problem;
    const facts_tensor_id id = is_backward(p) ? FACTS_TENSOR_DV : FACTS_TENSOR_O;
    for (facts_walk w = facts_walk_of(p->tensor[id].dim); facts_walk_on(&w);)
        if (facts_view_owes(run, id, w.at))
            facts_held_note(out, "the kept scores are those that the mask names", id, w.at,
                            facts_view_get(run, id, w.at) > 0, facts_view_want(run, id, w.at) > 0,
                            0.0);
}

static void keep_hold(facts_held *out, const facts_view *base, const facts_view run[])
{
    const facts_problem *p = base->problem;
    const int64_t none[4] = { 0, 0, 0, 0 },
                  scores = p->ask.batch * p->ask.heads_q * p->ask.seq_q * p->ask.seq_kv;
    facts_keep keep = { .dim = { p->ask.batch, p->ask.heads_q, p->ask.seq_q, p->ask.seq_kv },
                        .bit = calloc((size_t)scores + 1, 1) };
    for (int r = 0; r < keep_runs(p) && keep.bit; r++) {
        facts_keep_read(&keep, out, &run[r], is_backward(p), r, p->drop);
        hold_bits(out, &run[r]);
    }
    if (keep.seen > 0 && p->ask.dropout > 0)
        facts_held_note(out, "as many keys are kept as chance allows",
                        is_backward(p) ? FACTS_TENSOR_DV : FACTS_TENSOR_O, none, (double)keep.kept,
                        (double)keep.seen * (1.0 - p->drop), facts_keep_room(keep.seen, p->drop));
    free(keep.bit);
}

const facts_check_rule facts_probe_keep = { .runs = keep_runs,
                                            .put = keep_write,
                                            .hold = keep_hold };

#define AS_WORD(symbol, word) word,
const char *const facts_rate_words[FACTS_RATES] = { FACTS_RATE_LIST(AS_WORD) };
#undef AS_WORD

static void judge_bit(facts_judgement *out, double got, double want, bool poison,
                      const int64_t at[4])
{
    out->checked++;
    if (got == want)
        return;
    out->unwritten += poison;
    out->not_finite += !poison && !isfinite(got);
    out->wrong += !poison && isfinite(got);
    if (out->ratio > 0)
        return;
    out->ratio = INFINITY;
    out->gate = poison ? FACTS_GATE_POISON : FACTS_GATE_T0;
    out->got = got;
    out->want = want;
    for (int d = 0; d < 4; d++)
        out->worst[d] = at[d];
}

/* The usual case, fast. NaN is never right. */
static bool is_row_right(const float *got, const uint8_t *bits, int64_t count)
{
    int64_t wrong = 0;
    for (int64_t j = 0; j < count; j++)
        wrong += got[j] != (bits[j] ? 1.0F : 0.0F);
    return wrong == 0;
}

facts_judgement facts_judge_keep(const facts_problem *p, const void *dump, const uint8_t *keep,
                                 facts_pattern pattern)
{
    const facts_tensor *t = &p->tensor[FACTS_TENSOR_RNG_DUMP];
    facts_judgement out = { .gate = FACTS_GATE_T0 };
    for (int64_t b = 0; b < t->dim[0]; b++)
        for (int64_t i = 0; i < facts_live_q(p, b); i++) {
            int64_t first, last;
            facts_oracle_keys_of_row(p, b, i, &first, &last);
            for (int64_t h = 0; h < t->dim[1]; h++) {
                const int64_t row =
                    t->first + b * t->stride[0] + h * t->stride[1] + i * t->stride[2];
                const uint8_t *bits =
                    keep ? keep + ((b * t->dim[1] + h) * t->dim[2] + i) * t->dim[3] : NULL;
                if (bits && t->dtype == FATTN_F32 && t->stride[3] == 1 &&
                    is_row_right((const float *)dump + row + first, bits + first, last - first)) {
                    out.checked += last - first;
                    continue;
                }
                for (int64_t j = first; j < last; j++) {
                    const int64_t at[4] = { b, h, i, j }, place = row + j * t->stride[3];
                    const uint32_t code = facts_load(t->dtype, dump, place);
                    const bool kept = !bits || bits[j] != 0;
                    judge_bit(&out, facts_decode(t->dtype, code), kept ? 1.0 : 0.0,
                              code == facts_pattern_code(t->dtype, pattern, place), at);
                }
            }
        }
    if (out.ratio > 0)
        out.gates[out.gate] = out.ratio;
    return out;
}

facts_rate facts_rate_of(double dropout, int64_t kept, int64_t of)
{
    const double sixteenths = round(dropout * 16.0) / 16.0;
    const facts_keep keep = { .seen = of, .kept = kept };
    const bool asked = facts_keep_is_likely(&keep, dropout),
               quantised = facts_keep_is_likely(&keep, sixteenths);
    if (asked && quantised)
        return FACTS_RATE_EITHER;
    return asked ? FACTS_RATE_AS_ASKED : quantised ? FACTS_RATE_QUANTISED : FACTS_RATE_NEITHER;
}
