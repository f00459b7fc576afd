/* What a flash kernel in fp32, with its rounding points, makes of a test's data: the harness's
 * emulated kernel, which can be told to lie. */
#ifndef FREF_TESTING_FLASH_ANSWERS_H
#define FREF_TESTING_FLASH_ANSWERS_H

#include "flash/flash.h"
#include "problems.h"

/* Dense answers, already rounded to their types. Owner. */
typedef struct flash_answers {
    double *o, *lse, *max, *dq, *dk, *dv, *dbias;
} flash_answers;

/* Forward, and backward from the data's o and stats. believed: the problem as the kernel
 * understands it; NULL: the data's. Parts and partial sums of dBias are cast as those of dK and dV
 * are (facts_kernel.partials_fp32). */
void flash_answers_create(flash_answers *out, const data *d, const facts_kernel *kernel,
                          const fref_problem *believed);
void flash_answers_destroy(flash_answers *answers);
/* Puts the kernel's own O and LSE where the data's o and stats are. */
void flash_answers_feed(const flash_answers *answers, data *d);

#endif
