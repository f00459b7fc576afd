/* facts repro: prints everything that is known about one case. */
#include <string.h>

#include "commands.h"
#include "commands/files/repro_files.h"
#include "commands/print/explain_row.h"

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
