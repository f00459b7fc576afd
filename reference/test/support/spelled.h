/* What fref_codebook must agree with: the same problem with its queries and keys written out, answered by fref_forward and
 * fref_backward. */
#ifndef FREF_TESTING_SPELLED_H
#define FREF_TESTING_SPELLED_H

#include <fref/codebook.h>

/* The vectors that the codes stand for, f32, [dim[0] batch, dim[1] heads, dim[2] s, dim[3]]. The caller frees data. */
void spell(fref_tensor *out, const fref_tensor *book, const uint8_t *code, const int64_t stride[2], const int64_t dim[4]);

#endif
