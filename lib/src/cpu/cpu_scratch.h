/* The scratch memory of one thread, a part of the caller's workspace. Every array starts on a cache
 * line, and its rows have a multiple of 16 floats. */
#ifndef FATTN_CPU_SCRATCH_H
#define FATTN_CPU_SCRATCH_H

#include "cpu_tile.h"

/* X(name, floats). R, K: rows and keys of a tile. Q, V: padded channels of Q, K and of V, O. M: 1
 * for block-scaled types, whose backward reads Q, K and dO twice and dO in 16 bits; otherwise 0. G:
 * 1 for a kernel that works as a GPU's, with parts of the keys and of a group; otherwise 0. */
/* clang-format off */
#define FATTN__SCRATCH_LIST(X)                                                        \
    X(q, R * Q) X(qt, R * Q) X(d_o, R * V) X(o, R * V) X(acc_q, R * Q)                \
    X(k, K * Q) X(kt, K * Q) X(v, K * V) X(vt, K * V) X(acc_k, K * Q) X(acc_v, K * V) \
    X(q_t, M * R * Q) X(k_t, M * K * Q) X(do_t, M * R * V) X(do_16, M * R * V)        \
    X(s, R * K) X(dp, R * K) X(raw, R * K) X(acc, R * K)                              \
    X(max, R) X(sum, R) X(rescale, R) X(top, R) X(peak, R) X(stats, R) X(row, R)      \
    X(all_o, G * R * V) X(all, G * 4 * R) X(group_k, G * K * Q) X(group_v, G * K * V)
/* clang-format on */

#define FATTN__AS_MEMBER_(name, floats) float *name;
typedef struct fattn__scratch {
    FATTN__SCRATCH_LIST(FATTN__AS_MEMBER_)
    int64_t wide_q, wide_v; /* padded channels */
} fattn__scratch;
#undef FATTN__AS_MEMBER_

fattn__scratch fattn__scratch_at(const fattn_problem *p, char *base, int thread);

#endif
