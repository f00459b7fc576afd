/* The two texts about a bucket: a file for cases/known (docs/known.md), and a paragraph for a report. Pure. */
#ifndef FACTS_STORY_H
#define FACTS_STORY_H

#include "findings.h"
#include "record/text.h"

typedef struct facts_story {
    const char *version; /* of FACTS */
    const char *origin;  /* "facts fuzz --seed 7" */
    const char *flags;   /* of the command that repeats it: "--cudnn 9.19.0-full-cu13 --device 0" */
    const char *date;    /* of today: "2026-11-22" */
} facts_story;

#define FACTS_STORY_ID 160
/* "nan-dq-e6-t0": names the bucket, its files and its group; letters, digits, - and _. Returns `out`. */
const char *facts_story_id(const facts_bucket *bucket, char out[FACTS_STORY_ID]);
void facts_story_known(facts_text *out, const facts_bucket *bucket, const facts_story *story);
void facts_story_paragraph(facts_text *out, const facts_bucket *bucket, const facts_story *story);
/* What differs between two cases: "fill=neglse instead of fill=gauss". One key is told. */
void facts_story_difference(facts_text *out, const facts_case *from, const facts_case *to);

#endif
