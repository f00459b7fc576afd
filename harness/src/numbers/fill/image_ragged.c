#include "image_ragged.h"

static void disown(facts_image *image, const facts_tensor *t, int64_t token)
{
    for (int64_t h = 0; h < t->dim[1]; h++)
        for (int64_t d = 0; d < t->dim[3]; d++) {
            int64_t at = t->first + h * t->stride[1] + token * t->stride[2] + d * t->stride[3];
            image->owned[at / 64] &= ~(UINT64_C(1) << (at % 64));
        }
}

static bool is_of_a_sequence(int64_t token, const int64_t *from, const int32_t *len, int64_t batch)
{
    for (int64_t b = 0; b < batch; b++)
        if (token >= from[b] && token < from[b] + len[b])
            return true;
    return false;
}

bool facts_image_pack(facts_image *image, const facts_tensor *tensor, const int64_t *from,
                      const int32_t *len, int64_t batch)
{
    if (!image->owned || tensor->dim[0] != 1)
        return false;
    for (int64_t b = 0; b < batch; b++)
        if (len[b] < 0 || from[b] < 0 || from[b] + len[b] > tensor->dim[2])
            return false;
    for (int64_t token = 0; token < tensor->dim[2]; token++)
        if (!is_of_a_sequence(token, from, len, batch))
            disown(image, tensor, token);
    return true;
}
