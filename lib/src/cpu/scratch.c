#include "scratch.h"

#include "attention.h"

static size_t padded(int64_t floats)
{
    return ((size_t)floats * sizeof(float) + 63) / 64 * 64;
}

size_t fattn__cpu_scratch_bytes(const fattn_problem *p)
{
    int64_t wide = p->dim_qk > p->dim_v ? p->dim_qk : p->dim_v;
    return 4 * padded(FATTN__ROWS * wide) + 4 * padded(FATTN__KEYS * wide) + 2 * padded(FATTN__ROWS * FATTN__KEYS) +
           4 * padded(FATTN__ROWS);
}

static float *take(char **at, int64_t floats)
{
    char *here = *at;
    *at += padded(floats);
    return (float *)(void *)here;
}

fattn__scratch fattn__scratch_at(const fattn_problem *p, char *base, int thread)
{
    int64_t wide = p->dim_qk > p->dim_v ? p->dim_qk : p->dim_v;
    char *at = base + (size_t)thread * fattn__cpu_scratch_bytes(p);
    fattn__scratch s;
    s.q = take(&at, FATTN__ROWS * wide);
    s.d_o = take(&at, FATTN__ROWS * wide);
    s.o = take(&at, FATTN__ROWS * wide);
    s.acc_q = take(&at, FATTN__ROWS * wide);
    s.k = take(&at, FATTN__KEYS * wide);
    s.v = take(&at, FATTN__KEYS * wide);
    s.acc_k = take(&at, FATTN__KEYS * wide);
    s.acc_v = take(&at, FATTN__KEYS * wide);
    s.s = take(&at, FATTN__ROWS * FATTN__KEYS);
    s.dp = take(&at, FATTN__ROWS * FATTN__KEYS);
    s.max = take(&at, FATTN__ROWS);
    s.sum = take(&at, FATTN__ROWS);
    s.stats = take(&at, FATTN__ROWS);
    s.row = take(&at, FATTN__ROWS);
    return s;
}
