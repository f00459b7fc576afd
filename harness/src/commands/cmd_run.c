/* facts decide and facts run: the same road, to the answer or on to the numbers. */
#include "commands.h"

#define FINDINGS_SHOWN 20

static int check(const facts_options *options)
{
    if (options->resume && !options->output) {
        fputs("facts: --resume needs the record to go on with: -o FILE\n", stderr);
        return FACTS_EXIT_BAD_INPUT;
    }
    if (options->resume && options->overwrite) {
        fputs("facts: --resume and --overwrite exclude each other\n", stderr);
        return FACTS_EXIT_BAD_INPUT;
    }
    return FACTS_EXIT_OK;
}

static int batch(const facts_invocation *call, facts_task task, const char *devices)
{
    const facts_options *o = call->options;
    facts_session s = { .options = o, .task = task, .argc = call->argc, .argv = call->argv, .keep_record = true };
    int status = check(o);
    if (status == FACTS_EXIT_OK)
        status = facts_session_cases(&s, o->words, o->word_count);
    if (status == FACTS_EXIT_OK)
        status = facts_session_targets(&s, o->cudnn ? o->cudnn : "default", devices);
    if (status == FACTS_EXIT_OK)
        status = facts_session_run(&s);
    if (status == FACTS_EXIT_OK) {
        FILE *out = o->json ? stderr : stdout;
        facts_print_counts(&s.tally, task != FACTS_TASK_RUN, out);
        if (!o->json) {
            facts_print_flips(&s.tally, out);
            facts_print_findings(&s.tally, FINDINGS_SHOWN, out);
        }
        fprintf(out, "\nrecord: %s\n", s.record);
        status = facts_session_exit(&s);
    }
    facts_session_free(&s);
    return status;
}

int facts_command_decide(const facts_invocation *call)
{
    const char *devices = call->options->device ? call->options->device : "h100-sxm";
    return batch(call, call->options->plan ? FACTS_TASK_PLAN : FACTS_TASK_DECIDE, devices);
}

int facts_command_run(const facts_invocation *call)
{
    const char *devices = call->options->device;
    if (!devices && facts_gpu_count() == 0) {
        fputs("facts run: no GPU here; say --device cpu (our own CPU backend), or use `facts decide`, which needs none\n", stderr);
        return FACTS_EXIT_ENVIRONMENT;
    }
    return batch(call, FACTS_TASK_RUN, devices ? devices : "0");
}
