/* facts repro: prints everything that is known about one case. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builds/home.h"
#include "builds/python.h"
#include "commands.h"
#include "commands/options/options.h"
#include "commands/print/explain_row.h"
#include "commands/session/inputs.h"
#include "record/reader.h"
#include "supervisor/order.h"
#include "words/text_file.h"

/* The folders that `facts repro` writes: --dump (every tensor, and a script that checks them) and
 * --standalone (a program without FACTS). */

typedef struct facts_repro_files {
    char dump[FACTS_PATH], folder[FACTS_PATH],
        data[FACTS_PATH]; /* full paths; data: what the worker writes for a program */
    FILE *rows;           /* the answers, for the program's README */
    char trouble[300];    /* why a file of the worker is missing */
    bool dumped;          /* some row has a dump */
    bool made;            /* `data` was not there before */
} facts_repro_files;

/* A folder with its parents. `out`: its full path, as a worker may have another working directory.
 */
static int make_folder(char out[FACTS_PATH], const char *option, const char *path)
{
    char inside[FACTS_PATH];
    if (!facts_join(inside, path, ".") || !facts_make_folders(inside) || !realpath(path, out))
        return facts_complain(FACTS_EXIT_ENVIRONMENT, "facts repro: --%s %s: %s", option, path,
                              strerror(errno));
    return FACTS_EXIT_OK;
}

/* A file of harness/attention/repro. */
static int find_file(char out[FACTS_PATH], const char *name)
{
    char part[FACTS_PATH];
    if (facts_join(part, "repro", name) && facts_home_path(part, out))
        return FACTS_EXIT_OK;
    return facts_complain(
        FACTS_EXIT_ENVIRONMENT,
        "facts repro: the file repro/%s is missing: the installation is not complete", name);
}

static int copy_file(const char *folder, const char *name)
{
    char from[FACTS_PATH], to[FACTS_PATH];
    facts_error error = { 0 };
    int status = find_file(from, name);
    if (status != FACTS_EXIT_OK)
        return status;
    char *text = facts_file_text(from, &error);
    if (!text)
        return facts_complain(FACTS_EXIT_ENVIRONMENT, "facts repro: %s", error.text);
    FILE *file = facts_join(to, folder, name) ? facts_file_new(to) : NULL;
    bool ok = file && fputs(text, file) >= 0;
    ok = file && fclose(file) == 0 && ok;
    free(text);
    if (ok)
        return FACTS_EXIT_OK;
    facts_complain(FACTS_EXIT_ENVIRONMENT, "facts repro: %s: %s", to, strerror(errno));
    unlink(to);
    return FACTS_EXIT_ENVIRONMENT;
}

static int begin_dump(facts_repro_files *out, facts_options *options)
{
    int status = make_folder(out->dump, "dump", options->dump);
    options->dump = out->dump;
    if (status == FACTS_EXIT_OK)
        status = copy_file(out->dump, "check.py");
    if (status != FACTS_EXIT_OK)
        out->dump[0] = '\0'; /* its failure is reported once */
    return status;
}

static int begin_program(facts_repro_files *out, facts_options *options)
{
    char rows[FACTS_PATH], data[FACTS_PATH];
    int status = make_folder(out->folder, "standalone", options->standalone);
    if (status == FACTS_EXIT_OK && facts_join(data, out->folder, "data")) {
        out->made = access(data, F_OK) != 0;
        status = make_folder(out->data, "standalone", data);
    }
    options->standalone = out->data;
    if (status != FACTS_EXIT_OK)
        return status;
    out->rows = facts_join(rows, out->data, "rows.jsonl") ? facts_file_new(rows) : NULL;
    return out->rows ? FACTS_EXIT_OK
                     : facts_complain(FACTS_EXIT_ENVIRONMENT, "facts repro: %s: %s", rows,
                                      strerror(errno));
}

/* Makes the folders and their parents, puts check.py beside the dump, and sets the options to full
 * paths. Returns an exit code. */
static int facts_repro_files_begin(facts_repro_files *out, facts_options *options)
{
    int status = FACTS_EXIT_OK;
    if (options->frontend && !options->standalone)
        status =
            facts_complain(FACTS_EXIT_BAD_INPUT, "facts repro: --frontend needs --standalone DIR");
    if (status == FACTS_EXIT_OK && options->dump)
        status = begin_dump(out, options);
    if (status == FACTS_EXIT_OK && options->standalone)
        status = begin_program(out, options);
    return status;
}

static void facts_repro_files_row(facts_repro_files *files, const facts_outcome *outcome)
{
    const facts_span row = { outcome->text, outcome->length };
    files->dumped |= facts_json_member(row, "dumped").at != NULL;
    facts_json_string(facts_json_member(row, "not_written"), files->trouble, sizeof files->trouble);
    if (!files->rows)
        return;
    fwrite(outcome->text, 1, outcome->length, files->rows);
    fputc('\n', files->rows);
}

/* A folder without a dump is not left behind. */
static int end_dump(const facts_repro_files *files, int status)
{
    char script[FACTS_PATH];
    if (!files->dump[0] || files->trouble[0] || files->dumped)
        return status;
    if (facts_join(script, files->dump, "check.py"))
        unlink(script);
    rmdir(files->dump);
    return facts_complain(
        FACTS_EXIT_ENVIRONMENT,
        "facts repro: --dump %s: there is nothing to dump, as nothing ran; the row says why",
        files->dump);
}

/* Writes the program. Returns `status`, the exit code of the run, or a worse exit code. */
static int facts_repro_files_end(facts_repro_files *files, const facts_options *options, int status)
{
    char script[FACTS_PATH];
    facts_error message = { 0 };
    const bool asked = status == FACTS_EXIT_OK || status == FACTS_EXIT_FINDINGS ||
                       status == FACTS_EXIT_ENVIRONMENT;
    const char *words[6] = { script, files->folder };
    size_t count = 2;
    if (options->frontend)
        words[count++] = "--frontend";
    if (files->trouble[0])
        words[count++] = "--clean";
    if (files->made)
        words[count++] = "--new";
    const bool program = files->rows != NULL;
    if (program)
        fclose(files->rows);
    files->rows = NULL;
    if (asked && files->trouble[0])
        status = facts_complain(FACTS_EXIT_ENVIRONMENT, "facts repro: --%s %s: %s",
                                files->dump[0] ? "dump" : "standalone",
                                files->dump[0] ? files->dump : files->folder, files->trouble);
    else if (asked)
        status = end_dump(files, status);
    if (!program || !asked)
        return status;
    int made = find_file(script, "standalone.py");
    if (made == FACTS_EXIT_OK)
        made = facts_python_run(words, &message);
    if (message.text[0])
        fprintf(stderr, "facts repro: %s\n", message.text);
    return made != FACTS_EXIT_OK ? made : status;
}

static void show_row(facts_session *s, const facts_outcome *outcome)
{
    const facts_target *t = &s->targets.at[outcome->target];
    facts_repro_files_row(s->context, outcome);
    if (s->options->json)
        return;
    printf("\n%s on %s%s\n", t->kind == FACTS_TARGET_CPU ? "our CPU backend" : t->build.name,
           t->device, t->kind == FACTS_TARGET_DESCRIBED ? " (described)" : "");
    for (const char *line = outcome->expected->lines; line && *line;) {
        const size_t letters = strcspn(line, "\n");
        printf("  %.*s\n", (int)letters, line);
        line += letters + (line[letters] != '\0');
    }
    facts_explain_row(outcome->text, outcome->length, stdout);
}

/* Without a GPU, a yes is not tested: prints how to test it. */
static void say_what_is_open(const facts_session *s)
{
    for (size_t i = 0; i < s->targets.count; i++) {
        const facts_target *t = &s->targets.at[i];
        if (t->kind != FACTS_TARGET_DESCRIBED)
            continue;
        printf("\nNumbers need a GPU; %s is a described device. On a machine with a GPU (sm_%d):\n "
               " facts repro '%s' --cudnn %s "
               "--device "
               "0\n",
               t->device, t->described.sm, s->work[0].name, t->build.version);
        printf("The CPU backend computes the same problem without a GPU:\n  facts repro '%s' "
               "--device cpu\n",
               s->work[0].name);
        return;
    }
}

static int check(facts_session *s)
{
    if (s->work_count != 1)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts repro: that is %zu cases; give one (facts list shows them)",
                              s->work_count);
    return FACTS_EXIT_OK;
}

/* A program is for one build on one device. */
static int check_targets(const facts_session *s)
{
    if (s->options->standalone &&
        (s->targets.count != 1 || s->targets.at[0].kind == FACTS_TARGET_CPU))
        return facts_complain(
            FACTS_EXIT_BAD_INPUT,
            "facts repro: --standalone needs one cuDNN build and one GPU, real or described: "
            "--cudnn 9.27.0 --device h100-sxm");
    return FACTS_EXIT_OK;
}

/* Runs wherever possible; on described devices it compiles. If there are both kinds of devices,
 * asks one kind after the other. */
static facts_task task_of(const facts_session *s)
{
    return facts_targets_of(&s->targets, FACTS_TARGET_DESCRIBED) < s->targets.count
               ? FACTS_TASK_RUN
               : FACTS_TASK_PLAN;
}

int facts_command_repro(const facts_invocation *call)
{
    const facts_options *o = call->options;
    facts_options options = *o;
    facts_repro_files files = { .rows = NULL };
    options.explain = true;
    facts_session s = {
        .options = &options, .unguarded = true, .call = call, .on_row = show_row, .context = &files
    };
    int status = facts_session_cases(&s, o->words, o->word_count);
    if (status == FACTS_EXIT_OK)
        status = check(&s);
    const char *devices = o->device ? o->device : facts_gpus_here() ? "0" : "h100-sxm";
    if (status == FACTS_EXIT_OK)
        status = facts_session_targets(&s, o->cudnn, devices);
    if (status == FACTS_EXIT_OK)
        status = check_targets(&s);
    if (status == FACTS_EXIT_OK)
        status = facts_repro_files_begin(&files, &options);
    if (status == FACTS_EXIT_OK) {
        s.task = task_of(&s);
        if (!o->json) {
            printf("%s\n", s.work[0].name);
            fflush(stdout);
        }
        status = facts_session_run(&s);
    }
    if (status == FACTS_EXIT_OK) {
        if (!o->json)
            say_what_is_open(&s);
        status = facts_session_exit(&s);
    }
    const int made = facts_repro_files_end(&files, o, status);
    facts_session_free(&s);
    return made;
}
