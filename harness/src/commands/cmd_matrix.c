/* facts matrix: the main job. Builds x suite smoke x devices, into records and a page. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "record/text.h"

#define ENOUGH_VERSIONS 3
#define DEFAULT_BUILDS "9.14.0-jit-cu13,9.20.0-jit-cu13,9.27.0-jit-cu13"
#define DEFAULT_DEVICES "h100-sxm,sm80-spec"
#define SUITE "smoke"

/* One part of the matrix: its cases, its devices, and the place of its record. */
typedef struct part {
    const char *name, *devices, *cudnn;
    facts_task task;
} part;

/* One build for each version, the first of each (discovery puts jit before full, cu13 before cu12).
 */
static size_t name_builds(facts_text *out, const facts_builds *builds)
{
    size_t n = 0;
    facts_text_clear(out);
    for (size_t i = 0; i < builds->count; i++) {
        const facts_build *b = &builds->at[i];
        if ((i && strcmp(builds->at[i - 1].version, b->version) == 0) ||
            (b->needs_nvrtc && !b->nvrtc[0]))
            continue;
        facts_text_format(out, "%s%s", n ? "," : "", b->name);
        n++;
    }
    return n;
}

/* The installed builds; if there are fewer than three versions, installs the default three as well.
 */
static int choose_builds(facts_text *out)
{
    facts_builds builds = { 0 };
    facts_error message = { 0 };
    int status = facts_builds_discover(&builds, &message);
    if (status == 0 && name_builds(out, &builds) < ENOUGH_VERSIONS) {
        fputs("facts: fewer than three cuDNN versions here; installing " DEFAULT_BUILDS "\n",
              stderr);
        facts_builds wanted = { 0 };
        bool installed = facts_builds_install(&wanted, DEFAULT_BUILDS, FACTS_RESOLVE_PINNED, NULL,
                                              &message) == 0;
        facts_builds_free(&wanted);
        if (!installed)
            fprintf(stderr, "facts: %s\n", message.text);
        facts_builds_free(&builds);
        status = facts_builds_discover(&builds, &message);
        size_t n = status == 0 ? name_builds(out, &builds) : 0;
        if (status == 0 && n == 0)
            status = FACTS_EXIT_ENVIRONMENT;
        else if (n && !installed)
            fprintf(stderr, "facts: continuing with the installed builds: %s\n", out->data);
    }
    facts_builds_free(&builds);
    return status == 3 && message.text[0] ? facts_complain(status, "facts matrix: %s", message.text)
                                          : status;
}

static int run_part(const facts_invocation *call, const char *folder, const part *p,
                    bool *interrupted)
{
    const char *const words[] = { SUITE };
    facts_options options = *call->options;
    options.output = NULL;
    options.overwrite = true;
    options.cudnn = NULL; /* p->cudnn; the CPU's part has none */
    facts_session s = { .options = &options,
                        .task = p->task,
                        .argc = call->argc,
                        .argv = call->argv,
                        .keep_record = true };
    int n = snprintf(s.record, sizeof s.record, "%s/%s.jsonl", folder, p->name);
    int status = n > 0 && (size_t)n < sizeof s.record ? FACTS_EXIT_OK : FACTS_EXIT_BAD_INPUT;
    if (status == FACTS_EXIT_OK)
        status = facts_session_ask(&s, words, 1, p->cudnn, p->devices);
    if (status == FACTS_EXIT_OK) {
        FILE *out = options.json ? stderr : stdout;
        fprintf(out, "\n== %s", p->name);
        facts_print_counts(&s.tally, p->task != FACTS_TASK_RUN, out);
        facts_print_changes(&s.tally, s.record, out);
        facts_print_findings(&s.tally, 20, out);
        status = facts_session_exit(&s);
        *interrupted = s.counts.interrupted;
    }
    facts_session_free(&s);
    return status;
}

/* The worse of two exit codes: a finding comes before an incomplete answer. */
static int worse(int a, int b)
{
    static const int order[] = {
        FACTS_EXIT_INTERRUPTED, FACTS_EXIT_BAD_INPUT,  FACTS_EXIT_FINDINGS,
        FACTS_EXIT_ENVIRONMENT, FACTS_EXIT_INCOMPLETE, FACTS_EXIT_NOTHING
    };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return FACTS_EXIT_OK;
}

static bool is_described(const char *word)
{
    return strcmp(word, "cpu") != 0 && strspn(word, "0123456789") != strlen(word);
}

/* The words of --device that name described devices (only asked), or the others (run). */
static char *some_devices(const char *devices, bool described)
{
    char *copy = strdup(devices), *rest = copy, *out = calloc(strlen(devices) + 2, 1);
    for (char *word; copy && out && (word = strsep(&rest, ",")) != NULL;) {
        if (!*word || is_described(word) != described)
            continue;
        if (*out)
            strcat(out, ",");
        strcat(out, word);
    }
    free(copy);
    return out;
}

/* Described devices only decide, GPUs run (without --device the first GPU, if there is one), and
 * the CPU backend runs. */
static int run_parts(const facts_invocation *call, const char *folder, const char *cudnn,
                     char records[][FACTS_PATH], size_t *record_count)
{
    const char *given = call->options->device;
    char *described = some_devices(given ? given : DEFAULT_DEVICES, true),
         *real = some_devices(given ? given : "", false);
    part parts[3];
    size_t n = 0;
    int status = described && real ? FACTS_EXIT_OK : FACTS_EXIT_ENVIRONMENT;
    bool interrupted = false;
    if (described && *described)
        parts[n++] = (part){ "decisions", described, cudnn, FACTS_TASK_DECIDE };
    if (real && *real)
        parts[n++] = (part){ "runs", real, cudnn, FACTS_TASK_RUN };
    if (!given && facts_gpus_here())
        parts[n++] = (part){ "gpu", "0", cudnn, FACTS_TASK_RUN };
    if (!given)
        parts[n++] = (part){ "cpu", "cpu", cudnn, FACTS_TASK_RUN };
    if (n == 0 && status == FACTS_EXIT_OK) {
        fputs("facts matrix: --device is empty\n", stderr);
        status = FACTS_EXIT_BAD_INPUT;
    }
    for (size_t i = 0; i < n && !interrupted; i++) {
        int done = run_part(call, folder, &parts[i], &interrupted);
        status = worse(status, done);
        if (done == FACTS_EXIT_BAD_INPUT)
            break;
        snprintf(records[(*record_count)++], FACTS_PATH, "%s/%s.jsonl", folder, parts[i].name);
    }
    free(described);
    free(real);
    return status;
}

static int write_page(const char *folder, char records[][FACTS_PATH], size_t count)
{
    const char *words[8];
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        words[n++] = records[i];
    words[n++] = "-o";
    words[n++] = folder;
    int status = facts_run_report(words, n);
    if (status == FACTS_EXIT_OK || status == FACTS_EXIT_INCOMPLETE)
        printf("\nrecords and report: %s/\npage: %s/index.html\n", folder, folder);
    return status;
}

int facts_command_matrix(const facts_invocation *call)
{
    const facts_options *o = call->options;
    const char *folder = o->output ? o->output : "./facts-report";
    char records[3][FACTS_PATH];
    size_t count = 0;
    facts_text cudnn = { 0 };
    if (facts_check_folder("facts matrix: -o", folder) != FACTS_EXIT_OK)
        return FACTS_EXIT_BAD_INPUT;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return facts_complain(FACTS_EXIT_ENVIRONMENT,
                              "facts matrix: %s: %s; give another folder with -o DIR", folder,
                              strerror(errno));
    int status = o->cudnn ? 0 : choose_builds(&cudnn);
    if (status != 0 || (!o->cudnn && !cudnn.data)) {
        fputs("facts matrix: no cuDNN build to ask; facts cudnn install 9.20.0\n", stderr);
        facts_text_free(&cudnn);
        return FACTS_EXIT_ENVIRONMENT;
    }
    status = run_parts(call, folder, o->cudnn ? o->cudnn : cudnn.data, records, &count);
    if (count && status != FACTS_EXIT_INTERRUPTED)
        status = worse(status, write_page(folder, records, count));
    facts_text_free(&cudnn);
    return status;
}
