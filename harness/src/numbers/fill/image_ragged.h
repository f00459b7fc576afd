/* Ragged tensors in an image: elements outside every sequence belong to no tensor (docs/numerics.md, sections 1 and 8). */
#ifndef FACTS_IMAGE_RAGGED_H
#define FACTS_IMAGE_RAGGED_H

#include "storage_image.h"

/* `image` was created of `tensor` as one long sequence, dim { 1, heads, tokens, channels }. Sequence b has `len[b]` tokens from
 * token `from[b]` on; the tokens of none are gaps from now on: poisoned before a run, an overrun when they change. Sequences may
 * touch, and be empty. Returns false when one reaches outside the tensor, or the image has no map. */
bool facts_image_pack(facts_image *image, const facts_tensor *tensor, const int64_t *from, const int32_t *len, int64_t batch);

#endif
