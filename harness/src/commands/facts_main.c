/* facts: the command line of the supervisor. It never loads CUDA or cuDNN; the worker runs kernels.
 */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

static int dispatch(facts_command command, const facts_invocation *call)
{
    switch (command) {
    case FACTS_COMMAND_MATRIX:
        return facts_command_matrix(call);
    case FACTS_COMMAND_DOCTOR:
        return facts_command_doctor(call);
    case FACTS_COMMAND_LIST:
        return facts_command_list(call);
    case FACTS_COMMAND_KEYS:
        return facts_command_keys(call);
    case FACTS_COMMAND_DEVICES:
        return facts_command_devices(call);
    case FACTS_COMMAND_DECIDE:
        return facts_command_decide(call);
    case FACTS_COMMAND_COMPILE:
        return facts_command_compile(call);
    case FACTS_COMMAND_RUN:
        return facts_command_run(call);
    case FACTS_COMMAND_REPRO:
        return facts_command_repro(call);
    case FACTS_COMMAND_SHRINK:
        return facts_command_shrink(call);
    case FACTS_COMMAND_FUZZ:
        return facts_command_fuzz(call);
    case FACTS_COMMAND_BENCH:
        return facts_command_bench(call);
    case FACTS_COMMAND_GATE:
        return facts_command_gate(call);
    case FACTS_COMMAND_DIFF:
        return facts_command_diff(call);
    case FACTS_COMMAND_BISECT:
        return facts_command_bisect(call);
    case FACTS_COMMAND_IMPORT:
        return facts_command_import(call);
    case FACTS_COMMAND_AUDIT:
        return facts_command_audit(call);
    case FACTS_COMMAND_EXPECT:
        return facts_command_expect(call);
    case FACTS_COMMAND_KNOWN:
        return facts_command_known(call);
    case FACTS_COMMAND_MERGE:
        return facts_command_merge(call);
    case FACTS_COMMAND_CALIBRATE:
        return facts_command_calibrate(call);
    default:
        return FACTS_EXIT_BAD_INPUT;
    }
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

/* A write beyond the file size limit must return an error, not end the process. A closed standard
 * stream must stay closed: otherwise libuv's pipes, or the record, would get its number. */
static void settle(void)
{
    signal(SIGXFSZ, SIG_IGN);
    for (int file = 0; file <= 2; file++)
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != file)
            _exit(FACTS_EXIT_ENVIRONMENT);
}

int main(int argc, char **argv)
{
    settle();
    setlocale(LC_ALL, "C");
    if (argc < 2) {
        facts_options_help(FACTS_COMMAND_COUNT, stderr);
        return FACTS_EXIT_BAD_INPUT;
    }
    if (is_help(argv[1]))
        return facts_help(argc - 2, argv + 2, stdout, stderr);
    if (strcmp(argv[1], "--version") == 0) {
        puts("facts " FACTS_VERSION);
        return FACTS_EXIT_OK;
    }
    facts_command command = facts_command_parse(argv[1], stderr);
    if (command == FACTS_COMMAND_COUNT)
        return FACTS_EXIT_BAD_INPUT;
    if (command == FACTS_COMMAND_CUDNN)
        return facts_cudnn_command(argc - 2, argv + 2);
    if (command == FACTS_COMMAND_REPORT)
        return facts_command_report(argc - 2, argv + 2);
    if (command == FACTS_COMMAND_ADOPT)
        return facts_command_adopt(argc - 2, argv + 2);
    if (command == FACTS_COMMAND_SELF)
        return facts_invoke_program("facts-self", argv);
    return facts_invoke(command, argc, argv, dispatch);
}
