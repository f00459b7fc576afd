/* Somebody's log, or plan: read without harm, and every problem in it has a canonical name that is
 * a case. */
#include <stdlib.h>
#include <string.h>

#include "import/import.h"
#include "problem/case_problem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    facts_import *import = facts_import_create();
    if (import == NULL)
        return 0;
    facts_import_bytes(import, "fuzz", (const char *)data, size);
    for (size_t i = 0; i < facts_import_count(import); i++) {
        const facts_imported *p = facts_import_at(import, i);
        facts_case c;
        facts_error error;
        char name[FACTS_NAME_MAX];
        if (!facts_case_parse(&c, p->name, &error) ||
            strcmp(facts_case_name(&c, name), p->name) != 0)
            abort();
        for (int s = 0; s < p->log_count; s++)
            for (const char *at = p->log_text[s]; *at != '\0'; at++)
                if (*at < ' ' || *at > '~')
                    abort();
    }
    facts_import_destroy(import);
    return 0;
}
