/* A clock that only goes forward. */
#ifndef FACTS_CLOCK_H
#define FACTS_CLOCK_H

#include <time.h>

/* Milliseconds since some moment before this process. */
static inline double facts_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

#endif
