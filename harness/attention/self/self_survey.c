#include "self_survey.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/case_problem.h"
#include "self_case.h"
#include "suites/planned_cases.h"
#include "suites/predicate.h"

#define BLIND_SAMPLE 8 /* cases of a fault that nothing is known to show */
#define CLEAR 10.0     /* found without doubt: the other cases need not show it */

#define BIT(symbol) (1U << FACTS_SELF_##symbol)
#define HOPPER (BIT(E4M3_HOPPER) | BIT(E5M2_HOPPER))
#define NARROW (BIT(E4M3) | BIT(E5M2) | HOPPER)

/* What cannot be seen in a type, whatever the data. */
static const struct {
    fattn__liar liar;
    unsigned types;
    const char *why;
    bool sometimes; /* some data show it: the whole sample is asked */
} blind_spots[] = {
    { FATTN__LIAR_O_GAIN_5E4, NARROW, "rounding P to 8 bits moves a sum by more", false },
    { FATTN__LIAR_O_GAIN_1E3, NARROW, "rounding P to 8 bits moves a sum by more", false },
    { FATTN__LIAR_O_GAIN_1PCT, BIT(E5M2) | BIT(E5M2_HOPPER),
      "rounding P to e5m2 moves a sum by "
      "more",
      false },
    { FATTN__LIAR_O_GAIN_ROWS, NARROW, "rounding P to 8 bits moves a sum by more", false },
    { FATTN__LIAR_EXP_CUT, HOPPER, "P V in a sum of 14 bits may lose more than exp(-10)", false },
    { FATTN__LIAR_KEEP_FACTOR, HOPPER, "rounding P to 8 bits moves a sum by more", false },
    { FATTN__LIAR_B_DK_GAIN_5E4, NARROW, "rounding dS to 8 bits moves a sum by more", false },
    { FATTN__LIAR_SCALE_1E5, HOPPER, "logits that are added in 14 bits are off by more", false },
    { FATTN__LIAR_LOG2E_SHORT, HOPPER, "logits that are added in 14 bits are off by more", false },
    { FATTN__LIAR_SCALE_1E3, HOPPER, "logits that are added in 14 bits are off by about as much",
      true },
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

static bool is_chosen(const facts_survey_choice *choice, const fattn__fault *fault,
                      facts_self_type type)
{
    return (!choice->fault || strstr(fault->word, choice->fault)) &&
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
