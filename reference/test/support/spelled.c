#include "spelled.h"

#include <stdlib.h>

#include "problems.h"

void spell(fref_tensor *out, const fref_tensor *book, const uint8_t *code, const int64_t stride[2], const int64_t dim[4])
{
    float *to = malloc((size_t)(dim[0] * dim[1] * dim[2] * dim[3] + 1) * sizeof *to);
    fref_tensor plain = *book;
    if (!to)
        abort();
    plain.descale = 1.0;
    *out = (fref_tensor){
        .data = to, .type = FREF_F32, .stride = { dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1 }, .descale = book->descale
    };
    for (int64_t n = 0; n < dim[0] * dim[1] * dim[2]; n++) {
        int64_t b = n / dim[2] / dim[1], h = n / dim[2] % dim[1];
        for (int64_t c = 0; c < dim[3]; c++)
            *to++ = (float)element(&plain, b, h, code[b * stride[0] + h * stride[1] + n % dim[2]], c);
    }
}
