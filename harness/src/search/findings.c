#include "findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/words/case_text.h"
#include "reduction.h"

#define MOST_REPEATS 5
#define STEPS 400
#define AT_ONCE 4

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
    bool ordinary; /* as drawn */
    facts_case start, best;
    facts_symptom symptom;
    facts_shrink_result *shrunk; /* while it is being shrunk */
    bool explained;              /* explained by this known failure, with this link */
    facts_case known;
    char link[200];
    int failed, asked;
} finding;

struct facts_findings {
    finding *at;
    size_t count, first_open;
    facts_bucket **bucket;
    size_t buckets, changes;
    facts_findings_limits limits;
    const facts_asker *asker;
    bool failed;
};

facts_findings *facts_findings_new(const facts_findings_limits *limits)
{
    facts_findings *f = calloc(1, sizeof *f);
    if (f) {
        f->limits = *limits;
        f->limits.most_steps = limits->most_steps > 0 ? limits->most_steps : STEPS;
        f->limits.at_once = limits->at_once > 0 ? limits->at_once : AT_ONCE;
    }
    return f;
}

void facts_findings_free(facts_findings *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->count; i++)
        free(f->at[i].shrunk);
    for (size_t i = 0; i < f->buckets; i++)
        free(f->bucket[i]);
    free(f->at);
    free(f->bucket);
    free(f);
}

static bool is_ordinary(const facts_findings *f, const facts_case *c)
{
    return f->limits.ordinary && f->limits.ordinary(f->limits.context, c);
}

bool facts_findings_add(facts_findings *f, const facts_case *drawn, const facts_answer *answer,
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
        finding *larger = facts_grow(f->at, f->count, sizeof *larger);
        if (!larger)
            return false;
        f->at = larger;
        f->at[f->count++] = (finding){ .ordinary = is_ordinary(f, drawn),
                                       .start = *drawn,
                                       .best = *drawn,
                                       .symptom = answer->failing[i] };
    }
    return true;
}

/* ---- buckets
 * ---------------------------------------------------------------------------------------------------------------
 */

static bool belongs(const facts_bucket *bucket, const facts_symptom *symptom,
                    const facts_form *form, bool explained)
{
    if (bucket->explained != explained || !facts_symptom_alike(&bucket->symptom, symptom))
        return false;
    for (size_t i = 0; i < bucket->forms; i++)
        if (facts_case_neighbours(&bucket->form[i].best, &form->best))
            return true;
    return false;
}

/* A new form may be a neighbour of two forms that were separate until now. */
static void merge(facts_findings *f, facts_bucket *into, size_t from)
{
    facts_bucket *other = f->bucket[from];
    for (size_t i = 0; i < other->forms; i++)
        facts_bucket_take(into, &other->form[i]);
    into->cases += other->cases;
    free(other);
    f->bucket[from] = f->bucket[--f->buckets];
}

static facts_bucket *bucket_of(facts_findings *f, const facts_symptom *symptom,
                               const facts_form *form, bool explained)
{
    facts_bucket *found = NULL;
    for (size_t i = 0; i < f->buckets;) {
        if (!belongs(f->bucket[i], symptom, form, explained)) {
            i++;
        } else if (found) {
            merge(f, found, i);
        } else {
            found = f->bucket[i++];
        }
    }
    if (found)
        return found;
    facts_bucket **larger = realloc(f->bucket, (f->buckets + 1) * sizeof(facts_bucket *));
    facts_bucket *made = calloc(1, sizeof *made);
    if (larger)
        f->bucket = larger;
    if (!larger || !made) {
        free(made);
        f->failed = true;
        return NULL;
    }
    made->symptom = *symptom;
    made->explained = explained;
    return f->bucket[f->buckets++] = made;
}

static bool same_case(const facts_case *a, const facts_case *b)
{
    char left[FACTS_NAME_MAX], right[FACTS_NAME_MAX];
    return strcmp(facts_case_name(a, left), facts_case_name(b, right)) == 0;
}

static facts_form form_of(const finding *at, const facts_answer *answer, const facts_symptom *found,
                          bool unfinished)
{
    facts_form form = { .best = at->best,
                        .start = at->start,
                        .failed = at->failed,
                        .asked = at->asked,
                        .unfinished = unfinished,
                        .cases = 1 };
    form.kernels = facts_case_kernels(&at->best) | facts_case_kernels(&at->start);
    if (at->explained)
        form.known = at->known;
    memcpy(form.link, at->link, sizeof form.link);
    if (found)
        form.evidence = answer->evidence[found - answer->failing];
    if (at->shrunk) {
        form.steps = at->shrunk->steps;
        form.unfinished |= at->shrunk->out_of_steps;
        form.controls = at->shrunk->controls;
        memcpy(form.control, at->shrunk->control, sizeof form.control);
    }
    return form;
}

static bool ask_first(facts_findings *f, const facts_case *c, facts_answer *out)
{
    return f->asker->ask(f->asker->context, c, 1, false, out);
}

/* The finding cannot be simplified further: adds it to its bucket. */
static void settle(facts_findings *f, finding *at, bool unfinished)
{
    facts_answer answer;
    const facts_symptom *found = NULL;
    if (ask_first(f, &at->best, &answer))
        found = facts_answer_find(&answer, &at->symptom);
    facts_form form = form_of(at, &answer, found, unfinished);
    const facts_symptom symptom = found ? *found : at->symptom;
    form.ordinary = is_ordinary(f, &form.best);
    facts_bucket *bucket = bucket_of(f, &symptom, &form, at->explained);
    at->state = OVER;
    free(at->shrunk);
    at->shrunk = NULL;
    if (!bucket)
        return;
    bucket->cases++;
    f->changes++;
    for (size_t i = 0; i < bucket->forms; i++)
        if (same_case(&bucket->form[i].best, &form.best)) {
            bucket->form[i].cases++;
            bucket->form[i].kernels |= form.kernels;
            return;
        }
    facts_bucket_take(bucket, &form);
}

/* ---- one finding: confirm, shrink, compare with known failures
 * ------------------------------------------------------------------- */

static bool is_active(const finding *at)
{
    return at->state != WAITING && at->state != OVER;
}

/* Does every form of a full bucket set only keys that this case sets too? */
static bool has_all_keys(const facts_bucket *bucket, const facts_case *c)
{
    for (size_t i = 0; i < bucket->forms; i++)
        for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
            if (facts_is_feature(key) && bucket->form[i].best.at[key] != 0 && c->at[key] == 0)
                return false;
    return bucket->forms == FACTS_MOST_FORMS && !bucket->explained;
}

/* Counted without a question: a form covers it, or its bucket is full. */
static bool counted(facts_findings *f, finding *at)
{
    for (size_t i = 0; i < f->buckets; i++) {
        facts_bucket *bucket = f->bucket[i];
        if (!facts_symptom_same(&bucket->symptom, &at->symptom))
            continue;
        facts_form *form = NULL;
        for (size_t k = 0; k < bucket->forms && !form; k++)
            if (facts_form_covers(&bucket->form[k], &at->start))
                form = &bucket->form[k];
        if (!form && !has_all_keys(bucket, &at->start))
            continue;
        bucket->cases++;
        if (form)
            form->cases++;
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
    f->failed |= !facts_shrink(out, &order);
    return !f->failed && !out->waiting;
}

static void shrink(facts_findings *f, finding *at)
{
    if (!at->shrunk)
        at->shrunk = calloc(1, sizeof *at->shrunk);
    f->failed |= !at->shrunk;
    if (f->failed)
        return;
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
    const facts_symptom *found = facts_answer_find(&answer, &wanted);
    if (!found)
        return;
    at->explained = true;
    at->known = result.best;
    snprintf(at->link, sizeof at->link, "%s", answer.evidence[found - answer.failing].link);
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
    } while (at->state != before && !f->failed);
}

bool facts_findings_advance(facts_findings *f, const facts_asker *asker)
{
    f->asker = asker;
    bool again;
    do { /* a finished finding may explain the findings that wait for it */
        size_t buckets = f->buckets;
        again = false;
        for (int ordinary = 1; ordinary >= 0; ordinary--)
            for (size_t i = f->first_open; i < f->count && !f->failed; i++) {
                finding_state before = f->at[i].state;
                if (f->at[i].ordinary == (ordinary != 0))
                    advance(f, &f->at[i]);
                again |= before != OVER && f->at[i].state == OVER;
            }
        again |= buckets != f->buckets;
        while (f->first_open < f->count && f->at[f->first_open].state == OVER)
            f->first_open++;
    } while (again && !f->failed);
    return !f->failed;
}

size_t facts_findings_open(const facts_findings *f)
{
    size_t open = 0;
    for (size_t i = f->first_open; i < f->count; i++)
        open += f->at[i].state != OVER;
    return open;
}

bool facts_findings_close(facts_findings *f, const facts_asker *asker)
{
    f->asker = asker;
    for (int round = 0; round < 2; round++) /* those being shrunk first: they explain the others */
        for (size_t i = f->first_open; i < f->count && !f->failed; i++) {
            finding *at = &f->at[i];
            if (at->state == OVER || (round == 0 && !is_active(at)) || counted(f, at))
                continue;
            if (at->asked == 0)
                at->failed = at->asked = 1;
            settle(f, at, true);
        }
    return !f->failed;
}

static int in_order(const void *a, const void *b)
{
    return facts_bucket_order(*(const facts_bucket *const *)a, *(const facts_bucket *const *)b);
}

void facts_findings_rank(facts_findings *f)
{
    if (f->buckets)
        qsort(f->bucket, f->buckets, sizeof(facts_bucket *), in_order);
}

size_t facts_findings_changes(const facts_findings *f)
{
    return f->changes;
}

size_t facts_findings_news(const facts_findings *f)
{
    size_t news = 0;
    for (size_t i = 0; i < f->buckets; i++)
        news += !f->bucket[i]->explained;
    return news;
}

size_t facts_findings_count(const facts_findings *f)
{
    return f->buckets;
}

facts_bucket *facts_findings_at(facts_findings *f, size_t i)
{
    return f->bucket[i];
}
