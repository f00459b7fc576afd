/* From a layout word and the forms of `stride=` to strides. Pure. */
#ifndef FACTS_CASE_STORAGE_H
#define FACTS_CASE_STORAGE_H

#include "case/language/stride.h"
#include "case/language/layout_word.h"
#include "case_problem.h"

/* One tensor to place: its extents in b,h,s,d order and where it stands. */
typedef struct facts_place_request {
    int64_t dim[4];
    char order[6];                         /* axes, outermost first; with 2 or 3 for a shared storage, t for packed sequences */
    int64_t tokens;                        /* t: rows of the storage */
    int slice;                             /* which of the 2 or 3 it is */
    const facts_stride_form *form, *plain; /* `plain` may be NULL: this tensor does not follow the plain forms */
    bool takes_offsets;                    /* of the plain forms (Q, K, V) */
    bool takes_order;                      /* of the plain forms (Q, K, V) */
    bool wild;
} facts_place_request;

/* Fills dim, stride, first, elements, skew_bytes. Returns NULL or what is wrong with it. */
const char *facts_place_tensor(const facts_place_request *request, facts_tensor *out);

/* The memory order of a tensor's dimensions, outermost first: sorted by stride, dimensions of stride 0 or extent 1 outermost in the
 * order b,h,s, and d last. What an output takes that follows this tensor. */
void facts_order_of(const facts_tensor *tensor, char out[6]);

/* Copies the strides of the tensors that are present into problem->ask. */
void facts_ask_strides(facts_problem *problem);

#endif
