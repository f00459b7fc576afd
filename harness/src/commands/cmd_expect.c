/* facts expect golden: the support matrix (case group x version range x device) from real answers,
 * as a text that is reviewed. It is printed or, with -o, written; `check` compares the answers with
 * cases/golden/support.txt; `add` adds versions to that file.
 * `--json` asks nothing: it prints that file for other programs. */
#include "commands.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUITE "golden"
#define DEVICES "h100-sxm,sm80-spec,sm89-spec,sm100-spec,sm120-spec"
#define EVERY_BUILD "9.8..9.999"

/* Decides the suite and writes a record of its own. */
static int decide(const facts_invocation *call, const char *record)
{
    static const char *const words[] = { SUITE };
    facts_options options = *call->options;
    options.output = NULL;
    options.overwrite = true;
    facts_session s = { .options = &options,
                        .task = FACTS_TASK_DECIDE,
                        .argc = call->argc,
                        .argv = call->argv,
                        .keep_record = true };
    snprintf(s.record, sizeof s.record, "%s", record);
    int status = facts_session_ask(&s, words, 1, options.cudnn ? options.cudnn : EVERY_BUILD,
                                   options.device ? options.device : DEVICES);
    if (status == FACTS_EXIT_OK) {
        status = facts_session_exit(&s);
        if (status == FACTS_EXIT_FINDINGS) /* a crash is an answer here: the matrix has it */
            status = FACTS_EXIT_OK;
    }
    facts_session_free(&s);
    return status;
}

/* `task`: print, check or add. */
static int show(const facts_options *o, const char *task, const char *record, const char *golden)
{
    const char *words[10];
    size_t n = 0;
    words[n++] = "golden";
    words[n++] = task;
    words[n++] = "--golden";
    words[n++] = golden;
    if (o->output) {
        words[n++] = "-o";
        words[n++] = o->output;
    }
    if (o->overwrite)
        words[n++] = "--overwrite";
    if (record)
        words[n++] = record;
    return facts_run_report(words, n);
}

static int golden(const facts_invocation *call)
{
    const facts_options *o = call->options;
    char folder[FACTS_PATH], matrix[FACTS_PATH], record[FACTS_PATH];
    const char *task = o->word_count > 1 ? o->words[1] : "print";
    bool print = o->word_count < 2,
         known = print || strcmp(task, "check") == 0 || strcmp(task, "add") == 0;
    if (!known || o->word_count > 2)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts expect golden: \"%.60s\": expected check or add",
                              o->words[known ? 2 : 1]);
    if (!print && o->output)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts expect golden %s takes no -o: check writes nothing, and add "
                              "changes cases/golden/support.txt",
                              task);
    if (strcmp(task, "add") == 0 && !o->cudnn)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts expect golden add: give the version: --cudnn 9.28.1");
    if (o->json && !print)
        return facts_complain(
            FACTS_EXIT_BAD_INPUT,
            "facts expect golden %s: leave --json out: it prints the matrix as it is", task);
    if (!facts_suite_dir(folder) || !facts_join(matrix, folder, "golden/support.txt"))
        return FACTS_EXIT_ENVIRONMENT;
    if (o->json)
        return show(o, "json", NULL, matrix);
    FILE *file = facts_open_temporary(record);
    if (!file)
        return FACTS_EXIT_ENVIRONMENT;
    fclose(file);
    int status = decide(call, record);
    if (status == FACTS_EXIT_OK)
        status = show(o, task, record, matrix);
    unlink(record);
    return status;
}

int facts_command_expect(const facts_invocation *call)
{
    if (strcmp(call->options->words[0], "golden") == 0)
        return golden(call);
    return facts_complain(FACTS_EXIT_BAD_INPUT,
                          "facts expect: \"%.60s\" is not golden; known failures are `facts known`",
                          call->options->words[0]);
}
