/* dK and dV of keys whose rows have few codes; backward_keys.c says what each term is.
 *
 * Key j of code b, rows of code a that may read it, E_a = exp(s_ab - T_a), e_i = exp(T_a - Stats_i), T_a the largest score of code
 * a:
 *
 *   P_ij = E_a e_i          dV_j = sum_a E_a sum_i e_i dO_i          dK_j = scale sum_a G_a rho_a
 *   G_a = sum dS   = E_a (v . sum e dO - sum e D)                                                       exactly
 *   S_a = sum dS^2 = E_a^2 (v^T N v sum e^2 - 2 v . sum e^2 D dO + sum e^2 D^2)                         N the mean of dO dO^T over
 * the head's rows A_a = sum |dS| <= E_a sqrt( sum e (v^T N v sum e - 2 v . sum e D dO + sum e D^2) )
 *
 * S and A are needed by sigma and bound alone; below FREF__BOOK_FEW rows, or where so
 * few take most of sum e^2, they are summed row by row. Rows of one code and one Stats share the
 * rounding of P and the error of s, so sums of squares are at least the square of the sum over a code; es and ew of dK are the
 * largest of the code's rows.
 */
#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"

/* Sums of rows: vectors of ld_v, then numbers. */
enum { E_DO, E_SIZE, E_EW_SIZE, E2_DO2, E2_ES2_DO2, SIZE, DO2, E_D_DO, E2_D_DO, VECTORS };
enum { E, E2, E4, E_D, E_D2, E2_D2, E_WORST, E2_VARIANCE, NUMBERS };

typedef struct scratch {
    double *value_v, *magnitude_v, *bound_v, *variance_v, *shared_v, *lost_v; /* [ld_v] */
    double *value_k, *magnitude_k, *bound_k, *variance_k, *lost_k;            /* [ld_qk] */
    double *expected, *product, *window;
} scratch;

typedef struct pass {
    const fref__book *book;
    const fref__backward *x;
    fref__items *rows;
    const fref__book_total *k, *v;
    double *es, *ew; /* [count]: the largest of a code's rows */
} pass;

static int64_t cut_scratch(scratch *t, double *base, const pass *x)
{
    const fref__shape *s = x->book->shape;
    int64_t v = s->ld_v, k = s->ld_qk;
    const fref__part parts[] = { { &t->value_v, v },
                                 { &t->magnitude_v, v },
                                 { &t->bound_v, v },
                                 { &t->variance_v, v },
                                 { &t->shared_v, v },
                                 { &t->lost_v, v },
                                 { &t->value_k, k },
                                 { &t->magnitude_k, k },
                                 { &t->bound_k, k },
                                 { &t->variance_k, k },
                                 { &t->lost_k, k },
                                 { &t->expected, FREF__LANES },
                                 { &t->product, FREF__LANES * v },
                                 { &t->window, fref__window_doubles(x->rows) } };
    return fref__cut(parts, sizeof parts / sizeof parts[0], base);
}

FREF__CLONES static void spread(double *restrict out, const double *restrict d_o, int64_t ld, double e, const fref__row_facts *f)
{
    double e_ew = e * f->ew, e2 = e * e, e2_es2 = e * f->es * e * f->es, e_d = e * f->delta, e2_d = e * e * f->delta;
    for (int64_t c = 0; c < ld; c++) {
        double x = d_o[c], size = fabs(x);
        out[E_DO * ld + c] = e * x;
        out[E_SIZE * ld + c] = e * size;
        out[E_EW_SIZE * ld + c] = e_ew * size;
        out[E2_DO2 * ld + c] = e2 * x * x;
        out[E2_ES2_DO2 * ld + c] = e2_es2 * x * x;
        out[SIZE * ld + c] = size;
        out[DO2 * ld + c] = x * x;
        out[E_D_DO * ld + c] = e_d * x;
        out[E2_D_DO * ld + c] = e2_d * x;
    }
}

static bool row_item(double *out, const fref__book *x, int64_t i)
{
    const fref__row_facts *f = &x->facts[i];
    if (f->dead)
        return false;
    int64_t ld = x->shape->ld_v;
    double e = exp(x->top[x->code_q[i]] - x->stats[i]), *numbers = out + VECTORS * ld;
    spread(out, x->d_o + i * ld, ld, e, f);
    numbers[E] = e;
    numbers[E2] = e * e;
    numbers[E4] = e * e * e * e;
    numbers[E_D] = e * f->delta;
    numbers[E_D2] = e * f->delta * f->delta;
    numbers[E2_D2] = e * f->delta * e * f->delta;
    numbers[E_WORST] = e * (f->ez + f->edelta + sqrt(3.0 * (double)x->shape->problem->dim_v) * f->eo);
    numbers[E2_VARIANCE] = e * e * (f->ep * f->ep + f->edelta * f->edelta + f->eo * f->eo);
    return true;
}

typedef struct factors {
    double e, u, es, eta, lost;
} factors;

/* dV: one code. */
FREF__CLONES static void add_v(const scratch *t, const double *restrict sums, int64_t ld, const factors *f)
{
    double *restrict value = t->value_v, *restrict magnitude = t->magnitude_v, *restrict bound = t->bound_v;
    double *restrict variance = t->variance_v, *restrict shared = t->shared_v, *restrict lost = t->lost_v;
    double e = f->e, u = f->u, eta = f->eta, u2 = THIRD * u * u, floor = THIRD * eta * eta, both = u2 + f->es * f->es,
           lose = f->lost;
    for (int64_t c = 0; c < ld; c++) {
        double one = e * sums[E_DO * ld + c];
        value[c] += one;
        magnitude[c] += e * sums[E_SIZE * ld + c];
        bound[c] += e * (u * sums[E_SIZE * ld + c] + sums[E_EW_SIZE * ld + c]) + eta * sums[SIZE * ld + c];
        variance[c] += e * e * (u2 * sums[E2_DO2 * ld + c] + sums[E2_ES2_DO2 * ld + c]) + floor * sums[DO2 * ld + c];
        shared[c] += both * one * one + floor * sums[DO2 * ld + c];
        lost[c] += lose * one;
    }
}

/* Over rows of one code: dS. */
typedef struct code_sums {
    double count, sum, squares, magnitude, rms_p;
} code_sums;

static void sum_few(code_sums *sums, const pass *x, const double *v, double e_a, int64_t code, fref__range rows)
{
    const fref__book *book = x->book;
    fref__range places = fref__places_of(book->rows_of_code, book->first_row, code, rows);
    int64_t ld = book->shape->ld_v;
    sums->squares = sums->magnitude = 0.0;
    for (int64_t n = places.first; n < places.last; n++) {
        int64_t i = book->rows_of_code[n];
        if (book->facts[i].dead)
            continue;
        double p = e_a * exp(book->top[code] - book->stats[i]);
        double ds = p * (fref__dot(v, book->d_o + i * ld, ld) - book->facts[i].delta);
        sums->squares += ds * ds;
        sums->magnitude += fabs(ds);
    }
}

static code_sums sums_of(const pass *x, const fref__window *w, int64_t j, int64_t code, double e_a, double expected)
{
    const fref__book *book = x->book;
    int64_t ld = book->shape->ld_v;
    const double *sums = w->sums + code * (x->rows->width + 1), *numbers = sums + VECTORS * ld, *v = book->v + j * ld;
    code_sums c = { .count = sums[x->rows->width] };
    c.sum = e_a * (fref__dot(v, sums + E_DO * ld, ld) - numbers[E_D]);
    double squares = expected * numbers[E2] - 2.0 * fref__dot(v, sums + E2_D_DO * ld, ld) + numbers[E2_D2];
    double weighed = expected * numbers[E] - 2.0 * fref__dot(v, sums + E_D_DO * ld, ld) + numbers[E_D2];
    c.squares = fmax(e_a * e_a * squares, c.sum * c.sum / c.count);
    c.magnitude = fmax(e_a * sqrt(fmax(numbers[E] * weighed, 0.0)), fabs(c.sum));
    c.rms_p = e_a * sqrt(numbers[E2] / c.count);
    if (numbers[E2] * numbers[E2] < FREF__BOOK_FEW * numbers[E4]) /* so many rows in effect: at most the code's */
        sum_few(&c, x, v, e_a, code, w->range);
    return c;
}

/* dK: one code. */
static void add_k(const pass *x, const scratch *t, const code_sums *c, const double *numbers, double e_a, int64_t code)
{
    const fref__backward *y = x->x;
    double scale = fabs(y->shape->problem->scale), u = y->of_ds.unit_roundoff, floor = fref__floor_of_ds(y);
    bool underflows = c->rms_p < FREF__P_FLUSHED, flushed = underflows || scale * sqrt(c->squares / c->count) < 1.01 * y->of_ds.eta;
    double variance = THIRD * u * u * c->squares + x->es[code] * x->es[code] * fmax(c->squares, c->sum * c->sum) +
                      e_a * e_a * numbers[E2_VARIANCE] + c->count * THIRD * floor * floor;
    double bound = (u + x->ew[code] + (underflows ? 1.0 : 0.0)) * c->magnitude + e_a * numbers[E_WORST] + c->count * floor;
    const double *rho = x->book->rho + code * y->shape->ld_qk;
    for (int64_t n = 0; n < y->shape->ld_qk; n++) {
        double q = rho[n], size = fabs(q);
        t->value_k[n] += c->sum * q;
        t->magnitude_k[n] += c->magnitude * size;
        t->bound_k[n] += bound * size;
        t->variance_k[n] += variance * q * q;
        t->lost_k[n] += flushed ? c->sum * q : 0.0;
    }
}

/* Adds this head's part to the group's, as finish_head of backward_keys.c. */
static void finish(const pass *x, const fref__book_total *to, int64_t first, int64_t dim, double scale, bool cast_partials,
                   const double *value, const double *magnitude, const double *bound, const double *variance, const double *lost)
{
    double sqrt_n = sqrt(fref__at_least_1((double)x->book->shape->problem->rows / 16.0));
    const fref__precision *in = &x->x->in;
    for (int64_t c = 0; c < dim; c++) {
        double part = scale * value[c], flushed = scale * lost[c], sum = E32 * sqrt_n * fabs(scale) * magnitude[c];
        double cast = cast_partials ? in->unit_roundoff * fmax(fabs(part), in->tiny) : 0.0;
        to->value[first + c] += part;
        to->variance[first + c] += scale * scale * variance[c] + flushed * flushed + sum * sum + THIRD * cast * cast;
        to->bound[first + c] += fabs(scale) * bound[c] + sum * sqrt_n + cast;
    }
}

static void keys_key(const pass *x, const scratch *t, fref__window *w, int64_t n, double expected)
{
    const fref__book *book = x->book;
    const fref__backward *y = x->x;
    const fref__shape *s = book->shape;
    int64_t j = fref__place(&s->keys, n), m = book->codes->count, width = x->rows->width + 1;
    fref__range rows = fref__rows_of_key(s->problem, book->b, j);
    if (rows.first == rows.last)
        return;
    fref__window_move(w, x->rows, rows);
    memset(t->value_v, 0, (size_t)(6 * s->ld_v + 5 * s->ld_qk) * sizeof(double)); /* value_v .. lost_k lie one after the other */
    for (int64_t a = 0; a < m; a++) {
        const double *sums = w->sums + a * width;
        if (sums[width - 1] < 0.5)
            continue;
        double e_a = exp(book->score[a * m + book->code_k[j]] - book->top[a]);
        const code_sums c = sums_of(x, w, j, a, e_a, expected);
        const factors f = { e_a, y->in.unit_roundoff, x->es[a], y->of_p.eta, c.rms_p < 1.01 * y->of_p.eta ? 1.0 : 0.0 };
        add_v(t, sums, s->ld_v, &f);
        add_k(x, t, &c, sums + VECTORS * s->ld_v, e_a, a);
    }
    for (int64_t c = 0; c < s->ld_v; c++)
        t->variance_v[c] = fmax(t->variance_v[c], t->shared_v[c]);
    bool cast = book->rounding->partials_cast;
    finish(x, x->k, n * s->problem->dim_qk, s->problem->dim_qk, y->gamma_ds * s->problem->scale, cast && s->group_k > 1, t->value_k,
           t->magnitude_k, t->bound_k, t->variance_k, t->lost_k);
    finish(x, x->v, n * s->problem->dim_v, s->problem->dim_v, y->gamma_p, cast && s->group_v > 1, t->value_v, t->magnitude_v,
           t->bound_v, t->variance_v, t->lost_v);
}

static void keys_tile(const pass *x, const scratch *t, int64_t first, int64_t last)
{
    const fref__shape *s = x->book->shape;
    fref__window window;
    fref__window_start(&window, x->rows, t->window);
    for (int64_t n = first; n < last; n += FREF__LANES) {
        int64_t count = last - n < FREF__LANES ? last - n : FREF__LANES;
        for (int64_t k = 0; k < count && s->keys.at; k++)
            fref__quadratic(t->expected + k, x->book->v + s->keys.at[n + k] * s->ld_v, x->book->moment_d_o, 1, s->ld_v, t->product);
        if (!s->keys.at)
            fref__quadratic(t->expected, x->book->v + n * s->ld_v, x->book->moment_d_o, count, s->ld_v, t->product);
        for (int64_t k = 0; k < count; k++)
            keys_key(x, t, &window, n + k, t->expected[k]);
    }
}

static void largest_errors(const pass *x)
{
    for (int64_t a = 0; a < x->book->codes->count; a++)
        x->es[a] = x->ew[a] = 0.0;
    for (int64_t i = 0; i < x->book->shape->problem->rows; i++) {
        const fref__row_facts *f = &x->book->facts[i];
        int64_t a = x->book->code_q[i];
        x->es[a] = fmax(x->es[a], f->dead ? 0.0 : f->es);
        x->ew[a] = fmax(x->ew[a], f->dead ? 0.0 : f->ew);
    }
}

int64_t fref__book_width_of_rows(const fref__shape *s)
{
    return VECTORS * s->ld_v + NUMBERS;
}

int fref__book_keys(const fref__book *book, fref__items *rows, const fref__backward *x, const fref__book_total *k,
                    const fref__book_total *v)
{
    const fref__shape *s = book->shape;
    pass all = { .book = book, .x = x, .rows = rows, .k = k, .v = v };
    scratch none;
    int64_t size = cut_scratch(&none, NULL, &all), tiles = (s->keys.count + FREF__BOOK_TILE - 1) / FREF__BOOK_TILE;
    double *memory = malloc((size_t)(size * omp_get_max_threads() + 2 * book->codes->count) * sizeof *memory);
    if (!memory)
        return ENOMEM;
    all.es = memory + size * omp_get_max_threads();
    all.ew = all.es + book->codes->count;
    largest_errors(&all);
    rows->item = row_item;
    fref__items_fill(rows);
#pragma omp parallel for schedule(dynamic)
    for (int64_t tile = 0; tile < tiles; tile++) {
        scratch mine;
        cut_scratch(&mine, memory + omp_get_thread_num() * size, &all);
        int64_t last = (tile + 1) * FREF__BOOK_TILE < s->keys.count ? (tile + 1) * FREF__BOOK_TILE : s->keys.count;
        keys_tile(&all, &mine, tile * FREF__BOOK_TILE, last);
    }
    free(memory);
    return 0;
}

void fref__book_finish(const fref__book_total *total, int64_t count, const fref__precision *to)
{
    for (int64_t n = 0; n < count; n++) {
        double value = fref__clamped(total->value[n], to->max), cast = to->unit_roundoff * fmax(fabs(value), to->tiny);
        bool live = total->bound[n] > 0.0 || isnan(total->bound[n]);
        total->value[n] = value;
        total->variance[n] = live ? sqrt(total->variance[n] + THIRD * cast * cast) : 0.0;
        total->bound[n] += live ? cast : 0.0;
    }
}
