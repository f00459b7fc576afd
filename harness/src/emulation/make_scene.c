#include "scene.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "case/keys/keys.h"
#include "case/problem/case_problem.h"
#include "case/problem/philox.h"
#include "numbers/dtype.h"
#include "numbers/expect/expect_copies.h"
#include "numbers/fill/fill.h"
#include "numbers/fill/mod.h"
#include "numbers/fill/oracle_view.h"
#include "numbers/fill/recipe.h"
#include "numbers/fill/scalars.h"
#include "scene_parts.h"

const int32_t facts_dtype_of_type[] = { [FREF_F32] = FATTN_F32,
                                        [FREF_F16] = FATTN_F16,
                                        [FREF_BF16] = FATTN_BF16,
                                        [FREF_E4M3] = FATTN_E4M3,
                                        [FREF_E5M2] = FATTN_E5M2 };

bool facts_type_is_narrow(fref_type type)
{
    return type == FREF_E4M3 || type == FREF_E5M2;
}

/* ---- the case ---- */

static void retype(facts_scene *x, facts_tensor_id first, facts_tensor_id last, fref_type type)
{
    for (facts_tensor_id id = first; id <= last; id++)
        x->problem.tensor[id].dtype = facts_dtype_of_type[type];
}

/* The case language refuses 8 bit types: the case is a bf16 one whose tensors change their type.
 * Strides are in elements. */
static int resolve(facts_scene *x, const facts_scene_plan *plan, facts_error *error)
{
    static const char *const words[] = { [FREF_F32] = "f32",
                                         [FREF_F16] = "f16",
                                         [FREF_BF16] = "bf16",
                                         [FREF_E4M3] = "bf16",
                                         [FREF_E5M2] = "bf16" };
    char text[FACTS_CASE_TEXT];
    facts_case c;
    snprintf(text, sizeof text, "%.900s dtype=%s", plan->text, words[plan->type]);
    if (!facts_case_parse(&c, text, error) ||
        facts_problem_resolve(&x->problem, &c, error) != FACTS_RESOLVED)
        return EINVAL;
    x->type = plan->type;
    x->out_type = plan->out;
    x->backward = x->problem.ask.pass == FATTN_BACKWARD;
    retype(x, FACTS_TENSOR_Q, FACTS_TENSOR_V, plan->type);
    retype(x, FACTS_TENSOR_O, FACTS_TENSOR_O, x->backward ? plan->type : plan->out);
    retype(x, FACTS_TENSOR_DO, FACTS_TENSOR_DO, plan->type);
    retype(x, FACTS_TENSOR_DQ, FACTS_TENSOR_DV, plan->out);
    return 0;
}

/* ---- inputs ---- */

static bool fill_input(facts_scene *x, facts_tensor_id id)
{
    const facts_tensor *t = &x->problem.tensor[id];
    if (!t->present)
        return true;
    size_t bytes = facts_dtype_bytes(t->dtype);
    x->storage[id] = malloc((size_t)t->elements * bytes + 1);
    if (!x->storage[id])
        return false;
    facts_fill_gaps(&x->problem, t->dtype, x->storage[id], t->elements);
    bool answered = id == FACTS_TENSOR_O || id == FACTS_TENSOR_STATS;
    if (!answered && !facts_fill_tensor(&x->problem, id, x->storage[id]))
        return false;
    fref_tensor *in = &x->in[id];
    for (int type = 0; type <= FREF_E5M2; type++)
        if (facts_dtype_of_type[type] == t->dtype)
            in->type = (fref_type)type;
    for (int d = 0; d < 4; d++)
        in->stride[d] = t->dim[d] > 1 ? t->stride[d] : 0;
    in->data = (unsigned char *)x->storage[id] + t->first * (int64_t)bytes;
    return true;
}

/* Scales that are not 1, not powers of two, not each other's inverse, all different. P' stays below
 * the largest value; the logits are those that the fills were made for. */
static void choose_scales(facts_scene *x)
{
    /* Half of what the type holds: kept entries are larger by 1/(1-p). A number of the type: or the largest P of every row is
     * off. */
    const double most = x->type == FREF_E4M3 ? 224.0 : 28672.0;
    x->asked.scales = (fref_scales){ .scale_s = most,
                                     .descale_s = 1.09 / most,
                                     .scale_dp = 7.0,
                                     .descale_dp = 1.03 / 7.0,
                                     .scale_o = 21.0,
                                     .scale_dq = 19.0,
                                     .scale_dk = 17.0,
                                     .scale_dv = 5.0 };
    if (!facts_type_is_narrow(x->out_type))
        x->asked.scales.scale_o = x->asked.scales.scale_dq = x->asked.scales.scale_dk =
            x->asked.scales.scale_dv = 1.0;
    x->in[FACTS_TENSOR_Q].descale = 0.77;
    x->in[FACTS_TENSOR_K].descale = 1.37;
    x->in[FACTS_TENSOR_V].descale = 0.83;
    x->in[FACTS_TENSOR_O].descale = 1.0 / 23.0;
    x->in[FACTS_TENSOR_DO].descale = 0.91;
    x->asked.scale = (double)(float)(x->asked.scale / (0.77 * 1.37));
}

static bool make_slopes(facts_scene *x)
{
    x->alibi = malloc((size_t)x->asked.heads_q * sizeof *x->alibi);
    for (int64_t h = 0; x->alibi && h < x->asked.heads_q; h++)
        x->alibi[h] = (double)(float)facts_mod_slope(x->asked.heads_q, h);
    x->asked.alibi = x->alibi;
    return x->alibi != NULL;
}

static bool draw_sink(facts_scene *x)
{
    x->sink = malloc((size_t)x->asked.heads_q * sizeof *x->sink);
    for (int64_t h = 0; x->sink && h < x->asked.heads_q; h++)
        x->sink[h] = facts_normal(
            facts_draw_at(x->problem.seed, FACTS_STREAM_SINK, FACTS_LANE_VALUE, (uint64_t)h));
    x->asked.sink = x->sink;
    return x->sink != NULL;
}

static bool draw_keep(facts_scene *x)
{
    const fref_problem *p = &x->asked;
    int64_t n = p->batch * p->heads_q * p->rows * p->keys;
    x->keep = malloc((size_t)n + 1);
    for (int64_t e = 0; x->keep && e < n; e++)
        x->keep[e] =
            facts_draw_at(x->problem.seed, FACTS_STREAM_KEEP, FACTS_LANE_VALUE, (uint64_t)e).r[0] >=
            FACTS_DROP * 0x1p32;
    x->asked.keep = x->keep;
    x->asked.keep_scale = (double)(float)(1.0 / (1.0 - FACTS_DROP));
    return x->keep != NULL;
}

static bool modify(facts_scene *x)
{
    const facts_problem *p = &x->problem;
    if (p->mod == FACTS_MOD_NONE)
        return true;
    facts_mod_owner *owner = malloc(sizeof *owner);
    x->owner = owner;
    if (!owner)
        return false;
    *owner = (facts_mod_owner){ p, x->storage[FACTS_TENSOR_MOD_A], x->storage[FACTS_TENSOR_MOD_B] };
    x->asked.modify = facts_mod_at;
    x->asked.modify_owner = owner;
    return true;
}

static bool make_inputs(facts_scene *x, unsigned features)
{
    static const facts_tensor_id read[] = { FACTS_TENSOR_Q,     FACTS_TENSOR_K,
                                            FACTS_TENSOR_V,     FACTS_TENSOR_BIAS,
                                            FACTS_TENSOR_MOD_A, FACTS_TENSOR_MOD_B };
    static const facts_tensor_id read_back[] = { FACTS_TENSOR_O, FACTS_TENSOR_STATS,
                                                 FACTS_TENSOR_DO };
    bool ok = true;
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        ok = ok && fill_input(x, read[i]);
    for (size_t i = 0; x->backward && i < sizeof read_back / sizeof *read_back; i++)
        ok = ok && fill_input(x, read_back[i]);
    if (!ok)
        return false;
    if (x->problem.tensor[FACTS_TENSOR_BIAS].present) {
        x->bias = x->in[FACTS_TENSOR_BIAS];
        x->asked.bias = &x->bias;
    }
    if (facts_type_is_narrow(x->type))
        choose_scales(x);
    return (!(features & FACTS_WITH_ALIBI) || make_slopes(x)) &&
           (!(features & FACTS_WITH_SINK) || draw_sink(x)) &&
           (!(features & FACTS_WITH_DROPOUT) || draw_keep(x)) && modify(x);
}

/* ---- all of it ---- */

int facts_scene_create(facts_scene *x, const facts_scene_plan *plan, facts_error *error)
{
    return facts_scene_create_by(x, plan, NULL, error);
}

int facts_scene_create_by(facts_scene *x, const facts_scene_plan *plan,
                          const facts_constants *constants, facts_error *error)
{
    *x = (facts_scene){ 0 };
    int status = resolve(x, plan, error);
    if (status != 0)
        return status;
    facts_oracle_problem(&x->asked, &x->problem);
    x->has_means = x->problem.fill == FACTS_FILL_OFFSET_V;
    x->dense = facts_expect_dense(&x->problem);
    x->rounding = fref_rounding_of(x->type, x->out_type);
    x->rounding.eps_mod = 0x1p-24;
    x->rounding.coherent = facts_expect_coherent_gradients(&x->problem);
    if (constants)
        facts_constants_apply(&x->rounding, constants);
    if (facts_type_is_narrow(x->type) &&
        !(plan->features & FACTS_WITH_HOPPER)) /* the emulation adds in fp32, 16 products at a time,
                                                  unlike the engines that these start from */
        x->rounding.ua = 0x1p-23, x->rounding.chunk = 16.0, x->rounding.cw = x->rounding.cl = 1.0,
        x->rounding.acc_pv = x->rounding.acc_run = 0.0;
    bool ok = make_inputs(x, plan->features);
    const int32_t dtype = facts_dtype_of_type[x->type];
    const int64_t longest =
        x->problem.ask.seq_kv > x->problem.ask.seq_q ? x->problem.ask.seq_kv : x->problem.ask.seq_q;
    double drift = facts_run_lost(&x->rounding, longest);
    if (!x->backward) {
        const double keep = plan->features & FACTS_WITH_DROPOUT ? x->asked.keep_scale : 1.0,
                     scale_s = x->asked.scales.scale_s;
        drift += facts_expect_largest_off(dtype, scale_s != 0.0 ? keep * scale_s : keep);
    }
    x->gain = facts_gain_of(dtype, !x->backward, drift);
    x->rounding.bias = x->in[FACTS_TENSOR_BIAS].type;
    ok = ok && (!(plan->features & FACTS_WITH_RAGGED) || facts_scene_make_ragged(x)) &&
         (!(plan->features & FACTS_WITH_PAGES) || facts_scene_make_pages(x)) &&
         (!(plan->features & FACTS_WITH_HUGE_OFFSET) || facts_scene_make_huge(x)) &&
         facts_scene_make_room(x);
    return ok ? facts_scene_ask(x, plan->forward) : ENOMEM;
}

void facts_scene_destroy(facts_scene *x)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        free(x->storage[id]);
        free(x->first[id]);
    }
    for (int id = 0; id < FACTS_SLOT_COUNT; id++) {
        facts_expected_answer *out = &x->out[id];
        double *const arrays[] = { out->answer.want, out->answer.sigma, out->answer.bound,
                                   out->answer.nu, out->answer.neff };
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
            free(arrays[i]);
        free(out->expects);
        facts_image_destroy(&out->image);
    }
    free(x->true_max);
    free(x->alibi);
    free(x->sink);
    free(x->keep);
    free(x->pages);
    free(x->owner);
    if (x->huge)
        munmap(x->huge, x->huge_bytes);
    *x = (facts_scene){ 0 };
}

facts_launch facts_scene_launch(const facts_scene *x)
{
    facts_launch launch = { .problem = &x->asked,
                            .type = x->type,
                            .q = &x->in[FACTS_TENSOR_Q],
                            .k = &x->in[FACTS_TENSOR_K],
                            .v = &x->in[FACTS_TENSOR_V],
                            .seed = x->problem.seed };
    if (x->backward) {
        launch.o = &x->in[FACTS_TENSOR_O];
        launch.stats = &x->in[FACTS_TENSOR_STATS];
        launch.d_o = &x->in[FACTS_TENSOR_DO];
    }
    for (int id = 0; id < FACTS_SLOT_COUNT; id++)
        launch.out[id] = x->out[id].slot;
    return launch;
}
