#include "commands.h"

int facts_command_gate(const facts_invocation *call)
{
    (void)call;
    fputs("facts gate: not in this version\n", stderr);
    return FACTS_EXIT_BAD_INPUT;
}
