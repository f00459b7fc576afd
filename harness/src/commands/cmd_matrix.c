#include "commands.h"

int facts_command_matrix(const facts_invocation *call)
{
    (void)call;
    return FACTS_EXIT_ENVIRONMENT;
}
