/* Text functions of the case language: errors with a place, words, numbers. */
#ifndef FACTS_CASE_TEXT_H
#define FACTS_CASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fail.h"
#include "span.h"

facts_span facts_span_of(const char *text);
bool facts_span_is(facts_span span, const char *word);
/* Returns the part before `separator` and removes both from *rest. Without a separator it returns
 * the whole rest. */
facts_span facts_span_cut(facts_span *rest, char separator);
bool facts_is_blank(char letter); /* within a line */
facts_span facts_span_trim(facts_span text);
/* Trims the span and removes its comment. A # begins a comment at the start or after a blank;
 * inside a word it is a letter (owner/project#12). */
facts_span facts_span_without_comment(facts_span text);
/* The next word of a list separated by blanks; empty at its end. */
facts_span facts_span_word(facts_span *rest);

#define FACTS_QUOTE_MAX 80
/* Makes a piece of input safe to print: cuts it to a fixed length and writes '?' for unprintable
 * bytes. Returns `out`. */
const char *facts_quote(char out[FACTS_QUOTE_MAX], facts_span span);

/* The nearest word: the fewest letters changed, added, removed or exchanged with their neighbour.
 * Two such mistakes are the most, and a word of four letters or fewer may have one. */
typedef struct facts_nearest {
    facts_span asked;
    const char *best;
    size_t best_length, distance;
} facts_nearest;

facts_nearest facts_nearest_start(facts_span asked);
void facts_nearest_offer(facts_nearest *nearest, const char *word, size_t length);
/* Returns the nearest word of `words`, or NULL if none is near. The first one wins a tie. */
const char *facts_nearest_word(const char *asked, const char *const *words, size_t count);
/* "; did you mean X?" or "". Returns `out`. */
const char *facts_nearest_hint(const facts_nearest *nearest, char out[FACTS_QUOTE_MAX]);

/* Reads a decimal number without a sign. False if the whole span is not a number, or if it is above
 * `most`. */
bool facts_read_integer(facts_span span, uint64_t most, uint64_t *out);
/* A finite decimal number, all of the span. */
bool facts_read_real(facts_span span, double *out);
/* The shortest text that reads back as `value`. */
void facts_write_real(char out[32], double value);

/* Makes room for one more element in an array of `count` that always grew by one. Returns the
 * array, which may have moved. NULL: no memory; the array is unchanged. */
void *facts_grow(void *array, size_t count, size_t size);
/* For qsort and bsearch of an array of texts. */
int facts_by_text(const void *a, const void *b);

#endif
