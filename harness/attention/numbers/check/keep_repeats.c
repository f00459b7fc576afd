#include "keep_repeats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "numbers/fill/mod.h"
#include "numbers/fill/oracle_view.h"
#include "numbers/fill/places.h"

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
static void keys_of(const pairing *x, int64_t b, int64_t i, int64_t *first, int64_t *last)
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
    keys_of(x, b, i, &first, &last);
    keys_of(x, b + step[BATCH], i + step[ROW], &other_first, &other_last);
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
