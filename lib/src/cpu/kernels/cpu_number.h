/* Conversion of tensor elements to fp32 and back: to nearest, ties to even. 8-bit types saturate
 * and have no infinity. For block-scaled types these functions convert the codes only; the view has
 * the scale factors. */
#ifndef FATTN_CPU_NUMBER_H
#define FATTN_CPU_NUMBER_H

#include <fattn/fattn.h>

float fattn__number_load(const void *data, int32_t dtype, int64_t at);
void fattn__number_store(void *data, int32_t dtype, int64_t at, float x);
/* `count` elements, from element `at` on. */
void fattn__numbers_load(float *to, const void *data, int32_t dtype, int64_t at, int64_t count);
void fattn__numbers_store(void *data, int32_t dtype, int64_t at, const float *from, int64_t count);

/* The nearest number that the type can represent; the largest finite number of an 8-bit type. */
float fattn__number_round(int32_t dtype, float x);
float fattn__number_most(int32_t dtype);
/* The value of an E8M0 code: 2^(code - 127); 255 is a NaN. */
float fattn__number_factor(uint8_t code);

#endif
