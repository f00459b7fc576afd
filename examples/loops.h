/* Attention as in a textbook, in double: what the examples check themselves against. */
#ifndef EXAMPLES_LOOPS_H
#define EXAMPLES_LOOPS_H

#include "common.h"

/* Tensors are [batch, seq, heads, dim], dense: what the library takes when all strides of a problem
 * are 0. */
typedef struct naive {
    int batch, heads, seq, dim;
    double (*modify)(double score, int b, int h, int row,
                     int key); /* of the scaled score; -INFINITY hides the key. NULL: nothing */
} naive;

static inline size_t naive_count(const naive *n)
{
    return (size_t)n->batch * (size_t)n->seq * (size_t)n->heads * (size_t)n->dim;
}

static inline size_t naive_at(const naive *n, int b, int h, int s)
{
    return (((size_t)b * (size_t)n->seq + (size_t)s) * (size_t)n->heads + (size_t)h) *
           (size_t)n->dim;
}

static inline double naive_causal(double score, int b, int h, int row, int key)
{
    (void)b, (void)h;
    return key <= row ? score : -INFINITY;
}

/* The probabilities of one row. */
static inline void naive_row(const naive *n, const float *q, const float *k, int b, int h, int row,
                             double *p)
{
    double top = -INFINITY, sum = 0;
    for (int key = 0; key < n->seq; key++) {
        double score = 0;
        for (int d = 0; d < n->dim; d++)
            score += (double)q[naive_at(n, b, h, row) + (size_t)d] *
                     (double)k[naive_at(n, b, h, key) + (size_t)d];
        score /= sqrt(n->dim);
        p[key] = n->modify ? n->modify(score, b, h, row, key) : score;
        top = fmax(top, p[key]);
    }
    for (int key = 0; key < n->seq; key++)
        sum += p[key] = exp(p[key] - top);
    for (int key = 0; key < n->seq; key++)
        p[key] /= sum;
}

static inline double *naive_forward(const naive *n, const float *q, const float *k, const float *v)
{
    double *o = example_allocate(naive_count(n) * sizeof *o),
           *p = example_allocate((size_t)n->seq * sizeof *p);
    for (int b = 0; b < n->batch; b++)
        for (int h = 0; h < n->heads; h++)
            for (int row = 0; row < n->seq; row++) {
                naive_row(n, q, k, b, h, row, p);
                for (int key = 0; key < n->seq; key++)
                    for (int d = 0; d < n->dim; d++)
                        o[naive_at(n, b, h, row) + (size_t)d] +=
                            p[key] * (double)v[naive_at(n, b, h, key) + (size_t)d];
            }
    free(p);
    return o;
}

/* Q, K and V of a shape, on the host and on the device, with O and the workspace of a plan: one
 * forward call. */
typedef struct naive_call {
    float *q, *k, *v;
    fattn_tensors tensors;
} naive_call;

static inline naive_call naive_call_create(const naive *n, example e, const fattn_plan *plan)
{
    const size_t count = naive_count(n);
    naive_call c = { .q = example_noise(count, 1),
                     .k = example_noise(count, 2),
                     .v = example_noise(count, 3),
                     .tensors = FATTN_TENSORS_INIT };
    c.tensors.q = example_upload(e, c.q, count);
    c.tensors.k = example_upload(e, c.k, count);
    c.tensors.v = example_upload(e, c.v, count);
    c.tensors.o = example_buffer(e, count * sizeof(uint16_t));
    c.tensors.workspace_bytes = fattn_plan_workspace_bytes(plan);
    c.tensors.workspace = example_buffer(e, c.tensors.workspace_bytes);
    return c;
}

/* Is O what the loops say of Q, K and V as they are now on the host? An exit status. */
static inline int naive_call_check(const naive *n, example e, const naive_call *c, const char *what)
{
    double *want = naive_forward(n, c->q, c->k, c->v);
    const int status = example_verdict(what, example_error(e, c->tensors.o, want, naive_count(n)));
    free(want);
    return status;
}

static inline void naive_call_destroy(example e, naive_call *c)
{
    free(c->q), free(c->k), free(c->v);
    fattn_buffer_destroy(e.context, (void *)(uintptr_t)c->tensors.q);
    fattn_buffer_destroy(e.context, (void *)(uintptr_t)c->tensors.k);
    fattn_buffer_destroy(e.context, (void *)(uintptr_t)c->tensors.v);
    fattn_buffer_destroy(e.context, c->tensors.o);
    fattn_buffer_destroy(e.context, c->tensors.workspace);
}

#endif
