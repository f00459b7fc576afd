/* Work that is made while a session runs. */
#include <stdlib.h>
#include <string.h>

#include "case/words/case_text.h"
#include "session.h"

bool facts_session_add(facts_session *s, const facts_work *work)
{
    facts_work *larger = facts_grow(s->work, s->work_count, sizeof *larger);
    s->work = larger ? larger : s->work;
    char *name = larger ? strdup(work->name) : NULL;
    if (!name)
        return false;
    s->work[s->work_count] = *work;
    s->work[s->work_count].name = name;
    if (s->tally.cells && !facts_tally_grow(&s->tally, s->work, s->work_count + 1)) {
        free(name);
        return false;
    }
    s->work_count++;
    s->order.work = s->work;
    s->order.work_count = s->work_count;
    return true;
}
