/* Does the night ask (ci/nightly.sh)? By day a test program takes a few seconds, and what takes
 * longer has smaller inputs. */
#ifndef FACTS_TEST_NIGHT_H
#define FACTS_TEST_NIGHT_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool night(void)
{
    const char *all = getenv("FACTS_ALL");
    return all != NULL && *all != '\0';
}

/* Of how many repetitions with other values is one made? Under a sanitizer of four: it sees where
 * is read and written, and the program without a sanitizer sees the values. */
static inline int one_of(void)
{
#ifdef __SANITIZE_ADDRESS__
    return night() ? 1 : 4;
#else
    return 1;
#endif
}

#endif
