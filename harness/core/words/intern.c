#include "intern.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct facts_intern {
    char **texts; /* texts[id - 1] */
    uint32_t count, capacity;
    uint32_t *slots; /* ids by hash; a power of two, at least twice `capacity` */
};

facts_intern *facts_intern_new(void)
{
    return calloc(1, sizeof(facts_intern));
}

static uint32_t *slot_of(const facts_intern *t, const char *text)
{
    uint32_t mask = t->capacity * 2 - 1;
    uint32_t i = (uint32_t)XXH3_64bits(text, strlen(text)) & mask;
    while (t->slots[i] && strcmp(t->texts[t->slots[i] - 1], text) != 0)
        i = (i + 1) & mask;
    return &t->slots[i];
}

static void grow(facts_intern *t)
{
    facts_intern larger = { .count = t->count, .capacity = t->capacity ? t->capacity * 2 : 64 };
    larger.texts = calloc(larger.capacity, sizeof *larger.texts);
    larger.slots = calloc((size_t)larger.capacity * 2, sizeof *larger.slots);
    if (t->count)
        memcpy(larger.texts, t->texts, t->count * sizeof *t->texts);
    for (uint32_t id = 1; id <= t->count; id++)
        *slot_of(&larger, larger.texts[id - 1]) = id;
    free(t->texts);
    free(t->slots);
    t->texts = larger.texts;
    t->slots = larger.slots;
    t->capacity = larger.capacity;
}

uint32_t facts_intern_id(facts_intern *t, const char *text)
{
    if (!*text)
        return 0;
    if (t->count == t->capacity)
        grow(t);
    uint32_t *slot = slot_of(t, text);
    if (*slot)
        return *slot;
    t->texts[t->count++] = strdup(text);
    *slot = t->count;
    return t->count;
}

uint32_t facts_intern_find(const facts_intern *t, const char *text)
{
    return t->capacity ? *slot_of(t, text) : 0;
}

const char *facts_intern_text(const facts_intern *t, uint32_t id)
{
    return id && id <= t->count ? t->texts[id - 1] : "";
}

uint32_t facts_intern_count(const facts_intern *t)
{
    return t->count;
}

void facts_intern_free(facts_intern *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->count; i++)
        free(t->texts[i]);
    free(t->texts);
    free(t->slots);
    free(t);
}
