/* facts report: passes its arguments to the report package. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

#define ISSUE "--issue"

/* Records have canonical names: the case of --issue gets its name before it is passed on. Writes
 * "--issue=NAME" into `out`. */
static int name_issue(char out[FACTS_NAME_MAX + sizeof ISSUE], const char *text)
{
    facts_case c;
    facts_error error = { 0 };
    char name[FACTS_NAME_MAX];
    if (!facts_case_parse(&c, text, &error))
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts report: " ISSUE ": %s", error.text);
    snprintf(out, FACTS_NAME_MAX + sizeof ISSUE, ISSUE "=%s", facts_case_name(&c, name));
    return FACTS_EXIT_OK;
}

int facts_command_report(int argc, char **argv)
{
    const char *const *given = (const char *const *)(uintptr_t)argv;
    char issue[FACTS_NAME_MAX + sizeof ISSUE];
    int status = FACTS_EXIT_OK;
    size_t count = 0;
    if (argc == 0) {
        facts_options_help(FACTS_COMMAND_REPORT, stderr);
        return FACTS_EXIT_BAD_INPUT;
    }
    const char **words = calloc((size_t)argc, sizeof *words);
    if (!words)
        return facts_no_memory();
    for (int i = 0; i < argc && status == FACTS_EXIT_OK; i++) {
        const char *text = NULL;
        if (strcmp(given[i], ISSUE) == 0 && i + 1 < argc)
            text = given[++i];
        else if (strncmp(given[i], ISSUE "=", sizeof ISSUE) == 0)
            text = given[i] + sizeof ISSUE;
        words[count++] = text ? issue : given[i];
        status = text ? name_issue(issue, text) : FACTS_EXIT_OK;
    }
    if (status == FACTS_EXIT_OK)
        status = facts_run_report(words, count);
    free(words);
    return status;
}
