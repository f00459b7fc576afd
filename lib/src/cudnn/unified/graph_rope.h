/* graph_rope.h: rotary embedding in front of a unified operation, and its gradient behind. No engine takes a rotation by itself,
 * and none takes one with a composite graph; together with the unified operation one graph is offered. */
#ifndef FATTN_CUDNN_GRAPH_ROPE_H
#define FATTN_CUDNN_GRAPH_ROPE_H

#include "cudnn/graph/cudnn_graph.h"

/* Refuses what cannot be rotated: packed tensors and pages have no row that is the position. */
fattn_status fattn__rope_check(fattn__graph *g, const fattn_problem *problem);

/* Q or K of the call. With rope it is the rotated tensor, one of the first two in the library's part of the workspace. The unified
 * backward reads that tensor; the graph before it has written it (plan.c). */
fattn__desc fattn__rope_rotated(const fattn__chain *c, fattn__role role);

/* The gradient of a rotated tensor on its way back: where the operation writes it, and the rotation that makes dQ or dK of the call
 * from it (to be called behind the operation). Without rope the operation writes the gradient itself. */
fattn__desc fattn__rope_gradient(const fattn__chain *c, fattn__role gradient, fattn__role input);
void fattn__rope_back(const fattn__chain *c, fattn__desc from, fattn__role gradient, fattn__role input);

#endif
