/* facts report: hands the records to the report package, a Python program of its own. */
#include <stdlib.h>
#include <stdint.h>
#include <string.h>

#include "../builds/python.h"
#include "commands.h"

int facts_run_report(const char *const *words, size_t count)
{
    facts_message message = { "" };
    const char **argv = calloc(count + 3, sizeof *argv);
    if (!argv)
        return FACTS_EXIT_ENVIRONMENT;
    argv[0] = "-m";
    argv[1] = "facts_reports";
    memcpy(argv + 2, words, count * sizeof *argv);
    fflush(NULL);
    int status = facts_python_run(argv, &message);
    if (message.text[0])
        fprintf(stderr, "facts report: %s\n", message.text);
    free(argv);
    return status;
}

int facts_command_report(int argc, char **argv)
{
    if (argc == 0) {
        facts_options_help(FACTS_COMMAND_REPORT, stderr);
        return FACTS_EXIT_BAD_INPUT;
    }
    return facts_run_report((const char *const *)(uintptr_t)argv, (size_t)argc);
}
