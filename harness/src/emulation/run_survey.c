#include "survey.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulated_trial.h"
#include "scenes.h"

typedef enum adds { ADDS_TABLE, ADDS_FP32, ADDS_HOPPER } adds;

static const struct {
    const char *word;
    fref_type type;
    int32_t dtype;
    adds adds;
} types[FACTS_SURVEY_TYPES] = {
#define AS_ROW(symbol, word, type, adds) { word, FREF_##type, FATTN_##type, ADDS_##adds },
    FACTS_SURVEY_TYPE_LIST(AS_ROW)
#undef AS_ROW
};
/* 8 bit types also with answers in 16 bits: what is bent before the last cast does not drown in it.
 */
static const struct {
    const char *word, *fill;
    bool wide;
} fills[] = { { "gauss", "gauss", false },           { "needle", "needle", false },
              { "neglse", "neglse", false },         { "stair_up", "stair_up", false },
              { "amax_plant", "amax_plant", false }, { "spiky", "spiky", false },
              { "gauss, bf16 out", "gauss", true },  { "spiky, bf16 out", "spiky", true },
              { "offset_v", "offset_v", false },     { "offset_v, bf16 out", "offset_v", true } };
enum { FILLS = sizeof fills / sizeof *fills };

const char *facts_survey_type_word(facts_survey_type type)
{
    return types[type].word;
}

bool facts_survey_type_is_narrow(facts_survey_type type)
{
    return types[type].adds != ADDS_TABLE;
}

const char *facts_end_word(facts_end end)
{
    static const char *const words[] = { "not_applicable", "killed", "near", "blind", "survived" };
    return words[end];
}

const char *facts_size_word(facts_size size, facts_liar liar)
{
#define AS_SIZE(symbol, word, rows, keys, backward_rows, backward_keys) word,
    static const char *const words[FACTS_SIZE_COUNT] = { FACTS_SIZE_LIST(AS_SIZE) };
#undef AS_SIZE
    char text[FACTS_CASE_TEXT];
    bool backward =
        facts_scene_text(text, facts_scene_of_liar(liar), FACTS_SIZE_S200, "gauss", 1) &&
        strncmp(text, "pass=bwd", 8) == 0;
    return size == FACTS_SIZE_LONG && backward ? "1000" : words[size];
}

/* One scene with one type and size: what is done at once, fill after fill. */
typedef struct unit {
    facts_scene_id scene;
    facts_survey_type type;
    facts_size size;
} unit;

/* Other data may fall on either side of 1: a liar that is found with less than NEAR is neither
 * killed nor blind, and one that is listed as blind is news with more than NEWS. */
#define NEAR 1.1
#define NEWS 2.0
/* Found without doubt: the other fills need not detect it. */
#define CLEAR 10.0

typedef struct work {
    facts_survey *survey;
    const facts_survey_choice *choice;
    unit *units;
    size_t count;
    int status;
    facts_error *error;
} work;

static bool wanted(const facts_survey_choice *choice, facts_liar liar, facts_survey_type type,
                   facts_size size)
{
    return (!choice->liar || strstr(facts_liar_words[liar], choice->liar)) &&
           (!choice->type || strcmp(choice->type, types[type].word) == 0) &&
           (!choice->quick || size == FACTS_SIZE_S200);
}

static bool make_list(facts_survey *s, const facts_survey_choice *choice)
{
    s->found =
        calloc((size_t)FACTS_LIAR_COUNT * FACTS_SURVEY_TYPES * FACTS_SIZE_COUNT, sizeof *s->found);
    for (facts_liar liar = FACTS_LIAR_NONE + 1; s->found && liar < FACTS_LIAR_COUNT; liar++)
        for (facts_survey_type type = 0; type < FACTS_SURVEY_TYPES; type++)
            for (facts_size size = 0; size < FACTS_SIZE_COUNT; size++) {
                if (!wanted(choice, liar, type, size))
                    continue;
                facts_found *f = &s->found[s->count++];
                *f = (facts_found){
                    .liar = liar, .type = type, .size = size, .fill = "", .gate = "", .tensor = ""
                };
                f->why = facts_not_applicable(liar, type, size);
                if (!f->why) {
                    f->end = FACTS_END_SURVIVED;
                    f->why = facts_blind_spot(liar, type, size, &f->sometimes);
                }
            }
    return s->found != NULL;
}

static bool lies_in(const facts_found *f, const unit *u)
{
    return f->end != FACTS_END_NOT_APPLICABLE && facts_scene_of_liar(f->liar) == u->scene &&
           f->type == u->type && f->size == u->size;
}

/* This liar is still to be found, and this fill may do it. */
static bool is_expected(const work *w, const facts_found *f, const unit *u, int fill)
{
    const bool found = w->choice->quick ? f->end == FACTS_END_KILLED : f->ratio >= CLEAR;
    return lies_in(f, u) && !found && facts_liar_asks(f->liar, fills[fill].fill) &&
           (!fills[fill].wide || facts_survey_type_is_narrow(u->type));
}

static bool anybody(const work *w, const unit *u, int fill)
{
    for (size_t i = 0; i < w->survey->count; i++)
        if (is_expected(w, &w->survey->found[i], u, fill))
            return true;
    return false;
}

static bool make_units(work *w)
{
    w->units =
        calloc((size_t)FACTS_SCENE_COUNT * FACTS_SURVEY_TYPES * FACTS_SIZE_COUNT, sizeof *w->units);
    for (int size = FACTS_SIZE_COUNT - 1; w->units && size >= 0;
         size--) /* the long ones first: cores end together */
        for (facts_scene_id scene = 0; scene < FACTS_SCENE_NOWHERE; scene++)
            for (facts_survey_type type = 0; type < FACTS_SURVEY_TYPES; type++) {
                unit u = { scene, type, (facts_size)size };
                if (anybody(w, &u, 0))
                    w->units[w->count++] = u;
            }
    return w->units != NULL;
}

static facts_kernel kernel_for(const unit *u, facts_liar liar)
{
    const facts_adder fp32 = { 0 };
    return (facts_kernel){ .liar = liar,
                           .lazy = facts_survey_type_is_narrow(u->type) ? 4.0 : 0.0,
                           .splits = u->scene == FACTS_SCENE_SPLIT ? 3 : 1,
                           .adder = types[u->type].adds == ADDS_HOPPER ? FACTS_HOPPER_8 : fp32 };
}

/* A liar's line belongs to one unit. */
static void note(facts_found *f, int fill, const facts_trial *t)
{
    if (t->ratio > f->ratio) {
        f->ratio = t->ratio;
        f->fill = fills[fill].word;
        f->gate = facts_gate_words[t->gate];
        f->tensor = facts_slot_words[t->slot];
    }
    if (t->verdict != FACTS_VERDICT_PASS)
        f->end = FACTS_END_KILLED;
}

static void note_honest(work *w, const char *text, const unit *u, const facts_trial *t)
{
#pragma omp critical(facts_survey_note)
    {
        w->survey->honest++;
        if (t->verdict != FACTS_VERDICT_PASS) {
            char *to = w->survey->alarms;
            size_t used = strlen(to);
            w->survey->false_alarms++;
            snprintf(to + used, sizeof w->survey->alarms - used, "%s, %s %.3g: %s dtype=%s\n",
                     facts_slot_words[t->slot], facts_gate_words[t->gate], t->ratio, text,
                     types[u->type].word);
        }
    }
}

static facts_constants constants_for(const work *w, const unit *u)
{
    return w->choice->constants ? *w->choice->constants
                                : facts_constants_widest(types[u->type].dtype);
}

static int run_fill(work *w, const unit *u, int fill, facts_error *error)
{
    char text[FACTS_CASE_TEXT];
    facts_scene scene;
    facts_trial t;
    unsigned features = facts_scene_features(u->scene) |
                        (types[u->type].adds == ADDS_HOPPER ? FACTS_WITH_HOPPER : 0U);
    facts_scene_text(text, u->scene, u->size, fills[fill].fill, w->choice->seed);
    const facts_scene_plan plan = { text, types[u->type].type,
                                    fills[fill].wide ? FREF_BF16 : types[u->type].type, features,
                                    NULL };
    const facts_constants constants = constants_for(w, u);
    int status = facts_scene_create_by(&scene, &plan,
                                       types[u->type].adds == ADDS_FP32 ? NULL : &constants, error);
    facts_kernel honest = kernel_for(u, FACTS_LIAR_NONE);
    if (status == 0 && (status = facts_trial_run_both(&t, &scene, &honest)) == 0)
        note_honest(w, text, u, &t);
    for (size_t i = 0; status == 0 && i < w->survey->count; i++) {
        facts_found *f = &w->survey->found[i];
        facts_kernel kernel = kernel_for(u, f->liar);
        if (is_expected(w, f, u, fill) && (status = facts_trial_run_both(&t, &scene, &kernel)) == 0)
            note(f, fill, &t);
    }
    facts_scene_destroy(&scene);
    return status;
}

static int run_unit(work *w, const unit *u, facts_error *error)
{
    int status = 0;
    for (int fill = 0; status == 0 && fill < FILLS; fill++)
        if (anybody(w, u, fill))
            status = run_fill(w, u, fill, error);
    return status;
}

static void run_all(work *w)
{
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < w->count; i++) {
        facts_error error = { 0 };
        int status = w->status ? 0 : run_unit(w, &w->units[i], &error);
        if (status) {
#pragma omp critical(facts_survey_note)
            {
                w->status = status;
                facts_fail(w->error, "%.500s", status == ENOMEM ? "out of memory" : error.text);
            }
        }
    }
}

int facts_survey_run(facts_survey *out, const facts_survey_choice *choice, facts_error *error)
{
    *out = (facts_survey){ 0 };
    work w = { .survey = out, .choice = choice, .error = error };
    error->text[0] = '\0';
    if (!make_list(out, choice) || !make_units(&w)) {
        free(w.units);
        return ENOMEM;
    }
    if (out->count == 0) {
        bool typed = !choice->type;
        for (int type = 0; type < FACTS_SURVEY_TYPES; type++)
            typed = typed || strcmp(choice->type, types[type].word) == 0;
        if (typed)
            facts_fail(error, "no liar has \"%.60s\" in its id", choice->liar ? choice->liar : "");
        else
            facts_fail(error, "no type \"%.20s\": bf16 f16 f32 e4m3 e5m2 e4m3-hopper e5m2-hopper",
                       choice->type);
        free(w.units);
        return EINVAL;
    }
    run_all(&w);
    free(w.units);
    for (size_t i = 0; i < out->count; i++) {
        facts_found *f = &out->found[i];
        f->news = f->end == FACTS_END_KILLED && f->why && !f->sometimes && f->ratio > NEWS;
        if (f->end == FACTS_END_KILLED && f->ratio < NEAR)
            f->end = FACTS_END_NEAR;
        if (f->end == FACTS_END_SURVIVED && f->why)
            f->end = FACTS_END_BLIND;
    }
    return w.status;
}

void facts_survey_free(facts_survey *survey)
{
    free(survey->found);
    *survey = (facts_survey){ 0 };
}
