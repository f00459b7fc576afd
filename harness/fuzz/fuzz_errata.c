/* Any text as a file of errata: rules that can be chosen for a case and pushed, or one line that
 * says what is wrong. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "case/problem/case_problem.h"
#include "fattn/policy.h"
#include "worker/target/errata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);
    facts_error error = { 0 };
    facts_errata *errata;
    facts_case c;
    if (!text || !facts_case_parse(&c, "pass=bwd s=1/192 h=8/2 window=128:inf scale=0.5", NULL))
        abort();
    memcpy(text, data, size);
    if (!facts_errata_read(&errata, text, &error)) {
        if (errata || !error.text[0])
            abort();
        for (const char *at = error.text; *at; at++) /* one line of a JSON reply */
            if (*at < ' ' || *at > '~')
                abort();
        free(text);
        return 0;
    }
    fattn_rule *rules = calloc(facts_errata_count(errata) + 1, sizeof *rules);
    int depth;
    if (!rules)
        abort();
    const fattn_policy policy = { .struct_size = sizeof policy,
                                  .rules = rules,
                                  .rule_count = facts_errata_choose(errata, &c, rules) };
    if (fattn_policy_push(&policy, &depth) !=
        FATTN_OK) /* what was read is what the library takes */
        abort();
    facts_errata_destroy(errata); /* push copied the rules */
    fattn_policy_pop(depth);
    free(rules);
    free(text);
    return 0;
}
