#include "repro_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builds/home.h"
#include "builds/python.h"
#include "commands/session/complain.h"
#include "record/reader.h"
#include "record/scan.h"
#include "words/text_file.h"

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

int facts_repro_files_begin(facts_repro_files *out, facts_options *options)
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

void facts_repro_files_row(facts_repro_files *files, const facts_outcome *outcome)
{
    facts_member members[FACTS_ROW_MEMBERS];
    size_t count;
    if (facts_scan_object(outcome->text, outcome->length, members, FACTS_ROW_MEMBERS, &count)) {
        count = count < FACTS_ROW_MEMBERS ? count : FACTS_ROW_MEMBERS;
        files->dumped |= facts_member_find(members, count, "dumped").at != NULL;
        facts_json_string(facts_member_find(members, count, "not_written"), files->trouble,
                          sizeof files->trouble);
    }
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

int facts_repro_files_end(facts_repro_files *files, const facts_options *options, int status)
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
