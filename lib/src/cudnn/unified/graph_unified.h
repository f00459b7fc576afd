/* graph_unified.h: what the unified forward and the unified backward share. Attention is one operation there; what happens to a
 * score between the scale and the softmax is a graph of its own inside it.
 *
 * Inside that graph a bound of the band is one operation, always: the expanded band is taken for a bias there, and is silently
 * wrong. */
#ifndef FATTN_CUDNN_GRAPH_UNIFIED_H
#define FATTN_CUDNN_GRAPH_UNIFIED_H

#include "cudnn/graph/cudnn_graph.h"

typedef struct fattn__unified {
    fattn__chain chain; /* single; a side with prefix sums has cu_seq_len_ in the place of seq_len_ */
    fattn__desc operation;
} fattn__unified;

/* A part of the operation that cuDNN learned after the operation itself. */
typedef struct fattn__unified_gate {
    bool asked;
    int32_t from; /* cuDNN's version */
    const char *what;
} fattn__unified_gate;

/* Refuses the first gate that is asked for and newer than the loaded cuDNN; makes the operation of `type` and its lengths. */
fattn_status fattn__unified_begin(fattn__unified *out, fattn__graph *g, const fattn_problem *problem, int type, const char *what,
                                  const fattn__unified_gate *gates, size_t count);

/* Attributes of the operation. */
void fattn__unified_give(const fattn__unified *u, int attribute, fattn__desc value); /* NULL: left out */
void fattn__unified_give_role(const fattn__unified *u, int attribute, fattn__role role);
void fattn__unified_give_scale(const fattn__unified *u, int attribute);
/* The lengths of both sides, in whichever form. */
typedef struct fattn__unified_lengths {
    int seq_len_q, seq_len_kv, cu_seq_len_q, cu_seq_len_kv; /* attributes */
} fattn__unified_lengths;
void fattn__unified_give_lengths(const fattn__unified *u, const fattn__unified_lengths *attributes);
typedef struct fattn__unified_dropout {
    int probability, seed, offset; /* attributes */
} fattn__unified_dropout;
void fattn__unified_give_dropout(const fattn__unified *u, const fattn__unified_dropout *attributes);
/* What becomes of a score: score_mod, bias, ALiBi, bands. Nothing is given where nothing becomes of it. */
typedef struct fattn__unified_subgraph {
    int graph, input_uid, output_uid; /* attributes */
} fattn__unified_subgraph;
void fattn__unified_give_subgraph(const fattn__unified *u, const fattn__unified_subgraph *attributes);
/* graph_unified_fp8.c: scales and largest magnitudes of e4m3 and e5m2, scale factors of the block-scaled types. Nothing for others.
 */
void fattn__unified_give_scales(const fattn__unified *u);
/* Puts the operation into the graph. Returns fattn__graph_status. */
fattn_status fattn__unified_end(const fattn__unified *u, const char *what);

/* Does a score change between the scale and the softmax? */
bool fattn__unified_modifies(const fattn_problem *problem);

fattn_status fattn__build_unified_forward(fattn__graph *g, const fattn_problem *problem);
fattn_status fattn__build_unified_backward(fattn__graph *g, const fattn_problem *problem);

#endif
