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

unsigned facts_case_kernels(const facts_case *c)
{
    const char *dtype = facts_case_get(c, FACTS_KEY_DTYPE);
    const unsigned family = strcmp(dtype, "f32") == 0 ? 0
                            : *dtype == 'e'           ? 1
                            : *dtype == 'm'           ? 2
                                                      : 3;
    return 1U << (family + (strcmp(facts_case_get(c, FACTS_KEY_PASS), "bwd") == 0 ? 4 : 0));
}

static bool covers(const facts_case *smaller, const facts_case *larger, unsigned kernels)
{
    const bool others = facts_case_kernels(smaller) != facts_case_kernels(larger);
    if (!(kernels & facts_case_kernels(larger)))
        return false;
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
        if (facts_is_feature(key) && smaller->at[key] != 0 && !same_value(smaller, larger, key) &&
            !(others && (key == FACTS_KEY_DTYPE || key == FACTS_KEY_PASS)))
            return false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (number_of(larger, numbers[i].key, numbers[i].part) <
            number_of(smaller, numbers[i].key, numbers[i].part))
            return false;
    return true;
}

bool facts_case_covers(const facts_case *smaller, const facts_case *larger)
{
    return covers(smaller, larger, facts_case_kernels(smaller));
}

bool facts_form_covers(const facts_form *form, const facts_case *larger)
{
    return covers(&form->best, larger, form->kernels);
}

bool facts_case_same_keys(const facts_case *a, const facts_case *b)
{
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
        if (facts_is_feature(key) && key != FACTS_KEY_DTYPE &&
            (a->at[key] != 0) != (b->at[key] != 0))
            return false;
    return facts_case_kernels(a) == facts_case_kernels(b);
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
    return a->cases != b->cases ? (a->cases > b->cases ? -1 : 1)
                                : by_name(&a->form[0], &b->form[0]);
}
