/* What was asked and how it ended, by canonical name and attempt (1 the first time, 2 when it is repeated …). Of one target.
 * Nothing in it is asked twice; read back from a record it is what makes a search go on where it was. */
#ifndef FACTS_MEMO_H
#define FACTS_MEMO_H

#include "reported.h"
#include "symptom.h"

typedef struct facts_memo facts_memo; /* owner; opaque */
typedef uint32_t facts_memo_id;
#define FACTS_MEMO_NONE UINT32_MAX

typedef enum facts_memo_state { FACTS_MEMO_UNKNOWN, FACTS_MEMO_ASKED, FACTS_MEMO_ANSWERED } facts_memo_state;

facts_memo *facts_memo_new(void);
void facts_memo_free(facts_memo *memo);
/* From now on every answer is a symptom, not failures alone: two are the same when what `by` names is, numbers in a reason aside. */
void facts_memo_compare(facts_memo *memo, facts_by by);

/* The answer when there is one; it lives until the memo changes. */
facts_memo_state facts_memo_get(const facts_memo *memo, const char *name, int attempt, facts_answer *out);
/* It is asked from now on. FACTS_MEMO_NONE: out of memory. */
facts_memo_id facts_memo_ask(facts_memo *memo, const char *name, int attempt);
/* One row of the answer; `last`: there is no other. False: out of memory. */
bool facts_memo_row(facts_memo *memo, facts_memo_id id, const facts_line *row, bool last);
/* With engine=all: the first configuration that has no row. */
int facts_memo_config(const facts_memo *memo, facts_memo_id id);
size_t facts_memo_answered(const facts_memo *memo); /* how many */
/* Drops an answer without failures; the id may be another question's from now on. FACTS still knows of the last two million,
 * but for a few, that they were asked. */
void facts_memo_forget(facts_memo *memo, facts_memo_id id);
/* The case was asked, and forgotten. True by mistake for one in 10^18 other cases. */
bool facts_memo_forgot(const facts_memo *memo, const char *name);

/* A record: its starts and rows in their order, then the end. `drawn` hears of the last row of a case of group
 * `group` (`before`: the verdict that the row replaces, FACTS_VERDICT_COUNT: none);
 * what was started and never ended `most_starts` times counts as answered: it takes everything down with it. */
typedef struct facts_memo_load {
    facts_memo *memo;
    const char *build, *device, *group;
    void *context;
    void (*drawn)(void *context, const char *name, const facts_answer *answer, facts_verdict before);
    bool failed; /* out of memory */
} facts_memo_load;

bool facts_memo_load_line(facts_memo_load *load, const facts_line *line);
/* Returns how many were given up. */
size_t facts_memo_load_end(facts_memo *memo, int most_starts);

#endif
