#include "file_lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool facts_lines_each(facts_lines *in, const char *text,
                      bool (*read)(void *context, facts_span line), void *context)
{
    facts_span rest = facts_span_of(text);
    while (rest.length > 0) {
        facts_span line = facts_span_cut(&rest, '\n');
        in->line++;
        in->start = line.at;
        if (in->most > 0 && line.length > in->most)
            return facts_lines_fail(in, NULL, "the line is too long");
        line = facts_span_without_comment(line);
        if (line.length > 0 && !read(context, line))
            return false;
    }
    return true;
}

bool facts_lines_fail(const facts_lines *in, const char *at, const char *format, ...)
{
    char what[sizeof in->error->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return facts_fail_at(in->error, in->where, in->line, at ? (int)(at - in->start) + 1 : 1, "%s",
                         what);
}

bool facts_lines_predicate(const facts_lines *in, facts_span text, const char *before,
                           facts_predicate **out)
{
    facts_error inner = { 0 };
    char *copy = strndup(text.at, text.length);
    bool ok = facts_predicate_parse(in->language, out, copy, &inner);
    free(copy);
    const char *sentence = strchr(inner.text, ' '); /* after "where:1:COLUMN:" */
    return ok || facts_lines_fail(in, text.at + (inner.column ? inner.column - 1 : 0), "%s%s",
                                  before, sentence ? sentence + 1 : "no memory");
}
