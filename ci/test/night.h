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

#endif
