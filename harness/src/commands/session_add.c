/* Work that is made while a session runs. */
#include <stdlib.h>
#include <string.h>

#include "session.h"

bool facts_session_add(facts_session *s, const facts_work *work)
{
    if (s->work_count == s->work_room) {
        size_t room = s->work_room ? s->work_room * 2 : 256;
        facts_work *larger = realloc(s->work, room * sizeof *larger);
        if (!larger)
            return false;
        s->work = larger;
        s->work_room = room;
    }
    char *name = strdup(work->name);
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
