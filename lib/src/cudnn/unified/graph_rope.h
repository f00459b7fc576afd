/* graph_rope.h: rotary embedding before a unified operation, and its gradient after it. No engine
 * takes a rotation alone, and none takes a rotation with a composite graph. cuDNN offers engines
 * only for one graph with the rotation and the unified operation. */
#ifndef FATTN_CUDNN_GRAPH_ROPE_H
#define FATTN_CUDNN_GRAPH_ROPE_H

#include "cudnn/graph/cudnn_graph.h"

/* Refuses ragged and paged tensors: the index of their rows is not the position. */
fattn_status fattn__rope_check(fattn__graph *g, const fattn_problem *problem);

/* Q or K of the call. With rope it is the rotated tensor, one of the first two in the library's
 * part of the workspace. The unified backward reads that tensor; another graph has written it
 * before (cudnn_plan.c). */
fattn__desc fattn__rope_rotated(const fattn__chain *c, fattn__role role);

/* With rope: fattn__rope_gradient is the tensor into which the operation writes the gradient of the
 * rotated input. fattn__rope_back, called after the operation, rotates it back into dQ or dK of the
 * call. Without rope the operation writes the gradient itself. */
fattn__desc fattn__rope_gradient(const fattn__chain *c, fattn__role gradient, fattn__role input);
void fattn__rope_back(const fattn__chain *c, fattn__desc from, fattn__role gradient,
                      fattn__role input);

#endif
