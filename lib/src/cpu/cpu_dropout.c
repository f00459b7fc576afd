#include "cpu_dropout.h"

#include <math.h>

#include "cpu/kernels/cpu_number.h"
#include "cpu_view.h"
#include "liars/lies.h"
#include "problem/auxiliary.h"

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
