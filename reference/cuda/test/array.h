/* One array of the answers of two oracles: what may lie between them. */
#ifndef FREF_CUDA_TEST_ARRAY_H
#define FREF_CUDA_TEST_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "comparison.h"

/* One array of the answers: `bound` (NULL: none) of the same element tells the magnitude of the
 * sum. */
typedef struct array {
    const char *name;
    double *expected, *got, *on_device; /* got: NULL, then what is read from the device */
    const double *bound;
    double unit; /* roundoff: bound over it is the sum's magnitude */
    int64_t count;
    const struct array *of; /* what it says the degrees of freedom of: a row is `width` elements, */
    int64_t width;
} array;

/* Counts in `t`, and prints, an array with an element that differs by more than is allowed.
 * `conditioning`: relative, of all sums.
 */
void compare_array(const array *a, double conditioning, uint64_t seed, tally *t);

#endif
