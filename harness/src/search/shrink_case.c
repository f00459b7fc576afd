#include "shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "reduction.h"

bool facts_is_size(facts_key key)
{
    return key == FACTS_KEY_B || key == FACTS_KEY_H || key == FACTS_KEY_S || key == FACTS_KEY_D;
}

/* The case is written again, because a default is not always a value that can be set (v=layout). */
bool facts_case_without(facts_case *out, const facts_case *c, const bool left_out[FACTS_KEY_COUNT])
{
    char text[FACTS_NAME_MAX];
    size_t used = 0;
    facts_error ignored;
    text[0] = '\0';
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++) {
        if (left_out[key] || c->at[key] == 0)
            continue;
        int n = snprintf(text + used, sizeof text - used, "%s=%s ", facts_keys[key].word,
                         facts_case_get(c, key));
        if (n < 0 || (size_t)n >= sizeof text - used)
            return false;
        used += (size_t)n;
    }
    return facts_case_parse(out, text, &ignored);
}

bool facts_case_without_key(facts_case *out, const facts_case *c, facts_key key)
{
    bool left_out[FACTS_KEY_COUNT] = { false };
    left_out[key] = true;
    return facts_case_without(out, c, left_out);
}

static uint64_t hash_of(const facts_case *c)
{
    char name[FACTS_NAME_MAX];
    facts_case_name(c, name);
    uint64_t hash = XXH3_64bits(name, strlen(name));
    return hash ? hash : 1;
}

static facts_tried *slot_of(const facts_shrinker *s, uint64_t hash)
{
    size_t i = (size_t)hash & (s->capacity - 1);
    while (s->tried[i].name != 0 && s->tried[i].name != hash)
        i = (i + 1) & (s->capacity - 1);
    return &s->tried[i];
}

facts_verdict facts_shrink_verdict(const facts_shrinker *s, const facts_case *candidate)
{
    const facts_tried *found = slot_of(s, hash_of(candidate));
    return found->name ? (facts_verdict)found->verdict : FACTS_VERDICT_COUNT;
}

static void note(facts_shrinker *s, facts_tried *slot, uint64_t hash, facts_verdict verdict)
{
    *slot = (facts_tried){ .name = hash, .verdict = (uint8_t)verdict };
    s->used++;
}

static bool resolves(facts_shrinker *s, const facts_case *c)
{
    facts_error ignored;
    return facts_problem_resolve(s->problem, c, &ignored) == FACTS_RESOLVED;
}

bool facts_shrink_try(facts_shrinker *s, const facts_case *candidate, const char *what)
{
    facts_answer answer;
    uint64_t hash = hash_of(candidate);
    facts_tried *slot = slot_of(s, hash);
    if (s->over || slot->name != 0 || (s->computable && !resolves(s, candidate)))
        return false;
    int most = s->order->most_steps > 0 && s->order->most_steps < FACTS_SHRINK_MOST_STEPS
                   ? s->order->most_steps
                   : FACTS_SHRINK_MOST_STEPS;
    if (s->result->steps >= most) {
        s->over = true;
        s->result->out_of_steps = s->open == 0;
        return false;
    }
    bool known = s->order->ask(s->order->context, candidate, &answer);
    note(s, slot, hash, known ? answer.verdict : FACTS_VERDICT_COUNT);
    if (!known) {
        s->open++;
        s->over = s->open >= (s->order->lookahead > 0 ? s->order->lookahead : 1);
    }
    if (s->open > 0)
        return false; /* an earlier answer may make this question unnecessary */
    bool same = facts_answer_find(&answer, &s->order->symptom) != NULL;
    s->result->steps++;
    if (same) {
        s->result->best = *candidate;
        s->result->kept++;
    }
    if (s->order->step)
        s->order->step(s->order->context, &(facts_shrink_step){ s->result->steps, what, candidate,
                                                                answer.verdict, same });
    return same;
}

bool facts_shrink_try_key(facts_shrinker *s, facts_key key, const char *value, const char *what)
{
    facts_case candidate = s->result->best;
    facts_error ignored;
    return facts_case_set(&candidate, key, value, &ignored) &&
           facts_shrink_try(s, &candidate, what);
}

/* With engine=all or the heuristics' choice: sets the failing engine, so that no smaller case
 * changes to another engine. If the backend's engines have no numbers, removes the engine key
 * first. */
static void pin_engine(facts_shrinker *s)
{
    char number[32], what[48];
    facts_case chosen;
    const char *engine = facts_case_get(&s->result->best, FACTS_KEY_ENGINE);
    if (s->order->symptom.engine < 0) {
        if (s->result->best.at[FACTS_KEY_ENGINE] != 0 &&
            facts_case_without_key(&chosen, &s->result->best, FACTS_KEY_ENGINE))
            facts_shrink_try(s, &chosen, "engine auto");
        return;
    }
    if (strcmp(engine, "auto") != 0 && strcmp(engine, "all") != 0)
        return;
    snprintf(number, sizeof number, "%lld", (long long)s->order->symptom.engine);
    snprintf(what, sizeof what, "engine %s", number);
    facts_shrink_try_key(s, FACTS_KEY_ENGINE, number, what);
}

/* Cases that differ in one key from the smallest case, were asked during shrinking, and pass: the
 * failure needs this key. */
static void find_controls(facts_shrinker *s)
{
    facts_shrink_result *r = s->result;
    for (facts_key key = 0; key < FACTS_KEY_COUNT && r->controls < FACTS_SHRINK_CONTROLS; key++) {
        facts_case candidate = r->best;
        if (facts_is_size(key) || key == FACTS_KEY_ENGINE || candidate.at[key] == 0)
            continue;
        if (facts_case_without_key(&candidate, &r->best, key) &&
            facts_verdict_is_good(facts_shrink_verdict(s, &candidate)))
            r->control[r->controls++] = candidate;
    }
    static const facts_key sizes[] = { FACTS_KEY_S, FACTS_KEY_D, FACTS_KEY_H, FACTS_KEY_B };
    for (size_t i = 0; i < 4 && r->controls < FACTS_SHRINK_CONTROLS; i++) {
        const char *text = facts_case_get(&r->best, sizes[i]), *last = strrchr(text, '/');
        facts_case candidate = r->best;
        facts_error ignored;
        char smaller[64];
        unsigned long long number = strtoull(last ? last + 1 : text, NULL, 10);
        if (number < 2)
            continue;
        snprintf(smaller, sizeof smaller, "%.*s%llu", last ? (int)(last + 1 - text) : 0, text,
                 number - 1);
        if (facts_case_set(&candidate, sizes[i], smaller, &ignored) &&
            facts_verdict_is_good(facts_shrink_verdict(s, &candidate)))
            r->control[r->controls++] = candidate;
    }
}

bool facts_shrink(facts_shrink_result *out, const facts_shrink_order *order)
{
    facts_shrinker s = { .order = order, .result = out, .capacity = 4 * 8192 };
    *out = (facts_shrink_result){ .best = order->start };
    s.tried = calloc(s.capacity, sizeof *s.tried);
    s.problem = malloc(sizeof *s.problem);
    bool ok = s.tried != NULL && s.problem != NULL;
    if (ok) {
        s.computable = resolves(&s, &order->start);
        uint64_t hash = hash_of(&order->start);
        note(&s, slot_of(&s, hash), hash, order->symptom.verdict);
        pin_engine(&s);
        bool again = true;
        while (again && !s.over) {
            again = facts_reduce_features(&s);
            if (!order->features_alone) {
                again |= facts_reduce_values(&s);
                again |= facts_reduce_entries(&s);
                again |= facts_reduce_sizes(&s);
            }
            s.round++;
        }
        if (s.open == 0)
            find_controls(&s);
        facts_case chosen;
        if (facts_case_without_key(&chosen, &out->best, FACTS_KEY_ENGINE))
            facts_shrink_try(&s, &chosen, "engine auto");
        out->waiting = s.open > 0;
    }
    free(s.tried);
    free(s.problem);
    return ok;
}
