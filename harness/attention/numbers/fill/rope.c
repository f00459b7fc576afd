#include "rope.h"

#include <math.h>

#include "numbers/dtype.h"
#include "places.h"
#include "score_inputs.h"

#define LARGEST_EXPONENT                                                                           \
    60.0 /* no answer means anything long before, and the bound stays a number */

/* The error of fp32 in a sine, a cosine and the two products of a rotation, in units of the lanes'
 * sizes. An angle is an fp32 number; fp32 subtracts its multiple of 2 pi, with an error of 2^-24 of
 * the angle for the quotient and again for the rest. The hardware's sine of the rest is accurate to
 * 2^-21. */
static double fp32_error(double angle)
{
    return 0x1p-21 + 0x1p-23 * fabs(angle);
}

static double cast(int32_t dtype, double x)
{
    return facts_decode(dtype, facts_encode(dtype, x));
}

void facts_rope_rotate(const facts_problem *p, facts_tensor_id id, const void *storage,
                       const float *angles, float *out, float *step)
{
    const facts_tensor *t = &p->tensor[id];
    const int64_t dim = t->dim[3], lanes = p->ask.rope_dim, half = lanes / 2, still = dim - lanes;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < t->dim[0] * t->dim[1] * t->dim[2]; row++) {
        const int64_t s = row % t->dim[2], head = row / t->dim[2];
        const bool there =
            t->packed == FACTS_PACKED_NOT ||
            s < (t->packed == FACTS_PACKED_Q ? p->len_q : p->len_kv)[head / t->dim[1]];
        const int64_t at =
            there ? facts_row_at(p, id, head / t->dim[1], s) + head % t->dim[1] * t->stride[1] : 0;
        for (int64_t c = 0; c < dim; c++) {
            const int64_t lane = c - still, other = lane < half ? c + half : c - half;
            double x = there ? facts_decode(t->dtype,
                                            facts_load(t->dtype, storage, at + c * t->stride[3]))
                             : 0.0,
                   off = 0.0;
            if (there && lane >= 0) {
                const double y = facts_decode(
                    t->dtype, facts_load(t->dtype, storage, at + other * t->stride[3]));
                const double angle = (double)angles[s * lanes + lane % half];
                off = fp32_error(angle) * (fabs(x) + fabs(y));
                x = x * cos(angle) + (lane < half ? -y : y) * sin(angle);
            }
            const double expects = cast(t->dtype, x);
            out[row * dim + c] = (float)expects;
            if (step)
                step[row * dim + c] = (float)fmax(fabs(cast(t->dtype, x + off) - expects),
                                                  fabs(cast(t->dtype, x - off) - expects));
        }
    }
}

static void mark(bool *out, const float *step, int64_t rows, int64_t dim)
{
    for (int64_t row = 0; row < rows; row++) {
        out[row] = false;
        for (int64_t c = 0; c < dim; c++)
            out[row] |= step[row * dim + c] != 0.0f;
    }
}

void facts_rope_weigh(facts_rope *out, const facts_problem *p, float *const rotated[2],
                      float *const step[2], bool *uncertain, fref_modification inner,
                      const void *owner)
{
    const int64_t rows = p->ask.batch * p->ask.heads_q * p->ask.seq_q,
                  keys = p->ask.batch * p->ask.heads_k * p->ask.seq_kv;
    mark(uncertain, step[0], rows, p->ask.dim_qk);
    mark(uncertain + rows, step[1], keys, p->ask.dim_qk);
    const double descale = facts_is_fp8(p->ask.dtype)
                               ? facts_array_scalar(p, FACTS_ARRAY_DESCALE_Q) *
                                     facts_array_scalar(p, FACTS_ARRAY_DESCALE_K)
                               : 1.0;
    *out = (facts_rope){ .problem = p,
                         .rotated = { rotated[0], rotated[1] },
                         .step = { step[0], step[1] },
                         .uncertain = { uncertain, uncertain + rows },
                         .share = fabs(facts_oracle_scale(p)) * descale * 0x1p23,
                         .inner = inner,
                         .inner_owner = owner };
}

/* |(q + dq).(k + dk) - q.k| is at most the sum over the channels of |dq| |k| + (|q| + |dq|) |dk|.
 */
static double may_differ(const facts_rope *r, int64_t row, int64_t key)
{
    const int64_t dim = r->problem->ask.dim_qk;
    const float *q = r->rotated[0] + row * dim, *k = r->rotated[1] + key * dim,
                *dq = r->step[0] + row * dim, *dk = r->step[1] + key * dim;
    double sum = 0.0;
    for (int64_t c = 0; c < dim && (r->uncertain[0][row] || r->uncertain[1][key]); c++)
        sum += (double)dq[c] * fabs((double)k[c]) +
               (fabs((double)q[c]) + (double)dq[c]) * (double)dk[c];
    return sum;
}

fref_modified facts_rope_at(const void *owner, double score, const int64_t at[4])
{
    const facts_rope *r = owner;
    const fattn_problem *ask = &r->problem->ask;
    fref_modified out = r->inner ? r->inner(r->inner_owner, score, at)
                                 : (fref_modified){ .value = score, .slope = 1.0 };
    const int64_t key_head = at[1] / (ask->heads_q / ask->heads_k);
    const int64_t row = (at[0] * ask->heads_q + at[1]) * ask->seq_q + at[2],
                  key = (at[0] * ask->heads_k + key_head) * ask->seq_kv + at[3];
    /* A weight grows by exp(off) - 1, which is more than off where a step of the cast moves a logit
     * by 1 and more. */
    const double off = fabs(out.slope) * r->share * may_differ(r, row, key) * 0x1p-23;
    out.rounded += 0x1p23 * expm1(fmin(off, LARGEST_EXPONENT));
    return out;
}

void facts_rope_back(const facts_problem *p, facts_tensor_id gradient, const float *angles,
                     double *want, double *sigma, double *bound, double *parts)
{
    const facts_tensor *t = &p->tensor[gradient];
    const int64_t dim = t->dim[3], lanes = p->ask.rope_dim, half = lanes / 2;
    const double u = facts_dtype_roundoff(p->ask.grad_dtype);
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < t->dim[0] * t->dim[1] * t->dim[2]; row++)
        for (int64_t lane = 0; lane < half; lane++) {
            const double angle = (double)angles[row % t->dim[2] * lanes + lane], c = cos(angle),
                         s = sin(angle);
            const int64_t i = row * dim + dim - lanes + lane, j = i + half;
            const double x = want[i], y = want[j];
            want[i] = x * c + y * s;
            want[j] = y * c - x * s;
            const double off = fp32_error(angle) * (fabs(x) + fabs(y));
            if (sigma) {
                const double a = sigma[i], b = sigma[j];
                sigma[i] =
                    sqrt(a * a * c * c + b * b * s * s + u * u / 3 * want[i] * want[i] + off * off);
                sigma[j] =
                    sqrt(b * b * c * c + a * a * s * s + u * u / 3 * want[j] * want[j] + off * off);
            }
            if (parts) { /* a step of x is 2 u |x| at most */
                parts[i] = 2.0 * u * (fabs(x * c) + fabs(y * s));
                parts[j] = 2.0 * u * (fabs(y * c) + fabs(x * s));
            }
            if (bound) {
                const double a = bound[i], b = bound[j];
                bound[i] = a * fabs(c) + b * fabs(s) + u * (fabs(x) + fabs(y)) + off;
                bound[j] = b * fabs(c) + a * fabs(s) + u * (fabs(x) + fabs(y)) + off;
            }
        }
}
