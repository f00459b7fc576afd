/* Finds the command of a command line. Parses its options and runs it here, or starts another
 * program with the words as they are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builds/home.h"
#include "builds/python.h"
#include "commands.h"

int facts_invoke(facts_command command, int argc, char **argv,
                 int (*run)(const facts_invocation *call))
{
    facts_options options;
    int status = FACTS_EXIT_BAD_INPUT;
    if (facts_options_parse(&options, command, argc - 2, argv + 2, stderr)) {
        if (options.help) {
            facts_options_help(command, stdout);
            status = FACTS_EXIT_OK;
        } else {
            status = run(&(facts_invocation){ .options = &options, .argc = argc, .argv = argv });
        }
    }
    facts_options_free(&options);
    if ((fflush(stdout) != 0 || ferror(stdout)) &&
        (status == FACTS_EXIT_OK || status == FACTS_EXIT_INCOMPLETE))
        status =
            facts_complain(FACTS_EXIT_ENVIRONMENT, "facts: standard output: %s", strerror(errno));
    return status;
}

/* The path of a program in the folder of this one. */
static bool beside(char out[FACTS_PATH], const char *name)
{
    char folder[FACTS_PATH];
    return facts_program_dir(folder) && facts_join(out, folder, name);
}

/* Python starts $FACTS_PROGRAM when it needs answers of cuDNN. */
int facts_command_python(const facts_invocation *call)
{
    facts_error message = { 0 };
    char program[FACTS_PATH];
    const char **words = calloc((size_t)call->argc + 2, sizeof *words);
    words[0] = "-m";
    words[1] = "facts_reports";
    for (int i = 1; i < call->argc; i++)
        words[i + 1] = call->argv[i];
    if (beside(program, "facts"))
        setenv("FACTS_PROGRAM", program, 1);
    int status = facts_python_become(words, &message);
    free(words);
    return facts_complain(status, "facts %s: %s", call->argv[1], message.text);
}

int facts_command_cudnn(const facts_invocation *call)
{
    return facts_cudnn_command(call->argc - 2, call->argv + 2);
}
