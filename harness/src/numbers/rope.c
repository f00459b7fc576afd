#include "rope.h"

#include <math.h>

#include "arrays.h"
#include "dtype.h"
#include "oracle.h"

/* One cast in 2^10 falls otherwise (sines and cosines good to some steps of fp32 against 2^-8 or 2^-11 of the type), by one step u |x|: together
 * u 2^-5 of the product of the norms, as a root mean square; twice that, as one cast alone may fall in a channel that is larger than the others. */
#define OTHERWISE 0x1p-4

static double unit_roundoff(int32_t dtype)
{
    return dtype == FATTN_BF16 ? 0x1p-8 : dtype == FATTN_F16 ? 0x1p-11 : dtype == FATTN_F32 ? 0x1p-24 : 0x1p-4;
}

void facts_rope_rotate(const facts_problem *p, facts_tensor_id id, const void *storage, const float *angles, float *out)
{
    const facts_tensor *t = &p->tensor[id];
    const int64_t dim = t->dim[3], lanes = p->ask.rope_dim, half = lanes / 2, still = dim - lanes;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < t->dim[0] * t->dim[1] * t->dim[2]; row++) {
        const int64_t s = row % t->dim[2], head = row / t->dim[2];
        const bool there = t->packed == FACTS_PACKED_NOT || s < (t->packed == FACTS_PACKED_Q ? p->len_q : p->len_kv)[head / t->dim[1]];
        const int64_t at = there ? facts_row_at(p, id, head / t->dim[1], s) + head % t->dim[1] * t->stride[1] : 0;
        for (int64_t c = 0; c < dim; c++) {
            const int64_t lane = c - still, other = lane < half ? c + half : c - half;
            double x = there ? facts_decode(t->dtype, facts_load(t->dtype, storage, at + c * t->stride[3])) : 0.0;
            if (there && lane >= 0) {
                const double y = facts_decode(t->dtype, facts_load(t->dtype, storage, at + other * t->stride[3]));
                const double angle = (double)angles[s * lanes + lane % half];
                x = x * cos(angle) + (lane < half ? -y : y) * sin(angle);
            }
            out[row * dim + c] = (float)facts_decode(t->dtype, facts_encode(t->dtype, x));
        }
    }
}

static double norm_of(const float *row, int64_t dim)
{
    double sum = 0;
    for (int64_t c = 0; c < dim; c++)
        sum += (double)row[c] * (double)row[c];
    return sqrt(sum);
}

void facts_rope_weigh(facts_rope *out, const facts_problem *p, float *const rotated[2], double *size, fref_modification inner, const void *owner)
{
    const int64_t rows = p->ask.batch * p->ask.heads_q * p->ask.seq_q, keys = p->ask.batch * p->ask.heads_k * p->ask.seq_kv, dim = p->ask.dim_qk;
    for (int64_t i = 0; i < rows; i++)
        size[i] = norm_of(rotated[0] + i * dim, dim);
    for (int64_t j = 0; j < keys; j++)
        size[rows + j] = norm_of(rotated[1] + j * dim, dim);
    const double descale = facts_is_fp8(p->ask.dtype) ? facts_array_scalar(p, FACTS_ARRAY_DESCALE_Q) * facts_array_scalar(p, FACTS_ARRAY_DESCALE_K) : 1.0;
    *out = (facts_rope){ .problem = p,
                         .rows = size,
                         .keys = size + rows,
                         .share = fabs(facts_oracle_scale(p)) * descale * OTHERWISE * unit_roundoff(p->ask.dtype) / sqrt((double)dim) * 0x1p23,
                         .inner = inner,
                         .inner_owner = owner };
}

fref_modified facts_rope_at(const void *owner, double score, const int64_t at[4])
{
    const facts_rope *r = owner;
    const fattn_problem *ask = &r->problem->ask;
    fref_modified out = r->inner ? r->inner(r->inner_owner, score, at) : (fref_modified){ .value = score, .slope = 1.0 };
    const int64_t key_head = at[1] / (ask->heads_q / ask->heads_k);
    const double row = r->rows[(at[0] * ask->heads_q + at[1]) * ask->seq_q + at[2]], key = r->keys[(at[0] * ask->heads_k + key_head) * ask->seq_kv + at[3]];
    out.rounded += fabs(out.slope) * r->share * row * key;
    return out;
}

void facts_rope_back(const facts_problem *p, facts_tensor_id gradient, const float *angles, double *want, double *sigma, double *bound, double *parts)
{
    const facts_tensor *t = &p->tensor[gradient];
    const int64_t dim = t->dim[3], lanes = p->ask.rope_dim, half = lanes / 2;
    const double u = unit_roundoff(p->ask.grad_dtype);
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < t->dim[0] * t->dim[1] * t->dim[2]; row++)
        for (int64_t lane = 0; lane < half; lane++) {
            const double angle = (double)angles[row % t->dim[2] * lanes + lane], c = cos(angle), s = sin(angle);
            const int64_t i = row * dim + dim - lanes + lane, j = i + half;
            const double x = want[i], y = want[j];
            want[i] = x * c + y * s;
            want[j] = y * c - x * s;
            if (sigma) {
                const double a = sigma[i], b = sigma[j];
                sigma[i] = sqrt(a * a * c * c + b * b * s * s + u * u / 3 * want[i] * want[i]);
                sigma[j] = sqrt(b * b * c * c + a * a * s * s + u * u / 3 * want[j] * want[j]);
            }
            if (parts) { /* a step of x is 2 u |x| at most */
                parts[i] = 2.0 * u * (fabs(x * c) + fabs(y * s));
                parts[j] = 2.0 * u * (fabs(y * c) + fabs(x * s));
            }
            if (bound) {
                const double a = bound[i], b = bound[j];
                bound[i] = a * fabs(c) + b * fabs(s) + u * (fabs(x) + fabs(y));
                bound[j] = b * fabs(c) + a * fabs(s) + u * (fabs(x) + fabs(y));
            }
        }
}
