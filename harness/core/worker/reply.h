/* The worker's replies: JSON Lines on a private descriptor, one write for each. */
#ifndef FACTS_REPLY_H
#define FACTS_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Keeps descriptor 1 for replies and makes 1 a copy of 2, so that output of a library does not mix
 * with replies. False: no descriptor left. */
bool facts_reply_open(void);
/* Restores descriptor 1 for the program that replaces this process. */
void facts_reply_hand_on(void);
/* Writes `object` (stolen) as one line. Exits with 1 if the supervisor has ended. */
void facts_reply(json_t *object);
/* Reports the current step; config < 0: none. */
void facts_reply_stage(int64_t id, const char *stage, int32_t config);
/* Writes a row (stolen). bye: the context is lost or cannot be trusted, so this process ends
 * itself. last: the case has no further configuration. */
void facts_reply_row(int64_t id, json_t *row, bool last, bool bye);
/* Writes that there is no answer: the context was dead before this case launched anything. The
 * supervisor asks another worker, and this process ends itself. */
void facts_reply_again(int64_t id);
/* Writes the times of one turn (`turn` is stolen). */
void facts_reply_turn(int64_t id, json_t *turn);
/* Writes that engine=all has no further configuration, that no case is kept, or that a launch failed. bye: as for a row. */
void facts_reply_none(int64_t id, bool bye);

#endif
