/* Adds work while a session runs. */
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "words/case_text.h"

/* Makes room after the last. */
static void append(facts_session *s)
{
    s->work = facts_grow(s->work, s->work_count, sizeof *s->work);
    if (s->tally.cells)
        facts_tally_grow(&s->tally, s->work, s->work_count + 1);
    s->work[s->work_count++].name = NULL;
    s->order.work = s->work;
    s->order.work_count = s->work_count;
}

/* Cases that are added together are asked in the order of their places. */
static size_t take_lowest(facts_session *s)
{
    size_t lowest = 0;
    for (size_t i = 1; i < s->vacant_count; i++)
        if (s->vacant[i] < s->vacant[lowest])
            lowest = i;
    size_t place = s->vacant[lowest];
    s->vacant[lowest] = s->vacant[--s->vacant_count];
    return place;
}

size_t facts_session_add(facts_session *s, const facts_work *work)
{
    char *name = strdup(work->name); /* `work` may be in the list that grows */
    if (!s->vacant_count)
        append(s);
    size_t place = s->vacant_count ? take_lowest(s) : s->work_count - 1;
    s->work[place] = *work;
    s->work[place].name = name;
    return place;
}

void facts_session_vacate(facts_session *s, size_t work)
{
    facts_tally_retire(&s->tally, work);
    free((char *)s->work[work].name);
    s->work[work].name = NULL;
    s->vacant = facts_grow(s->vacant, s->vacant_count, sizeof *s->vacant);
    s->vacant[s->vacant_count++] = work;
}
