#include "cpu_tile.h"

#include <math.h>

static const int64_t FAR = INT64_MAX / 4;

static int64_t clamp(int64_t x)
{
    return x > FAR ? FAR : x < -FAR ? -FAR : x;
}

static int64_t length_of(const fattn_problem *p, const int32_t *lengths, uint32_t side, int64_t b)
{
    if ((p->cumulative & side) != 0)
        return (int64_t)lengths[b + 1] - lengths[b];
    const int64_t length = lengths[p->len_broadcast ? 0 : b];
    return length > 0 ? length : 0; /* -1: an unused ragged sequence */
}

/* A planted fault: left and right exchanged. A left bound counts the diagonal, a right one not. */
static void swap_bounds(fattn__band *band, const fattn_problem *p)
{
    const int64_t left = p->has_left ? p->window_left - 1 : FAR, right = band->right;
    band->left = right == FAR ? FAR : right + 1;
    band->right = clamp(left);
}

fattn__band fattn__band_of(const fattn_problem *p, const fattn_tensors *t, int64_t b)
{
    fattn__band band = { .len_q = p->seq_q, .len_kv = p->seq_kv, .left = FAR, .right = FAR };
    if (p->padding) {
        band.len_q = length_of(p, t->seq_len_q, FATTN_CUMULATIVE_Q, b);
        band.len_kv = length_of(p, t->seq_len_kv, FATTN_CUMULATIVE_KV, b);
    }
    if (FATTN__LIE_OF(p->pass, LEN_PLUS_1, B_LEN_PLUS_1) && band.len_kv < p->seq_kv)
        band.len_kv++;
    if (FATTN__LIE_OF(p->pass, LEN_IGNORED, B_LEN_IGNORED) ||
        (FATTN__LIE(PAGE_COUNT) && p->page_size_k != 0))
        band.len_kv = p->seq_kv;
    band.shift =
        (p->align == FATTN_BOTTOM_RIGHT) != FATTN__LIE(ALIGN_SWAP) ? band.len_kv - band.len_q : 0;
    if (FATTN__LIE(BR_MAX_LEN) && p->align == FATTN_BOTTOM_RIGHT)
        band.shift = p->seq_kv - p->seq_q;
    if (p->has_left)
        band.left = clamp(p->window_left) + FATTN__LIE_OF(p->pass, LEFT_LOOSE, B_LEFT_LOOSE);
    if (p->has_right)
        band.right = clamp(p->window_right) + FATTN__LIE_OF(p->pass, CAUSAL_LOOSE, B_CAUSAL_LOOSE);
    if (FATTN__LIE(B_BOUNDS_SWAP) && p->pass == FATTN_BACKWARD)
        swap_bounds(&band, p);
    band.exist = band.len_kv;
    band.lost = FATTN__LIE_OF(p->pass, TILE_LOST, B_TILE_LOST)
                    ? (p->seq_kv - 1) / fattn__tile_keys() * fattn__tile_keys()
                    : INT64_MAX;
    if (FATTN__LIE_OF(p->pass, TAIL_ZERO, B_TAIL_EXP) && p->score_mod == NULL && !p->has_bias &&
        !p->alibi && !p->block_mask && !p->dropout_mask && !p->rope && band.len_kv > 0)
        band.len_kv =
            (p->seq_kv + fattn__tile_keys() - 1) / fattn__tile_keys() * fattn__tile_keys();
    return band;
}

void fattn__band_keys(const fattn__band *band, int64_t row, int64_t *first, int64_t *last)
{
    int64_t diagonal = row + band->shift;
    int64_t lo = diagonal - band->left + 1, hi = diagonal + band->right + 1;
    *first = lo < 0 ? 0 : lo;
    *last = hi > band->len_kv ? band->len_kv : hi;
    if (*last > band->lost)
        *last = band->lost;
    if (row >= band->len_q || *last <= *first)
        *first = *last = 0;
}

void fattn__tile_transpose(float *dst, int64_t dst_step, const float *src, int64_t src_step,
                           int64_t count, int64_t dim)
{
    const int64_t whole = fattn__padded(count);
    for (int64_t d0 = 0; d0 < dim; d0 += 16)
        for (int64_t i = 0; i < whole; i++)
            for (int64_t d = d0; d < dim && d < d0 + 16; d++)
                dst[d * dst_step + i] = i < count ? src[i * src_step + d] : 0.0f;
}

fattn__sight fattn__tile_sight(const fattn__scores *at)
{
    const fattn__band *band = at->band;
    const int64_t rows = at->rows, end = at->key0 + at->keys;
    fattn__sight sight = { .first = rows, .last = 0, .whole = true };
    if (band->left == FAR && band->right == FAR && end <= band->lost &&
        at->row0 + rows <= band->len_q && end <= band->len_kv)
        return (fattn__sight){ 0, rows, true };
    for (int64_t i = 0; i < rows; i++) {
        int64_t first, last;
        fattn__band_keys(band, at->row0 + i, &first, &last);
        if (first < last && first < end && last > at->key0) {
            sight.first = i < sight.first ? i : sight.first;
            sight.last = i + 1;
        }
        sight.whole = sight.whole && first <= at->key0 && last >= end;
    }
    return sight;
}

void fattn__tile_mask(const fattn__scores *at, float *scores)
{
    for (int64_t i = 0; i < at->rows; i++) {
        int64_t first, last;
        fattn__band_keys(at->band, at->row0 + i, &first, &last);
        for (int64_t j = 0; j < at->keys; j++)
            if (at->key0 + j < first || at->key0 + j >= last)
                scores[i * at->row_step + j * at->key_step] = -INFINITY;
    }
}
