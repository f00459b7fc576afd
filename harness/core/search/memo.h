/* The answers of one target, by canonical name and attempt (1 the first time, 2 when repeated). No
 * question is asked twice. A memo that is read from a record lets a search continue where it
 * stopped. */
#ifndef FACTS_MEMO_H
#define FACTS_MEMO_H

#include "reported.h"

typedef struct facts_memo facts_memo;             /* owner; opaque */
typedef struct facts_memo_entry facts_memo_entry; /* one question; opaque */

typedef enum facts_memo_state {
    FACTS_MEMO_UNKNOWN,
    FACTS_MEMO_ASKED,
    FACTS_MEMO_ANSWERED
} facts_memo_state;

facts_memo *facts_memo_new(void);
void facts_memo_free(facts_memo *memo);
/* From now on every answer is a symptom, not only failures. Two answers are equal if the property
 * that `by` names is equal; numbers in a reason are ignored. */
void facts_memo_compare(facts_memo *memo, facts_by by);

/* Returns the answer if there is one. *answer is valid until the memo changes. */
facts_memo_state facts_memo_get(const facts_memo *memo, const char *name, int attempt,
                                facts_answer *out);
/* Notes that the question was asked. */
facts_memo_entry *facts_memo_ask(facts_memo *memo, const char *name, int attempt);
/* Adds one row of the answer. */
void facts_memo_row(facts_memo *memo, facts_memo_entry *entry, const facts_line *row);
/* No other row follows. */
void facts_memo_end(facts_memo *memo, facts_memo_entry *entry);
/* With engine=all: the first configuration that has no row. */
int facts_memo_config(const facts_memo_entry *entry);
size_t facts_memo_answered(const facts_memo *memo); /* how many */

/* Reads a record: its starts and rows in order. `drawn` is called for the last row of a case of
 * group `group`. `before` is the verdict that the row replaces, or FACTS_VERDICT_COUNT. A case that
 * was started `most_starts` times and never ended counts as answered, because it ends the whole
 * run. */
typedef struct facts_memo_load {
    facts_memo *memo;
    const char *build, *device, *group;
    void *context;
    void (*drawn)(void *context, const char *name, const facts_answer *answer,
                  facts_verdict before);
} facts_memo_load;

void facts_memo_load_line(facts_memo_load *load, const facts_line *line);
/* Returns how many were given up. */
size_t facts_memo_load_end(facts_memo *memo, int most_starts);

#endif
