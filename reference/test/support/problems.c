#include "problems.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* Twelve uniform numbers: mean 0, variance 1, nothing beyond 6. */
double random_normal(uint64_t *state)
{
    double sum = -6.0;
    for (int n = 0; n < 12; n++)
        sum += (double)(random_bits(state) >> 11) * 0x1p-53;
    return sum;
}

/* Significand and exponent of a type: bits with the hidden one, the exponent of the last bit of a
 * subnormal, the largest number. */
typedef struct format {
    int bits, lowest;
    double largest;
    bool saturates;
} format;

static format format_of(fref_type type)
{
    switch (type) {
    case FREF_F32:
        return (format){ 24, -149, 0x1.fffffep127, false };
    case FREF_F16:
        return (format){ 11, -24, 65504.0, false };
    case FREF_E4M3:
        return (format){ 4, -9, 448.0, true };
    case FREF_E5M2:
        return (format){ 3, -16, 57344.0, true };
    default:
        return (format){ 8, -133, 0x1.fep127, false };
    }
}

double unit_roundoff_of(fref_type type)
{
    return ldexp(1.0, -format_of(type).bits);
}

/* The value of the last bit that the type has at this magnitude. */
static double last_bit(fref_type type, double value)
{
    format f = format_of(type);
    int exponent;
    frexp(value, &exponent); /* |value| in [2^(exponent-1), 2^exponent) */
    return ldexp(1.0, exponent - f.bits > f.lowest ? exponent - f.bits : f.lowest);
}

static double not_too_large(fref_type type, double value)
{
    format f = format_of(type);
    return fabs(value) > f.largest ? copysign(f.saturates ? f.largest : INFINITY, value) : value;
}

/* To the nearest value of the type, ties to even; subnormals kept. */
static double rounded_to(fref_type type, double value)
{
    if (!isfinite(value) || value == 0.0)
        return value;
    double bit = last_bit(type, value);
    return not_too_large(type, rint(value / bit) * bit);
}

/* Dense strides of [_, heads, s, dim]. */
static void dense_strides(int64_t stride[4], int64_t heads, int64_t s, int64_t dim)
{
    stride[3] = 1;
    stride[2] = dim;
    stride[1] = s * dim;
    stride[0] = heads * s * dim;
}

int64_t offset_of(const fref_tensor *t, int64_t b, int64_t h, int64_t s, int64_t c)
{
    int64_t at = h * t->stride[1] + c * t->stride[3];
    if (t->pages)
        return at + t->pages[b * t->pages_of_batch + s / t->page_size] * t->stride[0] +
               s % t->page_size * t->stride[2];
    return at + (t->first ? t->first[b] : b * t->stride[0]) + s * t->stride[2];
}

/* Where the bits of a number end: exponent, fraction. */
static void fields_of(fref_type type, int *exponent_bits, int *fraction_bits)
{
    *exponent_bits = type == FREF_BF16 ? 8 : type == FREF_E4M3 ? 4 : 5;
    *fraction_bits = type == FREF_BF16 ? 7 : type == FREF_F16 ? 10 : type == FREF_E4M3 ? 3 : 2;
}

static bool is_8_bit(fref_type type)
{
    return type == FREF_E4M3 || type == FREF_E5M2;
}

static double value_of(fref_type type, uint32_t bits)
{
    int exponent_bits, fraction_bits;
    fields_of(type, &exponent_bits, &fraction_bits);
    int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1),
        bias = (1 << (exponent_bits - 1)) - 1;
    int fraction = (int)bits & ((1 << fraction_bits) - 1);
    double sign = bits >> (exponent_bits + fraction_bits) ? -1.0 : 1.0;
    if (type == FREF_E4M3 ? (bits & 0x7f) == 0x7f : exponent == (1 << exponent_bits) - 1)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

double element(const fref_tensor *t, int64_t b, int64_t h, int64_t s, int64_t c)
{
    int64_t at = offset_of(t, b, h, s, c);
    double descale = t->descale != 0.0 ? t->descale : 1.0;
    if (t->type == FREF_F32)
        return (double)((const float *)t->data)[at] * descale;
    return descale * value_of(t->type, is_8_bit(t->type) ? ((const uint8_t *)t->data)[at]
                                                         : ((const uint16_t *)t->data)[at]);
}

void set_element(fref_tensor *t, int64_t b, int64_t h, int64_t s, int64_t c, double value)
{
    int64_t at = offset_of(t, b, h, s, c);
    void *memory = (void *)(uintptr_t)t->data;
    if (t->type == FREF_F32) {
        ((float *)memory)[at] = (float)value;
        return;
    }
    value = rounded_to(t->type, value);
    int exponent_bits, fraction_bits;
    fields_of(t->type, &exponent_bits, &fraction_bits);
    int bias = (1 << (exponent_bits - 1)) - 1;
    uint32_t sign = (uint32_t)(signbit(value) != 0) << (exponent_bits + fraction_bits), bits;
    if (isnan(value)) {
        bits = (1U << (exponent_bits + fraction_bits)) - 1U;
    } else if (isinf(value)) {
        bits = (uint32_t)((1 << exponent_bits) - 1) << fraction_bits;
    } else {
        int exponent;
        frexp(value, &exponent);
        int biased = value == 0.0 ? 0 : exponent - 1 + bias;
        int step = biased > 0 ? biased - bias - fraction_bits : 1 - bias - fraction_bits;
        uint32_t significand = (uint32_t)ldexp(fabs(value), -step);
        bits = biased > 0
                   ? significand - (1U << fraction_bits) + ((uint32_t)biased << fraction_bits)
                   : significand;
    }
    if (is_8_bit(t->type))
        ((uint8_t *)memory)[at] = (uint8_t)(sign | bits);
    else
        ((uint16_t *)memory)[at] = (uint16_t)(sign | bits);
}

fref_problem dense_problem(int64_t batch, int64_t heads_q, int64_t heads_kv, int64_t rows,
                           int64_t keys, int64_t dim_qk, int64_t dim_v)
{
    return (fref_problem){ .batch = batch,
                           .heads_q = heads_q,
                           .heads_k = heads_kv,
                           .heads_v = heads_kv,
                           .rows = rows,
                           .keys = keys,
                           .dim_qk = dim_qk,
                           .dim_v = dim_v,
                           .scale = (double)(1.0F / sqrtf((float)dim_qk)) };
}

static void tensor_create(fref_tensor *out, fref_type type, int64_t batch, int64_t heads, int64_t s,
                          int64_t dim)
{
    out->type = type;
    dense_strides(out->stride, heads, s, dim);
    out->data = calloc((size_t)(batch * heads * s * dim + 1), type == FREF_F32 ? 4
                                                              : is_8_bit(type) ? 1
                                                                               : 2);
    if (!out->data)
        abort();
}

static void fill_normal(fref_tensor *t, int64_t heads, int64_t s, int64_t dim, int64_t batch,
                        uint64_t *state)
{
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < s; i++)
                for (int64_t c = 0; c < dim; c++)
                    set_element(t, b, h, i, c, random_normal(state));
}

/* K = +-1 and q_i along one key at an edge of its row, large enough that this key takes nearly all
 * of P. */
static void fill_needle(data *d, uint64_t *state)
{
    const fref_problem *p = &d->problem;
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t h = 0; h < p->heads_k; h++)
            for (int64_t j = 0; j < p->keys; j++)
                for (int64_t c = 0; c < p->dim_qk; c++)
                    set_element(&d->k, b, h, j, c, random_bits(state) >> 63 ? 1.0 : -1.0);
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < p->rows; i++) {
                int64_t first, last;
                fref_keys_of_row(p, b, i, &first, &last);
                int64_t edges[] = { last - 1, last, first, first - 1,
                                    (int64_t)(random_bits(state) % (uint64_t)p->keys) };
                int64_t key = edges[random_bits(state) % 5];
                key = key < 0 ? 0 : key >= p->keys ? p->keys - 1 : key;
                double a = 12.0 / ((double)p->dim_qk * p->scale);
                for (int64_t c = 0; c < p->dim_qk; c++)
                    set_element(&d->q, b, h, i, c,
                                a * element(&d->k, b, h / (p->heads_q / p->heads_k), key, c));
            }
    }
}

/* Scores far below zero in every fourth row: what is scored 0 where -inf is due then takes all of
 * P. */
static void fill_neglse(data *d, uint64_t *state)
{
    const fref_problem *p = &d->problem;
    double m = exp2(rint(log2(300.0 / (2.0 * (double)p->dim_qk * p->scale))));
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t c = 0; c < p->dim_qk; c++) {
            double u = random_bits(state) >> 63 ? 1.0 : -1.0;
            for (int64_t h = 0; h < p->heads_k; h++)
                for (int64_t j = 0; j < p->keys; j++)
                    set_element(&d->k, b, h, j, c,
                                fmax(-2.0, fmin(2.0, rint(random_normal(state)))) + 2.0 * u);
            for (int64_t h = 0; h < p->heads_q; h++)
                for (int64_t i = 0; i < p->rows; i += 4)
                    set_element(&d->q, b, h, i, c, -m * u);
        }
    }
}

/* The score climbs by 40 along the keys: the running maximum moves in every tile. */
static void fill_stair(data *d, uint64_t *state)
{
    const fref_problem *p = &d->problem;
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < p->rows; i++)
                for (int64_t c = 0; c < p->dim_qk; c++)
                    set_element(&d->q, b, h, i, c, c == 0 ? 1.0 : 0.3 * random_normal(state));
        for (int64_t h = 0; h < p->heads_k; h++)
            for (int64_t j = 0; j < p->keys; j++)
                for (int64_t c = 0; c < p->dim_qk; c++)
                    set_element(&d->k, b, h, j, c,
                                c == 0 ? 40.0 * (double)j /
                                             ((double)(p->keys > 1 ? p->keys - 1 : 1) * p->scale)
                                       : 0.3 * random_normal(state));
    }
}

void data_create(data *d, const fref_problem *problem, fref_type type, data_fill fill,
                 uint64_t seed)
{
    *d = (data){ .problem = *problem, .type = type, .seed = seed };
    fref_problem *p = &d->problem;
    memcpy(d->dbias_dim, (int64_t[]){ 1, p->heads_q, p->rows, p->keys }, sizeof d->dbias_dim);
    for (int64_t b = 0; b < p->batch && b < 8; b++) {
        d->len_q[b] = p->len_q ? p->len_q[b] : (int32_t)p->rows;
        d->len_kv[b] = p->len_kv ? p->len_kv[b] : (int32_t)p->keys;
    }
    p->len_q = p->len_q ? d->len_q : NULL;
    p->len_kv = p->len_kv ? d->len_kv : NULL;
    tensor_create(&d->q, type, p->batch, p->heads_q, p->rows, p->dim_qk);
    tensor_create(&d->k, type, p->batch, p->heads_k, p->keys, p->dim_qk);
    tensor_create(&d->v, type, p->batch, p->heads_v, p->keys, p->dim_v);
    tensor_create(&d->o, type, p->batch, p->heads_q, p->rows, p->dim_v);
    tensor_create(&d->d_o, type, p->batch, p->heads_q, p->rows, p->dim_v);
    tensor_create(&d->stats, FREF_F32, p->batch, p->heads_q, p->rows, 1);
    uint64_t state = seed;
    fill_normal(&d->q, p->heads_q, p->rows, p->dim_qk, p->batch, &state);
    fill_normal(&d->k, p->heads_k, p->keys, p->dim_qk, p->batch, &state);
    fill_normal(&d->v, p->heads_v, p->keys, p->dim_v, p->batch, &state);
    fill_normal(&d->d_o, p->heads_q, p->rows, p->dim_v, p->batch, &state);
    if (fill == FILL_NEEDLE)
        fill_needle(d, &state);
    if (fill == FILL_NEGLSE)
        fill_neglse(d, &state);
    if (fill == FILL_STAIR)
        fill_stair(d, &state);
}

void data_bias(data *d, const int64_t dim[4], fref_type type, double size)
{
    uint64_t state = d->seed + 99;
    tensor_create(&d->bias, type, dim[0], dim[1], dim[2], dim[3]);
    for (int64_t b = 0; b < dim[0]; b++)
        for (int64_t h = 0; h < dim[1]; h++)
            for (int64_t i = 0; i < dim[2]; i++)
                for (int64_t j = 0; j < dim[3]; j++)
                    set_element(&d->bias, b, h, i, j, size * random_normal(&state));
    for (int axis = 0; axis < 3; axis++)
        d->bias.stride[axis] = dim[axis] > 1 ? d->bias.stride[axis] : 0;
    memcpy(d->dbias_dim, dim, sizeof d->dbias_dim);
    d->problem.bias = &d->bias;
}

void data_answer(data *d)
{
    const fref_problem *p = &d->problem;
    size_t rows = (size_t)(p->batch * p->heads_q * p->rows);
    double *o = malloc(rows * (size_t)p->dim_v * sizeof *o), *lse = malloc(rows * sizeof *lse);
    fref_rounding rounding = fref_rounding_of(d->type, d->type);
    if (!o || !lse ||
        fref_forward(p, &d->q, &d->k, &d->v, &rounding,
                     &(fref_forward_out){ .o.value = o, .lse = lse }) != 0)
        abort();
    size_t row = 0;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < p->rows; i++, row++) {
                set_element(&d->stats, b, h, i, 0, lse[row]);
                for (int64_t c = 0; c < p->dim_v; c++)
                    set_element(&d->o, b, h, i, c,
                                o[row * (size_t)p->dim_v + (size_t)c] /
                                    (d->o.descale != 0.0 ? d->o.descale : 1.0));
            }
    free(o);
    free(lse);
}

void data_destroy(data *d)
{
    fref_tensor *const owned[] = { &d->q, &d->k, &d->v, &d->o, &d->stats, &d->d_o, &d->bias };
    for (size_t n = 0; n < sizeof owned / sizeof owned[0]; n++)
        free((void *)(uintptr_t)owned[n]->data);
}
