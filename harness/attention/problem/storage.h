/* From a layout word and the forms of `stride=` to strides. Pure. */
#ifndef FACTS_CASE_STORAGE_H
#define FACTS_CASE_STORAGE_H

#include "case_problem.h"
#include "keys/layout_word.h"
#include "keys/stride.h"

/* One tensor to place: its extents in the order b,h,s,d, and its position in the call. */
typedef struct facts_place_request {
    int64_t dim[4];
    char order[6];  /* axes, outermost first; 2 or 3 for a shared storage, t for ragged tokens */
    int64_t tokens; /* t: rows of the storage */
    int slice;      /* which of the 2 or 3 it is */
    const facts_stride_form *form,
        *plain;         /* `plain` may be NULL: the plain forms do not apply to this tensor */
    bool takes_offsets; /* of the plain forms (Q, K, V) */
    bool takes_order;   /* of the plain forms (Q, K, V) */
    bool wild;
} facts_place_request;

/* Fills dim, stride, first, elements and skew_bytes. Returns NULL or the mistake. */
const char *facts_place_tensor(const facts_place_request *request, facts_tensor *out);

/* The memory order of a tensor's dimensions, outermost first, for an output that follows this
 * tensor. Dimensions are sorted by stride. Those of stride 0 or extent 1 are outermost, in the
 * order b,h,s. d is last. */
void facts_order_of(const facts_tensor *tensor, char out[6]);

#endif
