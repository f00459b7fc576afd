/* Resets keys to their defaults: all at once, then one by one in the order of a name. */
#include <stdio.h>
#include <string.h>

#include "reduction.h"

bool facts_is_feature(facts_key key)
{
    return !facts_is_size(key) && key != FACTS_KEY_ENGINE;
}

size_t facts_case_features(const facts_case *c)
{
    size_t n = 0;
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
        n += facts_is_feature(key) && c->at[key] != 0;
    return n;
}

/* Keys that depend on another key are reset with it. */
static const facts_key followers[][2] = {
    { FACTS_KEY_BIAS, FACTS_KEY_DBIAS },        { FACTS_KEY_BIAS, FACTS_KEY_BIAS_FILL },
    { FACTS_KEY_BIAS, FACTS_KEY_BIAS_DTYPE },   { FACTS_KEY_SOFTMAX, FACTS_KEY_DSINK },
    { FACTS_KEY_PASS, FACTS_KEY_DBIAS },        { FACTS_KEY_PASS, FACTS_KEY_DSINK },
    { FACTS_KEY_LENS, FACTS_KEY_LENS_SHAPE },   { FACTS_KEY_PADDING, FACTS_KEY_LENS_SHAPE },
    { FACTS_KEY_DROPOUT, FACTS_KEY_RNG },       { FACTS_KEY_DROPOUT, FACTS_KEY_DROPOUT_MASK },
    { FACTS_KEY_DROPOUT, FACTS_KEY_RNG_DTYPE }, { FACTS_KEY_PAGED, FACTS_KEY_TABLE },
    { FACTS_KEY_WINDOW, FACTS_KEY_ALIGN }
};

static bool drop(facts_case *out, const facts_case *c, facts_key key, bool with_followers)
{
    bool left_out[FACTS_KEY_COUNT] = { false };
    left_out[key] = true;
    for (size_t i = 0; with_followers && i < sizeof followers / sizeof *followers; i++)
        if (followers[i][0] == key)
            left_out[followers[i][1]] = true;
    return facts_case_without(out, c, left_out);
}

static bool drop_all(facts_shrinker *s)
{
    facts_case candidate;
    bool left_out[FACTS_KEY_COUNT];
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
        left_out[key] = facts_is_feature(key);
    return facts_case_without(&candidate, &s->result->best, left_out) &&
           facts_shrink_try(s, &candidate, "every key default");
}

bool facts_reduce_features(facts_shrinker *s)
{
    bool any = false;
    char what[64];
    if (facts_case_features(&s->result->best) > 1)
        any = drop_all(s);
    for (facts_key key = 0; key < FACTS_KEY_COUNT && !s->over; key++) {
        facts_case candidate;
        if (!facts_is_feature(key) || s->result->best.at[key] == 0)
            continue;
        snprintf(what, sizeof what, "%s default", facts_keys[key].word);
        bool kept = false;
        for (int others = 0; others < 2 && !kept; others++) {
            kept = drop(&candidate, &s->result->best, key, others > 0) &&
                   facts_case_features(&candidate) < facts_case_features(&s->result->best) &&
                   facts_shrink_try(s, &candidate, what);
            any |= kept;
        }
    }
    return any;
}
