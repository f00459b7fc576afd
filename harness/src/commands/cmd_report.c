/* facts report: hands the records to the report package, a Python program of its own; to the catalogue, the cases of the
 * known failures too. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builds/python.h"
#include "case/suites/known_cases.h"
#include "case/words/text_file.h"
#include "commands.h"
#include "record/text.h"

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

FILE *facts_open_temporary(char path[FACTS_PATH])
{
    const char *folder = getenv("TMPDIR");
    int handle = facts_join(path, folder && *folder ? folder : "/tmp", "facts-XXXXXX") ? mkstemp(path) : -1;
    FILE *file = handle < 0 ? NULL : fdopen(handle, "w");
    if (!file)
        fprintf(stderr, "facts: %s: %s\n", path, strerror(errno));
    return file;
}

/* One line of JSON for each case of the file. A case may be of several files, so each is expanded by itself. */
static int list_file(FILE *out, const char *path, const char *folder)
{
    facts_cases *cases = NULL;
    facts_error error = { 0 };
    facts_text line = { 0 };
    int status = facts_cases_expand(&cases, &path, 1, folder, NULL, &error);
    if (status != 0)
        fprintf(stderr, "%s\n", error.text);
    for (size_t i = 0; status == 0 && i < facts_cases_count(cases); i++) {
        const facts_planned planned = facts_cases_at(cases, i);
        facts_text_clear(&line);
        facts_text_puts(&line, "{");
        facts_text_member(&line, "file", path);
        facts_text_member(&line, "case", planned.name);
        facts_text_member(&line, "group", planned.group);
        facts_text_close(&line);
        fprintf(out, "%s\n", line.data ? line.data : "");
    }
    facts_text_free(&line);
    facts_cases_destroy(cases);
    return status;
}

/* Of every known failure that has cases, the big ones too. */
static int list_known(FILE *out)
{
    char folder[FACTS_PATH], known[FACTS_PATH], **paths;
    if (!facts_suite_dir(folder) || !facts_join(known, folder, "known"))
        return FACTS_EXIT_ENVIRONMENT;
    int status = FACTS_EXIT_OK;
    size_t count = facts_folder_files(known, ".known", &paths);
    for (size_t i = 0; i < count && status == FACTS_EXIT_OK; i++) {
        facts_error error = { 0 };
        char *text = facts_file_text(paths[i], &error);
        if (!text)
            status = facts_complain(FACTS_EXIT_BAD_INPUT, "%s", error.text);
        else if (facts_known_has_cases(text))
            status = list_file(out, paths[i], folder);
        free(text);
    }
    facts_folder_free(paths, count);
    return status;
}

/* "--catalogue" gets its value: a file with the cases. */
static int run_catalogue(const char *const *words, size_t count, size_t place)
{
    char path[FACTS_PATH];
    const char **all = calloc(count + 1, sizeof *all);
    FILE *out = all ? facts_open_temporary(path) : NULL;
    int status = FACTS_EXIT_ENVIRONMENT;
    if (out) {
        memcpy(all, words, (place + 1) * sizeof *all);
        all[place + 1] = path;
        memcpy(all + place + 2, words + place + 1, (count - place - 1) * sizeof *all);
        status = list_known(out);
        if (fclose(out) != 0 && status == 0)
            status = FACTS_EXIT_ENVIRONMENT;
        if (status == 0)
            status = facts_run_report(all, count + 1);
        unlink(path);
    }
    free(all);
    return status;
}

int facts_command_report(int argc, char **argv)
{
    const char *const *words = (const char *const *)(uintptr_t)argv;
    if (argc == 0) {
        facts_options_help(FACTS_COMMAND_REPORT, stderr);
        return FACTS_EXIT_BAD_INPUT;
    }
    for (size_t i = 0; i < (size_t)argc; i++)
        if (strcmp(words[i], "--catalogue") == 0)
            return run_catalogue(words, (size_t)argc, i);
    return facts_run_report(words, (size_t)argc);
}
