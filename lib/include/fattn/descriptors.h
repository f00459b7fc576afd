/* descriptors.h: the graph that this library gives to cuDNN for a problem, as JSON text, descriptor
 * by descriptor. A program without this library can make the same graph from it. The library does
 * not call cuDNN for this, and cuDNN need not be installed.
 */
#ifndef FATTN_DESCRIPTORS_H
#define FATTN_DESCRIPTORS_H

#include "fattn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The operation graph of `problem` for a version (as cudnnGetVersion() has it: 92000) and an architecture (90 for sm_90).
 *
 *     {"descriptors": [{"type": "CUDNN_BACKEND_TENSOR_DESCRIPTOR",
 *                       "attributes": [{"name": "CUDNN_ATTR_TENSOR_DATA_TYPE", "type": "CUDNN_TYPE_DATA_TYPE",
 *                                       "values": ["CUDNN_DATA_HALF"]}]}],
 *      "operation_graph": 57,
 *      "bindings": [{"uid": 100, "slot": "q"}, {"uid": 104, "slot": "value", "bits": 1040187392},
 *                   {"uid": 120, "slot": "scratch", "offset": 0}],
 *      "scratch_bytes": 4096,
 *      "sums": [{"slot": "dk", "offset": 0, "dim": [2, 8, 512, 64], "strides": [262144, 64, 512, 1]}]}
 *
 * Order    descriptors and attributes are in the order in which the library makes and sets them. Each descriptor is finalized after its last
 *          attribute. A value of type CUDNN_TYPE_BACKEND_DESCRIPTOR is an index of the list. The handle is not among the attributes.
 * Bindings  A slot is a field of fattn_tensors. A value is a number of 32 bits by value (its tensor has the type). Scratch is an offset in
 *          the library's part of the workspace.
 * Sums     gradients of every element that cuDNN leaves in scratch memory. The library sums them afterwards.
 * Memory   *out is malloc'ed: free() it. NULL on failure.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM, FATTN_UNSUPPORTED, FATTN_POLICY, FATTN_INTERNAL (the library cannot write this problem as one
 *          graph, for example a backward with rope: the message says why); FATTN_NO_MEMORY. */
fattn_status fattn_descriptors(char **out, const fattn_problem *problem, int32_t cudnn_version,
                               int32_t sm);

#ifdef __cplusplus
}
#endif
#endif
