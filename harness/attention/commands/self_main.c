/* facts-self, the program of `facts self`. It computes attention; the supervisor does not link code
 * that does. */
#include <locale.h>
#include <string.h>

#include "commands/commands.h"
#include "problem/case_problem.h"

static const facts_driver driver = { .language = &facts_attention_language };

int main(int argc, char **argv)
{
    setlocale(LC_ALL, "C");
    if (argc < 2 || strcmp(argv[1], "self") != 0) { /* started by hand */
        const bool asked =
            argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
        facts_options_help(FACTS_COMMAND_SELF, asked ? stdout : stderr);
        return asked ? FACTS_EXIT_OK : FACTS_EXIT_BAD_INPUT;
    }
    return facts_invoke(&driver, FACTS_COMMAND_SELF, argc, argv, facts_command_self);
}
