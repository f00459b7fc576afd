#include "report_package.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builds/print_line.h"
#include "builds/python.h"
#include "commands/options/options.h"
#include "complain.h"

int facts_run_report(const char *const *words, size_t count)
{
    facts_error message = { 0 };
    const char **argv = calloc(count + 3, sizeof *argv);
    if (!argv)
        return FACTS_EXIT_ENVIRONMENT;
    argv[0] = "-m";
    argv[1] = "facts_reports";
    memcpy(argv + 2, words, count * sizeof *argv);
    fflush(NULL);
    int status = facts_python_run(argv, &message);
    if (message.text[0])
        fprintf(stderr, "facts report: %s\n", message.text);
    free(argv);
    return status;
}

bool facts_temporary_template(char out[FACTS_PATH])
{
    const char *folder = getenv("TMPDIR");
    return facts_join(out, folder && *folder ? folder : "/tmp", "facts-XXXXXX");
}

FILE *facts_open_temporary(char path[FACTS_PATH])
{
    int handle = facts_temporary_template(path) ? mkstemp(path) : -1;
    FILE *file = handle < 0 ? NULL : fdopen(handle, "w");
    if (!file)
        facts_print_line(stderr, "facts: %s: %s", path, strerror(errno));
    return file;
}

int facts_run_view(const char *view, void (*write)(const void *subject, FILE *out),
                   const void *subject)
{
    char path[FACTS_PATH];
    const char *const words[] = { view, path };
    FILE *out = facts_open_temporary(path);
    if (!out)
        return FACTS_EXIT_ENVIRONMENT;
    write(subject, out);
    int status = fclose(out) == 0 ? facts_run_report(words, 2)
                                  : facts_complain(FACTS_EXIT_ENVIRONMENT, "facts: %s: %s", path,
                                                   strerror(errno));
    unlink(path);
    return status;
}
