/* The expected values of a scene: the reference's answers, as an expectation. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/dtype.h"
#include "numbers/fill/image_ragged.h"
#include "numbers/fill/places.h"
#include "scene_parts.h"

static const facts_tensor_id tensor_of_slot[] = {
    [FACTS_SLOT_O] = FACTS_TENSOR_O,     [FACTS_SLOT_STATS] = FACTS_TENSOR_STATS,
    [FACTS_SLOT_MAX] = FACTS_TENSOR_MAX, [FACTS_SLOT_SUM_EXP] = FACTS_TENSOR_SUM_EXP,
    [FACTS_SLOT_DQ] = FACTS_TENSOR_DQ,   [FACTS_SLOT_DK] = FACTS_TENSOR_DK,
    [FACTS_SLOT_DV] = FACTS_TENSOR_DV,   [FACTS_SLOT_DBIAS] = FACTS_TENSOR_DBIAS
};

static size_t elements_of(const facts_tensor *t)
{
    return (size_t)(t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3]);
}

static void lay_dense(facts_tensor *t)
{
    t->first = 0;
    t->elements = 1;
    for (int d = 3; d >= 0; d--) {
        t->stride[d] = t->elements;
        t->elements *= t->dim[d];
    }
}

/* ---- room ---- */

static facts_row_expects expects_of_padded(const facts_scene *x, facts_slot_id id)
{
    if (x->first[FACTS_TENSOR_Q] && !x->backward)
        return FACTS_EXPECTS_NOTHING;
    if (id == FACTS_SLOT_MAX || id == FACTS_SLOT_SUM_EXP)
        return FACTS_EXPECTS_ANYTHING;
    return id == FACTS_SLOT_O ? FACTS_EXPECTS_ZERO_OR_POISON : FACTS_EXPECTS_VALUE;
}

static bool make_expected(facts_scene *x, facts_slot_id id)
{
    facts_expected_answer *out = &x->out[id];
    const int64_t *dim = out->tensor.dim;
    bool keys = id == FACTS_SLOT_DK || id == FACTS_SLOT_DV;
    out->expects = calloc((size_t)(dim[0] * dim[2]) + 1, sizeof *out->expects);
    for (int64_t b = 0; out->expects && b < dim[0]; b++)
        for (int64_t s = 0; s < dim[2]; s++) {
            bool padded =
                s >= (keys ? facts_live_kv(&x->problem, b) : facts_live_q(&x->problem, b));
            out->expects[b * dim[2] + s] = padded ? expects_of_padded(x, id) : FACTS_EXPECTS_VALUE;
        }
    return out->expects != NULL;
}

/* Sequences one after another: tokens of heads x channels. */
static bool make_ragged_image(facts_scene *x, facts_slot_id id)
{
    facts_expected_answer *out = &x->out[id];
    const int64_t *first = x->first[tensor_of_slot[id]];
    int64_t heads = out->tensor.dim[1], dim = out->tensor.dim[3], token = heads * dim,
            batch = x->asked.batch;
    const facts_tensor all = { .present = true,
                               .dtype = out->tensor.dtype,
                               .dim = { 1, heads, first[batch] / token, dim },
                               .stride = { 0, dim, token, 1 },
                               .elements = first[batch] };
    const facts_tensor *list[] = { &all };
    int64_t from[FACTS_MAX_BATCH_LENS];
    for (int64_t b = 0; b < batch; b++)
        from[b] = first[b] / token;
    out->slot.first = first;
    for (int d = 0; d < 4; d++)
        out->tensor.stride[d] = out->slot.stride[d] = all.stride[d];
    out->tensor.first = 0;
    out->tensor.elements = all.elements;
    return facts_image_create(&out->image, list, 1) &&
           facts_image_pack(&out->image, &all, from, x->problem.len_q, batch);
}

static bool array(double **out, size_t n)
{
    *out = calloc(n + 1, sizeof **out);
    return *out != NULL;
}

static bool make_answer(facts_expected_answer *out, bool with_sigma, bool with_freedom)
{
    size_t n = elements_of(&out->tensor), rows = n / (size_t)out->tensor.dim[3];
    facts_answer *a = &out->answer;
    return array(&a->want, n) && array(&a->bound, n) && (!with_sigma || array(&a->sigma, n)) &&
           (!with_freedom || (array(&a->nu, rows) && array(&a->neff, rows)));
}

static bool make_output(facts_scene *x, facts_slot_id id)
{
    facts_expected_answer *out = &x->out[id];
    const facts_tensor *t = &x->problem.tensor[tensor_of_slot[id]];
    if (!t->present)
        return true;
    bool statistic = id == FACTS_SLOT_STATS || id == FACTS_SLOT_MAX || id == FACTS_SLOT_SUM_EXP;
    out->present = true;
    out->tensor = *t;
    memcpy(out->slot.dim, t->dim, sizeof out->slot.dim);
    memcpy(out->slot.stride, t->stride, sizeof out->slot.stride);
    for (int type = 0; type <= FREF_E5M2; type++)
        if (facts_dtype_of_type[type] == t->dtype)
            out->slot.type = (fref_type)type;
    const facts_tensor *list[] = { t };
    bool ragged = x->first[FACTS_TENSOR_Q] && !x->backward;
    return (ragged ? make_ragged_image(x, id) : facts_image_create(&out->image, list, 1)) &&
           make_expected(x, id) &&
           make_answer(out, !statistic, !statistic && id != FACTS_SLOT_DBIAS);
}

/* Numbers that are no tensor of the case language: a gradient of sinks, amax. */
static bool make_scalars(facts_scene *x, facts_slot_id id, int64_t heads)
{
    facts_expected_answer *out = &x->out[id];
    out->present = true;
    out->tensor = (facts_tensor){ .present = true, .dtype = FATTN_F32, .dim = { 1, heads, 1, 1 } };
    lay_dense(&out->tensor);
    memcpy(out->slot.dim, out->tensor.dim, sizeof out->slot.dim);
    memcpy(out->slot.stride, out->tensor.stride, sizeof out->slot.stride);
    out->slot.type = FREF_F32;
    const facts_tensor *list[] = { &out->tensor };
    return facts_image_create(&out->image, list, 1) && make_answer(out, false, false);
}

bool facts_scene_make_room(facts_scene *x)
{
    static const facts_slot_id forward[] = { FACTS_SLOT_O, FACTS_SLOT_STATS, FACTS_SLOT_MAX,
                                             FACTS_SLOT_SUM_EXP };
    static const facts_slot_id backward[] = { FACTS_SLOT_DQ, FACTS_SLOT_DK, FACTS_SLOT_DV,
                                              FACTS_SLOT_DBIAS };
    static const facts_slot_id amax[2][4] = {
        { FACTS_SLOT_AMAX_S, FACTS_SLOT_AMAX_O, FACTS_SLOT_COUNT, FACTS_SLOT_COUNT },
        { FACTS_SLOT_AMAX_DP, FACTS_SLOT_AMAX_DQ, FACTS_SLOT_AMAX_DK, FACTS_SLOT_AMAX_DV }
    };
    const fref_scales *scales = &x->asked.scales;
    bool ok = true;
    for (size_t i = 0; i < 4; i++)
        ok = ok && make_output(x, x->backward ? backward[i] : forward[i]);
    if (ok && x->backward && x->sink)
        ok = make_scalars(x, FACTS_SLOT_DSINK, x->asked.heads_q);
    if (!ok || !facts_type_is_narrow(x->type))
        return ok;
    for (size_t i = 0; i < 4; i++)
        ok = ok &&
             (amax[x->backward][i] == FACTS_SLOT_COUNT || make_scalars(x, amax[x->backward][i], 1));
    x->out[FACTS_SLOT_O].unit = 1.0 / scales->scale_o;
    x->out[FACTS_SLOT_DQ].unit = 1.0 / scales->scale_dq;
    x->out[FACTS_SLOT_DK].unit = 1.0 / scales->scale_dk;
    x->out[FACTS_SLOT_DV].unit = 1.0 / scales->scale_dv;
    return ok;
}

/* ---- answers ---- */

/* Sum_exp against the LSE: with the Max m that was used, Sum_exp = exp(LSE - m), relative error
 * tau_LSE + tau_Max. */
static bool settle_sums(facts_scene *x)
{
    const facts_answer *lse = &x->out[FACTS_SLOT_STATS].answer,
                       *max = &x->out[FACTS_SLOT_MAX].answer;
    facts_expected_answer *sum = &x->out[FACTS_SLOT_SUM_EXP];
    if (!sum->present)
        return true;
    size_t n = elements_of(&sum->tensor);
    for (size_t i = 0; i < n; i++) {
        bool live = isfinite(lse->want[i]);
        sum->answer.want[i] = live ? exp(lse->want[i] - max->want[i]) : 0.0;
        sum->answer.bound[i] =
            live ? sum->answer.want[i] * expm1(lse->bound[i] + max->bound[i]) : 0.0;
    }
    if (!array(&x->true_max, n))
        return false;
    memcpy(x->true_max, max->want, n * sizeof *max->want);
    return true;
}

static double *amax_of(facts_scene *x, facts_slot_id id)
{
    return x->out[id].present ? x->amax[id] : NULL;
}

static int ask_forward(facts_scene *x)
{
    const facts_answer *o = &x->out[FACTS_SLOT_O].answer, *stats = &x->out[FACTS_SLOT_STATS].answer,
                       *max = &x->out[FACTS_SLOT_MAX].answer;
    fref_forward_out out = { .o = o->want,
                             .o_sigma = o->sigma,
                             .o_bound = o->bound,
                             .o_nu = o->nu,
                             .o_neff = o->neff,
                             .lse = stats->want,
                             .lse_tau = stats->bound,
                             .max = max->want,
                             .max_tau = max->bound,
                             .amax_s = amax_of(x, FACTS_SLOT_AMAX_S),
                             .amax_o = amax_of(x, FACTS_SLOT_AMAX_O) };
    const fref_tensor *in = x->in;
    int status = fref_forward(&x->asked, &in[FACTS_TENSOR_Q], &in[FACTS_TENSOR_K],
                              &in[FACTS_TENSOR_V], &x->rounding, &out);
    if (status == 0 && !settle_sums(x))
        status = ENOMEM;
    return status;
}

/* O and Stats as backward reads them: the reference's, rounded to their types. */
static int make_forwards_answer(facts_scene *x)
{
    const facts_tensor *o = &x->problem.tensor[FACTS_TENSOR_O],
                       *stats = &x->problem.tensor[FACTS_TENSOR_STATS];
    double *as_o = NULL, *as_stats = NULL;
    const fref_tensor *in = x->in;
    int status = ENOMEM;
    if (array(&as_o, elements_of(o)) && array(&as_stats, elements_of(stats)))
        status =
            fref_forward(&x->asked, &in[FACTS_TENSOR_Q], &in[FACTS_TENSOR_K], &in[FACTS_TENSOR_V],
                         &x->rounding, &(fref_forward_out){ .o = as_o, .lse = as_stats });
    if (status == 0) {
        facts_round_into(o, as_o,
                         in[FACTS_TENSOR_O].descale > 0.0 ? in[FACTS_TENSOR_O].descale : 1.0,
                         x->storage[FACTS_TENSOR_O]);
        facts_round_into(stats, as_stats, 1.0, x->storage[FACTS_TENSOR_STATS]);
    }
    free(as_o);
    free(as_stats);
    return status;
}

/* The same of an engine's own forward. Padded rows keep what lies there. */
static int run_forward(facts_scene *x, const facts_kernel *kernel)
{
    static const struct {
        facts_tensor_id id;
        facts_slot_id slot;
    } written[] = { { FACTS_TENSOR_O, FACTS_SLOT_O }, { FACTS_TENSOR_STATS, FACTS_SLOT_STATS } };
    fref_problem forward = x->asked;
    if (x->in[FACTS_TENSOR_O].descale > 0.0)
        forward.scales.scale_o = 1.0 / x->in[FACTS_TENSOR_O].descale;
    facts_launch launch = facts_scene_launch(x);
    launch.problem = &forward;
    launch.o = launch.stats = launch.d_o = NULL;
    memset(launch.out, 0, sizeof launch.out);
    for (int n = 0; n < 2; n++) {
        const facts_tensor *t = &x->problem.tensor[written[n].id];
        facts_slot *slot = &launch.out[written[n].slot];
        slot->data = (unsigned char *)x->storage[written[n].id] +
                     t->first * (int64_t)facts_dtype_bytes(t->dtype);
        slot->type = x->in[written[n].id].type;
        memcpy(slot->dim, t->dim, sizeof slot->dim);
        memcpy(slot->stride, t->stride, sizeof slot->stride);
    }
    return facts_emulate_forward(kernel, &launch) ? 0 : ENOMEM;
}

static int ask_backward(facts_scene *x, const facts_kernel *forward)
{
    const facts_answer *dq = &x->out[FACTS_SLOT_DQ].answer, *dk = &x->out[FACTS_SLOT_DK].answer,
                       *dv = &x->out[FACTS_SLOT_DV].answer,
                       *dbias = &x->out[FACTS_SLOT_DBIAS].answer,
                       *dsink = &x->out[FACTS_SLOT_DSINK].answer;
    fref_backward_out out = { .dq = dq->want,
                              .dq_sigma = dq->sigma,
                              .dq_bound = dq->bound,
                              .dq_nu = dq->nu,
                              .dq_neff = dq->neff,
                              .dk = dk->want,
                              .dk_sigma = dk->sigma,
                              .dk_bound = dk->bound,
                              .dk_nu = dk->nu,
                              .dk_neff = dk->neff,
                              .dv = dv->want,
                              .dv_sigma = dv->sigma,
                              .dv_bound = dv->bound,
                              .dv_nu = dv->nu,
                              .dv_neff = dv->neff,
                              .dbias = dbias->want,
                              .dbias_sigma = dbias->sigma,
                              .dbias_bound = dbias->bound,
                              .dsink = dsink->want,
                              .dsink_bound = dsink->bound,
                              .amax_dp = amax_of(x, FACTS_SLOT_AMAX_DP),
                              .amax_dq = amax_of(x, FACTS_SLOT_AMAX_DQ),
                              .amax_dk = amax_of(x, FACTS_SLOT_AMAX_DK),
                              .amax_dv = amax_of(x, FACTS_SLOT_AMAX_DV) };
    memcpy(out.dbias_dim, x->out[FACTS_SLOT_DBIAS].tensor.dim, sizeof out.dbias_dim);
    const fref_tensor *in = x->in;
    int status = forward ? run_forward(x, forward) : make_forwards_answer(x);
    if (status == 0)
        status = fref_backward(&x->asked, &in[FACTS_TENSOR_Q], &in[FACTS_TENSOR_K],
                               &in[FACTS_TENSOR_V], &in[FACTS_TENSOR_O], &in[FACTS_TENSOR_STATS],
                               &in[FACTS_TENSOR_DO], &x->rounding, &out);
    return status;
}

int facts_scene_ask(facts_scene *x, const facts_kernel *forward)
{
    return x->backward ? ask_backward(x, forward) : ask_forward(x);
}
