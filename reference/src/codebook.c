#include <fref/codebook.h>

#include <errno.h>
#include <stdlib.h>

#include "number.h"

/* The vectors that the codes stand for, f32: [batch, heads, s, dim]. Returns false when memory is short. */
static bool spell(fref_tensor *out, const fref_tensor *book, const uint8_t *code, const int64_t stride[2], const int64_t dim[4])
{
    float *data = malloc((size_t)(dim[0] * dim[1] * dim[2] * dim[3] + 1) * sizeof *data), *to = data;
    double *row = malloc((size_t)(dim[3] + 1) * sizeof *row);
    *out = (fref_tensor){
        .data = data, .type = FREF_F32, .stride = { dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1 }, .descale = book->descale
    };
    fref_tensor plain = *book;
    plain.descale = 1.0;
    for (int64_t n = 0; data && row && n < dim[0] * dim[1] * dim[2]; n++) {
        int64_t b = n / dim[2] / dim[1], h = n / dim[2] % dim[1];
        fref__read_row(row, &plain, b, h, code[b * stride[0] + h * stride[1] + n % dim[2]], dim[3]);
        for (int64_t c = 0; c < dim[3]; c++)
            *to++ = (float)row[c];
    }
    bool ok = data && row;
    free(row);
    return ok;
}

int fref_codebook(const fref_problem *p, const fref_codes *codes, const fref_tensor *v, const fref_tensor *o,
                  const fref_tensor *stats, const fref_tensor *d_o, const fref_rounding *rounding, const fref_forward_out *forward,
                  const fref_backward_out *backward)
{
    if (p->modify || p->bias || p->alibi || p->sink || p->keep)
        return ENOTSUP;
    fref_tensor q = { 0 }, k = { 0 };
    const int64_t dim_q[4] = { p->batch, p->heads_q, p->rows, p->dim_qk }, dim_k[4] = { p->batch, p->heads_k, p->keys, p->dim_qk };
    bool ok = spell(&q, codes->rho, codes->a, codes->stride_a, dim_q) && spell(&k, codes->kappa, codes->b, codes->stride_b, dim_k);
    int status = ok ? 0 : ENOMEM;
    if (status == 0 && forward)
        status = fref_forward(p, &q, &k, v, rounding, forward);
    if (status == 0 && backward)
        status = fref_backward(p, &q, &k, v, o, stats, d_o, rounding, backward);
    free((void *)(uintptr_t)q.data);
    free((void *)(uintptr_t)k.data);
    return status;
}
