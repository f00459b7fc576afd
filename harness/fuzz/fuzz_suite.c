/* Any text as a suite: cases or an error with a place, never more than the limit. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "problem/case_problem.h"
#include "suites/suite.h"

static void check(bool ok)
{
    if (!ok)
        abort();
}

static void expand(const facts_suite *suite)
{
    facts_error error;
    facts_case c;
    if (facts_suite_count(suite) > 500)
        return;
    for (size_t i = 0; i < suite->lines; i++) {
        const facts_suite_line *line = &suite->line[i];
        if (line->pattern == NULL) {
            facts_line_draw(suite, line, line->seed, 0, &(facts_draw_choice){ 0 }, &c);
            continue;
        }
        uint64_t members = facts_pattern_count(line->pattern),
                 count = line->draw > 0 ? line->draw : members;
        for (uint64_t k = 0; k < count; k++) {
            uint64_t index = line->draw > 0 ? facts_pattern_draw(members, line->seed, k) : k;
            check(index < members);
            if (facts_pattern_at(line->pattern, index, &c, &error) && line->where != NULL)
                facts_predicate_holds(line->where, &(facts_subject){ .c = &c });
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);
    memcpy(text, data, size);
    facts_error error = { 0 };
    facts_suite suite = { .language = &facts_attention_language };
    if (facts_suite_read(&suite, text, "fuzz", &error))
        expand(&suite);
    else
        check(error.text[0] != '\0' && error.line >= 1 && error.column >= 1);
    facts_suite_clear(&suite);
    free(text);
    return 0;
}
