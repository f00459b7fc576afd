#include "commands.h"

int facts_command_import(const facts_invocation *call)
{
    (void)call;
    fputs("facts import: not in this version\n", stderr);
    return FACTS_EXIT_BAD_INPUT;
}
