#include "cpu_scores.h"

#include <math.h>
#include <string.h>

#include "cpu/kernels/cpu_number.h"
#include "cpu_view.h"
#include "liars/lies.h"
#include "problem/auxiliary.h"
#include "score_mod/mod_program.h"

fattn__dropping fattn__dropping_of(const fattn_problem *p, const fattn_tensors *t)
{
    fattn__dropping x = { .on = p->dropout_mask || p->dropout != 0.0,
                          .scale = 1.0f,
                          .of_slope = 1.0f };
    if (p->dropout_mask) {
        x.mask = t->dropout_mask;
        x.scale = *t->dropout_scale;
        x.of_slope = p->pass == FATTN_BACKWARD ? x.scale * *t->dropout_scale_inverse : 1.0f;
    } else if (x.on) {
        const int64_t seed =
                          FATTN__LIE(DROPOUT_SEED) ? 0 : fattn__integer_at(t->seed, p->rng_bits, 0),
                      offset = FATTN__LIE(DROPOUT_OFFSET)
                                   ? 0
                                   : fattn__integer_at(t->offset, p->rng_bits, 0);
        const double dropped =
            FATTN__LIE(DROPOUT_8BIT) ? rint(p->dropout * 256.0) / 256.0 : p->dropout;
        x.generator =
            fattn__dropout_of(FATTN__LIE(DROPOUT_SEED_HIGH) ? seed & UINT32_MAX : seed,
                              FATTN__LIE(DROPOUT_OFFSET_HIGH) ? offset & UINT32_MAX : offset,
                              fattn__dropout_threshold(dropped));
        x.scale = (float)(1.0 / (1.0 - p->dropout));
    }
    if (FATTN__LIE(KEEP_FACTOR))
        x.scale = fattn__number_round(FATTN_BF16, x.scale);
    if (FATTN__LIE(DROPOUT_NOSCALE))
        x.scale = 1.0F;
    return x;
}

/* 1 or 0 for keys [key0, key0 + keys) of a row; key0 is a multiple of 4. */
static void kept(const fattn__dropout *generator, float *out, int64_t b, int64_t h, int64_t i,
                 int64_t key0, int64_t keys)
{
    b = FATTN__LIE(DROPOUT_BATCHES) ? 0 : b, h = FATTN__LIE(DROPOUT_HEADS) ? 0 : h,
    i = FATTN__LIE(DROPOUT_ROWS)       ? 0
        : FATTN__LIE(DROPOUT_ROWS_256) ? i % 256
                                       : i;
    h = FATTN__LIE(DROPOUT_HEADS_5) ? h % 5 : FATTN__LIE(DROPOUT_ENTRIES) ? h + 2 * b : h;
    b = FATTN__LIE(DROPOUT_ENTRIES) ? 0 : b;
    const int64_t period = FATTN__LIE(DROPOUT_PERIOD)     ? 64
                           : FATTN__LIE(DROPOUT_KEYS_256) ? 256
                                                          : INT64_MAX;
    for (int64_t j = 0; j < keys; j += 4) {
        const int64_t key = (key0 + j) % period;
        const unsigned four = fattn__dropout_four(generator, (uint32_t)b, (uint32_t)h, (uint32_t)i,
                                                  (uint32_t)(key / 4));
        for (int64_t n = 0; n < 4 && j + n < keys; n++)
            out[j + n] = (float)(four >> n & 1u);
    }
}

void fattn__dropping_apply(const fattn__dropping *dropping, const fattn__scores *at, float *x)
{
    const fattn_problem *p = at->p;
    if (!dropping->on)
        return;
    for (int64_t i = 0; i < at->rows; i++) {
        float keep[FATTN__KEYS];
        const int64_t row =
                          (at->row0 + i + FATTN__LIE_OF(p->pass, DROPOUT_STALE, B_DROPOUT_STALE)) %
                          p->seq_q,
                      first =
                          ((at->b * p->heads_q + at->h) * p->seq_q + row) * p->seq_kv + at->key0;
        if (dropping->mask != NULL)
            fattn__numbers_load(keep, dropping->mask, fattn__dropout_mask_dtype(p), first,
                                at->keys);
        else
            kept(&dropping->generator, keep, at->b, at->h, row, at->key0, at->keys);
        for (int64_t j = 0; j < at->keys; j++) {
            float *value = x + i * at->row_step + j * at->key_step;
            *value = keep[j] == 0.0f ? 0.0f : *value * keep[j] * dropping->scale;
        }
    }
}

void fattn__dropping_dump(const fattn__dropping *dropping, const fattn_problem *p, float *out,
                          int threads)
{
    const int64_t rows = p->batch * p->heads_q * p->seq_q;
#pragma omp parallel for num_threads(threads)
    for (int64_t row = 0; row < rows; row++)
        kept(&dropping->generator, out + row * p->seq_kv, row / p->seq_q / p->heads_q,
             row / p->seq_q % p->heads_q, row % p->seq_q, 0, p->seq_kv);
}

bool fattn__scores_are_plain(const fattn_problem *p)
{
    return !FATTN__LIE(NAN_MASKED) && p->score_mod == NULL && !p->has_bias && !p->alibi &&
           !p->block_mask;
}

#ifdef FATTN_LIARS
/* Planted faults: true where the bias is not the one at `offset`. */
static bool fattn__liar_bias(float *s, const fattn__scores *at, int64_t i, int64_t j,
                             int64_t offset)
{
    const fattn_problem *p = at->p;
    const int64_t row = (at->key0 + j) % p->seq_q, key = (at->row0 + i) % p->seq_kv;
    if (FATTN__LIE(BIAS_TILE) &&
        at->key0 + j >= (p->seq_kv - 1) / fattn__tile_keys() * fattn__tile_keys())
        return true;
    if (!FATTN__LIE(BIAS_T) && !FATTN__LIE(BIAS_SCALED))
        return false;
    if (FATTN__LIE(BIAS_T)) /* as far as the transposed place exists */
        offset += (p->bias_dim[2] == 1 ? 0 : (row - at->row0 - i) * p->bias_strides[2]) +
                  (p->bias_dim[3] == 1 ? 0 : (key - at->key0 - j) * p->bias_strides[3]);
    *s += fattn__number_load(at->t->bias, p->bias_dtype, offset) *
          (FATTN__LIE(BIAS_SCALED) ? (float)p->attn_scale : 1.0F);
    return true;
}
#else
#define fattn__liar_bias(s, at, i, j, offset) false
#endif

/* Adds a bias, or masks where a boolean one is 0. */
static void add_bias(const fattn__scores *at, int64_t i, float *row)
{
    const fattn_problem *p = at->p;
    const int64_t place[4] = { at->b, at->h, at->row0 + i, at->key0 };
    int64_t offset = 0;
    for (int axis = 0; axis < 4; axis++)
        offset +=
            p->bias_dim[axis] == 1 || (axis == 1 && (FATTN__LIE(BIAS_SHAPE) || FATTN__LIE(BIAS_H0)))
                ? 0
                : place[axis] * p->bias_strides[axis];
    const int64_t step = p->bias_dim[3] == 1 ? 0 : p->bias_strides[3];
    for (int64_t j = 0; j < at->keys; j++)
        if (p->bias_dtype != FATTN_BOOL && fattn__liar_bias(&row[j], at, i, j, offset + j * step))
            continue;
        else if (p->bias_dtype != FATTN_BOOL)
            row[j] += fattn__number_load(at->t->bias, p->bias_dtype, offset + j * step);
        else if (((const uint8_t *)at->t->bias)[offset + j * step] == 0)
            row[j] = -INFINITY;
}

static void add_alibi(const fattn__scores *at, int64_t i, float *row)
{
    const float slope = at->t->alibi_slopes[at->h];
    for (int64_t j = 0; j < at->keys; j++)
        row[j] +=
            slope * (FATTN__LIE(ALIBI_NARROW)
                         ? fattn__number_round(FATTN_BF16, (float)(at->key0 + j - at->row0 - i))
                         : (float)(at->key0 + j - (at->row0 + i)));
}

/* A tile of the mask is 128 x 128. */
static void mask_block(const fattn__scores *at, int64_t i, float *row)
{
    const fattn_problem *p = at->p;
    const int64_t row_tiles = (p->seq_q + 127) / 128, line = ((p->seq_kv + 127) / 128 + 7) / 8;
    const uint8_t *bits = at->t->block_mask +
                          ((at->b * p->heads_q + at->h) * row_tiles + (at->row0 + i) / 128) * line;
    for (int64_t j = 0; j < at->keys; j++) {
        const int64_t tile = (at->key0 + j) / 128;
        if ((bits[tile / 8] >> tile % 8 & 1) == 0)
            row[j] = -INFINITY;
    }
}

void fattn__scores_modify(const fattn__scores *at, float *s)
{
    const fattn_problem *p = at->p;
    const fattn__mod_program *program =
        p->score_mod != NULL ? fattn__score_mod_program(p->score_mod) : NULL;
    for (int64_t i = 0; i < at->rows; i++) {
        float row[FATTN__KEYS];
        for (int64_t j = 0; j < at->keys; j++)
            row[j] = s[i * at->row_step + j * at->key_step];
        if (program != NULL) {
            float raw[FATTN__KEYS];
            const int64_t place[4] = { at->b, at->h, at->row0 + i, at->key0 };
            memcpy(raw, row, (size_t)at->keys * sizeof *raw);
            fattn__score_mod_row(p->score_mod, program, place, at->keys, raw, NULL,
                                 at->t->mod_tensors, &program->result, 1, row);
        }
        if (p->has_bias)
            add_bias(at, i, row);
        if (p->alibi)
            add_alibi(at, i, row);
        if (p->block_mask)
            mask_block(at, i, row);
        for (int64_t j = 0; j < at->keys; j++)
            s[i * at->row_step + j * at->key_step] =
                FATTN__LIE(NAN_MASKED) && isnan(row[j]) ? -INFINITY : row[j];
    }
}

void fattn__scores_gradient(const fattn__scores *at, const float *raw, float *slope, int32_t place)
{
    const fattn_score_mod *mod = at->p->score_mod;
    for (int64_t i = 0; i < at->rows; i++) {
        float out[FATTN__KEYS], *row = slope + i * at->row_step;
        const int64_t where[4] = { at->b, at->h, at->row0 + i, at->key0 };
        fattn__score_mod_row(mod, fattn__score_mod_gradient(mod), where, at->keys,
                             raw + i * at->row_step, row, at->t->mod_tensors, &place, 1, out);
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
