/* facts merge: records of shards, machines and attempts become one. */
#include "../record/merge.h"
#include "commands.h"

int facts_command_merge(const facts_invocation *call)
{
    const facts_options *o = call->options;
    char error[FACTS_PATH + 256] = "";
    facts_merge_result result;
    if (!o->output) {
        fputs("facts merge: -o OUT is missing\n", stderr);
        return FACTS_EXIT_BAD_INPUT;
    }
    int status = facts_merge(&(facts_merge_request){ .out = o->output, .in = o->words, .in_count = o->word_count, .force = o->force,
                                                     .overwrite = o->overwrite },
                             &result, error, sizeof error);
    if (status == FACTS_EXIT_BAD_INPUT || status == FACTS_EXIT_ENVIRONMENT) {
        fprintf(stderr, "facts merge: %s\n", error);
        return status;
    }
    printf("%s: %llu rows, %llu older ones left out\n", o->output, (unsigned long long)result.rows, (unsigned long long)result.older);
    if (!result.complete)
        fprintf(stderr, "facts merge: incomplete: %s\n", result.what);
    return status;
}
