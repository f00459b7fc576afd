#include "self_survey.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/case_problem.h"
#include "problem/philox.h"
#include "self_case.h"
#include "suites/planned_cases.h"
#include "suites/predicate.h"

/* One evaluation in words: the case, and how the kernel works. */
typedef struct evaluation {
    char text[FACTS_CASE_TEXT], kernel_text[160];
    facts_self_type type;
    fattn__gpu_like like;
    bool own_forward; /* a backward gets O and Stats of its own forward */
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

static facts_self_type draw_type(dice *d)
{
    static const facts_self_type types[] = { FACTS_SELF_BF16, FACTS_SELF_BF16, FACTS_SELF_BF16,
                                             FACTS_SELF_F16,  FACTS_SELF_F16,  FACTS_SELF_F16,
                                             FACTS_SELF_F32,  FACTS_SELF_E4M3, FACTS_SELF_E4M3,
                                             FACTS_SELF_E5M2 };
    const facts_self_type type = ONE_OF(d, types);
    if (!facts_self_type_is_narrow(type) || !one_in(d, 3))
        return type;
    return type == FACTS_SELF_E4M3 ? FACTS_SELF_E4M3_HOPPER : FACTS_SELF_E5M2_HOPPER;
}

/* What one row of a problem was drawn to have. */
typedef struct shape {
    bool backward, narrow, lengths, scored, huge, ragged, paged;
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

static void draw_mask(dice *d, char *text)
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
    draw_mask(d, text);
    x->lengths = one_in(d, 3);
    x->ragged = !x->backward && x->lengths && one_in(d, 5);
    x->paged = !x->backward && x->lengths && !x->ragged && one_in(d, 5);
    if (!x->backward) /* Max and Sum_exp are judged as a pair, which is not done for packed rows */
        add(text, " want=%s", x->ragged ? "stats" : "stats+max+sum_exp");
    if (x->lengths)
        add(text, " padding=%s", ONE_OF(d, paddings));
    draw_scores(d, x, text);
}

/* What a row of the problem also has. */
static void draw_features(dice *d, shape *x, char *text)
{
    if (one_in(d, 5))
        add(text, " softmax=sink%s", x->backward ? " dsink=1" : "");
    if (one_in(d, 5) && !x->huge)
        add(text, " dropout=0.1 rng=%u:%u", pick(d, 1000), pick(d, 1000));
    if (one_in(d, 12) && !x->scored)
        add(text, " alibi=1");
    if (x->ragged)
        add(text, " layout=thd");
    else
        draw_memory(d, text);
    if (x->paged)
        add(text, " paged=16");
    if (x->narrow && one_in(d, 2))
        add(text, " scales=odd");
    if (x->narrow && one_in(d, 4))
        add(text, x->backward ? " grad=bf16" : " out=bf16");
}

/* The controls: what a right kernel may do. */
static void draw_kernel(dice *d, evaluation *out, const shape *x)
{
    static const int64_t tiles[] = { 64, 128, 256 }, splits[] = { 1, 1, 1, 3, 7 };
    static const float lazy[] = { 0.0F, 0.0F, 2.0F, 4.0F, 8.0F };
    fattn__gpu_like *k = &out->like;
    *k = facts_self_begin(out->type);
    k->tile = ONE_OF(d, tiles);
    k->splits = ONE_OF(d, splits);
    k->lazy = ONE_OF(d, lazy);
    k->reversed = one_in(d, 3);
    k->one_lane = one_in(d, 3);
    if (x->narrow && k->lazy > 4.0F)
        k->lazy = 4.0F; /* the threshold that the model starts from */
    if (!x->narrow && out->type != FACTS_SELF_F32 && one_in(d, 3))
        k->adder = FATTN__HOPPER_16;
    k->scale_last = one_in(d, 3);
    k->partials_fp32 = one_in(d, 3);
    k->scale_factor = one_in(d, 4) ? 1.0 + 0x1p-23 : 1.0;
    if (one_in(d, 3))
        k->key_shift = x->keys / 3 + 1;
    snprintf(out->kernel_text, sizeof out->kernel_text,
             "%s; tile %d, splits %d, lazy %g%s%s%s%s%s%s", facts_self_type_word(out->type),
             (int)k->tile, (int)k->splits, (double)k->lazy, k->reversed ? ", reversed" : "",
             k->one_lane ? ", one lane" : "", k->adder.truncates ? ", truncating" : "",
             k->scale_last ? ", scale last" : "", k->partials_fp32 ? ", fp32 partials" : "",
             k->key_shift ? ", keys moved" : "");
}

static void draw_at(evaluation *out, uint64_t seed, uint64_t n)
{
    dice d = { .seed = seed, .n = n };
    *out = (evaluation){ .text = "" };
    out->type = draw_type(&d);
    shape x = { .backward = pick(&d, 5) < 2, .narrow = facts_self_type_is_narrow(out->type) };
    draw_text(&d, &x, out->text);
    add(out->text, " dtype=%s", facts_self_type_dtype(out->type));
    draw_features(&d, &x, out->text);
    draw_kernel(&d, out, &x);
    out->own_forward = x.backward && !x.narrow && one_in(&d, 5);
}

static void join(facts_clean *out, const facts_self_end *end, const evaluation *draw, uint64_t n)
{
    out->evaluations++;
    out->answers += end->answers;
    for (int gate = 0; gate < FACTS_GATE_COUNT; gate++)
        out->worst[gate] = fmax(out->worst[gate], end->gates[gate]);
    if (!end->found)
        return;
    const size_t used = strlen(out->alarms);
    out->false_alarms++;
    snprintf(out->alarms + used, sizeof out->alarms - used, "%llu: %s, %s %.4g: %s; %s\n",
             (unsigned long long)n, end->tensor, end->gate, end->ratio, draw->text,
             draw->kernel_text);
}

int facts_clean_run(facts_clean *out, uint64_t seed, uint64_t first, size_t count,
                    facts_error *error)
{
    *out = (facts_clean){ 0 };
    error->text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        evaluation draw;
        facts_self_case x;
        facts_self_end end;
        facts_error why = { 0 };
        draw_at(&draw, seed, first + i);
        if (facts_self_case_open(&x, draw.text, &why)) {
            x.problem.own_forward = draw.own_forward;
            facts_self_case_run(&end, &x, &draw.like, FATTN__LIAR_NONE);
            join(out, &end, &draw, first + i);
        } else if (x.plan == NULL && why.text[0] && !x.asked_is_valid) {
            facts_fail(error, "%.300s: %.180s", why.text, draw.text);
            facts_self_case_close(&x);
            return EINVAL;
        } else {
            out->refused++;
        }
        facts_self_case_close(&x);
    }
    return 0;
}

#define BLIND_SAMPLE 8 /* cases of a fault that nothing is known to show */
#define CLEAR 10.0     /* found without doubt: the other cases need not show it */

#define BIT(symbol) (1U << FACTS_SELF_##symbol)
#define HOPPER (BIT(E4M3_HOPPER) | BIT(E5M2_HOPPER))
#define NARROW (BIT(E4M3) | BIT(E5M2) | HOPPER)

#define IN_8_BITS "rounding P or dS to 8 bits moves a sum by more"
#define IN_14_BITS "logits that are added in 14 bits are off by more"

/* What cannot be seen in a type, whatever the data. */
static const struct {
    fattn__liar liar;
    unsigned types;
    const char *why;
    bool sometimes; /* some data show it: the whole sample is asked */
} blind_spots[] = {
    { FATTN__LIAR_O_GAIN_5E4, NARROW, IN_8_BITS, false },
    { FATTN__LIAR_O_GAIN_1E3, NARROW, IN_8_BITS, false },
    { FATTN__LIAR_O_GAIN_1PCT, BIT(E5M2) | BIT(E5M2_HOPPER), IN_8_BITS, false },
    { FATTN__LIAR_O_GAIN_ROWS, NARROW, IN_8_BITS, false },
    { FATTN__LIAR_O_GAIN_FIRST, NARROW, IN_8_BITS, false },
    { FATTN__LIAR_EXP_CUT, HOPPER, "P V in a sum of 14 bits may lose more than exp(-10)", false },
    { FATTN__LIAR_KEEP_FACTOR, HOPPER, IN_8_BITS, false },
    { FATTN__LIAR_B_DK_GAIN_5E4, NARROW, IN_8_BITS, false },
    { FATTN__LIAR_SCALE_1E5, HOPPER, IN_14_BITS, false },
    { FATTN__LIAR_LOG2E_SHORT, HOPPER, IN_14_BITS, false },
    { FATTN__LIAR_SCALE_1E3, HOPPER, IN_14_BITS, true },
};

static const char *blind_of(const fattn__fault *fault, facts_self_type type, bool *sometimes)
{
    *sometimes = false;
    for (size_t i = 0; i < sizeof blind_spots / sizeof *blind_spots; i++)
        if (blind_spots[i].liar == fault->liar && blind_spots[i].types & 1U << type) {
            *sometimes = blind_spots[i].sometimes;
            return blind_spots[i].why;
        }
    return NULL;
}

typedef struct work {
    facts_survey *survey;
    const facts_survey_choice *choice;
    facts_cases *cases;
    facts_shown *part; /* of the survey: this suite and type */
    size_t part_count;
    unsigned char *wanted; /* [case][row of the part] */
    facts_error *error;
} work;

/* The suite `planted` (sample 0) is small: it has no far place and none of that data. */
static bool is_chosen(const facts_survey_choice *choice, const fattn__fault *fault,
                      facts_self_type type)
{
    return (choice->sample > 0 || fault->liar < FATTN__LIAR_DO_INF) &&
           (!choice->fault || strstr(fault->word, choice->fault)) &&
           facts_self_type_has(type, fault);
}

static bool add_rows(work *w, const char *suite, facts_self_type type)
{
    facts_survey *s = w->survey;
    const size_t first = s->count;
    const fattn__fault *fault;
    bool sometimes;
    for (int i = 0; (fault = fattn__fault_at(i)) != NULL; i++) {
        if (!is_chosen(w->choice, fault, type))
            continue;
        facts_shown *more = realloc(s->shown, (s->count + 1) * sizeof *more);
        if (!more)
            return false;
        s->shown = more;
        s->shown[s->count++] = (facts_shown){
            .fault = fault, .type = type, .suite = suite, .blind = blind_of(fault, type, &sometimes)
        };
    }
    w->part = s->shown ? s->shown + first : NULL;
    w->part_count = s->count - first;
    return true;
}

/* Marks the cases of the sample: of those that can show it, one in each part of the list. */
static bool draw(work *w, size_t row)
{
    facts_shown *of = &w->part[row];
    facts_predicate *can = NULL;
    const size_t count = facts_cases_count(w->cases);
    size_t *able = calloc(count + 1, sizeof *able);
    if (!able ||
        !facts_predicate_parse(&facts_attention_language, &can, of->fault->cases, w->error)) {
        free(able);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = facts_cases_at(w->cases, i).name;
        facts_case c;
        facts_error error;
        if (facts_case_parse(&c, name, &error) &&
            facts_predicate_holds(can, &(facts_subject){ .c = &c }) && facts_self_case_takes(name))
            able[of->able++] = i;
    }
    of->asked = 0;
    bool sometimes;
    const bool blind = blind_of(of->fault, of->type, &sometimes) && !sometimes;
    size_t sample = blind ? BLIND_SAMPLE : w->choice->sample;
    if (sample == 0 || sample > of->able)
        sample = of->able;
    for (size_t i = 0; i < sample; i++)
        w->wanted[able[i * of->able / sample] * w->part_count + row] = 1;
    facts_predicate_destroy(can);
    free(able);
    return true;
}

static bool is_open(const work *w, size_t i, size_t row)
{
    const facts_shown *of = &w->part[row];
    return w->wanted[i * w->part_count + row] &&
           !(of->red > 0 && (w->choice->quick || of->ratio > CLEAR));
}

static bool anybody(const work *w, size_t i)
{
    for (size_t row = 0; row < w->part_count; row++)
        if (is_open(w, i, row))
            return true;
    return false;
}

static void say(const work *w, const facts_shown *of, const char *name, const facts_self_end *end)
{
    if (w->choice->each)
        w->choice->each(w->choice->owner, of, name, end);
}

static bool run_honest(const work *w, facts_self_case *x, const char *name,
                       const fattn__gpu_like *like)
{
    facts_survey *s = w->survey;
    facts_self_end end;
    facts_self_case_run(&end, x, like, FATTN__LIAR_NONE);
    if (end.answers == 0) { /* the call is refused, as of a view that is not aligned in 8 bits */
        s->refused++;
        return false;
    }
    s->honest++;
    if (end.found) {
        const size_t used = strlen(s->alarms);
        s->false_alarms++;
        snprintf(s->alarms + used, sizeof s->alarms - used, "%s %s, %s %.4g: %s\n",
                 facts_self_type_word(w->part->type), end.tensor, end.gate, end.ratio, name);
    }
    const facts_shown honest = { .type = w->part->type, .suite = w->part->suite };
    say(w, &honest, name, &end);
    return !end.found;
}

static void note(facts_shown *of, const char *name, const facts_self_end *end)
{
    of->asked++;
    of->red += end->found;
    if (end->ratio > of->ratio || (end->found && of->red == 1)) {
        of->ratio = end->ratio;
        snprintf(of->gate, sizeof of->gate, "%s", end->gate);
        snprintf(of->tensor, sizeof of->tensor, "%s", end->tensor);
        snprintf(of->name, sizeof of->name, "%s", name);
    }
}

static void run_case(work *w, size_t i)
{
    const char *name = facts_cases_at(w->cases, i).name;
    fattn__gpu_like like = facts_self_begin(w->part->type);
    facts_self_case x;
    facts_error why;
    if (!facts_self_case_open(&x, name, &why)) {
        w->survey->refused++;
    } else if (run_honest(w, &x, name, &like)) {
        w->survey->cases++;
        for (size_t row = 0; row < w->part_count; row++) {
            facts_shown *of = &w->part[row];
            facts_self_end end;
            if (!is_open(w, i, row))
                continue;
            like.splits = of->fault->liar == FATTN__LIAR_SPLIT_WEIGHT ? 3 : 1;
            facts_self_case_run(&end, &x, &like, of->fault->liar);
            note(of, name, &end);
            say(w, of, name, &end);
        }
    }
    facts_self_case_close(&x);
}

static int run_part(work *w, const char *suite, facts_self_type type)
{
    char with[64];
    const facts_choice choice = { .with = with, .where = w->choice->where };
    snprintf(with, sizeof with, "dtype=%s seed=%llu", facts_self_type_dtype(type),
             (unsigned long long)w->choice->seed);
    if (facts_cases_expand(&facts_attention_language, &w->cases, &suite, 1, w->choice->suite_dir,
                           &choice, w->error) != 0)
        return EINVAL;
    int status = add_rows(w, suite, type) ? 0 : ENOMEM;
    const size_t count = facts_cases_count(w->cases);
    w->wanted = calloc(count * w->part_count + 1, 1);
    status = w->wanted ? status : ENOMEM;
    for (size_t row = 0; status == 0 && row < w->part_count; row++)
        status = draw(w, row) ? 0 : EINVAL;
    for (size_t i = 0; status == 0 && i < count; i++)
        if (anybody(w, i))
            run_case(w, i);
    free(w->wanted);
    facts_cases_destroy(w->cases);
    w->cases = NULL;
    return status;
}

int facts_survey_run(facts_survey *out, const facts_survey_choice *choice, facts_error *error)
{
    *out = (facts_survey){ 0 };
    work w = { .survey = out, .choice = choice, .error = error };
    int status = 0;
    if (choice->type && facts_self_type_find(choice->type) == FACTS_SELF_TYPES) {
        facts_fail(error, "no type \"%.20s\": bf16 f16 f32 e4m3 e5m2 e4m3-hopper e5m2-hopper",
                   choice->type);
        return EINVAL;
    }
    for (size_t i = 0; status == 0 && i < choice->suite_count; i++)
        for (facts_self_type type = 0; status == 0 && type < FACTS_SELF_TYPES; type++)
            if (!choice->type || facts_self_type_find(choice->type) == type)
                status = run_part(&w, choice->suites[i], type);
    if (status == 0 && out->count == 0) {
        facts_fail(error, "no fault has \"%.60s\" in its id", choice->fault ? choice->fault : "");
        status = EINVAL;
    }
    return status;
}

void facts_survey_free(facts_survey *survey)
{
    free(survey->shown);
    *survey = (facts_survey){ 0 };
}
