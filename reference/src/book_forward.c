/* O, LSE, Max, Sum_exp of rows whose keys have few codes; forward.c says what each term is.
 *
 * With W_b = exp(s_b - Max), cnt_b keys of code b and sums PV_b of v, PA_b of |v|, PQ_b of v^2 over them:
 *
 *   Sum_exp = sum_b W_b cnt_b     p_b = W_b / Sum_exp     O = sum_b p_b PV_b     sum p|v| = sum_b p_b PA_b
 *
 * Keys of one code have one score, so one rounding of P and one error of s: what they have in common adds before it is squared,
 *   sum_j p^2 v^2  becomes  max( sum_b (p_b PV_b)^2, sum_b p_b^2 PQ_b )
 */
#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"

typedef struct row_facts {
    double max, sum, lse, es, ew, eta, el, nt;
} row_facts;

typedef struct scratch {
    double *p;                                                   /* [count] */
    double *o, *pv, *shared, *single, *lost, *floor_v, *floor_2; /* [ld_v] */
    double *window;
} scratch;

typedef struct pass {
    const fref__book *book;
    fref__items *keys;
    const fref_forward_out *out;
    fref__precision in, to;
    double gamma;
} pass;

static int64_t cut_scratch(scratch *t, double *base, const pass *x)
{
    int64_t ld = x->book->shape->ld_v;
    const fref__part parts[] = {
        { &t->p, x->book->codes->count },
        { &t->o, ld },
        { &t->pv, ld },
        { &t->shared, ld },
        { &t->single, ld },
        { &t->lost, ld },
        { &t->floor_v, ld },
        { &t->floor_2, ld },
        { &t->window, fref__window_doubles(x->keys) },
    };
    return fref__cut(parts, sizeof parts / sizeof parts[0], base);
}

static bool key_item(double *out, const fref__book *x, int64_t j)
{
    int64_t ld = x->shape->ld_v;
    const double *v = x->v + j * ld;
    for (int64_t c = 0; c < ld; c++) {
        out[c] = v[c];
        out[ld + c] = fabs(v[c]);
        out[2 * ld + c] = v[c] * v[c];
    }
    return true;
}

static row_facts facts_of(const pass *x, const scratch *t, const fref__window *w, int64_t i, int64_t row, int64_t n)
{
    const fref__book *book = x->book;
    const fref_problem *p = book->shape->problem;
    const fref_rounding *r = book->rounding;
    int64_t m = book->codes->count, a = book->code_q[i], width = x->keys->width + 1;
    const double *score = book->score + a * m;
    row_facts f = { .max = -INFINITY };
    double largest = 0.0, longest = 0.0, pull = 0.0, squares = 0.0;
    for (int64_t b = 0; b < m; b++) {
        if (w->sums[b * width + width - 1] < 0.5)
            continue;
        f.max = fmax(f.max, score[b]);
        largest = fmax(largest, fabs(score[b]));
        longest = fmax(longest, book->norm_kappa[b]);
    }
    for (int64_t b = 0; b < m; b++) {
        double count = w->sums[b * width + width - 1];
        t->p[b] = count < 0.5 ? 0.0 : exp(score[b] - f.max);
        f.sum += t->p[b] * count;
        squares += t->p[b] * t->p[b] * count;
        pull += t->p[b] * fabs(score[b]) * count;
    }
    for (int64_t b = 0; b < m; b++)
        t->p[b] /= f.sum;
    f.lse = f.max + log(f.sum);
    double nck = fref__at_least_1((double)p->dim_qk / r->chunk), qk = fabs(p->scale) * book->norm_rho[a] * longest;
    double norm_p = sqrt(squares) / f.sum;
    f.nt = fref__at_least_1(ceil((double)n / 64.0));
    f.es = r->ua * sqrt(nck) * qk + E32 * (largest + 2.0);
    f.ew = r->cw * r->ua * nck * qk + E32 * (2.0 * largest + 4.0);
    f.eta = r->p_normalised ? x->in.eta : x->in.eta / f.sum;
    f.el = E32 * (sqrt(f.nt) + 3.0);
    double values[] = { f.lse, f.max, f.sum,
                        E32 * (fabs(f.max) + fabs(f.lse) + 4.0 + sqrt(f.nt) / 2.0) +
                            r->cl * r->ua * (nck / 2.0 * pull / f.sum + 1.5 * sqrt(nck) * qk * norm_p) +
                            r->eps_exp * fmin(1.0, 4.0 * norm_p + 0.1),
                        E32 * (2.0 * fabs(f.max) + 2.0) + 2.0 * r->cl * r->ua * sqrt(nck) * qk };
    double *const to[] = { x->out->lse, x->out->max, x->out->sum_exp, x->out->lse_tau, x->out->max_tau };
    for (size_t k = 0; k < 5; k++)
        if (to[k])
            to[k][row] = values[k];
    return f;
}

FREF__CLONES static void add_code(const scratch *t, const double *restrict sums, int64_t ld, double p, double eta)
{
    double *restrict o = t->o, *restrict pv = t->pv, *restrict shared = t->shared, *restrict single = t->single;
    double *restrict floor_v = t->floor_v, *restrict floor_2 = t->floor_2;
    for (int64_t c = 0; c < ld; c++) {
        double one = p * sums[c];
        o[c] += one;
        pv[c] += p * sums[ld + c];
        shared[c] += one * one;
        single[c] += p * p * sums[2 * ld + c];
        floor_v[c] += sums[ld + c];
        floor_2[c] += sums[2 * ld + c];
    }
    if (p < 1.01 * eta)
        for (int64_t c = 0; c < ld; c++)
            t->lost[c] += p * sums[c];
}

static void write_row(const pass *x, const scratch *t, const row_facts *f, int64_t row)
{
    const fref_problem *p = x->book->shape->problem;
    const fref_forward_out *out = x->out;
    double acc_pv = x->book->rounding->acc_pv, up = x->in.unit_roundoff;
    double per_pv = acc_pv > 0.0 ? acc_pv : E32 * (sqrt(f->nt) + 1.0), worst = acc_pv > 0.0 ? 2.0 : sqrt(f->nt);
    for (int64_t c = 0; c < p->dim_v; c++) {
        int64_t at = row * p->dim_v + c;
        double exact = x->gamma * t->o[c], o = fref__clamped(exact, x->to.max), pv = x->gamma * t->pv[c];
        double so = x->to.unit_roundoff * fmax(fabs(o), x->to.tiny), a = per_pv * pv, el_o = f->el * exact,
               es_pv = f->es / 4.0 * pv;
        double lost = x->gamma * t->lost[c];
        double terms =
            (THIRD * up * up + 4.0 * f->es * f->es) * fmax(t->shared[c], t->single[c]) + THIRD * f->eta * f->eta * t->floor_2[c];
        if (out->o)
            out->o[at] = o;
        if (out->o_sigma)
            out->o_sigma[at] =
                sqrt(x->gamma * x->gamma * terms + THIRD * so * so + es_pv * es_pv + el_o * el_o + a * a + lost * lost);
        if (out->o_bound)
            out->o_bound[at] = (up + 2.0 * f->ew) * pv + x->gamma * f->eta * t->floor_v[c] + so + fabs(el_o) + a * worst;
    }
}

static void write_dead_row(const pass *x, int64_t row)
{
    int64_t dim = x->book->shape->problem->dim_v;
    double *const wide[] = { x->out->o, x->out->o_sigma, x->out->o_bound }, *const one[] = { x->out->sum_exp, x->out->lse_tau,
                                                                                             x->out->max_tau };
    double *const minus[] = { x->out->lse, x->out->max };
    for (size_t n = 0; n < 3; n++)
        if (wide[n])
            memset(wide[n] + row * dim, 0, (size_t)dim * sizeof(double));
    for (size_t n = 0; n < 3; n++)
        if (one[n])
            one[n][row] = 0.0;
    for (size_t n = 0; n < 2; n++)
        if (minus[n])
            minus[n][row] = -INFINITY;
}

static void forward_row(const pass *x, const scratch *t, fref__window *w, int64_t r)
{
    const fref__book *book = x->book;
    const fref__shape *s = book->shape;
    int64_t i = fref__place(&s->rows, r), row = (book->b * s->problem->heads_q + book->h) * s->rows.count + r, ld = s->ld_v;
    fref__range keys;
    fref_keys_of_row(s->problem, book->b, i, &keys.first, &keys.last);
    if (keys.first == keys.last) {
        write_dead_row(x, row);
        return;
    }
    fref__window_move(w, x->keys, keys);
    const row_facts f = facts_of(x, t, w, i, row, keys.last - keys.first);
    memset(t->o, 0, (size_t)(7 * ld) * sizeof(double)); /* o .. floor_2 lie one after the other */
    for (int64_t b = 0; b < book->codes->count; b++)
        if (w->sums[(b + 1) * (x->keys->width + 1) - 1] > 0.5)
            add_code(t, w->sums + b * (x->keys->width + 1), ld, t->p[b], f.eta);
    write_row(x, t, &f, row);
}

int fref__book_forward(const fref__book *book, fref__items *keys, const fref_forward_out *out)
{
    const fref__shape *s = book->shape;
    const fref_scales *scales = &s->problem->scales;
    pass x = { .book = book,
               .keys = keys,
               .out = out,
               .in = fref__precision_scaled(book->rounding->in, fref__or_1(scales->scale_s) * exp2(-book->rounding->thr)),
               .to = fref__precision_scaled(book->rounding->out, scales->scale_o),
               .gamma = fref__or_1(scales->scale_s) * fref__or_1(scales->descale_s) };
    keys->item = key_item;
    fref__items_fill(keys);
    scratch none;
    int64_t size = cut_scratch(&none, NULL, &x), tiles = (s->rows.count + FREF__BOOK_TILE - 1) / FREF__BOOK_TILE;
    double *memory = malloc((size_t)(size * omp_get_max_threads()) * sizeof *memory);
    if (!memory)
        return ENOMEM;
#pragma omp parallel for schedule(dynamic)
    for (int64_t tile = 0; tile < tiles; tile++) {
        scratch mine;
        fref__window window;
        cut_scratch(&mine, memory + omp_get_thread_num() * size, &x);
        fref__window_start(&window, keys, mine.window);
        int64_t last = (tile + 1) * FREF__BOOK_TILE < s->rows.count ? (tile + 1) * FREF__BOOK_TILE : s->rows.count;
        for (int64_t r = tile * FREF__BOOK_TILE; r < last; r++)
            forward_row(&x, &mine, &window, r);
    }
    free(memory);
    return 0;
}
