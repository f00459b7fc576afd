/* Which other projects refuse a case before cuDNN sees it. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "commands/session/session.h"

enum { CASES_SHOWN = 4 };

static bool is_same(const facts_text *a, const facts_text *b)
{
    return a->length == b->length && (!a->length || strcmp(a->data, b->data) == 0);
}

/* The targets that have the lines of `at`, unless all have them. False: an earlier one had them. */
static bool print_targets(const facts_session *s, const facts_text *lines, size_t at, FILE *out)
{
    size_t same = 0;
    for (size_t t = 0; t < s->targets.count; t++) {
        same += is_same(&lines[t], &lines[at]);
        if (t < at && is_same(&lines[t], &lines[at]))
            return false;
    }
    const char *before = "with ";
    for (size_t t = at; same < s->targets.count && t < s->targets.count; t++)
        if (is_same(&lines[t], &lines[at])) {
            char shown[176];
            fprintf(out, "%s%s on %s", before, s->targets.at[t].build.name,
                    facts_target_shown(shown, &s->targets.at[t]));
            before = ", ";
        }
    fputs(same < s->targets.count ? ":\n" : "", out);
    return true;
}

static void print_case(const facts_session *s, size_t work, FILE *out)
{
    facts_text *lines = calloc(s->targets.count, sizeof *lines);
    bool any = false;
    for (size_t t = 0; t < s->targets.count; t++) {
        facts_session_callers(s, t, work, "  ", &lines[t]);
        any |= lines[t].length > 0;
    }
    if (any)
        fprintf(out, "\n%s%s", s->work_count > 1 ? s->work[work].name : "",
                s->work_count > 1 ? "\n" : "");
    for (size_t t = 0; t < s->targets.count; t++)
        if (lines[t].length && print_targets(s, lines, t, out))
            fputs(lines[t].data, out);
    for (size_t t = 0; t < s->targets.count; t++)
        facts_text_free(&lines[t]);
    free(lines);
}

void facts_print_callers(const facts_session *s, FILE *out)
{
    for (size_t work = 0; s->work_count <= CASES_SHOWN && work < s->work_count; work++)
        print_case(s, work, out);
}
