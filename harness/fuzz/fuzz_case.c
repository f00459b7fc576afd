/* Any text: a case or an error with a place; a case's name parses to the same case; resolving it
 * never goes wrong. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "problem/case_problem.h"

static void check(bool ok)
{
    if (!ok)
        abort();
}

/* What was placed lies inside its storage. */
static void check_tensor(const facts_tensor *t)
{
    int64_t last = t->first;
    for (int i = 0; i < 4; i++) {
        check(t->dim[i] > 0 && t->stride[i] >= 0);
        last += t->dim[i] == 1 ? 0 : (t->dim[i] - 1) * t->stride[i];
    }
    check(t->first >= 0 && last < t->elements);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static facts_problem problem;
    char *text = calloc(1, size + 1), name[FACTS_NAME_MAX], again[FACTS_NAME_MAX];
    memcpy(text, data, size);
    facts_case c, d;
    facts_error error = { 0 };
    if (!facts_case_parse(&c, text, &error)) {
        check(error.text[0] != '\0' && error.line == 1 && error.column >= 1);
    } else {
        facts_case_name(&c, name);
        check(facts_case_parse(&d, name, &error) && memcmp(&c, &d, sizeof c) == 0);
        check(strcmp(facts_case_name(&d, again), name) == 0);
        if (facts_problem_resolve(&problem, &c, &error) == FACTS_RESOLVED) {
            for (int i = 0; i < FACTS_TENSOR_COUNT; i++) {
                if (problem.tensor[i].present)
                    check_tensor(&problem.tensor[i]);
            }
        }
    }
    free(text);
    return 0;
}
