/* Evaluates a program at one place in double. */
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "cpu/kernels/cpu_number.h"
#include "operations.h"
#include "recording.h"

/* The place at which a program is evaluated. */
typedef struct spot {
    const fattn_score_mod *mod;
    double score, gradient;
    const int64_t *at;
    const void *const *tensors;
} spot;

static double leaf(const spot *s, const fattn__mod_node *n)
{
    const fattn_mod_tensor *tensor;
    switch (n->op) {
    case FATTN__MOD_SCORE:
        return s->score;
    case FATTN__MOD_GRADIENT:
        return s->gradient;
    case FATTN__MOD_INDEX:
        return (double)s->at[n->a];
    case FATTN__MOD_TENSOR:
        tensor = &s->mod->tensors[n->a];
        return (double)fattn__number_load(s->tensors[n->a], tensor->dtype,
                                          fattn__mod_offset(tensor, s->at));
    default:
        return (double)n->constant;
    }
}

static double value_at(const spot *s, const fattn__mod_program *p)
{
    double value[FATTN__MOD_MAX_NODES];
    for (int i = 0; i < p->count; i++) {
        const fattn__mod_node *n = &p->at[i];
        value[i] = fattn__mod_inputs(n->op) == 0
                       ? leaf(s, n)
                       : fattn__mod_compute(n->op, value[n->a], value[n->b], value[n->c]);
    }
    return value[p->result];
}

static fattn_status check_addresses(const fattn_score_mod *mod, const void *const *tensors)
{
    for (int i = 0; i < mod->tensor_count; i++)
        if (tensors == NULL || tensors[i] == NULL)
            return fattn__fail(FATTN_BAD_PROBLEM, "score_mod: tensor %d (\"%.64s\") has no address",
                               i, mod->tensors[i].name);
    return FATTN_OK;
}

static fattn_status check_place(const fattn_score_mod *mod, const int64_t at[4])
{
    for (int axis = 0; axis < 4; axis++) {
        if (at[axis] < 0)
            return fattn__fail(FATTN_BAD_PROBLEM,
                               "score_mod: at[%d]: %" PRId64 " is not allowed; want 0 or more",
                               axis, at[axis]);
        for (int i = 0; i < mod->tensor_count; i++)
            if (mod->tensors[i].dim[axis] != 1 && at[axis] >= mod->tensors[i].dim[axis])
                return fattn__fail(FATTN_BAD_PROBLEM,
                                   "score_mod: at[%d]: %" PRId64
                                   " lies outside tensor \"%.64s\", %" PRId64,
                                   axis, at[axis], mod->tensors[i].name, mod->tensors[i].dim[axis]);
    }
    return FATTN_OK;
}

fattn_status fattn_score_mod_evaluate(const fattn_score_mod *mod, double score, const int64_t at[4],
                                      const void *const *tensors, double *value, double *slope)
{
    if (mod == NULL || at == NULL)
        return fattn__fail(FATTN_BAD_PROBLEM, "score_mod: %s: NULL is not allowed",
                           mod == NULL ? "mod" : "at");
    fattn_status st = check_addresses(mod, tensors);
    if (st == FATTN_OK)
        st = check_place(mod, at);
    if (st != FATTN_OK)
        return st;
    const spot s = { mod, score, 1, at, tensors };
    if (value != NULL)
        *value = value_at(&s, &mod->program);
    if (slope != NULL)
        *slope = value_at(&s, &mod->gradient);
    return FATTN_OK;
}
