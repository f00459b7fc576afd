/* facts report: hands the records to the report package, a Python program of its own. It finds this program as $FACTS_PROGRAM. */
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "../builds/python.h"
#include "commands.h"

static void tell_program(void)
{
    char path[FACTS_PATH];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = 0;
        (void)setenv("FACTS_PROGRAM", path, 1);
    }
}

int facts_run_report(const char *const *words, size_t count)
{
    facts_message message = { "" };
    const char **argv = calloc(count + 3, sizeof *argv);
    if (!argv)
        return FACTS_EXIT_ENVIRONMENT;
    argv[0] = "-m";
    argv[1] = "facts_reports";
    memcpy(argv + 2, words, count * sizeof *argv);
    fflush(NULL);
    tell_program();
    int status = facts_python_run(argv, &message);
    if (message.text[0])
        fprintf(stderr, "facts report: %s\n", message.text);
    free(argv);
    return status;
}

int facts_command_report(int argc, char **argv)
{
    if (argc == 0) {
        facts_options_help(FACTS_COMMAND_REPORT, stderr);
        return FACTS_EXIT_BAD_INPUT;
    }
    return facts_run_report((const char *const *)(uintptr_t)argv, (size_t)argc);
}
