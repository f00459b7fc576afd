/* Counts the rows of a resumed record together with those of this run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session_parts.h"

typedef struct index_entry {
    const char *name;
    size_t work;
} index_entry;

typedef struct recount {
    facts_session *session;
    index_entry *index;
} recount;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const index_entry *)a)->name, ((const index_entry *)b)->name);
}

/* A row of the record, from this run or an earlier one. */
static bool recount_row(void *context, const facts_line *line)
{
    recount *r = context;
    facts_session *s = r->session;
    char name[FACTS_NAME_MAX], build[64], device[128];
    if (line->kind != FACTS_LINE_ROW ||
        !facts_json_string(facts_line_get(line, "case"), name, sizeof name) ||
        !facts_json_string(facts_line_get(line, "build"), build, sizeof build) ||
        !facts_json_string(facts_line_get(line, "device"), device, sizeof device))
        return true;
    const index_entry *found =
        bsearch(&(index_entry){ .name = name }, r->index, s->work_count, sizeof *r->index, by_name);
    facts_verdict verdict = facts_verdict_parse(facts_line_get(line, "verdict"));
    const size_t target = facts_targets_find(&s->targets, build, device);
    if (!found || verdict == FACTS_VERDICT_COUNT || target == s->targets.count)
        return true;
    facts_expected_row expected = { .unexpected = false };
    s->order.expect(s, target, found->work, verdict, line, &expected);
    facts_tally_add(&s->tally, target, found->work, line, verdict, &expected);
    return true;
}

/* After --resume the tally is of the whole record, not only of this run. False: errno has the
 * reason. */
bool facts_session_recount(facts_session *s)
{
    recount r = { .session = s, .index = calloc(s->work_count + 1, sizeof *r.index) };
    facts_tally_free(&s->tally);
    facts_tally_init(&s->tally, s->targets.at, s->targets.count, s->work, s->work_count);
    for (size_t i = 0; i < s->work_count; i++)
        r.index[i] = (index_entry){ s->work[i].name, i };
    qsort(r.index, s->work_count, sizeof *r.index, by_name);
    const bool read = facts_resume_rows(s->resume, recount_row, &r);
    free(r.index);
    return read;
}
