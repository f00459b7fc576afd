#include "verdict.h"

#include "case_text.h"

#define AS_WORD(symbol, word) [FACTS_VERDICT_##symbol] = word,
static const char *const words[FACTS_VERDICT_COUNT] = { FACTS_VERDICT_LIST(AS_WORD) };
#undef AS_WORD

const char *facts_verdict_name(facts_verdict verdict)
{
    return verdict < FACTS_VERDICT_COUNT ? words[verdict] : "?";
}

/* The verdict of a word; FACTS_VERDICT_COUNT when it is none. */
static facts_verdict facts_verdict_read(facts_span word)
{
    facts_verdict v = 0;
    while (v < FACTS_VERDICT_COUNT && !facts_span_is(word, words[v]))
        v++;
    return v;
}

facts_verdict facts_verdict_parse(facts_span json_string)
{
    bool quoted = json_string.at != NULL && json_string.length >= 2 && json_string.at[0] == '"';
    return quoted ? facts_verdict_read((facts_span){ json_string.at + 1, json_string.length - 2 })
                  : FACTS_VERDICT_COUNT;
}

bool facts_verdict_is_good(facts_verdict verdict)
{
    return verdict == FACTS_VERDICT_PASS || verdict == FACTS_VERDICT_SUPPORTED;
}

bool facts_verdict_is_finding(facts_verdict verdict)
{
    return verdict >= FACTS_VERDICT_WRONG && verdict <= FACTS_VERDICT_EXIT_CRASH;
}

_Static_assert(FACTS_VERDICT_WRONG == FACTS_VERDICT_UNSUPPORTED + 1 &&
                   FACTS_VERDICT_MISTRUSTED == FACTS_VERDICT_EXIT_CRASH + 1,
               "the findings stand together in the list");
