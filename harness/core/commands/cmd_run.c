/* facts decide, facts compile and facts run: the same steps, up to the answer, the plan or the
 * comparison. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "builds/print_line.h"
#include "commands.h"
#include "commands/bench/rounds.h"
#include "commands/print/explain_row.h"

#define FINDINGS_SHOWN 20

/* Plans are code: a worker uses only folders that no other user can change. In another folder it
 * would compile and keep nothing, without a message. */
static int facts_open_plan_dir(char out[FACTS_PATH], facts_options *options)
{
    struct stat info;
    const char *path = options->plan_dir;
    if (!path)
        return FACTS_EXIT_OK;
    if ((mkdir(path, 0700) != 0 && errno != EEXIST) || lstat(path, &info) != 0)
        return facts_complain(FACTS_EXIT_ENVIRONMENT, "facts: --plan-dir %s: %s", path,
                              strerror(errno));
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 022))
        return facts_complain(FACTS_EXIT_ENVIRONMENT,
                              "facts: --plan-dir %s: must be your own folder, no link, and nobody "
                              "else may write to it (chmod go-w)",
                              path);
    char *real = realpath(path, NULL);
    int status = real && strlen(real) < FACTS_PATH ? FACTS_EXIT_OK : FACTS_EXIT_ENVIRONMENT;
    if (status == FACTS_EXIT_OK)
        options->plan_dir = strcpy(out, real);
    else
        facts_print_line(stderr, "facts: --plan-dir %s: %s", path,
                         real ? "too long" : strerror(errno));
    free(real);
    return status;
}

static void show_nearest(facts_session *session, const facts_outcome *outcome)
{
    char shown[176];
    facts_target_shown(shown, &session->targets.at[outcome->target]);
    const bool explained = facts_explain_nearest(outcome->text, outcome->length, shown, stdout);
    if (explained && session->work_count == 1) /* once is enough */
        session->tally.cells[outcome->target].reason = 0;
}

static size_t count_plans(const char *folder)
{
    size_t count = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        const char *end = strrchr(entry->d_name, '.');
        count += end && strcmp(end, ".plan") == 0;
    }
    if (dir)
        closedir(dir);
    return count;
}

/* What compiled, and how long it took. `before`: how many plans the folder had when the run began. If
 * few of them fit, the user must know why. */
static void print_plans(const facts_session *s, size_t before, FILE *out)
{
    const facts_plan_counts *plans = &s->plans;
    char nvrtc[FACTS_PATH + 32];
    fprintf(out, "\nplans: %zu compiled, %zu loaded", plans->compiled, plans->loaded);
    if (plans->compiled)
        fprintf(out, "; compiling took %.3g s", plans->ms / 1e3);
    fputc('\n', out);
    for (size_t t = 0; plans->compiled && t < s->targets.count; t++) {
        const facts_target *target = &s->targets.at[t];
        if (!target->build.dir[0] || strcmp(target->device, s->targets.at[0].device) != 0)
            continue;
        facts_nvrtc_words(&target->build, nvrtc);
        facts_print_line(out, "  %s: by %s", target->build.name, nvrtc);
    }
    if (before > 0 && plans->compiled > plans->loaded)
        fprintf(out,
                "the folder had %zu plan%s before; a plan fits one build of FACTS, one of cuDNN "
                "and NVRTC, and one kind of GPU\n",
                before, before == 1 ? "" : "s");
    if (plans->not_loaded)
        fprintf(
            stderr,
            "facts: --plan-dir: %zu file%s could not be used and %s made again; the first: %s\n",
            plans->not_loaded, plans->not_loaded == 1 ? "" : "s",
            plans->not_loaded == 1 ? "was" : "were", plans->why);
    if (plans->not_kept)
        fprintf(stderr,
                "facts: --plan-dir: the plans of %zu row%s could not be stored; the first: %s\n",
                plans->not_kept, plans->not_kept == 1 ? "" : "s", plans->why_not_kept);
}

/* cuDNN is asked, not the library: its guards are off. A run launches kernels, one of a known failure may never end and keep
 * the GPU, so there the guards stay on; also for plans in a folder, which are made for runs. */
static int read_guards(facts_session *s)
{
    const char *word = s->options->guards;
    s->unguarded =
        word ? strcmp(word, "off") == 0 : s->task != FACTS_TASK_RUN && !s->options->plan_dir;
    if (!word || s->unguarded || strcmp(word, "on") == 0)
        return FACTS_EXIT_OK;
    return facts_complain(FACTS_EXIT_BAD_INPUT, "facts: --guards %s: give on or off", word);
}

/* A described device has no answer for `facts run`. */
static int check_that_one_runs(const facts_session *s)
{
    if (s->options->turns && facts_targets_of(&s->targets, FACTS_TARGET_DESCRIBED))
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts run --turns: a described device runs nothing; give --device 0 "
                              "or --device cpu");
    if (s->task == FACTS_TASK_RUN &&
        facts_targets_of(&s->targets, FACTS_TARGET_DESCRIBED) == s->targets.count)
        return facts_complain(FACTS_EXIT_ENVIRONMENT,
                              "facts run: --device %s: nothing can run on a described device; use "
                              "`facts decide`, or give a GPU or cpu",
                              s->targets.at[0].device);
    return FACTS_EXIT_OK;
}

/* --turns: the builds alternate on one device. */
static int run_in_turns(facts_session *s)
{
    facts_rounds *rounds = facts_rounds_begin(s, s->options->twice);
    int status = facts_session_run(s);
    if (status == FACTS_EXIT_OK)
        status = facts_session_broken(s);
    if (status == FACTS_EXIT_OK && !facts_rounds_turns(rounds))
        status = facts_complain(FACTS_EXIT_ENVIRONMENT,
                                "facts: nothing was timed: no case ran and was right (record: %s)",
                                s->record);
    facts_rounds_free(rounds);
    return status;
}

static int batch(const facts_invocation *call, facts_task task, const char *devices)
{
    const facts_options *o = call->options;
    char plans[FACTS_PATH];
    facts_options options = *o;
    facts_session s = { .options = &options, .task = task, .call = call, .keep_record = true };
    int status = read_guards(&s);
    if (status == FACTS_EXIT_OK)
        status = facts_session_cases(&s, o->words, o->word_count);
    /* One case that is refused is a question: why, and what else? */
    options.explain |= task != FACTS_TASK_RUN && s.work_count == 1 && !o->json;
    if (options.explain && !o->json)
        s.on_row = show_nearest;
    if (status == FACTS_EXIT_OK && task != FACTS_TASK_RUN)
        status = facts_session_load_callers(&s);
    if (status == FACTS_EXIT_OK)
        status = facts_open_plan_dir(plans, &options);
    const size_t before =
        status == FACTS_EXIT_OK && options.plan_dir ? count_plans(options.plan_dir) : 0;
    if (status == FACTS_EXIT_OK)
        status = facts_session_targets(&s, o->cudnn, devices);
    if (status == FACTS_EXIT_OK)
        status = check_that_one_runs(&s);
    if (status == FACTS_EXIT_OK)
        status = o->turns ? run_in_turns(&s) : facts_session_run(&s);
    if (status == FACTS_EXIT_OK) {
        FILE *out = o->json ? stderr : stdout;
        facts_print_counts(&s.tally, task != FACTS_TASK_RUN, out);
        if (!o->json) {
            facts_print_changes(&s.tally, s.record, out);
            facts_print_findings(&s.tally, FINDINGS_SHOWN, out);
            facts_print_callers(&s, out);
        }
        if (task == FACTS_TASK_PLAN || options.plan_dir)
            print_plans(&s, before, out);
        fputc('\n', out);
        facts_print_line(out, "record: %s", s.record);
        status = facts_session_exit(&s);
        if (status == FACTS_EXIT_OK && s.plans.not_kept && task == FACTS_TASK_PLAN)
            status = FACTS_EXIT_ENVIRONMENT;
    }
    facts_session_free(&s);
    return status;
}

int facts_command_decide(const facts_invocation *call)
{
    const char *devices = call->options->device ? call->options->device : "h100-sxm";
    return batch(call, call->options->plan ? FACTS_TASK_PLAN : FACTS_TASK_DECIDE, devices);
}

int facts_command_compile(const facts_invocation *call)
{
    const char *devices = call->options->device ? call->options->device : "h100-sxm";
    if (!call->options->plan_dir)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts compile: --plan-dir DIR is missing: the folder for the plans");
    return batch(call, FACTS_TASK_PLAN, devices);
}

int facts_command_run(const facts_invocation *call)
{
    const char *devices = call->options->device;
    if (!devices && facts_gpus_here() == 0)
        return facts_complain(FACTS_EXIT_ENVIRONMENT,
                              "facts run: no GPU here; give --device cpu (the CPU backend), or use "
                              "`facts decide`, which needs no GPU");
    return batch(call, FACTS_TASK_RUN, devices ? devices : "0");
}
