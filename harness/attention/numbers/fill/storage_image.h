/* A storage with its surroundings: guard, storage (elements and gaps), guard. docs/numerics.md,
 * section 8.
 *
 * An image describes the positions only. The caller owns the bytes (`bytes` of them), so one image
 * serves the data that was sent and the data that came back. Tensors that share a storage
 * (interleaved layouts) share an image. Every byte that belongs to no tensor is poison and must not
 * change. */
#ifndef FACTS_IMAGE_H
#define FACTS_IMAGE_H

#include "numbers/poison.h"
#include "problem/case_problem.h"

typedef struct facts_image {
    int32_t dtype;
    int64_t elements;    /* of the storage, with its gaps */
    size_t front, bytes; /* bytes before the storage (guard and skew); all bytes */
    uint64_t *owned;     /* a bit for each element of the storage: does it belong to a tensor? NULL:
                            after facts_image_measure */
} facts_image;

/* Creates the image of the storage that `count` tensors share (1: a storage of its own). It is
 * empty until created; a zeroed image may be destroyed. Returns false if memory is short, or if a
 * tensor reaches outside its storage. */
bool facts_image_create(facts_image *out, const facts_tensor *const tensors[], size_t count);
/* Only the positions, for bytes that are never on the host. False if a tensor reaches outside its
 * storage. */
bool facts_image_measure(facts_image *out, const facts_tensor *const tensors[], size_t count);
void facts_image_destroy(facts_image *image);

/* The address of element 0 of the storage in `bytes`. On a device, image->front is its offset. */
void *facts_image_storage(const facts_image *image, void *bytes);
/* The number of elements before and after the storage, and the bytes before those, which are no
 * whole element. */
int64_t facts_image_before(const facts_image *image);
int64_t facts_image_after(const facts_image *image);
size_t facts_image_odd(const facts_image *image);

/* Writes the guards only: for inputs, whose storage the fills have written. */
void facts_image_guard(const facts_image *image, facts_pattern pattern, void *bytes);
/* Writes guards, gaps and elements: for outputs. */
void facts_image_poison(const facts_image *image, facts_pattern pattern, void *bytes);
/* After a run over poisoned bytes: the number of elements of guards and gaps that changed. */
int64_t facts_image_overrun(const facts_image *image, facts_pattern pattern, const void *bytes);

/* Ragged tensors: elements outside every sequence belong to no tensor (docs/numerics.md, sections 1 and 8).
 * `image` was created from `tensor` as one long sequence, dim { 1, heads, tokens, channels }.
 * Sequence b has `len[b]` tokens, from token `from[b]` on. Tokens of no sequence become gaps: they
 * are poisoned before a run, and a change is an overrun. Sequences may touch, and may be empty.
 * Returns false if a sequence reaches outside the tensor, or if the image has no map. */
bool facts_image_pack(facts_image *image, const facts_tensor *tensor, const int64_t *from,
                      const int32_t *len, int64_t batch);

#endif
