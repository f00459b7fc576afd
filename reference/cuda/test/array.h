/* One array of the answers of two oracles: what may lie between them. */
#ifndef FREF_CUDA_TEST_ARRAY_H
#define FREF_CUDA_TEST_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "comparison.h"

/* Sigmas and bounds of O, dQ, dK and dV are made of rough sums (weigh.cuh): what adds up to them
 * may be above, never below. What is made of their quotients may differ either way. */
#define ABOVE 0.005

/* One array of the answers: `bound` (NULL: none) of the same element tells the magnitude of the
 * sum. */
typedef struct array {
    const char *name;
    double *expected, *got, *on_device; /* got: NULL, then what is read from the device */
    const double *bound;
    double unit; /* roundoff: bound over it is the sum's magnitude */
    int64_t count;
    bool above;   /* made of rough sums */
    double floor; /* what these may add, absolute, where all weights are small beside what they are
                     made of */
    double either_way;      /* what these may make of it, relative; of an amax: absolute */
    const struct array *of; /* what it says the degrees of freedom of: a row is `width` elements, */
    const struct array *sigma;
    int64_t width;
} array;

/* Counts in `t`, and prints, an array with an element that differs by more than is allowed.
 * `conditioning`: relative, of all sums.
 */
void compare_array(const array *a, double conditioning, uint64_t seed, tally *t);

#endif
