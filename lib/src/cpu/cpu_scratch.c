#include "cpu_scratch.h"

#include "cpu_attention.h"
#include "liars/lies.h"
#include "problem/layout.h"

static size_t padded(int64_t floats)
{
    return ((size_t)floats * sizeof(float) + 63) / 64 * 64;
}

size_t fattn__cpu_scratch_bytes(const fattn_problem *p)
{
    const int64_t R = FATTN__ROWS, K = FATTN__KEYS, Q = fattn__padded(p->dim_qk),
                  V = fattn__padded(p->dim_v), M = fattn__dtype_is_mx(p->dtype), G = FATTN__TESTING;
#define AS_BYTES(name, floats) +padded(floats)
    return 0 FATTN__SCRATCH_LIST(AS_BYTES);
#undef AS_BYTES
}

fattn__scratch fattn__scratch_at(const fattn_problem *p, char *base, int thread)
{
    const int64_t R = FATTN__ROWS, K = FATTN__KEYS, Q = fattn__padded(p->dim_qk),
                  V = fattn__padded(p->dim_v), M = fattn__dtype_is_mx(p->dtype), G = FATTN__TESTING;
    char *at = base + (size_t)thread * fattn__cpu_scratch_bytes(p);
    fattn__scratch s = { .wide_q = Q, .wide_v = V };
#define TAKE(name, floats)                                                                         \
    s.name = (float *)(void *)at;                                                                  \
    at += padded(floats);
    FATTN__SCRATCH_LIST(TAKE)
#undef TAKE
    return s;
}
