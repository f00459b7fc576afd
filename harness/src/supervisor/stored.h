/* Between the supervisor and the store of answers: described devices alone, whole answers alone. */
#ifndef FACTS_STORED_H
#define FACTS_STORED_H

#include "supervision.h"

/* Finds the target's scope in the store: from now on it is answered from there where it can be, and its answers are kept. */
void facts_stored_open(facts_supervision *run, size_t target);
/* Writes the rows of an item that is to do, and is done with it, if the store has its answer. */
bool facts_stored_answer(facts_supervision *run, size_t target, size_t work);

/* A worker's answer as it comes, row by row; `keep` is what has come of it. A row that is no answer for the next time (inconclusive, an environment
 * that is not right) spoils it. */
void facts_stored_row(facts_text *keep, facts_verdict verdict, const facts_line *row, const char *text, size_t length, double wall_ms);
/* It is whole: kept for the next time, unless it was spoilt. `keep` may be NULL. */
void facts_stored_whole(facts_supervision *run, size_t target, size_t work, facts_text *keep);

#endif
