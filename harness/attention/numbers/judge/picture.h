/* The places of the wrong elements of an answer, in words. Pure. */
#ifndef FACTS_PICTURE_H
#define FACTS_PICTURE_H

#include "judge.h"

#define FACTS_PICTURE_TEXT 400

/* The elements of one compared tensor: a facts_finding for each, dense over its dims. Rows without
 * an expected value are FACTS_RIGHT, except for padded rows with other contents. */
typedef struct facts_marks {
    int64_t dim[4];
    unsigned char *at; /* the caller's */
    bool keys;         /* dimension 2 counts keys (dK, dV), not rows */
} facts_marks;

/* Two lines: the pattern, for example "one head (1), from column 64 on" or "all"; the counts. Returns
 * `out`. */
const char *facts_picture(const facts_marks *marks, char out[FACTS_PICTURE_TEXT]);

/* Fills marks->at with the finding of facts_judge_tensor for each element. */
void facts_judge_marks(const facts_tensor *tensor, const void *storage, const facts_rule *rule,
                       facts_marks *marks);

#endif
