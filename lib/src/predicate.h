/* The predicates of rules (policy.h): tests over the fields of a resolved problem. Read and answered in one go: a rule is asked when something
 * is decided, never in a call. */
#ifndef FATTN_PREDICATE_H
#define FATTN_PREDICATE_H

#include "fattn/fattn.h"

/* Is `text` a predicate? Returns FATTN_OK; FATTN_BAD_PROBLEM (column and what is wrong in the sentence). */
fattn_status fattn__predicate_check(const char *text);

/* Does it hold for a resolved problem? NULL holds always. False for what fattn__predicate_check refuses. Keeps no sentence. */
bool fattn__predicate_holds(const char *text, const fattn_problem *resolved);

/* A sentence with each {field} replaced by its value; cut at `capacity`. */
void fattn__predicate_fill(char *out, size_t capacity, const char *sentence, const fattn_problem *resolved);

#endif
