#include "commands.h"

int facts_command_diff(const facts_invocation *call)
{
    (void)call;
    fputs("facts diff: not in this version\n", stderr);
    return FACTS_EXIT_BAD_INPUT;
}
