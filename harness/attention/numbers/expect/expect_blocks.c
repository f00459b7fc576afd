#include "expect_blocks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/dtype.h"

#define PARTS 3
#define P_SCALE 256.0 /* before P is cast; cudnn-frontend's reference results have it */

/* One tensor made of three: the tensor in each part; FACTS_TENSOR_COUNT: zeros. */
typedef struct joint {
    facts_tensor_id part[PARTS];
    fref_tensor tensor;
    float *data;
} joint;

static double decoded(const facts_whole *w, const facts_problem *p, facts_tensor_id id,
                      const int64_t at[4])
{
    const fref_tensor *t = &w->tensor[id];
    const int64_t place =
        at[0] * t->stride[0] + at[1] * t->stride[1] + at[2] * t->stride[2] + at[3] * t->stride[3];
    return facts_is_mx(p->tensor[id].dtype)
               ? (double)((const float *)t->data)[place]
               : facts_decode(p->tensor[id].dtype, facts_load(p->tensor[id].dtype, t->data, place));
}

static bool make_joint(joint *out, const facts_whole *w, const facts_problem *p,
                       facts_tensor_id like)
{
    const int64_t *dim = p->tensor[like].dim, rows = dim[0] * dim[1] * dim[2],
                  wide = PARTS * dim[3];
    out->data = calloc((size_t)(rows * wide) + 1, sizeof *out->data);
    out->tensor = (fref_tensor){ .data = out->data,
                                 .type = FREF_F32,
                                 .stride = { dim[1] * dim[2] * wide, dim[2] * wide, wide, 1 } };
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < wide && out->data; c++) {
            const int64_t at[4] = { row / (dim[1] * dim[2]), row / dim[2] % dim[1], row % dim[2],
                                    c % dim[3] };
            const facts_tensor_id from = out->part[c / dim[3]];
            out->data[row * wide + c] =
                from == FACTS_TENSOR_COUNT ? 0.0f : (float)decoded(w, p, from, at);
        }
    return out->data != NULL;
}

/* One answer: its array, the sum that is computed, and the part of the tripled channels that it is.
 */
typedef struct answer {
    double *out[3], *wide[3]; /* value, sigma, bound */
    double *nu, *amax;
    facts_tensor_id id;
    int part;
} answer;

static bool make_answer(answer *a, const facts_problem *p)
{
    const int64_t *dim = p->tensor[a->id].dim;
    const size_t count = (size_t)(dim[0] * dim[1] * dim[2] * dim[3] * PARTS) + 1;
    for (int n = 0; n < 3; n++) {
        bool wanted = a->out[n] || (a->amax && n != 1);
        a->wide[n] = wanted ? malloc(count * sizeof *a->wide[n]) : NULL;
        if (wanted && !a->wide[n])
            return false;
    }
    return true;
}

/* The wanted part; the errors of a row are of that many channels. */
static void take(const answer *a, const facts_problem *p)
{
    const int64_t *dim = p->tensor[a->id].dim, rows = dim[0] * dim[1] * dim[2];
    double largest[3] = { 0.0, 0.0, 0.0 };
    for (int64_t row = 0; row < rows; row++) {
        const int64_t from = (row * PARTS + a->part) * dim[3], to = row * dim[3];
        for (int n = 0; n < 3; n++)
            if (a->out[n])
                memcpy(a->out[n] + to, a->wide[n] + from, (size_t)dim[3] * sizeof(double));
        if (a->nu)
            a->nu[row] = fmax(a->nu[row] / PARTS, a->nu[row] > 0.0 ? 1.0 : 0.0);
        for (int64_t c = 0; a->amax && c < dim[3]; c++) {
            const double size = fabs(a->wide[0][from + c]), bound = a->wide[2][from + c];
            largest[0] = fmax(largest[0], size);
            largest[1] = fmax(largest[1], size - bound);
            largest[2] = fmax(largest[2], size + bound);
        }
    }
    if (a->amax)
        memcpy(a->amax, largest, sizeof largest);
}

static fref_backward_out widened(const fref_backward_out *out, const answer at[3])
{
    fref_backward_out wide = *out;
    wide.dq = at[0].wide[0], wide.dq_sigma = at[0].wide[1], wide.dq_bound = at[0].wide[2];
    wide.dk = at[1].wide[0], wide.dk_sigma = at[1].wide[1], wide.dk_bound = at[1].wide[2];
    wide.dv = at[2].wide[0], wide.dv_sigma = at[2].wide[1], wide.dv_bound = at[2].wide[2];
    wide.amax_dq = wide.amax_dk = wide.amax_dv = NULL;
    return wide;
}

int facts_blocks_backward(const facts_whole *w, const facts_problem *p,
                          const fref_rounding *rounding, const fref_backward_out *out)
{
    enum { Q, K, V, O, D_O, JOINTS };
    const facts_tensor_id none = FACTS_TENSOR_COUNT;
    static const facts_tensor_id like[JOINTS] = { FACTS_TENSOR_Q, FACTS_TENSOR_K, FACTS_TENSOR_V,
                                                  FACTS_TENSOR_O, FACTS_TENSOR_DO };
    joint joints[JOINTS] = { { .part = { FACTS_TENSOR_Q, none, FACTS_TENSOR_Q_T } },
                             { .part = { FACTS_TENSOR_K, FACTS_TENSOR_K_T, none } },
                             { .part = { FACTS_TENSOR_V, none, none } },
                             { .part = { none, FACTS_TENSOR_O, none } },
                             { .part = { FACTS_TENSOR_DO, FACTS_TENSOR_DO_16,
                                         FACTS_TENSOR_DO_T } } };
    answer answers[3] = {
        { { out->dq, out->dq_sigma, out->dq_bound },
          { NULL },
          out->dq_nu,
          out->amax_dq,
          FACTS_TENSOR_DQ,
          1 },
        { { out->dk, out->dk_sigma, out->dk_bound },
          { NULL },
          out->dk_nu,
          out->amax_dk,
          FACTS_TENSOR_DK,
          2 },
        { { out->dv, out->dv_sigma, out->dv_bound },
          { NULL },
          out->dv_nu,
          out->amax_dv,
          FACTS_TENSOR_DV,
          2 },
    };
    bool good = true;
    for (int i = 0; i < JOINTS && good; i++)
        good = make_joint(&joints[i], w, p, like[i]);
    for (int i = 0; i < 3 && good; i++)
        good = make_answer(&answers[i], p);
    int status = good ? 0 : ENOMEM;
    if (good) {
        fref_problem wide = w->problem;
        fref_rounding coarse = *rounding;
        const fref_backward_out to = widened(out, answers);
        wide.dim_qk *= PARTS;
        wide.dim_v *= PARTS;
        coarse.ds = FREF_E5M2;
        wide.scales.scale_s = P_SCALE;
        wide.scales.descale_s = 1.0 / P_SCALE;
        status = fref_backward(&wide, &joints[Q].tensor, &joints[K].tensor, &joints[V].tensor,
                               &joints[O].tensor, &w->tensor[FACTS_TENSOR_STATS],
                               &joints[D_O].tensor, &coarse, &to);
    }
    for (int i = 0; i < 3; i++) {
        if (status == 0)
            take(&answers[i], p);
        for (int n = 0; n < 3; n++)
            free(answers[i].wide[n]);
    }
    for (int i = 0; i < JOINTS; i++)
        free(joints[i].data);
    return status;
}
