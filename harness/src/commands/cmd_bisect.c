#include "commands.h"

int facts_command_bisect(const facts_invocation *call)
{
    (void)call;
    fputs("facts bisect: not in this version\n", stderr);
    return FACTS_EXIT_BAD_INPUT;
}
