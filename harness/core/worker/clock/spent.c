#include "spent.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AS_WORD(symbol, word) word,
const char *const facts_spent_words[FACTS_SPENT_COUNT] = { FACTS_SPENT_LIST(AS_WORD) };
#undef AS_WORD

static double spent[FACTS_SPENT_COUNT], since;
static facts_spent current;

static bool counts(void)
{
    static int known;
    if (known == 0) {
        const char *times = getenv("FACTS_TIMES");
        known = times && *times && strcmp(times, "0") != 0 ? 1 : -1;
    }
    return known > 0;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

facts_spent facts_spend(facts_spent on)
{
    const facts_spent before = current;
    if (!counts())
        return before;
    const double now = now_ms();
    spent[current] += now - since;
    since = now;
    current = on;
    return before;
}

void facts_spent_start(void)
{
    current = FACTS_SPENT_OTHER;
    if (counts())
        since = now_ms();
}

const double *facts_spent_ms(void)
{
    if (!counts())
        return NULL;
    facts_spend(current);
    return spent;
}

void facts_spent_clear(void)
{
    memset(spent, 0, sizeof spent);
}
