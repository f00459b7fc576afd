#include "gpu_semaphore.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "worker/clock/spent.h"

#define FILE_OF_RUN 3
#define NAP_NS 100000
/* A place that is held so long is held by a huge case, or by a kernel that does not end. */
#define MOST_NAPS 2500

static struct {
    int32_t ordinal, places;
    int32_t held; /* 1 and more: the place; 0: none */
} semaphore;

/* Byte n of the file is a place. A process loses its locks when it ends. */
static bool lock(short type, int32_t place)
{
    struct flock range = { .l_type = type,
                           .l_whence = SEEK_SET,
                           .l_start = semaphore.ordinal * FACTS_GPU_AT_ONCE_MAX + place,
                           .l_len = 1 };
    return fcntl(FILE_OF_RUN, F_SETLK, &range) == 0;
}

void facts_gpu_semaphore(int32_t ordinal, int32_t places)
{
    semaphore.ordinal = ordinal;
    semaphore.places = places;
    semaphore.held = 0;
}

void facts_gpu_acquire(void)
{
    const facts_spent before = facts_spend(FACTS_SPENT_WAIT);
    for (int nap = 0; nap < MOST_NAPS && !semaphore.held; nap++) {
        for (int32_t place = 1; place <= semaphore.places && !semaphore.held; place++)
            semaphore.held = lock(F_WRLCK, place) ? place : 0;
        if (semaphore.places == 0)
            break;
        if (!semaphore.held)
            nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    }
    facts_spend(before);
}

bool facts_gpu_release(void)
{
    const bool held = semaphore.held != 0;
    if (held)
        lock(F_UNLCK, semaphore.held);
    semaphore.held = 0;
    return held;
}
