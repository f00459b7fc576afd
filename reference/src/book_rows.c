/* dQ of rows whose keys have few codes; backward_rows.c says what each term is.
 *
 * With w_b = exp(s_b - Stats), cnt_b keys of code b and PV_b their sum of v, over a code's keys
 *
 *   G_b = sum dS   = w_b (dO . PV_b - D cnt_b)                               exactly
 *   S_b = sum dS^2 = w_b^2 (cnt_b dO^T M dO - 2 D dO . PV_b + D^2 cnt_b)     M the mean of v v^T over the head's keys, not the
 * code's A_b = sum |dS| <= sqrt(cnt_b S_b)
 *
 * and dQ = scale sum_b G_b kappa_b. S and A are needed by sigma and bound alone; below FREF__BOOK_FEW keys they are summed key by
 * key. Keys of one code share the error of s: es^2 S_b becomes es^2 max(S_b, G_b^2). A code counts as flushed where its rms dS or
 * its P is.
 */
#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"

typedef struct scratch {
    double *value, *mean, *magnitude, *bound, *variance, *lost; /* [ld_qk] */
    double *expected, *product;                                 /* dO^T M dO of a tile's rows; scratch of it */
    double *window;
} scratch;

typedef struct pass {
    const fref__book *book;
    const fref__backward *x;
    fref__items *keys;
} pass;

/* Over the keys of one code: dS. */
typedef struct code_sums {
    double count, p, sum, squares, magnitude;
} code_sums;

static int64_t cut_scratch(scratch *t, double *base, const pass *x)
{
    const fref__shape *s = x->book->shape;
    const fref__part parts[] = {
        { &t->value, s->ld_qk },
        { &t->mean, s->ld_qk },
        { &t->magnitude, s->ld_qk },
        { &t->bound, s->ld_qk },
        { &t->variance, s->ld_qk },
        { &t->lost, s->ld_qk },
        { &t->expected, FREF__LANES },
        { &t->product, FREF__LANES * s->ld_v },
        { &t->window, fref__window_doubles(x->keys) },
    };
    return fref__cut(parts, sizeof parts / sizeof parts[0], base);
}

static bool key_item(double *out, const fref__book *x, int64_t j)
{
    memcpy(out, x->v + j * x->shape->ld_v, (size_t)x->shape->ld_v * sizeof *out);
    return true;
}

static void sum_few(code_sums *sums, const fref__book *x, const double *d_o, double delta, int64_t code, fref__range keys)
{
    fref__range places = fref__places_of(x->keys_of_code, x->first_key, code, keys);
    int64_t ld = x->shape->ld_v;
    sums->squares = sums->magnitude = 0.0;
    for (int64_t n = places.first; n < places.last; n++) {
        double ds = sums->p * (fref__dot(d_o, x->v + x->keys_of_code[n] * ld, ld) - delta);
        sums->squares += ds * ds;
        sums->magnitude += fabs(ds);
    }
}

static code_sums sums_of(const pass *x, const fref__window *w, int64_t i, int64_t code, double expected)
{
    const fref__book *book = x->book;
    const fref__row_facts *f = &book->facts[i];
    int64_t ld = book->shape->ld_v;
    const double *sums = w->sums + code * (x->keys->width + 1), *d_o = book->d_o + i * ld;
    code_sums c = { .count = sums[x->keys->width] };
    if (c.count < 0.5)
        return (code_sums){ 0 };
    double together = fref__dot(d_o, sums, ld);
    c.p = exp(book->score[book->code_q[i] * book->codes->count + code] - book->stats[i]);
    c.sum = c.p * (together - f->delta * c.count);
    double squares = c.count * expected - 2.0 * f->delta * together + f->delta * f->delta * c.count;
    c.squares = fmax(c.p * c.p * squares, c.sum * c.sum / c.count);
    c.magnitude = sqrt(c.count * c.squares);
    if (c.count < FREF__BOOK_FEW - 0.5)
        sum_few(&c, book, d_o, f->delta, code, w->range);
    return c;
}

FREF__CLONES static void add_k(const scratch *t, const double *restrict kappa, int64_t ld, double sum, double p, double magnitude,
                               double bound, double variance, double lost)
{
    double *restrict value = t->value, *restrict mean = t->mean, *restrict sizes = t->magnitude, *restrict bounds = t->bound;
    double *restrict variances = t->variance, *restrict losts = t->lost;
    for (int64_t c = 0; c < ld; c++) {
        double k = kappa[c], size = fabs(k);
        value[c] += sum * k;
        mean[c] += p * k;
        sizes[c] += magnitude * size;
        bounds[c] += bound * size;
        variances[c] += variance * k * k;
        losts[c] += lost * k;
    }
}

static void weigh_code(const pass *x, const scratch *t, const code_sums *c, const fref__row_facts *f, int64_t code)
{
    const fref__backward *y = x->x;
    double scale = fabs(y->shape->problem->scale), u = y->of_ds.unit_roundoff, floor = fref__floor_of_ds(y);
    bool underflows = c->p < FREF__P_FLUSHED, flushed = underflows || scale * sqrt(c->squares / c->count) < 1.01 * y->of_ds.eta;
    double shared = fmax(c->squares, c->sum * c->sum);
    double variance =
        THIRD * u * u * c->squares + f->es * f->es * shared + c->count * (c->p * f->ep * c->p * f->ep + THIRD * floor * floor);
    double bound = (u + f->ew + (underflows ? 1.0 : 0.0)) * c->magnitude + c->count * (c->p * f->ez + floor);
    add_k(t, x->book->kappa + code * y->shape->ld_qk, y->shape->ld_qk, c->sum, c->p * c->count, c->magnitude, bound, variance,
          flushed ? c->sum : 0.0);
}

/* As in backward_rows.c. */
static void write_row(const fref__backward *x, const scratch *t, const fref__row_facts *f, int64_t row, int64_t n)
{
    const fref_problem *p = x->shape->problem;
    double scale = x->gamma_ds * fabs(p->scale), sqrt_n = sqrt(fref__at_least_1((double)n / 16.0));
    for (int64_t c = 0; c < p->dim_qk; c++) {
        int64_t at = row * p->dim_qk + c;
        double exact = x->gamma_ds * p->scale * t->value[c], dq = fref__clamped(exact, x->to_q.max);
        double lost = scale * t->lost[c], aq = E32 * sqrt_n * scale * t->magnitude[c], mean_key = scale * fabs(t->mean[c]);
        double es_dq = f->es * exact, of_delta = f->edelta * mean_key;
        double cast = x->to_q.unit_roundoff * fmax(fabs(dq), x->to_q.tiny);
        double variance =
            scale * scale * t->variance[c] + lost * lost + of_delta * of_delta + es_dq * es_dq + aq * aq + THIRD * cast * cast;
        if (x->out->dq)
            x->out->dq[at] = dq;
        if (x->out->dq_sigma)
            x->out->dq_sigma[at] = sqrt(variance) + f->eo * mean_key;
        if (x->out->dq_bound)
            x->out->dq_bound[at] =
                scale * t->bound[c] + 2.0 * of_delta + aq * sqrt_n + cast + sqrt(3.0 * (double)p->dim_v) * f->eo * mean_key;
    }
}

static void rows_row(const pass *x, const scratch *t, fref__window *w, int64_t r, double expected)
{
    const fref__book *book = x->book;
    const fref__shape *s = book->shape;
    int64_t i = fref__place(&s->rows, r), row = (book->b * s->problem->heads_q + book->h) * s->rows.count + r;
    const fref__row_facts *f = &book->facts[i];
    if (f->dead) {
        double *const zero[] = { x->x->out->dq, x->x->out->dq_sigma, x->x->out->dq_bound };
        for (size_t n = 0; n < 3; n++)
            if (zero[n])
                memset(zero[n] + row * s->problem->dim_qk, 0, (size_t)s->problem->dim_qk * sizeof(double));
        return;
    }
    fref__range keys;
    fref_keys_of_row(s->problem, book->b, i, &keys.first, &keys.last);
    fref__window_move(w, x->keys, keys);
    memset(t->value, 0, (size_t)(6 * s->ld_qk) * sizeof(double)); /* value .. lost lie one after the other */
    for (int64_t code = 0; code < book->codes->count; code++) {
        const code_sums c = sums_of(x, w, i, code, expected);
        if (c.count > 0.5)
            weigh_code(x, t, &c, f, code);
    }
    write_row(x->x, t, f, row, keys.last - keys.first);
}

/* Rows first .. last-1 of the list, some at a time: dO^T M dO of all of them is one product. */
static void rows_tile(const pass *x, const scratch *t, int64_t first, int64_t last)
{
    const fref__book *book = x->book;
    int64_t ld = book->shape->ld_v;
    fref__window window;
    fref__window_start(&window, x->keys, t->window);
    for (int64_t r = first; r < last; r += FREF__LANES) {
        int64_t count = last - r < FREF__LANES ? last - r : FREF__LANES;
        if (book->shape->rows.at)
            for (int64_t n = 0; n < count; n++)
                fref__quadratic(t->expected + n, book->d_o + book->shape->rows.at[r + n] * ld, book->moment_v, 1, ld, t->product);
        else
            fref__quadratic(t->expected, book->d_o + r * ld, book->moment_v, count, ld, t->product);
        for (int64_t n = 0; n < count; n++)
            rows_row(x, t, &window, r + n, t->expected[n]);
    }
}

int fref__book_rows(const fref__book *book, fref__items *keys, const fref__backward *x)
{
    const fref__shape *s = book->shape;
    const pass all = { .book = book, .x = x, .keys = keys };
    if (!x->out->dq && !x->out->dq_sigma && !x->out->dq_bound)
        return 0;
    keys->item = key_item;
    fref__items_fill(keys);
    scratch none;
    int64_t size = cut_scratch(&none, NULL, &all), tiles = (s->rows.count + FREF__BOOK_TILE - 1) / FREF__BOOK_TILE;
    double *memory = malloc((size_t)(size * omp_get_max_threads()) * sizeof *memory);
    if (!memory)
        return ENOMEM;
#pragma omp parallel for schedule(dynamic)
    for (int64_t tile = 0; tile < tiles; tile++) {
        scratch mine;
        cut_scratch(&mine, memory + omp_get_thread_num() * size, &all);
        int64_t last = (tile + 1) * FREF__BOOK_TILE < s->rows.count ? (tile + 1) * FREF__BOOK_TILE : s->rows.count;
        rows_tile(&all, &mine, tile * FREF__BOOK_TILE, last);
    }
    free(memory);
    return 0;
}
