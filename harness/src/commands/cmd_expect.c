#include "commands.h"

int facts_command_expect(const facts_invocation *call)
{
    (void)call;
    fputs("facts expect: not in this version\n", stderr);
    return FACTS_EXIT_BAD_INPUT;
}
