/* A small problem with everything that a call may bring, laid out as the problem says, run by the
 * cpu backend and held against libfref. What belongs to nobody holds a NaN before the call and must
 * hold the same one after it. */
#ifndef FATTN_TEST_SURFACE_H
#define FATTN_TEST_SURFACE_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fattn/fattn.h>
#include <fref/fref.h>

#include "problem/layout.h"
#include "problem/resolved_problem.h"

#ifndef SURFACE_EXTENTS /* a file that needs smaller ones defines them first */
#ifdef __SANITIZE_ADDRESS__
#define SURFACE_EXTENTS SQ = 70, SK = 140 /* a whole tile and a part of one */
#else
#define SURFACE_EXTENTS SQ = 150, SK = 270
#endif
#endif
enum { B = 3, HQ = 4, HK = 2, SURFACE_EXTENTS, D = 32, DV = 48 };
#define ROLES FATTN_RAGGED_TENSORS

typedef struct world {
    fattn_problem p;
    fattn_tensors t;
    int32_t len_q[B], len_kv[B];
    int64_t start_q[B + 1], start_kv[B + 1]; /* tokens, where packed */
    void *dense[ROLES]; /* the same tensors, dense b,h,s,d, in their types: what the reference reads
                         */
    void *memory[ROLES];
    int64_t elements[ROLES];
    int64_t offsets[ROLES][B + 1];
    void *offset_memory[ROLES];
    fref_problem r;
    fref_tensor in[ROLES]; /* where a test does not want `dense` */
    fref_tensor bias;
    fref_rounding rounding;
    double scale_o, scale_dq, scale_dk, scale_dv; /* 8-bit types: got / scale is compared */
    fref_forward_out forward;
    fref_backward_out backward;
} world;

static inline uint32_t random_bits(void)
{
    static uint32_t seed = 7;
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static inline float random_float(void)
{
    return (float)random_bits() * 0x1p-23f - 1.0f;
}

static inline double *doubles(int64_t n)
{
    return calloc((size_t)n, sizeof(double));
}

static inline float *floats(int64_t n)
{
    float *x = aligned_alloc(64, ((size_t)n * sizeof(float) + 63) / 64 * 64);
    for (int64_t i = 0; i < n; i++)
        x[i] = random_float();
    return x;
}

static inline world make(void)
{
    world x = { .p = FATTN_PROBLEM_INIT,
                .t = FATTN_TENSORS_INIT,
                .len_q = { SQ, SQ * 33 / 150, SQ * 77 / 150 },
                .len_kv = { SK * 200 / 270, SK * 101 / 270, SK } };
    fattn_problem *p = &x.p;
    p->pass = FATTN_BACKWARD, p->dtype = FATTN_F32, p->batch = B, p->heads_q = HQ, p->heads_k = HK,
    p->seq_q = SQ, p->seq_kv = SK;
    p->dim_qk = D, p->dim_v = DV, p->attn_scale = 0.3, p->has_attn_scale = 1;
    x.scale_o = x.scale_dq = x.scale_dk = x.scale_dv = 1;
    return x;
}

static inline bool of_rows(fattn__role which)
{
    return which != FATTN__ROLE_K && which != FATTN__ROLE_V && which != FATTN__ROLE_DK &&
           which != FATTN__ROLE_DV;
}

static inline int64_t length_of(const world *x, fattn__role which, int64_t b)
{
    const int64_t entry = x->p.len_broadcast ? 0 : b;
    if (!x->p.padding)
        return of_rows(which) ? SQ : SK;
    return of_rows(which) ? x->len_q[entry] : x->len_kv[entry];
}

static inline const int32_t *table_of(const world *x, fattn__role which)
{
    return which == FATTN__ROLE_K ? x->t.page_table_k : x->t.page_table_v;
}

/* Where row s of (b, h) lies, in elements. Its own arithmetic. */
static inline int64_t place_of(const world *x, fattn__role which, int64_t b, int64_t h, int64_t s)
{
    fattn_problem copy = x->p;
    const int64_t *stride = fattn__problem_strides(&copy, which),
                  page = fattn__problem_page(&x->p, which);
    if (fattn__problem_ragged(&x->p, which))
        return x->offsets[which][b] * (x->p.ragged_tokens ? stride[2] : 1) + h * stride[1] +
               s * stride[2];
    if (page == 0)
        return b * stride[0] + h * stride[1] + s * stride[2];
    const void *packed = which == FATTN__ROLE_K ? x->t.table_offsets_k : x->t.table_offsets_v;
    const int64_t first =
        x->p.packed_table ? ((const int32_t *)packed)[b] : b * ((SK + page - 1) / page);
    return table_of(x, which)[first + s / page] * stride[0] + h * stride[1] + s % page * stride[2];
}

static inline int64_t bytes_of(int32_t dtype)
{
    return fattn__dtype_bytes(dtype);
}

/* Tokens begin with a gap of two between entries. */
static inline void place_entries(world *x, fattn__role which)
{
    fattn_problem copy = x->p;
    const int64_t step = fattn__problem_strides(&copy, which)[2];
    const int64_t *start = of_rows(which) ? x->start_q : x->start_kv;
    x->offset_memory[which] = aligned_alloc(16, 64);
    for (int b = 0; b <= B; b++) {
        x->offsets[which][b] = start[b] * (x->p.ragged_tokens ? 1 : step);
        if (x->p.ragged_bits == 64)
            ((int64_t *)x->offset_memory[which])[b] = x->offsets[which][b];
        else
            ((int32_t *)x->offset_memory[which])[b] = (int32_t)x->offsets[which][b];
    }
}

/* Visits every element that the tensor has: rows of an entry, or all where it is not packed. */
#define EACH_ROW(x, which, shape, b, h, s)                                                         \
    for (int64_t b = 0; b < B; b++)                                                                \
        for (int64_t h = 0; h < (shape).dim[1]; h++)                                               \
            for (int64_t s = 0;                                                                    \
                 s < (fattn__problem_ragged(&(x)->p, which) ? length_of(x, which, b)               \
                                                            : (shape).dim[2]);                     \
                 s++)

static inline int64_t dense_of(const fattn__shape *shape, int64_t b, int64_t h, int64_t s)
{
    return ((b * shape->dim[1] + h) * shape->dim[2] + s) * shape->dim[3];
}

static inline void random_elements(void *data, int32_t dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float x = random_float();
        uint32_t bits;
        memcpy(&bits, &x, 4);
        if (dtype == FATTN_F32)
            ((float *)data)[i] = x;
        else if (dtype == FATTN_BF16)
            ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        else if (dtype == FATTN_E5M2 || dtype == FATTN_MXE5M2)
            ((uint8_t *)data)[i] = (uint8_t)(0x30 + random_bits() % 14 +
                                             random_bits() % 2 * 0x80); /* 2^-3 to below 2.5 */
        else
            ((uint8_t *)data)[i] = (uint8_t)(0x28 + random_bits() % 26 +
                                             random_bits() % 2 * 0x80); /* 0.25 to below 2.5 */
    }
}

static inline void place_tensor(world *x, fattn__role which)
{
    const fattn__shape shape = fattn__problem_shape(&x->p, which),
                       memory = fattn__problem_bytes_of(&x->p, which);
    const int64_t bytes = bytes_of(shape.dtype),
                  n = (int64_t)B * shape.dim[1] * shape.dim[2] * shape.dim[3];
    int64_t span;
    cr_assert(fattn__layout_span(memory.dim, memory.strides, &span));
    if (fattn__problem_ragged(&x->p, which))
        place_entries(x, which);
    EACH_ROW(x, which, shape, b, h, s)
    if (fattn__problem_page(&x->p, which) == 0)
        span = place_of(x, which, b, h, s) + shape.dim[3] > span
                   ? place_of(x, which, b, h, s) + shape.dim[3]
                   : span;
    x->elements[which] = span;
    x->dense[which] = calloc((size_t)n, (size_t)bytes);
    x->memory[which] = aligned_alloc(64, (size_t)(span * bytes + 63) / 64 * 64);
    memset(x->memory[which], 0xff, (size_t)(span * bytes + 63) / 64 * 64);
    if (which != FATTN__ROLE_Q && which != FATTN__ROLE_K && which != FATTN__ROLE_V &&
        which != FATTN__ROLE_DO)
        return;
    random_elements(x->dense[which], shape.dtype, n);
    for (int back = 0; back < 2;
         back++) /* and back: rows of several entries in one place are what was written last */
        for (int64_t b = 0; b < B; b++)
            for (int64_t h = 0; h < shape.dim[1]; h++)
                for (int64_t s = 0; s < length_of(x, which, b); s++) {
                    char *there = (char *)x->memory[which] + place_of(x, which, b, h, s) * bytes,
                         *dense = (char *)x->dense[which] + dense_of(&shape, b, h, s) * bytes;
                    memcpy(back ? dense : there, back ? there : dense,
                           (size_t)(shape.dim[3] * bytes));
                }
}

/* Pages of `size` keys in an order of their own, two pages of the pool nobody's; packed: as many as
 * an entry needs. */
static inline void place_pages(world *x, int64_t size)
{
    const int64_t of_entry = (SK + size - 1) / size, used = B * of_entry;
    int32_t *table = aligned_alloc(16, (size_t)(used * 4 + 15) / 16 * 16),
            *first = aligned_alloc(16, 16);
    int32_t at = 0;
    for (int64_t n = 0; n < used; n++)
        table[n] = (int32_t)((n * 7 + 5) % (used + 2)); /* used + 2 is no multiple of 7 here */
    for (int b = 0; b <= B; b++) {
        first[b] = at;
        at += b < B ? (int32_t)((x->len_kv[b] + size - 1) / size) : 0;
    }
    x->t.page_table_k = x->t.page_table_v = table;
    x->t.table_offsets_k = x->t.table_offsets_v = first;
}

static inline fref_type fref_of(int32_t dtype)
{
    return dtype == FATTN_F32                             ? FREF_F32
           : dtype == FATTN_F16                           ? FREF_F16
           : dtype == FATTN_BF16                          ? FREF_BF16
           : dtype == FATTN_E4M3 || dtype == FATTN_MXE4M3 ? FREF_E4M3
                                                          : FREF_E5M2;
}

static inline void settle(world *x)
{
    fattn_problem resolved;
    for (int b = 0; b < B; b++) {
        x->start_q[b + 1] = x->start_q[b] + x->len_q[b] + 2;
        x->start_kv[b + 1] = x->start_kv[b] + x->len_kv[b] + 2;
    }
    cr_assert_eq(fattn_problem_resolve(&x->p, &resolved), FATTN_OK, "%s", fattn_last_error());
    x->p = resolved;
    for (fattn__role which = 0; which < ROLES; which++) {
        place_tensor(x, which);
        const fattn__shape shape = fattn__problem_shape(&x->p, which);
        x->in[which] = (fref_tensor){ .data = x->dense[which],
                                      .type = fref_of(shape.dtype),
                                      .stride = { shape.dim[1] * shape.dim[2] * shape.dim[3],
                                                  shape.dim[2] * shape.dim[3], shape.dim[3], 1 } };
    }
    fattn_tensors *t = &x->t;
    int32_t *lengths_q = aligned_alloc(16, 16), *lengths_kv = aligned_alloc(16, 16);
    int32_t sum_q = 0, sum_kv = 0;
    for (int b = 0; b <= B; b++) {
        lengths_q[b] = x->p.cumulative & FATTN_CUMULATIVE_Q ? sum_q : b < B ? x->len_q[b] : 0;
        lengths_kv[b] = x->p.cumulative & FATTN_CUMULATIVE_KV ? sum_kv : b < B ? x->len_kv[b] : 0;
        sum_q += b < B ? x->len_q[b] : 0, sum_kv += b < B ? x->len_kv[b] : 0;
    }
    t->seq_len_q = lengths_q, t->seq_len_kv = lengths_kv;
    t->q = x->memory[0], t->k = x->memory[1], t->v = x->memory[2], t->o = x->memory[3],
    t->stats = x->memory[4], t->d_o = x->memory[5];
    t->dq = x->memory[6], t->dk = x->memory[7], t->dv = x->memory[8];
    t->q_offsets = x->offset_memory[0], t->k_offsets = x->offset_memory[1],
    t->v_offsets = x->offset_memory[2];
    t->o_offsets = x->offset_memory[3], t->stats_offsets = x->offset_memory[4],
    t->do_offsets = x->offset_memory[5];
    t->dq_offsets = x->offset_memory[6], t->dk_offsets = x->offset_memory[7],
    t->dv_offsets = x->offset_memory[8];
    x->r.batch = B, x->r.heads_q = HQ, x->r.heads_k = x->p.heads_k, x->r.heads_v = x->p.heads_v,
    x->r.rows = SQ, x->r.keys = SK, x->r.dim_qk = D, x->r.dim_v = DV;
    x->r.scale = x->p.scale_in_memory ? x->r.scale : x->p.attn_scale;
    x->r.has_left = x->p.has_left, x->r.has_right = x->p.has_right, x->r.left = x->p.window_left,
    x->r.right = x->p.window_right;
    x->r.bottom_right = x->p.align == FATTN_BOTTOM_RIGHT;
    x->rounding = fref_rounding_of(fref_of(x->p.dtype), fref_of(x->p.o_dtype));
    if (fattn__dtype_is_fp8(x->p.dtype))
        x->rounding.ds = fref_of(x->p.do_dtype);
    static int32_t same_q[B], same_kv[B];
    for (int b = 0; b < B; b++)
        same_q[b] = x->len_q[x->p.len_broadcast ? 0 : b],
        same_kv[b] = x->len_kv[x->p.len_broadcast ? 0 : b];
    if (x->p.padding)
        x->r.len_q = same_q, x->r.len_kv = same_kv;
}

static inline fattn_context *cpu_context(int threads)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *context;
    options.device_kind = FATTN_DEVICE_CPU, options.threads = threads;
    cr_assert_eq(fattn_context_create(&context, &options), FATTN_OK);
    return context;
}

/* The reference's bias of every score, [B][HQ][SQ][SK]. */
static inline float *reference_bias(world *x)
{
    float *bias = calloc((size_t)B * HQ * SQ * SK, 4);
    x->bias =
        (fref_tensor){ .data = bias, .type = FREF_F32, .stride = { HQ * SQ * SK, SQ * SK, SK, 1 } };
    x->r.bias = &x->bias;
    return bias;
}

/* Runs a pass in the place of the cpu backend; NULL: the cpu backend. */
static void (*run_instead)(world *x, const fattn_problem *p);

/* One pass, with three threads and a dirty workspace. */
static inline void call(world *x, fattn_pass pass)
{
    fattn_problem p = x->p;
    p.pass = pass;
    if (pass == FATTN_FORWARD)
        p.outputs |= p.outputs & FATTN_WANT_STATS_LOG2 ? 0u : FATTN_WANT_STATS;
    if (run_instead != NULL) {
        run_instead(x, &p);
        return;
    }
    fattn_context *context = cpu_context(3);
    fattn_plan *plan;
    cr_assert_eq(fattn_plan_create(&plan, context, &p, NULL), FATTN_OK, "%s", fattn_last_error());
    const size_t bytes = (fattn_plan_workspace_bytes(plan) + 63) / 64 * 64;
    x->t.workspace = aligned_alloc(64, bytes), x->t.workspace_bytes = bytes;
    memset(x->t.workspace, 0xff, bytes);
    const fattn_status st = pass == FATTN_FORWARD ? fattn_forward(plan, &x->t, NULL)
                                                  : fattn_backward(plan, &x->t, NULL);
    cr_assert_eq(st, FATTN_OK, "%s", fattn_last_error());
    free(x->t.workspace);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}

/* Takes an output to its dense form; what is nobody's must be as it was. */
static inline void gather(world *x, fattn__role which)
{
    const fattn__shape shape = fattn__problem_shape(&x->p, which);
    const int64_t bytes = bytes_of(shape.dtype);
    char *mine = calloc((size_t)x->elements[which], 1);
    EACH_ROW(x, which, shape, b, h, s)
    {
        const int64_t at = place_of(x, which, b, h, s);
        memcpy((char *)x->dense[which] + dense_of(&shape, b, h, s) * bytes,
               (char *)x->memory[which] + at * bytes, (size_t)(shape.dim[3] * bytes));
        memset(mine + at, 1, (size_t)shape.dim[3]);
    }
    for (int64_t i = 0; i < x->elements[which] * bytes; i++)
        cr_assert(mine[i / bytes] || ((unsigned char *)x->memory[which])[i] == 0xff,
                  "%s: element %lld is nobody's and was written", fattn__role_name(which),
                  (long long)(i / bytes));
    free(mine);
}

static inline double number(const void *data, int32_t dtype, int64_t i)
{
    const fref_type type = fref_of(dtype);
    if (type == FREF_F32)
        return (double)((const float *)data)[i];
    if (type == FREF_BF16) {
        const uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        float f;
        memcpy(&f, &bits, 4);
        return (double)f;
    }
    const int code = ((const uint8_t *)data)[i], m = type == FREF_E4M3 ? 3 : 2,
              bias = type == FREF_E4M3 ? 7 : 15, e = (code & 0x7f) >> m;
    if ((code & 0x7f) == 0x7f)
        return NAN;
    const double f = code & ((1 << m) - 1),
                 size = e == 0 ? ldexp(f, 1 - bias - m) : ldexp(f + (1 << m), e - bias - m);
    return code & 0x80 ? -size : size;
}

/* Rows past an entry's end are 0 where the tensor is not packed. */
static inline void expect_close(world *x, fattn__role which, const double *want,
                                const double *bound, double scale)
{
    const fattn__shape shape = fattn__problem_shape(&x->p, which);
    double worst = 0;
    gather(x, which);
    EACH_ROW(x, which, shape, b, h, s)
    for (int64_t d = 0; d < shape.dim[3]; d++) {
        const int64_t i = dense_of(&shape, b, h, s) + d;
        const double got = number(x->dense[which], shape.dtype, i) / scale;
        const bool live = s < length_of(x, which, b);
        const double allowed = live ? bound[i] * 1.05 + 1e-30 : 0,
                     error = fabs(got - (live ? want[i] : 0));
        worst = fmax(worst, allowed > 0 ? error / allowed : 0);
        cr_assert(error <= allowed, "%s %d,%d,%d,%d: %g, not %g +- %g", fattn__role_name(which),
                  (int)b, (int)h, (int)s, (int)d, got, live ? want[i] : 0, allowed);
    }
    cr_assert(worst > 1e-6, "%s: exact throughout is not to be believed", fattn__role_name(which));
}

static inline void expect_rows(world *x, const double *want, const double *tau, double unit)
{
    const fattn__shape shape = fattn__problem_shape(&x->p, FATTN__ROLE_STATS);
    gather(x, FATTN__ROLE_STATS);
    EACH_ROW(x, FATTN__ROLE_STATS, shape, b, h, s)
    {
        const int64_t i = dense_of(&shape, b, h, s);
        const double got = (double)((float *)x->dense[FATTN__ROLE_STATS])[i] / unit,
                     due = s < length_of(x, FATTN__ROLE_STATS, b) ? want[i] : -INFINITY;
        cr_assert(got == due || fabs(got - due) <= 1.1 * tau[i] + 1e-6,
                  "stats %d,%d,%d: %g, not %g", (int)b, (int)h, (int)s, got, due);
    }
}

static inline void expect_forward(world *x)
{
    const int64_t rows = B * HQ * SQ;
    fref_forward_out *f = &x->forward;
    *f = (fref_forward_out){ .o.value = doubles(rows * DV),
                             .o.bound = doubles(rows * DV),
                             .lse = doubles(rows),
                             .lse_tau = doubles(rows),
                             .max = doubles(rows),
                             .sum_exp = doubles(rows),
                             .amax_s = doubles(3),
                             .o.amax = doubles(3) };
    call(x, FATTN_FORWARD);
    cr_assert_eq(fref_forward(&x->r, &x->in[FATTN__ROLE_Q], &x->in[FATTN__ROLE_K],
                              &x->in[FATTN__ROLE_V], &x->rounding, f),
                 0);
    expect_close(x, FATTN__ROLE_O, f->o.value, f->o.bound, x->scale_o);
    expect_rows(x, f->lse, f->lse_tau, x->p.outputs & FATTN_WANT_STATS_LOG2 ? M_LOG2E : 1);
}

/* After expect_forward, whose O and Stats it reads. */
static inline void expect_backward(world *x)
{
    const int64_t q = (int64_t)B * HQ * SQ * D, k = (int64_t)B * x->p.heads_k * SK * D,
                  v = (int64_t)B * x->p.heads_v * SK * DV;
    fref_backward_out *g = &x->backward;
    *g = (fref_backward_out){ .dq.value = doubles(q),
                              .dq.bound = doubles(q),
                              .dk.value = doubles(k),
                              .dk.bound = doubles(k),
                              .dv.value = doubles(v),
                              .dv.bound = doubles(v),
                              .dsink = doubles(HQ),
                              .dsink_bound = doubles(HQ),
                              .amax_dp = doubles(3),
                              .dq.amax = doubles(3),
                              .dk.amax = doubles(3),
                              .dv.amax = doubles(3) };
    x->rounding.out = fref_of(x->p.grad_dtype);
    call(x, FATTN_BACKWARD);
    cr_assert_eq(fref_backward(&x->r, &x->in[0], &x->in[1], &x->in[2], &x->in[3], &x->in[4],
                               &x->in[5], &x->rounding, g),
                 0);
    expect_close(x, FATTN__ROLE_DQ, g->dq.value, g->dq.bound, x->scale_dq);
    expect_close(x, FATTN__ROLE_DK, g->dk.value, g->dk.bound, x->scale_dk);
    expect_close(x, FATTN__ROLE_DV, g->dv.value, g->dv.bound, x->scale_dv);
}

static inline void expect_all(world *x)
{
    settle(x);
    expect_forward(x);
    expect_backward(x);
}

#endif
