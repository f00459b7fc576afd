#include "commands.h"

int facts_command_audit(const facts_invocation *call)
{
    (void)call;
    fputs("facts audit: not in this version\n", stderr);
    return FACTS_EXIT_BAD_INPUT;
}
