/* Limits the number of workers that use one GPU at the same time. Each worker has its own context, and a GPU runs the kernels of
 * one context at a time. Workers that all launch at once therefore wait longer for each other than workers that wait for a place.
 * The limit only affects speed. The kernel frees the place of a worker that ends, and a worker that has waited too long continues
 * without a place. */
#ifndef FACTS_GPU_SEMAPHORE_H
#define FACTS_GPU_SEMAPHORE_H

#include <stdbool.h>
#include <stdint.h>

#define FACTS_GPU_AT_ONCE_MAX 64

/* Sets the limit for GPU `ordinal` to `places` workers; 0: no limit. With a limit, descriptor 3 has to be the run's file. */
void facts_gpu_semaphore(int32_t ordinal, int32_t places);
/* Takes a place, unless this worker has one. Only one thread calls these functions. */
void facts_gpu_acquire(void);
/* Gives the place back. Returns whether this worker had one. */
bool facts_gpu_release(void);

#endif
