/* What commands are given: a case, a record. */
#include "commands.h"

int facts_read_case(const char *command, const facts_options *o, facts_case *out)
{
    facts_error error = { .text = "" };
    if (o->word_count != 1)
        fprintf(stderr, "facts %s: that is %zu words; give one case in quotes\n", command, o->word_count);
    else if (facts_case_parse(out, o->words[0], &error))
        return FACTS_EXIT_OK;
    else
        fprintf(stderr, "%s\n", error.text);
    return FACTS_EXIT_BAD_INPUT;
}

int facts_read_record(const char *who, const char *path, bool (*each)(void *, const facts_line *), void *context, uint64_t *bad)
{
    facts_read_counts counts = { 0 };
    char why[160];
    if (!facts_record_read(path, each, context, &counts)) {
        int status = facts_record_trouble(&counts, why, sizeof why);
        fprintf(stderr, "%s: %s: %s\n", who, path, why);
        return status;
    }
    if (bad && (*bad = counts.bad) > 0)
        fprintf(stderr, "%s: %s: %llu lines could not be read\n", who, path, (unsigned long long)counts.bad);
    return FACTS_EXIT_OK;
}
