#include "simpler.h"

bool facts_is_feature(const facts_language *language, facts_key key)
{
    const facts_simpler *simpler = language->simpler;
    for (size_t i = 0; i < simpler->size_count; i++) {
        if (simpler->sizes[i].key == key)
            return false;
    }
    return key != simpler->engine;
}

size_t facts_case_features(const facts_case *c)
{
    size_t n = 0;
    for (facts_key key = 0; key < c->language->count; key++)
        n += facts_is_feature(c->language, key) && c->at[key] != 0;
    return n;
}
