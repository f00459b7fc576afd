/* The word that was probably meant. */
#ifndef FACTS_NEAREST_H
#define FACTS_NEAREST_H

#include <stddef.h>

/* Of `words` (at least one) the one with the fewest edits; of equals the first. */
const char *facts_nearest_word(const char *asked, const char *const *words, size_t count);

#endif
