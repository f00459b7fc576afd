#include "operations.h"

#include <math.h>

#include "fattn/score_mod.h"

/* X(SYMBOL, what it computes of a, b and c) */
/* clang-format off */
#define COMPUTE_LIST(X)                                                                           \
    X(NEG, -a) X(ABS, fabs(a)) X(EXP, exp(a)) X(LOG, log(a)) X(TANH, tanh(a)) X(ERF, erf(a))      \
    X(SIN, sin(a)) X(COS, cos(a)) X(TAN, tan(a))                                                  \
    X(SIGMOID, a >= 0 ? 1 / (1 + exp(-a)) : exp(a) / (1 + exp(a))) X(SQRT, sqrt(a))               \
    X(RSQRT, 1 / sqrt(a)) X(RECIPROCAL, 1 / a)                                                    \
    X(RELU, a > 0 ? a : 0) X(SOFTPLUS, a > 0 ? a + log1p(exp(-a)) : log1p(exp(a)))                \
    X(CEIL, ceil(a)) X(FLOOR, floor(a))                                                           \
    X(ADD, a + b) X(SUB, a - b) X(MUL, a * b) X(DIV, a / b) X(MAX, fmax(a, b)) X(MIN, fmin(a, b)) \
    X(POW, pow(a, b)) X(MOD, fmod(a, b))                                                          \
    X(EQ, a == b) X(NE, a != b) X(LT, a < b) X(LE, a <= b) X(GT, a > b) X(GE, a >= b)             \
    X(AND, a != 0 && b != 0) X(OR, a != 0 || b != 0) X(NOT, a == 0) X(SELECT, a != 0 ? b : c)
/* clang-format on */

double fattn__mod_compute(int op, double a, double b, double c)
{
    switch ((fattn_mod_op)op) {
#define AS_CASE(symbol, value)                                                                     \
    case FATTN_MOD_##symbol:                                                                       \
        return (value);
        COMPUTE_LIST(AS_CASE)
#undef AS_CASE
    }
    return NAN; /* no operation */
}
