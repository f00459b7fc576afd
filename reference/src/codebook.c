/* fref_codebook: head after head. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"

/* dK or dV of one key or value head, in the caller's arrays where he wants them. */
typedef struct gradient {
    double *value, *sigma, *bound; /* his; NULL: not wanted */
    double *spare[3];              /* in place of those */
    int64_t heads, group, count;   /* elements of a head */
    const fref__precision *type;
} gradient;

static bool start_gradient(gradient *g)
{
    double *const his[] = { g->value, g->sigma, g->bound };
    bool ok = true;
    for (int n = 0; n < 3; n++) {
        g->spare[n] = his[n] ? NULL : malloc((size_t)(g->count + 1) * sizeof(double));
        ok = ok && (his[n] || g->spare[n]);
    }
    return ok;
}

static void end_gradient(const gradient *g)
{
    for (int n = 0; n < 3; n++)
        free(g->spare[n]);
}

/* Query head h's total; zero for the first head of a group. */
static fref__book_total total_of(const gradient *g, int64_t b, int64_t h)
{
    int64_t at = (b * g->heads + h / g->group) * g->count;
    const fref__book_total total = { .value = g->value ? g->value + at : g->spare[0],
                                     .variance = g->sigma ? g->sigma + at : g->spare[1],
                                     .bound = g->bound ? g->bound + at : g->spare[2] };
    double *const parts[] = { total.value, total.variance, total.bound };
    for (int n = 0; n < 3 && h % g->group == 0; n++)
        memset(parts[n], 0, (size_t)g->count * sizeof(double));
    return total;
}

static int keys_of_head(const fref__book *book, fref__items *rows, const fref__backward *x, const gradient *k, const gradient *v)
{
    const fref__book_total of_k = total_of(k, book->b, book->h), of_v = total_of(v, book->b, book->h);
    int status = fref__book_keys(book, rows, x, &of_k, &of_v);
    if (status == 0 && (book->h + 1) % k->group == 0)
        fref__book_finish(&of_k, k->count, k->type);
    if (status == 0 && (book->h + 1) % v->group == 0)
        fref__book_finish(&of_v, v->count, v->type);
    return status;
}

static int run_forward(const fref__shape *s, const fref_codes *codes, const fref__inputs *in, const fref_rounding *r,
                       const fref_forward_out *out)
{
    fref__book book;
    fref__items keys = { 0 };
    const fref_problem *p = s->problem;
    int status = fref__book_create(&book, s, codes, r, false);
    if (status != 0)
        return status;
    status = fref__items_create(&keys, &book, NULL, true, 3 * s->ld_v);
    for (int64_t n = 0; n < p->batch * p->heads_q && status == 0; n++) {
        fref__book_load(&book, in, n / p->heads_q, n % p->heads_q);
        status = fref__book_forward(&book, &keys, out);
    }
    fref__items_destroy(&keys);
    fref__book_destroy(&book);
    return status;
}

static int run_backward(const fref__shape *s, const fref_codes *codes, const fref__inputs *in, const fref_rounding *r,
                        const fref_backward_out *out)
{
    const fref_problem *p = s->problem;
    const fref__backward x = fref__backward_of(s, in, r, out);
    bool of_keys = out->dk || out->dk_sigma || out->dk_bound || out->dv || out->dv_sigma || out->dv_bound;
    gradient k = { out->dk, out->dk_sigma, out->dk_bound, { 0 }, p->heads_k, s->group_k, s->keys.count * p->dim_qk, &x.to_k },
             v = { out->dv, out->dv_sigma, out->dv_bound, { 0 }, p->heads_v, s->group_v, s->keys.count * p->dim_v, &x.to_v };
    fref__book book;
    fref__items keys = { 0 }, rows = { 0 };
    int status = fref__book_create(&book, s, codes, r, true);
    if (status != 0)
        return status;
    if (of_keys && (!start_gradient(&k) || !start_gradient(&v)))
        status = ENOMEM;
    status = status ? status : fref__items_create(&keys, &book, NULL, true, s->ld_v);
    status = status ? status : fref__items_create(&rows, &book, NULL, false, fref__book_width_of_rows(s));
    for (int64_t n = 0; n < p->batch * p->heads_q && status == 0; n++) {
        fref__book_load(&book, in, n / p->heads_q, n % p->heads_q);
        status = fref__book_rows(&book, &keys, &x);
        if (status == 0 && of_keys)
            status = keys_of_head(&book, &rows, &x, &k, &v);
    }
    end_gradient(&k);
    end_gradient(&v);
    fref__items_destroy(&keys);
    fref__items_destroy(&rows);
    fref__book_destroy(&book);
    return status;
}

int fref_codebook(const fref_problem *p, const fref_codes *codes, const fref_tensor *v, const fref_tensor *o,
                  const fref_tensor *stats, const fref_tensor *d_o, const fref_rounding *rounding, const fref_forward_out *forward,
                  const fref_backward_out *backward)
{
    if (p->modify || p->bias || p->alibi || p->sink || p->keep)
        return ENOTSUP;
    const fref__shape shape =
        fref__shape_of(p, fref__sample(p->row_sample, p->row_count, p->rows), fref__sample(p->key_sample, p->key_count, p->keys));
    const fref__inputs of_forward = { .v = v }, of_backward = { .v = v, .o = o, .stats = stats, .d_o = d_o };
    int status = 0;
    if (forward)
        status = run_forward(&shape, codes, &of_forward, rounding, forward);
    if (status == 0 && backward)
        status = run_backward(&shape, codes, &of_backward, rounding, backward);
    return status;
}
