/* Shared by the files of the session. */
#ifndef FACTS_SESSION_PARTS_H
#define FACTS_SESSION_PARTS_H

#include "session.h"

/* Names the run, opens its record if it has one, and writes the first line. Returns 0, or 2 or 3
 * with a line on stderr. */
int facts_session_open_record(facts_session *session);
/* Writes the last line. A failure is noted in `counts`. */
void facts_session_end_record(facts_session *session);
/* After --resume: counts the whole record again. False: errno has the reason. */
bool facts_session_recount(facts_session *session);

#endif
