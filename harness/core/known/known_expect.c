#include <string.h>

#include "known.h"
#include "words/case_text.h"

/* Is one of the suites that are run one that is named, or in a folder that is named? */
static bool is_about(const char *suites, const char *run)
{
    facts_span rest = facts_span_of(suites), named;
    if (*suites == '\0' || *run == '\0')
        return true;
    while ((named = facts_span_word(&rest)).length > 0) {
        facts_span words = facts_span_of(run), word;
        while ((word = facts_span_word(&words)).length > 0) {
            bool begins =
                word.length >= named.length && memcmp(word.at, named.at, named.length) == 0;
            if (begins && (word.length == named.length || word.at[named.length] == '/'))
                return true;
        }
    }
    return false;
}

void facts_knowledge_choose(facts_knowledge *knowledge, const char *suites)
{
    for (size_t i = 0; i < knowledge->expected_count; i++) {
        facts_expectation *e = &knowledge->expected[i];
        e->left_out = !is_about(facts_known_text(&knowledge->at[e->known], "suites"), suites);
    }
}

facts_expectation *facts_knowledge_expect(facts_knowledge *knowledge, const facts_subject *subject)
{
    facts_expectation *first = NULL, *named = NULL;
    for (size_t i = 0; i < knowledge->expected_count; i++) {
        facts_expectation *e = &knowledge->expected[i];
        if (e->left_out || !facts_predicate_holds(e->where, subject))
            continue;
        e->used = true;
        if (!first)
            first = e;
        if (!named && subject->verdict &&
            facts_known_names(&knowledge->at[e->known], subject->verdict))
            named = e;
    }
    return named ? named : first;
}
