#include "report_package.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builds/print_line.h"
#include "builds/python.h"
#include "commands/options/options.h"
#include "inputs.h"

static FILE *open_temporary(char path[FACTS_PATH])
{
    const char *folder = getenv("TMPDIR");
    int handle =
        facts_join(path, folder && *folder ? folder : "/tmp", "facts-XXXXXX") ? mkstemp(path) : -1;
    FILE *file = handle < 0 ? NULL : fdopen(handle, "w");
    if (!file)
        facts_print_line(stderr, "facts: %s: %s", path, strerror(errno));
    return file;
}

int facts_run_report(const char *view, const char *path, const char *more)
{
    const char *const words[] = { "-m", "facts_reports", view, path, more, NULL };
    facts_error message = { 0 };
    fflush(NULL);
    int status = facts_python_run(words, &message);
    if (message.text[0])
        fprintf(stderr, "facts report: %s\n", message.text);
    return status;
}

int facts_run_view(const char *view, void (*write)(const void *subject, FILE *out),
                   const void *subject)
{
    char path[FACTS_PATH];
    FILE *out = open_temporary(path);
    if (!out)
        return FACTS_EXIT_ENVIRONMENT;
    write(subject, out);
    int status = fclose(out) == 0 ? facts_run_report(view, path, NULL)
                                  : facts_complain(FACTS_EXIT_ENVIRONMENT, "facts: %s: %s", path,
                                                   strerror(errno));
    unlink(path);
    return status;
}
