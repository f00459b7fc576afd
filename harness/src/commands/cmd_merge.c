/* facts merge: records of shards, machines and attempts become one. */
#include "commands.h"
#include "record/merge.h"

int facts_command_merge(const facts_invocation *call)
{
    const facts_options *o = call->options;
    char error[FACTS_PATH + 256] = "";
    facts_merge_result result;
    if (!o->output)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts merge: -o OUT is missing");
    int status = facts_merge(
        &(facts_merge_request){
            .out = o->output, .in = o->words, .in_count = o->word_count, .force = o->force, .overwrite = o->overwrite },
        &result, error, sizeof error);
    if (status == FACTS_EXIT_BAD_INPUT || status == FACTS_EXIT_ENVIRONMENT)
        return facts_complain(status, "facts merge: %s", error);
    printf("%s: %llu rows, %llu older ones left out\n", o->output, (unsigned long long)result.rows,
           (unsigned long long)result.older);
    if (!result.complete)
        facts_complain(status, "facts merge: incomplete: %s", result.what);
    return status;
}
