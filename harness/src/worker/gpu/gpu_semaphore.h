/* Lets few workers of a run use one GPU at the same time. Each worker has its own context, and a GPU runs the kernels of one
 * context at a time: workers that all launch at once wait longer for each other than those that wait for a place.
 * It is for speed alone. The kernel frees the place of a worker that ends, and who waits too long goes ahead. */
#ifndef FACTS_GPU_SEMAPHORE_H
#define FACTS_GPU_SEMAPHORE_H

#include <stdbool.h>
#include <stdint.h>

#define FACTS_GPU_AT_ONCE_MAX 64

/* From now on `places` workers at once use GPU `ordinal`; 0: all of them. With places, descriptor 3 has to be the run's file. */
void facts_gpu_semaphore(int32_t ordinal, int32_t places);
/* Takes a place. Without effect where this worker has one. One thread calls these. */
void facts_gpu_acquire(void);
/* Gives the place back. Returns whether there was one. */
bool facts_gpu_release(void);

#endif
