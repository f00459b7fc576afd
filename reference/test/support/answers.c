#include "answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void answers_at(answers *a, double *memory)
{
#define PLACE(out, member, name, count)                                                            \
    a->out.member = memory;                                                                        \
    memory += a->count;
    ANSWER_LIST(PLACE)
#undef PLACE
}

void answers_create(answers *a, const data *d, const fref_rounding *rounding)
{
    const fref_problem *p = &d->problem;
    const int64_t rows = p->row_sample ? p->row_count : p->rows,
                  keys = p->key_sample ? p->key_count : p->keys;
    *a = (answers){ .rows = p->batch * p->heads_q * rows,
                    .lines_k = p->batch * p->heads_k * keys,
                    .lines_v = p->batch * p->heads_v * keys,
                    .heads = p->heads_q,
                    .three = 3 };
    a->count_o = a->rows * p->dim_v;
    a->count_dq = a->rows * p->dim_qk;
    a->count_dk = a->lines_k * p->dim_qk;
    a->count_dv = a->lines_v * p->dim_v;
    a->count_dbias = d->dbias_dim[0] * d->dbias_dim[1] * d->dbias_dim[2] * d->dbias_dim[3];
    memcpy(a->g.dbias_dim, d->dbias_dim, sizeof a->g.dbias_dim);
    int64_t total = 0;
#define ADD(out, member, name, count) total += a->count;
    ANSWER_LIST(ADD)
#undef ADD
    a->bytes = (size_t)total * sizeof(double);
    a->memory = malloc(a->bytes + 1);
    if (!a->memory)
        abort();
    for (int64_t i = 0; i < total; i++)
        a->memory[i] = NAN;
    answers_at(a, a->memory);
    if (fref_forward(p, &d->q, &d->k, &d->v, rounding, &a->f) != 0 ||
        fref_backward(p, &d->q, &d->k, &d->v, &d->o, &d->stats, &d->d_o, rounding, &a->g) != 0)
        abort();
}

void answers_destroy(answers *a)
{
    free(a->memory);
}
