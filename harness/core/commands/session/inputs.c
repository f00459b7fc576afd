#include "inputs.h"

#include <stdarg.h>
#include <stdio.h>

#include "words/fail.h"

int facts_read_case(const char *command, const facts_invocation *call, facts_case *out)
{
    const facts_options *o = call->options;
    facts_error error = { 0 };
    if (o->word_count != 1)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts %s: that is %zu words; give one case in quotes", command,
                              o->word_count);
    return facts_case_read(call->driver->language, out, o->words[0], &error)
               ? FACTS_EXIT_OK
               : facts_complain(FACTS_EXIT_BAD_INPUT, "%s", error.text);
}

int facts_read_record(const char *who, const char *path, bool (*each)(void *, const facts_line *),
                      void *context, uint64_t *bad)
{
    facts_read_counts counts = { 0 };
    facts_error why;
    if (!facts_record_read(path, each, context, &counts)) {
        int status = facts_record_trouble(&counts, &why);
        return facts_complain(status, "%s: %s: %s", who, path, why.text);
    }
    if (bad && (*bad = counts.bad) > 0)
        facts_complain(FACTS_EXIT_OK, "%s: %s: %llu line%s could not be read", who, path,
                       (unsigned long long)counts.bad, counts.bad == 1 ? "" : "s");
    return FACTS_EXIT_OK;
}

int facts_complain(int status, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    facts_plain(text); /* may contain paths and words of the command line */
    fprintf(stderr, "%s\n", text);
    return status;
}
