/* facts report: passes its arguments to the report package. */
#include <stdint.h>

#include "commands.h"

int facts_command_report(int argc, char **argv)
{
    const char *const *words = (const char *const *)(uintptr_t)argv;
    if (argc == 0) {
        facts_options_help(FACTS_COMMAND_REPORT, stderr);
        return FACTS_EXIT_BAD_INPUT;
    }
    return facts_run_report(words, (size_t)argc);
}
