/* The closed forms of the named modifications: against libfattn's recordings, against differences,
 * against the rows' own keys. */
#include "../case/asked_problem.h"
#include "fattn/score_mod.h"
#include "language/case.h"
#include "numbers.h"
#include "numbers/fill/places.h"
#include "numbers/fill/score_inputs.h"
#include "problem/case_problem.h"
#include "problem/philox.h"

static facts_problem p;
static const char *const texts[] = { "mod=causal",       "mod=window:5:2",
                                     "mod=window:inf:3", "mod=window:4:inf",
                                     "mod=softcap:3",    "mod=temperature:0.7",
                                     "mod=prefix:6",     "mod=post_scale_bias",
                                     "mod=relpos",       "mod=document:3" };
#define TEXTS (sizeof texts / sizeof *texts)

static void resolve(const char *mod, const char *rest)
{
    char text[256];
    snprintf(text, sizeof text, "b=2 h=6 s=13/17 d=8 %s %s", mod, rest);
    p = problem_asked(text);
}

typedef struct world {
    void *a, *b;
    facts_mod_owner owner;
} world;

static world make_world(void)
{
    world w = { 0 };
    if (p.tensor[FACTS_TENSOR_MOD_A].present)
        w.a = filled(&p, FACTS_TENSOR_MOD_A);
    if (p.tensor[FACTS_TENSOR_MOD_B].present)
        w.b = filled(&p, FACTS_TENSOR_MOD_B);
    w.owner = (facts_mod_owner){ &p, w.a, w.b };
    return w;
}

static void end_world(world *w)
{
    free(w->a);
    free(w->b);
}

static int64_t pick(uint64_t n, int lane, int64_t most)
{
    return facts_pick(facts_draw_at(9, FACTS_STREAM_ROW, FACTS_LANE_VALUE, n).r[lane],
                      (uint32_t)most);
}

Test(mod, closed_forms_are_what_the_library_records)
{
    for (size_t i = 0; i < TEXTS; i++) {
        resolve(texts[i], "");
        world w = make_world();
        fattn_score_mod *mod = NULL;
        cr_assert_eq(facts_mod_create(&mod, &p), FATTN_OK, "%s: %s", texts[i], fattn_last_error());
        cr_assert_eq(fattn_score_mod_tensor_count(mod), (size_t)((w.a != NULL) + (w.b != NULL)),
                     "%s", texts[i]);
        const void *tensors[] = { w.a, w.b };
        for (uint64_t n = 0; n < 500; n++) {
            const int64_t at[4] = { pick(n, 0, 2), pick(n, 1, 6), pick(n, 2, 13), pick(n, 3, 17) };
            double score = 4.0 * (double)facts_normal(
                                     facts_draw_at(9, FACTS_STREAM_Q, FACTS_LANE_VALUE, n)),
                   value, slope;
            cr_assert_eq(fattn_score_mod_evaluate(mod, score, at, tensors, &value, &slope),
                         FATTN_OK, "%s", fattn_last_error());
            const fref_modified own = facts_mod_at(&w.owner, score, at);
            bool hidden = isinf(own.value);
            cr_assert(hidden ? value < -1e30
                             : fabs(own.value - value) <= 1e-6 * (1.0 + fabs(value)),
                      "%s: %g, recorded %g", texts[i], own.value, value);
            cr_assert(fabs(own.slope - slope) <= 1e-6, "%s: slope %g, recorded %g", texts[i],
                      own.slope, slope);
        }
        fattn_score_mod_destroy(mod);
        end_world(&w);
    }
}

Test(mod, slope_and_curvature_are_derivatives)
{
    const int64_t at[4] = { 1, 2, 7, 7 };
    for (size_t i = 0; i < TEXTS; i++) {
        resolve(texts[i], "");
        world w = make_world();
        for (double s = -6.0; s < 6.0; s += 0.37) {
            const double step = 1e-5;
            const fref_modified here = facts_mod_at(&w.owner, s, at),
                                above = facts_mod_at(&w.owner, s + step, at),
                                below = facts_mod_at(&w.owner, s - step, at);
            cr_expect(fabs((above.value - below.value) / (2 * step) - here.slope) < 1e-8,
                      "%s at %g", texts[i], s);
            cr_expect(fabs((above.slope - below.slope) / (2 * step) - here.curvature) < 1e-8,
                      "%s at %g", texts[i], s);
        }
        end_world(&w);
    }
}

Test(mod, the_keys_of_a_row_are_those_that_are_not_minus_infinity)
{
    static const char *const lengths[] = { "", "lens=9+13/17+5", "mask=causal" };
    for (size_t i = 0; i < TEXTS; i++)
        for (int k = 0; k < 3; k++) {
            resolve(texts[i], lengths[k]);
            world w = make_world();
            for (int64_t b = 0; b < 2; b++)
                for (int64_t row = 0; row < facts_live_q(&p, b); row++) {
                    int64_t first, last, full_first, full_last;
                    fref_problem oracle;
                    facts_oracle_problem(&oracle, &p);
                    fref_keys_of_row(&oracle, b, row, &full_first, &full_last);
                    facts_oracle_keys_of_row(&p, b, row, &first, &last);
                    for (int64_t j = 0; j < 17; j++) {
                        bool seen =
                            j >= full_first && j < full_last &&
                            !isinf(facts_mod_at(&w.owner, 0.0, (int64_t[]){ b, 0, row, j }).value);
                        cr_assert_eq(j >= first && j < last, seen, "%s %s: %ld, %ld, %ld", texts[i],
                                     lengths[k], (long)b, (long)row, (long)j);
                    }
                    bool document = strncmp(texts[i], "mod=document", 12) == 0 && k < 2;
                    cr_expect(!document || first < last,
                              "every live row has a key of its document");
                }
            end_world(&w);
        }
}
