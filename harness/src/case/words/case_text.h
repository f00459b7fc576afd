/* Small things that every part of the case language needs: errors with a place, words, numbers. */
#ifndef FACTS_CASE_TEXT_H
#define FACTS_CASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fail.h"
#include "span.h"

facts_span facts_span_of(const char *text);
bool facts_span_is(facts_span span, const char *word);
/* The part before `separator`, which is taken off *rest together with the separator; the whole rest when there is none. */
facts_span facts_span_cut(facts_span *rest, char separator);
bool facts_is_blank(char letter); /* within a line */
facts_span facts_span_trim(facts_span text);
/* Trimmed, without what a # at the start or after a blank begins; inside a word it is a letter (owner/project#12). */
facts_span facts_span_without_comment(facts_span text);
/* The next word of a list separated by blanks; empty at its end. */
facts_span facts_span_word(facts_span *rest);

#define FACTS_QUOTE_MAX 80
/* A piece of input, safe to print: cut to a bearable length, what cannot be printed becomes '?'. Returns `out`. */
const char *facts_quote(char out[FACTS_QUOTE_MAX], facts_span span);

/* Nearest word: the fewest letters changed, added or taken away, at most a third of them (and one in any case). */
typedef struct facts_nearest {
    facts_span asked;
    const char *best;
    size_t best_length, distance;
} facts_nearest;

facts_nearest facts_nearest_start(facts_span asked);
void facts_nearest_offer(facts_nearest *nearest, const char *word, size_t length);
/* Of `words` (at least one) the one with the fewest letters changed, added or taken away, however many; of equals the first. */
const char *facts_nearest_word(const char *asked, const char *const *words, size_t count);
/* "; did you mean X?" or "". Returns `out`. */
const char *facts_nearest_hint(const facts_nearest *nearest, char out[FACTS_QUOTE_MAX]);

/* Decimal, no sign, all of the span; false when it is not one or above `most`. */
bool facts_read_integer(facts_span span, uint64_t most, uint64_t *out);
/* A finite decimal number, all of the span. */
bool facts_read_real(facts_span span, double *out);
/* The shortest text that reads back as `value`. */
void facts_write_real(char out[32], double value);

/* Room for one more in an array of `count`, to which nothing was ever added but one at a time: the array, perhaps elsewhere. NULL:
 * no memory, and the array is as it was. */
void *facts_grow(void *array, size_t count, size_t size);
/* For qsort and bsearch of an array of texts. */
int facts_by_text(const void *a, const void *b);

#endif
