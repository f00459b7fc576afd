/* facts-self: what `facts self` starts. It computes attention, and the supervisor links nothing that does. */
#include <locale.h>

#include "commands.h"

static int run(facts_command command, const facts_invocation *call)
{
    (void)command;
    return facts_command_self(call);
}

int main(int argc, char **argv)
{
    setlocale(LC_ALL, "C");
    if (argc < 2) {
        facts_options_help(FACTS_COMMAND_SELF, stderr);
        return FACTS_EXIT_BAD_INPUT;
    }
    return facts_invoke(FACTS_COMMAND_SELF, argc, argv, run);
}
