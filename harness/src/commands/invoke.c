/* Finds the command of a command line. Parses its options and runs it here, or starts another
 * program. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "builds/home.h"
#include "commands.h"

int facts_invoke(facts_command command, int argc, char **argv,
                 int (*run)(facts_command command, const facts_invocation *call))
{
    facts_options options;
    int status = FACTS_EXIT_BAD_INPUT;
    if (facts_options_parse(&options, command, argc - 2, argv + 2, stderr)) {
        if (options.help) {
            facts_options_help(command, stdout);
            status = FACTS_EXIT_OK;
        } else {
            status = run(command,
                         &(facts_invocation){ .options = &options, .argc = argc, .argv = argv });
        }
    }
    facts_options_free(&options);
    if ((fflush(stdout) != 0 || ferror(stdout)) &&
        (status == FACTS_EXIT_OK || status == FACTS_EXIT_INCOMPLETE))
        status =
            facts_complain(FACTS_EXIT_ENVIRONMENT, "facts: standard output: %s", strerror(errno));
    return status;
}

int facts_invoke_program(const char *name, char **argv)
{
    char folder[FACTS_PATH], program[FACTS_PATH] = "";
    if (facts_program_dir(folder))
        facts_join(program, folder, name);
    fflush(NULL);
    execv(program, argv);
    return facts_complain(FACTS_EXIT_ENVIRONMENT,
                          "facts: the program %s: %s; build it (./facts does)",
                          program[0] ? program : name, strerror(errno));
}
