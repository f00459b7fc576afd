/* The places of the wrong elements of an answer, for a reader: two small maps of characters, and a
 * name for the pattern. Pure. */
#ifndef FACTS_PICTURE_H
#define FACTS_PICTURE_H

#include "judge.h"

#define FACTS_PICTURE_TEXT 8192
#define FACTS_PICTURE_NAME 200

/* The elements of one compared tensor: a facts_finding for each, dense over its dims. Rows without
 * an expected value are FACTS_RIGHT, except for padded rows with other contents. */
typedef struct facts_marks {
    int64_t dim[4];
    unsigned char *at; /* the caller's */
    bool keys;         /* dimension 2 counts keys (dK, dV), not rows */
} facts_marks;

/* The name only, for example "head 1, from column 64 on" or "all". Returns `out`. */
const char *facts_picture_name(const facts_marks *marks, char out[FACTS_PICTURE_NAME]);
/* The name, counts, a map over (b, h), and a map over (s, d) of all heads with wrong elements.
 * Lines end with a newline. Returns `out`. */
const char *facts_picture_draw(const facts_marks *marks, char out[FACTS_PICTURE_TEXT]);

/* Fills marks->at with the finding of facts_judge_tensor for each element. */
void facts_judge_marks(const facts_tensor *tensor, const void *storage, const facts_rule *rule,
                       facts_marks *marks);

#endif
