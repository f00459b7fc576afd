/* facts adopt: adopts a new cuDNN release, step by step. ci/adopt.py runs the commands; this file
 * finds it and passes the path of facts. */
#include <stdlib.h>
#include <unistd.h>

#include "builds/python.h"
#include "commands.h"

enum { MOST_WORDS = 64 };

int facts_command_adopt(int argc, char **argv)
{
    char script[FACTS_PATH], folder[FACTS_PATH], program[FACTS_PATH];
    const char *words[MOST_WORDS + 4] = { script, "--facts", program };
    facts_error message = { 0 };
    if (argc > MOST_WORDS)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts adopt: too many words");
    if (!facts_home_path("ci/adopt.py", script))
        return facts_complain(FACTS_EXIT_ENVIRONMENT,
                              "facts adopt: ci/adopt.py: not found; run it in a checkout of FACTS");
    if (!facts_program_dir(folder) || !facts_join(program, folder, "facts"))
        return facts_complain(FACTS_EXIT_ENVIRONMENT,
                              "facts adopt: the folder of the program facts is not known");
    for (int i = 0; i < argc; i++)
        words[i + 3] = argv[i];
    int status = facts_python_run(words, &message);
    if (message.text[0])
        fprintf(stderr, "facts adopt: %s\n", message.text);
    return status;
}
