/* facts calibrate: runs cases or takes records. The report package computes the error model's
 * constants from them: docs/numerics.md section 10. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builds/print_line.h"
#include "commands.h"
#include "numbers/judge/calibration.h"
#include "record/text.h"

static int check(const facts_options *o)
{
    if (o->from && (o->word_count > 0 || o->cudnn || o->device || o->where || o->with))
        return facts_complain(
            FACTS_EXIT_BAD_INPUT,
            "facts calibrate: --from reads records; leave out cases, --cudnn and --device");
    if (o->output && !o->overwrite && access(o->output, F_OK) == 0)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts calibrate: %s exists already; --overwrite replaces it",
                              o->output);
    return FACTS_EXIT_OK;
}

/* Every engine that is offered, unless the cases or the user say which. The record is kept where
 * those of other runs are. */
static int run(const facts_invocation *call, char record[FACTS_PATH])
{
    facts_options options = *call->options;
    options.output = NULL;
    options.overwrite = false;
    const char *devices = options.device;
    if (!devices && facts_gpus_here() == 0)
        return facts_complain(
            FACTS_EXIT_ENVIRONMENT,
            "facts calibrate: no GPU here; give --device cpu for the CPU backend");
    facts_session s = { .options = &options,
                        .task = FACTS_TASK_RUN,
                        .argc = call->argc,
                        .argv = call->argv,
                        .keep_record = true };
    int status = facts_session_ask(&s, options.words, options.word_count, options.cudnn,
                                   devices ? devices : "0");
    if (status == FACTS_EXIT_OK) {
        memcpy(record, s.record, FACTS_PATH);
        facts_print_counts(&s.tally, false, stderr);
    }
    facts_session_free(&s);
    return status;
}

/* The largest eps_exp and acc_pv that a row of the table may have, of each type. */
static void write_limits(facts_text *out)
{
    facts_text_puts(out, "--limits=");
#define AS_LIMIT(symbol, value, name)                                                              \
    facts_text_format(out, "%s%s:%.17g:%.17g", (value) > 1 ? "," : "", name,                       \
                      (double)facts_constants_limit(value).eps_exp,                                \
                      (double)facts_constants_limit(value).acc_pv);
    FATTN_DTYPE_LIST(AS_LIMIT)
#undef AS_LIMIT
}

static int report(const char *const *records, size_t count, const char *output)
{
    facts_text limits = { 0 }, path = { 0 };
    const char **words = calloc(count + 4, sizeof *words);
    size_t n = 0;
    int status = FACTS_EXIT_ENVIRONMENT;
    write_limits(&limits);
    facts_text_format(&path, "--output=%s", output ? output : "");
    if (words && !limits.failed && !path.failed) {
        words[n++] = "calibrate";
        words[n++] = limits.data;
        if (output)
            words[n++] = path.data;
        words[n++] = "--";
        memcpy(words + n, records, count * sizeof *words);
        status = facts_run_report(words, n + count);
    }
    free(words);
    facts_text_free(&limits);
    facts_text_free(&path);
    return status;
}

int facts_command_calibrate(const facts_invocation *call)
{
    const facts_options *o = call->options;
    char path[FACTS_PATH] = "";
    const char *const record = path;
    int status = check(o);
    if (status == FACTS_EXIT_OK && !o->from)
        status = run(call, path);
    if (status == FACTS_EXIT_OK)
        status = report(o->from ? o->records : &record, o->from ? o->record_count : 1, o->output);
    if (status == FACTS_EXIT_OK && !o->from) {
        fputc('\n', stdout);
        facts_print_line(stdout, "record: %s", record);
    }
    return status;
}
