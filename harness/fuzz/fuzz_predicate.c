/* Any text as a predicate: it holds or not of known and unknown results, or there is an error with
 * a place. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "problem/case_problem.h"
#include "suites/predicate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);
    memcpy(text, data, size);
    facts_error error = { 0 };
    facts_predicate *p;
    facts_case c;
    if (!facts_case_parse(&c, "pass=bwd s=1/192 h=8/2 window=128:inf scale=0.5", NULL))
        abort();
    if (facts_predicate_parse(&facts_attention_language, &p, text, &error)) {
        facts_predicate_holds(p, &(facts_subject){ 0 });
        facts_predicate_holds(p, &(facts_subject){ .c = &c });
        facts_predicate_holds(p, &(facts_subject){ .c = &c,
                                                   .cudnn = "9.19.0",
                                                   .sm = "90",
                                                   .build = "9.19.0-jit-cu13",
                                                   .backend = "cudnn",
                                                   .grade = "measured",
                                                   .verdict = "nan",
                                                   .engine = "6",
                                                   .config = "0",
                                                   .reason_class = "policy" });
    } else if (p != NULL || error.text[0] == '\0' || error.column < 1) {
        abort();
    }
    facts_predicate_destroy(p);
    free(text);
    return 0;
}
