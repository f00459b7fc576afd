#include "../case/resolved.h"
#include "numbers/fill/places.h"
#include "numbers/fill/score_inputs.h"

#include <math.h>
#include <stdio.h>

static const facts_tensor_id inputs[] = { FACTS_TENSOR_Q, FACTS_TENSOR_K, FACTS_TENSOR_V,
                                          FACTS_TENSOR_DO };

static bool is_keyed(facts_tensor_id id)
{
    return id == FACTS_TENSOR_K || id == FACTS_TENSOR_V;
}

/* Live rows of Q, K, V (and dO) hold the same bits in both cases. */
static void check_same(const char *text, const char *plain)
{
    facts_problem *p = resolved(text), *q = resolved(plain);
    facts_storages a = stored(p), b = stored(q);
    for (size_t i = 0; i < 4; i++) {
        const int64_t *dim = p->tensor[inputs[i]].dim;
        for (int64_t n = 0; p->tensor[inputs[i]].present && n < dim[0] * dim[1] * dim[2] * dim[3];
             n++) {
            const int64_t at[4] = { n / (dim[1] * dim[2] * dim[3]), n / (dim[2] * dim[3]) % dim[1],
                                    n / dim[3] % dim[2], n % dim[3] };
            if (at[2] < (is_keyed(inputs[i]) ? p->len_kv : p->len_q)[at[0]])
                cr_assert_eq(code_at(p, inputs[i], a.at[inputs[i]], at),
                             code_at(q, inputs[i], b.at[inputs[i]], at), "%s: tensor %d", text,
                             (int)inputs[i]);
        }
    }
    freed(p, &a), freed(q, &b), free(p), free(q);
}

#define LENS "h=4/2 s=20/33 d=16 lens=20+0+7/3+33+12 "

Test(placed, where_a_row_lies_changes_no_bit)
{
    static const char *const forms[][2] = {
        { "pass=bwd b=3 " LENS, "layout=bhsd stride=gap:8;offset:16" },
        { "pass=bwd b=3 " LENS, "layout=thd_t2hd slots=+3 tail=5" },
        { "b=3 " LENS, "paged=5" },
        { "b=3 " LENS, "paged=v:8 table=packed" },
    };
#define AS_WORD(symbol, word) word,
    static const char *const fills[] = { FACTS_FILL_LIST(AS_WORD) };
#undef AS_WORD
    for (size_t n = 0; n < sizeof fills / sizeof *fills; n++)
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
            char text[240], plain[160];
            snprintf(plain, sizeof plain, "%sfill=%s", forms[i][0], fills[n]);
            snprintf(text, sizeof text, "%s %s", plain, forms[i][1]);
            check_same(text, plain);
        }
}

/* With poison=nan everything that is no live row is NaN, and nothing else. */
static void check_poison(const char *text)
{
    facts_problem *p = resolved(text);
    facts_storages in = stored(p);
    for (size_t i = 0; i < 4; i++) {
        const facts_tensor_id id = inputs[i];
        const facts_tensor *t = &p->tensor[id];
        if (!t->present)
            continue;
        unsigned char *live = calloc((size_t)t->elements, 1);
        for (size_t k = 0; k < 4; k++) {
            const facts_tensor_id other = inputs[k];
            for (int64_t b = 0; owner_of(p, other) == owner_of(p, id) && b < t->dim[0]; b++)
                for (int64_t s = 0; s < (is_keyed(other) ? p->len_kv : p->len_q)[b]; s++)
                    for (int64_t n = 0; n < p->tensor[other].dim[1] * t->dim[3]; n++)
                        live[facts_row_at(p, other, b, s) +
                             n / t->dim[3] * p->tensor[other].stride[1] + n % t->dim[3]] = 1;
        }
        int64_t dead = 0;
        for (int64_t n = 0; n < t->elements; n++) {
            cr_assert_eq(isnan(facts_decode(t->dtype, facts_load(t->dtype, in.at[id], n))) != 0,
                         !live[n], "%s: tensor %d, element %ld", text, (int)id, (long)n);
            dead += !live[n];
        }
        cr_expect(dead > 0, "%s: tensor %d", text, (int)id);
        free(live);
    }
    freed(p, &in), free(p);
}

Test(placed, what_nobody_reads_is_poison)
{
    check_poison("pass=bwd b=3 " LENS "poison=nan");
    check_poison("b=3 " LENS "layout=thd slots=+3 tail=5 poison=nan");
    check_poison("b=3 " LENS "layout=thd_th2d slots=+1 poison=nan");
    check_poison("b=3 h=2 s=20 d=16 lens=20+0+7 layout=t3hd tail=2 poison=nan");
    check_poison("b=3 " LENS "paged=5 poison=nan");
    check_poison("b=3 " LENS "paged=5 table=packed layout=bhsd poison=nan");
}

Test(placed, shared_pages_are_live_for_everybody)
{
    static const char *const texts[] = { "paged=8", "paged=64" /* one page for all entries */ };
    for (int i = 0; i < 2; i++) {
        char text[120] = "b=3 h=4/2 s=20/64 d=16 lens=20+0+7/3+64+40 table=shared poison=nan ";
        facts_problem *p = resolved(strcat(text, texts[i]));
        facts_storages in = stored(p);
        for (int64_t b = 0; b < 3; b++)
            for (int64_t s = 0; s < p->len_kv[b]; s++)
                cr_assert(isfinite(number_at(p, FACTS_TENSOR_K, in.at[FACTS_TENSOR_K],
                                             (const int64_t[4]){ b, 1, s, 3 })),
                          "%s: %ld %ld", texts[i], (long)b, (long)s);
        freed(p, &in), free(p);
    }
}

Test(placed, a_code_times_its_descale_is_the_value)
{
    static const char *const scales[] = { "unit", "pow2", "odd" };
    for (int i = 0; i < 3; i++) {
        char text[120];
        snprintf(text, sizeof text, "pass=bwd b=2 h=2 s=40 d=16 dtype=e4m3 scales=%s", scales[i]);
        facts_problem *p = resolved(text), *wide = resolved("pass=bwd b=2 h=2 s=40 d=16 dtype=f32");
        facts_storages in = stored(p), exact = stored(wide);
        static const struct {
            facts_tensor_id id;
            facts_array_id descale;
        } rows[] = { { FACTS_TENSOR_Q, FACTS_ARRAY_DESCALE_Q },
                     { FACTS_TENSOR_V, FACTS_ARRAY_DESCALE_V },
                     { FACTS_TENSOR_DO, FACTS_ARRAY_DESCALE_DO } };
        for (size_t r = 0; r < 3; r++) {
            const double descale = facts_array_scalar(p, rows[r].descale);
            for (int64_t s = 0; s < 40; s++) {
                const int64_t at[4] = { 1, 1, s, 5 };
                const double value = number_at(p, rows[r].id, in.at[rows[r].id], at) * descale,
                             expects = number_at(wide, rows[r].id, exact.at[rows[r].id], at);
                cr_assert(fabs(value - expects) <= fabs(expects) * 0x1p-4 + 0x1p-10 * descale,
                          "%s: %g for %g", text, value, expects);
            }
        }
        freed(p, &in), freed(wide, &exact), free(p), free(wide);
    }
}

Test(placed, a_backward_of_a_wider_type_reads_narrow_values)
{
    facts_problem *p = resolved("pass=bwd b=2 h=2 s=40 d=16 dtype=e5m2 bwd_dtype=high");
    facts_storages in = stored(p);
    for (int64_t i = 0; i < p->tensor[FACTS_TENSOR_K].elements; i++) {
        const double value =
            facts_decode(FATTN_BF16, facts_load(FATTN_BF16, in.at[FACTS_TENSOR_K], i));
        cr_assert_eq(facts_decode(FATTN_E5M2, facts_encode(FATTN_E5M2, value)), value);
    }
    freed(p, &in), free(p);
}

Test(placed, a_boolean_mask_hides_what_the_bias_of_its_name_does)
{
    static const char *const fills[] = { "random", "rows_masked", "window:5:3", "all_true",
                                         "minus_inf" };
    for (int i = 0; i < 5; i++) {
        char text[120];
        snprintf(text, sizeof text, "b=2 h=2 s=40/50 bias=bool:bhss bias_fill=%s", fills[i]);
        facts_problem *p = resolved(text);
        snprintf(text, sizeof text, "b=2 h=2 s=40/50 bias=bhss bias_fill=%s", fills[i]);
        facts_problem *q = resolved(text);
        facts_storages a = stored(p), b = stored(q);
        int64_t hidden = 0, count = p->tensor[FACTS_TENSOR_BIAS].elements;
        for (int64_t n = 0; n < count; n++) {
            const unsigned char bit = ((const unsigned char *)a.at[FACTS_TENSOR_BIAS])[n];
            const double value =
                facts_decode(FATTN_BF16, facts_load(FATTN_BF16, b.at[FACTS_TENSOR_BIAS], n));
            cr_assert((bit == 1 && value == 0) || (bit == 0 && value == -(double)INFINITY),
                      "%s: %d for %g", text, bit, value);
            hidden += !bit;
        }
        cr_expect(i == 3   ? hidden == 0
                  : i == 4 ? hidden == count
                           : hidden > 0 && hidden < count,
                  "%s: %ld", text, (long)hidden);
        freed(p, &a), freed(q, &b), free(p), free(q);
    }
}

Test(placed, a_given_mask_drops_and_scales_by_as_many_as_it_says)
{
    facts_problem *p = resolved("b=2 h=4 s=100/120 dropout=0.3 dropout_mask=1 dtype=f16");
    facts_storages in = stored(p);
    int64_t count = p->tensor[FACTS_TENSOR_DROPOUT_MASK].elements, kept = 0;
    for (int64_t n = 0; n < count; n++) {
        const double bit =
            facts_decode(FATTN_F16, facts_load(FATTN_F16, in.at[FACTS_TENSOR_DROPOUT_MASK], n));
        cr_assert(bit == 0.0 || bit == 1.0);
        kept += bit != 0;
    }
    const double sd = sqrt((double)count * 0.3 * 0.7);
    cr_expect(fabs((double)kept - 0.7 * (double)count) < 5 * sd, "%ld of %ld", (long)kept,
              (long)count);
    cr_expect_float_eq(facts_array_scalar(p, FACTS_ARRAY_DROPOUT_SCALE), 1 / 0.7, 1e-6);
    cr_expect_float_eq(facts_array_scalar(p, FACTS_ARRAY_DROPOUT_SCALE_INVERSE), 0.7, 1e-6);
    freed(p, &in), free(p);
}
