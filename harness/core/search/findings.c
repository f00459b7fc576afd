#include "findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language/simpler.h"
#include "words/case_text.h"

#define MOST_REPEATS 5
#define STEPS 400
#define AT_ONCE 4
#define FEW 4        /* features of a case that is shrunk before others */
#define MOST_FORMS 4 /* that are alike; then similar cases are not shrunk */

typedef enum finding_state {
    WAITING,
    CONFIRMING,
    SHRINKING,
    EXPLAINING,
    REPEATING,
    OVER
} finding_state;

typedef struct finding {
    finding_state state;
    facts_case start, best;
    facts_symptom symptom;
    facts_shrink_result *shrunk; /* while it is being shrunk */
    bool explained;              /* by this known failure */
    facts_case known;
    int failed, asked;
} finding;

struct facts_findings {
    finding *at;
    size_t count, first_open;
    facts_form *form;
    size_t forms;
    facts_findings_limits limits;
    const facts_asker *asker;
};

facts_findings *facts_findings_new(const facts_findings_limits *limits)
{
    facts_findings *f = calloc(1, sizeof *f);
    f->limits = *limits;
    f->limits.most_steps = limits->most_steps > 0 ? limits->most_steps : STEPS;
    f->limits.at_once = limits->at_once > 0 ? limits->at_once : AT_ONCE;
    return f;
}

void facts_findings_free(facts_findings *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->count; i++)
        free(f->at[i].shrunk);
    free(f->at);
    free(f->form);
    free(f);
}

void facts_findings_add(facts_findings *f, const facts_case *drawn, const facts_answer *answer,
                        bool known_too)
{
    for (size_t i = 0; i < answer->count; i++) {
        if ((answer->failing[i].known && !known_too) ||
            answer->failing[i].verdict == FACTS_VERDICT_MISTRUSTED)
            continue;
        bool seen = false; /* several configurations of one engine */
        for (size_t k = 0; k < i; k++)
            seen |= facts_symptom_same(&answer->failing[k], &answer->failing[i]);
        if (seen)
            continue;
        f->at = facts_grow(f->at, f->count, sizeof *f->at);
        f->at[f->count++] =
            (finding){ .start = *drawn, .best = *drawn, .symptom = answer->failing[i] };
    }
}

/* ---- forms ---- */

static unsigned long long number_of(const facts_case *c, facts_key key, int part)
{
    const char *text = facts_case_get(c, key);
    for (; part > 0 && strchr(text, '/'); part--)
        text = strchr(text, '/') + 1;
    return strtoull(text, NULL, 10);
}

static bool same_value(const facts_case *a, const facts_case *b, facts_key key)
{
    return strcmp(facts_case_get(a, key), facts_case_get(b, key)) == 0;
}

static unsigned kernels_of(const facts_case *c)
{
    return c->language->simpler->kernels(c);
}

/* Does the larger case have every feature of the form, in a kernel that the form is known to fail
 * in, and is no size smaller? The engine belongs to the symptom. */
static bool facts_form_covers(const facts_form *form, const facts_case *larger)
{
    const facts_case *smaller = &form->best;
    const bool others = kernels_of(smaller) != kernels_of(larger);
    if (!(form->kernels & kernels_of(larger)))
        return false;
    for (facts_key key = 0; key < larger->language->count; key++)
        if (facts_is_feature(larger->language, key) && smaller->at[key] != 0 &&
            !same_value(smaller, larger, key) && !(others && key < larger->language->always))
            return false;
    const facts_simpler *simpler = larger->language->simpler;
    for (size_t i = 0; i < simpler->size_count; i++) {
        const facts_size *size = &simpler->sizes[i];
        for (int part = 0; part < size->parts; part++)
            if (number_of(larger, size->key, part) < number_of(smaller, size->key, part))
                return false;
    }
    return true;
}

static bool ask_first(facts_findings *f, const facts_case *c, facts_answer *out)
{
    return f->asker->ask(f->asker->context, c, 1, false, out);
}

/* The same smallest case again stands for the kernels of both. */
static void join_same(facts_findings *f, facts_form *form)
{
    char name[FACTS_NAME_MAX], other[FACTS_NAME_MAX];
    facts_case_name(&form->best, name);
    for (size_t i = 0; i < f->forms; i++)
        if (strcmp(facts_case_name(&f->form[i].best, other), name) == 0) {
            form->again = true;
            f->form[i].kernels = form->kernels |= f->form[i].kernels;
        }
}

/* The finding cannot be simplified further: it leaves a form. */
static void settle(facts_findings *f, finding *at, bool unfinished)
{
    facts_answer answer;
    facts_form form = { .best = at->best,
                        .start = at->start,
                        .symptom = at->symptom,
                        .kernels = kernels_of(&at->best) | kernels_of(&at->start),
                        .failed = at->failed,
                        .asked = at->asked,
                        .unfinished = unfinished || (at->shrunk && at->shrunk->out_of_steps),
                        .explained = at->explained,
                        .known = at->known };
    if (ask_first(f, &at->best, &answer) && facts_answer_find(&answer, &at->symptom))
        form.symptom = *facts_answer_find(&answer, &at->symptom);
    at->state = OVER;
    free(at->shrunk);
    at->shrunk = NULL;
    join_same(f, &form);
    f->form = facts_grow(f->form, f->forms, sizeof *f->form);
    f->form[f->forms++] = form;
}

/* ---- one finding: confirm, shrink, compare with known failures
 * ------------------------------------------------------------------- */

static bool is_active(const finding *at)
{
    return at->state != WAITING && at->state != OVER;
}

/* Does the form set only keys that this case sets too? */
static bool has_its_keys(const facts_form *form, const facts_case *c)
{
    for (facts_key key = 0; key < c->language->count; key++)
        if (facts_is_feature(c->language, key) && form->best.at[key] != 0 && c->at[key] == 0)
            return false;
    return true;
}

/* A form covers the case, or several forms are like it already. */
static bool counted(const facts_findings *f, finding *at)
{
    int alike = 0;
    for (size_t i = 0; i < f->forms; i++) {
        const facts_form *form = &f->form[i];
        if (!facts_symptom_same(&form->symptom, &at->symptom))
            continue;
        bool covers = facts_form_covers(form, &at->start);
        alike += !form->explained && !form->again && has_its_keys(form, &at->start);
        if (!covers && alike < MOST_FORMS)
            continue;
        at->state = OVER;
        return true;
    }
    return false;
}

/* It starts when no similar finding is being shrunk: the form of that one may explain it. */
static void begin(facts_findings *f, finding *at)
{
    int active = 0;
    if (counted(f, at))
        return;
    for (size_t i = f->first_open; i < f->count; i++) {
        active += is_active(&f->at[i]);
        if (is_active(&f->at[i]) && facts_symptom_same(&f->at[i].symptom, &at->symptom))
            return;
    }
    if (active < f->limits.at_once)
        at->state = CONFIRMING;
}

static bool is_alone(const finding *at)
{
    return at->symptom.verdict == FACTS_VERDICT_EXIT_CRASH;
}

/* Attempts 2 to `most` of a case; false while one is open. */
static bool repeat(facts_findings *f, finding *at, const facts_case *c, int most)
{
    bool known = true;
    facts_answer answer;
    at->failed = at->asked = 1;
    for (int attempt = 2; attempt <= most; attempt++) {
        if (!f->asker->ask(f->asker->context, c, attempt, is_alone(at), &answer)) {
            known = false;
            continue;
        }
        at->asked++;
        at->failed += facts_answer_find(&answer, &at->symptom) != NULL;
    }
    return known;
}

/* A failure that does not repeat immediately is repeated to measure its rate, and is not shrunk. */
static void confirm(facts_findings *f, finding *at)
{
    if (!repeat(f, at, &at->start, 2))
        return;
    if (at->failed == 2)
        at->state = SHRINKING;
    else if (repeat(f, at, &at->start, MOST_REPEATS))
        settle(f, at, false);
}

typedef struct shrink_context {
    const facts_asker *asker;
    bool alone;
} shrink_context;

static bool ask_once(void *context, const facts_case *c, facts_answer *out)
{
    const shrink_context *s = context;
    return s->asker->ask(s->asker->context, c, 1, s->alone, out);
}

/* True when it is finished; false while an answer is still to come. */
static bool shrink_from(facts_findings *f, const finding *at, const facts_case *start,
                        bool to_known, facts_shrink_result *out)
{
    shrink_context context = { f->asker, is_alone(at) };
    facts_shrink_order order = { .start = *start,
                                 .symptom = at->symptom,
                                 .most_steps = f->limits.most_steps,
                                 .lookahead = f->limits.lookahead,
                                 .features_alone = to_known,
                                 .context = &context,
                                 .ask = ask_once };
    order.symptom.known |= to_known;
    facts_shrink(out, &order);
    return !out->waiting;
}

static void shrink(facts_findings *f, finding *at)
{
    if (!at->shrunk)
        at->shrunk = calloc(1, sizeof *at->shrunk);
    const bool over = shrink_from(f, at, &at->start, false, at->shrunk);
    at->best = at->shrunk->best;
    if (over)
        at->state = at->symptom.known ? REPEATING : EXPLAINING;
}

/* Without some of its features, the case may be a known failure. The sizes stay: a known failure at
 * other sizes does not explain this one. */
static void explain(facts_findings *f, finding *at)
{
    facts_shrink_result result;
    facts_answer answer;
    facts_symptom wanted = at->symptom;
    wanted.known = true;
    if (!shrink_from(f, at, &at->best, true, &result))
        return;
    at->state = REPEATING;
    if (!ask_first(f, &result.best, &answer) || facts_answer_find(&answer, &at->symptom))
        return;
    at->explained = facts_answer_find(&answer, &wanted) != NULL;
    at->known = result.best;
}

static void advance(facts_findings *f, finding *at)
{
    finding_state before;
    do {
        before = at->state;
        if (at->state == WAITING)
            begin(f, at);
        else if (at->state == CONFIRMING)
            confirm(f, at);
        else if (at->state == SHRINKING)
            shrink(f, at);
        else if (at->state == EXPLAINING)
            explain(f, at);
        else if (at->state == REPEATING && repeat(f, at, &at->best, 2))
            settle(f, at, false);
    } while (at->state != before);
}

void facts_findings_advance(facts_findings *f, const facts_asker *asker)
{
    f->asker = asker;
    bool again;
    do { /* a form may stand for the findings that wait for it */
        size_t forms = f->forms;
        again = false;
        for (int few = 1; few >= 0; few--) /* cases with few features first */
            for (size_t i = f->first_open; i < f->count; i++) {
                finding_state before = f->at[i].state;
                if ((facts_case_features(&f->at[i].start) <= FEW) == (few != 0))
                    advance(f, &f->at[i]);
                again |= before != OVER && f->at[i].state == OVER;
            }
        again |= forms != f->forms;
        while (f->first_open < f->count && f->at[f->first_open].state == OVER)
            f->first_open++;
    } while (again);
}

size_t facts_findings_open(const facts_findings *f)
{
    size_t open = 0;
    for (size_t i = f->first_open; i < f->count; i++)
        open += f->at[i].state != OVER;
    return open;
}

void facts_findings_close(facts_findings *f, const facts_asker *asker)
{
    f->asker = asker;
    for (int round = 0; round < 2; round++) /* those being shrunk first: they explain the others */
        for (size_t i = f->first_open; i < f->count; i++) {
            finding *at = &f->at[i];
            if (at->state == OVER || (round == 0 && !is_active(at)) || counted(f, at))
                continue;
            if (at->asked == 0)
                at->failed = at->asked = 1;
            settle(f, at, true);
        }
}

size_t facts_findings_count(const facts_findings *f)
{
    return f->forms;
}

size_t facts_findings_news(const facts_findings *f)
{
    size_t news = 0;
    for (size_t i = 0; i < f->forms; i++)
        news += !f->form[i].explained;
    return news;
}

const facts_form *facts_findings_at(const facts_findings *f, size_t i)
{
    return &f->form[i];
}
