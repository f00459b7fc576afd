#include "book.h"

#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static fref__part *parts_of(fref__part parts[16], fref__book *x, bool backward)
{
    const fref__shape *s = x->shape;
    const fref_problem *p = s->problem;
    int64_t m = x->codes->count, rows = backward ? p->rows : 0;
    const fref__part all[16] = { { &x->score, m * m },
                                 { &x->rho, m * s->ld_qk },
                                 { &x->kappa, m * s->ld_qk },
                                 { &x->norm_rho, m },
                                 { &x->norm_kappa, m },
                                 { &x->top, m },
                                 { &x->v, p->keys * s->ld_v },
                                 { &x->norms_v.of, p->keys },
                                 { &x->norms_v.peak, p->keys / FREF__PEAK_KEYS + 1 },
                                 { &x->moment_v, backward ? s->ld_v * s->ld_v : 0 },
                                 { &x->d_o, rows * s->ld_v },
                                 { &x->moment_d_o, backward ? s->ld_v * s->ld_v : 0 },
                                 { &x->stats, rows },
                                 { &x->row, omp_get_max_threads() * s->ld_v } };
    memcpy(parts, all, sizeof all);
    return parts;
}

#define PARTS 14

int fref__book_create(fref__book *out, const fref__shape *shape, const fref_codes *codes, const fref_rounding *rounding,
                      bool backward)
{
    const fref_problem *p = shape->problem;
    fref__part parts[16];
    *out = (fref__book){ .shape = shape, .codes = codes, .rounding = rounding, .backward = backward };
    out->memory = malloc((size_t)fref__cut(parts_of(parts, out, backward), PARTS, NULL) * sizeof *out->memory);
    out->facts = malloc((size_t)(backward ? p->rows + 1 : 1) * sizeof *out->facts);
    out->keys_of_code = malloc((size_t)(p->keys + p->rows + 2 * (codes->count + 1)) * sizeof *out->keys_of_code);
    if (!out->memory || !out->facts || !out->keys_of_code) {
        fref__book_destroy(out);
        return ENOMEM;
    }
    fref__cut(parts, PARTS, out->memory);
    out->rows_of_code = out->keys_of_code + p->keys;
    out->first_key = out->rows_of_code + p->rows;
    out->first_row = out->first_key + codes->count + 1;
    return 0;
}

void fref__book_destroy(fref__book *x)
{
    free(x->memory);
    free(x->facts);
    free(x->keys_of_code);
}

double fref__dot(const double *x, const double *y, int64_t n)
{
    double lane[8] = { 0 };
    for (int64_t c = 0; c < n; c += 8)
        for (int l = 0; l < 8; l++)
            lane[l] += x[c + l] * y[c + l];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

void fref__quadratic(double *out, const double *x, const double *moment, int64_t rows, int64_t ld, double *scratch)
{
    memset(scratch, 0, (size_t)(rows * ld) * sizeof *scratch);
    const fref__operands product = { .rows = rows,
                                     .columns = ld,
                                     .inner = ld,
                                     .a = x,
                                     .a_row = ld,
                                     .a_inner = 1,
                                     .b = moment,
                                     .b_panel = FREF__LANES,
                                     .b_inner = ld,
                                     .c = scratch,
                                     .c_row = ld };
    fref__add_product(&product, FREF__OF_VALUE);
    for (int64_t r = 0; r < rows; r++)
        out[r] = fref__dot(scratch + r * ld, x + r * ld, ld);
}

fref__range fref__places_of(const int64_t *places, const int64_t *first, int64_t code, fref__range range)
{
    const fref__list list = { places + first[code], first[code + 1] - first[code] };
    fref__range found = fref__listed(&list, range);
    return (fref__range){ first[code] + found.first, first[code] + found.last };
}

fref__range fref__rows_of_key(const fref_problem *p, int64_t b, int64_t j)
{
    int64_t len_q = p->len_q && p->len_q[b] < p->rows ? p->len_q[b] : p->rows, len_kv = p->len_kv ? p->len_kv[b] : p->keys;
    int64_t at = j - (p->bottom_right ? len_kv - (p->len_q ? p->len_q[b] : p->rows) : 0);
    fref__range rows = { 0, len_q };
    if (p->has_right && at - p->right > rows.first)
        rows.first = at - p->right;
    if (p->has_left && p->left < p->keys + p->rows && at + p->left < rows.last)
        rows.last = at + p->left;
    return j < len_kv && rows.first < rows.last ? rows : (fref__range){ 0, 0 };
}

/* Places 0 .. n-1 by their codes. */
static void sort(int64_t *places, int64_t *first, const uint8_t *code, int64_t n, int64_t codes)
{
    memset(first, 0, (size_t)(codes + 1) * sizeof *first);
    for (int64_t i = 0; i < n; i++)
        first[code[i] + 1]++;
    for (int64_t c = 0; c < codes; c++)
        first[c + 1] += first[c];
    for (int64_t i = 0; i < n; i++)
        places[first[code[i]]++] = i;
    for (int64_t c = codes; c > 0; c--)
        first[c] = first[c - 1];
    first[0] = 0;
}

static void load_codes(fref__book *x, int64_t h_k)
{
    const fref__shape *s = x->shape;
    const fref_problem *p = s->problem;
    const fref_codes *codes = x->codes;
    int64_t m = codes->count;
    memset(x->rho, 0, (size_t)(m * s->ld_qk) * sizeof(double));
    memset(x->kappa, 0, (size_t)(m * s->ld_qk) * sizeof(double));
    for (int64_t c = 0; c < m; c++) {
        fref__read_row(x->rho + c * s->ld_qk, codes->rho, x->b, x->h, c, p->dim_qk);
        fref__read_row(x->kappa + c * s->ld_qk, codes->kappa, x->b, h_k, c, p->dim_qk);
        x->norm_rho[c] = sqrt(fref__dot(x->rho + c * s->ld_qk, x->rho + c * s->ld_qk, s->ld_qk));
        x->norm_kappa[c] = sqrt(fref__dot(x->kappa + c * s->ld_qk, x->kappa + c * s->ld_qk, s->ld_qk));
    }
    for (int64_t a = 0; a < m; a++) {
        x->top[a] = -INFINITY;
        for (int64_t c = 0; c < m; c++) {
            double score = p->scale * fref__dot(x->rho + a * s->ld_qk, x->kappa + c * s->ld_qk, s->ld_qk);
            x->score[a * m + c] = score;
            x->top[a] = score > x->top[a] ? score : x->top[a];
        }
    }
    x->code_q = codes->a + x->b * codes->stride_a[0] + x->h * codes->stride_a[1];
    x->code_k = codes->b + x->b * codes->stride_b[0] + h_k * codes->stride_b[1];
    sort(x->keys_of_code, x->first_key, x->code_k, p->keys, m);
    sort(x->rows_of_code, x->first_row, x->code_q, p->rows, m);
}

/* The mean of x x^T over `live` rows; the others are zero. */
static void moment_of(double *out, const double *x, int64_t n, int64_t ld, int64_t live)
{
    memset(out, 0, (size_t)(ld * ld) * sizeof *out);
    const fref__operands product = { .rows = ld,
                                     .columns = ld,
                                     .inner = n,
                                     .a = x,
                                     .a_row = 1,
                                     .a_inner = ld,
                                     .b = x,
                                     .b_panel = FREF__LANES,
                                     .b_inner = ld,
                                     .c = out,
                                     .c_row = ld };
    fref__add_product(&product, FREF__OF_VALUE);
    for (int64_t c = 0; c < ld * ld; c++)
        out[c] /= (double)(live > 0 ? live : 1);
}

static void load_values(fref__book *x, const fref_tensor *v, int64_t h_v)
{
    const fref__shape *s = x->shape;
    const fref_problem *p = s->problem;
    int64_t live = 0;
#pragma omp parallel for reduction(+ : live)
    for (int64_t block = 0; block < p->keys / FREF__PEAK_KEYS + 1; block++) {
        int64_t last = (block + 1) * FREF__PEAK_KEYS < p->keys ? (block + 1) * FREF__PEAK_KEYS : p->keys;
        x->norms_v.peak[block] = 0.0;
        for (int64_t j = block * FREF__PEAK_KEYS; j < last; j++) {
            double *row = x->v + j * s->ld_v;
            fref__range rows = fref__rows_of_key(p, x->b, j);
            memset(row, 0, (size_t)s->ld_v * sizeof *row);
            if (rows.first < rows.last)
                fref__read_row(row, v, x->b, h_v, j, p->dim_v);
            live += rows.first < rows.last;
            x->norms_v.of[j] = sqrt(fref__dot(row, row, s->ld_v));
            x->norms_v.peak[block] = fmax(x->norms_v.peak[block], x->norms_v.of[j]);
        }
    }
    if (x->backward)
        moment_of(x->moment_v, x->v, p->keys, s->ld_v, live);
}

/* As facts_of_row of backward_rows.c. */
static fref__row_facts facts_of(const fref__book *x, const double *d_o, const double *o, int64_t i, fref__range keys)
{
    const fref__shape *s = x->shape;
    const fref_problem *p = s->problem;
    const fref_rounding *r = x->rounding;
    int64_t m = x->codes->count, a = x->code_q[i];
    double largest = 0.0, longest = 0.0, delta = 0.0, size = 0.0, squares = 0.0;
    for (int64_t c = 0; c < m; c++) {
        fref__range places = fref__places_of(x->keys_of_code, x->first_key, c, keys);
        if (places.first == places.last)
            continue;
        largest = fmax(largest, fabs(x->score[a * m + c]));
        longest = fmax(longest, x->norm_kappa[c]);
    }
    for (int64_t c = 0; c < p->dim_v; c++) {
        double term = d_o[c] * o[c];
        delta += term;
        size += fabs(term);
        squares += term * term;
    }
    double nck = fref__at_least_1((double)p->dim_qk / r->chunk), nv = fref__at_least_1((double)p->dim_v / 16.0);
    double qk = fabs(p->scale) * x->norm_rho[a] * longest, stats = fabs(x->stats[i]);
    double norm_d_o = sqrt(fref__dot(d_o, d_o, s->ld_v)), dov = norm_d_o * fref__longest(&x->norms_v, keys);
    return (fref__row_facts){
        .delta = delta,
        .es = r->ua * sqrt(nck) * qk + E32 * (largest + stats + 2.0),
        .ew = r->cw * r->ua * nck * qk + E32 * (2.0 * largest + 2.0 * stats + 4.0),
        .ep = r->ua * sqrt(nv) * dov,
        .ez = r->ua * nv * dov,
        .edelta = E32 * sqrt((double)p->dim_v) * size,
        .eo = r->own_o ? 0.0 : fref__precision_of(r->in).unit_roundoff * sqrt(squares * THIRD),
        .norm_q = x->norm_rho[a],
        .norm_d_o = norm_d_o,
    };
}

static void load_row(fref__book *x, const fref__inputs *in, int64_t i, double *o)
{
    const fref__shape *s = x->shape;
    double *d_o = x->d_o + i * s->ld_v;
    fref__range keys;
    fref_keys_of_row(s->problem, x->b, i, &keys.first, &keys.last);
    memset(d_o, 0, (size_t)s->ld_v * sizeof *d_o);
    x->stats[i] = -INFINITY;
    x->facts[i] = (fref__row_facts){ .dead = true };
    if (keys.first == keys.last)
        return;
    fref__read_row(&x->stats[i], in->stats, x->b, x->h, i, 1);
    if (x->stats[i] == -INFINITY)
        return;
    fref__read_row(d_o, in->d_o, x->b, x->h, i, s->problem->dim_v);
    fref__read_row(o, in->o, x->b, x->h, i, s->problem->dim_v);
    x->facts[i] = facts_of(x, d_o, o, i, keys);
}

void fref__book_load(fref__book *x, const fref__inputs *in, int64_t b, int64_t h)
{
    const fref__shape *s = x->shape;
    const fref_problem *p = s->problem;
    x->b = b;
    x->h = h;
    load_codes(x, h / s->group_k);
    load_values(x, in->v, h / s->group_v);
    if (!in->d_o)
        return;
    int64_t live = 0;
#pragma omp parallel for reduction(+ : live)
    for (int64_t tile = 0; tile < (p->rows + FREF__BOOK_TILE - 1) / FREF__BOOK_TILE; tile++) {
        double *o = x->row + omp_get_thread_num() * s->ld_v;
        int64_t last = (tile + 1) * FREF__BOOK_TILE < p->rows ? (tile + 1) * FREF__BOOK_TILE : p->rows;
        for (int64_t i = tile * FREF__BOOK_TILE; i < last; i++) {
            load_row(x, in, i, o);
            live += !x->facts[i].dead;
        }
    }
    moment_of(x->moment_d_o, x->d_o, p->rows, s->ld_v, live);
}
