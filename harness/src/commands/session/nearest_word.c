#include "nearest_word.h"

#include <string.h>

#define LONGEST 40

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein distance of the first LONGEST letters. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strnlen(a, LONGEST), m = strnlen(b, LONGEST), row[LONGEST + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t above = row[j];
            row[j] = least(least(row[j - 1], above) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[m];
}

const char *facts_nearest_word(const char *asked, const char *const *words, size_t count)
{
    const char *best = words[0];
    for (size_t i = 1; i < count; i++)
        if (distance(asked, words[i]) < distance(asked, best))
            best = words[i];
    return best;
}
