/* The worker's mouth: JSON Lines on a private descriptor, one write each. */
#ifndef FACTS_REPLY_H
#define FACTS_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Takes descriptor 1 for replies and points 1 at 2, so that a library that prints does no harm. False: no descriptor left. */
bool facts_reply_open(void);
/* Gives descriptor 1 back, for the program that this process becomes. */
void facts_reply_hand_on(void);
/* Writes `object` (stolen) as one line. A supervisor that is gone ends the worker: exits 1. */
void facts_reply(json_t *object);
/* What is in hand from now on; config < 0: none. */
void facts_reply_stage(int64_t id, const char *stage, int32_t config);
/* `row` is stolen. bye: the context is lost or cannot be trusted, this process ends by itself; not last: the case has more
 * configurations. */
void facts_reply_row(int64_t id, json_t *row, bool last, bool bye);
/* No answer: the context was dead before anything of this case was launched. Another worker is to be asked; this process ends by
 * itself. */
void facts_reply_again(int64_t id);
/* One turn of what is kept; `turn` is stolen. bye: as of a row. */
void facts_reply_turn(int64_t id, json_t *turn, bool bye);
/* engine=all with nothing left; nothing is kept of this case. */
void facts_reply_none(int64_t id);

#endif
