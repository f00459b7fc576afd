#include "findings.h"

#include <stdlib.h>
#include <string.h>

#include "case/words/case_text.h"
#include "reduction.h"

#define MOST_REPEATS 5
#define STEPS 400
#define AT_ONCE 4

typedef enum finding_state { WAITING, CONFIRMING, SHRINKING, REPEATING, OVER } finding_state;

typedef struct finding {
    finding_state state;
    facts_case start, best;
    facts_symptom symptom;
    facts_shrink_result *shrunk; /* while it is at work */
    int failed, asked;
} finding;

struct facts_findings {
    finding *at;
    size_t count, first_open;
    facts_bucket **bucket;
    size_t buckets;
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

bool facts_findings_add(facts_findings *f, const facts_case *drawn, const facts_answer *answer, bool known_too)
{
    for (size_t i = 0; i < answer->count; i++) {
        if ((answer->failing[i].known && !known_too) || answer->failing[i].verdict == FACTS_VERDICT_MISTRUSTED)
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
        f->at[f->count++] = (finding){ .start = *drawn, .best = *drawn, .symptom = answer->failing[i] };
    }
    return true;
}

/* ---- buckets --------------------------------------------------------------------------------------------------------------- */

static const struct {
    facts_key key;
    int part;
} numbers[] = { { FACTS_KEY_B, 0 }, { FACTS_KEY_H, 0 }, { FACTS_KEY_S, 0 },
                { FACTS_KEY_S, 1 }, { FACTS_KEY_D, 0 }, { FACTS_KEY_D, 1 } };

static unsigned long long number_of(const facts_case *c, facts_key key, int part)
{
    const char *text = facts_case_get(c, key);
    for (; part > 0 && strchr(text, '/'); part--)
        text = strchr(text, '/') + 1;
    return strtoull(text, NULL, 10);
}

/* Has the drawn case every feature of the form, and is it nowhere smaller? The engine is part of the symptom. */
static bool explains(const facts_form *form, const facts_case *drawn)
{
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
        if (!facts_is_size(key) && key != FACTS_KEY_ENGINE && form->best.at[key] != 0 &&
            strcmp(facts_case_get(&form->best, key), facts_case_get(drawn, key)) != 0)
            return false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (number_of(drawn, numbers[i].key, numbers[i].part) < number_of(&form->best, numbers[i].key, numbers[i].part))
            return false;
    return true;
}

static facts_bucket *bucket_of(facts_findings *f, const facts_symptom *symptom)
{
    for (size_t i = 0; i < f->buckets; i++)
        if (facts_symptom_alike(&f->bucket[i]->symptom, symptom))
            return f->bucket[i];
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
    return f->bucket[f->buckets++] = made;
}

static void count_case(facts_bucket *bucket, facts_form *form)
{
    bucket->cases++;
    if (form)
        form->cases++;
}

static bool same_case(const facts_case *a, const facts_case *b)
{
    char left[FACTS_NAME_MAX], right[FACTS_NAME_MAX];
    return strcmp(facts_case_name(a, left), facts_case_name(b, right)) == 0;
}

/* The finding is as simple as it gets: into its bucket. */
static void settle(facts_findings *f, finding *at, bool unfinished)
{
    facts_answer answer;
    const facts_symptom *symptom = &at->symptom;
    const facts_evidence_text *evidence = NULL;
    if (f->asker->ask(f->asker->context, &at->best, 1, false, &answer)) {
        const facts_symptom *found = facts_answer_find(&answer, &at->symptom);
        if (found) {
            symptom = found;
            evidence = &answer.evidence[found - answer.failing];
        }
    }
    facts_bucket *bucket = bucket_of(f, symptom);
    at->state = OVER;
    if (!bucket)
        return;
    facts_form *form = NULL;
    for (size_t i = 0; i < bucket->forms && !form; i++)
        if (same_case(&bucket->form[i].best, &at->best))
            form = &bucket->form[i];
    if (!form && bucket->forms < FACTS_MOST_FORMS) {
        form = &bucket->form[bucket->forms++];
        *form = (facts_form){
            .best = at->best, .start = at->start, .failed = at->failed, .asked = at->asked, .unfinished = unfinished
        };
        if (evidence)
            form->evidence = *evidence;
        if (at->shrunk) {
            form->steps = at->shrunk->steps;
            form->unfinished |= at->shrunk->out_of_steps;
            form->controls = at->shrunk->controls;
            memcpy(form->control, at->shrunk->control, sizeof form->control);
        }
    }
    count_case(bucket, form);
    free(at->shrunk);
    at->shrunk = NULL;
}

/* ---- one finding on its way ------------------------------------------------------------------------------------------------ */

static bool is_active(const finding *at)
{
    return at->state == CONFIRMING || at->state == SHRINKING || at->state == REPEATING;
}

/* Counted without a question: a form explains it, or the bucket has forms enough. */
static bool counted(facts_findings *f, finding *at)
{
    for (size_t i = 0; i < f->buckets; i++) {
        facts_bucket *bucket = f->bucket[i];
        if (!facts_symptom_same(&bucket->symptom, &at->symptom))
            continue;
        facts_form *form = NULL;
        for (size_t k = 0; k < bucket->forms && !form; k++)
            if (explains(&bucket->form[k], &at->start))
                form = &bucket->form[k];
        if (!form && bucket->forms < FACTS_MOST_FORMS)
            continue;
        count_case(bucket, form);
        at->state = OVER;
        return true;
    }
    return false;
}

/* Its turn comes when nothing alike is at work: that one's form may explain it. */
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

/* A failure that does not come back at once is repeated until there is a rate, and not shrunk. */
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

static void shrink(facts_findings *f, finding *at)
{
    shrink_context context = { f->asker, is_alone(at) };
    const facts_shrink_order order = { .start = at->start,
                                       .symptom = at->symptom,
                                       .most_steps = f->limits.most_steps,
                                       .lookahead = f->limits.lookahead,
                                       .context = &context,
                                       .ask = ask_once };
    if (!at->shrunk)
        at->shrunk = malloc(sizeof *at->shrunk);
    if (!at->shrunk || !facts_shrink(at->shrunk, &order)) {
        f->failed = true;
        return;
    }
    at->best = at->shrunk->best;
    if (!at->shrunk->waiting)
        at->state = REPEATING;
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
        else if (at->state == REPEATING && repeat(f, at, &at->best, 2))
            settle(f, at, false);
    } while (at->state != before && !f->failed);
}

bool facts_findings_advance(facts_findings *f, const facts_asker *asker)
{
    f->asker = asker;
    bool again;
    do { /* one that is over may explain those that wait for it */
        size_t buckets = f->buckets;
        again = false;
        for (size_t i = f->first_open; i < f->count && !f->failed; i++) {
            finding_state before = f->at[i].state;
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
    for (int round = 0; round < 2; round++) /* those at work first: they explain the rest */
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

size_t facts_findings_count(const facts_findings *f)
{
    return f->buckets;
}

facts_bucket *facts_findings_at(facts_findings *f, size_t i)
{
    return f->bucket[i];
}
