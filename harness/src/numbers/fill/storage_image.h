/* One storage as a device sees it, with what surrounds it: guard, storage (elements and gaps), guard. docs/numerics.md section 8.
 *
 * An image is the geometry; the bytes are the caller's, `bytes` of them, so that one image serves what was sent and what came back.
 * Tensors that share a storage (packed layouts) share an image. Everything that no tensor owns is poison and must not change.
 */
#ifndef FACTS_IMAGE_H
#define FACTS_IMAGE_H

#include "case/problem/case_problem.h"
#include "numbers/poison.h"

typedef struct facts_image {
    int32_t dtype;
    int64_t elements;    /* of the storage, gaps included */
    size_t front, bytes; /* bytes before the storage (guard and skew); bytes in all */
    uint64_t *owned;     /* a bit for each element of the storage that belongs to a tensor; NULL: only measured */
} facts_image;

/* The image of the storage that `count` tensors share (one: its own). Empty until created; destroy is fine on a zeroed image.
 * Returns false without memory, or when a tensor reaches outside its storage. */
bool facts_image_create(facts_image *out, const facts_tensor *const tensors[], size_t count);
/* The geometry alone, for bytes that are never here. False when a tensor reaches outside its storage. */
bool facts_image_measure(facts_image *out, const facts_tensor *const tensors[], size_t count);
void facts_image_destroy(facts_image *image);

/* Where element 0 of the storage lies in `bytes`; an offset for device addresses is image->front. */
void *facts_image_storage(const facts_image *image, void *bytes);
/* Elements before and after the storage; bytes before those, which make no whole element. */
int64_t facts_image_before(const facts_image *image);
int64_t facts_image_after(const facts_image *image);
size_t facts_image_odd(const facts_image *image);
bool facts_image_owns(const facts_image *image, int64_t element);

/* Guards alone: for inputs, whose storage the fills have written. */
void facts_image_guard(const facts_image *image, facts_pattern pattern, void *bytes);
/* Guards, gaps and elements: for outputs. */
void facts_image_poison(const facts_image *image, facts_pattern pattern, void *bytes);
/* After a run over poisoned bytes: how many elements of guards and gaps changed. */
int64_t facts_image_overrun(const facts_image *image, facts_pattern pattern, const void *bytes);

#endif
