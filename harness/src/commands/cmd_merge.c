/* facts merge: joins records of shards, machines and attempts, by means of the report package. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"

int facts_command_merge(const facts_invocation *call)
{
    const facts_options *o = call->options;
    size_t count = 0;
    if (!o->output)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts merge: -o OUT is missing");
    const char **words = calloc(o->word_count + 5, sizeof *words);
    if (!words)
        return facts_no_memory();
    words[count++] = "merge";
    if (o->force)
        words[count++] = "--force";
    if (o->overwrite)
        words[count++] = "--overwrite";
    words[count++] = "--";
    words[count++] = o->output;
    memcpy(words + count, o->words, o->word_count * sizeof *words);
    int status = facts_run_report(words, count + o->word_count);
    free(words);
    return status;
}
