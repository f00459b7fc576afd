#include "verdicts.h"

#define AS_WORD(symbol, word) [FACTS_VERDICT_##symbol] = word,
static const char *const words[FACTS_VERDICT_COUNT] = { FACTS_VERDICT_LIST(AS_WORD) };
#undef AS_WORD

const char *facts_verdict_name(facts_verdict verdict)
{
    return verdict < FACTS_VERDICT_COUNT ? words[verdict] : "?";
}

facts_verdict facts_verdict_parse(facts_slice json_string)
{
    facts_verdict v = 0;
    while (v < FACTS_VERDICT_COUNT && !facts_slice_is(json_string, words[v]))
        v++;
    return v;
}

bool facts_verdict_is_finding(facts_verdict verdict)
{
    return verdict >= FACTS_VERDICT_WRONG && verdict <= FACTS_VERDICT_EXIT_CRASH;
}

_Static_assert(FACTS_VERDICT_WRONG == FACTS_VERDICT_UNSUPPORTED + 1 && FACTS_VERDICT_MISTRUSTED == FACTS_VERDICT_EXIT_CRASH + 1,
               "the findings stand together in the list");
