#include "buckets.h"

#include <stdlib.h>
#include <string.h>

#include "reduction.h"

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

static bool same_value(const facts_case *a, const facts_case *b, facts_key key)
{
    return strcmp(facts_case_get(a, key), facts_case_get(b, key)) == 0;
}

/* 'e': 8 bits, 'm': the same with factors for each block, '3': f32, 'h': the types of 16 bits. */
static char family_of(const facts_case *c)
{
    const char *dtype = facts_case_get(c, FACTS_KEY_DTYPE);
    return strcmp(dtype, "f32") == 0 ? '3' : *dtype == 'e' || *dtype == 'm' ? *dtype : 'h';
}

static bool same_kernels(const facts_case *a, const facts_case *b)
{
    return same_value(a, b, FACTS_KEY_PASS) && family_of(a) == family_of(b);
}

bool facts_case_covers(const facts_case *smaller, const facts_case *larger)
{
    if (!same_kernels(smaller, larger))
        return false;
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
        if (facts_is_feature(key) && smaller->at[key] != 0 && !same_value(smaller, larger, key))
            return false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (number_of(larger, numbers[i].key, numbers[i].part) < number_of(smaller, numbers[i].key, numbers[i].part))
            return false;
    return true;
}

bool facts_case_same_keys(const facts_case *a, const facts_case *b)
{
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
        if (facts_is_feature(key) && key != FACTS_KEY_DTYPE && (a->at[key] != 0) != (b->at[key] != 0))
            return false;
    return same_kernels(a, b);
}

bool facts_case_neighbours(const facts_case *a, const facts_case *b)
{
    return facts_case_same_keys(a, b) || facts_case_covers(a, b) || facts_case_covers(b, a);
}

static int by_name(const facts_form *a, const facts_form *b)
{
    char left[FACTS_NAME_MAX], right[FACTS_NAME_MAX];
    return strcmp(facts_case_name(&a->best, left), facts_case_name(&b->best, right));
}

static int by_features(const facts_form *a, const facts_form *b)
{
    const size_t left = facts_case_features(&a->best), right = facts_case_features(&b->best);
    return (left > right) - (left < right);
}

static int form_order(const facts_form *a, const facts_form *b)
{
    if (a->ordinary != b->ordinary)
        return a->ordinary ? -1 : 1;
    const int features = by_features(a, b);
    return features ? features : by_name(a, b);
}

void facts_bucket_take(facts_bucket *bucket, const facts_form *form)
{
    size_t at = 0;
    bucket->ordinary |= form->ordinary;
    while (at < bucket->forms && form_order(&bucket->form[at], form) <= 0)
        at++;
    if (at == FACTS_MOST_FORMS)
        return;
    if (bucket->forms < FACTS_MOST_FORMS)
        bucket->forms++;
    memmove(&bucket->form[at + 1], &bucket->form[at], (bucket->forms - 1 - at) * sizeof *form);
    bucket->form[at] = *form;
}

int facts_bucket_order(const facts_bucket *a, const facts_bucket *b)
{
    if (a->explained != b->explained)
        return a->explained ? 1 : -1;
    if (a->ordinary != b->ordinary)
        return a->ordinary ? -1 : 1;
    const int features = by_features(&a->form[0], &b->form[0]);
    if (features)
        return features;
    return a->cases != b->cases ? (a->cases > b->cases ? -1 : 1) : by_name(&a->form[0], &b->form[0]);
}
