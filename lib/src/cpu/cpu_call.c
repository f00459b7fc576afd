#include "cpu_call.h"

#include "cpu_tile.h"
#include "liars/lies.h"

#include "problem/auxiliary.h"
#include "problem/layout.h"

static int64_t blocks(int64_t extent)
{
    return (extent + 31) / 32;
}

/* Gives a block-scaled tensor its factors; rows are its rows or keys, channels its last dimension.
 */
static void add_blocks(fattn__view *v, const uint8_t *factors, int64_t heads, int64_t rows,
                       int64_t channels, bool along_rows)
{
    const int64_t lines = along_rows ? channels : rows,
                  columns = blocks(along_rows ? rows : channels);
    v->blocks = (fattn__blocks){ .factors = factors,
                                 .heads = heads,
                                 .matrix = fattn__scale_factors(lines, columns),
                                 .column_tiles = (columns + 3) / 4,
                                 .along_rows = along_rows };
}

/* Another copy of a tensor, in a type of its own. */
static fattn__view second(const fattn_problem *p, const fattn_tensors *t, fattn__role which,
                          const void *data, int32_t dtype)
{
    fattn__view v = fattn__view_of(p, t, which, data);
    v.dtype = dtype;
    return v;
}

static void add_mx(fattn__call *c)
{
    const fattn_problem *p = c->p;
    const fattn_tensors *t = c->t;
    const bool backward = p->pass == FATTN_BACKWARD;
    add_blocks(&c->q, t->sf_q, p->heads_q, p->seq_q, p->dim_qk, false);
    add_blocks(&c->k, t->sf_k, p->heads_k, p->seq_kv, p->dim_qk, false);
    add_blocks(&c->v, t->sf_v, p->heads_v, p->seq_kv, p->dim_v, !backward);
    if (!backward)
        return;
    add_blocks(&c->d_o, t->sf_do, p->heads_q, p->seq_q, p->dim_v, false);
    c->do_16 = second(p, t, FATTN__ROLE_DO, t->do_16, p->o_dtype);
    c->q_t = second(p, t, FATTN__ROLE_Q, t->q_t, p->dtype);
    add_blocks(&c->q_t, t->sf_q_t, p->heads_q, p->seq_q, p->dim_qk, true);
    c->k_t = second(p, t, FATTN__ROLE_K, t->k_t, p->dtype);
    add_blocks(&c->k_t, t->sf_k_t, p->heads_k, p->seq_kv, p->dim_qk, true);
    c->do_t = second(p, t, FATTN__ROLE_DO, t->do_t, p->do_dtype);
    add_blocks(&c->do_t, t->sf_do_t, p->heads_q, p->seq_q, p->dim_v, true);
}

static void add_angles(const fattn_problem *p, fattn__view *v, const float *angles)
{
    v->angles = angles;
    v->lanes = p->rope_dim;
}

/* A planted fault: O is written as if it were dense. */
static void ignore_gaps(fattn__call *c)
{
    const int64_t dim[4] = { c->p->batch, c->p->heads_q, c->p->seq_q, c->p->dim_v };
    fattn__dense_strides(dim, "bshd", c->dense_o);
    c->o.stride = c->dense_o;
}

void fattn__call_load_keys(const fattn__call *c, bool of_v, float *dst, const fattn__scores *at)
{
    const fattn_problem *p = c->p;
    const int64_t dim = of_v ? p->dim_v : p->dim_qk, step = fattn__padded(dim);
    const fattn__view *from = of_v ? &c->v : &c->k;
    if (FATTN__TESTING)
        fattn__liar_load_keys(dst, step, from, p,
                              (const int64_t[4]){ at->b, at->h, at->key0, of_v }, at->keys, dim,
                              at->band->exist);
    else
        fattn__view_load(dst, step, from, at->b,
                         at->h / (p->heads_q / (of_v ? p->heads_v : p->heads_k)), at->key0,
                         at->keys, dim);
}

void fattn__call_of(fattn__call *c, const fattn_problem *p, const fattn_tensors *t)
{
    *c = (fattn__call){ .p = p,
                        .t = t,
                        .kernels = fattn__like_gpu.on ? fattn__gpu_kernels(p->dtype)
                                                      : fattn__cpu_kernels() };
#define VIEW(field, role) c->field = fattn__view_of(p, t, FATTN__ROLE_##role, NULL);
    VIEW(q, Q)
    VIEW(k, K)
    VIEW(v, V)
    VIEW(o, O)
    VIEW(stats, STATS)
    VIEW(d_o, DO)
    VIEW(dq, DQ)
    VIEW(dk, DK)
    VIEW(dv, DV)
#undef VIEW
    if (FATTN__LIE(GAP_IGNORED))
        ignore_gaps(c);
    if (fattn__dtype_is_mx(p->dtype))
        add_mx(c);
    if (p->rope) {
        add_angles(p, &c->q, t->rope_q), add_angles(p, &c->q_t, t->rope_q);
        add_angles(p, &c->k, t->rope_k), add_angles(p, &c->k_t, t->rope_k);
    }
    c->dropping = fattn__dropping_of(p, t);
    c->factors = fattn__factors_of(p, t, &c->dropping);
}
