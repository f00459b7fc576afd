#include "storage.h"

#include <string.h>

static const char dimension_letters[] = "bhsd";
#define MOST_ELEMENTS                                                                              \
    (INT64_C(1) << 46) /* 128 TiB of bf16: beyond any memory, far from overflow                    \
                        */

/* Strides of extent-1 dimensions may be anything; these are multiples of 16 bytes, larger than any
 * tensor here, and all different.
 */
static const int64_t wild_stride[4] = { 800000024, 800000088, 800000152, 1 };

void facts_order_of(const facts_tensor *tensor, char out[6])
{
    if (tensor->packed != FACTS_PACKED_NOT) {
        memcpy(out, "thd", 4);
        return;
    }
    int sorted[3] = { 0, 1, 2 };
    for (int i = 1; i < 3; i++) { /* insertion keeps b,h,s among equals */
        int own = sorted[i], place = i;
        bool own_free = tensor->stride[own] == 0 || tensor->dim[own] == 1;
        for (; place > 0; place--) {
            int other = sorted[place - 1];
            bool other_free = tensor->stride[other] == 0 || tensor->dim[other] == 1;
            bool before = own_free != other_free
                              ? own_free
                              : !own_free && tensor->stride[own] > tensor->stride[other];
            if (!before)
                break;
            sorted[place] = other;
        }
        sorted[place] = own;
    }
    for (int i = 0; i < 3; i++)
        out[i] = dimension_letters[sorted[i]];
    out[3] = 'd';
    out[4] = '\0';
}

/* Elements after each index of a dimension. */
static int64_t gap_of(const facts_place_request *request, int d)
{
    if (request->form->gap[d] != 0)
        return request->form->gap[d];
    return d == 2 && request->plain != NULL ? request->plain->gap[2] : 0;
}

static bool named(const facts_stride_form *form)
{
    bool any = form->perm[0] != '\0' || form->offset != 0 || form->misaligned != 0;
    for (int d = 0; d < 4; d++)
        any = any || form->gap[d] != 0 || form->broadcast[d] || form->sum[d];
    return any;
}

static const char *order_of_request(const facts_place_request *request, char order[6])
{
    bool packed = strpbrk(request->order, "23") != NULL;
    const char *perm = request->form->perm[0] != '\0'                   ? request->form->perm
                       : request->plain != NULL && request->takes_order ? request->plain->perm
                                                                        : "";
    const facts_stride_form *form = request->form;
    if (packed && (named(form) || perm[0] != '\0'))
        return "a packed tensor shares its storage: only plain gap, offset and misaligned apply";
    bool moved = perm[0] != '\0' || form->gap[0] != 0 || form->broadcast[0] || form->broadcast[2] ||
                 form->sum[0] || form->sum[1] || form->sum[2];
    if (strchr(request->order, 't') != NULL && moved)
        return "ragged sequences follow each other: no order, no stride of b, no broadcast of rows";
    memcpy(order, request->order, 6);
    if (perm[0] != '\0')
        memcpy(order, perm, 5);
    return NULL;
}

const char *facts_place_tensor(const facts_place_request *request, facts_tensor *out)
{
    char order[6];
    const char *wrong = order_of_request(request, order);
    if (wrong != NULL)
        return wrong;
    int64_t run = 1, slice_stride = 0;
    memcpy(out->dim, request->dim, sizeof out->dim);
    for (size_t i = strlen(order); i-- > 0;) {
        bool tokens = order[i] == 't';
        const char *place = strchr(dimension_letters, tokens ? 's' : order[i]);
        int d = place == NULL ? -1 : (int)(place - dimension_letters);
        int64_t extent = tokens  ? (request->tokens > 0 ? request->tokens : 1)
                         : d < 0 ? order[i] - '0'
                                 : request->dim[d];
        if (d >= 0 && (request->form->broadcast[d] || request->form->sum[d])) {
            out->stride[d] = 0;
            out->dim[d] = request->form->sum[d] ? 1 : extent;
            continue;
        }
        int64_t stride = run + (d < 0 ? 0 : gap_of(request, d));
        if (stride > MOST_ELEMENTS / extent)
            return "larger than any memory";
        if (d < 0)
            slice_stride = stride;
        else
            out->stride[d] = request->wild && extent == 1 && d != 3 ? wild_stride[d] : stride;
        run = stride * extent;
    }
    if (strchr(order, 't') != NULL)
        out->stride[0] =
            request->dim[2] *
            out->stride[2]; /* nobody steps by it: start_q and start_kv say where an entry begins */
    const facts_stride_form *plain = request->takes_offsets ? request->plain : NULL;
    int64_t offset = request->form->offset != 0 ? request->form->offset
                     : plain != NULL            ? plain->offset
                                                : 0;
    out->skew_bytes = request->form->misaligned != 0 ? request->form->misaligned
                      : plain != NULL                ? plain->misaligned
                                                     : 0;
    out->first = offset + request->slice * slice_stride;
    out->elements = offset + run;
    return out->stride[3] == 1 ? NULL : "the last stride must be 1: channels lie side by side";
}
