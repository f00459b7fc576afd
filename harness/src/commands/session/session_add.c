/* Adds work while a session runs. */
#include <stdlib.h>
#include <string.h>

#include "case/words/case_text.h"
#include "session.h"

/* Makes room after the last. */
static bool append(facts_session *s)
{
    facts_work *larger = facts_grow(s->work, s->work_count, sizeof *larger);
    if (!larger)
        return false;
    s->work = larger;
    if (s->tally.cells && !facts_tally_grow(&s->tally, s->work, s->work_count + 1))
        return false;
    s->work[s->work_count++].name = NULL;
    s->order.work = s->work;
    s->order.work_count = s->work_count;
    return true;
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
    char *name = strdup(work->name);
    if (!name || (!s->vacant_count && !append(s))) {
        free(name);
        return FACTS_NO_PLACE;
    }
    size_t place = s->vacant_count ? take_lowest(s) : s->work_count - 1;
    s->work[place] = *work;
    s->work[place].name = name;
    return place;
}

void facts_session_vacate(facts_session *s, size_t work)
{
    size_t *larger = facts_grow(s->vacant, s->vacant_count, sizeof *larger);
    s->on_free(s, work);
    facts_tally_retire(&s->tally, work);
    free((char *)s->work[work].name);
    s->work[work].name = NULL;
    if (!larger)
        return; /* the place stays empty */
    s->vacant = larger;
    s->vacant[s->vacant_count++] = work;
}
