/* codebook.h: attention whose queries and keys are drawn from a few vectors (docs/numerics.md section 7), answered exactly in
 * O(rows codes dim): what a sequence of 131072 can be judged with.
 *
 *   q of row i = rho[a_i]    k of key j = kappa[b_j]
 *
 * Rows with one code see one score per key code, so sums over keys become sums over codes of prefix sums. Answers agree with
 * fref_forward and fref_backward on the same data. Error model: T0, T1 and TL of docs/numerics.md; equal scores share a rounding,
 * so the P term of sigma adds what has one code before it squares, where that is more.
 */
#ifndef FREF_CODEBOOK_H
#define FREF_CODEBOOK_H

#include "fref.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fref_codes {
    int64_t count;        /* codes, 1..256; every a and b is below it */
    const uint8_t *a, *b; /* the code of row i of (b,h) is a[b stride_a[0] + h stride_a[1] + i]; b likewise, h a key head */
    int64_t stride_a[2], stride_b[2];
    const fref_tensor *rho, *kappa; /* element (b,h,code,c); h a query head, a key head. descale is what Q and K have */
} fref_codes;

/* Problem  no modification, bias, alibi, sink or dropout: ENOTSUP. Masks, lengths, grouped heads, scales and both samples are fine.
 * Tensors  v; and for the backward pass o, stats, d_o (may be NULL where `backward` is).
 * forward  may be NULL; o, its sigma and bound, lse, max, sum_exp and their taus are written; nothing else is
 * backward may be NULL; dq, dk, dv, their sigmas and bounds are written; nothing else is
 * Memory   beside the answers a few hundred MB at rows = keys = 131072, dim 128, 16 codes; one head at a time
 * Threads  as fref_forward
 * Returns  0, ENOMEM, ENOTSUP. */
int fref_codebook(const fref_problem *problem, const fref_codes *codes, const fref_tensor *v, const fref_tensor *o,
                  const fref_tensor *stats, const fref_tensor *d_o, const fref_rounding *rounding, const fref_forward_out *forward,
                  const fref_backward_out *backward);

#ifdef __cplusplus
}
#endif
#endif
