#include "operations.h"

#include <math.h>

#include "fattn/fattn.h"
#include "fattn/score_mod.h"

static double unary(int op, double a)
{
    switch (op) {
    case FATTN_MOD_NEG:
        return -a;
    case FATTN_MOD_ABS:
        return fabs(a);
    case FATTN_MOD_EXP:
        return exp(a);
    case FATTN_MOD_LOG:
        return log(a);
    case FATTN_MOD_TANH:
        return tanh(a);
    case FATTN_MOD_SIGMOID:
        return a >= 0 ? 1 / (1 + exp(-a)) : exp(a) / (1 + exp(a));
    case FATTN_MOD_ERF:
        return erf(a);
    case FATTN_MOD_SIN:
        return sin(a);
    case FATTN_MOD_COS:
        return cos(a);
    case FATTN_MOD_TAN:
        return tan(a);
    case FATTN_MOD_SQRT:
        return sqrt(a);
    case FATTN_MOD_RSQRT:
        return 1 / sqrt(a);
    case FATTN_MOD_RECIPROCAL:
        return 1 / a;
    case FATTN_MOD_RELU:
        return a > 0 ? a : 0;
    case FATTN_MOD_SOFTPLUS:
        return a > 0 ? a + log1p(exp(-a)) : log1p(exp(a));
    case FATTN_MOD_CEIL:
        return ceil(a);
    case FATTN_MOD_FLOOR:
        return floor(a);
    default:
        return a == 0; /* not */
    }
}

double fattn__mod_compute(int op, double a, double b, double c)
{
    switch (op) {
    case FATTN_MOD_ADD:
        return a + b;
    case FATTN_MOD_SUB:
        return a - b;
    case FATTN_MOD_MUL:
        return a * b;
    case FATTN_MOD_DIV:
        return a / b;
    case FATTN_MOD_MAX:
        return fmax(a, b);
    case FATTN_MOD_MIN:
        return fmin(a, b);
    case FATTN_MOD_POW:
        return pow(a, b);
    case FATTN_MOD_MOD:
        return fmod(a, b);
    case FATTN_MOD_EQ:
        return a == b;
    case FATTN_MOD_NE:
        return a != b;
    case FATTN_MOD_LT:
        return a < b;
    case FATTN_MOD_LE:
        return a <= b;
    case FATTN_MOD_GT:
        return a > b;
    case FATTN_MOD_GE:
        return a >= b;
    case FATTN_MOD_AND:
        return a != 0 && b != 0;
    case FATTN_MOD_OR:
        return a != 0 || b != 0;
    case FATTN_MOD_SELECT:
        return a != 0 ? b : c;
    default:
        return unary(op, a);
    }
}
