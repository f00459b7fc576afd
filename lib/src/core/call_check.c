#include "call_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "fattn/device.h"
#include "problem/auxiliary.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

/* An array of a call on the host: the array itself, or a copy. */
typedef struct array {
    const char *name;
    const void *data;
    void *owned;
    int32_t bits; /* of an integer */
} array;

typedef struct check {
    const fattn_plan *plan;
    const fattn_problem *p;
    const fattn_tensors *t;
    const int64_t *elements;
    array len_q, len_kv;
} check;

/* ---- reading
 * -------------------------------------------------------------------------------------------------------------------------
 */

static fattn_status fetch(array *out, const check *x, const char *name, const void *address,
                          int64_t bytes, int32_t bits)
{
    *out = (array){ .name = name, .data = address, .bits = bits };
    if (x->plan->context->cuda == NULL)
        return FATTN_OK;
    out->data = out->owned = malloc((size_t)bytes);
    if (out->owned == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "%s: no memory for a copy of %" PRId64 " bytes", name,
                           bytes);
    const fattn_status st = fattn_buffer_read(x->plan->context, out->owned, address, (size_t)bytes);
    if (st != FATTN_OK) {
        free(out->owned);
        *out = (array){ 0 };
    }
    return st;
}

static fattn_status fetch_auxiliary(array *out, const check *x, fattn__auxiliary which,
                                    int32_t bits)
{
    const void *address;
    memcpy(&address, (const char *)x->t + fattn__auxiliary_place(which), sizeof address);
    return fetch(out, x, fattn__auxiliary_name(which), address, fattn__auxiliary_bytes(x->p, which),
                 bits);
}

static int64_t integer(const array *a, int64_t at)
{
    return a->bits == 64 ? ((const int64_t *)a->data)[at] : ((const int32_t *)a->data)[at];
}

/* ---- lengths
 * -------------------------------------------------------------------------------------------------------------------------
 */

static int64_t length_of(const check *x, bool of_rows, int64_t b)
{
    const array *a = of_rows ? &x->len_q : &x->len_kv;
    const uint32_t side = of_rows ? FATTN_CUMULATIVE_Q : FATTN_CUMULATIVE_KV;
    if (a->data == NULL)
        return of_rows ? x->p->seq_q : x->p->seq_kv;
    const int64_t length = (x->p->cumulative & side) != 0 ? integer(a, b + 1) - integer(a, b)
                                                          : integer(a, x->p->len_broadcast ? 0 : b);
    return length > 0 ? length : 0;
}

static fattn_status refuse(const array *a, int64_t at, int64_t least, int64_t most, const char *why)
{
    return fattn__fail(FATTN_BAD_PROBLEM,
                       "%s[%" PRId64 "]: %" PRId64 " is not allowed; want %" PRId64 " to %" PRId64
                       " (%s)",
                       a->name, at, integer(a, at), least, most, why);
}

static fattn_status check_prefix_sums(const array *a, int64_t batch, int64_t seq)
{
    if (integer(a, 0) != 0)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "%s[0]: %" PRId64 " is not allowed; want 0, the first prefix sum",
                           a->name, integer(a, 0));
    for (int64_t b = 0; b < batch; b++)
        if (integer(a, b + 1) < integer(a, b) || integer(a, b + 1) - integer(a, b) > seq)
            return refuse(a, b + 1, integer(a, b), integer(a, b) + seq,
                          "a prefix sum may exceed the one before by at most the sequence length");
    return FATTN_OK;
}

static fattn_status check_lengths(const check *x, const array *a, uint32_t side, int64_t seq,
                                  const char *why)
{
    if ((x->p->cumulative & side) != 0)
        return check_prefix_sums(a, x->p->batch, seq);
    const int64_t least = x->p->ragged != 0 ? -1 : 0; /* -1: unused */
    for (int64_t b = 0; b < (x->p->len_broadcast ? 1 : x->p->batch); b++)
        if (integer(a, b) < least || integer(a, b) > seq)
            return refuse(a, b, least, seq, why);
    return FATTN_OK;
}

static fattn_status check_both_lengths(check *x)
{
    const int64_t bytes = 4 * (x->p->len_broadcast ? 1 : x->p->batch);
    if (!x->p->padding)
        return FATTN_OK;
    TRY(fetch(&x->len_q, x, "seq_len_q", x->t->seq_len_q,
              bytes + ((x->p->cumulative & FATTN_CUMULATIVE_Q) != 0 ? 4 : 0), 32));
    TRY(fetch(&x->len_kv, x, "seq_len_kv", x->t->seq_len_kv,
              bytes + ((x->p->cumulative & FATTN_CUMULATIVE_KV) != 0 ? 4 : 0), 32));
    TRY(check_lengths(x, &x->len_q, FATTN_CUMULATIVE_Q, x->p->seq_q, "seq_q"));
    return check_lengths(x, &x->len_kv, FATTN_CUMULATIVE_KV, x->p->seq_kv, "seq_kv");
}

/* ---- packed
 * --------------------------------------------------------------------------------------------------------------------------
 */

static bool has_rows(fattn__role which)
{
    return which != FATTN__ROLE_K && which != FATTN__ROLE_V && which != FATTN__ROLE_DK &&
           which != FATTN__ROLE_DV;
}

/* Does an entry of a ragged tensor fit into the remaining elements and the buffer? */
static fattn_status check_entry(const check *x, const array *a, fattn__role which, int64_t b)
{
    const fattn__shape shape = fattn__problem_shape(x->p, which);
    const int64_t step = shape.strides[2], unit = x->p->ragged_tokens ? step : 1,
                  length = length_of(x, has_rows(which), b);
    const int64_t held = x->elements != NULL ? x->elements[which] : 0,
                  room = integer(a, b + 1) - integer(a, b);
    int64_t first, end;
    if (step > 0 && (x->p->ragged_tokens ? room : room / step) < length)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "%s[%" PRId64 "]: %" PRId64 " is not allowed; entry %" PRId64
                           " has %" PRId64 " tokens, and from %" PRId64
                           " on that is room for %" PRId64,
                           a->name, b + 1, integer(a, b + 1), b, length, integer(a, b),
                           x->p->ragged_tokens ? room : room / step);
    if (length == 0)
        return FATTN_OK;
    if (__builtin_mul_overflow(integer(a, b), unit, &first) ||
        __builtin_add_overflow(
            first, (length - 1) * step + (shape.dim[1] - 1) * shape.strides[1] + shape.dim[3],
            &end))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "%s[%" PRId64 "]: %" PRId64 " is not allowed; entry %" PRId64
                           " would lie past any memory",
                           a->name, b, integer(a, b), b);
    if (held > 0 && end > held)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "%s[%" PRId64 "]: %" PRId64 " is not allowed; entry %" PRId64
                           " would end at element %" PRId64 ", the buffer has %" PRId64,
                           a->name, b, integer(a, b), b, end, held);
    return FATTN_OK;
}

/* Offsets must not decrease. */
static fattn_status check_order(const array *a, int64_t batch)
{
    for (int64_t b = 0; b <= batch; b++) {
        const int64_t least = b > 0 ? integer(a, b - 1) : 0;
        if (integer(a, b) < least)
            return fattn__fail(
                FATTN_BAD_PROBLEM,
                "%s[%" PRId64 "]: %" PRId64 " is not allowed; want %" PRId64 " or more%s", a->name,
                b, integer(a, b), least, b > 0 ? ", as the one before it" : "");
    }
    return FATTN_OK;
}

static fattn_status check_offsets(const check *x, fattn__role which)
{
    array a;
    TRY(fetch_auxiliary(&a, x, FATTN__AUXILIARY_Q_OFFSETS + (fattn__auxiliary)which,
                        x->p->ragged_bits));
    fattn_status st = check_order(&a, x->p->batch);
    for (int64_t b = 0; b < x->p->batch && st == FATTN_OK; b++)
        st = check_entry(x, &a, which, b);
    free(a.owned);
    return st;
}

/* The problem gives the size of a tensor that is not ragged. */
static fattn_status check_span(const check *x, fattn__role which)
{
    const fattn__shape shape = fattn__problem_bytes_of(x->p, which);
    int64_t span;
    if (x->elements == NULL || x->elements[which] == 0 || !shape.used ||
        !fattn__layout_span(shape.dim, shape.strides, &span) || span <= x->elements[which])
        return FATTN_OK;
    return fattn__fail(FATTN_BAD_PROBLEM,
                       "%s: a buffer of %" PRId64 " elements is not allowed; want %" PRId64,
                       fattn__role_name(which), x->elements[which], span);
}

static fattn_status check_places(const check *x)
{
    for (fattn__role which = 0; (int)which < FATTN_RAGGED_TENSORS; which++) {
        if (fattn__auxiliary_bytes(x->p, FATTN__AUXILIARY_Q_OFFSETS + (fattn__auxiliary)which) > 0)
            TRY(check_offsets(x, which));
        else if (!fattn__problem_ragged(x->p, which))
            TRY(check_span(x, which));
    }
    return FATTN_OK;
}

/* ---- pages
 * ---------------------------------------------------------------------------------------------------------------------------
 */

static fattn_status check_table_offsets(const check *x, const array *first, int64_t page,
                                        int64_t table)
{
    TRY(check_order(first, x->p->batch));
    for (int64_t b = 0; b < x->p->batch; b++) {
        const int64_t needed = (length_of(x, false, b) + page - 1) / page;
        if (integer(first, b + 1) - integer(first, b) < needed)
            return fattn__fail(FATTN_BAD_PROBLEM,
                               "%s[%" PRId64 "]: %" PRId64 " is not allowed; entry %" PRId64
                               " has %" PRId64 " pages from %" PRId64 " on",
                               first->name, b + 1, integer(first, b + 1), b, needed,
                               integer(first, b));
        if (needed > 0 && integer(first, b) > x->p->batch * table - needed)
            return refuse(first, b, 0, x->p->batch * table - needed, "pages of the whole table");
    }
    return FATTN_OK;
}

static fattn_status check_pages(const check *x, const array *pages, const array *first,
                                int64_t page, int64_t table, int64_t pool)
{
    if (first->data != NULL)
        TRY(check_table_offsets(x, first, page, table));
    for (int64_t b = 0; b < x->p->batch; b++) {
        const int64_t begin = first->data != NULL ? integer(first, b) : b * table,
                      end = begin + (length_of(x, false, b) + page - 1) / page;
        for (int64_t at = begin; at < end; at++)
            if (integer(pages, at) < 0 || integer(pages, at) >= pool)
                return refuse(pages, at, 0, pool - 1, "pages of the pool");
    }
    return FATTN_OK;
}

static fattn_status check_table(const check *x, fattn__role which)
{
    const bool k = which == FATTN__ROLE_K;
    const fattn__auxiliary table =
        k ? FATTN__AUXILIARY_PAGE_TABLE_K : FATTN__AUXILIARY_PAGE_TABLE_V;
    array pages, first = { 0 };
    if (fattn__problem_page(x->p, which) == 0)
        return FATTN_OK;
    TRY(fetch_auxiliary(&pages, x, table, 32));
    fattn_status st = FATTN_OK;
    if (x->p->packed_table)
        st = fetch_auxiliary(
            &first, x, k ? FATTN__AUXILIARY_TABLE_OFFSETS_K : FATTN__AUXILIARY_TABLE_OFFSETS_V,
            x->p->ragged_bits == 64 ? 64 : 32);
    if (st == FATTN_OK)
        st = check_pages(x, &pages, &first, fattn__problem_page(x->p, which),
                         k ? x->p->table_k : x->p->table_v, k ? x->p->pages_k : x->p->pages_v);
    free(pages.owned);
    free(first.owned);
    return st;
}

/* ---- scales
 * --------------------------------------------------------------------------------------------------------------------------
 */

static bool is_scale(fattn__auxiliary which)
{
    return which == FATTN__AUXILIARY_ATTN_SCALE || which == FATTN__AUXILIARY_DROPOUT_SCALE ||
           which == FATTN__AUXILIARY_DROPOUT_SCALE_INVERSE ||
           (which >= FATTN__AUXILIARY_DESCALE_Q && which <= FATTN__AUXILIARY_SCALE_DV);
}

/* The attention scale may be negative, as one that is given by value. */
static fattn_status check_scales(const check *x)
{
    for (fattn__auxiliary which = 0; which < FATTN__AUXILIARY_COUNT; which++) {
        array a;
        if (!is_scale(which) || fattn__auxiliary_bytes(x->p, which) == 0)
            continue;
        const bool of_sign = which == FATTN__AUXILIARY_ATTN_SCALE;
        TRY(fetch_auxiliary(&a, x, which, 0));
        const float scale = *(const float *)a.data;
        free(a.owned);
        if (!isfinite(scale) || scale == 0.0f || (scale < 0.0f && !of_sign))
            return fattn__fail(FATTN_BAD_PROBLEM,
                               "%s[0]: %g is not allowed; want a finite number %s 0", a.name,
                               (double)scale, of_sign ? "other than" : "above");
    }
    return FATTN_OK;
}

/* ---- scale factors
 * -------------------------------------------------------------------------------------------------------------------
 */

/* A tensor's scale factors: of `rows` x `channels` in blocks of 32 along one of them. */
typedef struct factors {
    fattn__auxiliary which;
    bool of_rows; /* Q's side, not K's */
    bool along_rows;
    int64_t heads, rows, channels;
} factors;

/* Blocks past the end of the entry are not read. */
static fattn_status check_matrix(const check *x, const factors *f, const array *a, int64_t b,
                                 int64_t h)
{
    const int64_t length = length_of(x, f->of_rows, b),
                  line_count = f->along_rows ? f->channels : length;
    const int64_t blocks = ((f->along_rows ? length : f->channels) + 31) / 32,
                  column_tiles = (((f->along_rows ? f->rows : f->channels) + 31) / 32 + 3) / 4;
    const int64_t matrix =
                      fattn__scale_factors(f->along_rows ? f->channels : f->rows, column_tiles * 4),
                  first = (b * f->heads + h) * matrix;
    for (int64_t line = 0; line < line_count; line++)
        for (int64_t column = 0; column < blocks; column++) {
            const int64_t at = first + (line / 128 * column_tiles + column / 4) * 512 +
                               line % 32 * 16 + line / 32 % 4 * 4 + column % 4;
            if (((const uint8_t *)a->data)[at] == 0xff)
                return fattn__fail(
                    FATTN_BAD_PROBLEM,
                    "%s[%" PRId64
                    "]: 255 is not allowed; want 0 to 254, a power of two (entry %" PRId64
                    ", head %" PRId64 ", line %" PRId64 ", block %" PRId64 ")",
                    a->name, at, b, h, line, column);
        }
    return FATTN_OK;
}

static fattn_status check_factors(const check *x, const factors *f)
{
    array a;
    if (fattn__auxiliary_bytes(x->p, f->which) == 0)
        return FATTN_OK;
    TRY(fetch_auxiliary(&a, x, f->which, 0));
    fattn_status st = FATTN_OK;
    for (int64_t b = 0; b < x->p->batch && st == FATTN_OK; b++)
        for (int64_t h = 0; h < f->heads && st == FATTN_OK; h++)
            st = check_matrix(x, f, &a, b, h);
    free(a.owned);
    return st;
}

static fattn_status check_all_factors(const check *x)
{
    const fattn_problem *p = x->p;
    const factors all[] = {
        { FATTN__AUXILIARY_SF_Q, true, false, p->heads_q, p->seq_q, p->dim_qk },
        { FATTN__AUXILIARY_SF_K, false, false, p->heads_k, p->seq_kv, p->dim_qk },
        { FATTN__AUXILIARY_SF_V, false, p->pass == FATTN_FORWARD, p->heads_v, p->seq_kv, p->dim_v },
        { FATTN__AUXILIARY_SF_DO, true, false, p->heads_q, p->seq_q, p->dim_v },
        { FATTN__AUXILIARY_SF_Q_T, true, true, p->heads_q, p->seq_q, p->dim_qk },
        { FATTN__AUXILIARY_SF_K_T, false, true, p->heads_k, p->seq_kv, p->dim_qk },
        { FATTN__AUXILIARY_SF_DO_T, true, true, p->heads_q, p->seq_q, p->dim_v },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        TRY(check_factors(x, &all[i]));
    return FATTN_OK;
}

/* ---- all of it
 * ------------------------------------------------------------------------------------------------------------------------
 */

static fattn_status check_values(check *x)
{
    TRY(check_both_lengths(x));
    TRY(check_places(x));
    TRY(check_table(x, FATTN__ROLE_K));
    TRY(check_table(x, FATTN__ROLE_V));
    TRY(check_scales(x));
    return check_all_factors(x);
}

fattn_status fattn__call_values_check(const fattn_plan *plan, const fattn_tensors *tensors,
                                      const int64_t elements[FATTN_RAGGED_TENSORS])
{
    check x = { .plan = plan, .p = &plan->problem, .t = tensors, .elements = elements };
    const fattn_status st = check_values(&x);
    free(x.len_q.owned);
    free(x.len_kv.owned);
    return st;
}

fattn_status fattn_call_check(const fattn_plan *plan, const fattn_tensors *tensors,
                              const int64_t elements[FATTN_RAGGED_TENSORS],
                              struct CUstream_st *stream)
{
    NEED(plan, tensors);
    fattn_tensors t;
    TRY(fattn__check_call(plan, (fattn_pass)plan->problem.pass, tensors, &t));
    TRY(fattn_stream_synchronize(plan->context, stream));
    return fattn__call_values_check(plan, &t, elements);
}
