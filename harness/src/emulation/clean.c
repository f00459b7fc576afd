#include "clean.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "case/problem/philox.h"
#include "emulated_trial.h"

/* One evaluation in words: the case, what comes beside it, and how the kernel works. */
typedef struct evaluation {
    char text[FACTS_CASE_TEXT], kernel_text[160];
    facts_scene_plan plan; /* points to text */
    facts_kernel kernel;
    facts_pattern pattern;
    bool both;
} evaluation;

/* Numbers of one evaluation, one after another. */
typedef struct dice {
    uint64_t seed, n;
    uint32_t at;
} dice;

static uint32_t roll(dice *d)
{
    const uint32_t counter[4] = { (uint32_t)d->n, (uint32_t)(d->n >> 32), d->at++, 0x636c6561 };
    const uint32_t key[2] = { (uint32_t)d->seed, (uint32_t)(d->seed >> 32) };
    return facts_philox(counter, key).r[0];
}

static uint32_t pick(dice *d, uint32_t m)
{
    return facts_pick(roll(d), m);
}

static bool one_in(dice *d, uint32_t m)
{
    return pick(d, m) == 0;
}

#define ONE_OF(d, list) ((list)[pick((d), (uint32_t)(sizeof(list) / sizeof *(list)))])

static int extent(dice *d)
{
    static const int edges[] = {
        1, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 192, 200, 255, 256
    };
    return one_in(d, 2) ? ONE_OF(d, edges) : (int)pick(d, 256) + 1;
}

/* Once in two thousand: one row or a few before very many keys. */
static void draw_extents(dice *d, bool backward, int *rows, int *keys, int *batch, bool *huge)
{
    *batch = (int)pick(d, 3) + 1;
    *rows = extent(d);
    *keys = one_in(d, 2) ? *rows : extent(d);
    *huge = !backward && one_in(d, 2000);
    if (*huge) {
        *batch = 1;
        *rows = (int)pick(d, 4) + 1;
        *keys = 1 << (10 + (int)pick(d, 6));
    }
}

static fref_type draw_type(dice *d)
{
    static const fref_type types[] = { FREF_BF16, FREF_BF16, FREF_BF16, FREF_F16,  FREF_F16,
                                       FREF_F16,  FREF_F32,  FREF_E4M3, FREF_E4M3, FREF_E5M2 };
    return ONE_OF(d, types);
}

/* What one row of a problem was drawn to have. */
typedef struct shape {
    bool backward, narrow, lengths, masked, scored, huge, ragged, paged;
    int rows, keys;
} shape;

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + used, FACTS_CASE_TEXT - used, format, list);
    va_end(list);
}

static void draw_mask(dice *d, shape *x, char *text)
{
    static const char *const aligns[] = { "tl", "br" };
    switch (pick(d, 5)) {
    case 0:
        add(text, " mask=causal");
        break;
    case 1:
        add(text, " mask=causal_br");
        break;
    case 2:
        add(text, " window=%d:%d align=%s", (int)pick(d, 40) + 1, (int)pick(d, 40),
            ONE_OF(d, aligns));
        break;
    default:
        return;
    }
    x->masked = true;
}

static void draw_scores(dice *d, shape *x, char *text)
{
    static const char *const biases[] = { "11ss", "1hss", "b1ss", "bhss", "111s", "bh1s" };
    static const char *const mods[] = { "softcap:5", "softcap:30",      "temperature:2",
                                        "relpos",    "post_scale_bias", "prefix:7" };
    if (x->narrow)
        return;
    if (one_in(d, 6)) {
        add(text, " bias=%s%s", ONE_OF(d, biases), x->backward ? " dbias=1" : "");
        x->scored = true;
    }
    if (one_in(d, 8)) {
        add(text, " mod=%s", ONE_OF(d, mods));
        x->scored = true;
    }
}

static void draw_memory(dice *d, char *text)
{
    static const char *const layouts[] = { "bshd", "sbhd", "bhsd" };
    add(text, " layout=%s", ONE_OF(d, layouts));
    if (one_in(d, 6))
        add(text, " stride=gap:%d", 8 * (int)(pick(d, 3) + 1));
}

static void draw_text(dice *d, shape *x, char *text)
{
    static const char *const heads[] = { "1", "2", "3", "4/2", "4/1", "6/2" };
    static const int dims[] = { 8, 16, 32, 40, 64, 72, 128 };
    static const char *const fills[] = { "gauss",    "gauss",    "gauss",      "gauss",
                                         "uniform",  "spiky",    "needle",     "needle",
                                         "neglse",   "neglse",   "stair_up",   "stair_dn",
                                         "biglogit", "offset_k", "sparse_int", "offset_v" };
    static const char *const paddings[] = { "random", "random",    "full", "zero:kv",
                                            "zero:q", "zero:both", "one" };
    int batch, dim = ONE_OF(d, dims);
    draw_extents(d, x->backward, &x->rows, &x->keys, &batch, &x->huge);
    snprintf(text, FACTS_CASE_TEXT, "pass=%s b=%d h=%s s=%d/%d d=%d/%d seed=%u",
             x->backward ? "bwd" : "fwd", batch, x->huge ? "1" : ONE_OF(d, heads), x->rows, x->keys,
             dim, one_in(d, 4) ? ONE_OF(d, dims) : dim, roll(d) >> 1);
    add(text, " fill=%s", ONE_OF(d, fills));
    draw_mask(d, x, text);
    x->lengths = one_in(d, 3);
    x->ragged = !x->backward && x->lengths && one_in(d, 5);
    x->paged = !x->backward && x->lengths && !x->ragged && one_in(d, 5);
    if (!x->backward) /* Max and Sum_exp are judged as a pair, which is not done for packed rows */
        add(text, " want=%s", x->ragged ? "stats" : "stats+max+sum_exp");
    if (x->lengths)
        add(text, " padding=%s", ONE_OF(d, paddings));
    draw_scores(d, x, text);
    draw_memory(d, text);
}

static unsigned draw_features(dice *d, const shape *x)
{
    unsigned features = 0;
    features |= one_in(d, 5) ? FACTS_WITH_SINK : 0u;
    features |= one_in(d, 5) && !x->huge ? FACTS_WITH_DROPOUT : 0u;
    features |= one_in(d, 12) && !x->scored ? FACTS_WITH_ALIBI : 0u;
    features |= x->narrow && one_in(d, 3) ? FACTS_WITH_HOPPER : 0u;
    return features | (x->ragged ? FACTS_WITH_RAGGED : 0u) | (x->paged ? FACTS_WITH_PAGES : 0u);
}

/* The controls: what a right kernel may do. */
static facts_kernel draw_kernel(dice *d, const shape *x, fref_type type, unsigned features)
{
    static const int64_t tiles[] = { 64, 128, 256 }, splits[] = { 1, 1, 1, 3, 7 };
    static const double lazy[] = { 0.0, 0.0, 2.0, 4.0, 8.0 };
    facts_kernel k = { .tile = ONE_OF(d, tiles),
                       .splits = ONE_OF(d, splits),
                       .lazy = ONE_OF(d, lazy),
                       .reversed = one_in(d, 3) };
    if (x->narrow && k.lazy > 4.0)
        k.lazy = 4.0; /* the threshold that the model starts from */
    if (type != FREF_F32 && one_in(d, 3))
        k.adder = FACTS_HOPPER_16;
    if (features & FACTS_WITH_HOPPER)
        k.adder = FACTS_HOPPER_8;
    k.scale_last = one_in(d, 3) && !x->narrow; /* 8 bit types: scale_dp is of the scaled dS */
    k.partials_fp32 = one_in(d, 3);
    k.scale_factor = one_in(d, 4) ? 1.0 + 0x1p-23 : 1.0;
    bool any_order = !x->backward && !x->masked && !x->scored &&
                     !(features & (FACTS_WITH_DROPOUT | FACTS_WITH_ALIBI));
    if (any_order && one_in(d, 3))
        k.key_shift = x->keys / 3 + 1;
    if (x->rows == 1 && !x->lengths && one_in(d, 2))
        k.liar = FACTS_LIAR_CAUSAL_LOOSE; /* bottom-right: no key is beyond the last row's */
    return k;
}

static void describe(evaluation *x)
{
    static const char *const types[] = { [FREF_F32] = "f32",
                                         [FREF_F16] = "f16",
                                         [FREF_BF16] = "bf16",
                                         [FREF_E4M3] = "e4m3",
                                         [FREF_E5M2] = "e5m2" };
    const facts_kernel *k = &x->kernel;
    unsigned f = x->plan.features;
    snprintf(x->kernel_text, sizeof x->kernel_text,
             "dtype=%s%s%s%s%s%s%s; tile %d, splits %d, lazy %g%s%s%s%s%s%s", types[x->plan.type],
             x->plan.out != x->plan.type ? " bf16 out" : "", f & FACTS_WITH_SINK ? " sink" : "",
             f & FACTS_WITH_DROPOUT ? " dropout" : "", f & FACTS_WITH_ALIBI ? " alibi" : "",
             f & FACTS_WITH_RAGGED ? " ragged" : "", f & FACTS_WITH_PAGES ? " paged" : "",
             (int)k->tile, (int)k->splits, k->lazy, k->reversed ? ", reversed" : "",
             k->adder.bits == 14  ? ", 14 bits"
             : k->adder.truncates ? ", truncating"
                                  : "",
             k->scale_last ? ", scale last" : "", k->partials_fp32 ? ", fp32 partials" : "",
             k->key_shift ? ", keys moved" : "", x->plan.forward ? ", own forward" : "");
}

static void draw_at(evaluation *out, uint64_t seed, uint64_t n)
{
    dice d = { .seed = seed, .n = n };
    *out = (evaluation){ .text = "" };
    fref_type type = draw_type(&d);
    shape x = { .backward = pick(&d, 5) < 2, .narrow = type == FREF_E4M3 || type == FREF_E5M2 };
    draw_text(&d, &x, out->text);
    unsigned features = draw_features(&d, &x);
    out->kernel = draw_kernel(&d, &x, type, features);
    bool own = x.backward && one_in(&d, 5), wide = x.narrow && one_in(&d, 4);
    out->plan = (facts_scene_plan){ out->text, type, wide ? FREF_BF16 : type, features,
                                    own ? &out->kernel : NULL };
    if (out->kernel.liar && !strstr(out->text, "mask=causal_br"))
        out->kernel.liar = FACTS_LIAR_NONE;
    out->both = one_in(&d, 8);
    out->pattern = one_in(&d, 2) ? FACTS_PATTERN_A : FACTS_PATTERN_B;
    describe(out);
}

static int evaluate(facts_trial *t, const evaluation *draw, facts_error *error)
{
    facts_scene scene;
    int status = facts_scene_create(&scene, &draw->plan, error);
    if (status == 0)
        status = draw->both ? facts_trial_run_both(t, &scene, &draw->kernel)
                            : facts_trial_run_over(t, &scene, &draw->kernel, draw->pattern);
    facts_scene_destroy(&scene);
    return status;
}

static void join(facts_clean *out, const facts_trial *t, const evaluation *draw, uint64_t n)
{
    out->evaluations++;
    for (int id = 0; id < FACTS_SLOT_COUNT; id++) {
        out->answers += t->judgement[id].checked > 0;
        for (int gate = 0; gate < FACTS_GATE_COUNT; gate++)
            out->worst[gate] = fmax(out->worst[gate], t->judgement[id].gates[gate]);
    }
    if (t->verdict == FACTS_VERDICT_PASS)
        return;
    size_t used = strlen(out->alarms);
    out->false_alarms++;
    snprintf(out->alarms + used, sizeof out->alarms - used, "%llu: %s, %s %.4g: %s %s\n",
             (unsigned long long)n, facts_slot_words[t->slot], facts_gate_words[t->gate], t->ratio,
             draw->text, draw->kernel_text);
}

int facts_clean_run(facts_clean *out, uint64_t seed, uint64_t first, size_t count,
                    facts_error *error)
{
    int failed = 0;
    *out = (facts_clean){ 0 };
    error->text[0] = '\0';
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < count; i++) {
        evaluation draw;
        facts_trial t;
        facts_error why = { 0 };
        draw_at(&draw, seed, first + i);
        int status = evaluate(&t, &draw, &why);
#pragma omp critical(facts_clean_join)
        {
            if (status == 0) {
                join(out, &t, &draw, first + i);
            } else if (!failed) {
                failed = status;
                facts_fail(error, "%.300s: %.180s", status == ENOMEM ? "out of memory" : why.text,
                           draw.text);
            }
        }
    }
    return failed;
}
