/* facts calibrate: what an engine's errors say about the constants of the error model. docs/numerics.md section 10. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calibrate.h"
#include "commands.h"
#include "record/reader.h"

static int check(const facts_options *o)
{
    if (o->from && (o->word_count > 0 || o->cudnn || o->device || o->where || o->with))
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts calibrate: --from reads records: no cases, builds or devices beside it");
    if (o->output && !o->overwrite && access(o->output, F_OK) == 0)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts calibrate: %s is there already: --overwrite replaces it", o->output);
    return FACTS_EXIT_OK;
}

static bool add_line(void *measured, const facts_line *line)
{
    if (line->kind == FACTS_LINE_ROW)
        facts_measured_add(measured, line->text, line->length);
    return true;
}

/* Every engine that is offered, unless the cases or the user say which. The record is kept where those of other runs are. */
static int run(const facts_invocation *call, char record[FACTS_PATH])
{
    facts_options options = *call->options;
    options.output = NULL;
    options.overwrite = false;
    const char *devices = options.device;
    if (!devices && facts_gpus_here() == 0)
        return facts_complain(FACTS_EXIT_ENVIRONMENT, "facts calibrate: no GPU here; say --device cpu for our own CPU backend");
    facts_session s = { .options = &options, .task = FACTS_TASK_RUN, .argc = call->argc, .argv = call->argv, .keep_record = true };
    int status = facts_session_ask(&s, options.words, options.word_count, options.cudnn, devices ? devices : "0");
    if (status == FACTS_EXIT_OK) {
        memcpy(record, s.record, FACTS_PATH);
        facts_print_counts(&s.tally, false, stderr);
    }
    facts_session_free(&s);
    return status;
}

static int write_table(const facts_measured *measured, const char *path)
{
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%Y-%m-%d", &utc);
    json_t *table = facts_measured_table(measured, date);
    bool written = table && json_dump_file(table, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0;
    json_decref(table);
    if (written)
        return FACTS_EXIT_OK;
    return facts_complain(FACTS_EXIT_ENVIRONMENT, "facts calibrate: %s: could not be written", path);
}

int facts_command_calibrate(const facts_invocation *call)
{
    const facts_options *o = call->options;
    char record[FACTS_PATH] = "";
    uint64_t bad;
    int status = check(o);
    if (status == FACTS_EXIT_OK && !o->from)
        status = run(call, record);
    facts_measured *measured = status == FACTS_EXIT_OK ? facts_measured_create() : NULL;
    for (size_t i = 0; measured && i < (o->from ? o->record_count : 1) && status == FACTS_EXIT_OK; i++)
        status = facts_read_record("facts calibrate", o->from ? o->records[i] : record, add_line, measured, &bad);
    if (measured && status == FACTS_EXIT_OK && facts_measured_rows(measured) == 0) {
        fputs("facts calibrate: no row has numbers to calibrate with\n", stderr);
        status = FACTS_EXIT_NOTHING;
    }
    if (measured && status == FACTS_EXIT_OK) {
        facts_measured_print(measured, stdout);
        if (!o->from)
            printf("\nrecord: %s\n", record);
        if (o->output)
            status = write_table(measured, o->output);
    }
    facts_measured_destroy(measured);
    return status;
}
