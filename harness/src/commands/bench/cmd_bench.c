/* facts bench: measures the times of the engines of several builds. The builds alternate on one
 * device; the report package prints the times. docs/bench.md. */
#include <string.h>

#include "builds/print_line.h"
#include "commands/bench/rounds.h"
#include "commands/commands.h"

static int choose(facts_session *s, const facts_options *o)
{
    static const char *const suite[] = { "bench" };
    const char *devices = o->device;
    if (!devices && facts_gpus_here() == 0)
        return facts_complain(FACTS_EXIT_ENVIRONMENT,
                              "facts bench: no GPU here; --device cpu times the CPU backend");
    int status =
        facts_session_prepare(s, o->word_count ? o->words : suite,
                              o->word_count ? o->word_count : 1, o->cudnn, devices ? devices : "0");
    if (status == FACTS_EXIT_OK && facts_targets_of(&s->targets, FACTS_TARGET_DESCRIBED))
        return facts_complain(
            FACTS_EXIT_BAD_INPUT,
            "facts bench: a described device runs nothing; give --device 0 or --device cpu");
    return status;
}

int facts_bench(facts_session *s, bool twice)
{
    facts_rounds *rounds = facts_rounds_begin(s, twice);
    int status = rounds ? facts_session_run(s) : FACTS_EXIT_ENVIRONMENT;
    if (status == FACTS_EXIT_OK)
        status = facts_session_broken(s);
    if (status == FACTS_EXIT_OK && !facts_rounds_turns(rounds))
        status = facts_complain(FACTS_EXIT_ENVIRONMENT,
                                "facts: nothing was timed: no case ran and was right (record: %s)",
                                s->record);
    facts_rounds_free(rounds);
    return status;
}

static int show(const facts_options *o, const char *record)
{
    const char *const words[] = { "bench", record, "--json" };
    return facts_run_report(words, o->json ? 3 : 2);
}

int facts_command_bench(const facts_invocation *call)
{
    const facts_options *o = call->options;
    char plans[FACTS_PATH];
    facts_options options = *o;
    facts_session s = { .options = &options,
                        .task = FACTS_TASK_RUN,
                        .argc = call->argc,
                        .argv = call->argv,
                        .keep_record = true };
    if (o->word_count == 1 && facts_is_record_name(o->words[0]))
        return show(o, o->words[0]);
    options.json = false; /* only the rows; the report prints the answer */
    options.with = o->with ? o->with : "engine=all";
    int status = choose(&s, &options);
    if (status == FACTS_EXIT_OK)
        status = facts_open_plan_dir(plans, &options);
    if (status == FACTS_EXIT_OK)
        status = facts_bench(&s, o->twice);
    if (s.record[0])
        facts_print_line(stderr, "record: %s", s.record);
    if (status == FACTS_EXIT_OK)
        status = show(o, s.record);
    facts_session_free(&s);
    return status;
}
