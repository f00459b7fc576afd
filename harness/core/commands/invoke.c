/* The command line of the supervisor: finds the command, parses its options and runs it here, or starts another program with the
 * words as they are. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "builds/builds.h"
#include "builds/python.h"
#include "commands.h"

int facts_invoke(const facts_driver *driver, facts_command command, int argc, char **argv,
                 int (*run)(const facts_invocation *call))
{
    facts_options options;
    int status = FACTS_EXIT_BAD_INPUT;
    if (facts_options_parse(&options, command, argc - 2, argv + 2, stderr)) {
        if (options.help) {
            facts_options_help(command, stdout);
            status = FACTS_EXIT_OK;
        } else {
            if (options.nvrtc)
                setenv(FACTS_NVRTC, options.nvrtc, 1);
            status = run(&(facts_invocation){ driver, &options, argc, argv });
        }
    }
    facts_options_free(&options);
    if ((fflush(stdout) != 0 || ferror(stdout)) &&
        (status == FACTS_EXIT_OK || status == FACTS_EXIT_INCOMPLETE))
        status =
            facts_complain(FACTS_EXIT_ENVIRONMENT, "facts: standard output: %s", strerror(errno));
    return status;
}

/* Python starts $FACTS_PROGRAM when it needs answers of cuDNN. */
int facts_command_python(const facts_invocation *call)
{
    facts_error message = { 0 };
    char program[FACTS_PATH] = "";
    const char **words = calloc((size_t)call->argc + 2, sizeof *words);
    words[0] = "-m";
    words[1] = "facts_reports";
    for (int i = 1; i < call->argc; i++)
        words[i + 1] = call->argv[i];
    if (readlink("/proc/self/exe", program, sizeof program - 1) > 0)
        setenv("FACTS_PROGRAM", program, 1);
    int status = facts_python_become(words, &message);
    free(words);
    return facts_complain(status, "facts %s: %s", call->argv[1], message.text);
}

int facts_command_cudnn(const facts_invocation *call)
{
    return facts_cudnn_command(call->argc - 2, call->argv + 2);
}

int facts_command_import(const facts_invocation *call)
{
    return call->driver->import
               ? call->driver->import(call)
               : facts_complain(FACTS_EXIT_BAD_INPUT, "facts import: this program reads no logs");
}

#define facts_command_self facts_start_self /* in facts, `self` is a program of its own */
#define AS_RUN(symbol, name, run, ...) [FACTS_COMMAND_##symbol] = run,

/* It computes the operation; this program loads no code that does. */
static int facts_start_self(const facts_invocation *call)
{
    char folder[FACTS_PATH], program[FACTS_PATH] = "facts-self";
    if (facts_program_dir(folder))
        facts_join(program, folder, "facts-self");
    fflush(NULL);
    execv(program, call->argv);
    return facts_complain(FACTS_EXIT_ENVIRONMENT,
                          "facts: the program %s: %s; build it (./facts does)", program,
                          strerror(errno));
}

static int (*const runs[FACTS_COMMAND_COUNT])(const facts_invocation *call) = {
    FACTS_COMMAND_LIST(AS_RUN)
};

static int dispatch(const facts_driver *driver, facts_command command, int argc, char **argv)
{
    const bool parses = command == FACTS_COMMAND_CUDNN || command == FACTS_COMMAND_SELF ||
                        !facts_options_examples(command); /* the words as they are */
    return parses ? runs[command](&(facts_invocation){ driver, NULL, argc, argv })
                  : facts_invoke(driver, command, argc, argv, runs[command]);
}

/* facts help [COMMAND | markdown | man | bash | json] */
static int help(const facts_driver *driver, int argc, char **argv)
{
    static char flag[] = "--help";
    if (argc < 3) {
        facts_options_help(FACTS_COMMAND_COUNT, stdout);
        return FACTS_EXIT_OK;
    }
    if (strcmp(argv[2], "json") == 0) {
        facts_options_json(stdout);
        return FACTS_EXIT_OK;
    }
    if (strcmp(argv[2], "markdown") == 0 || strcmp(argv[2], "man") == 0 ||
        strcmp(argv[2], "bash") == 0)
        return facts_command_python(&(facts_invocation){ driver, NULL, argc, argv });
    facts_command command = facts_command_parse(argv[2], stderr);
    if (command == FACTS_COMMAND_COUNT)
        return FACTS_EXIT_BAD_INPUT;
    if (facts_options_examples(command)) {
        facts_options_help(command, stdout);
        return FACTS_EXIT_OK;
    }
    return dispatch(driver, command, 3, (char *[]){ argv[0], argv[2], flag, NULL });
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

#define STACK_KB 256 /* with less a case's name, a record's line or a path may not fit */

/* A write beyond the file size limit must return an error, not end the process. A closed standard
 * stream must stay closed: otherwise libuv's pipes, or the record, would get its number. */
static void settle(void)
{
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < STACK_KB * 1024)
        _exit(facts_complain(FACTS_EXIT_ENVIRONMENT,
                             "facts: the stack is limited to %ju kB; give it %d (ulimit -s)",
                             (uintmax_t)stack.rlim_cur / 1024, STACK_KB));
    signal(SIGXFSZ, SIG_IGN);
    for (int file = 0; file <= 2; file++)
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != file)
            _exit(FACTS_EXIT_ENVIRONMENT);
}

/* The reports read the names of cases by this table. */
static void give_keys(const facts_language *language)
{
    json_t *table = facts_keys_json(language);
    char *text = json_dumps(table, JSON_COMPACT);
    setenv("FACTS_KEYS", text, 1);
    free(text);
    json_decref(table);
}

int facts_run(const facts_driver *driver, int argc, char **argv)
{
    settle();
    give_keys(driver->language);
    if (getenv("FACTS_ENDS_WITH_PARENT")) /* Python's commands set it */
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    setlocale(LC_ALL, "C");
    if (argc < 2) {
        facts_options_help(FACTS_COMMAND_COUNT, stderr);
        return FACTS_EXIT_BAD_INPUT;
    }
    if (is_help(argv[1]))
        return help(driver, argc, argv);
    if (strcmp(argv[1], "--version") == 0) {
        puts("facts " FACTS_VERSION);
        return FACTS_EXIT_OK;
    }
    facts_command command = facts_command_parse(argv[1], stderr);
    if (command == FACTS_COMMAND_COUNT)
        return FACTS_EXIT_BAD_INPUT;
    return dispatch(driver, command, argc, argv);
}
