#include "scores.h"

#include <string.h>

#include "../liars/liars.h"
#include "../score_mod/program.h"
#include "../score_mod/score_mod.h"

bool fattn__scores_are_plain(const fattn_problem *p)
{
    return p->score_mod == NULL && !p->has_bias;
}

static void add_bias(const fattn__scores *at, int64_t i, float *row)
{
    const fattn_problem *p = at->p;
    const int64_t place[4] = { at->b, at->h, at->row0 + i, at->key0 };
    int64_t offset = 0;
    for (int axis = 0; axis < 4; axis++)
        offset += p->bias_dim[axis] == 1 || (axis == 1 && FATTN__LIE(BIAS_SHAPE)) ? 0 : place[axis] * p->bias_strides[axis];
    const int64_t step = p->bias_dim[3] == 1 ? 0 : p->bias_strides[3];
    for (int64_t j = 0; j < at->keys; j++)
        row[j] += fattn__mod_element(at->t->bias, p->bias_dtype, offset + j * step);
}

void fattn__scores_modify(const fattn__scores *at, float *s)
{
    const fattn_problem *p = at->p;
    const fattn__mod_program *program = p->score_mod != NULL ? fattn__score_mod_program(p->score_mod) : NULL;
    for (int64_t i = 0; i < at->rows; i++) {
        float row[FATTN__KEYS];
        for (int64_t j = 0; j < at->keys; j++)
            row[j] = s[i * at->row_step + j * at->key_step];
        if (program != NULL) {
            float raw[FATTN__KEYS];
            const int64_t place[4] = { at->b, at->h, at->row0 + i, at->key0 };
            memcpy(raw, row, (size_t)at->keys * sizeof *raw);
            fattn__score_mod_row(p->score_mod, program, place, at->keys, raw, NULL, at->t->mod_tensors, &program->result, 1, row);
        }
        if (p->has_bias)
            add_bias(at, i, row);
        for (int64_t j = 0; j < at->keys; j++)
            s[i * at->row_step + j * at->key_step] = row[j];
    }
}

void fattn__scores_gradient(const fattn__scores *at, const float *raw, float *slope, int32_t place)
{
    const fattn_score_mod *mod = at->p->score_mod;
    for (int64_t i = 0; i < at->rows; i++) {
        float out[FATTN__KEYS], *row = slope + i * at->row_step;
        const int64_t where[4] = { at->b, at->h, at->row0 + i, at->key0 };
        fattn__score_mod_row(mod, fattn__score_mod_gradient(mod), where, at->keys, raw + i * at->row_step, row, at->t->mod_tensors, &place, 1, out);
        for (int64_t j = 0; j < at->keys; j++)
            row[j] = row[j] == 0.0f ? 0.0f : out[j];
    }
}

void fattn__weigh(const fattn__kernels *kernels, const fattn__product *p, bool finite)
{
    if (finite) {
        kernels->multiply(p);
        return;
    }
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t k = 0; k < p->k; k++) {
            const float w = p->a[i * p->a_row + k * p->a_column];
            if (w == 0.0f)
                continue;
            for (int64_t d = 0; d < p->n; d++)
                p->c[i * p->c_row + d] += p->factor * w * p->b[k * p->b_row + d];
        }
}
