/* graph_unified.h: the code that the unified forward and the unified backward share. In cuDNN's
 * unified operation attention is one node. A subgraph inside it holds the operations on a score
 * between the scale and the softmax.
 *
 * In that subgraph a bound of the band must always be one operation. cuDNN takes an expanded band
 * for a bias there, and silently gives wrong results. */
#ifndef FATTN_CUDNN_GRAPH_UNIFIED_H
#define FATTN_CUDNN_GRAPH_UNIFIED_H

#include "cudnn/graph/cudnn_graph.h"

typedef struct fattn__unified {
    fattn__chain chain; /* with `single`; with prefix sums of queries or keys, cu_seq_len_ replaces
                           seq_len_ */
    fattn__desc operation;
} fattn__unified;

/* A feature that newer versions of cuDNN added to the operation. */
typedef struct fattn__unified_gate {
    bool asked;
    int32_t from; /* cuDNN's version */
    const char *what;
} fattn__unified_gate;

/* Refuses the first feature that is asked for and that the loaded cuDNN is too old for. Otherwise
 * makes the operation of `type` and its lengths. */
fattn_status fattn__unified_begin(fattn__unified *out, fattn__graph *g,
                                  const fattn_problem *problem, int type, const char *what,
                                  const fattn__unified_gate *gates, size_t count);

/* Attributes of the operation. */
void fattn__unified_give(const fattn__unified *u, int attribute,
                         fattn__desc value); /* NULL: left out */
void fattn__unified_give_role(const fattn__unified *u, int attribute, fattn__role role);
/* The lengths of queries and keys, as lengths or as prefix sums. */
typedef struct fattn__unified_lengths {
    int seq_len_q, seq_len_kv, cu_seq_len_q, cu_seq_len_kv; /* attributes */
} fattn__unified_lengths;
void fattn__unified_give_lengths(const fattn__unified *u, const fattn__unified_lengths *attributes);
typedef struct fattn__unified_dropout {
    int probability, seed, offset; /* attributes */
} fattn__unified_dropout;
void fattn__unified_give_dropout(const fattn__unified *u, const fattn__unified_dropout *attributes);
/* The subgraph of the score: score_mod, bias, ALiBi, bands. Nothing is set if the score does not
 * change. */
typedef struct fattn__unified_subgraph {
    int graph, input_uid, output_uid; /* attributes */
} fattn__unified_subgraph;
void fattn__unified_give_subgraph(const fattn__unified *u,
                                  const fattn__unified_subgraph *attributes);
/* For e4m3 and e5m2 the scales and amax outputs, for block-scaled types the
 * scale factors. Does nothing for other types. */
void fattn__unified_give_scales(const fattn__unified *u);
/* Adds the operation to the graph. Returns fattn__graph_status. */
fattn_status fattn__unified_end(const fattn__unified *u, const char *what);

/* Does a score change between the scale and the softmax? */
bool fattn__unified_modifies(const fattn_problem *problem);

fattn_status fattn__build_unified_forward(fattn__graph *g, const fattn_problem *problem);
fattn_status fattn__build_unified_backward(fattn__graph *g, const fattn_problem *problem);

/* Rotary embedding before a unified operation, and its gradient after it. No engine
 * takes a rotation alone, and none takes a rotation with a composite graph. cuDNN offers engines
 * only for one graph with the rotation and the unified operation. */
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
