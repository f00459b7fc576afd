/* Samples of rows and keys, descales, codes. harness/test/data/surface.test has ragged and paged tensors. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "modifications.h"

enum { BATCH = 3, ROWS = 21, KEYS = 34, HEADS = 4, HEADS_KV = 2, DIM = 16 };
static const int32_t len_q[BATCH] = { 13, 0, 21 }, len_kv[BATCH] = { 34, 9, 5 };

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = malloc(bytes);
    cr_assert_not_null(copy);
    memcpy(copy, from, bytes);
    return copy;
}

/* A problem, and what is said of it. */
static void start(data *d, answers *want, fref_type type)
{
    fref_problem p = dense_problem(BATCH, HEADS, HEADS_KV, ROWS, KEYS, DIM, DIM);
    p.len_q = len_q;
    p.len_kv = len_kv;
    p.has_right = p.bottom_right = true;
    p.right = 6;
    data_create(d, &p, type, FILL_GAUSS, 4);
    data_answer(d);
    const fref_rounding r = fref_rounding_of(type, type);
    answers_create(want, d, &r);
}

static void expect_same(const answers *want, const data *d, const char *what)
{
    const fref_rounding r = fref_rounding_of(d->type, d->type);
    answers got;
    answers_create(&got, d, &r);
    cr_expect(memcmp(want->memory, got.memory, want->bytes) == 0, "%s: a bit differs", what);
    answers_destroy(&got);
}

/* A sample of rows has the bits that those rows have among all; a sample of keys the same values,
 * and sigmas that know of the sample's scores alone. */
Test(layouts, a_sample_is_part_of_the_whole)
{
    const int64_t rows[] = { 0, 1, 7, 12, 19, 20 }, keys[] = { 0, 3, 4, 8, 30, 33 };
    enum { COUNT = 6 };
    data d;
    answers whole, part;
    start(&d, &whole, FREF_BF16);
    answers_destroy(&whole);
    mod_kind mod = MOD_SOFTCAP;
    const double alibi[] = { 0.25, 0.5, 0.125, 0.0625 };
    uint8_t keep[BATCH * HEADS * ROWS * KEYS];
    for (size_t n = 0; n < sizeof keep; n++)
        keep[n] = n % 5 != 2;
    d.problem.modify = modify_exactly;
    d.problem.modify_owner = &mod;
    d.problem.alibi = alibi;
    d.problem.keep = keep;
    d.problem.keep_scale = 1.25;
    data_bias(&d, (int64_t[]){ 1, HEADS, ROWS, KEYS }, FREF_F16, 1.0);
    data_answer(&d);
    const fref_rounding r = fref_rounding_of(d.type, d.type);
    answers_create(&whole, &d, &r);
    d.problem.row_sample = rows;
    d.problem.row_count = d.problem.key_count = COUNT;
    d.problem.key_sample = keys;
    answers_create(&part, &d, &r);
    for (int64_t line = 0; line < BATCH * HEADS * COUNT; line++) {
        const int64_t from = line / COUNT * ROWS + rows[line % COUNT],
                      bytes = DIM * (int64_t)sizeof(double);
        const double *const pairs[][2] = {
            { part.f.o.value, whole.f.o.value },   { part.f.o.sigma, whole.f.o.sigma },
            { part.f.o.bound, whole.f.o.bound },   { part.g.dq.value, whole.g.dq.value },
            { part.g.dq.sigma, whole.g.dq.sigma }, { part.g.dq.bound, whole.g.dq.bound }
        };
        for (size_t n = 0; n < 6; n++)
            cr_expect(memcmp(pairs[n][0] + line * DIM, pairs[n][1] + from * DIM, (size_t)bytes) ==
                          0,
                      "array %zu, row %ld", n, (long)line);
        cr_expect(part.f.lse[line] == whole.f.lse[from] &&
                  part.f.o.nu[line] == whole.f.o.nu[from] &&
                  part.g.dq.nu[line] == whole.g.dq.nu[from]);
    }
    for (int64_t at = 0; at < BATCH * HEADS_KV * COUNT * DIM; at++) {
        const int64_t line = at / DIM,
                      from = (line / COUNT * KEYS + keys[line % COUNT]) * DIM + at % DIM;
        cr_expect_eq(part.g.dk.value[at], whole.g.dk.value[from]);
        cr_expect_eq(part.g.dv.value[at], whole.g.dv.value[from]);
        cr_expect(part.g.dk.sigma[at] <= whole.g.dk.sigma[from] &&
                  part.g.dk.sigma[at] >= 0.999 * whole.g.dk.sigma[from]);
        cr_expect(part.g.dv.bound[at] <= whole.g.dv.bound[from] &&
                  part.g.dv.bound[at] >= 0.999 * whole.g.dv.bound[from]);
        cr_expect_eq(part.g.dk.neff[line], whole.g.dk.neff[from / DIM]);
    }
    cr_expect(memcmp(part.g.dbias.value, whole.g.dbias.value,
                     (size_t)whole.count_dbias * sizeof(double)) == 0);
    answers_destroy(&part);
    answers_destroy(&whole);
    data_destroy(&d);
}

/* A scale of 2 in what is decoded is the same as values twice as large. */
Test(layouts, descale_multiplies_what_is_read)
{
    data d;
    answers want;
    start(&d, &want, FREF_BF16);
    data half = d;
    half.k.data = copy_of(d.k.data, BATCH * HEADS_KV * KEYS * DIM * 2);
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t h = 0; h < HEADS_KV; h++)
            for (int64_t s = 0; s < KEYS; s++)
                for (int64_t c = 0; c < DIM; c++)
                    set_element(&half.k, b, h, s, c, 0.5 * element(&d.k, b, h, s, c));
    half.k.descale = 2.0;
    expect_same(&want, &half, "descale");
    free((void *)(uintptr_t)half.k.data);
    answers_destroy(&want);
    data_destroy(&d);
}

/* Against element(), and that against numbers of the formats' definitions. */
Test(layouts, decoding_of_all_bit_patterns_is_exact)
{
    static const struct {
        fref_type type;
        int bits;
        double value;
    } known[] = { { FREF_E4M3, 0x7e, 448.0 },     { FREF_E4M3, 0x01, 0x1p-9 },
                  { FREF_E4M3, 0xb9, -1.125 },    { FREF_E4M3, 0x08, 0x1p-6 },
                  { FREF_E5M2, 0x7b, 57344 },     { FREF_E5M2, 0x01, 0x1p-16 },
                  { FREF_E5M2, 0xc1, -2.5 },      { FREF_E5M2, 0x04, 0x1p-14 },
                  { FREF_E5M2, 0xfc, -INFINITY }, { FREF_F16, 0x7bff, 65504 },
                  { FREF_F16, 0x0001, 0x1p-24 },  { FREF_BF16, 0xc020, -2.5 } };
    static uint16_t wide[65536];
    static uint8_t narrow[256];
    static double o[65536];
    static const int ones[] = {
        [FREF_F16] = 0x3c00, [FREF_BF16] = 0x3f80, [FREF_E4M3] = 0x38, [FREF_E5M2] = 0x3c
    };
    for (int n = 0; n < 65536; n++)
        wide[n] = (uint16_t)n, narrow[n % 256] = (uint8_t)n;
    for (fref_type type = FREF_F16; type <= FREF_E5M2; type++) {
        const bool is_wide = type == FREF_F16 || type == FREF_BF16;
        const int count = is_wide ? 65536 : 256, one = ones[type], zero = 0;
        const fref_problem p = dense_problem(1, 1, 1, 1, 1, 1, count);
        const fref_tensor v = { is_wide ? (void *)wide : narrow, type, { 0, 0, 0, 1 } },
                          q = { &one, type, { 0 } }, k = { &zero, type, { 0 } };
        const fref_rounding r = fref_rounding_of(type, FREF_F32);
        cr_assert_eq(fref_forward(&p, &q, &k, &v, &r, &(fref_forward_out){ .o.value = o }), 0);
        for (int n = 0; n < count; n++) {
            const double want = element(&v, 0, 0, 0, n);
            cr_assert(isnan(want) ? isnan(o[n]) : o[n] == want, "%04x is %g, not %g", (unsigned)n,
                      want, o[n]);
        }
        for (size_t n = 0; n < sizeof known / sizeof known[0]; n++)
            if (known[n].type == type)
                cr_expect_eq(o[known[n].bits], known[n].value, "%02x is %g, not %g",
                             (unsigned)known[n].bits, known[n].value, o[known[n].bits]);
    }
}
