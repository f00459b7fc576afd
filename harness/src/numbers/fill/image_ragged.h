/* Ragged tensors in an image: elements outside every sequence belong to no tensor
 * (docs/numerics.md, sections 1 and 8). */
#ifndef FACTS_IMAGE_RAGGED_H
#define FACTS_IMAGE_RAGGED_H

#include "storage_image.h"

/* `image` was created from `tensor` as one long sequence, dim { 1, heads, tokens, channels }.
 * Sequence b has `len[b]` tokens, from token `from[b]` on. Tokens of no sequence become gaps: they
 * are poisoned before a run, and a change is an overrun. Sequences may touch, and may be empty.
 * Returns false if a sequence reaches outside the tensor, or if the image has no map. */
bool facts_image_pack(facts_image *image, const facts_tensor *tensor, const int64_t *from,
                      const int32_t *len, int64_t batch);

#endif
