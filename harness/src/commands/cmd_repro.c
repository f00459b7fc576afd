#include "commands.h"

int facts_command_repro(const facts_invocation *call)
{
    (void)call;
    return FACTS_EXIT_ENVIRONMENT;
}
