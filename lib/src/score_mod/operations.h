/* Computes one operation in double precision: for folding constants and for evaluating programs. Edge cases:
 *
 *   max, min     of a NaN and a number: the number
 *   mod          the remainder of the division rounded towards zero, as C's fmod
 *   comparisons  with a NaN: 0, but ne: 1
 *   select       the input that is not chosen may have any value */
#ifndef FATTN_SCORE_MOD_OPERATIONS_H
#define FATTN_SCORE_MOD_OPERATIONS_H

double fattn__mod_compute(int op, double a, double b, double c);

#endif
