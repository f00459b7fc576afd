#include "answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void answers_create(answers *a, const data *d, const fref_rounding *rounding)
{
    const fref_problem *p = &d->problem;
    const int64_t rows = p->row_sample ? p->row_count : p->rows,
                  keys = p->key_sample ? p->key_count : p->keys;
    *a = (answers){ .rows = p->batch * p->heads_q * rows };
    a->count_o = a->rows * p->dim_v;
    a->count_dq = a->rows * p->dim_qk;
    a->count_dk = p->batch * p->heads_k * keys * p->dim_qk;
    a->count_dv = p->batch * p->heads_v * keys * p->dim_v;
    a->count_dbias = d->dbias_dim[0] * d->dbias_dim[1] * d->dbias_dim[2] * d->dbias_dim[3];
    memcpy(a->g.dbias_dim, d->dbias_dim, sizeof a->g.dbias_dim);
    struct {
        double **array;
        int64_t count;
    } parts[] = { { &a->f.o, a->count_o },
                  { &a->f.o_sigma, a->count_o },
                  { &a->f.o_bound, a->count_o },
                  { &a->f.lse, a->rows },
                  { &a->f.lse_tau, a->rows },
                  { &a->f.max, a->rows },
                  { &a->f.max_tau, a->rows },
                  { &a->f.sum_exp, a->rows },
                  { &a->f.o_nu, a->rows },
                  { &a->f.o_neff, a->rows },
                  { &a->g.dq_nu, a->rows },
                  { &a->g.dq_neff, a->rows },
                  { &a->g.dk_nu, a->count_dk / p->dim_qk },
                  { &a->g.dk_neff, a->count_dk / p->dim_qk },
                  { &a->g.dv_nu, a->count_dv / p->dim_v },
                  { &a->g.dv_neff, a->count_dv / p->dim_v },
                  { &a->f.amax_s, 3 },
                  { &a->f.amax_o, 3 },
                  { &a->g.amax_dp, 3 },
                  { &a->g.amax_dq, 3 },
                  { &a->g.amax_dk, 3 },
                  { &a->g.amax_dv, 3 },
                  { &a->g.dsink, p->heads_q },
                  { &a->g.dsink_bound, p->heads_q },
                  { &a->g.dq, a->count_dq },
                  { &a->g.dq_sigma, a->count_dq },
                  { &a->g.dq_bound, a->count_dq },
                  { &a->g.dk, a->count_dk },
                  { &a->g.dk_sigma, a->count_dk },
                  { &a->g.dk_bound, a->count_dk },
                  { &a->g.dv, a->count_dv },
                  { &a->g.dv_sigma, a->count_dv },
                  { &a->g.dv_bound, a->count_dv },
                  { &a->g.dbias, a->count_dbias },
                  { &a->g.dbias_sigma, a->count_dbias },
                  { &a->g.dbias_bound, a->count_dbias } };
    size_t n = sizeof parts / sizeof parts[0], total = 0;
    for (size_t i = 0; i < n; i++)
        total += (size_t)parts[i].count;
    a->bytes = total * sizeof(double);
    a->memory = malloc(a->bytes + 1);
    if (!a->memory)
        abort();
    for (size_t i = 0; i < total; i++)
        a->memory[i] = NAN;
    double *at = a->memory;
    for (size_t i = 0; i < n; i++) {
        *parts[i].array = at;
        at += parts[i].count;
    }
    if (fref_forward(p, &d->q, &d->k, &d->v, rounding, &a->f) != 0 ||
        fref_backward(p, &d->q, &d->k, &d->v, &d->o, &d->stats, &d->d_o, rounding, &a->g) != 0)
        abort();
}

void answers_destroy(answers *a)
{
    free(a->memory);
}
