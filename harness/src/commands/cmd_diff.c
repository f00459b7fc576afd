/* facts diff: two records in the hands of the report package, which compares, groups and prints. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"

#define WORDS_MAX 20 /* beside the inputs */

/* Words for the report package. Options are joined to their values, so that no value can be taken
 * for an option. */
typedef struct words {
    char **at;
    size_t count;
    bool failed;
} words;

static void add(words *w, const char *name, const char *value)
{
    char *word = NULL;
    if (!value)
        return;
    if (asprintf(&word, "%s%s", name, value) < 0)
        w->failed = true;
    else
        w->at[w->count++] = word;
}

static void add_flag(words *w, const char *name, bool given)
{
    if (given)
        add(w, name, "");
}

int facts_run_diff(const char *command, const facts_options *o, const char *unasked,
                   const char *const *records, size_t count)
{
    char slower[32];
    words w = { .at = calloc(count + WORDS_MAX, sizeof *w.at) };
    int status = FACTS_EXIT_ENVIRONMENT;
    if (w.at) {
        snprintf(slower, sizeof slower, "%.6g", o->slower);
        add(&w, "--diff", "");
        add(&w, "--command=", command);
        add(&w, "--unasked=", unasked);
        add(&w, "--baseline=", o->baseline);
        add(&w, "--candidate=", o->candidate);
        add(&w, "--where=", o->where);
        add(&w, "--fail-on=", o->fail_on);
        add(&w, "--junit=", o->junit);
        add(&w, "--errata=", o->errata);
        add(&w, "--page=", o->page);
        add(&w, "--slower=", o->slower > 0 ? slower : NULL);
        add_flag(&w, "--bench", o->bench);
        add_flag(&w, "--json", o->json);
        add_flag(&w, "--markdown", o->markdown);
        add_flag(&w, "--annotations", o->annotations);
        add(&w, "--", "");
        for (size_t i = 0; i < count; i++)
            add(&w, records[i], "");
    }
    if (w.at && !w.failed)
        status = facts_run_report((const char *const *)w.at, w.count);
    else
        fprintf(stderr, "facts %s: out of memory\n", command);
    for (size_t i = 0; i < w.count; i++)
        free(w.at[i]);
    free(w.at);
    return status;
}

int facts_command_diff(const facts_invocation *call)
{
    if (facts_check_folder("facts diff: --page", call->options->page) != FACTS_EXIT_OK)
        return FACTS_EXIT_BAD_INPUT;
    return facts_run_diff("diff", call->options, NULL, call->options->words,
                          call->options->word_count);
}
